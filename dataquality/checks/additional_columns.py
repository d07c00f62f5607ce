"""The data has only columns that the contract names, unless `additionalColumns` allows more.

Why: Consumers use an undocumented column too. It may hold personal data, and can then not be removed.
Bad: `additionalColumns: forbid` and a column that the contract does not name.
Good: The contract's columns and no others.
Nulls: Only names are compared; no row is read. Fields of structs, also in arrays and in values of maps, count
as columns where the contract names at least one of the struct's fields.
How to fix: Add the column to the contract, drop it, or write `additionalColumns: allow` in the object's
custom property `dataset`. Without one, an additional column is a warning.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from dq.contracts.check_result import CheckResult, Status
from dq.contracts.extension import dataset
from dq.contracts.model import Contract, Property, SchemaObject
from dq.contracts.outcome import Severity, join_limited
from dq.contracts.types import DataType
from dq.dataquality.clauses.clause import CheckParameters, Clause, parameters_of, refuse
from dq.dataquality.clauses.kind import CheckKind, Values, result, schema_in, schema_metrics

_GRADES = {"forbid": Severity.ERROR, "warn": Severity.WARNING}


def clauses(_contract: Contract, schema_object: SchemaObject) -> Iterator[Clause]:
    if not schema_object.properties:
        return
    terms, findings = dataset(schema_object)
    severity = _GRADES.get(terms.additional_columns, Severity.INFO)
    custom = schema_object.custom("dataset")
    location = custom.locate("value") if custom else schema_object.locate("properties")
    path, allowed = schema_object.path("additionalColumns"), f"none ({terms.additional_columns})"
    clause = Clause("additional_columns", path, schema_object.name, "", location, severity, allowed)
    clause = replace(
        clause,
        covers=(custom.path(),) if custom else (),
        test=CheckParameters(tuple(schema_object.properties)),
    )
    if findings:
        yield refuse(clause, f"the dataset terms: {findings[0].message}")
    elif terms.additional_columns != "allow":
        yield clause


# Maximum number of names in a message; a table may have thousands of additional columns.
_MOST_NAMES = 20


def judge(clause: Clause, values: Values) -> CheckResult:
    schema = schema_in(values)
    additional = list(_additional(schema, parameters_of(clause, tuple), ""))
    if not additional:
        return result(clause, Status.PASS, "none", f"{clause.object}: no additional column", 0.0)
    names = join_limited(additional, _MOST_NAMES)
    hint = "add them to the contract or drop them"
    message = f"{clause.object}: columns not in the contract: {names}; {hint}"
    return result(clause, Status.FAIL, names, message, float(len(additional)))


def _additional(data_type: DataType, properties: Sequence[Property], prefix: str) -> Iterator[str]:
    by_name = {prop.column.lower(): prop for prop in properties}
    for name, part in zip(data_type.names, data_type.parts, strict=True):
        prop = by_name.get(name.lower())
        if prop is None:
            yield prefix + name
        else:
            yield from _additional_inside(part, prop, prefix + name)


def _additional_inside(data_type: DataType, prop: Property, path: str) -> Iterator[str]:
    """Yield the additional fields inside a column: in structs, array items and map values."""
    if data_type.name == "struct" and prop.properties:
        yield from _additional(data_type, prop.properties, f"{path}.")
    elif data_type.name == "array" and prop.items is not None:
        yield from _additional_inside(data_type.parts[0], prop.items, f"{path}[]")
    elif data_type.name == "map" and prop.map is not None:
        yield from _additional_inside(data_type.parts[1], prop.map.value, f"{path}{{value}}")


CHECK = CheckKind("additional_columns", __doc__, clauses, schema_metrics, judge)
