"""One delivery published, and consumers told of it: what the command and the Python door share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import Connection

from dq.cli.publishing.places import notifiers
from dq.cli.world.catalogs import opened
from dq.cli.world.environment import World, located
from dq.contracts.access.data_location import resolve, server_of
from dq.contracts.model import Contract, SchemaObject
from dq.contracts.shared.errors import Undeliverable, UsageError
from dq.dataquality.delivery.sources.probe import label
from dq.dataquality.delivery.state.receipts import is_written, write_receipt
from dq.registry.publishing.notices import unsent
from dq.registry.publishing.publication import DeliveryEvent, publication
from dq.registry.publishing.publish import Published, ReceiptBook, publish
from dq.registry.publishing.tell import tell
from dq.registry.specify import specs


@dataclass(frozen=True, slots=True)
class CatalogChoice:
    """The catalog that is published to, by its id on the shelf; in AWS as which role and of which account."""

    name: str = "local"
    role_arn: str = ""
    catalog_id: str = ""


@dataclass(frozen=True, slots=True)
class PublishRequest:
    """What was delivered; see `registry.publishing.publish` for `redelivery` and `run`."""

    partition: Mapping[str, str]
    cycle: datetime | None = None
    rows: int | None = None
    server: str | None = None
    redelivery: bool = False
    run: str = ""


@dataclass(frozen=True, slots=True)
class Delivered:
    """What was done, and the places that have not taken the notice, each with the reason."""

    published: Published
    unsent: tuple[tuple[str, str], ...]

    def problem(self) -> Undeliverable | None:
        """Why consumers do not know of it yet, if so."""
        if not self.unsent:
            return None
        reasons = "; ".join(reason or f"{place} was not asked" for place, reason in self.unsent)
        return Undeliverable(
            f"Published, and consumers are not told yet: {reasons}",
            "The notice waits. The next 'dq publish' sends it, and so does 'dq publish --pending'.",
        )


def deliver(
    world: World, contract: Contract, one: SchemaObject, given: PublishRequest, choice: CatalogChoice
) -> Delivered:
    """Publishes a delivery of the object and tells its consumers.

    Raises UsageError where contract, server or partition do not fit, Unreadable where catalog or files do not
    answer. What consumers' places do not take waits, and is no error here.
    """
    server = server_of(contract, given.server)
    made = specs(
        contract,
        lambda each: located(world, resolve(contract, each, server.server, world.reach), choice.name),
    )
    spec = next(table for table, each in zip(made, contract.objects, strict=True) if each is one)
    store = world.store()
    catalog = opened(world, store, choice.name, choice.role_arn, choice.catalog_id)
    delivery = publication(
        contract,
        one,
        spec,
        server=server.server,
        environment=server.environment or "",
        catalog=catalog.id,
        partition=given.partition,
        cycle=given.cycle,
        rows=given.rows,
    )
    linked = world.reach.leads_out(delivery.folder)
    if linked is not None:
        raise UsageError(f"{contract.file}: {delivery.folder} {linked.message}.", linked.mend)
    places = notifiers(world, contract)
    done = publish(
        delivery,
        catalog=catalog,
        store=store,
        now=world.now(),
        receipts=RECEIPTS,
        targets=tuple(places),
        redelivery=given.redelivery,
        run=given.run,
    )
    tell(store, places, lambda: datetime.now(UTC), event_id=done.event.id)
    with store.read() as tx:
        return Delivered(done, tuple(unsent(tx, done.event.id)))


def _write(tx: Connection, event: DeliveryEvent) -> None:
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
        revision=event.revision,
    )


RECEIPTS = ReceiptBook(is_written, _write)
