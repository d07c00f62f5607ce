"""The data has no column that the contract does not name, as `additionalColumns` says.

Why: A column that nobody promised is used all the same, may be personal, and then cannot be removed.
Bad: `additionalColumns: forbid` and a column that the contract does not name.
Good: The contract's columns and no others.
Nulls: Only names are compared; no row is read. Fields of structs, also in arrays and in values of maps, count
as columns where the contract names at least one of the struct's fields.
Mend: Add the column to the contract, drop it, or write `additionalColumns: allow` in the object's custom
property `dataset`. Without one, an additional column is a warning.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from dq.contracts.extension import dataset
from dq.contracts.model import Contract, Property, SchemaObject
from dq.contracts.outcome import CheckResult, Severity, Status, first_of
from dq.contracts.types import DataType
from dq.dataquality.clauses.clause import Clause, KindTerms, refuse, terms_of
from dq.dataquality.clauses.kind import CheckKind, Values, of_schema, result, schema_in

_GRADES = {"forbid": Severity.ERROR, "warn": Severity.WARNING}


def clauses(_contract: Contract, one: SchemaObject) -> Iterator[Clause]:
    if not one.properties:
        return
    terms, findings = dataset(one)
    grade = _GRADES.get(terms.additional_columns, Severity.INFO)
    custom = one.custom("dataset")
    at = custom.at("value") if custom else one.at("properties")
    path, allowed = one.path("additionalColumns"), f"none ({terms.additional_columns})"
    made = Clause("additional_columns", path, one.name, "", at, grade, allowed)
    made = replace(made, covers=(custom.path(),) if custom else (), ask=KindTerms(tuple(one.properties)))
    if findings:
        yield refuse(made, f"the dataset terms: {findings[0].message}")
    elif terms.additional_columns != "allow":
        yield made


# A table may have thousands of columns that its contract does not name.
_MOST_NAMES = 20


def judge(clause: Clause, values: Values) -> CheckResult:
    schema = schema_in(values)
    more = list(_more(schema, terms_of(clause, tuple), ""))
    if not more:
        return result(clause, Status.PASS, "none", f"{clause.object}: no additional column", 0.0)
    names = first_of(more, _MOST_NAMES)
    mend = "name them in the contract, or drop them"
    message = f"{clause.object}: the contract does not name {names}; {mend}"
    return result(clause, Status.FAIL, names, message, float(len(more)))


def _more(found: DataType, named: Sequence[Property], prefix: str) -> Iterator[str]:
    known = {prop.column.lower(): prop for prop in named}
    for name, part in zip(found.names, found.parts, strict=True):
        prop = known.get(name.lower())
        if prop is None:
            yield prefix + name
        else:
            yield from _inside(part, prop, prefix + name)


def _inside(found: DataType, prop: Property, shown: str) -> Iterator[str]:
    """The same for what stands inside of a column: fields, items of arrays, values of maps."""
    if found.name == "struct" and prop.properties:
        yield from _more(found, prop.properties, f"{shown}.")
    elif found.name == "array" and prop.items is not None:
        yield from _inside(found.parts[0], prop.items, f"{shown}[]")
    elif found.name == "map" and prop.map is not None:
        yield from _inside(found.parts[1], prop.map.value, f"{shown}{{value}}")


CHECK = CheckKind("additional_columns", __doc__, clauses, of_schema, judge)
