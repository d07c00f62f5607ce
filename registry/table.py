"""Table specifications for catalogs: their canonical form, marks, and derivation from contracts."""

from __future__ import annotations

import codecs
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

from dq.contracts import slo
from dq.contracts.access.data_location import RFC_4180, DataLocation, TextFormat, select_server, text_format
from dq.contracts.extension import dataset
from dq.contracts.layout import HIVE, Layout
from dq.contracts.lineage import database_name, is_view, table_folder, table_name
from dq.contracts.model import Contract, Property, SchemaObject, Team
from dq.contracts.outcome import LAKEHOUSE, UsageError
from dq.contracts.types import DataType, NotAType, catalog_type, parse

# The specification of a table in a catalog, its canonical form and its hash.

# Properties with this prefix are ours; most writers do not change them.
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
COMPLETE_THROUGH = "dq.complete-through"
CHECKED_THROUGH = "dq.checked-through"
STATE = "dq.state"
DELIVERY_KEYS = (COMPLETE_THROUGH, CHECKED_THROUGH, STATE)
"""Properties that the watcher writes; plans neither show nor remove them."""

EXACT_TYPES = "dq.types"
"""Property of an Iceberg table with the contract's column types, as JSON, where its own types differ."""

VIEW = "view"
# Formats whose tables, including columns, belong to their writers: lakehouse tables and views. dq only adds
# its properties.
OPEN_FORMATS = LAKEHOUSE | {VIEW}

COMMENT_BYTES = 255
DESCRIPTION_BYTES = 2048

Key = tuple[str, str]
ReaderTerms = tuple[tuple[str, str], ...]
"""Format options of a CSV or JSON table that differ from RFC 4180: sorted pairs of name and value."""


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column: its name and its type as Spark DDL, both in lower case, and a comment of one line.

    `spelled` has name and type, separated by a space, in the spelling of the JSON keys; "" if the same.
    `required`: the table itself enforces a value, as Iceberg can. `promised`: the contract requires a value,
    enforced or not; no catalog stores it.
    """

    name: str
    type: str
    comment: str = ""
    spelled: str = ""
    required: bool = False
    promised: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class TableSpec:
    """A table in a catalog. Created with `folded`, equal tables are equal values.

    `columns` are those in the files; `partitions` are the keys, in the order of the folders. `location`
    is "" if the catalog chooses it. `parameters` are sorted pairs. `layout` names the folders of partitions;
    no catalog stores it, and partitions are registered with their locations.
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
    layout: Layout = field(default=HIVE, compare=False)

    @property
    def key(self) -> Key:
        return self.database, self.name

    def partition_location(self, values: Sequence[tuple[str, str]]) -> str:
        """Return the folder of a partition, or of the table without one; "" if the location is unknown.

        Raises UsageError if the partition has no folder in the layout.
        """
        try:
            folder = self.layout.folder_of(values)
        except ValueError as error:
            raise UsageError(
                f"{self.database}.{self.name}: {error}.",
                "Correct the partition, or the layout of the server.",
            ) from error
        return "/".join(part for part in (self.location.rstrip("/"), folder) if part)

    def parameter(self, key: str) -> str:
        """Return the value of a parameter, or ""."""
        return dict(self.parameters).get(key, "")

    def column(self, name: str) -> TableColumn | None:
        """Return the data column of this name, or None."""
        return next((column for column in self.columns if column.name == name), None)

    def as_json(self) -> dict[str, object]:
        """Return plain values, for `spec_from_json`."""
        data = asdict(self) | {"parameters": [list(pair) for pair in self.parameters]}
        # Defaults are left out, because they would change the digest of existing tables.
        for column in (*data["columns"], *data["partitions"]):
            for key in ("spelled", "required"):
                if not column[key]:
                    del column[key]
            del column["promised"]
        reader = data.pop("reader")
        del data["layout"]
        return data | ({"reader": [list(pair) for pair in reader]} if reader else {})


def spec_from_json(data: Mapping[str, object]) -> TableSpec:
    """Return the specification from the values of `as_json`."""
    values = json.loads(json.dumps(data))
    for part in ("columns", "partitions"):
        values[part] = tuple(TableColumn(**column) for column in values[part])
    for part in ("parameters", "reader"):
        values[part] = tuple((key, value) for key, value in values.get(part, ()))
    return TableSpec(**values)


def folded(spec: TableSpec) -> TableSpec:
    """Return the specification in canonical form: names in lower case, texts clipped, locations folded."""
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
        spec.layout,
    )


def _fold_column(column: TableColumn) -> TableColumn:
    comment = clip(column.comment, COMMENT_BYTES)
    plain = column.spelled == column.spelled.lower()
    spelled = "" if plain else column.spelled
    return TableColumn(
        column.name.lower(), column.type.lower(), comment, spelled, column.required, column.promised
    )


def clip(text: str, size: int) -> str:
    """Return one line of at most `size` bytes of UTF-8: catalogs reject line breaks and longer texts."""
    line = " ".join(text.split())
    data = line.encode()
    return line if len(data) <= size else data[: size - 3].decode(errors="ignore").rstrip() + "…"


def fold_location(location: str) -> str:
    """Return the canonical spelling of a location: `s3a://` is `s3://`, `file:///x` is `/x`, no final
    slash.
    """
    scheme, colon, path = location.partition(":")
    if scheme in ("s3a", "s3n"):
        location = f"s3{colon}{path}"
    elif scheme == "file" and colon:
        location = "/" + path.lstrip("/")
    return location.rstrip("/") or location[:1]


def index_text(indexes: Iterable[tuple[str, ...]]) -> str:
    """Return partition indexes as the value of their parameter, e.g. `day; day, hour`."""
    return "; ".join(sorted({", ".join(keys).lower() for keys in indexes}))


def index_keys(text: str) -> list[tuple[str, ...]]:
    """Return the keys of each index in the value of the parameter."""
    return [tuple(key.strip() for key in part.split(",")) for part in text.split(";") if part.strip()]


def digest(spec: TableSpec) -> str:
    """Return the digest of everything but the digest itself: 32 hexadecimal digits."""
    data = spec.as_json()
    data["parameters"] = [[key, value] for key, value in spec.parameters if key != SPEC_HASH]
    canonical = json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(canonical.encode()).hexdigest()[:32]


def marked(spec: TableSpec, facts: Mapping[str, str]) -> TableSpec:
    """Return the folded specification with our parameters: facts that are not empty, owned keys, digest."""
    parameters = dict(spec.parameters) | {key: value for key, value in facts.items() if value}
    parameters[MANAGED_BY] = "dq"
    parameters[OWNED_KEYS] = ",".join(sorted({*parameters, OWNED_KEYS, SPEC_HASH}))
    folded_spec = folded(_with(spec, parameters))
    return folded(_with(folded_spec, dict(folded_spec.parameters) | {SPEC_HASH: digest(folded_spec)}))


def _with(spec: TableSpec, parameters: Mapping[str, str]) -> TableSpec:
    return replace(spec, parameters=tuple(parameters.items()))


def without_delivery_state(spec: TableSpec) -> TableSpec:
    """Return the specification without the properties that the watcher writes."""
    return _with(spec, {key: text for key, text in spec.parameters if key not in DELIVERY_KEYS})


# Reader options of CSV and JSON tables, as pairs, which each catalog stores in its own way.

# Formats whose files do not describe their encoding and delimiters.
TEXTS = frozenset({"csv", "json"})
_TEXT_TYPES = frozenset({"string", "varchar", "char", "binary"})


class UnsupportedReaderOptions(UsageError):
    """The catalog does not support the format options of the files."""


def reader_terms(format: str, text_format: TextFormat) -> ReaderTerms:
    """Return the options that differ from RFC 4180 in UTF-8; for JSON only the encoding, for others none."""
    if format not in TEXTS:
        return ()
    terms = {"encoding": encoding_name(text_format.encoding)}
    if format == "csv":
        terms |= {
            "delimiter": text_format.delimiter,
            "quote": text_format.quote,
            "escape": text_format.escape,
            "header": str(text_format.header).lower(),
            "null_text": text_format.null_text,
        }
    defaults = {name: str(getattr(RFC_4180, name)) for name in terms} | {"header": "true"}
    return tuple(sorted((name, text) for name, text in terms.items() if text != defaults[name]))


def text_format_of(spec: TableSpec) -> TextFormat:
    """Return the text format of a specification's reader options."""
    terms = dict(spec.reader)
    header = terms.pop("header", "true") == "true"
    format_terms = {name: text for name, text in terms.items() if name in TextFormat.__dataclass_fields__}
    return replace(RFC_4180, header=header, **format_terms)


def encoding_name(text: str) -> str:
    """Return the canonical name of an encoding; an unknown one as written, in lower case."""
    try:
        return codecs.lookup(text).name
    except (LookupError, ValueError):
        return text.lower()


def is_text(type_: str) -> bool:
    """Return True if columns of this type have the characters of a file unchanged."""
    return kind_of(type_).name in _TEXT_TYPES


def kind_of(type_: str) -> DataType:
    """Return the parsed type; an unknown one has only its name."""
    try:
        return parse(type_)
    except NotAType:
        return DataType(type_)


# Facts about the contract: the `dq.*` parameters for people and tools that read the catalog.

# Hive's metastore allows 4,000.
_LONGEST = 1_000


def facts(contract: Contract, schema_object: SchemaObject, registry: str) -> dict[str, str]:
    """Return the facts of one object by parameter; "" for those that the contract does not have."""
    values = {
        REGISTRY: registry,
        CONTRACT: contract.id,
        CONTRACT_VERSION: contract.version,
        OBJECT: schema_object.name,
        "dq.owner": contract_owner(contract),
        "dq.domain": contract.domain or "",
        LIFECYCLE: contract.status or "",
        "dq.slo": "; ".join(_promises(contract, schema_object)),
        "dq.channel": ", ".join(
            f"{support.tool}:{support.channel}" if support.tool else support.channel
            for support in contract.support
        ),
        PARTITION_INDEXES: index_text(tuple(keys) for keys in dataset(schema_object)[0].partition_indexes),
        "dq.classification": ", ".join(sorted(_classifications(schema_object.properties))),
    }
    return values | {
        key: clip(values[key], _LONGEST) for key in ("dq.slo", "dq.channel", "dq.classification")
    }


def contract_owner(contract: Contract) -> str:
    """Return the team's name, else the first owner in it, or ""."""
    if isinstance(contract.team, Team) and contract.team.name:
        return contract.team.name
    owners = (member for member in contract.members() if "owner" in (member.role or "").lower())
    return next((member.username for member in owners), "")


def _promises(contract: Contract, schema_object: SchemaObject) -> list[str]:
    """Return texts, e.g. `daily: 0 6 * * * Europe/Berlin, 95%`. Invalid SLOs are reported by validation."""
    promises, _ = slo.read_slos(contract)
    return [
        f"{promise.id}: {promise.sla.schedule} {promise.delivery.timezone}, {promise.delivery.objective}"
        for promise in promises
        if promise.object.name == schema_object.name
    ]


def _classifications(properties: list[Property]) -> set[str]:
    """Return all classifications of columns and their fields."""
    words: set[str] = set()
    for prop in properties:
        words |= {prop.classification} if prop.classification else set()
        words |= _classifications(prop.properties)
        if prop.items is not None:
            words |= _classifications([prop.items])
        if prop.map is not None:
            words |= _classifications([prop.map.key, prop.map.value])
    return words


# From a contract to its table specifications.

# Names that Glue, Hive and Athena accept without quoting. Glue limits database names to 252 characters.
_NAME = re.compile(r"[a-z_][a-z0-9_]{0,254}")
_DATABASE = re.compile(r"[a-z_][a-z0-9_]{0,251}")
_FIELD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ICEBERG = "iceberg"
_MAX_INDEXES = 3
_NESTED = ("array", "map", "struct", "variant")


def specs(
    contract: Contract, locate: Callable[[SchemaObject], DataLocation], registry: str = ""
) -> list[TableSpec]:
    """Return one folded specification per object, in the contract's order.

    The database is the server's, else domain and data product, else the contract's name; the table is the
    object's physical name, else its name. `registry` identifies the repository, so that two repositories
    never manage one table. Raises UsageError, with the location in the file, if no catalog would accept it.
    """
    by_key: dict[tuple[str, str], TableSpec] = {}
    for schema_object in contract.objects:
        spec = _spec(contract, schema_object, locate(schema_object), registry)
        if spec.key in by_key:
            raise UsageError(
                f"two objects map to the table {spec.database}.{spec.name}.",
                "Give one of them another physicalName.",
                at=schema_object.locate(),
            )
        by_key[spec.key] = spec
    return list(by_key.values())


def _spec(contract: Contract, schema_object: SchemaObject, place: DataLocation, registry: str) -> TableSpec:
    view = is_view(schema_object)
    properties = [_Column(prop, prop.column, catalog_type(prop)) for prop in schema_object.properties]
    keys = [
        next(column for column in properties if column.prop is key) for key in schema_object.partition_keys()
    ]
    columns = [column.spec(place.format) for column in properties if not column.prop.partitioned]
    partitions = [column.spec(place.format if place.format == _ICEBERG else "") for column in keys]
    _refuse_names(schema_object.name, properties)
    for column in keys:
        if column.kind.name in _NESTED:
            raise UsageError(
                f"partition key {column.name!r} has type {column.kind}.",
                "Use a plain type for partition keys: text, number or date.",
                at=column.prop.locate(),
            )
    for column in properties if place.format == "csv" else ():
        if column.kind.name in _NESTED:
            raise UsageError(
                f"column {column.name!r} has type {column.kind}, and CSV holds only plain values.",
                "Write physicalType: string, or deliver JSON or Parquet.",
                at=column.prop.locate(),
            )
    _refuse_indexes(schema_object, {column.name.lower() for column in keys})
    if not columns:
        raise UsageError(
            f"object {schema_object.name!r} has no columns besides its partition keys.",
            "Add the columns of its files to 'properties'.",
            at=schema_object.locate(),
        )
    database = database_name(contract, place.database)
    name = table_name(schema_object)
    if not _DATABASE.fullmatch(database) or not _NAME.fullmatch(name):
        raise UsageError(
            f"no catalog accepts the name {database}.{name}.",
            "Use lower case letters, digits and underscores in 'database' and 'physicalName'.",
            at=schema_object.locate(),
        )
    spec = TableSpec(
        database,
        name,
        "" if view else table_folder(place.path),
        VIEW if view else place.format,
        tuple(columns),
        tuple(partitions),
        description=schema_object.description or "",
        reader=reader_terms(place.format, text_format(select_server(contract, place.server)))
        if place.format in TEXTS
        else (),
        layout=place.layout if place.format not in OPEN_FORMATS else HIVE,
    )
    return marked(spec, facts(contract, schema_object, registry))


def _refuse_indexes(schema_object: SchemaObject, keys: set[str]) -> None:
    """Raise UsageError, at the object's custom properties, for invalid partition indexes."""
    indexes = [tuple(key.lower() for key in index) for index in dataset(schema_object)[0].partition_indexes]
    unknown = sorted({key for index in indexes for key in index} - keys)
    if unknown:
        problem = f"{unknown[0]!r} is not a partition key"
    elif any(not index or len(set(index)) < len(index) for index in indexes):
        problem = "one has no keys or a duplicate key"
    elif len(set(indexes)) < len(indexes):
        problem = "two have the same keys"
    elif len(indexes) > _MAX_INDEXES:
        problem = f"there are {len(indexes)}, and a table can have at most {_MAX_INDEXES}"
    else:
        return
    raise UsageError(
        f"the partition indexes of {schema_object.name} cannot be made: {problem}.",
        f"Give 'partitionIndexes' lists of its keys: {', '.join(sorted(keys)) or 'it has none'}.",
        at=schema_object.locate("customProperties"),
    )


@dataclass(frozen=True, slots=True)
class _Column:
    """A property with its name in the data and its type in a catalog."""

    prop: Property
    name: str
    kind: DataType

    def spec(self, format: str) -> TableColumn:
        kind, prop = str(self.kind), self.prop
        # JSON keys are case-sensitive; names in other files are not.
        spelled = f"{self.name} {kind}" if format == "json" else ""
        # Of the tables that dq creates, only Iceberg's support NOT NULL columns.
        required = format == _ICEBERG and bool(prop.required)
        comment = prop.description or prop.business_name or ""
        return TableColumn(self.name.lower(), kind, comment, spelled, required, bool(prop.required))

    def refuse_misspelt(self) -> None:
        """Raise UsageError for an invalid nested type, which would otherwise become a string."""
        text = (self.prop.physical_type or "").lower()
        try:
            if text.startswith(tuple(f"{name}<" for name in _NESTED)):
                parse(text)
        except NotAType as error:
            raise UsageError(
                f"the type of {self.name!r} cannot be read: {error}.",
                "Write it as in Spark, e.g. struct<a:int,b:array<string>>.",
                at=self.prop.locate("physicalType"),
            ) from error


def _refuse_names(table: str, columns: Iterable[_Column]) -> None:
    seen_names: set[str] = set()
    for column in columns:
        name, prop = column.name.lower(), column.prop
        if not _NAME.fullmatch(name):
            raise UsageError(
                f"no catalog accepts the column name {name!r} of {table}.",
                "Use lower case letters, digits and underscores in 'physicalName'.",
                at=prop.locate(),
            )
        if name in seen_names:
            raise UsageError(
                f"{table} has a duplicate column {name!r}; catalogs ignore case.",
                "Give one of them another physicalName.",
                at=prop.locate(),
            )
        seen_names.add(name)
        column.refuse_misspelt()
        for field_name in _invalid_fields(column.kind):
            raise UsageError(
                f"no catalog accepts the field name {field_name!r} of {table}.{name}.",
                "Use letters, digits and underscores, and each name only once.",
                at=prop.locate(),
            )


def _invalid_fields(kind: DataType) -> Iterator[str]:
    """Return field names, at any depth, that are invalid in a catalog or differ only in case."""
    lowered = [name.lower() for name in kind.names]
    for index, name in enumerate(kind.names):
        if not _FIELD.fullmatch(name) or lowered[index] in lowered[:index]:
            yield name
    for part in kind.parts:
        yield from _invalid_fields(part)
