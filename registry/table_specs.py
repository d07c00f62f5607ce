"""From a contract to the tables that it promises, and the facts of the contract that each table carries."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from dq.contracts import slo
from dq.contracts.access.data_location import DataPlace, server_of, text_format
from dq.contracts.extension import dataset
from dq.contracts.lineage import database_name, is_view, table_folder, table_name
from dq.contracts.model import Contract, Property, SchemaObject, Team
from dq.contracts.shared.outcome import UsageError
from dq.contracts.types import DataType, NotAType, catalog_type, parse
from dq.registry.table import (
    CONTRACT,
    CONTRACT_VERSION,
    LIFECYCLE,
    OBJECT,
    PARTITION_INDEXES,
    REGISTRY,
    TEXTS,
    VIEW,
    ReaderTerms,
    TableColumn,
    TableSpec,
    clip,
    index_text,
    marked,
    reader_terms,
)

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
        "dq.channel": ", ".join(_channels(contract)),
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


def _channels(contract: Contract) -> list[str]:
    return [f"{each.tool}:{each.channel}" if each.tool else each.channel for each in contract.support]


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
    keys = one.partition_keys()
    columns = [_column(prop, place.format) for prop in one.properties if not prop.partitioned]
    partitions = [_column(prop, place.format if place.format == _ICEBERG else "") for prop in keys]
    _refuse_names(one)
    for prop in keys:
        if catalog_type(prop).name in _NESTED:
            raise UsageError(
                f"partition key {prop.column!r} has type {catalog_type(prop)}.",
                "Partition keys are plain values: text, numbers, dates.",
                at=prop.at(),
            )
    for prop in one.properties:
        if place.format == "csv" and catalog_type(prop).name in _NESTED:
            raise UsageError(
                f"column {prop.column!r} has type {catalog_type(prop)}, and CSV holds plain values.",
                "Write physicalType: string, or deliver JSON or Parquet.",
                at=prop.at(),
            )
    _refuse_indexes(one, {prop.column.lower() for prop in keys})
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
        reader=_reader(contract, place),
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


def _reader(contract: Contract, place: DataPlace) -> ReaderTerms:
    if place.format not in TEXTS:
        return ()
    return reader_terms(place.format, text_format(server_of(contract, place.server)))


def _column(prop: Property, format: str) -> TableColumn:
    kind = str(catalog_type(prop))
    # The keys of JSON are told apart by case; names in other files are not.
    spelled = f"{prop.column} {kind}" if format == "json" else ""
    # Of the tables that we make, these alone know columns that are never NULL.
    required = format == _ICEBERG and bool(prop.required)
    comment = prop.description or prop.business_name or ""
    return TableColumn(prop.column.lower(), kind, comment, spelled, required, bool(prop.required))


def _refuse_names(one: SchemaObject) -> None:
    seen: set[str] = set()
    for prop in one.properties:
        name = prop.column.lower()
        if not _NAME.fullmatch(name):
            raise UsageError(
                f"no catalog takes the column name {name!r} of {one.name}.",
                "Write lower case letters, digits and underscores in 'physicalName'.",
                at=prop.at(),
            )
        if name in seen:
            raise UsageError(
                f"{one.name} has the column {name!r} twice; catalogs do not tell upper from lower case.",
                "Give one of them another physicalName.",
                at=prop.at(),
            )
        seen.add(name)
        _refuse_misspelt(prop)
        for wrong in _unfit_fields(catalog_type(prop)):
            raise UsageError(
                f"no catalog takes the field name {wrong!r} of {one.name}.{name}.",
                "Write letters, digits and underscores, and each name once.",
                at=prop.at(),
            )


def _refuse_misspelt(prop: Property) -> None:
    """Raises UsageError for a nested type that cannot be read: a table of texts would stand for it."""
    text = (prop.physical_type or "").lower()
    if not text.startswith(tuple(f"{name}<" for name in _NESTED)):
        return
    try:
        parse(text)
    except NotAType as error:
        raise UsageError(
            f"the type of {prop.column!r} cannot be read: {error}.",
            "Write it as Spark does, such as struct<a:int,b:array<string>>.",
            at=prop.at("physicalType"),
        ) from error


def _unfit_fields(kind: DataType) -> Iterator[str]:
    """Names of fields, at any depth, that are none in a catalog, or that differ in case alone."""
    lowered = [name.lower() for name in kind.names]
    for at, name in enumerate(kind.names):
        if not _FIELD.fullmatch(name) or lowered[at] in lowered[:at]:
            yield name
    for part in kind.parts:
        yield from _unfit_fields(part)
