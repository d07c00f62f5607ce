"""What a source says of its tables, whatever kind of source it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from dq.contracts.shared.outcome import UsageError
from dq.contracts.types import DataType

Said = Mapping[str, object]
"""Keys of ODCS with their values, which are what YAML has: mappings, lists, texts, numbers."""

MOST_FIELDS = 10_000
"""A schema that names parts of itself again and again can unfold into more than there is room for."""


@dataclass(frozen=True, slots=True)
class FoundColumn:
    """A column as its source spells it.

    `required`: the source itself sees to it that no row is without a value. `evidence` says from what the
    type was guessed; "" where the source declares it. `said` are further keys of ODCS with their values, by
    where they stand: "" for the column itself, `city` and `lines[].sku` for what is inside, `*` for the
    values of a map and `^` for its keys. `unseen` are the places, in the same words, whose type is a guess
    from no value.
    """

    name: str
    type: DataType
    comment: str = ""
    required: bool = False
    evidence: str = ""
    said: Mapping[str, Said] = field(default_factory=dict)
    unseen: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class SourceSays:
    """What a source says beside its tables: top keys of ODCS with their values, and what it says more."""

    said: Said = field(default_factory=dict)
    lost: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FoundTable:
    """A table. `partitions` are the keys in the order of the folders; `keys` are the primary key's columns.

    `location` and `format` are "" where the source does not say. `reader` are terms of the server's `csv`.
    `lost` tells, a sentence each, what the source says and a contract cannot. `said` are further keys of the
    object, `levels` its service levels, both as ODCS has them; `whole` is the same for all tables of a
    source.
    """

    name: str
    columns: tuple[FoundColumn, ...]
    partitions: tuple[FoundColumn, ...] = ()
    location: str = ""
    format: str = ""
    description: str = ""
    keys: tuple[str, ...] = ()
    reader: tuple[tuple[str, object], ...] = ()
    lost: tuple[str, ...] = ()
    said: Said = field(default_factory=dict)
    levels: tuple[Said, ...] = ()
    whole: SourceSays = field(default_factory=SourceSays)

    @property
    def column(self) -> str:
        """The name in the data, as an object of a contract has it."""
        return str(self.said.get("physicalName", self.name))


@dataclass(frozen=True, slots=True)
class ImportKind:
    """One file on the shelf `kinds/`: a kind of source, and how its tables are read.

    `read` takes the source as the user names it. It raises UsageError for what is no such source, and
    Unreadable for one that cannot be read.
    """

    id: str
    summary: str
    read: Callable[[str], list[FoundTable]]


@dataclass(slots=True)
class Unfolding:
    """How many fields a schema has unfolded into so far."""

    source: str
    fields: int = 0

    def step(self) -> None:
        """Counts one more. Raises UsageError when it is one too many."""
        self.fields += 1
        if self.fields > MOST_FIELDS:
            raise UsageError(
                f"{self.source} unfolds into more than {MOST_FIELDS:,} fields.",
                "Describe what refers to itself, or is repeated so often, as text.",
            )
