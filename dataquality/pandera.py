"""A contract's object as a pandera schema for pandas, polars or Spark, and what such a schema leaves out."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dq.contracts.install import install_command
from dq.contracts.model import Contract, Property, SchemaObject
from dq.contracts.outcome import CheckResult, MissingTool, Status, Unreadable, UsageError, nearest
from dq.contracts.types import DataType, physical_type, row_type
from dq.contracts.yaml.parse import read
from dq.dataquality.answers.memory import broken, measure, unanswerable
from dq.dataquality.answers.rows import Rows, of_arrow, of_pandas
from dq.dataquality.check import check, evaluate
from dq.dataquality.checks import built_in
from dq.dataquality.clauses.clause import Clause, Extent, ForeignKey, NoResult, Unit
from dq.dataquality.clauses.coverage import Selected, State, asked_of, select
from dq.dataquality.clauses.kind import Shelf, asked_by
from dq.dataquality.clauses.metric_rule import measured_by
from dq.dataquality.model.column import columns
from dq.dataquality.model.predicate import FLOATS, Compare, In, Length, Not
from dq.dataquality.model.predicate import Path as ColumnPath
from dq.dataquality.model.run_context import NOWHEN
from dq.dataquality.report import Violated
from dq.dataquality.request import Request, pick
from dq.dataquality.sql_values import logical

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    from pandera.polars import PolarsData
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A clause that the schema does not test, and why."""

    clause: str
    property: str
    says: str
    reason: str
    at: str


@dataclass(frozen=True, slots=True)
class ExportedColumn:
    """What pandera itself tests of a column: that it is there, by its exact name, and that it has no NULL."""

    name: str
    nullable: bool
    type: str
    title: str | None
    description: str | None


@dataclass(frozen=True, slots=True)
class Export:
    """What goes into a schema: columns, and the clauses that are checks of it."""

    contract: Contract
    one: SchemaObject
    columns: tuple[ExportedColumn, ...]
    clauses: tuple[Clause, ...]
    kinds: Shelf
    left_out: tuple[LeftOut, ...]

    @property
    def metadata(self) -> dict[str, object]:
        """The schema's metadata: whose it is, and what it leaves out."""
        return {
            "dq": {
                "contract": self.contract.id,
                "version": self.contract.version,
                "object": self.one.name,
                "left_out": self.left_out,
            }
        }


def schema(contract: Contract | Path | str, object_name: str | None = None, backend: str = "pyspark") -> Any:
    """A pandera `DataFrameSchema` for one object of the contract, with one check per clause.

    `contract` is a path, a text of YAML, or one already read; `object_name` may be left out when it has one
    object. A check is called as its clause's path in the contract, and gives what `dq check` gives; a clause
    of a milder severity than error warns. What the schema cannot test is in its metadata, see `left_out`.

    Raises UsageError for an unknown object or backend, and MissingTool where pandera or the backend's
    library is not installed.
    """
    if backend not in BACKENDS:
        hint = nearest(backend, list(BACKENDS)) or ", ".join(BACKENDS)
        raise UsageError(f"there is no backend {backend!r}.", f"Did you mean {hint}?")
    unable, made = BACKENDS[backend]
    known = read(contract)
    exported = export(known, pick(known, object_name), unable, floats_hide_nan=backend == "polars")
    try:
        return made(exported)
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing in ("", "dq"):
            raise
        install = "pip install polars" if missing == "polars" else install_command("spark")
        raise MissingTool(
            f"A schema for {backend} needs {missing}, which is not installed.", install
        ) from error


def left_out(made: Any) -> tuple[LeftOut, ...]:
    """What a schema that `schema` made does not test, and why, in the order of the contract."""
    found: tuple[LeftOut, ...] = made.metadata["dq"]["left_out"]
    return found


Unable = Callable[[SchemaObject, Clause, Shelf], str | None]
"""Why a backend cannot test a clause, or None when it can."""


def export(contract: Contract, one: SchemaObject, unable: Unable, *, floats_hide_nan: bool = False) -> Export:
    """The columns and checks of a schema; with `floats_hide_nan`, pandera takes NaN in floats for NULL."""
    kinds = built_in()
    selected = select(contract, one, kinds, why_not=lambda clause: untestable(one, clause, kinds, unable))
    columns = tuple(_columns(one, floats_hide_nan=floats_hide_nan))
    native = {column.name for column in columns if not column.nullable}
    return Export(
        contract,
        one,
        columns,
        tuple(clause for clause in selected.clauses if not _native(clause, native)),
        kinds,
        tuple(_left_out(selected)),
    )


def untestable(one: SchemaObject, clause: Clause, kinds: Shelf, unable: Unable) -> str | None:
    """Why one frame by itself cannot show whether a clause is kept, or None when it can."""
    if clause.refused:
        return clause.refused
    if isinstance(clause.ask, ForeignKey):
        return "it looks keys up in another object, and a schema sees one frame"
    if clause.extent.window is not None:
        return _OF_RUNS["latency"]
    if clause.check == "row_count" and clause.limit and clause.limit.unit is Unit.PERCENT:
        return _OF_RUNS["row_count_anomaly"]
    asked = measured_by(clause)
    if asked is not None and asked.terms.against is not None:
        return _OF_RUNS["row_count_anomaly"]
    return _OF_RUNS.get(clause.check) or unable(one, clause, kinds)


# What is judged by the time of a run or by the runs before it.
_OF_RUNS = {
    "latency": "it needs the time of a run, and a schema sees one frame",
    "retention": "it needs the time of a run, and a schema sees one frame",
    "row_count_anomaly": "it needs the runs before, and a schema sees one frame",
}


def _native(clause: Clause, native: set[str]) -> bool:
    """Whether pandera's own `nullable=False` says all of the clause."""
    nulls = clause.check == "required" or (clause.check == "primary_key" and not clause.keys)
    return nulls and clause.property in native


def _columns(one: SchemaObject, *, floats_hide_nan: bool) -> Iterator[ExportedColumn]:
    for prop in one.properties:
        required = bool(prop.required) or prop in one.primary_key()
        hidden = floats_hide_nan and _may_float(prop)
        promised = physical_type(prop)
        yield ExportedColumn(
            prop.column,
            not required or hidden,
            str(promised or logical(prop) or "any type"),
            prop.business_name,
            prop.description,
        )


def _may_float(prop: Property) -> bool:
    promised = physical_type(prop)
    return promised.name in FLOATS if promised else logical(prop) in ("number", "")


def _left_out(selected: Selected) -> Iterator[LeftOut]:
    """What stays untested: what dq itself does not enforce, and what this backend cannot."""
    listed: set[str] = set()
    for account in selected.accounts:
        reason = account.reason
        if account.state is State.ENFORCED and reason == "dq watch":
            reason = "it is about deliveries, which 'dq watch' judges"
        elif account.state is not State.NOT_EVALUATED:
            continue
        listed.add(account.path)
        yield LeftOut(account.path, account.property, account.clause, reason, str(account.at))
    # A clause may be a part of what an account speaks of.
    for clause in selected.untested:
        stated = clause.ask
        if isinstance(stated, NoResult) and not (stated.proven or listed.intersection(clause.paths)):
            yield LeftOut(clause.path, clause.property, clause.check, stated.reason, str(clause.at))


def unaskable(_one: SchemaObject, clause: Clause, kinds: Shelf) -> str | None:
    """Why rows in memory cannot answer a clause, or None."""
    reasons = (unanswerable(metric) for metric in asked_by(clause, kinds))
    return next((reason for reason in reasons if reason), None)


Results = Mapping[str, CheckResult]
Measured = tuple[Results, Any]
"""The results by clause, and what a backend keeps to show the rows."""


class NotMeasured(Unreadable):
    """A clause could not be measured on this frame: neither kept nor broken."""


class FrameBroken(Violated):
    """A clause about the whole of a frame is broken."""


class Verdicts:
    """Remembers the last frame that was measured, because pandera runs one check after the other.

    A frame may be changed between two validations: the first check of a schema always measures anew.
    """

    def __init__(self, measured: Callable[[Any], Measured]) -> None:
        self._measured = measured
        self._last: tuple[Callable[[], Any], Measured] | None = None

    def of(self, frame: Any, *, first: bool) -> Measured:
        """The results of this frame."""
        if first or self._last is None or self._last[0]() is not frame:
            self._last = weakref.ref(frame), self._measured(frame)
        return self._last[1]


def kept(result: CheckResult) -> bool:
    """Whether a clause is kept. Raises NotMeasured, with the reason, for one without an answer."""
    if result.status is Status.ERROR:
        raise NotMeasured(result.message)
    return result.status is not Status.FAIL


def in_memory(export: Export, rows_of: Callable[[Any, DataType], Rows]) -> Verdicts:
    """The results of clauses on rows in memory, judged as those of Spark are, and the rows."""
    promised, kinds = row_type(export.one), export.kinds

    def measured(frame: Any) -> Measured:
        rows = rows_of(frame, promised)
        asked = asked_of(rows.schema, export.clauses, NOWHEN)
        return evaluate(asked, kinds, partial(measure, rows)), rows

    return Verdicts(measured)


def parts(
    column: Callable[..., Any],
    check: Callable[..., Any],
    export: Export,
    test: Callable[[Clause, bool, Any], Any],
    *,
    native: bool = False,
) -> dict[str, Any]:
    """What a schema of any backend is made of, from its own Column and Check.

    With `native`, clauses that pandera has a check for are checks of its own on their column, which it can
    write down (`to_yaml`) and whose failure cases name the values. `test` is asked for each of the others
    with whether it is the first of the schema, and with the frame.
    """
    whole = {column.name for column in export.columns if column.type in _WHOLE}
    own = {
        clause.path: _built_in_check(check, export, clause, *said)
        for clause in export.clauses
        if native and (said := _built_in(clause, clause.property in whole))
    }
    others = [clause for clause in export.clauses if clause.path not in own]
    return {
        "columns": {
            one.name: column(
                nullable=one.nullable,
                title=one.title,
                description=one.description,
                metadata={"type": one.type},
                checks=[
                    own[clause.path]
                    for clause in export.clauses
                    if clause.property == one.name and clause.path in own
                ],
            )
            for one in export.columns
        },
        "checks": [
            _check(check, export, clause, partial(test, clause, at == 0)) for at, clause in enumerate(others)
        ],
        "name": export.one.name,
        "description": export.one.description,
        "metadata": export.metadata,
    }


# A comparison of values that break a clause -> pandera's check of those that keep it.
_BOUNDS = {
    "<": "greater_than_or_equal_to",
    "<=": "greater_than",
    ">": "less_than_or_equal_to",
    ">=": "less_than",
}
_WHOLE = ("tinyint", "smallint", "int", "bigint", "integer")
_LENGTHS = {"<": "min_value", ">": "max_value"}


def _built_in(clause: Clause, whole: bool) -> tuple[str, dict[str, object]] | None:
    """Pandera's check that means the same as a clause, and its arguments; None where there is none.

    Lists of texts, lengths of texts, and of a column of whole numbers lists and bounds have one. Floats have
    none, as pandera takes NaN for NULL; nor do decimals, whose bounds Arrow compares in 38 digits.
    """
    if clause.limit is not None or clause.extent != Extent():
        return None
    match clause.breaks:
        case Not(In(ColumnPath((_,)), values)) if _texts(values) or (whole and all(map(_fits, values))):
            return "isin", {"allowed_values": [*values]}
        case Compare(ColumnPath((_,)), operator, bound) if whole and operator in _BOUNDS and _fits(bound):
            return _BOUNDS[operator], {"max_value" if operator.startswith(">") else "min_value": bound}
        case Compare(Length(ColumnPath((_,))), operator, int(length)) if operator in _LENGTHS:
            return "str_length", {_LENGTHS[operator]: length}
    return None


def _texts(values: tuple[object, ...]) -> bool:
    return all(isinstance(value, str) for value in values)


def _fits(value: object) -> bool:
    """Whether a value is a whole number that a column of them can hold."""
    return type(value) is int and -(2**63) <= value < 2**63


def _built_in_check(
    check: Callable[..., Any], export: Export, clause: Clause, name: str, arguments: dict[str, object]
) -> Any:
    return getattr(check, name)(**arguments, **_words(export, clause), ignore_na=True)


def _check(check: Callable[..., Any], export: Export, clause: Clause, function: Callable[[Any], Any]) -> Any:
    return check(function, **_words(export, clause), ignore_na=False)


def _words(export: Export, clause: Clause) -> dict[str, Any]:
    """What a check says of itself: called as its clause's path, a warning where the clause is no more."""
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
    """A check of single rows shows which rows break it."""
    from pandera.pandas import Check, Column, DataFrameSchema

    test = partial(_pandas_test, in_memory(export, of_pandas))
    return DataFrameSchema(**parts(Column, Check, export, test, native=True), unique_column_names=True)


def _pandas_test(
    verdicts: Verdicts, clause: Clause, first: bool, frame: pd.DataFrame
) -> bool | pd.Series[bool]:
    import pandas as pd

    results, rows = verdicts.of(frame, first=first)
    if kept(results[clause.path]):
        return True
    found = broken(rows, clause) if clause.limit is None else None
    return False if found is None else pd.Series([not one for one in found], index=frame.index, dtype=bool)


def _unable_in_polars(one: SchemaObject, clause: Clause, kinds: Shelf) -> str | None:
    """Why polars cannot test a clause, or None: it has no maps, and rows in memory answer no queries."""
    for prop, _ in columns(one):
        path = prop.path()
        if prop.map is not None and (clause.path == path or clause.path.startswith(f"{path}.")):
            return "polars has no type for a map"
    return unaskable(one, clause, kinds)


def _polars_schema(export: Export) -> Any:
    """A check of single rows shows which rows break it."""
    from pandera.polars import Check, Column, DataFrameSchema

    verdicts = in_memory(export, lambda frame, promised: of_arrow(frame.collect().to_arrow(), promised))
    return DataFrameSchema(**parts(Column, Check, export, partial(_polars_test, verdicts), native=True))


def _polars_test(verdicts: Verdicts, clause: Clause, first: bool, data: PolarsData) -> bool | pl.LazyFrame:
    import polars as pl

    results, rows = verdicts.of(data.lazyframe, first=first)
    if kept(results[clause.path]):
        return True
    nested = any(kind.is_nested() for kind in data.lazyframe.collect_schema().dtypes())
    found = broken(rows, clause) if clause.limit is None and not nested else None
    if found is None:
        # Nor can it show the rows of a frame with nested columns.
        # A bare False makes pandera 0.35 mix flags and texts in one column of its list of failures.
        raise FrameBroken(results[clause.path].message)
    return pl.LazyFrame({"kept": [not one for one in found]})


def _pyspark_schema(export: Export) -> Any:
    """All clauses in the few passes that `dq check` takes; errors are in `frame.pandera.errors`."""
    from pandera.pyspark import Check, Column, DataFrameSchema

    def measured(frame: DataFrame) -> Measured:
        report = check(Request(export.contract, frame, export.one.name))
        return {result.clause: result for result in report.results}, None

    return DataFrameSchema(**parts(Column, Check, export, partial(_pyspark_test, Verdicts(measured))))


def _pyspark_test(verdicts: Verdicts, clause: Clause, first: bool, frame: DataFrame) -> bool:
    results, _ = verdicts.of(frame, first=first)
    return kept(results[clause.path])


BACKENDS: dict[str, tuple[Unable, Callable[[Export], Any]]] = {
    "pandas": (unaskable, _pandas_schema),
    "polars": (_unable_in_polars, _polars_schema),
    # Spark answers every clause of one frame.
    "pyspark": (lambda _one, _clause, _kinds: None, _pyspark_schema),
}
