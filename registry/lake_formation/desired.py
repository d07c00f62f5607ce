"""The grants and tags that subscriptions and classifications ask for, and the steps to them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import ClassVar

from dq.contracts.model import Contract
from dq.contracts.subscriptions import Subscription, covered
from dq.registry.diff import StepKind
from dq.registry.table import CONTRACT, CONTRACT_VERSION, OBJECT, Key, TableSpec

# The words of a plan for Lake Formation: locations, tags and grants, each as one step.

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


# From subscriptions to the grants that they ask for, and from classifications to the tags of columns.


@dataclass(slots=True)
class WantedGrants:
    """What subscriptions ask for: columns and asking files by key, and the data filters by their names."""

    columns: dict[GrantKey, set[str]] = field(default_factory=dict)
    files: dict[GrantKey, set[str]] = field(default_factory=dict)
    filters: dict[str, DataFilter] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def add(self, key: GrantKey, columns: Iterable[str], file: str) -> None:
        """One more subscription that asks for these columns."""
        self.columns.setdefault(key, set()).update(columns)
        self.files.setdefault(key, set()).add(file)


def wanted_grants(
    subscriptions: Iterable[Subscription],
    contracts: Iterable[Contract],
    tables: Mapping[Key, TableSpec],
    today: date | None = None,
) -> WantedGrants:
    """The grants that the subscriptions ask for, on these tables; with a day, those that hold then.

    Several of one principal are added up. Columns are always named one by one, so that one that is added to
    the contract is given to nobody who has not asked for it. Who names neither account nor principal is
    given nothing.
    """
    made = WantedGrants()
    by_identity = {one.identity: one for one in contracts}
    by_object = {
        (spec.parameter(CONTRACT), spec.parameter(CONTRACT_VERSION), spec.parameter(OBJECT)): spec
        for spec in tables.values()
    }
    for one in subscriptions:
        contract = by_identity.get(one.identity)
        if contract is None or not (today is None or one.active(today)):
            continue
        if not one.reader:
            made.notes.append(f"{one.file} names no account: nothing is given to {one.consumer.team}.")
            continue
        for part in covered(one, contract):
            spec = by_object.get((contract.id, contract.version, part.object.name))
            if spec is not None and part.fields:
                # The whole column would show what nobody asked for and nobody approved.
                named = ", ".join(part.fields)
                said = f"only whole columns can be given, and {named} is a part of one."
                made.notes.append(f"{one.file}: {said}")
            columns = tuple(name.lower() for name in part.columns)
            if spec is None or not columns:
                continue
            if one.row_filter is None:
                made.add(GrantKey(*spec.key, one.reader), columns, one.file)
            else:
                expression = _expression(one.row_filter, ended=today is None)
                if expression is None:
                    made.notes.append(f"{one.file}: its row filter cannot be applied, so nothing is given.")
                    continue
                made_filter = _data_filter(spec.key, one.reader, expression, columns)
                made.filters[made_filter.name] = made_filter
                made.add(GrantKey(*spec.key, one.reader, made_filter.name), (FILTERED,), one.file)
    return made


def _expression(text: str, *, ended: bool) -> str | None:
    """The filter as Lake Formation is to read it, written anew: nothing of the stranger's text is sent.

    None where it is refused; of what has ended, the text by which an earlier dq named its filter.
    """
    # The parser of SQL takes time to start, and few subscriptions filter rows.
    from dq.contracts.sql.guard import Guarded, guarded_filter

    guarded = guarded_filter(text)
    if isinstance(guarded, Guarded):
        return guarded.sql
    return text.strip() if ended else None


def _data_filter(on: Key, reader: str, expression: str, columns: tuple[str, ...]) -> DataFilter:
    told = "\0".join((*on, reader, expression, *columns))
    return DataFilter(*on, f"dq_{hashlib.sha256(told.encode()).hexdigest()[:16]}", expression, columns)


def wanted_tags(contracts: Iterable[Contract], tables: Mapping[Key, TableSpec]) -> dict[Key, dict[str, str]]:
    """The classification of each classified column, in lower case, by table."""
    found: dict[Key, dict[str, str]] = {}
    by_version = {(one.id, one.version): one for one in contracts}
    for key, spec in tables.items():
        contract = by_version.get((spec.parameter(CONTRACT), spec.parameter(CONTRACT_VERSION)))
        one = contract.object(spec.parameter(OBJECT)) if contract is not None else None
        if one is None:
            continue
        found[key] = {
            prop.column.lower(): " ".join(prop.classification.lower().split())
            for prop in one.properties
            if prop.classification and prop.classification.strip()
        }
    return found
