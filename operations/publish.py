"""`dq.publish`: a delivery recorded, and the catalog's partition with it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import Connection

from dq.contracts.access.data_location import other_servers, resolve, server_of
from dq.contracts.model import Contract, SchemaObject
from dq.contracts.shared.install import needing
from dq.contracts.shared.outcome import DqError, Undeliverable, UsageError
from dq.contracts.yaml.parse import TEXT, read
from dq.dataquality.delivery.cycle import label
from dq.dataquality.delivery.cycle_store import is_written, write_count, write_receipt
from dq.dataquality.report import Report
from dq.dataquality.request import pick
from dq.operations.runtime.context import World, aware, here, located
from dq.operations.runtime.spark import opened
from dq.registry.publishing import notices
from dq.registry.publishing.notices import LEASE, JsonLines, Notifier, WaitingNotices, tell, unsent
from dq.registry.publishing.publication import DeliveryEvent, Publication, publication
from dq.registry.publishing.publish import Published, ReceiptBook
from dq.registry.publishing.publish import publish as publish_once
from dq.registry.table import TableSpec
from dq.registry.table_specs import specs

# The places at which consumers are told: the operator's topic of SNS, else a file in the state folder.

NOTICES = "published.jsonl"

_DOMAIN = "{domain}"
_NAME = "[A-Za-z0-9_-]+"


def notifiers(world: World, contract: Contract) -> dict[str, Notifier]:
    """Who tells the consumers of this contract, by place.

    Raises UsageError where the contract's domain is no part of a topic's name, MissingTool without boto3.
    """
    topic = world.settings.topic
    if not topic:
        return _file(world)
    domain = contract.domain or ""
    if _DOMAIN in topic and not re.fullmatch(_NAME, domain):
        raise UsageError(
            f"contract {contract.id!r}: its domain {domain!r} cannot stand in the name of a topic, {topic}.",
            "Write letters, digits, hyphens and underscores in 'domain'.",
            at=contract.at("domain"),
        )
    return {topic.replace(_DOMAIN, domain): _teller()}


def senders(world: World, places: Iterable[str]) -> dict[str, Notifier]:
    """Who sends to those of these places that are this folder's or the operator's; the others are left out.

    A store may be shared: what waits for a file of another machine is that machine's.
    """
    topic, files = world.settings.topic, _file(world)
    ours = re.escape(topic).replace(re.escape(_DOMAIN), _NAME)
    topics = [place for place in places if topic and re.fullmatch(ours, place)]
    return {place: files[place] for place in places if place in files} | (
        dict.fromkeys(topics, _teller()) if topics else {}
    )


def _teller() -> Notifier:
    with needing("A topic of SNS needs boto3", "aws"):
        from dq.registry.sns.topic import tell_topic
    return tell_topic


def _file(world: World) -> dict[str, Notifier]:
    path = world.state().absolute() / NOTICES
    return {f"file:{path}": JsonLines(path)}


# What consumers were not told yet, sent now.

_MOST = 100_000


_TAKEN = (
    "Another process took it; if that was killed, it goes out with what is published or sent after "
    f"{LEASE.seconds} seconds."
)
_FOREIGN = "Nobody here sends it: publish where it was published, or set the topic."


def send_pending(world: World) -> tuple[int, list[WaitingNotices]]:
    """Sends what waits and is sent from here; how many were taken, and what waits still, each with why."""
    store = world.store()
    with store.read() as tx:
        waiting = [one.target for one in notices.waiting(tx)]
    places = senders(world, waiting)
    sent = tell(store, places, lambda: datetime.now(UTC), most=_MOST)
    with store.read() as tx:
        left = notices.waiting(tx)
    return sent, [
        replace(one, problem=one.problem or (_TAKEN if one.target in places else _FOREIGN)) for one in left
    ]


def as_row(one: WaitingNotices) -> dict[str, object]:
    """What waits for a place, as JSON values."""
    return {
        "target": one.target,
        "events": one.number,
        "since": one.since.isoformat(),
        "problem": one.problem,
    }


# One delivery published, and consumers told of it: what the command and the Python door share.


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
        done = publish_once(
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


# Publishing from Python: `dq.publish("orders.odcs.yaml", partition={"day": day}, report=report)`.


def publish(
    contract: Contract | Path | str,
    object: str | None = None,
    *,
    partition: Mapping[str, object] | None = None,
    cycle: datetime | None = None,
    report: Report | None = None,
    rows: int | None = None,
    redelivery: bool = False,
    run: str = "",
    server: str | None = None,
    catalog: str = "local",
    role_arn: str = "",
    catalog_id: str = "",
    now: datetime | None = None,
) -> Delivered:
    """Says that a delivery is complete, as `dq publish` does: partition, marker, receipt, notice.

    `contract` is the path of its file, its YAML as a text, or one already read; `object` may be left out when
    it has one object. `partition` has a value for each key of the table; `cycle` is the due instant, with a
    zone, needed without partitions. `report` is that of `dq.check` on this data: one that is not good is
    raised, and its count of rows is taken where `rows` are not given. `redelivery` makes a new revision, once
    for each `run`, a word of your scheduler's; so do other `rows` than last time. The other arguments are the
    options of the command, and the settings are those of the working folder and the environment.

    Consumers who cannot be told hear later; `raise_for_status()` of the answer makes that an error. Raises
    Violated and Unreadable as `report.raise_for_status()` does, UsageError where something does not fit, and
    Unreadable where catalog, files or store do not answer.
    """
    known = read(contract)
    one = pick(known, object)
    due, as_of = aware("cycle", cycle), aware("now", now)
    values = {key: str(value) for key, value in (partition or {}).items()}
    if report is not None:
        _suit(report, known, one.name, values)
        report.raise_for_status()
        if rows is None and len(report.partitions) <= 1:
            rows = report.rows
    world = here(None, [] if known.file == TEXT else [Path(known.file)])
    given = PublishRequest(values, due, rows, server, redelivery, run.strip())
    choice = CatalogChoice(catalog, role_arn, catalog_id)
    return deliver(replace(world, as_of=as_of), known, one, given, choice)


def _suit(report: Report, contract: Contract, object: str, partition: Mapping[str, str]) -> None:
    """Raises UsageError for a report of something else than what is published."""
    found = (report.contract, report.version, report.object)
    wanted = (contract.id, contract.version, object)
    if found != wanted:
        raise UsageError(
            f"The report is of {' '.join(found)}, and {' '.join(wanted)} is published.",
            "Check what you publish.",
        )
    checked = [{key.lower(): str(value) for key, value in part} for part in report.partitions]
    given = {key.lower(): value for key, value in partition.items()}
    if checked and not any(part.items() <= given.items() for part in checked):
        raise UsageError(
            f"The report is of the partitions {checked}, and {given} is published.", "Check what you publish."
        )
