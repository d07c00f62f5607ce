"""dq publish"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import typer

from dq.cli import check_output, output
from dq.cli.context import ACCOUNT, CATALOG, ROLE, key_value
from dq.contracts.layout import partition_folder
from dq.contracts.model import Contract, SchemaObject
from dq.contracts.outcome import UsageError, pluralize
from dq.operations.publish import (
    Audited,
    CatalogChoice,
    Delivered,
    PublishRequest,
    parse_group_counts,
    publish_delivery,
    send_pending,
)
from dq.operations.registry_files import load, select_object
from dq.operations.runtime.context import RuntimeContext, parse_instant, runtime_context
from dq.registry.publications import values_by_key


def command(
    contract: Path = typer.Argument(None, help="Contract file."),
    partition: list[str] = typer.Option([], "--partition", help="Delivered partition, e.g. day=2026-11-20."),
    object: str = typer.Option(None, "--object", help="Object to publish if the contract has more than one."),
    cycle: str = typer.Option(
        None, "--cycle", help="Due time of the delivery; required for tables without partitions."
    ),
    rows: int = typer.Option(None, "--rows", min=0, help="Number of rows, if known."),
    rows_by: list[str] = typer.Option(
        [],
        "--rows-by",
        metavar="COLUMN:VALUE=N,…",
        help="Number of rows of each value of a column, which add up to --rows, e.g. region:eu=600,us=400. "
        "NULL is NULL; quote a value with comma, equals sign or quotes as in SQL. Repeatable.",
    ),
    redelivery: bool = typer.Option(
        False, "--redelivery", help="The partition was rewritten: make a new revision and notify consumers."
    ),
    run: str = typer.Option(
        "", "--run", help="Run id of the scheduler; a retried --redelivery counts once per run id."
    ),
    pending: bool = typer.Option(False, "--pending", help="Publish nothing; send pending notices."),
    audit: str = typer.Option(
        None,
        "--audit",
        metavar="STAGED",
        help="Check the staged data first, and publish it only if it meets the contract: a folder with the "
        "partition below it, or a branch of an Iceberg table.",
    ),
    server: str = typer.Option(None, "--server", help="Server to use if the contract has more than one."),
    catalog: str = CATALOG,
    role_arn: str = ROLE,
    catalog_id: str = ACCOUNT,
    as_of: str = output.AS_OF,
    format: output.ResultFormat = output.RESULT_FORMAT,
) -> None:
    """Publish a delivery: add the partition, write marker and receipt, notify consumers.

    Run it after the data is written. Idempotent: a killed run is completed by the next one, and a
    repeated run verifies partition, marker and receipt and restores what is missing. A different --rows
    or --rows-by, or --redelivery, makes a new revision and notifies consumers. Notices that could not be
    sent are stored; the next publish or --pending sends them.

    Checks of the partition compare --rows and --rows-by with its rows: they are those of the whole
    partition after the delivery.

    With --audit, readers never see data that violates the contract: an Iceberg branch is fast-forwarded
    to main, or a staged folder becomes the partition's location in the catalog, only if the checks pass.

    Exit codes: 0 published, now or before, 1 the staged data violates the contract and was not published,
    2 the partition does not match the contract, 3 the contract has errors, the catalog or files are
    unreachable, or a clause could not be measured, 4 published, but some consumers could not be notified
    yet.

    Example: dq publish flights.odcs.yaml --partition flight_date=2026-11-20 --rows 912
    """
    if format is output.ResultFormat.OORS and audit is None:
        raise UsageError("--format oors needs --audit.", "Add --audit, or use --format json.")
    if pending:
        _send_pending(runtime_context(as_of), contract, format)
        return
    if contract is None:
        raise UsageError("no contract given.", "Pass a contract file, or --pending.")
    context = runtime_context(as_of, [contract])
    document, schema_object = select_object(load([contract], context.note), object)
    request = PublishRequest(
        values_by_key(key_value(text, "--partition", "day=2026-11-20") for text in partition),
        parse_instant(cycle) if cycle else None,
        rows,
        server,
        redelivery,
        run.strip(),
        rows_by=parse_group_counts(rows_by),
    )
    choice = CatalogChoice(catalog, role_arn, catalog_id)
    source = check_output.new_source("dq publish --audit", [document], server, context.now(), audit or "")

    def show_audit(audited: Audited) -> None:
        _show_audit(document, schema_object, request, audited, audit or "", format, source)

    done = publish_delivery(context, document, schema_object, request, choice, audit, show_audit)
    if format is output.ResultFormat.JSON:
        output.as_json(done.as_dict())
    else:
        write = output.line if format is output.ResultFormat.TEXT else output.note
        _show(document.id, done, done.repairs, write)
    done.raise_for_status()


def _show_audit(
    contract: Contract,
    schema_object: SchemaObject,
    request: PublishRequest,
    audited: Audited,
    staged: str,
    format: output.ResultFormat,
    source: check_output.Source,
) -> None:
    """Print the audit of the staged data; exits if the data violates the contract."""
    report = audited.report
    if format is output.ResultFormat.OORS:
        check_output.print_messages(
            check_output.messages(source, [report])
            if report is not None
            else [check_output.already_published(source, contract, schema_object, request.partition)]
        )
    if audited.exit_code:
        if report is not None and format is not output.ResultFormat.OORS:
            check_output.print_reports([report], [], format, source)
        output.note(f"dq: {audited.refusal(staged)}")
        raise typer.Exit(audited.exit_code)


def _send_pending(context: RuntimeContext, contract: Path | None, format: output.ResultFormat) -> None:
    if contract is not None:
        raise UsageError("--pending sends the notices of all contracts.", "Remove the contract.")
    outcome = send_pending(context)
    if format is output.ResultFormat.JSON:
        output.as_json(outcome.as_dict())
    else:
        waiting = sum(notices.number for notices in outcome.waiting)
        output.line(f"{outcome.sent} sent, {waiting} waiting.")
        for notices in outcome.waiting:
            since = f"{notices.since:%F %T}Z"
            output.line(f"  {notices.target}: {notices.number} since {since}. {notices.problem}")
    if outcome.exit_code:
        raise typer.Exit(outcome.exit_code)


def _show(contract: str, done: Delivered, repairs: Sequence[str], line: Callable[[str], None]) -> None:
    event = done.published.event
    delivery = partition_folder(event.publication.values) or "the snapshot"
    if event.revision > 1:
        delivery += f", revision {event.revision}"
        before, rows = event.previous_rows, event.publication.rows
        if before is not None and rows is not None:
            now = "as before" if rows == before else f"now {rows:,}"
            delivery += f" ({pluralize(before, 'row')}, {now})"
    actions = ", ".join(done.published.steps) or ("branch" if repairs else "nothing to do, published before")
    line(f"{contract} {delivery}: {actions}.")
    for sentence in repairs:
        line(f"  fixed: {sentence}.")
