"""`dq.import_`: generate the contract of an existing table."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dq.contracts.layout import Layout, parse_layout, partition_folder
from dq.contracts.outcome import DqError, UsageError, ValueProblem, nearest, pluralize
from dq.lake.storage import files_below
from dq.operations.runtime.context import RuntimeContext, call_context
from dq.operations.runtime.spark import open_named_catalog
from dq.registry.catalog import Catalog
from dq.registry.catalogs import catalogs
from dq.registry.importing import ImportedTable, ImportKind, kinds
from dq.registry.importing.contract_text import ContractHead, contract_text, identifier
from dq.registry.importing.sources import is_table_location, layout_of_partitions, table_from_spec
from dq.registry.table import OPEN_FORMATS, TableSpec, fold_location


@dataclass(frozen=True, slots=True)
class ImportRequest:
    """Source of an import, and further values of its contract.

    `kind` is parquet, csv, json, sql, dbt, dcs, jsonschema, avro, iceberg or delta, or of a catalog hive,
    glue, iceberg or local. `source` is a file, folder or URI; in a catalog: database, or database.table.
    `objects` selects tables, by default all; `id` is the table's name by default.
    """

    kind: str
    source: str
    objects: tuple[str, ...] = ()
    id: str = ""
    domain: str = ""
    owner: str = ""
    role_arn: str = ""
    catalog_id: str = ""
    layout: str = ""


@dataclass(frozen=True, slots=True)
class ImportOutcome:
    """Imported tables, and the text of their contract."""

    tables: tuple[ImportedTable, ...]
    text: str

    @property
    def columns(self) -> int:
        """Number of columns in all tables, including partition columns."""
        return sum(len(table.columns) + len(table.partitions) for table in self.tables)

    @property
    def losses(self) -> tuple[str, ...]:
        """Content of the source that a contract cannot express."""
        several = len(self.tables) > 1
        table_losses = [
            f"{table.name}: {loss}" if several else loss
            for table in self.tables
            for loss in table.unsupported
        ]
        return (*self.tables[0].metadata.unsupported, *table_losses)


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
    layout: str = "",
    folder: Path | str | None = None,
) -> ImportOutcome:
    """Return the contract of an existing table, as `dq import` does; nothing is written.

    The arguments are those of `ImportRequest`. `folder` replaces the working folder, which has settings and
    store; paths of the source are relative to the process's working folder.

    Raises UsageError for an unknown kind or table and a table without columns, ReadError for a source that
    cannot be read, and MissingTool if a required package is not installed.
    """
    context, _ = call_context(None, folder)
    request = ImportRequest(
        kind, str(source), tuple(objects), id, domain, owner, role_arn, catalog_id, layout
    )
    return build_contract(request, read_tables(context, request))


def kind_names() -> list[str]:
    """Return the ids of all kinds: of files first, then of catalogs."""
    return list(dict.fromkeys([*kinds.load(), *catalogs()]))


def require_kind(kind: str) -> None:
    """Raise UsageError for an unknown kind."""
    names = kind_names()
    if kind not in names:
        suggestion = nearest(kind, names)
        raise UsageError(
            f"unknown import source {kind!r}.",
            f"Did you mean {suggestion}?" if suggestion else f"Supported: {', '.join(names)}.",
        )


def correct_arguments(kind: str, source: str | None) -> tuple[str | None, str] | None:
    """Return kind and source if a path was passed as the kind, otherwise None.

    The kind is `source` if the two are swapped, or is guessed by the names of the files; None if unknown.
    """
    known_kinds = kind_names()
    if kind in known_kinds or not ("/" in kind or os.sep in kind or Path(kind).exists()):
        return None
    return (source if source in known_kinds else _guess_kind(kind)), kind


def _guess_kind(source: str) -> str | None:
    """Return the kind whose files lie at this location; folders of a table format precede names of files."""
    try:
        paths = [f"/{path}" for path in files_below(source)]
    except DqError:
        return None
    matches = [
        (sign.endswith("/"), len(sign), kind.id)
        for kind in kinds.load().values()
        for sign in kind.signs
        if any(f"/{sign}" in path if sign.endswith("/") else path.lower().endswith(sign) for path in paths)
    ]
    return max(matches)[2] if matches else None


def read_tables(context: RuntimeContext, request: ImportRequest) -> list[ImportedTable]:
    """Read the requested tables of the source. Raises as `import_`."""
    source_tables = _tables(context, request)
    tables = _select_tables(request.source, source_tables, request.objects)
    for table in tables:
        if not table.columns:
            raise UsageError(
                f"{request.source}: {table.name} has no columns.", "Choose a table with columns."
            )
    return tables


def build_contract(request: ImportRequest, tables: Sequence[ImportedTable]) -> ImportOutcome:
    """Return the contract of these tables."""
    source_id = (
        str(tables[0].metadata.odcs_keys.get("id") or "") if len(tables) > 1 or not request.objects else ""
    )
    name = request.id or source_id or identifier(tables[0].name)
    head = ContractHead(name, request.domain, request.owner, f"{request.kind} {request.source}")
    return ImportOutcome(tuple(tables), contract_text(head, tables))


def _select_tables(source: str, tables: list[ImportedTable], names: Sequence[str]) -> list[ImportedTable]:
    """Return the tables with these names, in source order, or all if no names are given."""
    table_names = [table.name for table in tables]
    for name in names:
        if name not in table_names:
            suggestion = nearest(name, table_names)
            hint = f"Did you mean {suggestion}?" if suggestion else f"Tables: {', '.join(table_names[:20])}."
            raise UsageError(f"{source} has no table {name!r}.", hint)
    return [table for table in tables if not names or table.name in names]


def _tables(context: RuntimeContext, request: ImportRequest) -> list[ImportedTable]:
    kind, source = request.kind, request.source
    file_kinds, catalog_kinds = kinds.load(), catalogs()
    if kind in file_kinds and (kind not in catalog_kinds or is_table_location(source)):
        return file_kinds[kind].read(source, *_layout(request, file_kinds[kind]))
    require_kind(kind)
    # Names of nested namespaces have dots.
    database, _, name = source.rpartition(".") if "." in source else (source, "", "")
    catalog = open_named_catalog(context, context.store(), kind, request.role_arn, request.catalog_id)
    if name:
        live = catalog.read(database.lower(), name.lower())
        tables = [] if live is None else [_with_partitions(catalog, live.spec)]
    else:
        tables = [table_from_spec(table.spec) for table in catalog.tables(database.lower())]
    if not tables:
        raise UsageError(f"the catalog {kind} has no table {source}.", "Use DATABASE.TABLE, or DATABASE.")
    return tables


def _layout(request: ImportRequest, kind: ImportKind) -> tuple[Layout, ...]:
    """Return the requested layout as further arguments of the kind's `read`. Raises UsageError."""
    if not request.layout:
        return ()
    if not kind.takes_layout:
        raise UsageError(f"--layout has no effect on {kind.id}.", "It describes folders of files.")
    layout = parse_layout(request.layout)
    if isinstance(layout, ValueProblem):
        raise UsageError(f"--layout: {layout.message}", layout.hint)
    return (layout,)


def _with_partitions(catalog: Catalog, spec: TableSpec) -> ImportedTable:
    """Return the table with the layout of its partitions, and a loss for those outside of its folder."""
    table, table_prefix = table_from_spec(spec), f"{fold_location(spec.location)}/"
    if not spec.partitions or spec.format in OPEN_FORMATS:
        return table
    folders = [
        (partition, fold_location(partition.location))
        for partition in catalog.partitions(spec.database, spec.name)
    ]
    inside = [
        (partition.values, folder.removeprefix(table_prefix))
        for partition, folder in folders
        if folder.startswith(table_prefix)
    ]
    layout = layout_of_partitions(inside)
    table = replace(table, layout=layout.template)
    unnamed = [folder for _, folder in inside if not layout and "=" not in folder]
    if unnamed:
        message = f"the folders of the partitions do not follow one layout, e.g. {spec.location}/{unnamed[0]}"
        table = replace(table, unsupported=(*table.unsupported, message))
    outside = [partition for partition, folder in folders if not folder.startswith(table_prefix)]
    if not outside:
        return table
    first, verb = outside[0], "is" if len(outside) == 1 else "are"
    message = (
        f"{pluralize(len(outside), 'partition')} {verb} outside the table's folder, e.g."
        f" {partition_folder(first.values)} at {first.location}"
    )
    return replace(table, unsupported=(*table.unsupported, message))
