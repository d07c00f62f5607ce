"""The words of a plan for Lake Formation: locations, tags and grants, each as one step."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from dq.registry.action import StepKind
from dq.registry.table import Key

FILTERED = "*"
"""In place of columns: a grant on a data filter, which names its columns itself."""


@dataclass(frozen=True, slots=True, order=True)
class GrantKey:
    """What a grant is about: the table, whom it lets read, and the data filter, or "" for none."""

    database: str
    table: str
    principal: str
    filter: str = ""

    @property
    def on(self) -> Key:
        return self.database, self.table

    def __str__(self) -> str:
        through = f" through {self.filter}" if self.filter else ""
        return f"{self.principal} on {self.database}.{self.table}{through}"


@dataclass(frozen=True, slots=True)
class DataFilter:
    """The rows and columns of a table that a grant on it lets see. Its name follows from both."""

    database: str
    table: str
    name: str
    expression: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RegisterLocation:
    """Gives a prefix in S3 to Lake Formation, which reads it with the role."""

    kind: ClassVar = StepKind.REGISTER_LOCATION
    location: str
    role: str

    def __str__(self) -> str:
        return f"+ location {self.location}, read with {self.role}"


@dataclass(frozen=True, slots=True)
class DefineTag:
    """Makes a tag with these values, or adds them to it."""

    kind: ClassVar = StepKind.DEFINE_TAG
    key: str
    values: tuple[str, ...]
    new: bool

    def __str__(self) -> str:
        return f"+ {'tag' if self.new else 'values of tag'} {self.key}: {', '.join(self.values)}"


@dataclass(frozen=True, slots=True)
class TagColumns:
    """Gives columns of a table a value of a tag, in place of the value that they had."""

    kind: ClassVar = StepKind.TAG_COLUMNS
    on: Key
    key: str
    value: str
    columns: tuple[str, ...]

    def __str__(self) -> str:
        return f"~ {'.'.join(self.on)}: {self.key}={self.value} on {', '.join(self.columns)}"


@dataclass(frozen=True, slots=True)
class UntagColumns:
    """Takes a value of a tag from columns."""

    kind: ClassVar = StepKind.UNTAG_COLUMNS
    on: Key
    key: str
    value: str
    columns: tuple[str, ...]

    def __str__(self) -> str:
        return f"- {'.'.join(self.on)}: {self.key}={self.value} off {', '.join(self.columns)}"


@dataclass(frozen=True, slots=True)
class MakeFilter:
    """Makes the filter behind a grant, which has it alone."""

    kind: ClassVar = StepKind.MAKE_FILTER
    filter: DataFilter

    def __str__(self) -> str:
        one = self.filter
        return f"+ filter {one.name} of {one.database}.{one.table}: {one.expression}"


@dataclass(frozen=True, slots=True)
class DropFilter:
    """Removes the filter behind a grant that was taken back."""

    kind: ClassVar = StepKind.DROP_FILTER
    filter: DataFilter
    key: GrantKey

    def __str__(self) -> str:
        return f"- filter {self.filter.name} of {self.filter.database}.{self.filter.table}"


@dataclass(frozen=True, slots=True)
class Give:
    """Lets a principal SELECT columns. `files` are the subscriptions that ask for it."""

    kind: ClassVar = StepKind.GIVE
    key: GrantKey
    columns: tuple[str, ...]
    files: tuple[str, ...]

    def __str__(self) -> str:
        return f"+ SELECT for {self.key}: {_named(self.columns)} ({', '.join(self.files)})"


@dataclass(frozen=True, slots=True)
class TakeBack:
    """Takes SELECT of columns from a principal, which dq gave it. `why` no subscription asks for it."""

    kind: ClassVar = StepKind.TAKE_BACK
    key: GrantKey
    columns: tuple[str, ...]
    why: str

    def __str__(self) -> str:
        return f"- SELECT for {self.key}: {_named(self.columns)} ({self.why})"


LakeStep = (
    RegisterLocation | DefineTag | TagColumns | UntagColumns | MakeFilter | DropFilter | Give | TakeBack
)


@dataclass(frozen=True, slots=True)
class LakePlan:
    """What would be done, in order, and what a reader has to know beside it.

    `spent` are notes of grants that are gone already: they are forgotten, and nothing is written for it.
    `asking` are the subscriptions that ask for each grant now.
    """

    steps: tuple[LakeStep, ...] = ()
    notes: tuple[str, ...] = ()
    spent: tuple[TakeBack, ...] = ()
    asking: tuple[tuple[GrantKey, frozenset[str]], ...] = ()


def _named(columns: Iterable[str]) -> str:
    return "what the filter shows" if tuple(columns) == (FILTERED,) else ", ".join(columns)
