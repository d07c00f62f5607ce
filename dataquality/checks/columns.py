"""Every property is a column of the data, with the type that the contract promises.

Why: A consumer's query fails on a column that is gone, and goes wrong on one of another type.
Bad: `physicalType: decimal(18,2)` and a column of strings.
Good: A column of that type. Case of names does not matter, as in Spark.
Nulls: Only names and types are compared; no row is read.
How to fix: Write the column with the promised type, or change the contract, which breaks its consumers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from dq.contracts.check_result import CheckResult, Status
from dq.contracts.model import Contract, SchemaObject
from dq.contracts.odcs import Version
from dq.contracts.outcome import Severity
from dq.contracts.types import DataType, carries, physical_type
from dq.dataquality.clauses.clause import CheckParameters, Clause, parameters_of
from dq.dataquality.clauses.kind import CheckKind, Values, result, schema_in, schema_metrics
from dq.dataquality.model.column import Column, columns, resolve, struct_field
from dq.dataquality.model.predicate import Inside
from dq.dataquality.sql_values import has_text_format, logical_test


@dataclass(frozen=True, slots=True)
class ColumnPromise:
    """The promise for one column: its exact type, or else its logical type, or only its existence."""

    column: Column
    exact: DataType | None
    logical: str | None
    odcs: Version


def clauses(contract: Contract, schema_object: SchemaObject) -> Iterator[Clause]:
    for prop, column in columns(schema_object):
        # The fields of a struct without a `physicalType` have clauses of their own.
        exact = physical_type(prop) if prop.physical_type else None
        promise = ColumnPromise(column, exact, prop.logical_type, contract.odcs)
        allowed = str(promise.exact or promise.logical or "any type")
        key = "physicalType" if prop.physical_type else "logicalType"
        covers = [prop.path(key) for key in ("name", "physicalName")]
        if logical_test(prop, contract.odcs) is None and not has_text_format(prop):
            covers.append(prop.path("logicalType"))
        if promise.exact is not None or not prop.physical_type:
            covers.append(prop.path("physicalType"))
        clause = Clause(
            "columns", prop.path(), schema_object.name, str(column), prop.locate(key), Severity.ERROR, allowed
        )
        yield replace(clause, covers=tuple(covers), test=CheckParameters(promise))


def judge(clause: Clause, values: Values) -> CheckResult:
    promise, schema = parameters_of(clause, ColumnPromise), schema_in(values)
    name = f"{clause.object}.{clause.property}"
    resolved = resolve(schema, promise.column)
    if isinstance(resolved, str):
        status, observed = _absent(schema, promise.column)
        return result(clause, status, observed, f"{name}: {resolved}")
    reason = _difference(resolved, promise)
    if reason is None:
        return result(clause, Status.PASS, str(resolved), f"{name}: {resolved}")
    return result(clause, Status.FAIL, str(resolved), f"{name}: {reason}; allowed: {clause.allowed}")


def _absent(schema: DataType, column: Column) -> tuple[Status, str]:
    """Return the status of a column that cannot be found; only the outermost missing column is reported."""
    holder = resolve(schema, Column(column.steps[:-1]))
    if isinstance(holder, str):
        return Status.SKIPPED, "no holder"
    if holder.name in _OPAQUE and not isinstance(column.steps[-1], Inside):
        return Status.ERROR, f"inside of a {holder}"
    if holder.name != "struct":
        return Status.SKIPPED, "no holder"
    return Status.FAIL, "missing"


# Types that may store an object without showing its fields; arrays and maps are never stored as texts.
_OPAQUE = ("string", "variant")


def _difference(data_type: DataType, promise: ColumnPromise) -> str | None:
    if promise.exact is not None:
        return type_difference(data_type, promise.exact)
    if promise.logical is None:
        return None
    if not carries(data_type, promise.logical, promise.odcs):
        return f"type {data_type} cannot hold {promise.logical}"
    if (
        promise.logical == "integer"
        and data_type.name == "decimal"
        and data_type.numbers[1:] not in ((), (0,))
    ):
        return f"type {data_type} has decimal places, unlike an integer"
    return None


def type_difference(data_type: DataType, promised: DataType) -> str | None:
    """Return how a type differs from the promised one, or None. Struct fields are compared by name."""
    # Files and frames have no texts of bounded length; the `lengths` check tests the values.
    if promised.name in ("varchar", "char") and data_type.name in ("string", promised.name):
        return None
    if data_type.name != promised.name or (promised.numbers and data_type.numbers != promised.numbers):
        return f"type is {data_type}"
    if promised.name == "struct":
        for name, part in zip(promised.names, promised.parts, strict=True):
            inner = struct_field(data_type, name)
            if inner is None:
                return f"field {name!r} is missing in {data_type}"
            if type_difference(inner, part):
                return f"field {name!r} is {inner}"
        return None
    pairs = zip(data_type.parts, promised.parts, strict=True)
    return f"type is {data_type}" if any(type_difference(*pair) for pair in pairs) else None


CHECK = CheckKind("columns", __doc__, clauses, schema_metrics, judge)
