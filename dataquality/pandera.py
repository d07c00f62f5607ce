"""Export of a contract's object as a pandera schema for pandas, polars or Spark, with its unsupported
clauses.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dq.contracts.check_result import CheckResult, Status
from dq.contracts.install import install_command
from dq.contracts.model import Contract, Property, SchemaObject
from dq.contracts.outcome import MissingTool, ReadError, UsageError, nearest
from dq.contracts.types import DataType, physical_type, row_type
from dq.contracts.yaml.parse import read
from dq.dataquality.answers.memory import find_violations, measure, unsupported_reason
from dq.dataquality.answers.rows import Rows, rows_from_arrow, rows_from_pandas
from dq.dataquality.check import check, evaluate
from dq.dataquality.checks import built_in
from dq.dataquality.clauses.clause import Clause, ForeignKey, NoResult, RowFilter, Unit
from dq.dataquality.clauses.coverage import EnforcementState, SelectedClauses, bind_clauses, select
from dq.dataquality.clauses.kind import CheckKinds, metrics_for
from dq.dataquality.clauses.metric_rule import metric_request_of
from dq.dataquality.model.column import columns
from dq.dataquality.model.predicate import FLOATS, Compare, In, Length, Not
from dq.dataquality.model.predicate import Path as ColumnPath
from dq.dataquality.model.run_context import EMPTY_CONTEXT
from dq.dataquality.report import Violated
from dq.dataquality.request import Request, find_object
from dq.dataquality.sql_values import logical_type_of

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    from pandera.polars import PolarsData
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class UnsupportedClause:
    """A clause that the schema does not test, with the reason."""

    clause: str
    property: str
    description: str
    reason: str
    at: str


@dataclass(frozen=True, slots=True)
class ExportedColumn:
    """A column as pandera tests it: it exists, by its exact name, and has no NULL unless nullable."""

    name: str
    nullable: bool
    type: str
    title: str | None
    description: str | None


@dataclass(frozen=True, slots=True)
class Export:
    """Content of a schema: columns, and the clauses that become its checks."""

    contract: Contract
    schema_object: SchemaObject
    columns: tuple[ExportedColumn, ...]
    clauses: tuple[Clause, ...]
    kinds: CheckKinds
    unsupported: tuple[UnsupportedClause, ...]

    @property
    def metadata(self) -> dict[str, object]:
        """Metadata of the schema: its contract and object, and the unsupported clauses."""
        return {
            "dq": {
                "contract": self.contract.id,
                "version": self.contract.version,
                "object": self.schema_object.name,
                "left_out": self.unsupported,
            }
        }


def schema(contract: Contract | Path | str, object_name: str | None = None, backend: str = "pyspark") -> Any:
    """Return a pandera `DataFrameSchema` for one object of the contract, with one check per clause.

    Checks are named by the clause's path in the contract and have the same results as `dq check`; clauses
    less severe than error only warn. Clauses that the schema cannot test are in its metadata; see `left_out`.

    Args:
        contract: A path, YAML text, or a loaded contract.
        object_name: Optional if the contract has only one object.

    Raises:
        UsageError: Unknown object or backend.
        MissingTool: pandera or the backend's library is not installed.
    """
    if backend not in BACKENDS:
        hint = nearest(backend, list(BACKENDS)) or ", ".join(BACKENDS)
        raise UsageError(f"unknown backend {backend!r}.", f"Did you mean {hint}?")
    why_unsupported, build_schema = BACKENDS[backend]
    parsed_contract = read(contract)
    exported = export(
        parsed_contract,
        find_object(parsed_contract, object_name),
        why_unsupported,
        floats_hide_nan=backend == "polars",
    )
    try:
        return build_schema(exported)
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing in ("", "dq"):
            raise
        install = "pip install polars" if missing == "polars" else install_command("spark")
        raise MissingTool(
            f"A schema for {backend} needs {missing}, which is not installed.", install
        ) from error


def left_out(frame_schema: Any) -> tuple[UnsupportedClause, ...]:
    """Return the clauses that a schema made by `schema` does not test, in the order of the contract."""
    unsupported: tuple[UnsupportedClause, ...] = frame_schema.metadata["dq"]["left_out"]
    return unsupported


WhyUnsupported = Callable[[SchemaObject, Clause, CheckKinds], str | None]
"""Returns the reason why a backend cannot test a clause, or None if it can."""


def export(
    contract: Contract,
    schema_object: SchemaObject,
    why_unsupported: WhyUnsupported,
    *,
    floats_hide_nan: bool = False,
) -> Export:
    """Return the columns and checks of a schema.

    Set `floats_hide_nan` if pandera treats NaN in floats as NULL for this backend.
    """
    kinds = built_in()
    selected = select(
        contract,
        schema_object,
        kinds,
        exclusion_reason=lambda clause: why_untestable(schema_object, clause, kinds, why_unsupported),
    )
    columns = tuple(_columns(schema_object, floats_hide_nan=floats_hide_nan))
    native_columns = {column.name for column in columns if not column.nullable}
    return Export(
        contract,
        schema_object,
        columns,
        tuple(clause for clause in selected.clauses if not _is_native(clause, native_columns)),
        kinds,
        tuple(_unsupported_clauses(selected)),
    )


def why_untestable(
    schema_object: SchemaObject, clause: Clause, kinds: CheckKinds, why_unsupported: WhyUnsupported
) -> str | None:
    """Return the reason why a single frame cannot test a clause, or None if it can."""
    if clause.refusal_reason:
        return clause.refusal_reason
    if isinstance(clause.test, ForeignKey):
        return "it looks up keys in another object; a schema sees one frame"
    if clause.row_filter.window is not None:
        return _NEEDS_RUN["latency"]
    if clause.check == "row_count" and clause.limit and clause.limit.unit is Unit.PERCENT:
        return _NEEDS_RUN["unusual"]
    metric_request = metric_request_of(clause)
    if metric_request is not None and metric_request.terms.against is not None:
        return _NEEDS_RUN["unusual"]
    return _NEEDS_RUN.get(clause.check) or why_unsupported(schema_object, clause, kinds)


# Checks that need another side, the time of the run or earlier runs.
_NEEDS_RUN = {
    "agrees": "it compares the rows with another side; a schema sees one frame",
    "agrees_in_sum": "it compares sums with another side; a schema sees one frame",
    "latency": "it needs the time of a run; a schema sees one frame",
    "retention": "it needs the time of a run; a schema sees one frame",
    "unusual": "it needs earlier runs; a schema sees one frame",
}


def _is_native(clause: Clause, native_columns: set[str]) -> bool:
    """Return True if pandera's own `nullable=False` is equivalent to the clause."""
    nulls = clause.check == "required" or (clause.check == "primary_key" and not clause.keys)
    return nulls and clause.property in native_columns


def _columns(schema_object: SchemaObject, *, floats_hide_nan: bool) -> Iterator[ExportedColumn]:
    for prop in schema_object.properties:
        required = bool(prop.required) or prop in schema_object.primary_key()
        hides_nulls = floats_hide_nan and _may_be_float(prop)
        promised_type = physical_type(prop)
        yield ExportedColumn(
            prop.column,
            not required or hides_nulls,
            str(promised_type or logical_type_of(prop) or "any type"),
            prop.business_name,
            prop.description,
        )


def _may_be_float(prop: Property) -> bool:
    promised_type = physical_type(prop)
    return promised_type.name in FLOATS if promised_type else logical_type_of(prop) in ("number", "")


def _unsupported_clauses(selected: SelectedClauses) -> Iterator[UnsupportedClause]:
    """Yield the clauses that dq itself does not enforce, and those that this backend cannot test."""
    listed_paths: set[str] = set()
    for entry in selected.coverage:
        reason = entry.reason
        if entry.state is EnforcementState.ENFORCED and reason == "dq watch":
            reason = "it is about deliveries, which 'dq watch' evaluates"
        elif entry.state is not EnforcementState.NOT_EVALUATED:
            continue
        listed_paths.add(entry.path)
        yield UnsupportedClause(entry.path, entry.property, entry.clause, reason, str(entry.at))
    # A coverage entry may consist of several clauses.
    for clause in selected.untested:
        test = clause.test
        if isinstance(test, NoResult) and not (test.proven or listed_paths.intersection(clause.paths)):
            yield UnsupportedClause(clause.path, clause.property, clause.check, test.reason, str(clause.at))


def why_unanswerable(_schema_object: SchemaObject, clause: Clause, kinds: CheckKinds) -> str | None:
    """Return the reason why rows in memory cannot answer a clause, or None if they can."""
    reasons = (unsupported_reason(metric) for metric in metrics_for(clause, kinds))
    return next((reason for reason in reasons if reason), None)


Results = Mapping[str, CheckResult]
MeasuredFrame = tuple[Results, Any]
"""The results by clause path, and data that the backend needs to find failing rows."""


class NotMeasured(ReadError):
    """A clause could not be measured on this frame: it neither passed nor failed."""


class FrameBroken(Violated):
    """A clause about the whole frame failed."""


class FrameResults:
    """Caches the results of the last measured frame, because pandera runs one check after the other.

    A frame may change between two validations, so the first check of a schema always measures.
    """

    def __init__(self, measure_frame: Callable[[Any], MeasuredFrame]) -> None:
        self._measure_frame = measure_frame
        self._last: tuple[Callable[[], Any], MeasuredFrame] | None = None

    def results_of(self, frame: Any, *, first: bool) -> MeasuredFrame:
        """Return the results of this frame."""
        if first or self._last is None or self._last[0]() is not frame:
            self._last = weakref.ref(frame), self._measure_frame(frame)
        return self._last[1]


def has_passed(result: CheckResult) -> bool:
    """Return True unless the clause failed.

    Raises NotMeasured, with the reason, if it could not be measured.
    """
    if result.status is Status.ERROR:
        raise NotMeasured(result.message)
    return result.status is not Status.FAIL


def in_memory_results(export: Export, read_rows: Callable[[Any, DataType], Rows]) -> FrameResults:
    """Evaluate clauses on rows in memory, with the same rules as on Spark."""
    promised_type, kinds = row_type(export.schema_object), export.kinds

    def measure_frame(frame: Any) -> MeasuredFrame:
        rows = read_rows(frame, promised_type)
        bound_clauses = bind_clauses(rows.schema, export.clauses, EMPTY_CONTEXT)
        return evaluate(bound_clauses, kinds, partial(measure, rows)), rows

    return FrameResults(measure_frame)


def schema_arguments(
    column: Callable[..., Any],
    check: Callable[..., Any],
    export: Export,
    test: Callable[[Clause, bool, Any], Any],
    *,
    native: bool = False,
) -> dict[str, Any]:
    """Return the arguments of a backend's schema, built with its own Column and Check classes.

    With `native`, clauses that pandera has a built-in check for become built-in checks of their column, which
    can be serialized (`to_yaml`) and whose failure cases show the values. `test` evaluates each other clause;
    it is called with the clause, with True for the first check of the schema, and with the frame.
    """
    integer_columns = {column.name for column in export.columns if column.type in _INTEGER_TYPES}
    native_checks = {
        clause.path: _build_native_check(check, export, clause, *native_check)
        for clause in export.clauses
        if native and (native_check := _native_check(clause, clause.property in integer_columns))
    }
    remaining = [clause for clause in export.clauses if clause.path not in native_checks]
    return {
        "columns": {
            exported.name: column(
                nullable=exported.nullable,
                title=exported.title,
                description=exported.description,
                metadata={"type": exported.type},
                checks=[
                    native_checks[clause.path]
                    for clause in export.clauses
                    if clause.property == exported.name and clause.path in native_checks
                ],
            )
            for exported in export.columns
        },
        "checks": [
            _check(check, export, clause, partial(test, clause, index == 0))
            for index, clause in enumerate(remaining)
        ],
        "name": export.schema_object.name,
        "description": export.schema_object.description,
        "metadata": export.metadata,
    }


# Operator of failing values -> pandera's check of passing values.
_BOUNDS = {
    "<": "greater_than_or_equal_to",
    "<=": "greater_than",
    ">": "less_than_or_equal_to",
    ">=": "less_than",
}
_INTEGER_TYPES = ("tinyint", "smallint", "int", "bigint", "integer")
_LENGTHS = {"<": "min_value", ">": "max_value"}


def _native_check(clause: Clause, is_integer: bool) -> tuple[str, dict[str, object]] | None:
    """Return pandera's built-in check that is equivalent to a clause, with arguments, or None if there is
    none.

    Supported are lists and lengths of strings, and lists and bounds of integer columns. Floats are not,
    because pandera treats NaN as NULL; decimals are not, because Arrow compares their bounds in 38 digits.
    """
    if clause.limit is not None or clause.row_filter != RowFilter():
        return None
    match clause.breaks:
        case Not(In(ColumnPath((_,)), values)) if _texts(values) or (is_integer and all(map(_fits, values))):
            return "isin", {"allowed_values": [*values]}
        case Compare(ColumnPath((_,)), operator, bound) if (
            is_integer and operator in _BOUNDS and _fits(bound)
        ):
            return _BOUNDS[operator], {"max_value" if operator.startswith(">") else "min_value": bound}
        case Compare(Length(ColumnPath((_,))), operator, int(length)) if operator in _LENGTHS:
            return "str_length", {_LENGTHS[operator]: length}
    return None


def _texts(values: tuple[object, ...]) -> bool:
    return all(isinstance(value, str) for value in values)


def _fits(value: object) -> bool:
    """Return True if the value is an integer within 64 bits."""
    return type(value) is int and -(2**63) <= value < 2**63


def _build_native_check(
    check: Callable[..., Any], export: Export, clause: Clause, name: str, arguments: dict[str, object]
) -> Any:
    return getattr(check, name)(**arguments, **_check_texts(export, clause), ignore_na=True)


def _check(check: Callable[..., Any], export: Export, clause: Clause, function: Callable[[Any], Any]) -> Any:
    return check(function, **_check_texts(export, clause), ignore_na=False)


def _check_texts(export: Export, clause: Clause) -> dict[str, Any]:
    """Return name, texts and severity of a check; its name is the clause's path."""
    subject = f"{clause.object}.{clause.property}" if clause.property else clause.object
    return {
        "name": clause.path,
        "error": f"{subject}: {clause.check}, allowed: {clause.allowed} ({clause.path} at {clause.at})",
        "title": clause.check,
        "description": export.kinds[clause.check].summary,
        "raise_warning": not clause.severity.blocks,
    }


# Schemas for the frames of each library, which is imported with its schema.


def _pandas_schema(export: Export) -> Any:
    """Return a pandas schema whose row-level checks show the failing rows."""
    from pandera.pandas import Check, Column, DataFrameSchema

    test = partial(_pandas_test, in_memory_results(export, rows_from_pandas))
    return DataFrameSchema(
        **schema_arguments(Column, Check, export, test, native=True), unique_column_names=True
    )


def _pandas_test(
    verdicts: FrameResults, clause: Clause, first: bool, frame: pd.DataFrame
) -> bool | pd.Series[bool]:
    import pandas as pd

    results, rows = verdicts.results_of(frame, first=first)
    if has_passed(results[clause.path]):
        return True
    failing = find_violations(rows, clause) if clause.limit is None else None
    return (
        False
        if failing is None
        else pd.Series([not fails for fails in failing], index=frame.index, dtype=bool)
    )


def _why_unsupported_in_polars(schema_object: SchemaObject, clause: Clause, kinds: CheckKinds) -> str | None:
    """Return the reason why polars cannot test a clause, or None: it has no maps, and memory rows no
    queries.
    """
    for prop, _ in columns(schema_object):
        path = prop.path()
        if prop.map is not None and (clause.path == path or clause.path.startswith(f"{path}.")):
            return "polars has no type for a map"
    return why_unanswerable(schema_object, clause, kinds)


def _polars_schema(export: Export) -> Any:
    """Return a polars schema whose row-level checks show the failing rows."""
    from pandera.polars import Check, Column, DataFrameSchema

    verdicts = in_memory_results(
        export, lambda frame, promised: rows_from_arrow(frame.collect().to_arrow(), promised)
    )
    return DataFrameSchema(
        **schema_arguments(Column, Check, export, partial(_polars_test, verdicts), native=True)
    )


def _polars_test(
    verdicts: FrameResults, clause: Clause, first: bool, data: PolarsData
) -> bool | pl.LazyFrame:
    import polars as pl

    results, rows = verdicts.results_of(data.lazyframe, first=first)
    if has_passed(results[clause.path]):
        return True
    has_nested = any(kind.is_nested() for kind in data.lazyframe.collect_schema().dtypes())
    failing = find_violations(rows, clause) if clause.limit is None and not has_nested else None
    if failing is None:
        # pandera cannot show the rows of a frame with nested columns either.
        # Returning False makes pandera 0.35 mix flags and strings in one column of its failure cases.
        raise FrameBroken(results[clause.path].message)
    return pl.LazyFrame({"kept": [not fails for fails in failing]})


def _pyspark_schema(export: Export) -> Any:
    """Return a Spark schema that checks all clauses in the passes of `dq check`; see
    `frame.pandera.errors`.
    """
    from pandera.pyspark import Check, Column, DataFrameSchema

    def measure_frame(frame: DataFrame) -> MeasuredFrame:
        report = check(Request(export.contract, frame, export.schema_object.name))
        return {result.clause: result for result in report.results}, None

    return DataFrameSchema(
        **schema_arguments(Column, Check, export, partial(_pyspark_test, FrameResults(measure_frame)))
    )


def _pyspark_test(verdicts: FrameResults, clause: Clause, first: bool, frame: DataFrame) -> bool:
    results, _ = verdicts.results_of(frame, first=first)
    return has_passed(results[clause.path])


BACKENDS: dict[str, tuple[WhyUnsupported, Callable[[Export], Any]]] = {
    "pandas": (why_unanswerable, _pandas_schema),
    "polars": (_why_unsupported_in_polars, _polars_schema),
    # Spark answers every clause of one frame.
    "pyspark": (lambda _schema_object, _clause, _kinds: None, _pyspark_schema),
}
