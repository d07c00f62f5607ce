"""dq import"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import typer

from dq.cli import output
from dq.cli.context import ACCOUNT, ROLE, note
from dq.contracts.access.files import create
from dq.contracts.escaping import shell_word
from dq.contracts.outcome import UsageError, pluralize
from dq.contracts.yaml.portable import commented
from dq.operations.import_ import (
    ImportRequest,
    build_contract,
    correct_arguments,
    kind_names,
    read_tables,
    require_kind,
)
from dq.operations.registry_files import load
from dq.operations.runtime.context import runtime_context
from dq.registry.importing import ImportedTable
from dq.registry.importing.drift import differences


def command(
    kind: str = typer.Argument(
        help="parquet, csv, json, sql, dbt, dcs, jsonschema, avro, iceberg or delta; "
        "of a catalog hive, glue, iceberg or local."
    ),
    source: str = typer.Argument(
        None, help="File, folder or URI; for a catalog: DATABASE or DATABASE.TABLE."
    ),
    file: Path = typer.Option(None, "--output", "-o", help="Output file (default: stdout)."),
    object: list[str] = typer.Option([], "--object", help="Only this table; repeatable."),
    id: str = typer.Option("", "--id", help="Contract id (default: the table's name)."),
    domain: str = typer.Option("", "--domain", help="Owning domain."),
    owner: str = typer.Option("", "--owner", help="Owner."),
    layout: str = typer.Option(
        "",
        "--layout",
        help="Folders of partitions below the source, e.g. '{hour:%Y/%m/%d/%H}' (default: a guess).",
    ),
    role_arn: str = ROLE,
    catalog_id: str = ACCOUNT,
) -> None:
    """Create a contract from an existing table.

    A folder of partitions is one table. Declared types and constraints are taken over; inferred values
    have a comment with the evidence. An existing contract is not changed; the differences are shown.

    Exit codes: 0 written, or no differences, 1 the source differs from the existing contract, 2 invalid
    options, 3 the source could not be read.

    Example: dq import parquet lake/orders --output registry/orders.odcs.yaml --owner ana@example.com
    """
    options = {
        "--output": [] if file is None else [str(file)],
        "--object": object,
        "--id": [id],
        "--domain": [domain],
        "--owner": [owner],
        "--role-arn": [role_arn],
        "--catalog-id": [catalog_id],
    }
    source = _require_kind_and_source(kind, source, options)
    context = runtime_context()
    request = ImportRequest(kind, source, tuple(object), id, domain, owner, role_arn, catalog_id, layout)
    tables = read_tables(context, request)
    if file is not None and os.path.lexists(file):
        raise typer.Exit(_compare(file, tables))
    outcome = build_contract(request, tables)
    if file is None:
        output.block(outcome.text.rstrip("\n"))
        return
    # The registry folder may not exist yet.
    file.parent.mkdir(parents=True, exist_ok=True)
    create(file, outcome.text.encode())
    output.line(f"Wrote {file}: {pluralize(outcome.columns, 'column')} of {pluralize(len(tables), 'table')}.")
    for loss in outcome.losses:
        output.note(f"Not in the contract: {commented(loss)}.")
    if table_folder := _table_folder(source):
        output.note(
            f"{source} is one partition, so its partition columns are not in the contract. The whole table:"
            f" dq import {kind} {shell_word(table_folder)}"
        )
    output.line("Next: review inferred values, add delivery SLOs, set 'status: active', then run")
    output.line(f"  dq validate {shell_word(str(file))}")


def _table_folder(source: str) -> str | None:
    """Return the folder of the table if the source is one of its Hive partitions, otherwise None."""
    match = re.fullmatch(r"(.*?)(/[^/=]+=[^/=]*)+/?", source)
    return match[1] if match else None


def _require_kind_and_source(kind: str, source: str | None, options: Mapping[str, Sequence[str]]) -> str:
    """Return the source. Raises UsageError if it is missing, or with the right command for a path as kind."""
    corrected = correct_arguments(kind, source)
    if corrected is not None:
        right_kind, path = corrected
        words = [path]
        for name, values in options.items():
            for value in filter(None, values):
                words += [name, value]
        hint = f"Run: dq import {right_kind or 'KIND'} {' '.join(map(shell_word, words))}"
        kinds = "" if right_kind else f", where KIND is {', '.join(kind_names())}."
        raise UsageError(f"{path} is a path; the kind of source comes first.", f"{hint}{kinds}")
    require_kind(kind)
    if source is None:
        hint = f"Pass a file, folder or URI after the kind, e.g. dq import {kind} lake/orders."
        raise UsageError("missing source.", hint)
    return source


def _compare(file: Path, tables: Sequence[ImportedTable]) -> int:
    loaded = load([file], note)
    output.notes(loaded.findings)
    if not loaded.contracts:
        raise UsageError(
            f"{file} already exists and is not a readable contract; nothing was compared.",
            "Fix the problems above, or choose another --output.",
        )
    differing = differences(loaded.contracts[0], tables)
    for line in differing:
        output.line(f"  {line}")
    output.line(
        f"{file} was not changed: {pluralize(len(differing), 'difference')}."
        if differing
        else f"{file} matches its source; it was not changed."
    )
    return 1 if differing else 0
