"""The catalog interface, live tables, and their differences from the contracts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Generic, Protocol, TypeVar

from dq.contracts.outcome import DqError
from dq.contracts.types import SCHEMA_EVOLUTION, format_profile
from dq.registry.table import (
    LIFECYCLE,
    OPEN_FORMATS,
    OWNED_KEYS,
    RETIRED,
    Key,
    TableColumn,
    TableSpec,
    digest,
    without_delivery_state,
)
from dq.store.engine import Store

# Parts of a plan: changes of tables, their impact, and actions.

StepT = TypeVar("StepT", covariant=True)


class Impact(StrEnum):
    """Impact of a change on readers of the table, mildest first."""

    METADATA = "metadata"
    ADDITIVE = "additive"
    BREAKING = "breaking"
    DESTRUCTIVE = "destructive"

    @property
    def rank(self) -> int:
        return list(Impact).index(self)


class ActionKind(StrEnum):
    """Kind of a plan's action on one table."""

    CREATE = "create"
    UPDATE = "update"
    NOOP = "no-op"
    ADOPT = "adopt"  # it exists unmanaged; dq takes it over
    DRIFT = "drift"  # someone else changed a managed table; dq restores it
    CONFLICT = "conflict"  # dq must not change it
    ORPHAN = "orphan"  # managed, without a contract
    RETAINED = "held"  # managed, without a contract in force, but kept
    WAIT = "wait"  # its own writer has to create it first


class ChangedField(StrEnum):
    """The part of a table that a change affects."""

    COLUMN = "column"
    TYPE = "type of"
    COMMENT = "comment of"
    ORDER = "column order"
    PARTITIONS = "partition keys"
    LOCATION = "location"
    FORMAT = "format"
    READER = "reader's"
    NULLS = "nulls of"
    SPELLING = "spelling of"
    DESCRIPTION = "description"
    PARAMETER = "parameter"


@dataclass(frozen=True, slots=True)
class TableChange:
    """One difference between the live table and the desired one.

    `name` is the column or parameter, or "". `before` is the live value, `after` the desired one; None if
    missing. `drift`: someone else has changed the live value. `ignored`: shown, but not applied. `rule` is
    the rule of `dq diff` for the same change, or "".
    """

    field: ChangedField
    name: str
    before: str | None
    after: str | None
    impact: Impact
    drift: bool = False
    ignored: bool = False
    rule: str = ""


@dataclass(frozen=True, slots=True)
class Blocker:
    """Reason why a catalog cannot change a column, or an object if `column` is "", and how to fix it."""

    column: str
    reason: str
    hint: str


ImpactAssessor = Callable[[TableSpec, TableSpec], Mapping[str, tuple[Impact, str]]]
"""Assesses the changes of columns from a live table to the desired one: impacts by column, and under "" of
their order, each with the rule of `dq diff`."""


@dataclass(frozen=True, slots=True)
class LiveTable:
    """A table in a catalog. `version` is the catalog's own, and changes with every write.

    `updated_at` is the aware instant of the last write, or None if the catalog does not know it. `owner` is
    the owner by the catalog, or "". `metadata_location` is the current metadata file of an Iceberg table, or
    "".
    """

    spec: TableSpec
    version: str
    updated_at: datetime | None = None
    owner: str = ""
    metadata_location: str = ""


@dataclass(frozen=True, slots=True)
class Action:
    """Action on one table.

    `before` is the table at planning time, `after` the target: None if nothing is created or the table is
    removed. `desired` is the contract's table. `note` is the reason, for a reader. `blockers` are the reasons
    of a conflict if the catalog cannot make the change.
    """

    kind: ActionKind
    key: Key
    changes: tuple[TableChange, ...] = ()
    before: LiveTable | None = None
    after: TableSpec | None = None
    desired: TableSpec | None = None
    note: str = ""
    blockers: tuple[Blocker, ...] = ()

    @property
    def writes(self) -> bool:
        """True if applying it would write anything."""
        if self.kind in (ActionKind.NOOP, ActionKind.CONFLICT, ActionKind.WAIT, ActionKind.RETAINED):
            return False
        return self.kind in (ActionKind.CREATE, ActionKind.ORPHAN) or any(
            not change.ignored for change in self.changes
        )

    @property
    def fingerprint(self) -> str:
        """Digest of the action and the state of its table: 32 hexadecimal digits.

        The version of a table in which the watcher writes the delivery state changes at any time, so its
        other content identifies its state.
        """
        state, target = "", ""
        if self.before is not None:
            plain = without_delivery_state(self.before.spec)
            state = self.before.version if plain == self.before.spec else digest(plain)
        if self.after is not None:
            target = json.dumps(without_delivery_state(self.after).as_json(), sort_keys=True)
        return hashlib.sha256(f"{self.kind} {self.key} {state} {target}".encode()).hexdigest()[:32]

    @property
    def impact(self) -> Impact:
        """Highest impact of its changes."""
        if self.kind in (ActionKind.CREATE, ActionKind.ORPHAN):
            return Impact.ADDITIVE if self.kind is ActionKind.CREATE else Impact.DESTRUCTIVE
        impacts = [change.impact for change in self.changes if not change.ignored]
        return max(impacts, key=lambda impact: impact.rank, default=Impact.METADATA)


@dataclass(frozen=True, slots=True)
class CatalogPlan:
    """The planned actions in order.

    `managed_count` is the number of live tables of the registry, if the complete registry was planned.
    `unrecorded` are unchanged tables without an applied state in the store.
    """

    actions: tuple[Action, ...]
    managed_count: int = 0
    unrecorded: frozenset[Key] = frozenset()

    @property
    def conflicts(self) -> tuple[Action, ...]:
        return tuple(action for action in self.actions if action.kind is ActionKind.CONFLICT)

    @property
    def orphans(self) -> tuple[Action, ...]:
        return tuple(action for action in self.actions if action.kind is ActionKind.ORPHAN)


class StepKind(StrEnum):
    """Kind of a step outside of the tables, as in `dq register --format json`: published values."""

    REGISTER_LOCATION = "RegisterLocation"
    DEFINE_TAG = "DefineTag"
    TAG_COLUMNS = "TagColumns"
    UNTAG_COLUMNS = "UntagColumns"
    CREATE_FILTER = "MakeFilter"
    DROP_FILTER = "DropFilter"
    GRANT_SELECT = "Give"
    REVOKE_SELECT = "TakeBack"
    CREATE_SCHEDULE = "MakeSchedule"
    UPDATE_SCHEDULE = "ChangeSchedule"
    DELETE_SCHEDULE = "RemoveSchedule"


class PlanStep(Protocol):
    """A change outside of the tables; its text is a line of the plan."""

    @property
    def kind(self) -> StepKind: ...


@dataclass(frozen=True, slots=True)
class StepResult(Generic[StepT]):
    """Result of a step outside of the tables; `error` has the reason of a failure, and a hint."""

    step: StepT
    error: DqError | None = None


# Differences between a live table and the desired one, by three-way comparison with the last applied state.

Formats = frozenset[str]

_TERMS = frozenset({"delimiter", "quote", "escape", "header", "encoding", "null_text"})
FORMAT_RULE = "server-format-changed"
"""Rule of `dq diff` for a change of the file format options."""


REQUIRED_RULE = "required-removed"
"""Rule of `dq diff` for a column that becomes nullable."""


def is_positional(format: str) -> bool:
    """Return True if readers find columns of this format by position, so that their order matters."""
    row = SCHEMA_EVOLUTION.get(format_profile(format))
    return row is not None and not row.reorder


def assess_as_breaking(live: TableSpec, desired: TableSpec) -> dict[str, tuple[Impact, str]]:
    """Assess new columns as additive and every other change as breaking."""
    impacts: dict[str, tuple[Impact, str]] = {}
    for column in (*live.columns, *desired.columns):
        before, after = live.column(column.name), desired.column(column.name)
        if before is None or after is None or before.type != after.type:
            impacts[column.name] = (Impact.ADDITIVE if before is None else Impact.BREAKING), ""
    return impacts


def compare_tables(
    live: TableSpec,
    desired: TableSpec,
    base: TableSpec | None,
    assess_impact: ImpactAssessor = assess_as_breaking,
    managed_formats: Formats = frozenset(),
) -> tuple[TableChange, ...]:
    """Return the changes from the live table to the desired one; `base` is the last applied state, if known.

    `managed_formats` are the formats whose tables the catalog creates: of other lakehouse tables dq manages
    only its properties.

    Parts in neither `desired` nor `base` belong to someone else: parameters are not reported, columns are
    reported as ignored. An empty text in the contract does not remove a text that someone else wrote.
    """
    result: list[TableChange] = []
    if not manages_only_properties(desired, managed_formats):
        result += _shape(live, desired, base)
        result += _reader(live, desired, base)
        result += _columns(live, desired, base, assess_impact)
        result += _nulls(live, desired, base)
        result += _comments(live, desired, base)
    previous = None if base is None else base.description
    if _must_change(desired.description, live.description, previous):
        drift = previous is not None and previous != live.description
        before, after = live.description or None, desired.description or None
        result.append(TableChange(ChangedField.DESCRIPTION, "", before, after, Impact.METADATA, drift))
    result += _parameters(live, desired, base)
    return tuple(result)


def merged(
    live: TableSpec,
    desired: TableSpec,
    table_changes: tuple[TableChange, ...],
    managed_formats: Formats = frozenset(),
) -> TableSpec:
    """Return the table after the changes: the desired one, with the parts that belong to others."""
    changed = {(change.field, change.name) for change in table_changes}
    description = desired.description if (ChangedField.DESCRIPTION, "") in changed else live.description
    parameters = dict(live.parameters)
    for change in table_changes:
        if change.field is ChangedField.PARAMETER:
            parameters.pop(change.name, None)
            if change.after is not None:
                parameters[change.name] = change.after
    pairs = tuple(sorted(parameters.items()))
    if manages_only_properties(desired, managed_formats):
        return replace(live, description=description, parameters=pairs)
    removed = {
        change.name
        for change in table_changes
        if change.field is ChangedField.COLUMN and change.after is None
    }
    ignored = {change.name for change in table_changes if change.ignored}
    by_name = {column.name: column for column in desired.columns}
    removed |= {column.name for column in desired.partitions}
    names = [column.name for column in live.columns if column.name not in removed - ignored]
    names += [column.name for column in desired.columns if column.name not in names]
    if (ChangedField.ORDER, "") in changed:
        names = [column.name for column in desired.columns] + [name for name in names if name not in by_name]
    columns = tuple(
        _merged_column(by_name.get(name), live.column(name), (ChangedField.COMMENT, name) in changed)
        for name in names
    )
    # Hive cannot change a key's comment after the table was created.
    replaced = (ChangedField.PARTITIONS, "") in changed or (ChangedField.FORMAT, "") in changed
    return replace(
        desired,
        location=desired.location or live.location,
        columns=columns,
        partitions=desired.partitions if replaced else live.partitions,
        description=description,
        parameters=pairs,
    )


def _merged_column(desired: TableColumn | None, live: TableColumn | None, changed: bool) -> TableColumn:
    """Return the desired column, with the live comment unless it is changed."""
    if desired is None or live is None:
        column = desired or live
        assert column is not None
        return column
    return desired if changed else replace(desired, comment=live.comment)


def _shape(live: TableSpec, desired: TableSpec, base: TableSpec | None) -> Iterator[TableChange]:
    """Yield changes of location, format and partition keys."""
    pairs = (
        (ChangedField.LOCATION, live.location, desired.location, base.location if base else None),
        (ChangedField.FORMAT, live.format, desired.format, base.format if base else None),
        (ChangedField.PARTITIONS, _keys(live), _keys(desired), _keys(base) if base else None),
    )
    for changed_field, actual, expected, applied in pairs:
        # Without a location in the contract, every location is accepted.
        if actual != expected and not (changed_field is ChangedField.LOCATION and not expected):
            drift = applied is not None and applied != actual
            yield TableChange(changed_field, "", actual, expected, Impact.DESTRUCTIVE, drift)


def _reader(live: TableSpec, desired: TableSpec, base: TableSpec | None) -> Iterator[TableChange]:
    """Yield changes of reader options. Differences in the catalog's own parameters are metadata only."""
    if live.format != desired.format:
        return
    actual, expected = dict(live.reader), dict(desired.reader)
    applied = dict(base.reader) if base else None
    for name in sorted({*actual, *expected}):
        before, after = actual.get(name), expected.get(name)
        if before != after:
            is_term = name in _TERMS
            drift = applied is not None and applied.get(name) != before
            impact, rule = (Impact.BREAKING, FORMAT_RULE) if is_term else (Impact.METADATA, "")
            yield TableChange(ChangedField.READER, name, before, after, impact, drift, rule=rule)
    for column in desired.columns:
        current = live.column(column.name)
        if current is not None and current.spelled != column.spelled:
            before, after = current.spelled or None, column.spelled or None
            yield TableChange(ChangedField.SPELLING, column.name, before, after, Impact.ADDITIVE)


def _keys(spec: TableSpec) -> str:
    return ", ".join(f"{column.name} {column.type}" for column in spec.partitions)


def manages_only_properties(desired: TableSpec, managed_formats: Formats) -> bool:
    """Return True if dq manages only its properties: the table has another writer or a retired contract."""
    return desired.format in OPEN_FORMATS - managed_formats or desired.parameter(LIFECYCLE) == RETIRED


def _columns(
    live: TableSpec, desired: TableSpec, base: TableSpec | None, assess_impact: ImpactAssessor
) -> Iterator[TableChange]:
    if [(column.name, column.type) for column in live.columns] == [
        (column.name, column.type) for column in desired.columns
    ]:
        return
    impacts = assess_impact(live, desired)
    unchanged = (Impact.METADATA, "")
    for column in desired.columns:
        current = live.column(column.name)
        applied = base.column(column.name) if base else None
        impact, rule = impacts.get(column.name, unchanged)
        if current is None:
            yield TableChange(
                ChangedField.COLUMN, column.name, None, column.type, impact, applied is not None, rule=rule
            )
        elif current.type != column.type:
            drift = applied is not None and applied.type != current.type
            yield TableChange(
                ChangedField.TYPE, column.name, current.type, column.type, impact, drift, rule=rule
            )
    keys = {column.name for column in desired.partitions}
    foreign = set()
    for column in live.columns:
        if desired.column(column.name) is None and column.name not in keys:
            managed = base is not None and base.column(column.name) is not None
            foreign |= set() if managed else {column.name}
            drift = base is not None and not managed
            impact, rule = impacts.get(column.name, unchanged)
            yield TableChange(
                ChangedField.COLUMN,
                column.name,
                column.type,
                None,
                impact,
                drift,
                ignored=not managed,
                rule=rule,
            )
    if is_positional(desired.format) and live.format == desired.format:
        _, rule = impacts.get("", unchanged)
        yield from _order(live, desired, foreign, rule)


def _nulls(live: TableSpec, desired: TableSpec, base: TableSpec | None) -> Iterator[TableChange]:
    """Yield changes of nullability. A table with rows cannot forbid NULL later, so that is ignored."""
    for column in (*desired.columns, *desired.partitions):
        current = _named(live, column.name)
        if current is None or current.required == column.required:
            continue
        words = {True: "forbidden", False: "allowed"}
        before, after = words[current.required], words[column.required]
        applied = None if base is None else _named(base, column.name)
        if column.required:
            impact, rule = Impact.METADATA, ""
        else:
            impact, rule = Impact.BREAKING, REQUIRED_RULE
        drift = applied is not None and applied.required != current.required and not column.required
        yield TableChange(
            ChangedField.NULLS, column.name, before, after, impact, drift, ignored=column.required, rule=rule
        )


def _named(spec: TableSpec, name: str) -> TableColumn | None:
    return next((column for column in (*spec.columns, *spec.partitions) if column.name == name), None)


def _order(live: TableSpec, desired: TableSpec, foreign: set[str], rule: str) -> Iterator[TableChange]:
    """Yield a change unless new columns follow the existing ones, including the `foreign` columns."""
    expected = [column.name for column in desired.columns]
    actual = [column.name for column in live.columns if column.name in expected or column.name in foreign]
    shared = min(len(actual), len(expected))
    if actual[:shared] != expected[:shared]:
        before, after = ", ".join(actual), ", ".join(expected)
        yield TableChange(ChangedField.ORDER, "", before, after, Impact.BREAKING, rule=rule)


def _comments(live: TableSpec, desired: TableSpec, base: TableSpec | None) -> Iterator[TableChange]:
    for column in desired.columns:
        current = live.column(column.name)
        applied = base.column(column.name) if base else None
        previous = applied.comment if applied else None
        if current is not None and _must_change(column.comment, current.comment, previous):
            drift = previous is not None and previous != current.comment
            before, after = current.comment or None, column.comment or None
            yield TableChange(ChangedField.COMMENT, column.name, before, after, Impact.METADATA, drift)


def _must_change(desired: str, live: str, previous: str | None) -> bool:
    """Return True if a text must change: an empty one removes only a text that dq wrote."""
    return desired != live and (bool(desired) or bool(previous))


def _parameters(live: TableSpec, desired: TableSpec, base: TableSpec | None) -> Iterator[TableChange]:
    actual, expected = dict(live.parameters), dict(desired.parameters)
    applied = dict(base.parameters) if base else None
    owned = {key for key in actual.get(OWNED_KEYS, "").split(",") if key}
    for key in sorted({*expected, *owned}):
        before, after = actual.get(key), expected.get(key)
        if before != after:
            drift = applied is not None and applied.get(key) != before
            yield TableChange(ChangedField.PARAMETER, key, before, after, Impact.METADATA, drift)


Values = tuple[tuple[str, str], ...]
"""A partition as (key, value) pairs in the order of the table's keys."""


class StalePlan(DqError):
    """The table changed between plan and apply."""


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition and its folder. `registered_at` (UTC) is None if the catalog does not keep it."""

    values: Values
    location: str
    registered_at: datetime | None = field(default=None, compare=False)


class Catalog(Protocol):
    """Tables and partitions in one catalog. Every method raises ReadError when it does not answer."""

    @property
    def id(self) -> str:
        """Id of the catalog; applied state is stored under it."""

    def vet(self, spec: TableSpec) -> None:
        """Raise UsageError, with all problems, for a table that it would reject. Makes no request."""

    @property
    def formats(self) -> frozenset[str]:
        """Formats of tables that it can create and whose columns it manages."""

    def read(self, database: str, name: str) -> LiveTable | None:
        """Return the live table, folded, or None if it does not exist."""

    def databases(self) -> list[str]:
        """Return the names of all databases, in order."""

    def tables(self, database: str) -> list[LiveTable]:
        """Return all tables of the database by name; empty if the database does not exist.

        Raises ReadError also if one of them cannot be read; `table_names` has its name.
        """

    def table_names(self, database: str) -> list[str]:
        """Return the names of all tables of the database, in order; empty if it does not exist."""

    def blockers(self, action: Action) -> Iterable[Blocker]:
        """Return the parts of a change that it cannot make, even if allowed. Makes no request."""

    def apply(self, action: Action) -> None:
        """Create or change the table to `action.after`; None drops it from the catalog, but never its files.

        Raises StalePlan, without writing, if the table is no longer `action.before`.
        """

    def add_partition(self, database: str, name: str, values: Values, location: str) -> bool:
        """Add the partition. Return False, without writing, if it exists.

        Raises DqError if the table does not exist or the partition has another location.
        """

    def add_partitions(
        self, database: str, name: str, partitions: Sequence[Partition]
    ) -> list[bool | DqError]:
        """Add partitions in batches. Return a result for each: as `add_partition`, or its error.

        Raises DqError if the table does not exist.
        """

    def partition_location(self, database: str, name: str, values: Values) -> str | None:
        """Return the folded location of a partition, or None if partition or table do not exist."""

    def move_partition(self, database: str, name: str, values: Values, location: str) -> None:
        """Change the location of a partition. Raises DqError if it does not exist."""

    def partitions(self, database: str, name: str) -> list[Partition]:
        """Return all partitions of the table, sorted by values."""


@dataclass(frozen=True, slots=True)
class CatalogSettings:
    """Settings to open a catalog. `session` returns a Spark session.

    In AWS, `role_arn` is the role to assume, `catalog_id` the account of the catalog; "" for the own ones.
    `iceberg` are pyiceberg's properties of a REST catalog: `uri`, `warehouse`, credentials.
    """

    store: Store | None = None
    session: Callable[[], object] | None = None
    role_arn: str = ""
    catalog_id: str = ""
    iceberg: Mapping[str, str] = field(default_factory=dict, repr=False)  # it holds secrets


@dataclass(frozen=True, slots=True)
class CatalogKind:
    """A plug-in in `catalogs/`: its id in the configuration, and the function that opens it.

    `is_case_sensitive`: its databases can differ in case only; otherwise their names are in lower case.
    """

    id: str
    open: Callable[[CatalogSettings], Catalog]
    is_case_sensitive: bool = False


def stale_plan(database: str, name: str) -> StalePlan:
    """Return the error for a table that changed since the plan."""
    return StalePlan(
        f"The plan is stale: {database}.{name} has changed since it was made.", "Run 'dq register' again."
    )


def no_table(database: str, name: str) -> DqError:
    """Return the error for a partition of a table that is not registered."""
    return DqError(f"The catalog has no table {database}.{name}.", "Register it: dq register --apply.")


def moved_partition(database: str, name: str, values: Values, current: str, expected: str) -> DqError:
    """Return the error for an existing partition with another location than the one to add."""
    partition = "/".join(f"{key}={value}" for key, value in values)
    return DqError(
        f"Partition {partition} of {database}.{name} is at {current}, not at {expected}.",
        "Publish from that place, or drop the partition from the catalog first.",
    )


def no_partition(database: str, name: str, values: Values) -> DqError:
    """Return the error for a partition that was removed before it could be changed."""
    partition = "/".join(f"{key}={value}" for key, value in values)
    return DqError(f"{database}.{name} no longer has the partition {partition}.", "Publish again.")
