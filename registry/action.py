"""The words of a plan: what differs in a table, how grave that is, and what is to be done."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Generic, Protocol, TypeVar

from dq.contracts.shared.errors import DqError
from dq.registry.table import Key, TableSpec

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
