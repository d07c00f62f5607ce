"""What a table in a catalog should be: a frozen specification, its hash, and how its texts are read."""

from __future__ import annotations

import codecs
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace

from dq.contracts.access.data_location import RFC_4180, TextFormat
from dq.contracts.shared.outcome import LAKEHOUSE, UsageError
from dq.contracts.types import DataType, NotAType, parse

# What a table in a catalog should be: a frozen specification, its canonical form and its hash.

# Our properties carry this prefix: the part of a table that most writers leave alone.
MANAGED_BY = "dq.managed-by"
REGISTRY = "dq.registry"
CONTRACT = "dq.contract-id"
CONTRACT_VERSION = "dq.contract-version"
OBJECT = "dq.object"
LIFECYCLE = "dq.lifecycle"
RETIRED = "retired"
SPEC_HASH = "dq.spec-hash"
OWNED_KEYS = "dq.owned-keys"
PARTITION_INDEXES = "dq.partition-indexes"
EXACT_TYPES = "dq.types"
"""The property in which a table of Iceberg keeps its contract's types of columns, as JSON, where its own are
others."""

VIEW = "view"
# What others make and keep, with its columns: writers of lakehouse tables, and who wrote a view. We only
# add ours.
OPEN_FORMATS = LAKEHOUSE | {VIEW}

COMMENT_BYTES = 255
DESCRIPTION_BYTES = 2048

Key = tuple[str, str]
ReaderTerms = tuple[tuple[str, str], ...]
"""How the texts of a table are written, where that differs from RFC 4180: sorted pairs of name and value."""


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column: its name and its type as Spark DDL, both in lower case, and a comment of one line.

    `spelled` is both, with one space between, as the keys of JSON are written; "" where that is the same.
    `required`: no row is without a value, and the table itself sees to it, as Iceberg's can. `promised`: the
    contract says so, whether the table can see to it or not; no catalog keeps it.
    """

    name: str
    type: str
    comment: str = ""
    spelled: str = ""
    required: bool = False
    promised: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class TableSpec:
    """A table as a catalog holds it. Make it with `folded`, so that equal tables are equal values.

    `columns` are those in the files; `partitions` are the keys, in the order of the folders. `location`
    is "" where the catalog chooses it. `parameters` are sorted pairs.
    """

    database: str
    name: str
    location: str
    format: str
    columns: tuple[TableColumn, ...]
    partitions: tuple[TableColumn, ...] = ()
    parameters: tuple[tuple[str, str], ...] = ()
    description: str = ""
    reader: ReaderTerms = ()

    @property
    def key(self) -> Key:
        return self.database, self.name

    def parameter(self, key: str) -> str:
        """The value of a parameter, or ""."""
        return dict(self.parameters).get(key, "")

    def column(self, name: str) -> TableColumn | None:
        """The data column of this name."""
        return next((column for column in self.columns if column.name == name), None)

    def as_json(self) -> dict[str, object]:
        """Plain values, for `spec_of`."""
        made = asdict(self) | {"parameters": [list(pair) for pair in self.parameters]}
        # What says nothing is not written: it would change the digest of tables that are as they should be.
        for column in (*made["columns"], *made["partitions"]):
            for silent in ("spelled", "required"):
                if not column[silent]:
                    del column[silent]
            del column["promised"]
        reader = made.pop("reader")
        return made | ({"reader": [list(pair) for pair in reader]} if reader else {})


def spec_of(data: Mapping[str, object]) -> TableSpec:
    """The specification that `as_json` gave."""
    made = json.loads(json.dumps(data))
    for part in ("columns", "partitions"):
        made[part] = tuple(TableColumn(**column) for column in made[part])
    for part in ("parameters", "reader"):
        made[part] = tuple((key, value) for key, value in made.get(part, ()))
    return TableSpec(**made)


def folded(spec: TableSpec) -> TableSpec:
    """The specification as every catalog gives it back: names lower case, texts clipped, places alike."""
    return TableSpec(
        spec.database.lower(),
        spec.name.lower(),
        fold_location(spec.location),
        spec.format.lower(),
        tuple(_fold_column(column) for column in spec.columns),
        tuple(_fold_column(column) for column in spec.partitions),
        tuple(sorted(spec.parameters)),
        clip(spec.description, DESCRIPTION_BYTES),
        tuple(sorted(spec.reader)),
    )


def _fold_column(column: TableColumn) -> TableColumn:
    comment = clip(column.comment, COMMENT_BYTES)
    plain = column.spelled == column.spelled.lower()
    spelled = "" if plain else column.spelled
    return TableColumn(
        column.name.lower(), column.type.lower(), comment, spelled, column.required, column.promised
    )


def clip(text: str, size: int) -> str:
    """One line of at most `size` bytes of UTF-8: catalogs refuse line ends and longer texts."""
    line = " ".join(text.split())
    data = line.encode()
    return line if len(data) <= size else data[: size - 3].decode(errors="ignore").rstrip() + "…"


def fold_location(location: str) -> str:
    """One spelling for one place: `s3a://` is `s3://`, `file:///x` is `/x`, no slash at the end."""
    scheme, colon, rest = location.partition(":")
    if scheme in ("s3a", "s3n"):
        location = f"s3{colon}{rest}"
    elif scheme == "file" and colon:
        location = "/" + rest.lstrip("/")
    return location.rstrip("/") or location[:1]


def index_text(indexes: Iterable[tuple[str, ...]]) -> str:
    """Partition indexes as the value of their parameter, such as `day; day, hour`."""
    return "; ".join(sorted({", ".join(keys).lower() for keys in indexes}))


def index_keys(text: str) -> list[tuple[str, ...]]:
    """The keys of each index that such a value names."""
    return [tuple(key.strip() for key in one.split(",")) for one in text.split(";") if one.strip()]


def digest(spec: TableSpec) -> str:
    """32 hexadecimal digits that change when anything but the digest itself changes."""
    data = spec.as_json()
    data["parameters"] = [[key, value] for key, value in spec.parameters if key != SPEC_HASH]
    canonical = json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(canonical.encode()).hexdigest()[:32]


def marked(spec: TableSpec, facts: Mapping[str, str]) -> TableSpec:
    """The folded specification with our parameters: the facts that are not empty, the keys, the digest."""
    parameters = dict(spec.parameters) | {key: value for key, value in facts.items() if value}
    parameters[MANAGED_BY] = "dq"
    parameters[OWNED_KEYS] = ",".join(sorted({*parameters, OWNED_KEYS, SPEC_HASH}))
    made = folded(_with(spec, parameters))
    return folded(_with(made, dict(made.parameters) | {SPEC_HASH: digest(made)}))


def _with(spec: TableSpec, parameters: Mapping[str, str]) -> TableSpec:
    return replace(spec, parameters=tuple(parameters.items()))


# How the texts of a table are read: a contract's terms as pairs, which each catalog keeps in its own way.

# Formats of which the files do not say how they are written.
TEXTS = frozenset({"csv", "json"})
_TEXT_TYPES = frozenset({"string", "varchar", "char", "binary"})


class UnsayableTerms(UsageError):
    """The catalog has no words for how the files are written."""


def reader_terms(format: str, form: TextFormat) -> ReaderTerms:
    """What differs from RFC 4180 in UTF-8, by name; of JSON the encoding alone, of other formats nothing."""
    if format not in TEXTS:
        return ()
    terms = {"encoding": encoding_name(form.encoding)}
    if format == "csv":
        terms |= {
            "delimiter": form.delimiter,
            "quote": form.quote,
            "escape": form.escape,
            "header": str(form.header).lower(),
            "null_text": form.null_text,
        }
    usual = {name: str(getattr(RFC_4180, name)) for name in terms} | {"header": "true"}
    return tuple(sorted((name, text) for name, text in terms.items() if text != usual[name]))


def text_format_of(spec: TableSpec) -> TextFormat:
    """The description that the terms of a specification stand for."""
    terms = dict(spec.reader)
    header = terms.pop("header", "true") == "true"
    known = {name: text for name, text in terms.items() if name in TextFormat.__dataclass_fields__}
    return replace(RFC_4180, header=header, **known)


def encoding_name(text: str) -> str:
    """One spelling for one encoding; as it is written, in lower case, where nobody knows it."""
    try:
        return codecs.lookup(text).name
    except (LookupError, ValueError):
        return text.lower()


def is_text(type_: str) -> bool:
    """Whether a column of this type holds the very signs of a file."""
    return kind_of(type_).name in _TEXT_TYPES


def kind_of(type_: str) -> DataType:
    """The type that a specification writes; of a name alone, where nobody knows it."""
    try:
        return parse(type_)
    except NotAType:
        return DataType(type_)
