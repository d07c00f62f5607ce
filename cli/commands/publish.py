"""dq publish"""

from __future__ import annotations

from pathlib import Path

import typer
from sqlalchemy import Connection

from dq.cli.loading.contracts import chosen, load
from dq.cli.terminal import output
from dq.cli.world.catalogs import ACCOUNT, CATALOG, ROLE, opened
from dq.cli.world.environment import here, instant, located
from dq.contracts.access.data_location import resolve
from dq.contracts.access.hive_path import partition_folder
from dq.contracts.shared.errors import UsageError
from dq.dataquality.delivery.sources.probe import label
from dq.dataquality.delivery.state.receipts import write_receipt
from dq.registry.publishing.notify import JsonLines
from dq.registry.publishing.partition import given_once
from dq.registry.publishing.publication import DeliveryEvent, publication
from dq.registry.publishing.publish import publish
from dq.registry.specify import specs

NOTICES = "published.jsonl"


def command(
    contract: Path = typer.Argument(help="The contract's file."),
    partition: list[str] = typer.Option(
        [], "--partition", help="What was delivered, such as day=2026-11-20."
    ),
    object: str = typer.Option(None, "--object", help="Which object, where the contract has several."),
    cycle: str = typer.Option(
        None, "--cycle", help="The due instant that it is for; needed without partitions."
    ),
    rows: int = typer.Option(None, "--rows", min=0, help="How many rows it has, if known."),
    server: str = typer.Option(None, "--server", help="The server, where the contract has several."),
    catalog: str = CATALOG,
    role_arn: str = ROLE,
    catalog_id: str = ACCOUNT,
    as_of: str = output.AS_OF,
    format: output.Format = output.FORMAT,
) -> None:
    """Say that a delivery is complete: partition, marker, receipt, and a word to consumers, once each.

    Run it after the data is written. A run that was killed is finished by the next one, and a second run
    changes nothing. Consumers are told in .dq/published.jsonl.

    Exit codes: 0 published (now or before), 2 the partition does not fit, 3 the catalog or the files
    cannot be reached, 4 consumers could not be told.

    Example: dq publish flights.odcs.yaml --partition flight_date=2026-11-20 --rows 912
    """
    world = here(as_of, [contract])
    document, one = chosen(load([contract]), object)
    store = world.store()
    tables = specs(
        document, lambda each: located(world, resolve(document, each, server, world.reach), catalog)
    )
    spec = next(table for table, each in zip(tables, document.objects, strict=True) if each is one)
    delivery = publication(
        document, one, spec, partition=_pairs(partition), cycle=instant(cycle) if cycle else None, rows=rows
    )
    linked = world.reach.leads_out(delivery.folder)
    if linked is not None:
        raise UsageError(f"{contract}: {delivery.folder} {linked.message}.", linked.mend)
    done = publish(
        delivery,
        catalog=opened(world, store, catalog, role_arn, catalog_id),
        store=store,
        now=world.now(),
        receipt=_receipt,
        notify=JsonLines(world.state() / NOTICES),
    )
    if format is output.Format.JSON:
        output.as_json({**done.event.as_json(), "done": list(done.done)})
    else:
        what = partition_folder(delivery.values) or "the snapshot"
        did = ", ".join(done.done) or "nothing, it was published before"
        output.line(f"{document.id} {what}: {did}.")


def _receipt(tx: Connection, event: DeliveryEvent) -> None:
    one = event.publication
    write_receipt(
        tx,
        id=event.id,
        contract=one.key,
        object=one.object,
        partition=label(one.values),
        due_at=one.cycle,
        delivered_at=event.at,
        rows=one.rows,
        version=one.contract_version,
    )


def _pairs(texts: list[str]) -> dict[str, str]:
    pairs = []
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise UsageError(f"--partition {text!r} is not of the form key=value.", "Write day=2026-11-20.")
        pairs.append((key, value))
    return given_once(pairs)
