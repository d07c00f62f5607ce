"""`dq.publish`: publish a delivery with its catalog partition, and audit staged data first."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing, nullcontext, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import reduce
from math import isnan
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from dq.contracts.access.data_location import DataLocation, other_servers, resolve, select_server
from dq.contracts.install import require_extras
from dq.contracts.model import Contract, SchemaObject
from dq.contracts.outcome import DeliveryError, DqError, ReadError, UsageError
from dq.contracts.yaml.parse import TEXT, read
from dq.dataquality import results
from dq.dataquality.answers.sources import ALL, NONE
from dq.dataquality.check import check as measure
from dq.dataquality.checks import built_in
from dq.dataquality.clauses.clause import RowScope
from dq.dataquality.clauses.foreign_key import ContractSet
from dq.dataquality.clauses.kind import clauses_of
from dq.dataquality.delivery.cycle import label
from dq.dataquality.delivery.cycle_store import (
    RowClaim,
    has_receipt,
    receipt_group_counts,
    set_receipt_rows,
    write_receipt,
)
from dq.dataquality.report import Report, Violated, of_own_rows
from dq.dataquality.request import Request, find_object
from dq.dataquality.spark.columnar_files import for_hadoop, only_partitions
from dq.dataquality.spark.dataset import TEXT_FORMATS, Dataset, locate, open_table
from dq.operations.check import load_history, referenced_data, scope_name
from dq.operations.delivered_rows import with_delivered_rows
from dq.operations.openlineage import recording
from dq.operations.registry_files import with_registry
from dq.operations.runtime.context import (
    RuntimeContext,
    call_context,
    catalog_location,
    runtime_context,
    to_utc,
)
from dq.operations.runtime.spark import label as label_jobs
from dq.operations.runtime.spark import open_named_catalog, session
from dq.registry import publications
from dq.registry import publish_audit as delta_table
from dq.registry.catalog import Catalog
from dq.registry.publish import Published, ReceiptStore, knows_run, newest_revision
from dq.registry.publish import publish as publish_once
from dq.registry.publish_audit import (
    IcebergTable,
    StagedFolder,
    StagedSnapshot,
    is_only_partition,
    staged_folder,
)
from dq.registry.table import TableSpec, fold_location, specs
from dq.store.engine import Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


# Targets of notices to consumers: the operator's SNS topic, or a file in the state folder.

NOTICES = "published.jsonl"

_DOMAIN = "{domain}"
_NAME = "[A-Za-z0-9_-]+"


def notifiers(context: RuntimeContext, contract: Contract) -> dict[str, publications.Notifier]:
    """Return the notifiers for the consumers of this contract, by target.

    Raises UsageError if the contract's domain is invalid in a topic's name, and MissingTool without boto3.
    """
    topic = context.settings.topic
    if not topic:
        return _file(context)
    domain = contract.domain or ""
    if _DOMAIN in topic and not re.fullmatch(_NAME, domain):
        raise UsageError(
            f"contract {contract.id!r}: its domain {domain!r} is not allowed in the topic name {topic}.",
            "Use letters, digits, hyphens and underscores in 'domain'.",
            at=contract.locate("domain"),
        )
    return {topic.replace(_DOMAIN, domain): _sns_notifier()}


def senders(context: RuntimeContext, places: Iterable[str]) -> dict[str, publications.Notifier]:
    """Return the notifiers for those targets that belong to this folder or operator.

    The store may be shared: notices for a file of another machine are sent by that machine.
    """
    topic, files = context.settings.topic, _file(context)
    topic_pattern = re.escape(topic).replace(re.escape(_DOMAIN), _NAME)
    topics = [place for place in places if topic and re.fullmatch(topic_pattern, place)]
    return {place: files[place] for place in places if place in files} | (
        dict.fromkeys(topics, _sns_notifier()) if topics else {}
    )


def _sns_notifier() -> publications.Notifier:
    with require_extras("SNS topics need boto3", "aws"):
        from dq.registry.aws.sns import publish_to_topic
    return publish_to_topic


def _file(context: RuntimeContext) -> dict[str, publications.Notifier]:
    path = context.state().absolute() / NOTICES
    return {f"file:{path}": publications.JsonLines(path)}


# Sending of pending notices.

_MAX_EVENTS = 100_000


_LEASED_PROBLEM = (
    "Another process is sending it; if that process was killed, it is sent by the next publish or --pending "
    f"after {publications.LEASE.seconds} seconds."
)
_FOREIGN_PROBLEM = "No sender for this target: run it where it was published, or set the topic."


@dataclass(frozen=True, slots=True)
class PendingOutcome:
    """Number of sent notices, and for each target the waiting ones with the reason."""

    sent: int
    waiting: tuple[publications.PendingNotices, ...]

    @property
    def exit_code(self) -> int:
        """Exit code of `dq publish --pending`: 4 something still waits."""
        return DeliveryError.exit_code if self.waiting else 0

    def as_dict(self) -> dict[str, object]:
        """Return the output of `dq publish --pending --format json` as JSON values."""
        return {"sent": self.sent, "waiting": [_as_row(notices) for notices in self.waiting]}


def publish_pending(*, folder: Path | str | None = None) -> PendingOutcome:
    """Send the notices that could not be sent to consumers before, as `dq publish --pending` does.

    `folder` replaces the working folder, which has settings and store. Notices of other machines are not
    sent, but counted as waiting. Raises ReadError if the store cannot be read, and MissingTool if a topic
    needs boto3.
    """
    return send_pending(call_context(None, folder)[0])


def send_pending(context: RuntimeContext) -> PendingOutcome:
    """Run the operation. Raises as `publish_pending`."""
    with closing(context.store()) as store:
        with store.read() as tx:
            targets = [notices.target for notices in publications.pending_notices(tx)]
        places = senders(context, targets)
        sent = publications.send_notices(store, places, lambda: datetime.now(UTC), limit=_MAX_EVENTS)
        with store.read() as tx:
            waiting = publications.pending_notices(tx)
    return PendingOutcome(
        sent,
        tuple(
            replace(
                notices,
                problem=notices.problem
                or (_LEASED_PROBLEM if notices.target in places else _FOREIGN_PROBLEM),
            )
            for notices in waiting
        ),
    )


def _as_row(notices: publications.PendingNotices) -> dict[str, object]:
    return {
        "target": notices.target,
        "events": notices.number,
        "since": notices.since.isoformat(),
        "problem": notices.problem,
    }


# Publication of one delivery and notification of consumers, shared by the command and the Python API.


@dataclass(frozen=True, slots=True)
class CatalogChoice:
    """Catalog to publish to, by its id; in AWS with the role and account to use."""

    name: str = "local"
    role_arn: str = ""
    catalog_id: str = ""


RowsBy = Mapping[str, Mapping[str | None, int]]
"""Number of rows by column and value; None is NULL."""


@dataclass(frozen=True, slots=True)
class PublishRequest:
    """Delivery to publish; see `registry.publish` for `redelivery` and `run`.

    `folder` is the folder of its files, if not the one below the table's location that its layout names.
    `rows_by` are the numbers of rows by group, which add up to `rows`.
    """

    partition: Mapping[str, str]
    cycle: datetime | None = None
    rows: int | None = None
    server: str | None = None
    redelivery: bool = False
    run: str = ""
    folder: str | None = None
    rows_by: RowsBy = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Delivered:
    """Result of a publication, and the targets that have not received the notice, with the reason.

    `audited` is the audit of staged data, or None without one.
    """

    published: Published
    unsent: tuple[tuple[str, str], ...]
    audited: Audited | None = None

    @property
    def event(self) -> publications.DeliveryEvent:
        """Event sent to consumers."""
        return self.published.event

    @property
    def repairs(self) -> tuple[str, ...]:
        """Results of an earlier run that were changed since and have been restored, a sentence each."""
        return (*(self.audited.repairs if self.audited is not None else ()), *self.published.repaired)

    @property
    def exit_code(self) -> int:
        """Exit code of `dq publish`: 4 published, and consumers could not be told yet."""
        return DeliveryError.exit_code if self.unsent else 0

    def as_dict(self) -> dict[str, object]:
        """Return the output of `dq publish --format json` as JSON values."""
        return {
            **self.event.as_json(),
            "rows_by": {
                column: [{"value": value, "rows": rows} for value, rows in groups]
                for column, groups in self.event.publication.rows_by
            },
            "done": list(self.published.steps),
            "repairs": list(self.repairs),
            "waiting": [place for place, _ in self.unsent],
        }

    def raise_for_status(self) -> None:
        """Raise DeliveryError if consumers could not be notified yet; the delivery stays published."""
        problem = self.problem()
        if problem is not None:
            raise problem

    def problem(self) -> DeliveryError | None:
        """Return the error if consumers are not notified yet, or None."""
        if not self.unsent:
            return None
        reasons = "; ".join(reason or f"{place} was not tried" for place, reason in self.unsent)
        return DeliveryError(
            f"Published, but consumers were not notified yet: {reasons}",
            "The notice is pending. The next 'dq publish' or 'dq publish --pending' sends it.",
        )


_GROUP_COUNT = re.compile(r"(?:'(?P<quoted>(?:[^']|'')*)'|(?P<plain>[^'=,]+))=(?P<rows>[0-9]{1,19})(?:,|$)")


def parse_group_counts(texts: Iterable[str]) -> dict[str, dict[str | None, int]]:
    """Parse counts by group, e.g. `region:eu=600,'a,b'=3,NULL=1`.

    Raises UsageError for an invalid text and for a group given twice.
    """
    rows_by: dict[str, dict[str | None, int]] = {}
    for text in texts:
        column, _, groups = text.partition(":")
        matches = list(_GROUP_COUNT.finditer(groups))
        if not column or not groups or "".join(match[0] for match in matches) != groups or groups[-1] == ",":
            raise UsageError(
                f"invalid --rows-by {text!r}: expected COLUMN:VALUE=N,VALUE=N",
                "Use e.g. region:eu=600,us=400; write other values as 'a,b', the empty one as '', and NULL.",
            )
        for match in matches:
            plain, quoted = match["plain"], match["quoted"]
            value = None if plain == "NULL" else plain or quoted.replace("''", "'")
            counts = rows_by.setdefault(column, {})
            if value in counts:
                raise UsageError(f"--rows-by has {column}:{plain or quoted} twice.", "Give each group once.")
            counts[value] = int(match["rows"])
    return rows_by


def publish_delivery(
    context: RuntimeContext,
    contract: Contract,
    schema_object: SchemaObject,
    request: PublishRequest,
    choice: CatalogChoice,
    staged: str | None = None,
    on_audited: Callable[[Audited], None] = lambda _: None,
) -> Delivered:
    """Publish a delivery of the object, and send lineage if configured; `staged` data is audited first.

    `on_audited` is called with the audit, passed or failed, before anything is published. Raises as `deliver`
    and `audit_staged`, and Violated or Unmeasured if the staged data may not be published.
    """
    audited: Audited | None = None
    with recording(context, [contract], request.server) as events:
        if staged is not None:
            audit_events = (
                events.record_audit(contract, schema_object, request.partition, staged)
                if events
                else nullcontext()
            )
            with audit_events as ended:
                audited = audit_staged(context, contract, schema_object, request, choice, staged)
                if ended is not None:
                    ended(audited.report)
            on_audited(audited)
            audited.raise_for_status(staged)
            request = audited.request
        done = deliver(context, contract, schema_object, request, choice)
        if events and done.published.steps:
            event = done.event
            events.record_publication(contract, schema_object, event.id, event.publication.rows, staged)
    return replace(done, audited=audited)


def deliver(
    context: RuntimeContext,
    contract: Contract,
    schema_object: SchemaObject,
    request: PublishRequest,
    choice: CatalogChoice,
) -> Delivered:
    """Publish a delivery of the object and notify its consumers.

    Raises UsageError for an unsuitable contract, server or partition, and ReadError if catalog or files do
    not answer. Notices that cannot be sent wait, without an error.
    """
    with closing(context.store()) as store:
        catalog = open_named_catalog(context, store, choice.name, choice.role_arn, choice.catalog_id)
        delivery = delivery_of(context, contract, schema_object, request, choice.name, catalog.id)
        # Without a marker, the folder is not accessed.
        problem = context.reach.link_problem(delivery.folder) if delivery.marker else None
        if problem is not None:
            raise UsageError(f"{contract.file}: {delivery.folder} {problem.message}.", problem.hint)
        places = notifiers(context, contract)
        done = publish_once(
            delivery,
            catalog=catalog,
            store=store,
            now=context.now(),
            receipts=RECEIPTS,
            targets=tuple(places),
            redelivery=request.redelivery,
            run=request.run,
        )
        publications.send_notices(store, places, lambda: datetime.now(UTC), event_id=done.event.id)
        with store.read() as tx:
            return Delivered(done, tuple(publications.unsent_targets(tx, done.event.id)))


def delivery_of(
    context: RuntimeContext,
    contract: Contract,
    schema_object: SchemaObject,
    request: PublishRequest,
    catalog_name: str,
    catalog_id: str,
) -> publications.Publication:
    """Return the publication with its identity in the catalog. Raises UsageError as `publication`."""
    server = select_server(contract, request.server)
    return publications.build_publication(
        contract,
        schema_object,
        table_spec(context, contract, schema_object, server.server, catalog_name),
        server=server.server,
        environment=server.environment or "",
        catalog=catalog_id,
        partition=request.partition,
        cycle=request.cycle,
        rows=request.rows,
        rows_by=request.rows_by,
        folder=request.folder,
        other_locations=_other_locations(context, contract, schema_object, server.server, catalog_name),
    )


def _other_locations(
    context: RuntimeContext, contract: Contract, schema_object: SchemaObject, server: str, catalog: str
) -> dict[str, str]:
    """Return the resolvable locations of the object's table on the contract's other servers."""
    locations = {}
    for name in sorted(other_servers(contract, server)):
        with suppress(DqError):
            locations[name] = table_spec(context, contract, schema_object, name, catalog).location
    return locations


def table_spec(
    context: RuntimeContext, contract: Contract, schema_object: SchemaObject, server: str | None, catalog: str
) -> TableSpec:
    """Return the desired spec of the object's table in this catalog."""
    tables = specs(
        contract,
        lambda candidate: catalog_location(
            context, resolve(contract, candidate, server, context.reach), catalog
        ),
    )
    return next(
        table for table, candidate in zip(tables, contract.objects, strict=True) if candidate is schema_object
    )


def _write_receipt(tx: Connection, event: publications.DeliveryEvent) -> None:
    publication = event.publication
    write_receipt(
        tx,
        id=event.id,
        contract=publication.key,
        object=publication.object,
        partition=label(publication.values),
        due_at=publication.cycle,
        delivered_at=event.begun_at,
        rows=publication.rows,
        version=publication.contract_version,
        revision=event.revision,
        server=publication.server,
        rows_by=publication.rows_by,
    )


RECEIPTS = ReceiptStore(has_receipt, _write_receipt, receipt_group_counts, set_receipt_rows)


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
    rows_by: Mapping[str, Mapping[object, int]] | None = None,
    redelivery: bool = False,
    run: str = "",
    server: str | None = None,
    catalog: str = "local",
    role_arn: str = "",
    catalog_id: str = "",
    now: datetime | None = None,
) -> Delivered:
    """Publish a complete delivery, as `dq publish` does: partition, marker, receipt, notice.

    `contract` is the path of its file, its YAML as text, or a loaded contract; `object` is optional if it has
    only one. `partition` has a value for each partition key; `cycle` is the due instant, with a zone,
    required without partitions. `report` is that of `dq.check` on this data: a failed one is raised, and its
    row count is the default of `rows`. `rows_by` has the number of rows by column and value, with None for
    NULL, e.g. `{"region": {"eu": 600, "us": 400}}`; the counts by a column add up to `rows`. `audit` is a
    folder with the partition below it, or a branch of an Iceberg table, with the staged delivery: it is
    checked first, also against `rows` and `rows_by`, and published only if it meets the contract.
    `redelivery` makes a new revision, once per `run`, an id of your scheduler's run; so do changed `rows` and
    `rows_by`. The other arguments are the options of the command; settings are those of the working folder
    and environment.

    Notices that cannot be sent are sent later; `raise_for_status()` of the result raises for them. Raises
    Violated and Unmeasured as `report.raise_for_status()`, with the `report` of the audit if there was one,
    UsageError for invalid arguments, and ReadError if catalog, files or store do not answer.
    """
    if report is not None and audit is not None:
        raise UsageError("report and audit exclude each other.", "Pass one of them.")
    parsed = read(contract)
    schema_object = find_object(parsed, object)
    due, as_of = to_utc("cycle", cycle), to_utc("now", now)
    values = {key: str(value) for key, value in (partition or {}).items()}
    if report is not None:
        _require_same_subject(report, parsed, schema_object.name, values)
        report.raise_for_status()
        if rows is None and len(report.partitions) <= 1:
            rows = report.rows
        elif _covers_only(report, values) and None not in (rows, report.rows) and rows != report.rows:
            raise UsageError(f"rows is {rows}, but the report counted {report.rows}.", "Remove rows.")
    context = runtime_context(None, [] if parsed.file == TEXT else [Path(parsed.file)])
    counts = {column: _group_texts(groups) for column, groups in (rows_by or {}).items()}
    request = PublishRequest(values, due, rows, server, redelivery, run.strip(), rows_by=counts)
    choice = CatalogChoice(catalog, role_arn, catalog_id)
    return publish_delivery(replace(context, as_of=as_of), parsed, schema_object, request, choice, audit)


def _group_texts(groups: Mapping[object, int]) -> dict[str | None, int]:
    """Return the groups by the texts of their values; NaN, which pandas has for NULL, is None.

    Raises UsageError for two values with one text, and for a count that is not an integer.
    """
    by_text: dict[str | None, int] = {}
    for value, rows in groups.items():
        is_null = value is None or (isinstance(value, float) and isnan(value))
        text = None if is_null else str(value).lower() if isinstance(value, bool) else str(value)
        if text in by_text:
            raise UsageError(f"rows_by has the group {text!r} twice.", "Give each group once.")
        try:
            by_text[text] = index(rows)
        except TypeError as error:
            raise UsageError(f"rows_by: {rows!r} is not a number of rows.", "Give an integer.") from error
    return by_text


def _covers_only(report: Report, partition: Mapping[str, str]) -> bool:
    """Return True if the report is of exactly this partition, or of a table without partitions."""
    checked = [{key.lower(): str(value) for key, value in part} for part in report.partitions]
    return (checked or [{}]) == [{key.lower(): value for key, value in partition.items()}]


def _require_same_subject(
    report: Report, contract: Contract, object: str, partition: Mapping[str, str]
) -> None:
    """Raise UsageError if the report is not of the published data."""
    reported = (report.contract, report.version, report.object)
    expected = (contract.id, contract.version, object)
    if reported != expected:
        raise UsageError(
            f"The report is for {' '.join(reported)}, but {' '.join(expected)} is being published.",
            "Pass the report of the published data.",
        )
    checked = [{key.lower(): str(value) for key, value in part} for part in report.partitions]
    published_partition = {key.lower(): value for key, value in partition.items()}
    if checked and not any(part.items() <= published_partition.items() for part in checked):
        raise UsageError(
            f"The report is for the partitions {checked}, but {published_partition} is being published.",
            "Pass the report of the published data.",
        )


# Data checked for a staged folder: its partition, and the rest of the table if clauses need it.

# Each root adds a branch to the query plan; above this, planning takes longer than reading.
_MOST_PLACES = 200


@dataclass(frozen=True, slots=True)
class Staging:
    """A staged folder, the dataset that it will belong to, and the catalog of its locations."""

    data: Dataset
    format: str
    folder: StagedFolder
    spec: TableSpec
    catalog: Catalog


def staged_data(
    spark: SparkSession, contract: Contract, schema_object: SchemaObject, staging: Staging
) -> Dataset | DataFrame:
    """Return the staged partition, with all other partitions if a clause applies to the whole table.

    Raises ReadError if these have too many locations, or are text files, whose types depend on all files.
    """
    staged = replace(staging.data, path=for_hadoop(staging.folder.root), format=staging.format, table=None)
    table_clauses = [
        clause.path
        for clause in clauses_of(contract, schema_object, built_in(), ContractSet.from_contracts([contract]))
        if clause.row_filter.rows is RowScope.TABLE and clause.severity.blocks and not clause.refusal_reason
    ]
    if not table_clauses:
        return staged
    places = _other_partitions(staging)
    if staging.format in TEXT_FORMATS or len(places) > _MOST_PLACES:
        reason = (
            f"it has {len(places)} locations"
            if len(places) > _MOST_PLACES
            else f"its format is {staging.format}"
        )
        raise ReadError(
            f"{', '.join(table_clauses[:3])} are about the whole table, which cannot be checked "
            "with staged data: "
            f"{reason}.",
            "Use Iceberg, or limit these clauses to a partition.",
        )
    frames = [only_partitions(open_table(spark, staged), [dict(staging.folder.values)])]
    for root, partitions in places.items():
        frames.append(only_partitions(open_table(spark, replace(staged, path=root)), partitions))
    return reduce(lambda left, right: left.unionByName(right), frames)


def _other_partitions(staging: Staging) -> dict[str, list[dict[str, str]]]:
    """Return the other partitions of the table by their root folders."""
    by_root: dict[str, list[dict[str, str]]] = defaultdict(list)
    for partition in staging.catalog.partitions(staging.spec.database, staging.spec.name):
        if partition.values == staging.folder.values:
            continue
        place, suffix = (
            fold_location(partition.location),
            f"/{staging.spec.layout.folder_of(partition.values)}",
        )
        if not place.endswith(suffix):
            raise ReadError(
                f"the folder name of {place} does not match its partition in the catalog.",
                "Write it again to a folder named after the partition, and publish that.",
            )
        by_root[for_hadoop(place.removesuffix(suffix))].append(dict(partition.values))
    return by_root


# Audit of staged data against the contract, before publication.
#
# A retry ends like an undisturbed run: the journal knows what this run has published, and everything else is
# checked, regardless of the catalog or the history of `main`.

FOLDERS = ("parquet", "orc", "avro", "csv", "json")


@dataclass(frozen=True, slots=True)
class Audited:
    """Report of an audit, None if this run was published before; and the request to publish it.

    `live`: readers see the data already, after a killed run or a manual change. `repairs` has a sentence for
    each result of an earlier publication that was restored.
    """

    report: Report | None
    request: PublishRequest
    live: bool = False
    repairs: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """Exit code: 0 if it may be published, i.e. it meets the contract, or is published already."""
        return self.report.exit_code if self.report is not None else 0

    def refusal(self, staged: str) -> str:
        """Return a sentence why the `staged` data is not published."""
        verdict = (
            "violates the contract" if self.exit_code == Violated.exit_code else "could not be evaluated"
        )
        if self.live:
            return (
                f"the staged data in {staged} {verdict} and is already visible to readers, without an "
                "earlier audit."
            )
        return f"nothing published: the staged data in {staged} {verdict}; it was left in place."

    def raise_for_status(self, staged: str) -> None:
        """Raise as `report.raise_for_status()`, with a note on the visibility of the `staged` data."""
        if self.report is None:
            return
        try:
            self.report.raise_for_status()
        except DqError as error:
            error.add_note(self.refusal(staged))
            raise


def audit_staged(
    context: RuntimeContext,
    contract: Contract,
    schema_object: SchemaObject,
    request: PublishRequest,
    choice: CatalogChoice,
    staged: str,
) -> Audited:
    """Check staged data: `staged` is a folder with the partition below it, or an Iceberg branch.

    A branch that meets the contract becomes `main` here, in one commit. A folder is not published yet. Raises
    UsageError for unsupported formats, and DqError if the data is missing or changes meanwhile.
    """
    place = resolve(contract, schema_object, request.server, context.reach)
    if place.format == "delta":
        raise delta_table.delta_not_supported(f"{contract.id} {schema_object.name}")
    if place.format not in ("iceberg", *FOLDERS):
        raise UsageError(
            f"{place.format} tables cannot be staged.", f"Supported: {', '.join(FOLDERS)}, iceberg."
        )
    spec = table_spec(context, contract, schema_object, request.server, choice.name)
    with closing(context.store()) as store:
        catalog = open_named_catalog(context, store, choice.name, choice.role_arn, choice.catalog_id)
        case = _AuditContext(context, store, contract, schema_object, request, choice, place, spec, catalog)
        return _audit_branch(case, staged) if place.format == "iceberg" else _audit_folder(case, staged)


@dataclass(frozen=True, slots=True)
class _AuditContext:
    """Inputs of an audit: the staged delivery, its target, and the runtime context."""

    context: RuntimeContext
    store: Store
    contract: Contract
    schema_object: SchemaObject
    publish_request: PublishRequest
    choice: CatalogChoice
    place: DataLocation
    spec: TableSpec
    catalog: Catalog

    def request(self, folder: str, run: str) -> PublishRequest:
        """Return the request to publish it once for this run, identified also by the scheduler's run id."""
        words = " ".join(part for part in (self.publish_request.run, run) if part)
        return replace(self.publish_request, folder=folder, redelivery=True, run=words)

    def knows(self, request: PublishRequest) -> bool:
        """True if this run was published. Raises UsageError for an invalid delivery."""
        publication = self._publication(request)
        with self.store.read() as tx:
            return knows_run(tx, publication.delivery, request.run)

    def has_new_counts(self, request: PublishRequest) -> bool:
        """True if the request has row counts that the newest revision does not have: they are not checked."""
        publication = self._publication(request)
        with self.store.read() as tx:
            newest = newest_revision(tx, publication.delivery)
            rows_by = receipt_group_counts(tx, newest.id) if newest is not None else ()
        return newest is None or (
            publication.rows not in (None, newest.newest_count) or publication.rows_by not in ((), rows_by)
        )

    def require_newest(self, request: PublishRequest) -> None:
        """Raise DqError if another run was published since: a late retry must not replace it."""
        with self.store.read() as tx:
            newest = newest_revision(tx, self._publication(request).delivery)
        if newest is not None and newest.run != request.run:
            newer = newest.folder if newest.folder not in (None, request.folder) else "another delivery"
            raise DqError(
                f"{request.folder} was published before, and {newer} was published after it.",
                "To restore it, write it again to a new folder, and publish that.",
            )

    def _publication(self, request: PublishRequest) -> publications.Publication:
        return delivery_of(
            self.context, self.contract, self.schema_object, request, self.choice.name, self.catalog.id
        )

    def save_report(self, report: Report, partition: dict[str, str], staged: str) -> None:
        """Store the audit separately from published results; `dq status` shows both."""
        with self.store.write() as tx:
            results.save_run(
                tx,
                contract=self.contract.key,
                object=report.object,
                version=report.version,
                scope=scope_name(partition or None),
                results=report.results,
                jobs=report.passes,
                now=self.context.now(),
                staged=staged,
                verdict=report.verdict,
            )

    def run_check(self, data: object, partition: dict[str, str], published: PublishRequest) -> Report:
        """Run the check on the data as for published data, and compare it with the given row counts."""
        context, contract, schema_object = self.context, self.contract, self.schema_object
        spark = session(context)
        job_label = f"dq publish --audit {contract.id}/{schema_object.name}"
        label_jobs(spark, job_label, job_label)
        neighbours = with_registry([contract], context.folder)
        request = Request(
            contract,
            data,  # type: ignore[arg-type]  # a frame of Spark, or a Dataset
            schema_object.name,
            spark=spark,
            partitions=[partition] if partition else None,
            now=context.now(),
            other_objects=referenced_data(
                context,
                contract,
                schema_object,
                self.publish_request.server,
                neighbours,
                store=self.store,
            ),
            history=load_history(self.store, contract, schema_object),
            optimizations=ALL if isinstance(data, Dataset) else NONE,
            limit_seconds=context.settings.rule_seconds,
            neighbours=neighbours,
        )
        publication = self._publication(published)
        # A table with a log and without partitions keeps rows of earlier deliveries.
        is_comparable = bool(partition) or self.place.format in FOLDERS
        if publication.rows is None or not is_comparable:
            return of_own_rows(measure(request))
        claim = RowClaim(publication.values, publication.rows, 0, context.now(), "", publication.rows_by)
        return with_delivered_rows(of_own_rows(measure(request)), request, [claim])


def _audit_folder(case: _AuditContext, root: str) -> Audited:
    context, spec = case.context, case.spec
    allowed = context.reach.validate(root)
    if not isinstance(allowed, str):
        raise UsageError(f"--audit {root} {allowed.message}.", allowed.hint)
    problem = context.reach.contents_problem(allowed)
    if problem is not None:
        raise UsageError(f"--audit {root} {problem.message}.", problem.hint)
    absolute = allowed if "://" in allowed else str(context.folder / allowed)
    # Readers use the table's folder, regardless of the catalog.
    table_folder = catalog_location(context, case.place, "").path or spec.location
    folder = staged_folder(
        absolute,
        publications.partition_values(spec, case.publish_request.partition),
        table_folder,
        spec.layout,
    )
    files = folder.files()
    request = case.request(folder.folder, folder.run(files))
    if case.knows(request):
        # Publishing again restores a changed or missing catalog entry.
        case.require_newest(request)
        if not case.has_new_counts(request):
            return Audited(None, request)
    live = folder.is_published(case.catalog, spec.database, spec.name)
    spark = session(context, formats={case.place.format}, hive=case.choice.name == "hive")
    dataset = locate(case.contract, case.schema_object, case.publish_request.server, context.reach)
    staging = Staging(dataset, case.place.format, folder, spec, case.catalog)
    data = staged_data(spark, case.contract, case.schema_object, staging)
    report = case.run_check(data, dict(folder.values), request)
    folder.require_unchanged(files)
    case.save_report(report, dict(folder.values), folder.folder)
    return Audited(report, _counted(request, report), live)


def _counted(request: PublishRequest, report: Report) -> PublishRequest:
    """Return the request with the row count of the audit, unless the producer gave one."""
    return replace(request, rows=report.rows) if request.rows is None and not request.rows_by else request


def _audit_branch(case: _AuditContext, branch: str) -> Audited:
    context, publish_request = case.context, case.publish_request
    dataset = locate(case.contract, case.schema_object, publish_request.server, context.reach)
    spark = session(context, formats={"iceberg"}, hive=case.choice.name == "hive")
    table = IcebergTable(spark, dataset.table or "", dataset.path or "")
    staged = table.staged(branch)
    request = case.request(case.spec.location or table.place(), staged.run)
    # This also validates the delivery, before main moves.
    is_published = case.knows(request)
    if is_published and staged.published and not case.has_new_counts(request):
        return Audited(None, request, live=True)
    values = (
        dict(publications.partition_values(case.spec, publish_request.partition))
        if publish_request.partition
        else {}
    )
    if values and not staged.published:
        _require_only_partition(staged, values)
    report = case.run_check(table.frame(staged.id), values, request)
    case.save_report(report, values, f"branch {branch}, snapshot {staged.id}")
    repairs: tuple[str, ...] = ()
    if report.exit_code == 0:
        moved = table.fast_forward(staged)
        repairs = (f"main no longer had the data of {branch}",) if moved and is_published else ()
    return Audited(report, _counted(request, report), staged.published, repairs)


def _require_only_partition(staged: StagedSnapshot, values: dict[str, str]) -> None:
    """Raise DqError if the branch changes other partitions, which the audit did not check."""
    changed = staged.table.changed_partitions(staged.id)
    if not is_only_partition(changed, values):
        partitions = sorted(
            "/".join(f"{key}={value}" for key, value in pairs) or "the whole table" for pairs in changed
        )
        raise DqError(
            f"branch {staged.branch} changes {', '.join(partitions[:5])}, not only the published partition.",
            "Write each partition to a separate branch.",
        )
