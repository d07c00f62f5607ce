"""Every property is a column of the data, with the type that the contract promises.

Why: A consumer's query fails on a column that is gone, and goes wrong on one of another type.
Bad: `physicalType: decimal(18,2)` and a column of strings.
Good: A column of that type. Case of names does not matter, as in Spark.
Nulls: Only names and types are compared; no row is read.
Mend: Write the column with the promised type, or change the contract, which breaks its consumers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from dq.contracts.model import Contract, SchemaObject
from dq.contracts.odcs import Version
from dq.contracts.outcome import CheckResult, Severity, Status
from dq.contracts.types import DataType, carries, physical_type
from dq.dataquality.clauses.clause import Clause, KindTerms, terms_of
from dq.dataquality.clauses.kind import CheckKind, Values, of_schema, result, schema_in
from dq.dataquality.model.column import Column, columns, field, resolve
from dq.dataquality.model.predicate import Inside
from dq.dataquality.sql_values import logical_test, told_by_format


@dataclass(frozen=True, slots=True)
class ColumnPromise:
    """What is said of one column: its exact type, or at least its logical one, or only that it is there."""

    column: Column
    exact: DataType | None
    logical: str | None
    odcs: Version


def clauses(contract: Contract, one: SchemaObject) -> Iterator[Clause]:
    for prop, column in columns(one):
        # Of a struct without a `physicalType`, its fields speak for themselves.
        exact = physical_type(prop) if prop.physical_type else None
        promise = ColumnPromise(column, exact, prop.logical_type, contract.odcs)
        allowed = str(promise.exact or promise.logical or "any type")
        key = "physicalType" if prop.physical_type else "logicalType"
        covers = [prop.path(key) for key in ("name", "physicalName")]
        if logical_test(prop, contract.odcs) is None and not told_by_format(prop):
            covers.append(prop.path("logicalType"))
        if promise.exact is not None or not prop.physical_type:
            covers.append(prop.path("physicalType"))
        made = Clause("columns", prop.path(), one.name, str(column), prop.at(key), Severity.ERROR, allowed)
        yield replace(made, covers=tuple(covers), ask=KindTerms(promise))


def judge(clause: Clause, values: Values) -> CheckResult:
    promise, schema = terms_of(clause, ColumnPromise), schema_in(values)
    name = f"{clause.object}.{clause.property}"
    found = resolve(schema, promise.column)
    if isinstance(found, str):
        status, observed = _absent(schema, promise.column)
        return result(clause, status, observed, f"{name}: {found}")
    reason = _difference(found, promise)
    if reason is None:
        return result(clause, Status.PASS, str(found), f"{name}: {found}")
    return result(clause, Status.FAIL, str(found), f"{name}: {reason}; allowed: {clause.allowed}")


def _absent(schema: DataType, column: Column) -> tuple[Status, str]:
    """What it means that a column cannot be found: one mistake is told once, by its outermost column."""
    holder = resolve(schema, Column(column.steps[:-1]))
    if isinstance(holder, str):
        return Status.SKIPPED, "no holder"
    if holder.name in _OPAQUE and not isinstance(column.steps[-1], Inside):
        return Status.ERROR, f"inside of a {holder}"
    if holder.name != "struct":
        return Status.SKIPPED, "no holder"
    return Status.FAIL, "missing"


# What may hold an object, and does not show its fields; arrays and maps are never texts.
_OPAQUE = ("string", "variant")


def _difference(found: DataType, promise: ColumnPromise) -> str | None:
    if promise.exact is not None:
        return differs(found, promise.exact)
    if promise.logical is None:
        return None
    if not carries(found, promise.logical, promise.odcs):
        return f"type {found} cannot hold {promise.logical}"
    if promise.logical == "integer" and found.name == "decimal" and found.numbers[1:] not in ((), (0,)):
        return f"type {found} has digits after the point, which an integer has not"
    return None


def differs(found: DataType, promised: DataType) -> str | None:
    """How a type differs from the promised one, or None. Fields of structs are compared by name."""
    # Files and frames know no text of bounded length; the check of lengths looks at the values.
    if promised.name in ("varchar", "char") and found.name in ("string", promised.name):
        return None
    if found.name != promised.name or (promised.numbers and found.numbers != promised.numbers):
        return f"type is {found}"
    if promised.name == "struct":
        for name, part in zip(promised.names, promised.parts, strict=True):
            inner = field(found, name)
            if inner is None:
                return f"field {name!r} is missing in {found}"
            if differs(inner, part):
                return f"field {name!r} is {inner}"
        return None
    pairs = zip(found.parts, promised.parts, strict=True)
    return f"type is {found}" if any(differs(*pair) for pair in pairs) else None


CHECK = CheckKind("columns", __doc__, clauses, of_schema, judge)
