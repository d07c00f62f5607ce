"""A catalog as dq writes to it, its tables as they are, and how they differ from their contracts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Generic, Protocol, TypeVar

from dq.contracts.outcome import DqError
from dq.contracts.types import STRUCTURES, profile
from dq.registry.table import LIFECYCLE, OPEN_FORMATS, OWNED_KEYS, RETIRED, Key, TableColumn, TableSpec
from dq.store.engine import Store

# The words of a plan: what differs in a table, how grave that is, and what is to be done.

StepT = TypeVar("StepT", covariant=True)


class Grade(StrEnum):
    """What a change can do to those who read the table, mildest first."""

    METADATA = "metadata"
    ADDITIVE = "additive"
    BREAKING = "breaking"
    DESTRUCTIVE = "destructive"

    @property
    def rank(self) -> int:
        return list(Grade).index(self)


class ActionKind(StrEnum):
    """What a plan says about one table."""

    CREATE = "create"
    UPDATE = "update"
    NOOP = "no-op"
    ADOPT = "adopt"  # it stands there and is nobody's; we take it over
    DRIFT = "drift"  # someone else changed what is ours; we put it back
    CONFLICT = "conflict"  # it is not ours to touch
    ORPHAN = "orphan"  # ours, and no contract wants it any more
    HELD = "held"  # ours, no contract in force wants it, and it stays all the same
    WAIT = "wait"  # its own writer has to create it first


class ChangedField(StrEnum):
    """The part of a table that a change is about."""

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
    """One difference between the live table and the wanted one.

    `name` is the column or parameter, else "". `before` is the live value, None for what is missing;
    `after` likewise. `drift`: someone else made the live value. `kept`: it is shown and left alone.
    `rule` is what `dq diff` calls the same change, where it was asked.
    """

    field: ChangedField
    name: str
    before: str | None
    after: str | None
    grade: Grade
    drift: bool = False
    kept: bool = False
    rule: str = ""


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why a catalog cannot make what a plan wants of a column, or of an object for "", and how to mend it."""

    column: str
    why: str
    mend: str


SchemaJudge = Callable[[TableSpec, TableSpec], Mapping[str, tuple[Grade, str]]]
"""What becomes of the columns of a live table when it is made the wanted one: grades by column, and by "" for
their order, each with the rule of `dq diff` that says so."""


@dataclass(frozen=True, slots=True)
class LiveTable:
    """A table as a catalog has it. `version` is the catalog's own, and changes with every write.

    `updated` is when that was, with its zone, where the catalog knows.
    """

    spec: TableSpec
    version: str
    updated: datetime | None = None


@dataclass(frozen=True, slots=True)
class Action:
    """What is to be done with one table.

    `before` is the table that the plan saw, `after` the one to make: None, when nothing is created or
    when the table is to be removed. `wanted` is what the contract says. `note` says why, for a reader.
    `obstacles` are what made it a conflict, where the catalog cannot do it.
    """

    kind: ActionKind
    key: Key
    changes: tuple[TableChange, ...] = ()
    before: LiveTable | None = None
    after: TableSpec | None = None
    wanted: TableSpec | None = None
    note: str = ""
    obstacles: tuple[Obstacle, ...] = ()

    @property
    def writes(self) -> bool:
        """Whether applying it would write anything."""
        if self.kind in (ActionKind.NOOP, ActionKind.CONFLICT, ActionKind.WAIT, ActionKind.HELD):
            return False
        return self.kind in (ActionKind.CREATE, ActionKind.ORPHAN) or any(
            not change.kept for change in self.changes
        )

    @property
    def fingerprint(self) -> str:
        """The same for actions that do the same to the same state of a table: 32 hexadecimal digits."""
        seen = self.before.version if self.before else ""
        made = json.dumps(self.after.as_json(), sort_keys=True) if self.after else ""
        return hashlib.sha256(f"{self.kind} {self.key} {seen} {made}".encode()).hexdigest()[:32]

    @property
    def grade(self) -> Grade:
        """The gravest of its changes."""
        if self.kind in (ActionKind.CREATE, ActionKind.ORPHAN):
            return Grade.ADDITIVE if self.kind is ActionKind.CREATE else Grade.DESTRUCTIVE
        grades = [change.grade for change in self.changes if not change.kept]
        return max(grades, key=lambda grade: grade.rank, default=Grade.METADATA)


@dataclass(frozen=True, slots=True)
class CatalogPlan:
    """What would be done, in the order in which it would be.

    `ours` counts the live tables of the registry, where all of it was planned. `forgotten` are tables that
    are as they should be, and that the store does not remember.
    """

    actions: tuple[Action, ...]
    ours: int = 0
    forgotten: frozenset[Key] = frozenset()

    @property
    def conflicts(self) -> tuple[Action, ...]:
        return tuple(action for action in self.actions if action.kind is ActionKind.CONFLICT)

    @property
    def orphans(self) -> tuple[Action, ...]:
        return tuple(action for action in self.actions if action.kind is ActionKind.ORPHAN)


class StepKind(StrEnum):
    """What a step beside the tables does, as `dq register --format json` names it: published values."""

    REGISTER_LOCATION = "RegisterLocation"
    DEFINE_TAG = "DefineTag"
    TAG_COLUMNS = "TagColumns"
    UNTAG_COLUMNS = "UntagColumns"
    MAKE_FILTER = "MakeFilter"
    DROP_FILTER = "DropFilter"
    GIVE = "Give"
    TAKE_BACK = "TakeBack"
    MAKE_SCHEDULE = "MakeSchedule"
    CHANGE_SCHEDULE = "ChangeSchedule"
    REMOVE_SCHEDULE = "RemoveSchedule"


class PlanStep(Protocol):
    """A change beside the tables; as text, it is a line of the plan."""

    @property
    def kind(self) -> StepKind: ...


@dataclass(frozen=True, slots=True)
class StepResult(Generic[StepT]):
    """What became of a step beside the tables; `error` says why it was not done, and how to mend it."""

    step: StepT
    error: DqError | None = None


# What differs between a live table and the wanted one, by three-way comparison with the last applied.

Formats = frozenset[str]

_TERMS = frozenset({"delimiter", "quote", "escape", "header", "encoding", "null_text"})
FORMAT_RULE = "server-format-changed"
"""What `dq diff` calls a change of how the files are written."""


REQUIRED_RULE = "required-removed"
"""What `dq diff` calls it when a column may be without a value."""


def is_positional(format: str) -> bool:
    """Whether readers find the columns of this format by their position, so that the order is the schema."""
    row = STRUCTURES.get(profile(format))
    return row is not None and not row.reorder


def breaking(live: TableSpec, wanted: TableSpec) -> dict[str, tuple[Grade, str]]:
    """The judge who knows no more than that a new column hurts nobody, and every other change may."""
    grades: dict[str, tuple[Grade, str]] = {}
    for column in (*live.columns, *wanted.columns):
        before, after = live.column(column.name), wanted.column(column.name)
        if before is None or after is None or before.type != after.type:
            grades[column.name] = (Grade.ADDITIVE if before is None else Grade.BREAKING), ""
    return grades


def changes(
    live: TableSpec,
    wanted: TableSpec,
    base: TableSpec | None,
    judge: SchemaJudge = breaking,
    own: Formats = frozenset(),
) -> tuple[TableChange, ...]:
    """How the live table must change to be the wanted one; `base` is what dq last applied, if known.

    `own` are the formats whose tables the catalog makes: of other lakehouse tables only our properties are
    ours.

    What is in neither `wanted` nor `base` belongs to someone else: parameters are not mentioned, columns
    are shown as kept. An empty text in the contract says nothing about a text that someone else wrote.
    """
    found: list[TableChange] = []
    if not only_properties(wanted, own):
        found += _shape(live, wanted, base)
        found += _reader(live, wanted, base)
        found += _columns(live, wanted, base, judge)
        found += _nulls(live, wanted, base)
        found += _comments(live, wanted, base)
    was = None if base is None else base.description
    if _says(wanted.description, live.description, was):
        drift = was is not None and was != live.description
        before, after = live.description or None, wanted.description or None
        found.append(TableChange(ChangedField.DESCRIPTION, "", before, after, Grade.METADATA, drift))
    found += _parameters(live, wanted, base)
    return tuple(found)


def merged(
    live: TableSpec, wanted: TableSpec, found: tuple[TableChange, ...], own: Formats = frozenset()
) -> TableSpec:
    """The table after the changes: the wanted one, with what belongs to others."""
    texts = {(change.field, change.name) for change in found}
    description = wanted.description if (ChangedField.DESCRIPTION, "") in texts else live.description
    parameters = dict(live.parameters)
    for change in found:
        if change.field is ChangedField.PARAMETER:
            parameters.pop(change.name, None)
            if change.after is not None:
                parameters[change.name] = change.after
    pairs = tuple(sorted(parameters.items()))
    if only_properties(wanted, own):
        return replace(live, description=description, parameters=pairs)
    gone = {change.name for change in found if change.field is ChangedField.COLUMN and change.after is None}
    kept = {change.name for change in found if change.kept}
    by_name = {column.name: column for column in wanted.columns}
    gone |= {column.name for column in wanted.partitions}
    names = [column.name for column in live.columns if column.name not in gone - kept]
    names += [column.name for column in wanted.columns if column.name not in names]
    if (ChangedField.ORDER, "") in texts:
        names = [column.name for column in wanted.columns] + [name for name in names if name not in by_name]
    columns = tuple(
        _text(by_name.get(name), live.column(name), (ChangedField.COMMENT, name) in texts) for name in names
    )
    # A key's comment is written with the table and then left alone: Hive cannot change it later.
    replaced = (ChangedField.PARTITIONS, "") in texts or (ChangedField.FORMAT, "") in texts
    return replace(
        wanted,
        location=wanted.location or live.location,
        columns=columns,
        partitions=wanted.partitions if replaced else live.partitions,
        description=description,
        parameters=pairs,
    )


def _text(wanted: TableColumn | None, live: TableColumn | None, changed: bool) -> TableColumn:
    """The wanted column, with the live comment where that is to stay."""
    if wanted is None or live is None:
        made = wanted or live
        assert made is not None
        return made
    return wanted if changed else replace(wanted, comment=live.comment)


def _shape(live: TableSpec, wanted: TableSpec, base: TableSpec | None) -> Iterator[TableChange]:
    """What makes it another table: place, format, partition keys."""
    pairs = (
        (ChangedField.LOCATION, live.location, wanted.location, base.location if base else None),
        (ChangedField.FORMAT, live.format, wanted.format, base.format if base else None),
        (ChangedField.PARTITIONS, _keys(live), _keys(wanted), _keys(base) if base else None),
    )
    for changed, is_, should, was in pairs:
        # A contract that leaves the place to the catalog agrees with any.
        if is_ != should and not (changed is ChangedField.LOCATION and not should):
            drift = was is not None and was != is_
            yield TableChange(changed, "", is_, should, Grade.DESTRUCTIVE, drift)


def _reader(live: TableSpec, wanted: TableSpec, base: TableSpec | None) -> Iterator[TableChange]:
    """How texts are read. What only the catalog's own words for the same terms are harms nobody."""
    if live.format != wanted.format:
        return
    is_, should = dict(live.reader), dict(wanted.reader)
    was = dict(base.reader) if base else None
    for name in sorted({*is_, *should}):
        before, after = is_.get(name), should.get(name)
        if before != after:
            term = name in _TERMS
            drift = was is not None and was.get(name) != before
            grade, rule = (Grade.BREAKING, FORMAT_RULE) if term else (Grade.METADATA, "")
            yield TableChange(ChangedField.READER, name, before, after, grade, drift, rule=rule)
    for column in wanted.columns:
        there = live.column(column.name)
        if there is not None and there.spelled != column.spelled:
            before, after = there.spelled or None, column.spelled or None
            yield TableChange(ChangedField.SPELLING, column.name, before, after, Grade.ADDITIVE)


def _keys(spec: TableSpec) -> str:
    return ", ".join(f"{column.name} {column.type}" for column in spec.partitions)


def only_properties(wanted: TableSpec, own: Formats) -> bool:
    """Whether only our properties are ours: others keep the table, or its contract is retired."""
    return wanted.format in OPEN_FORMATS - own or wanted.parameter(LIFECYCLE) == RETIRED


def _columns(
    live: TableSpec, wanted: TableSpec, base: TableSpec | None, judge: SchemaJudge
) -> Iterator[TableChange]:
    if [(column.name, column.type) for column in live.columns] == [
        (column.name, column.type) for column in wanted.columns
    ]:
        return
    grades = judge(live, wanted)
    unchanged = (Grade.METADATA, "")
    for column in wanted.columns:
        there = live.column(column.name)
        was = base.column(column.name) if base else None
        grade, rule = grades.get(column.name, unchanged)
        if there is None:
            yield TableChange(
                ChangedField.COLUMN, column.name, None, column.type, grade, was is not None, rule=rule
            )
        elif there.type != column.type:
            drift = was is not None and was.type != there.type
            yield TableChange(
                ChangedField.TYPE, column.name, there.type, column.type, grade, drift, rule=rule
            )
    keys = {column.name for column in wanted.partitions}
    others = set()
    for column in live.columns:
        if wanted.column(column.name) is None and column.name not in keys:
            ours = base is not None and base.column(column.name) is not None
            others |= set() if ours else {column.name}
            drift = base is not None and not ours
            grade, rule = grades.get(column.name, unchanged)
            yield TableChange(
                ChangedField.COLUMN, column.name, column.type, None, grade, drift, kept=not ours, rule=rule
            )
    if is_positional(wanted.format) and live.format == wanted.format:
        _, rule = grades.get("", unchanged)
        yield from _order(live, wanted, others, rule)


def _nulls(live: TableSpec, wanted: TableSpec, base: TableSpec | None) -> Iterator[TableChange]:
    """Columns that may be without a value, or may not. No table with rows can forbid it later."""
    for column in (*wanted.columns, *wanted.partitions):
        there = _named(live, column.name)
        if there is None or there.required == column.required:
            continue
        words = {True: "forbidden", False: "allowed"}
        before, after = words[there.required], words[column.required]
        last = None if base is None else _named(base, column.name)
        if column.required:
            grade, rule = Grade.METADATA, ""
        else:
            grade, rule = Grade.BREAKING, REQUIRED_RULE
        drift = last is not None and last.required != there.required and not column.required
        yield TableChange(
            ChangedField.NULLS, column.name, before, after, grade, drift, kept=column.required, rule=rule
        )


def _named(spec: TableSpec, name: str) -> TableColumn | None:
    return next((column for column in (*spec.columns, *spec.partitions) if column.name == name), None)


def _order(live: TableSpec, wanted: TableSpec, others: set[str], rule: str) -> Iterator[TableChange]:
    """New columns may only follow the ones that are there, also those of `others` that stay."""
    should = [column.name for column in wanted.columns]
    is_ = [column.name for column in live.columns if column.name in should or column.name in others]
    shared = min(len(is_), len(should))
    if is_[:shared] != should[:shared]:
        before, after = ", ".join(is_), ", ".join(should)
        yield TableChange(ChangedField.ORDER, "", before, after, Grade.BREAKING, rule=rule)


def _comments(live: TableSpec, wanted: TableSpec, base: TableSpec | None) -> Iterator[TableChange]:
    for column in wanted.columns:
        there = live.column(column.name)
        last = base.column(column.name) if base else None
        was = last.comment if last else None
        if there is not None and _says(column.comment, there.comment, was):
            drift = was is not None and was != there.comment
            before, after = there.comment or None, column.comment or None
            yield TableChange(ChangedField.COMMENT, column.name, before, after, Grade.METADATA, drift)


def _says(wanted: str, live: str, was: str | None) -> bool:
    """Whether a text must change: silence removes only what we wrote ourselves."""
    return wanted != live and (bool(wanted) or bool(was))


def _parameters(live: TableSpec, wanted: TableSpec, base: TableSpec | None) -> Iterator[TableChange]:
    is_, should = dict(live.parameters), dict(wanted.parameters)
    was = dict(base.parameters) if base else None
    owned = {key for key in is_.get(OWNED_KEYS, "").split(",") if key}
    for key in sorted({*should, *owned}):
        before, after = is_.get(key), should.get(key)
        if before != after:
            drift = was is not None and was.get(key) != before
            yield TableChange(ChangedField.PARAMETER, key, before, after, Grade.METADATA, drift)


Values = tuple[tuple[str, str], ...]
"""A partition as (key, value) pairs in the order of the table's keys."""


class StalePlan(DqError):
    """The table moved between plan and apply."""


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition and the folder that it lies in."""

    values: Values
    location: str


class Catalog(Protocol):
    """Tables and partitions in one catalog. Every method raises Unreadable when it does not answer."""

    @property
    def id(self) -> str:
        """Which catalog it is: what dq remembers of one is never taken for another's."""

    def vet(self, spec: TableSpec) -> None:
        """Raises UsageError, with all that is wrong, for a table that it would not take. Asks nobody."""

    @property
    def formats(self) -> frozenset[str]:
        """The formats that it can create a table of, and whose columns it keeps."""

    def read(self, database: str, name: str) -> LiveTable | None:
        """The table as it is now, folded; None when there is none."""

    def tables(self, database: str) -> list[LiveTable]:
        """Every table of the database by name, whoever made it; none when there is no database."""

    def obstacles(self, action: Action) -> Iterable[Obstacle]:
        """What it cannot do of an action that changes a table, whatever is allowed. Asks nobody."""

    def apply(self, action: Action) -> None:
        """Makes the table what `action.after` says; None there removes it from the catalog, never its files.

        Raises StalePlan, and writes nothing, when the table is no longer `action.before`.
        """

    def add_partition(self, database: str, name: str, values: Values, location: str) -> bool:
        """Adds the partition; False, and nothing is written, when it stands there already.

        Raises DqError when the table does not exist or the partition lies somewhere else.
        """

    def place_of(self, database: str, name: str, values: Values) -> str | None:
        """Where one partition lies, folded; None where there is none, or no such table."""

    def move_partition(self, database: str, name: str, values: Values, location: str) -> None:
        """Gives a partition that stands there another place. Raises DqError when it does not stand there."""

    def partitions(self, database: str, name: str) -> list[Partition]:
        """Every partition of the table, sorted by values."""


@dataclass(frozen=True, slots=True)
class CatalogSettings:
    """What a catalog may need to open. `session` makes or gives a Spark session.

    In AWS: `role_arn` is the role to be, `catalog_id` the account whose catalog it is; "" for one's own.
    `iceberg` are pyiceberg's properties of a REST catalog: `uri`, `warehouse`, credentials.
    """

    store: Store | None = None
    session: Callable[[], object] | None = None
    role_arn: str = ""
    catalog_id: str = ""
    iceberg: Mapping[str, str] = field(default_factory=dict, repr=False)  # it holds secrets


@dataclass(frozen=True, slots=True)
class CatalogKind:
    """One file on the shelf `catalogs/`: its id in the configuration, and how it is opened."""

    id: str
    open: Callable[[CatalogSettings], Catalog]


def stale(database: str, name: str) -> StalePlan:
    """The error for a table that moved."""
    return StalePlan(
        f"The plan is stale: {database}.{name} has changed since it was made.", "Run 'dq register' again."
    )


def no_table(database: str, name: str) -> DqError:
    """The error for a partition of a table that nobody registered."""
    return DqError(f"The catalog has no table {database}.{name}.", "Register it: dq register --apply.")


def moved_partition(database: str, name: str, values: Values, there: str, wanted: str) -> DqError:
    """The error for a partition that stands at another place than the one to add."""
    shown = "/".join(f"{key}={value}" for key, value in values)
    return DqError(
        f"Partition {shown} of {database}.{name} lies at {there}, not at {wanted}.",
        "Publish from that place, or drop the partition from the catalog first.",
    )


def no_partition(database: str, name: str, values: Values) -> DqError:
    """The error for a partition that is gone while it is to be changed."""
    shown = "/".join(f"{key}={value}" for key, value in values)
    return DqError(f"{database}.{name} has no partition {shown} any more.", "Publish again.")
