"""One delivery published, and consumers told of it: what the command and the Python door share."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import Connection

from dq.cli.publishing.places import notifiers
from dq.cli.world.catalogs import opened
from dq.cli.world.environment import World, located
from dq.contracts.access.data_location import other_servers, resolve, server_of
from dq.contracts.model import Contract, SchemaObject
from dq.contracts.shared.outcome import DqError, Undeliverable, UsageError
from dq.dataquality.delivery.cycle import label
from dq.dataquality.delivery.receipts import is_written, write_count, write_receipt
from dq.registry.publishing.notices import tell, unsent
from dq.registry.publishing.publication import DeliveryEvent, Publication, publication
from dq.registry.publishing.publish import Published, ReceiptBook, publish
from dq.registry.table import TableSpec
from dq.registry.table_specs import specs


@dataclass(frozen=True, slots=True)
class CatalogChoice:
    """The catalog that is published to, by its id on the shelf; in AWS as which role and of which account."""

    name: str = "local"
    role_arn: str = ""
    catalog_id: str = ""


@dataclass(frozen=True, slots=True)
class PublishRequest:
    """What was delivered; see `registry.publishing.publish` for `redelivery` and `run`.

    `folder` is where its files lie, where that is not below the table's place as Hive would have it.
    """

    partition: Mapping[str, str]
    cycle: datetime | None = None
    rows: int | None = None
    server: str | None = None
    redelivery: bool = False
    run: str = ""
    folder: str | None = None


@dataclass(frozen=True, slots=True)
class Delivered:
    """What was done, and the places that have not taken the notice, each with the reason."""

    published: Published
    unsent: tuple[tuple[str, str], ...]

    @property
    def event(self) -> DeliveryEvent:
        """What consumers hear."""
        return self.published.event

    def raise_for_status(self) -> None:
        """Raises Undeliverable when consumers could not be told yet; the delivery stays published."""
        problem = self.problem()
        if problem is not None:
            raise problem

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
    with closing(world.store()) as store:
        catalog = opened(world, store, choice.name, choice.role_arn, choice.catalog_id)
        delivery = delivery_of(world, contract, one, given, choice.name, catalog.id)
        # Without a marker, nothing is written or looked for there.
        linked = world.reach.leads_out(delivery.folder) if delivery.marker else None
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


def delivery_of(
    world: World,
    contract: Contract,
    one: SchemaObject,
    given: PublishRequest,
    catalog_name: str,
    catalog_id: str,
) -> Publication:
    """What is delivered, with its identity in the catalog of this id. Raises UsageError as `publication`."""
    server = server_of(contract, given.server)
    return publication(
        contract,
        one,
        table_spec(world, contract, one, server.server, catalog_name),
        server=server.server,
        environment=server.environment or "",
        catalog=catalog_id,
        partition=given.partition,
        cycle=given.cycle,
        rows=given.rows,
        folder=given.folder,
        other_locations=_other_locations(world, contract, one, server.server, catalog_name),
    )


def _other_locations(
    world: World, contract: Contract, one: SchemaObject, server: str, catalog: str
) -> dict[str, str]:
    """Locations of the object's table on the contract's other servers, of those that can be resolved."""
    locations = {}
    for name in sorted(other_servers(contract, server)):
        with suppress(DqError):
            locations[name] = table_spec(world, contract, one, name, catalog).location
    return locations


def table_spec(
    world: World, contract: Contract, one: SchemaObject, server: str | None, catalog: str
) -> TableSpec:
    """The object's table as this catalog should have it."""
    made = specs(contract, lambda each: located(world, resolve(contract, each, server, world.reach), catalog))
    return next(table for table, each in zip(made, contract.objects, strict=True) if each is one)


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
        server=one.server,
    )


RECEIPTS = ReceiptBook(is_written, _write, write_count)
