"""From an object's clauses to a pandera schema, and the list of what such a schema cannot hold."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dq.contracts.model import Contract, Property, SchemaObject
from dq.contracts.shared.install import install_command
from dq.contracts.shared.outcome import MissingTool, UsageError
from dq.contracts.shared.wording import nearest
from dq.contracts.types import physical_type
from dq.contracts.yaml.parse import read
from dq.dataquality.checks import built_in
from dq.dataquality.clauses.clause import Clause, ForeignKey, NoResult, Unit
from dq.dataquality.clauses.coverage import State
from dq.dataquality.clauses.kind import Shelf, asked_by
from dq.dataquality.clauses.metric_rule import measured_by
from dq.dataquality.clauses.preparation import Selected, select
from dq.dataquality.model.predicate import FLOATS
from dq.dataquality.request import pick
from dq.dataquality.sql.values import logical

# Backend -> the module of ours that fills it.
BACKENDS = {"pandas": "_pandas", "polars": "_polars", "pyspark": "_pyspark"}


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
    try:
        module = importlib.import_module(f"{__package__}.{BACKENDS[backend]}")
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing in ("", "dq"):
            raise
        install = "pip install polars" if missing == "polars" else install_command("spark")
        raise MissingTool(
            f"A schema for {backend} needs {missing}, which is not installed.", install
        ) from error
    known = read(contract)
    hidden = backend == "polars"
    found = export(known, pick(known, object_name), module.unable, floats_hide_nan=hidden)
    return module.schema(found)


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
        if isinstance(stated, NoResult) and not (stated.proven or listed & {clause.path, *clause.covers}):
            yield LeftOut(clause.path, clause.property, clause.check, stated.reason, str(clause.at))


def unaskable(_one: SchemaObject, clause: Clause, kinds: Shelf) -> str | None:
    """Why rows in memory cannot answer a clause, or None."""
    from dq.dataquality.answers.memory import unanswerable

    reasons = (unanswerable(metric) for metric in asked_by(clause, kinds))
    return next((reason for reason in reasons if reason), None)
