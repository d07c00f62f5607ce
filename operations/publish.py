"""`dq.publish`: a delivery recorded with the catalog's partition, and tested before anybody reads it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing, nullcontext, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from dq.contracts.access.data_location import DataPlace, other_servers, resolve, server_of
from dq.contracts.install import needing
from dq.contracts.model import Contract, SchemaObject
from dq.contracts.outcome import DqError, Undeliverable, Unreadable, UsageError
from dq.contracts.yaml.parse import TEXT, read
from dq.dataquality import results
from dq.dataquality.answers.sources import ALL, NONE
from dq.dataquality.check import check as measure
from dq.dataquality.checks import built_in
from dq.dataquality.clauses.clause import RowScope
from dq.dataquality.clauses.foreign_key import Neighbours
from dq.dataquality.clauses.kind import clauses_of
from dq.dataquality.delivery.cycle import label
from dq.dataquality.delivery.cycle_store import is_written, write_count, write_receipt
from dq.dataquality.report import Report, Violated
from dq.dataquality.request import Request, pick
from dq.dataquality.spark.columnar_files import for_hadoop, only
from dq.dataquality.spark.dataset import TEXTS, Dataset, locate, open_table
from dq.lake.storage import partition_folder
from dq.operations.check import earlier, name_of, others
from dq.operations.openlineage import recording
from dq.operations.runtime.context import World, aware, called, here, located
from dq.operations.runtime.spark import label as label_jobs
from dq.operations.runtime.spark import opened, session
from dq.registry import publications
from dq.registry import publish_audit as delta_table
from dq.registry.catalog import Catalog
from dq.registry.publish import Published, ReceiptBook, knows_run, newest_revision
from dq.registry.publish import publish as publish_once
from dq.registry.publish_audit import (
    IcebergTable,
    StagedFolder,
    StagedSnapshot,
    of_partition,
    staged_folder,
)
from dq.registry.table import TableSpec, fold_location, specs
from dq.store.engine import Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


# The places at which consumers are told: the operator's topic of SNS, else a file in the state folder.

NOTICES = "published.jsonl"

_DOMAIN = "{domain}"
_NAME = "[A-Za-z0-9_-]+"


def notifiers(world: World, contract: Contract) -> dict[str, publications.Notifier]:
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


def senders(world: World, places: Iterable[str]) -> dict[str, publications.Notifier]:
    """Who sends to those of these places that are this folder's or the operator's; the others are left out.

    A store may be shared: what waits for a file of another machine is that machine's.
    """
    topic, files = world.settings.topic, _file(world)
    ours = re.escape(topic).replace(re.escape(_DOMAIN), _NAME)
    topics = [place for place in places if topic and re.fullmatch(ours, place)]
    return {place: files[place] for place in places if place in files} | (
        dict.fromkeys(topics, _teller()) if topics else {}
    )


def _teller() -> publications.Notifier:
    with needing("A topic of SNS needs boto3", "aws"):
        from dq.registry.aws.sns import tell_topic
    return tell_topic


def _file(world: World) -> dict[str, publications.Notifier]:
    path = world.state().absolute() / NOTICES
    return {f"file:{path}": publications.JsonLines(path)}


# What consumers were not told yet, sent now.

_MOST = 100_000


_TAKEN = (
    "Another process took it; if that was killed, it goes out with what is published or sent after "
    f"{publications.LEASE.seconds} seconds."
)
_FOREIGN = "Nobody here sends it: publish where it was published, or set the topic."


@dataclass(frozen=True, slots=True)
class PendingOutcome:
    """How many notices were sent, and for each target what still waits and why."""

    sent: int
    waiting: tuple[publications.WaitingNotices, ...]

    @property
    def exit_code(self) -> int:
        """As `dq publish --pending` ends: 4 something still waits."""
        return Undeliverable.exit_code if self.waiting else 0

    def as_dict(self) -> dict[str, object]:
        """What `dq publish --pending --format json` prints."""
        return {"sent": self.sent, "waiting": [_as_row(notices) for notices in self.waiting]}


def publish_pending(*, folder: Path | str | None = None) -> PendingOutcome:
    """Send the notices that could not be sent to consumers before, as `dq publish --pending` does.

    `folder` stands for the working folder, where settings and store are. Notices that other machines send
    are not sent, but counted as waiting. Raises Unreadable for a store that does not answer, and MissingTool
    where a topic needs boto3.
    """
    return send_pending(called(None, folder)[0])


def send_pending(world: World) -> PendingOutcome:
    """The operation itself. Raises as `publish_pending`."""
    with closing(world.store()) as store:
        with store.read() as tx:
            targets = [notices.target for notices in publications.waiting(tx)]
        places = senders(world, targets)
        sent = publications.tell(store, places, lambda: datetime.now(UTC), most=_MOST)
        with store.read() as tx:
            waiting = publications.waiting(tx)
    return PendingOutcome(
        sent,
        tuple(
            replace(each, problem=each.problem or (_TAKEN if each.target in places else _FOREIGN))
            for each in waiting
        ),
    )


def _as_row(notices: publications.WaitingNotices) -> dict[str, object]:
    return {
        "target": notices.target,
        "events": notices.number,
        "since": notices.since.isoformat(),
        "problem": notices.problem,
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
    """What was delivered; see `registry.publish` for `redelivery` and `run`.

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
    """What was done, and the places that have not taken the notice, each with the reason.

    `audited` is the audit of what was staged, None without one.
    """

    published: Published
    unsent: tuple[tuple[str, str], ...]
    audited: Audited | None = None

    @property
    def event(self) -> publications.DeliveryEvent:
        """What consumers hear."""
        return self.published.event

    @property
    def mended(self) -> tuple[str, ...]:
        """What of an earlier run was no longer so and was put back, a sentence each."""
        return (*(self.audited.mended if self.audited is not None else ()), *self.published.mended)

    @property
    def exit_code(self) -> int:
        """As `dq publish` ends: 4 published, and consumers could not be told yet."""
        return Undeliverable.exit_code if self.unsent else 0

    def as_dict(self) -> dict[str, object]:
        """What `dq publish --format json` prints."""
        return {
            **self.event.as_json(),
            "done": list(self.published.done),
            "mended": list(self.mended),
            "waiting": [place for place, _ in self.unsent],
        }

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


def publish_delivery(
    world: World,
    contract: Contract,
    schema_object: SchemaObject,
    request: PublishRequest,
    choice: CatalogChoice,
    staged: str | None = None,
    on_audited: Callable[[Audited], None] = lambda _: None,
) -> Delivered:
    """Publish a delivery of the object, and send lineage where that is set up; `staged` is audited first.

    `on_audited` is called with the audit, good or not, before anything is published. Raises as `deliver` and
    `audit_staged` do, and Violated or Unmeasured where what is staged may not be published.
    """
    audited: Audited | None = None
    with recording(world, [contract], request.server) as events:
        if staged is not None:
            audit_events = (
                events.audited(contract, schema_object, request.partition, staged)
                if events
                else nullcontext()
            )
            with audit_events as ended:
                audited = audit_staged(world, contract, schema_object, request, choice, staged)
                if ended is not None:
                    ended(audited.report)
            on_audited(audited)
            audited.raise_for_status(staged)
            request = audited.request
        done = deliver(world, contract, schema_object, request, choice)
        if events and done.published.done:
            event = done.event
            events.published(contract, schema_object, event.id, event.publication.rows, staged)
    return replace(done, audited=audited)


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
        publications.tell(store, places, lambda: datetime.now(UTC), event_id=done.event.id)
        with store.read() as tx:
            return Delivered(done, tuple(publications.unsent(tx, done.event.id)))


def delivery_of(
    world: World,
    contract: Contract,
    one: SchemaObject,
    given: PublishRequest,
    catalog_name: str,
    catalog_id: str,
) -> publications.Publication:
    """What is delivered, with its identity in the catalog of this id. Raises UsageError as `publication`."""
    server = server_of(contract, given.server)
    return publications.publication(
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


def _write(tx: Connection, event: publications.DeliveryEvent) -> None:
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
    audit: str | None = None,
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
    raised, and its count of rows is taken where `rows` are not given. `audit` is a folder with the partition
    below it, or a branch of an Iceberg table, in which the delivery is staged: it is checked first, and
    published only if it keeps the contract. `redelivery` makes a new revision, once for each `run`, a word of
    your scheduler's; so do other `rows` than last time. The other arguments are the options of the command,
    and the settings are those of the working folder and the environment.

    Consumers who cannot be told hear later; `raise_for_status()` of the answer makes that an error. Raises
    Violated and Unmeasured as `report.raise_for_status()` does, with the `report` of the audit where one was
    made, UsageError where something does not fit, and Unreadable where catalog, files or store do not answer.
    """
    if report is not None and audit is not None:
        raise UsageError("report and audit exclude each other.", "Pass one of them.")
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
    request = PublishRequest(values, due, rows, server, redelivery, run.strip())
    choice = CatalogChoice(catalog, role_arn, catalog_id)
    return publish_delivery(replace(world, as_of=as_of), known, one, request, choice, audit)


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


# What is checked of a staged folder: its partition, and with it the rest of the table where clauses ask.

# Each place is a plan of its own; beyond so many, Spark plans for longer than it reads.
_MOST_PLACES = 200


@dataclass(frozen=True, slots=True)
class Staging:
    """A staged folder, the data that it will be part of, and the catalog that says where that lies."""

    data: Dataset
    format: str
    folder: StagedFolder
    spec: TableSpec
    catalog: Catalog


def staged_data(
    spark: SparkSession, contract: Contract, one: SchemaObject, staging: Staging
) -> Dataset | DataFrame:
    """The staged partition; as it will be, with all other partitions, where a clause speaks of the table.

    Raises Unreadable where these lie at too many places, or are texts that are typed as one.
    """
    staged = replace(staging.data, path=for_hadoop(staging.folder.root), format=staging.format, table=None)
    wide = [
        clause.path
        for clause in clauses_of(contract, one, built_in(), Neighbours.of([contract]))
        if clause.extent.rows is RowScope.TABLE and clause.severity.blocks and not clause.refused
    ]
    if not wide:
        return staged
    places = _others(staging)
    if staging.format in TEXTS or len(places) > _MOST_PLACES:
        reason = (
            f"it lies at {len(places)} places" if len(places) > _MOST_PLACES else f"it is {staging.format}"
        )
        raise Unreadable(
            f"{', '.join(wide[:3])} speak of the whole table, which cannot be checked with what is staged: "
            f"{reason}.",
            "Use Iceberg, or let these clauses speak of a partition.",
        )
    frames = [only(open_table(spark, staged), [dict(staging.folder.values)])]
    for root, partitions in places.items():
        frames.append(only(open_table(spark, replace(staged, path=root)), partitions))
    return reduce(lambda left, right: left.unionByName(right), frames)


def _others(staging: Staging) -> dict[str, list[dict[str, str]]]:
    """The other partitions of the table by the roots that they lie below."""
    found: dict[str, list[dict[str, str]]] = defaultdict(list)
    for each in staging.catalog.partitions(staging.spec.database, staging.spec.name):
        if each.values == staging.folder.values:
            continue
        place, below = fold_location(each.location), f"/{partition_folder(each.values)}"
        if not place.endswith(below):
            raise Unreadable(
                f"{place} is not called as the partition that the catalog has there.",
                "Write it anew where its folder is called so, and publish it.",
            )
        found[for_hadoop(place.removesuffix(below))].append(dict(each.values))
    return found


# The audit of what is staged, by the contract; what keeps it is made ready to be published, or is already.
#
# A retry ends as a run that nobody disturbed: what this very run has published is known by the journal, and
# all
# else is judged, whatever the catalog or the history of `main` says.

FOLDERS = ("parquet", "orc", "avro", "csv", "json")


@dataclass(frozen=True, slots=True)
class Audited:
    """What was found, None where this very run was published before; and how it is to be published.

    `live`: readers see it already, after a run that was killed, or because somebody made it so. `mended` says
    of a run that was published before what was no longer so, a sentence each.
    """

    report: Report | None
    request: PublishRequest
    live: bool = False
    mended: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """0 where it may be published: it keeps the contract, or is published already."""
        return self.report.exit_code if self.report is not None else 0

    def refusal(self, staged: str) -> str:
        """The sentence that says why what is `staged` is not published."""
        verdict = "breaks the contract" if self.exit_code == Violated.exit_code else "could not be judged"
        if self.live:
            return f"what is staged in {staged} {verdict}, and readers see it: nobody audited it before."
        return f"nothing is published: what is staged in {staged} {verdict}, and stays there."

    def raise_for_status(self, staged: str) -> None:
        """Raise as `report.raise_for_status()` does, with a note of what readers see of what is `staged`."""
        if self.report is None:
            return
        try:
            self.report.raise_for_status()
        except DqError as error:
            error.add_note(self.refusal(staged))
            raise


def audit_staged(
    world: World,
    contract: Contract,
    one: SchemaObject,
    given: PublishRequest,
    choice: CatalogChoice,
    staged: str,
) -> Audited:
    """Checks what is staged: `staged` is a folder with the partition below it, or a branch of Iceberg.

    A branch that keeps the contract is made `main` here, in one commit. Of a folder nothing is published yet.
    Raises UsageError for what cannot be staged so, and DqError for what is not there or changes meanwhile.
    """
    place = resolve(contract, one, given.server, world.reach)
    if place.format == "delta":
        raise delta_table.refused(f"{contract.id} {one.name}")
    if place.format not in ("iceberg", *FOLDERS):
        raise UsageError(
            f"A table of {place.format} cannot be staged.", f"dq stages {', '.join(FOLDERS)}, iceberg."
        )
    spec = table_spec(world, contract, one, given.server, choice.name)
    with closing(world.store()) as store:
        catalog = opened(world, store, choice.name, choice.role_arn, choice.catalog_id)
        case = _Case(world, store, contract, one, given, choice, place, spec, catalog)
        return _branch(case, staged) if place.format == "iceberg" else _folder(case, staged)


@dataclass(frozen=True, slots=True)
class _Case:
    """What is to be published where, and the world around it."""

    world: World
    store: Store
    contract: Contract
    one: SchemaObject
    given: PublishRequest
    choice: CatalogChoice
    place: DataPlace
    spec: TableSpec
    catalog: Catalog

    def request(self, folder: str, run: str) -> PublishRequest:
        """How it is to be published: once for this run, of which the scheduler's word is a part."""
        words = " ".join(part for part in (self.given.run, run) if part)
        return replace(self.given, folder=folder, redelivery=True, run=words)

    def knows(self, request: PublishRequest) -> bool:
        """Whether this very run was published. Raises UsageError for a delivery that cannot be."""
        delivery = self._delivery(request)
        with self.store.read() as tx:
            return knows_run(tx, delivery, request.run)

    def require_newest(self, request: PublishRequest) -> None:
        """Raises DqError where another run has been published since: a late retry takes nothing back."""
        with self.store.read() as tx:
            newest = newest_revision(tx, self._delivery(request))
        if newest is not None and newest.run != request.run:
            since = newest.folder if newest.folder not in (None, request.folder) else "another delivery"
            raise DqError(
                f"{request.folder} was published before, and {since} has been published since.",
                "To go back to it, write it anew into a folder of its own, and publish that.",
            )

    def _delivery(self, request: PublishRequest) -> str:
        one = delivery_of(self.world, self.contract, self.one, request, self.choice.name, self.catalog.id)
        return one.delivery

    def keep(self, report: Report, partition: dict[str, str], staged: str) -> None:
        """Writes the audit to the store, apart from what readers see; `dq status` shows both."""
        with self.store.write() as tx:
            results.save_run(
                tx,
                contract=self.contract.key,
                object=report.object,
                version=report.version,
                scope=name_of(partition or None),
                results=report.results,
                jobs=report.passes,
                now=self.world.now(),
                staged=staged,
                verdict=report.verdict,
            )

    def checked(self, data: object, partition: dict[str, str]) -> Report:
        """By dq's own check, as it is run on data that nobody has staged."""
        world, contract, one = self.world, self.contract, self.one
        spark = session(world)
        what = f"dq publish --audit {contract.id}/{one.name}"
        label_jobs(spark, what, what)
        neighbours = Neighbours.of([contract])
        return measure(
            Request(
                contract,
                data,  # type: ignore[arg-type]  # a frame of Spark, or a Dataset
                one.name,
                spark=spark,
                partitions=[partition] if partition else None,
                now=world.now(),
                others=others(world, contract, one, self.given.server, neighbours, store=self.store),
                history=earlier(self.store, contract, one),
                levers=ALL if isinstance(data, Dataset) else NONE,
                limit_seconds=world.settings.rule_seconds,
                neighbours=neighbours,
            )
        )


def _folder(case: _Case, root: str) -> Audited:
    world, spec = case.world, case.spec
    vouched = world.reach.vouch(root)
    if not isinstance(vouched, str):
        raise UsageError(f"--audit {root} {vouched.message}.", vouched.mend)
    linked = world.reach.contents(vouched)
    if linked is not None:
        raise UsageError(f"--audit {root} {linked.message}.", linked.mend)
    absolute = vouched if "://" in vouched else str(world.folder / vouched)
    # Readers look below the table's folder, wherever the catalog has it.
    own = located(world, case.place, "").path or spec.location
    folder = staged_folder(absolute, publications.partition_values(spec, case.given.partition), own)
    files = folder.files()
    request = case.request(folder.folder, folder.run(files))
    if case.knows(request):
        # Where the catalog has it elsewhere, or not at all, publishing it mends that.
        case.require_newest(request)
        return Audited(None, request)
    live = folder.published(case.catalog, spec.database, spec.name)
    spark = session(world, formats={case.place.format}, hive=case.choice.name == "hive")
    dataset = locate(case.contract, case.one, case.given.server, world.reach)
    staging = Staging(dataset, case.place.format, folder, spec, case.catalog)
    data = staged_data(spark, case.contract, case.one, staging)
    report = case.checked(data, dict(folder.values))
    folder.require_unchanged(files)
    case.keep(report, dict(folder.values), folder.folder)
    if report.exit_code == 0 and None not in (request.rows, report.rows) and request.rows != report.rows:
        raise UsageError(
            f"--rows {request.rows}, and {folder.folder} has {report.rows}.",
            "Leave --rows out: the audit counts them.",
        )
    return Audited(report, _counted(request, report), live)


def _counted(request: PublishRequest, report: Report) -> PublishRequest:
    """With the rows that the audit counted, where the producer does not say how many there are."""
    return replace(request, rows=report.rows) if request.rows is None else request


def _branch(case: _Case, branch: str) -> Audited:
    world, given = case.world, case.given
    dataset = locate(case.contract, case.one, given.server, world.reach)
    spark = session(world, formats={"iceberg"}, hive=case.choice.name == "hive")
    table = IcebergTable(spark, dataset.table or "", dataset.path or "")
    staged = table.staged(branch)
    request = case.request(case.spec.location or table.place(), staged.run)
    # What is wrong with the delivery is found here too, before main moves.
    known = case.knows(request)
    if known and staged.published:
        return Audited(None, request, live=True)
    values = dict(publications.partition_values(case.spec, given.partition)) if given.partition else {}
    if values and not staged.published:
        _refuse_more(staged, values)
    report = case.checked(table.frame(staged.id), values)
    case.keep(report, values, f"branch {branch}, snapshot {staged.id}")
    mended: tuple[str, ...] = ()
    if report.exit_code == 0:
        moved = table.forward(staged)
        mended = (f"main had no longer what {branch} has",) if moved and known else ()
    return Audited(report, _counted(request, report), staged.published, mended)


def _refuse_more(staged: StagedSnapshot, values: dict[str, str]) -> None:
    """Else rows of other partitions would be published that nobody looked at."""
    changed = staged.table.changed(staged.id)
    if not of_partition(changed, values):
        shown = sorted("/".join(f"{key}={value}" for key, value in pairs) or "all of it" for pairs in changed)
        raise DqError(
            f"The branch {staged.branch} changes {', '.join(shown[:5])}, and not only that partition.",
            "Write each partition to a branch of its own.",
        )
