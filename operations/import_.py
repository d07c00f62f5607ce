"""`dq.import_`: the contract of a table that exists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dq.contracts.outcome import UsageError, counted, nearest
from dq.lake.storage import partition_folder
from dq.operations.runtime.context import World, called
from dq.operations.runtime.spark import opened
from dq.registry.catalog import Catalog
from dq.registry.catalogs import catalogs
from dq.registry.importing import FoundTable, kinds
from dq.registry.importing.contract_text import Imported, contract_text, identifier
from dq.registry.importing.sources import is_place, of_spec
from dq.registry.table import OPEN_FORMATS, TableSpec, fold_location


@dataclass(frozen=True, slots=True)
class ImportRequest:
    """What is imported, and what its contract says besides.

    `kind` is parquet, csv, json, sql, dbt, dcs, jsonschema, avro, iceberg or delta, or of a catalog hive,
    glue, iceberg or local. `source` is a file, folder or URI; in a catalog: database, or database.table.
    `objects` are the only tables that are wanted; `id` is the table's name by default.
    """

    kind: str
    source: str
    objects: tuple[str, ...] = ()
    id: str = ""
    domain: str = ""
    owner: str = ""
    role_arn: str = ""
    catalog_id: str = ""


@dataclass(frozen=True, slots=True)
class ImportOutcome:
    """The tables that were found, and the text of their contract."""

    tables: tuple[FoundTable, ...]
    text: str

    @property
    def columns(self) -> int:
        """How many there are in all tables, partition columns included."""
        return sum(len(table.columns) + len(table.partitions) for table in self.tables)

    @property
    def lost(self) -> tuple[str, ...]:
        """What the source says and a contract cannot."""
        several = len(self.tables) > 1
        told = [f"{table.name}: {lost}" if several else lost for table in self.tables for lost in table.lost]
        return (*self.tables[0].whole.lost, *told)


def import_(
    kind: str,
    source: Path | str,
    *,
    objects: Sequence[str] = (),
    id: str = "",
    domain: str = "",
    owner: str = "",
    role_arn: str = "",
    catalog_id: str = "",
    folder: Path | str | None = None,
) -> ImportOutcome:
    """The contract of a table that exists, as `dq import` writes it; nothing is written.

    The arguments are those of `ImportRequest`. `folder` stands for the working folder, where settings and
    store are; paths of the source are relative to that of the process.

    Raises UsageError for a kind or table that is not known and a table without columns, Unreadable for a
    source that cannot be read, and MissingTool where a package for it is not installed.
    """
    world, _ = called(None, folder)
    named = ImportRequest(kind, str(source), tuple(objects), id, domain, owner, role_arn, catalog_id)
    return contract_of(named, found(world, named))


def found(world: World, request: ImportRequest) -> list[FoundTable]:
    """The tables of the source that are wanted. Raises as `import_`."""
    known = _tables(world, request)
    tables = _chosen(request.source, known, request.objects)
    for table in tables:
        if not table.columns:
            raise UsageError(f"{request.source}: {table.name} has no column.", "Name a table that has some.")
    return tables


def contract_of(request: ImportRequest, tables: Sequence[FoundTable]) -> ImportOutcome:
    """The contract of these tables."""
    own = str(tables[0].whole.said.get("id") or "") if len(tables) > 1 or not request.objects else ""
    name = request.id or own or identifier(tables[0].name)
    head = Imported(name, request.domain, request.owner, f"{request.kind} {request.source}")
    return ImportOutcome(tuple(tables), contract_text(head, tables))


def _chosen(source: str, tables: list[FoundTable], names: Sequence[str]) -> list[FoundTable]:
    """The tables that are named, in the order of the source; all where none is."""
    known = [table.name for table in tables]
    for name in names:
        if name not in known:
            hint = nearest(name, known)
            mend = f"Did you mean {hint}?" if hint else f"It has {', '.join(known[:20])}."
            raise UsageError(f"{source} has no table {name!r}.", mend)
    return [table for table in tables if not names or table.name in names]


def _tables(world: World, request: ImportRequest) -> list[FoundTable]:
    kind, source = request.kind, request.source
    shelf, known = kinds.load(), catalogs()
    if kind in shelf and (kind not in known or is_place(source)):
        return shelf[kind].read(source)
    if kind not in known:
        words = list(dict.fromkeys([*shelf, *known]))
        hint = nearest(kind, words)
        raise UsageError(
            f"dq import knows no {kind!r}.",
            f"Did you mean {hint}?" if hint else f"It knows {', '.join(words)}.",
        )
    database, _, name = source.partition(".")
    catalog = opened(world, world.store(), kind, request.role_arn, request.catalog_id)
    if name:
        live = catalog.read(database.lower(), name.lower())
        found = [] if live is None else [_with_partitions(catalog, live.spec)]
    else:
        found = [of_spec(one.spec) for one in catalog.tables(database.lower())]
    if not found:
        raise UsageError(f"the catalog {kind} has no table {source}.", "Write database.table, or a database.")
    return found


def _with_partitions(catalog: Catalog, spec: TableSpec) -> FoundTable:
    """The table, and a word on partitions that who reads its folder does not find."""
    table, below = of_spec(spec), f"{fold_location(spec.location)}/"
    if not spec.partitions or spec.format in OPEN_FORMATS:
        return table
    beside = [
        one
        for one in catalog.partitions(spec.database, spec.name)
        if not fold_location(one.location).startswith(below)
    ]
    if not beside:
        return table
    first, verb = beside[0], "does" if len(beside) == 1 else "do"
    said = (
        f"{counted(len(beside), 'partition')} {verb} not lie below the table, e.g."
        f" {partition_folder(first.values)} at {first.location}"
    )
    return replace(table, lost=(*table.lost, said))
