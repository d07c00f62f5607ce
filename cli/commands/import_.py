"""dq import"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import typer

from dq.cli.context import here, note
from dq.cli.options import ACCOUNT, ROLE
from dq.cli.terminal import output
from dq.contracts.access.files import create
from dq.contracts.escaping import shell_word
from dq.contracts.shared.outcome import UsageError
from dq.contracts.shared.wording import counted, nearest
from dq.contracts.yaml.writing import commented
from dq.lake.paths import partition_folder
from dq.operations.registry_files import load
from dq.operations.runtime.context import World
from dq.operations.runtime.spark import opened
from dq.registry.catalog import Catalog
from dq.registry.catalogs import catalogs
from dq.registry.importing import kinds
from dq.registry.importing.comparison import differences
from dq.registry.importing.contract_text import Imported, contract_text, identifier
from dq.registry.importing.model import FoundTable
from dq.registry.importing.sources import is_place, of_spec
from dq.registry.table import OPEN_FORMATS, TableSpec, fold_location


def command(
    kind: str = typer.Argument(
        help="parquet, csv, json, sql, dbt, dcs, jsonschema, avro, iceberg or delta; "
        "of a catalog hive, glue, iceberg or local."
    ),
    source: str = typer.Argument(help="A file, folder or URI; in a catalog: database, or database.table."),
    file: Path = typer.Option(None, "--output", "-o", help="Where to write it; the terminal by default."),
    object: list[str] = typer.Option([], "--object", help="Only this table of several; may be repeated."),
    id: str = typer.Option("", "--id", help="The contract's id; the table's name by default."),
    domain: str = typer.Option("", "--domain", help="Domain that owns it."),
    owner: str = typer.Option("", "--owner", help="Who answers for it."),
    role_arn: str = ROLE,
    catalog_id: str = ACCOUNT,
) -> None:
    """Write the contract of a table that exists.

    A folder of partitions is one table. What the source declares is taken over; what is guessed says on
    what it stands. Where the file is there already, it is left as it is, and what differs is shown.

    Exit codes: 0 written, or nothing differs, 1 the source differs from the file that is there, 2 a mistake,
    3 the source cannot be read.

    Example: dq import parquet lake/orders --output registry/orders.odcs.yaml --owner ana@example.com
    """
    world = here()
    tables = _chosen(source, _tables(world, kind, source, role_arn, catalog_id), object)
    for table in tables:
        if not table.columns:
            raise UsageError(f"{source}: {table.name} has no column.", "Name a table that has some.")
    if file is not None and os.path.lexists(file):
        raise typer.Exit(_compared(file, tables))
    own = str(tables[0].whole.said.get("id") or "") if len(tables) > 1 or not object else ""
    head = Imported(id or own or identifier(tables[0].name), domain, owner, f"{kind} {source}")
    text = contract_text(head, tables)
    if file is None:
        output.block(text.rstrip("\n"))
        return
    # The first contract of a registry is often its first file.
    file.parent.mkdir(parents=True, exist_ok=True)
    create(file, text.encode())
    count = sum(len(table.columns) + len(table.partitions) for table in tables)
    output.line(f"Wrote {file}: {counted(count, 'column')} of {counted(len(tables), 'table')}.")
    for one in tables[0].whole.lost:
        output.note(f"The source says more: {commented(one)}.")
    for name, one in ((table.name, lost) for table in tables for lost in table.lost):
        told = f"{name}: {one}" if len(tables) > 1 else one
        output.note(f"The source says more: {commented(told)}.")
    output.line("Next: read what is guessed, say what is promised, make it 'status: active', then run")
    output.line(f"  dq validate {shell_word(str(file))}")


def _chosen(source: str, tables: list[FoundTable], names: Sequence[str]) -> list[FoundTable]:
    """The tables that are named, in the order of the source; all where none is."""
    known = [table.name for table in tables]
    for name in names:
        if name not in known:
            hint = nearest(name, known)
            mend = f"Did you mean {hint}?" if hint else f"It has {', '.join(known[:20])}."
            raise UsageError(f"{source} has no table {name!r}.", mend)
    return [table for table in tables if not names or table.name in names]


def _tables(world: World, kind: str, source: str, role: str, account: str) -> list[FoundTable]:
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
    catalog = opened(world, world.store(), kind, role, account)
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


def _compared(file: Path, tables: Sequence[FoundTable]) -> int:
    loaded = load([file], note)
    output.notes(loaded.findings)
    if not loaded.contracts:
        raise UsageError(
            f"{file} is there already, and it is no contract that can be read: nothing is compared.",
            "Mend what is said above, or name another --output.",
        )
    found = differences(loaded.contracts[0], tables)
    for line in found:
        output.line(f"  {line}")
    output.line(
        f"{file} is left as it is: {counted(len(found), 'difference')}."
        if found
        else f"{file} says what its source says; it is left as it is."
    )
    return 1 if found else 0
