"""Tables as their sources describe them, and types guessed from values where a source declares none."""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from dq.contracts.outcome import UsageError, counted
from dq.contracts.types import MAX_PRECISION, DataType, NotAType, parse

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
class SchemaReader:
    """Reads the types of a schema, and what it says of each part of the column that is read now.

    `said` are keys of ODCS by the place in the column, as a `FoundColumn` has them; `lost` is what a contract
    cannot say. `fields` counts what the schema of `source` has unfolded into so far.
    """

    source: str
    lost: list[str] = field(default_factory=list)
    said: dict[str, dict[str, object]] = field(default_factory=dict)
    fields: int = 0

    def step(self) -> None:
        """Counts one more field. Raises UsageError when it is one too many."""
        self.fields += 1
        if self.fields > MOST_FIELDS:
            raise UsageError(
                f"{self.source} unfolds into more than {MOST_FIELDS:,} fields.",
                "Describe what refers to itself, or is repeated so often, as text.",
            )

    def say(self, path: str, said: Said) -> None:
        """Keeps what the schema says of the part of the column at this path, besides what it said before."""
        place = path.lstrip(".")
        if said:
            self.said[place] = {**self.said.get(place, {}), **said}

    def describe(self, path: str, comment: str, *, required: bool) -> None:
        """The same of its description, "" for none, and of whether every row has a value there."""
        self.say(path, {key: one for key, one in (("description", comment), ("required", required)) if one})


GUESS = "a guess"
"""How each evidence of a guess begins."""

STRING, BIGINT, DOUBLE = DataType("string"), DataType("bigint"), DataType("double")
BOOLEAN, DATE, TIMESTAMP = DataType("boolean"), DataType("date"), DataType("timestamp")

DOUBT = "in doubt"
"""How each evidence begins of a declared type that may hold less, or more, than the source means."""

# A zero in front is part of a code and not of a number: `007` stays a text.
_WHOLE = re.compile(r"-?(0|[1-9][0-9]*)", re.ASCII)
_POINT = re.compile(r"-?(0|[1-9][0-9]*)\.([0-9]+)", re.ASCII)
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?", re.ASCII)
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_MOMENT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,9})?)?(Z|[+-][0-9]{2}:?[0-9]{2})?",
    re.ASCII,
)
_NULLS = frozenset({"NA", "N/A", "n/a", "NULL", "null", "None", r"\N", "-"})
_BIGINT_DIGITS = 18
# More digits after the point than money has are a measurement.
_MOST_SCALE = 6


def foreign(written: str) -> tuple[DataType, str, Said]:
    """A type of a table that Spark has no counterpart of, what has to be said of it, and its keys of ODCS.

    The contract names the table's own type: a promise of texts would be one that no reader keeps.
    """
    try:
        kind = parse(written)
    except NotAType:
        kind = STRING
    logical = "time" if written == "time" else "string"
    said = {"logicalType": logical, "physicalType": written}
    return kind, f"declared as {written}, which Spark does not have", said


def declared(kind: DataType | None, written: str, notes: Iterable[str]) -> tuple[DataType, str]:
    """A type that a source declares and Spark may not have, and what is in doubt of it."""
    if kind is None:
        return STRING, f"declared as {written}, which Spark does not have"
    doubts = "; ".join(dict.fromkeys(notes))
    return kind, f"{DOUBT}, declared as {written}: {doubts}" if doubts else ""


def _exists(day: str) -> bool:
    try:
        dt.date.fromisoformat(day)
    except ValueError:
        return False
    return True


_WORDS: dict[str, tuple[Callable[[str], object], str]] = {
    "boolean": (lambda text: text in ("true", "false"), "true or false"),
    "whole": (_WHOLE.fullmatch, "whole numbers"),
    "number": (_NUMBER.fullmatch, "numbers"),
    "date": (lambda text: _DAY.fullmatch(text) and _exists(text), "dates"),
    "timestamp": (lambda text: _MOMENT.fullmatch(text) and _exists(text[:10]), "instants"),
}


@dataclass(slots=True)
class TextGuess:
    """What all texts seen so far could be; an empty one and None are no value.

    `nulls` are words that often stand for no value, which is decided in the end.
    """

    numbers: bool = True
    seen: int = 0
    empty: int = 0
    nulls: Counter[str] = field(default_factory=Counter)
    _left: dict[str, Callable[[str], object]] = field(default_factory=dict)
    _scales: set[int] = field(default_factory=set)
    _digits: int = 0

    def __post_init__(self) -> None:
        wanted = _WORDS if self.numbers else ("date", "timestamp")
        self._left = {name: _WORDS[name][0] for name in wanted}

    @staticmethod
    def is_word(text: str) -> bool:
        """Whether a text can be nothing but a text."""
        return not any(fits(text) for fits, _ in _WORDS.values())

    def add(self, text: str | None) -> None:
        """Takes one value in."""
        if not text:
            self.empty += 1
            return
        if text in _NULLS and self.numbers:
            self.nulls[text] += 1
            return
        self.seen += 1
        for name in [name for name, fits in self._left.items() if not fits(text)]:
            del self._left[name]
        if "number" in self._left:
            point = _POINT.fullmatch(text)
            self._scales.add(len(point[2]) if point else 0 if "e" not in text.lower() else -1)
            self._digits = max(self._digits, len(text.lstrip("-").partition(".")[0]))

    @property
    def is_more(self) -> bool:
        """Whether the values, but for words that may be none, are more than texts."""
        return bool(self.seen and self._left)

    def made(self, null: str = "") -> tuple[DataType, str]:
        """The narrowest type that holds every value but `null`, and on what that stands."""
        words = self.nulls.total() - self.nulls[null]
        if not self.seen + words:
            return STRING, f"{GUESS}: no value was seen"
        kind, word = (STRING, "they are texts") if words else self._narrowest()
        some = f", {self.empty:,} empty" if self.empty else ""
        some += f", {self.nulls[null]:,} {null}" if self.nulls[null] else ""
        return kind, f"{GUESS} from {counted(self.seen + words, 'value')}{some}: {word}"

    def _narrowest(self) -> tuple[DataType, str]:
        if "whole" in self._left and self._digits <= MAX_PRECISION:
            fits = self._digits <= _BIGINT_DIGITS
            return (BIGINT if fits else DataType("decimal", (MAX_PRECISION, 0))), "all are whole numbers"
        if "number" in self._left:
            scale = next(iter(self._scales)) if len(self._scales) == 1 else 0
            if 0 < scale <= _MOST_SCALE and self._digits + scale <= MAX_PRECISION:
                precision = max(18, self._digits + scale)
                kind = DataType("decimal", (precision, scale))
                return kind, f"all have {counted(scale, 'digit')} after the point"
            return DOUBLE, "all are numbers"
        for name, kind in (("boolean", BOOLEAN), ("date", DATE), ("timestamp", TIMESTAMP)):
            if name in self._left:
                return kind, f"all are {_WORDS[name][1]}"
        return STRING, "they are texts"


@dataclass(slots=True)
class ValueGuess:
    """What all values of JSON seen so far could be, at any depth; null is no value."""

    kinds: Counter[str] = field(default_factory=Counter)
    texts: TextGuess = field(default_factory=lambda: TextGuess(numbers=False))
    fields: dict[str, ValueGuess] = field(default_factory=dict)
    items: ValueGuess | None = None
    wide: bool = False

    def add(self, value: object) -> None:
        """Takes one value in."""
        if value is None:
            return
        self.kinds[_kind(value)] += 1
        if isinstance(value, str):
            self.texts.add(value)
        elif isinstance(value, dict):
            self.add_fields(value)
        elif isinstance(value, list):
            self.items = self.items or ValueGuess()
            for one in value:
                self.items.add(one)
        elif isinstance(value, int) and len(str(abs(value))) > _BIGINT_DIGITS:
            self.wide = True

    def add_fields(self, value: dict[str, object]) -> None:
        """Takes the fields of an object in."""
        for name, inner in value.items():
            self.fields.setdefault(name, ValueGuess()).add(inner)

    def unseen(self, path: str = "") -> Iterator[str]:
        """The places, from here on, for which there was no value: `` itself, `who.city`, `lines[].sku`."""
        if not self.kinds:
            yield path.lstrip(".")
        for name, inner in self.fields.items():
            yield from inner.unseen(f"{path}.{name}")
        if "list" in self.kinds:
            yield from (self.items or ValueGuess()).unseen(f"{path}[]")

    def made(self) -> tuple[DataType, str]:
        """The type that holds every value, and on what that stands."""
        kinds = set(self.kinds)
        count = f"{GUESS} from {counted(self.kinds.total(), 'value')}: "
        if not kinds:
            return STRING, f"{GUESS}: no value was seen"
        if kinds == {"text"}:
            kind, _ = self.texts.made()
            word = {"date": "all are dates", "timestamp": "all are instants"}.get(kind.name, "they are texts")
            return kind, count + word
        if kinds == {"whole number"}:
            wide = DataType("decimal", (MAX_PRECISION, 0))
            return (wide if self.wide else BIGINT), f"{count}all are whole numbers"
        if kinds <= {"whole number", "number"}:
            return DOUBLE, f"{count}all are numbers"
        if kinds == {"true or false"}:
            return BOOLEAN, f"{count}all are true or false"
        if kinds == {"list"}:
            item, _ = self.items.made() if self.items else (STRING, "")
            return DataType("array", (), (item,)), f"{count}all are lists"
        if kinds == {"object"} and self.fields and _apart(self.fields):
            parts = tuple(inner.made()[0] for inner in self.fields.values())
            return DataType("struct", (), parts, tuple(self.fields)), f"{count}all are objects"
        return STRING, f"{count}they are of several kinds ({', '.join(sorted(kinds))})"


def _apart(names: Iterable[str]) -> bool:
    """Whether a struct can have these fields: plain names, and none twice but for case."""
    known = list(names)
    plain = all(re.fullmatch(r"[A-Za-z_0-9$\-]+", name) for name in known)
    return plain and len({name.lower() for name in known}) == len(known)


def _kind(value: object) -> str:
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int):
        return "whole number"
    if isinstance(value, float):
        return "number"
    return "text" if isinstance(value, str) else "list" if isinstance(value, list) else "object"
