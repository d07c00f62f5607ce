"""dq publish"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dq.cli import check_output, output
from dq.cli.context import ACCOUNT, CATALOG, ROLE
from dq.contracts.model import Contract, SchemaObject
from dq.contracts.outcome import UsageError, counted
from dq.lake.storage import partition_folder
from dq.operations import publish
from dq.operations.openlineage import recording
from dq.operations.publish import audit as audit_staged
from dq.operations.registry_files import chosen, load
from dq.operations.runtime.context import World, here, instant
from dq.registry.publications import given_once

if TYPE_CHECKING:
    from dq.operations.openlineage_events import Recording


def command(
    contract: Path = typer.Argument(None, help="Contract file."),
    partition: list[str] = typer.Option([], "--partition", help="Delivered partition, e.g. day=2026-11-20."),
    object: str = typer.Option(None, "--object", help="Object to publish if the contract has more than one."),
    cycle: str = typer.Option(
        None, "--cycle", help="Due time of the delivery; required for tables without partitions."
    ),
    rows: int = typer.Option(None, "--rows", min=0, help="Number of rows, if known."),
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
        help="Check first what is staged, and publish it only if it keeps the contract: a folder with the "
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
    or --redelivery makes a new revision, of which consumers are notified. Notices that could not be sent
    are stored; the next publish or --pending sends them.

    With --audit, readers never see data that violates the contract: an Iceberg branch is fast-forwarded
    to main, or a staged folder becomes the partition's location in the catalog, only if the checks pass.

    Exit codes: 0 published, now or before, 1 the staged data violates the contract and was not published,
    2 the partition does not match the contract, 3 the contract has errors, the catalog or files are
    unreachable, or a clause could not be measured, 4 published, but some consumers could not be notified
    yet.

    Example: dq publish flights.odcs.yaml --partition flight_date=2026-11-20 --rows 912
    """
    if format is output.ResultFormat.OORS and audit is None:
        raise UsageError("--format oors tells what an audit found.", "Add --audit, or write --format json.")
    if pending:
        _send_pending(here(as_of), contract, format)
        return
    if contract is None:
        raise UsageError("Which contract's delivery?", "Name its file, or write --pending.")
    world = here(as_of, [contract])
    document, one = chosen(load([contract], world.note), object)
    given = publish.PublishRequest(
        _pairs(partition), instant(cycle) if cycle else None, rows, server, redelivery, run.strip()
    )
    choice = publish.CatalogChoice(catalog, role_arn, catalog_id)
    mended: tuple[str, ...] = ()
    source = check_output.source("dq publish --audit", [document], server, world.now(), audit or "")
    with recording(world, [document], server) as events:
        if audit is not None:
            found = _audited(world, document, one, given, choice, audit, format, source, events)
            given, mended = found.request, found.mended
        done = publish.deliver(world, document, one, given, choice)
        if events and done.published.done:
            event = done.published.event
            events.published(document, one, event.id, event.publication.rows, audit)
    mended += done.published.mended
    if format is output.ResultFormat.JSON:
        output.as_json(
            {
                **done.published.event.as_json(),
                "done": list(done.published.done),
                "mended": list(mended),
                "waiting": [place for place, _ in done.unsent],
            }
        )
    else:
        _show(document.id, done, mended, output.line if format is output.ResultFormat.TEXT else output.note)
    done.raise_for_status()


def _audited(
    world: World,
    contract: Contract,
    one: SchemaObject,
    given: publish.PublishRequest,
    choice: publish.CatalogChoice,
    staged: str,
    format: output.ResultFormat,
    source: check_output.Source,
    events: Recording | None,
) -> publish.Audited:
    """What is staged, to be published; ends the command where that breaks the contract."""
    with nullcontext() if events is None else events.audited(contract, one, given.partition, staged) as ended:
        found = audit_staged(world, contract, one, given, choice, staged)
        if ended is not None:
            ended(found.report)
    if format is output.ResultFormat.OORS:
        said = (
            check_output.messages(source, [found.report])
            if found.report
            else [check_output.not_judged_again(source, contract, one, given.partition)]
        )
        check_output.show(said)
    if found.exit_code:
        assert found.report is not None
        if format is not output.ResultFormat.OORS:
            check_output.reports([found.report], [], format, source)
        verdict = "breaks the contract" if found.exit_code == 1 else "could not be judged"
        if found.live:
            output.note(
                f"dq: what is staged in {staged} {verdict}, and readers see it: nobody audited it before."
            )
        else:
            output.note(f"dq: nothing is published: what is staged in {staged} {verdict}, and stays there.")
        raise typer.Exit(found.exit_code)
    return found


def _send_pending(world: World, contract: Path | None, format: output.ResultFormat) -> None:
    if contract is not None:
        raise UsageError("--pending is of all contracts.", "Leave the contract out.")
    sent, left = publish.send_pending(world)
    if format is output.ResultFormat.JSON:
        output.as_json({"sent": sent, "waiting": [publish.as_row(one) for one in left]})
    else:
        output.line(f"{sent} sent, {sum(one.number for one in left)} waiting.")
        for one in left:
            output.line(f"  {one.target}: {one.number} since {one.since:%F %T}Z. {one.problem}")
    if left:
        raise typer.Exit(4)


def _show(contract: str, done: publish.Delivered, mended: Sequence[str], line: Callable[[str], None]) -> None:
    event = done.published.event
    what = partition_folder(event.publication.values) or "the snapshot"
    if event.revision > 1:
        what += f", revision {event.revision}"
        before, rows = event.previous_rows, event.publication.rows
        if before is not None and rows is not None:
            now = "as before" if rows == before else f"now {rows:,}"
            what += f" ({counted(before, 'row')}, {now})"
    did = ", ".join(done.published.done) or ("branch" if mended else "nothing, it was published before")
    line(f"{contract} {what}: {did}.")
    for sentence in mended:
        line(f"  mended: {sentence}.")


def _pairs(texts: list[str]) -> dict[str, str]:
    pairs = []
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise UsageError(f"--partition {text!r} is not of the form key=value.", "Write day=2026-11-20.")
        pairs.append((key, value))
    return given_once(pairs)
