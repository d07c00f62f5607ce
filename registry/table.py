"""Tables as contracts promise them to catalogs: specification, marks, and how they follow from contracts."""

from __future__ import annotations

import codecs
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace

from dq.contracts import slo
from dq.contracts.access.data_location import RFC_4180, DataPlace, TextFormat, server_of, text_format
from dq.contracts.extension import dataset
from dq.contracts.lineage import database_name, is_view, table_folder, table_name
from dq.contracts.model import Contract, Property, SchemaObject, Team
from dq.contracts.outcome import LAKEHOUSE, UsageError
from dq.contracts.types import DataType, NotAType, catalog_type, parse

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


# What a table says of its contract: the `dq.*` parameters that people and tools read in a catalog.

# The metastore of Hive keeps 4,000.
_LONGEST = 1_000


def facts(contract: Contract, one: SchemaObject, registry: str) -> dict[str, str]:
    """The facts of one object by parameter; "" for what the contract does not say."""
    made = {
        REGISTRY: registry,
        CONTRACT: contract.id,
        CONTRACT_VERSION: contract.version,
        OBJECT: one.name,
        "dq.owner": _owner(contract),
        "dq.domain": contract.domain or "",
        LIFECYCLE: contract.status or "",
        "dq.slo": "; ".join(_promises(contract, one)),
        "dq.channel": ", ".join(
            f"{each.tool}:{each.channel}" if each.tool else each.channel for each in contract.support
        ),
        PARTITION_INDEXES: index_text(tuple(keys) for keys in dataset(one)[0].partition_indexes),
        "dq.classification": ", ".join(sorted(_classifications(one.properties))),
    }
    return made | {key: clip(made[key], _LONGEST) for key in ("dq.slo", "dq.channel", "dq.classification")}


def _owner(contract: Contract) -> str:
    if isinstance(contract.team, Team) and contract.team.name:
        return contract.team.name
    owners = (member for member in contract.members() if "owner" in (member.role or "").lower())
    return next((member.username for member in owners), "")


def _promises(contract: Contract, one: SchemaObject) -> list[str]:
    """Such as `daily: 0 6 * * * Europe/Berlin, 95%`. What cannot be understood is the gate's to say."""
    promised, _ = slo.read(contract)
    return [
        f"{each.id}: {each.sla.schedule} {each.delivery.timezone}, {each.delivery.objective}"
        for each in promised
        if each.object.name == one.name
    ]


def _classifications(properties: list[Property]) -> set[str]:
    """Every word by which a column of the object, or a part of one, is classified."""
    words: set[str] = set()
    for prop in properties:
        words |= {prop.classification} if prop.classification else set()
        words |= _classifications(prop.properties)
        if prop.items is not None:
            words |= _classifications([prop.items])
        if prop.map is not None:
            words |= _classifications([prop.map.key, prop.map.value])
    return words


# From a contract to the tables that it promises.

# What Glue, Hive and Athena all take without quoting; Glue's database names end at 252.
_NAME = re.compile(r"[a-z_][a-z0-9_]{0,254}")
_DATABASE = re.compile(r"[a-z_][a-z0-9_]{0,251}")
_FIELD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ICEBERG = "iceberg"
_MOST_INDEXES = 3
_NESTED = ("array", "map", "struct", "variant")


def specs(
    contract: Contract, place_of: Callable[[SchemaObject], DataPlace], registry: str = ""
) -> list[TableSpec]:
    """One folded specification per object, in the contract's order.

    The database is the server's, else domain and data product, else the contract's name; the table is the
    object's physical name, else its name. `registry` names the repository, so that two of them never
    fight over one table. Raises UsageError, with the place in the file, for what no catalog would take.
    """
    made: dict[tuple[str, str], TableSpec] = {}
    for one in contract.objects:
        spec = _spec(contract, one, place_of(one), registry)
        if spec.key in made:
            raise UsageError(
                f"two objects would be the table {spec.database}.{spec.name}.",
                "Give one of them another physicalName.",
                at=one.at(),
            )
        made[spec.key] = spec
    return list(made.values())


def _spec(contract: Contract, one: SchemaObject, place: DataPlace, registry: str) -> TableSpec:
    view = is_view(one)
    properties = [_Column(prop, prop.column, catalog_type(prop)) for prop in one.properties]
    keys = [next(each for each in properties if each.prop is key) for key in one.partition_keys()]
    columns = [each.spec(place.format) for each in properties if not each.prop.partitioned]
    partitions = [each.spec(place.format if place.format == _ICEBERG else "") for each in keys]
    _refuse_names(one.name, properties)
    for each in keys:
        if each.kind.name in _NESTED:
            raise UsageError(
                f"partition key {each.name!r} has type {each.kind}.",
                "Partition keys are plain values: text, numbers, dates.",
                at=each.prop.at(),
            )
    for each in properties if place.format == "csv" else ():
        if each.kind.name in _NESTED:
            raise UsageError(
                f"column {each.name!r} has type {each.kind}, and CSV holds plain values.",
                "Write physicalType: string, or deliver JSON or Parquet.",
                at=each.prop.at(),
            )
    _refuse_indexes(one, {each.name.lower() for each in keys})
    if not columns:
        raise UsageError(
            f"object {one.name!r} has no column beside its partition keys.",
            "Add the columns that its files hold to 'properties'.",
            at=one.at(),
        )
    database = database_name(contract, place.database)
    name = table_name(one)
    if not _DATABASE.fullmatch(database) or not _NAME.fullmatch(name):
        raise UsageError(
            f"no catalog takes the name {database}.{name}.",
            "Write lower case letters, digits and underscores in 'database' and 'physicalName'.",
            at=one.at(),
        )
    spec = TableSpec(
        database,
        name,
        "" if view else table_folder(place.path),
        VIEW if view else place.format,
        tuple(columns),
        tuple(partitions),
        description=one.description or "",
        reader=reader_terms(place.format, text_format(server_of(contract, place.server)))
        if place.format in TEXTS
        else (),
    )
    return marked(spec, facts(contract, one, registry))


def _refuse_indexes(one: SchemaObject, keys: set[str]) -> None:
    """Raises UsageError, at the object's own terms, for indexes that no table of it could have."""
    wanted = [tuple(key.lower() for key in index) for index in dataset(one)[0].partition_indexes]
    unknown = sorted({key for index in wanted for key in index} - keys)
    if unknown:
        wrong = f"{unknown[0]!r} is no partition key"
    elif any(not index or len(set(index)) < len(index) for index in wanted):
        wrong = "one names no key, or a key twice"
    elif len(set(wanted)) < len(wanted):
        wrong = "two have the same keys"
    elif len(wanted) > _MOST_INDEXES:
        wrong = f"there are {len(wanted)}, and a table has {_MOST_INDEXES} at most"
    else:
        return
    raise UsageError(
        f"the partition indexes of {one.name} cannot be made: {wrong}.",
        f"Give 'partitionIndexes' lists of its keys: {', '.join(sorted(keys)) or 'it has none'}.",
        at=one.at("customProperties"),
    )


@dataclass(frozen=True, slots=True)
class _Column:
    """A property with its name in the data and its type in a catalog."""

    prop: Property
    name: str
    kind: DataType

    def spec(self, format: str) -> TableColumn:
        kind, prop = str(self.kind), self.prop
        # The keys of JSON are told apart by case; names in other files are not.
        spelled = f"{self.name} {kind}" if format == "json" else ""
        # Of the tables that we make, these alone know columns that are never NULL.
        required = format == _ICEBERG and bool(prop.required)
        comment = prop.description or prop.business_name or ""
        return TableColumn(self.name.lower(), kind, comment, spelled, required, bool(prop.required))

    def refuse_misspelt(self) -> None:
        """Raises UsageError for a nested type that cannot be read: a table of texts would stand for it."""
        text = (self.prop.physical_type or "").lower()
        try:
            if text.startswith(tuple(f"{name}<" for name in _NESTED)):
                parse(text)
        except NotAType as error:
            raise UsageError(
                f"the type of {self.name!r} cannot be read: {error}.",
                "Write it as Spark does, such as struct<a:int,b:array<string>>.",
                at=self.prop.at("physicalType"),
            ) from error


def _refuse_names(table: str, columns: Iterable[_Column]) -> None:
    seen: set[str] = set()
    for column in columns:
        name, place = column.name.lower(), column.prop
        if not _NAME.fullmatch(name):
            raise UsageError(
                f"no catalog takes the column name {name!r} of {table}.",
                "Write lower case letters, digits and underscores in 'physicalName'.",
                at=place.at(),
            )
        if name in seen:
            raise UsageError(
                f"{table} has the column {name!r} twice; catalogs do not tell upper from lower case.",
                "Give one of them another physicalName.",
                at=place.at(),
            )
        seen.add(name)
        column.refuse_misspelt()
        for wrong in _unfit_fields(column.kind):
            raise UsageError(
                f"no catalog takes the field name {wrong!r} of {table}.{name}.",
                "Write letters, digits and underscores, and each name once.",
                at=place.at(),
            )


def _unfit_fields(kind: DataType) -> Iterator[str]:
    """Names of fields, at any depth, that are none in a catalog, or that differ in case alone."""
    lowered = [name.lower() for name in kind.names]
    for at, name in enumerate(kind.names):
        if not _FIELD.fullmatch(name) or lowered[at] in lowered[:at]:
            yield name
    for part in kind.parts:
        yield from _unfit_fields(part)
