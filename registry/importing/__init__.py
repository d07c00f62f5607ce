"""Imported tables and columns, and type inference for sources that declare no types."""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from dq.contracts.outcome import UsageError, pluralize
from dq.contracts.types import MAX_PRECISION, DataType, NotAType, parse

OdcsKeys = Mapping[str, object]
"""ODCS keys and their YAML values: mappings, lists, strings, numbers."""

MAX_FIELDS = 10_000
"""Maximum number of expanded fields: a schema that reuses its own parts can expand without bound."""


@dataclass(frozen=True, slots=True)
class ColumnValues:
    """Values of a column or of a part of it, with their type and its evidence.

    `kinds` are the logical types of the values that were read: object, array, string, number, integer or
    boolean; empty if all are NULL, and None if the source declares the type. `parts` are the values of fields
    by their names, of items under "[]", and of declared maps under "^" and "*". `is_text`: every value is
    stored as text, as in CSV and in names of folders.
    """

    kinds: frozenset[str] | None
    type: DataType
    evidence: str
    parts: Mapping[str, ColumnValues] = field(default_factory=dict)
    is_text: bool = False

    @classmethod
    def declared(cls, kind: DataType, evidence: str) -> ColumnValues:
        """Return the values of a declared type."""
        names = {"array": ("[]",), "map": ("^", "*")}.get(kind.name, kind.names)
        parts = zip(names, kind.parts, strict=True)
        return cls(None, kind, evidence, {name: cls.declared(part, evidence) for name, part in parts})

    @property
    def container(self) -> str:
        """Object or array if the values have parts, else ""."""
        if self.kinds is None:
            return {"struct": "object", "map": "object", "array": "array"}.get(self.type.name, "")
        return next(iter(self.kinds)) if self.kinds in ({"object"}, {"array"}) else ""


@dataclass(frozen=True, slots=True)
class ImportedColumn:
    """A column read from a source, with the source's spelling.

    `required` means that the source itself enforces a value in every row. `evidence` says what the type was
    inferred from ("" if the source declares it). `odcs_keys` are further ODCS keys by path: "" for the column
    itself, `city` and `lines[].sku` for nested fields, `*` for the values of a map and `^` for its keys.
    The type was inferred from `values`, which are None if the source declares it.
    """

    name: str
    type: DataType
    comment: str = ""
    required: bool = False
    evidence: str = ""
    odcs_keys: Mapping[str, OdcsKeys] = field(default_factory=dict)
    values: ColumnValues | None = None

    @classmethod
    def from_values(cls, name: str, values: ColumnValues) -> ImportedColumn:
        """Return the column of these values."""
        return cls(name, values.type, evidence=values.evidence, values=values)


@dataclass(frozen=True, slots=True)
class SourceMetadata:
    """Metadata of the source as a whole: top-level ODCS keys, and notes on what a contract cannot express."""

    odcs_keys: OdcsKeys = field(default_factory=dict)
    unsupported: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ImportedTable:
    """A table. `partitions` are the keys in folder order; `keys` are the columns of the primary key.

    `location` and `format` are "" if the source does not name them. `layout` is the template of the folders
    of partitions, "" for Hive's. `reader` are the options of the server's `csv` property. `unsupported` has
    one sentence for each thing that a contract cannot express. `odcs_keys` are further keys of the object and
    `service_levels` its service levels, both in ODCS form. `metadata` is the same for all tables of a source.
    `absence` says where a column was looked for that the table lacks, e.g. `not in the first 10,000 rows
    read`; "" if the source declares its columns.
    """

    name: str
    columns: tuple[ImportedColumn, ...]
    partitions: tuple[ImportedColumn, ...] = ()
    location: str = ""
    format: str = ""
    description: str = ""
    keys: tuple[str, ...] = ()
    reader: tuple[tuple[str, object], ...] = ()
    unsupported: tuple[str, ...] = ()
    odcs_keys: OdcsKeys = field(default_factory=dict)
    service_levels: tuple[OdcsKeys, ...] = ()
    metadata: SourceMetadata = field(default_factory=SourceMetadata)
    layout: str = ""
    absence: str = ""

    @property
    def physical_name(self) -> str:
        """Name of the table in the source (`physicalName`)."""
        return str(self.odcs_keys.get("physicalName", self.name))


@dataclass(frozen=True, slots=True)
class ImportKind:
    """A plug-in of `kinds/`: one kind of source and the function that reads its tables.

    `read` takes the source as the user names it, and with `takes_layout` also the layout of its folders, or
    None to guess it. It raises UsageError if the source is not of this kind, and ReadError if it cannot be
    read. `signs` are the endings of its files' names in lower case, and folders of its tables, which end in
    `/`. `read_files` reads the table of a `LakeFolder` whose files are listed already. It is None for
    documents, and for tables with a log.
    """

    id: str
    summary: str
    read: Callable[..., list[ImportedTable]]
    signs: tuple[str, ...] = ()
    takes_layout: bool = False
    read_files: Callable[..., ImportedTable] | None = None


@dataclass(slots=True)
class SchemaReader:
    """Reads the types of a schema and collects ODCS keys for the current column.

    `odcs_keys` are by path, as in `ImportedColumn`; `unsupported` is what a contract cannot express.
    `field_count` counts the fields that the schema of `source` has expanded into so far.
    """

    source: str
    unsupported: list[str] = field(default_factory=list)
    odcs_keys: dict[str, dict[str, object]] = field(default_factory=dict)
    field_count: int = 0

    def count_field(self) -> None:
        """Count one more field. Raises UsageError above MAX_FIELDS."""
        self.field_count += 1
        if self.field_count > MAX_FIELDS:
            raise UsageError(
                f"{self.source} expands to more than {MAX_FIELDS:,} fields.",
                "Describe recursive or often repeated parts as text.",
            )

    def add_keys(self, path: str, keys: OdcsKeys) -> None:
        """Add ODCS keys for the part of the column at this path."""
        key = path.lstrip(".")
        if keys:
            self.odcs_keys[key] = {**self.odcs_keys.get(key, {}), **keys}

    def describe(self, path: str, comment: str, *, required: bool) -> None:
        """Add the description ("" for none) and the required flag of the part at this path."""
        self.add_keys(
            path, {key: value for key, value in (("description", comment), ("required", required)) if value}
        )


GUESS = "a guess"
"""Prefix of the evidence of an inferred type."""

STRING, BIGINT, DOUBLE = DataType("string"), DataType("bigint"), DataType("double")
BOOLEAN, DATE, TIMESTAMP = DataType("boolean"), DataType("date"), DataType("timestamp")

DOUBT = "in doubt"
"""Prefix of the evidence of a declared type whose Spark type may be narrower or wider."""

# Leading zeros are part of a code, not of a number: `007` stays a string.
_INTEGER = re.compile(r"-?(0|[1-9][0-9]*)", re.ASCII)
_DECIMAL = re.compile(r"-?(0|[1-9][0-9]*)\.([0-9]+)", re.ASCII)
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?", re.ASCII)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_INSTANT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,9})?)?(Z|[+-][0-9]{2}:?[0-9]{2})?",
    re.ASCII,
)
NULL_WORDS = frozenset({"NA", "N/A", "n/a", "NULL", "null", "None", r"\N", "-"})
# Numbers as readers of text accept them, e.g. `007` and `.5`.
_ANY_INTEGER = re.compile(r"\s*[+-]?[0-9]+\s*", re.ASCII)
_ANY_NUMBER = re.compile(
    r"\s*[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|nan|inf(inity)?)\s*", re.ASCII | re.IGNORECASE
)
_BIGINT_DIGITS = 18
# Values with more decimal places are measurements and become doubles; amounts of money have fewer.
_MAX_SCALE = 6


def unsupported_type(type_name: str) -> tuple[DataType, str, OdcsKeys]:
    """Return the type, the evidence and the ODCS keys for a table type that Spark does not have.

    The contract names the table's own type, because readers do not see these columns as strings.
    """
    try:
        kind = parse(type_name)
    except NotAType:
        kind = STRING
    logical = "time" if type_name == "time" else "string"
    keys = {"logicalType": logical, "physicalType": type_name}
    return kind, f"declared as {type_name}, which Spark does not support", keys


def declared_type(kind: DataType | None, type_name: str, notes: Iterable[str]) -> tuple[DataType, str]:
    """Return the Spark type of a declared type, and the evidence if the two may differ."""
    if kind is None:
        return STRING, f"declared as {type_name}, which Spark does not support"
    doubts = "; ".join(dict.fromkeys(notes))
    return kind, f"{DOUBT}, declared as {type_name}: {doubts}" if doubts else ""


def _is_date(day: str) -> bool:
    try:
        dt.date.fromisoformat(day)
    except ValueError:
        return False
    return True


_TEXT_TYPES: dict[str, tuple[Callable[[str], object], str]] = {
    "boolean": (lambda text: text in ("true", "false"), "true or false"),
    "whole": (_INTEGER.fullmatch, "whole numbers"),
    "number": (_NUMBER.fullmatch, "numbers"),
    "date": (lambda text: _DATE.fullmatch(text) and _is_date(text), "dates"),
    "timestamp": (lambda text: _INSTANT.fullmatch(text) and _is_date(text[:10]), "instants"),
}


@dataclass(slots=True)
class TextTypeInference:
    """Infers a type from text values. Empty strings and None are not values.

    `nulls` counts words that often mean null; whether they do is decided in `infer`. `kinds` are the logical
    types of the other values, as readers of text accept them.
    """

    numbers: bool = True
    value_count: int = 0
    empty_count: int = 0
    nulls: Counter[str] = field(default_factory=Counter)
    kinds: set[str] = field(default_factory=set)
    _candidates: dict[str, Callable[[str], object]] = field(default_factory=dict)
    _scales: set[int] = field(default_factory=set)
    _digits: int = 0

    def __post_init__(self) -> None:
        names = _TEXT_TYPES if self.numbers else ("date", "timestamp")
        self._candidates = {name: _TEXT_TYPES[name][0] for name in names}

    @staticmethod
    def is_only_text(text: str) -> bool:
        """Return True if the text can only be a string."""
        return not any(fits(text) for fits, _ in _TEXT_TYPES.values())

    def add(self, text: str | None) -> None:
        """Takes one value in."""
        if not text:
            self.empty_count += 1
            return
        if text in NULL_WORDS and self.numbers:
            self.nulls[text] += 1
            return
        self.value_count += 1
        if self.numbers:
            self.kinds.add(_kind_of_text(text))
        for name in [name for name, fits in self._candidates.items() if not fits(text)]:
            del self._candidates[name]
        if "number" in self._candidates:
            point = _DECIMAL.fullmatch(text)
            self._scales.add(len(point[2]) if point else 0 if "e" not in text.lower() else -1)
            self._digits = max(self._digits, len(text.lstrip("-").partition(".")[0]))

    @property
    def has_narrower_type(self) -> bool:
        """True if the values, apart from possible null words, fit a type narrower than string."""
        return bool(self.value_count and self._candidates)

    def read_values(self, null: str = "") -> ColumnValues:
        """Return the kinds of all values except words for null, and what `infer` returns."""
        return ColumnValues(frozenset(self.kinds), *self.infer(null), is_text=True)

    def infer(self, null: str = "") -> tuple[DataType, str]:
        """Return the narrowest type of all values except `null`, and its evidence."""
        words = self.nulls.total() - self.nulls[null]
        if not self.value_count + words:
            return STRING, f"{GUESS}: no values found"
        kind, word = (STRING, "they are texts") if words else self._narrowest()
        skipped = f", {self.empty_count:,} empty" if self.empty_count else ""
        skipped += f", {self.nulls[null]:,} {null}" if self.nulls[null] else ""
        return kind, f"{GUESS} from {pluralize(self.value_count + words, 'value')}{skipped}: {word}"

    def _narrowest(self) -> tuple[DataType, str]:
        if "whole" in self._candidates and self._digits <= MAX_PRECISION:
            fits = self._digits <= _BIGINT_DIGITS
            return (BIGINT if fits else DataType("decimal", (MAX_PRECISION, 0))), "all are whole numbers"
        if "number" in self._candidates:
            scale = next(iter(self._scales)) if len(self._scales) == 1 else 0
            if 0 < scale <= _MAX_SCALE and self._digits + scale <= MAX_PRECISION:
                precision = max(18, self._digits + scale)
                kind = DataType("decimal", (precision, scale))
                return kind, f"all have {pluralize(scale, 'digit')} after the point"
            return DOUBLE, "all are numbers"
        for name, kind in (("boolean", BOOLEAN), ("date", DATE), ("timestamp", TIMESTAMP)):
            if name in self._candidates:
                return kind, f"all are {_TEXT_TYPES[name][1]}"
        return STRING, "they are texts"


@dataclass(slots=True)
class JsonTypeInference:
    """Infers a type from JSON values at any depth. Null is not a value."""

    kinds: Counter[str] = field(default_factory=Counter)
    texts: TextTypeInference = field(default_factory=lambda: TextTypeInference(numbers=False))
    fields: dict[str, JsonTypeInference] = field(default_factory=dict)
    items: JsonTypeInference | None = None
    exceeds_bigint: bool = False

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
            self.items = self.items or JsonTypeInference()
            for item in value:
                self.items.add(item)
        elif isinstance(value, int) and len(str(abs(value))) > _BIGINT_DIGITS:
            self.exceeds_bigint = True

    def add_fields(self, value: dict[str, object]) -> None:
        """Add the fields of an object."""
        for name, inner in value.items():
            self.fields.setdefault(name, JsonTypeInference()).add(inner)

    def read_values(self) -> ColumnValues:
        """Return the kinds of all values at each path, with the inferred types and their evidence."""
        parts = {name: inner.read_values() for name, inner in self.fields.items()}
        if self.items is not None:
            parts["[]"] = self.items.read_values()
        return ColumnValues(frozenset(_LOGICAL[kind] for kind in self.kinds), *self._infer(parts), parts)

    def _infer(self, parts: Mapping[str, ColumnValues]) -> tuple[DataType, str]:
        kinds = set(self.kinds)
        count = f"{GUESS} from {pluralize(self.kinds.total(), 'value')}: "
        if not kinds:
            return STRING, f"{GUESS}: no values found"
        if kinds == {"text"}:
            kind, _ = self.texts.infer()
            word = {"date": "all are dates", "timestamp": "all are instants"}.get(kind.name, "they are texts")
            return kind, count + word
        if kinds == {"whole number"}:
            wide = DataType("decimal", (MAX_PRECISION, 0))
            return (wide if self.exceeds_bigint else BIGINT), f"{count}all are whole numbers"
        if kinds <= {"whole number", "number"}:
            return DOUBLE, f"{count}all are numbers"
        if kinds == {"true or false"}:
            return BOOLEAN, f"{count}all are true or false"
        if kinds == {"list"}:
            return DataType("array", (), (parts["[]"].type,)), f"{count}all are lists"
        if kinds == {"object"} and not parts:
            return STRING, f"{count}all are objects without fields"
        if kinds == {"object"} and not _has_distinct_names(parts):
            return STRING, f"{count}all are objects, with fields whose names a struct cannot have"
        if kinds == {"object"}:
            return struct_of(parts), f"{count}all are objects"
        return STRING, f"{count}they are of several kinds ({', '.join(sorted(kinds))})"


def struct_of(parts: Mapping[str, ColumnValues]) -> DataType:
    """Return the struct of these fields."""
    return DataType("struct", (), tuple(part.type for part in parts.values()), tuple(parts))


def _has_distinct_names(names: Iterable[str]) -> bool:
    """Return True if a struct can have these fields: plain names that differ not only in case."""
    all_names = list(names)
    plain = all(re.fullmatch(r"[A-Za-z_0-9$\-]+", name) for name in all_names)
    return plain and len({name.lower() for name in all_names}) == len(all_names)


# Kind of a JSON value in evidence -> its logical type.
_LOGICAL = {
    "text": "string",
    "whole number": "integer",
    "number": "number",
    "true or false": "boolean",
    "list": "array",
    "object": "object",
}


def _kind_of_text(text: str) -> str:
    if _ANY_INTEGER.fullmatch(text):
        return "integer"
    if _ANY_NUMBER.fullmatch(text):
        return "number"
    return "boolean" if text.strip().lower() in ("true", "false") else "string"


def _kind(value: object) -> str:
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int):
        return "whole number"
    if isinstance(value, float):
        return "number"
    return "text" if isinstance(value, str) else "list" if isinstance(value, list) else "object"
