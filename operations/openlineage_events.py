"""OpenLineage events: dataset names, facets, runs, recording, and transports."""

from __future__ import annotations

import math
import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import requests
import yaml
from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
from openlineage.client.facet_v2 import (
    DatasetFacet,
    InputDatasetFacet,
    RunFacet,
    data_quality_assertions_dataset,
    data_quality_metrics_input_dataset,
    error_message_run,
    job_type_job,
    output_statistics_output_dataset,
    schema_dataset,
    set_producer,
    symlinks_dataset,
    tags_run,
    test_run,
)
from openlineage.client.serde import Serde
from openlineage.client.transport import Config, Transport, get_default_factory
from openlineage.client.transport.http import HttpConfig, HttpTransport
from openlineage.client.uuid import generate_new_uuid

from dq.contracts.access.access_policy import WEB, is_remote, web_address
from dq.contracts.access.access_policy import parse_location as parse_address
from dq.contracts.access.data_location import DataLocation, matching_server, resolve, select_server
from dq.contracts.access.files import read_own
from dq.contracts.check_result import VERDICT_UNKNOWN, CheckResult, Status
from dq.contracts.install import NAME, release
from dq.contracts.model import Contract, Property, Quality, SchemaObject, Server
from dq.contracts.outcome import DqError, UsageError, ValueProblem
from dq.dataquality.report import Report
from dq.operations.check import CheckSetup, Partition, scope_name
from dq.operations.runtime.context import RuntimeContext

# Dataset names. The location of the files is the name, as in the Spark integration; a catalog's table name is
# a symlink. Source: https://openlineage.io/docs/spec/naming.

# Clusters are named by host and port; this is the usual port.
_HIVE_PORT = "10000"
_REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")


class DatasetName(NamedTuple):
    """The two parts of a dataset's identity."""

    namespace: str
    name: str


def names(
    place: DataLocation, server: Server, schema_object: SchemaObject, environment: Mapping[str, str]
) -> list[DatasetName]:
    """Return the name of the dataset followed by its aliases, or an empty list if unknown.

    For a Glue server without an account, or without a region in the environment, only the location of the
    files is returned.
    """
    dataset_names = [files_dataset_name(place.path)] if place.path else []
    dataset_names.append(_table_dataset_name(place, server, schema_object.column, environment))
    return [name for name in dataset_names if name is not None]


def files_dataset_name(path: str) -> DatasetName | None:
    """Return the dataset name of a folder of files, or None if the path is invalid."""
    address = parse_address(path)
    if isinstance(address, ValueProblem):
        return None
    path_in_store = "/".join(address.segments)
    if not address.scheme:
        return DatasetName("file", os.path.abspath(str(address)))  # noqa: PTH100  no link is followed
    # Object stores have keys, file systems have absolute paths.
    is_file_system = address.scheme in ("hdfs", "webhdfs", "swebhdfs", "abfs", "abfss", "wasb", "wasbs")
    return DatasetName(
        f"{address.scheme}://{address.host}", f"/{path_in_store}" if is_file_system else path_in_store or "/"
    )


def _table_dataset_name(
    place: DataLocation, server: Server, table: str, environment: Mapping[str, str]
) -> DatasetName | None:
    if place.type == "glue":
        region = next((environment[name] for name in _REGIONS if environment.get(name)), None)
        account = server.get("account")
        if not region or not account:
            return None
        return DatasetName(f"arn:aws:glue:{region}:{account}", f"table/{place.database}/{table}")
    if place.type == "hive":
        host, port = server.get("host") or "", server.get("port") or _HIVE_PORT
        return DatasetName(f"hive://{host}:{port}", f"{place.database}.{table}")
    if place.type == "iceberg":
        catalog = (server.get("catalogUrl") or "").rstrip("/")
        parts = [server.get("namespace") or place.database, table]
        return DatasetName(catalog, ".".join(part for part in parts if part)) if catalog else None
    return None


# Check results as OpenLineage facets. They contain no rows of the data.

_Metrics = data_quality_metrics_input_dataset.ColumnMetrics
# Texts of contracts are unbounded, and backends store them completely.
_MAX_TEXT = 500
# Check -> OpenLineage metric, for values over all rows of the scope.
_COUNTS = {"required": "nullCount", "distinct_count": "distinctCount"}
_NUMBERS = {"sum": "sum", "min": "min", "max": "max"}


def clipped(text: str) -> str:
    """Return the text, truncated for an event."""
    return text if len(text) <= _MAX_TEXT else f"{text[: _MAX_TEXT - 1]}…"


def assertions(report: Report) -> InputDatasetFacet:
    """Return the assertions facet; a clause that could not be measured has `success` False and says so in
    `actual`.
    """
    return data_quality_assertions_dataset.DataQualityAssertionsDatasetFacet(
        assertions=[
            data_quality_assertions_dataset.Assertion(
                assertion=result.check,
                success=result.status is Status.PASS,
                column=_column(result),
                severity=_severity(result),
                name=result.name or result.clause,
                expected=clipped(result.allowed),
                actual=_actual(result),
            )
            for result in report.results
            if result.status is not Status.SKIPPED
        ]
    )


def metrics(report: Report, schema_object: SchemaObject) -> InputDatasetFacet:
    """Return the metrics facet: row count and column metrics measured on all rows of the scope."""
    narrowed = set(_narrowed(schema_object))
    column_metrics: dict[str, _Metrics] = {}
    rows = None
    for result in report.results:
        if (
            result.value is None
            or not math.isfinite(result.value)
            or result.group_columns
            or result.clause in narrowed
        ):
            continue
        if result.check == "row_count":
            rows = int(result.value)
        elif result.check in _COUNTS or result.check in _NUMBERS:
            number = int(result.value) if result.check in _COUNTS else result.value
            column = column_metrics.setdefault(result.property, _Metrics())
            setattr(column, (_COUNTS | _NUMBERS)[result.check], number)
    return data_quality_metrics_input_dataset.DataQualityMetricsInputDatasetFacet(
        columnMetrics=column_metrics, rowCount=rows
    )


def tests(report: Report) -> RunFacet:
    """Return the tests facet: the status of every clause, including skipped ones."""
    return test_run.TestRunFacet(
        tests=[
            test_run.TestExecution(
                name=result.name or result.clause,
                status={Status.PASS: "pass", Status.SKIPPED: "skip"}.get(result.status, "fail"),
                severity=_severity(result),
                type=result.check,
                expected=clipped(result.allowed),
                actual=_actual(result),
            )
            for result in report.results
        ]
    )


def tags_facet(**texts: str) -> RunFacet:
    """Return tags of the run with source `DQ`; empty texts are left out."""
    return tags_run.TagsRunFacet(
        tags=[tags_run.TagsRunFacetFields(key, text, "DQ") for key, text in texts.items() if text]
    )


def _column(result: CheckResult) -> str | None:
    """Return the single column of a result, or None for composite keys and row-level checks."""
    return result.property if result.property and ", " not in result.property else None


def _severity(result: CheckResult) -> str:
    return "error" if result.severity.blocks else "warn"


def _actual(result: CheckResult) -> str:
    # The reason of an error may be an engine's message, which may quote the data.
    return "could not be measured" if result.status is Status.ERROR else clipped(result.observed)


def _narrowed(schema_object: SchemaObject) -> Iterator[str]:
    """Yield the rules whose value is a share, or covers only some rows."""
    for element in (schema_object, *schema_object.walk()):
        for quality in element.quality:
            if _percent(quality) or quality.custom("scope") is not None:
                yield quality.path()


def _percent(quality: Quality) -> bool:
    implementation = quality.implementation if isinstance(quality.implementation, dict) else {}
    return any(
        str(unit).strip().lower() in ("percent", "%") for unit in (quality.unit, implementation.get("unit"))
    )


def _fields(properties: Iterable[Property]) -> Iterator[schema_dataset.SchemaDatasetFacetFields]:
    for position, prop in enumerate(properties, 1):
        inner = prop.properties or (prop.items.properties if prop.items else [])
        yield schema_dataset.SchemaDatasetFacetFields(
            name=prop.column,
            type=prop.physical_type or prop.logical_type,
            description=clipped(prop.description) if prop.description else None,
            ordinal_position=position,
            fields=list(_fields(inner)),
        )


# Events of OpenLineage for runs of dq: a start, and one end with the same run id.
#
# A check or an audit with a verdict is COMPLETE, whether it passed or failed; one without is FAIL.

NAMESPACE = "dq"
PRODUCER = f"https://pypi.org/project/{NAME}/{release()}"
# The client stores the producer of facets globally.
set_producer(PRODUCER)


@dataclass(frozen=True, slots=True)
class LineageSubject:
    """An object of a contract, its dataset names, and its inputs.

    `names` is not empty; its first name is the dataset's own, the others are aliases.
    """

    contract: Contract
    object: SchemaObject
    names: Sequence[DatasetName]
    inputs: Sequence[DatasetName] = ()


@dataclass(frozen=True, slots=True)
class CheckedScope:
    """One check of a subject on a scope, e.g. `day=2026-11-20`; all its events have the same run id.

    `verb` is `check`, or `audit` for `staged` data that is not published yet.
    """

    subject: LineageSubject
    scope: str
    verb: str = "check"
    staged: str = ""
    id: str = field(default_factory=lambda: str(generate_new_uuid()))

    def start_event(self, occurred_at: datetime) -> RunEvent:
        """Return the START event."""
        return self._event(RunState.START, occurred_at, {}, {})

    def end_event(self, report: Report | None, occurred_at: datetime) -> RunEvent:
        """Return the end event with the results; None: this run was published before."""
        if report is None:
            return self._event(RunState.COMPLETE, occurred_at, {}, {}, "published before")
        input_facets = {
            "dataQualityAssertions": assertions(report),
            "dataQualityMetrics": metrics(report, self.subject.object),
        }
        run = {"test": tests(report)}
        state = RunState.FAIL if report.verdict == VERDICT_UNKNOWN else RunState.COMPLETE
        return self._event(state, occurred_at, run, input_facets, report.verdict)

    def failure_event(self, occurred_at: datetime, message: str) -> RunEvent:
        """Return the FAIL event of a check that could not run."""
        facet = error_message_run.ErrorMessageRunFacet(clipped(message), "Python")
        return self._event(RunState.FAIL, occurred_at, {"errorMessage": facet}, {}, VERDICT_UNKNOWN)

    def _event(
        self,
        state: RunState,
        occurred_at: datetime,
        run: dict[str, RunFacet],
        input_facets: dict[str, InputDatasetFacet],
        verdict: str = "",
    ) -> RunEvent:
        subject = self.subject
        tags = tags_facet(
            contract=subject.contract.key,
            contract_version=subject.contract.version,
            scope=self.scope,
            staged=self.staged,
            verdict=verdict,
        )
        (namespace, name), *aliases = subject.names
        checked = InputDataset(
            namespace, name, facets=_schema_facets(subject.object, aliases), inputFacets=input_facets
        )
        return RunEvent(
            eventTime=_time(occurred_at),
            producer=PRODUCER,
            eventType=state,
            run=Run(self.id, facets={"tags": tags, **run}),
            job=_job(self.verb, subject),
            inputs=[checked, *(InputDataset(dataset.namespace, dataset.name) for dataset in subject.inputs)],
        )


def publication_events(
    subject: LineageSubject, id: str, occurred_at: datetime, rows: int | None = None
) -> list[RunEvent]:
    """Return the events of a published delivery. `id` is a UUID, the same in a retry."""
    (namespace, name), *aliases = subject.names
    statistics = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(rowCount=rows)
    output = OutputDataset(
        namespace,
        name,
        facets=_schema_facets(subject.object, aliases),
        outputFacets={} if rows is None else {"outputStatistics": statistics},
    )
    tags = tags_facet(contract=subject.contract.key, contract_version=subject.contract.version)
    return [
        RunEvent(
            eventTime=_time(occurred_at),
            producer=PRODUCER,
            eventType=state,
            run=Run(id, facets={"tags": tags}),
            job=_job("publish", subject),
            inputs=[InputDataset(dataset.namespace, dataset.name) for dataset in subject.inputs],
            outputs=[output],
        )
        for state in (RunState.START, RunState.COMPLETE)
    ]


def _schema_facets(schema_object: SchemaObject, aliases: Sequence[DatasetName]) -> dict[str, DatasetFacet]:
    """Return the schema facet of the contract's columns, and the symlinks facet of catalog names."""
    columns = schema_dataset.SchemaDatasetFacet(fields=list(_fields(schema_object.properties)))
    tables = [symlinks_dataset.Identifier(alias.namespace, alias.name, "TABLE") for alias in aliases]
    links = symlinks_dataset.SymlinksDatasetFacet(identifiers=tables)
    return {"schema": columns} | ({"symlinks": links} if tables else {})


def _job(verb: str, subject: LineageSubject) -> Job:
    kind = job_type_job.JobTypeJobFacet(processingType="BATCH", integration="DQ", jobType=verb.upper())
    return Job(NAMESPACE, f"{verb}.{subject.contract.key}.{subject.object.name}", facets={"jobType": kind})


def _time(occurred_at: datetime) -> str:
    return occurred_at.astimezone(UTC).isoformat().replace("+00:00", "Z")


# Sends events in a background thread, which is waited for briefly at the end.
#
# The backend may be down, slow or hostile: that causes one note, and does not affect the command.

# Further events are dropped: a slow backend must not fill the memory.
_MAX_WAITING = 10_000


class EventSender:
    """Sends events in order. `emit` sends one event, and may raise any exception."""

    def __init__(self, emit: Callable[[Any], object]) -> None:
        self._emit = emit
        self._waiting: queue.Queue[Any] = queue.Queue(_MAX_WAITING)
        self._accepted = self._sent = 0
        self._reason = ""
        self._lock = threading.Lock()
        self._idle = threading.Event()
        self._idle.set()
        self._thread: threading.Thread | None = None

    def send(self, event: Any) -> None:
        """Enqueue the event without blocking."""
        with self._lock:
            self._accepted += 1
            try:
                self._waiting.put_nowait(event)
            except queue.Full:
                return
            self._idle.clear()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="lineage", daemon=True)
                self._thread.start()

    def close(self, seconds: float) -> str | None:
        """Wait at most `seconds` for unsent events; return what was not sent and why, or None if all were."""
        begun = time.monotonic()
        timed_out = not self._idle.wait(seconds)
        with self._lock:
            missing = self._accepted - self._sent
            if not missing:
                return None
            waited = f"no answer within {time.monotonic() - begun:.0f} s"
            return f"{missing} of {self._accepted} events not sent: {waited if timed_out else self._reason}"

    def _run(self) -> None:
        while True:
            event = self._waiting.get()
            reason = self._try(event)
            with self._lock:
                if reason is None:
                    self._sent += 1
                else:
                    self._reason = reason
                if self._waiting.empty():
                    self._idle.set()

    def _try(self, event: Any) -> str | None:
        try:
            self._emit(event)
        # Guard around third-party code: its errors must not fail the check. Messages are not shown, since
        # they may quote the URL with a key.
        except Exception as error:  # noqa: BLE001
            status = getattr(getattr(error, "response", None), "status_code", None)
            return f"HTTP {status}" if status else _error_text(error)
        return None


def _error_text(error: Exception) -> str:
    reason = getattr(error, "strerror", None)
    return f"{type(error).__name__}: {reason}" if reason else type(error).__name__


# Recording of runs and deliveries by operations.

Check = Callable[[CheckSetup, Contract, SchemaObject, Partition | None], Report]
ReportCallback = Callable[[Report | None], None]
"""Receives the report of a run, or None if it was published before."""


@dataclass(frozen=True, slots=True)
class Recording:
    """Records events of checks, audits and publications, with the contracts that they refer to."""

    context: RuntimeContext
    sender: EventSender
    contracts: Mapping[str, Contract]
    inputs_by_object: Mapping[tuple[str, str], Iterable[tuple[str, str]]]
    server: str | None = None

    def with_events(self, check: Check) -> Check:
        """Return the check wrapped to send a start and an end event."""

        def check_with_events(
            setup: CheckSetup, contract: Contract, schema_object: SchemaObject, scope: Partition | None
        ) -> Report:
            subject = self.subject(contract, schema_object)
            with self._record_run(CheckedScope(subject, scope_name(scope)) if subject else None) as finish:
                report = check(setup, contract, schema_object, scope)
                finish(report)
            return report

        return check_with_events

    @contextmanager
    def record_audit(
        self, contract: Contract, schema_object: SchemaObject, scope: Partition | None, staged: str
    ) -> Iterator[ReportCallback]:
        """Send the start and the end event of an audit; the block passes its report to the yielded function.

        The input dataset is the staged data, so that its failures are not attributed to the table.
        """
        dataset_names = self._staged(contract, schema_object, staged)
        subject = LineageSubject(contract, schema_object, dataset_names) if dataset_names else None
        run = CheckedScope(subject, scope_name(scope or None), "audit", staged) if subject else None
        with self._record_run(run) as finish:
            yield finish

    @contextmanager
    def _record_run(self, run: CheckedScope | None) -> Iterator[ReportCallback]:
        if run is None:
            yield lambda _: None
            return
        self.sender.send(run.start_event(self.context.now()))
        try:
            yield lambda report: self.sender.send(run.end_event(report, self.context.now()))
        except DqError as error:
            self.sender.send(run.failure_event(self.context.now(), error.what))
            raise
        except BaseException as error:
            self.sender.send(run.failure_event(self.context.now(), type(error).__name__))
            raise

    def record_publication(
        self,
        contract: Contract,
        schema_object: SchemaObject,
        id: str,
        rows: int | None,
        staged: str | None = None,
    ) -> None:
        """Send the events of a delivery; `id` is the UUID of its event. `staged` data becomes an input."""
        subject = self.subject(contract, schema_object)
        if subject is not None and staged is not None:
            staged_names = self._staged(contract, schema_object, staged)[:1]
            subject = replace(subject, inputs=[*staged_names, *subject.inputs])
        if subject is not None:
            for event in publication_events(subject, id, self.context.now(), rows):
                self.sender.send(event)

    def subject(self, contract: Contract, schema_object: SchemaObject) -> LineageSubject | None:
        """Return the lineage subject of an object, or None if its data has no dataset name."""
        dataset_names = self._dataset_names(contract, schema_object, self.server)
        return (
            LineageSubject(contract, schema_object, dataset_names, self._inputs(contract, schema_object))
            if dataset_names
            else None
        )

    def _inputs(self, contract: Contract, schema_object: SchemaObject) -> Sequence[DatasetName]:
        datasets = []
        for key, name in sorted(self.inputs_by_object.get((contract.key, schema_object.name), ())):
            source_contract = self.contracts[key]
            source_object = source_contract.object(name)
            with suppress(DqError):
                # The matching server of a contract with other servers.
                server = (
                    self.server
                    if source_contract is contract
                    else matching_server(contract, self.server, source_contract)
                )
                datasets += (
                    self._dataset_names(source_contract, source_object, server)[:1]
                    if source_object is not None
                    else []
                )
        return datasets

    def _staged(self, contract: Contract, schema_object: SchemaObject, staged: str) -> list[DatasetName]:
        """Return the dataset names of staged data: a folder, or an Iceberg branch as Spark names it."""
        try:
            is_iceberg = resolve(contract, schema_object, self.server, self.context.reach).format == "iceberg"
        except DqError:
            return []
        if is_iceberg:
            table = self._dataset_names(contract, schema_object, self.server)
            return [DatasetName(dataset.namespace, f"{dataset.name}.branch_{staged}") for dataset in table]
        folder = files_dataset_name(staged if is_remote(staged) else str(self.context.folder / staged))
        return [folder] if folder else []

    def _dataset_names(
        self, contract: Contract, schema_object: SchemaObject, server: str | None
    ) -> list[DatasetName]:
        try:
            place = resolve(contract, schema_object, server, self.context.reach)
            return names(place, select_server(contract, server), schema_object, self.context.environment)
        except DqError:
            return []


# Transports: append to a file, post to a URL, or as configured by an OpenLineage settings file.

KEY = "OPENLINEAGE_API_KEY"
_ENDPOINT = "api/v1/lineage"
_HINT = "Correct DQ_LINEAGE, or lineage in dq.toml."


class _SingleResponseSession(requests.Session):
    """HTTP session that follows no redirects, reads no response body, and ignores `.netrc`."""

    def __init__(self) -> None:
        super().__init__()
        self.auth = lambda request: request

    def request(self, *args: Any, **options: Any) -> requests.Response:
        answer = super().request(*args, **options | {"stream": True, "allow_redirects": False})
        if answer.is_redirect:
            answer.close()
            raise requests.TooManyRedirects("redirects are not followed")
        return answer


class AppendedLines(Transport):
    """Appends one line of JSON per event, atomically across processes."""

    kind = "dq_file"
    config_class = Config

    def __init__(self, path: Path) -> None:
        self.path = path

    def emit(self, event: Any) -> None:
        line = Serde.to_json(event).encode() + b"\n"
        # Without O_NONBLOCK, opening a FIFO without a reader would block.
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NONBLOCK", 0)
        file = os.open(self.path, flags, 0o600)
        try:
            if sys.platform != "win32":
                import fcntl

                fcntl.flock(file, fcntl.LOCK_EX)
            while line:
                line = line[os.write(file, line) :]
        finally:
            os.close(file)


def transport(target: str, environment: Mapping[str, str]) -> Transport:
    """Return the transport for the setting `lineage`: a URL, a settings file (`.yml`, `.yaml`), or a file for
    lines.

    Raises UsageError, which does not quote the URL, if it is invalid.
    """
    if target.startswith(("http://", "https://")):
        return _http(target, environment)
    path = Path(target)
    if path.suffix in (".yml", ".yaml"):
        return _transport_from_file(path)
    return AppendedLines(path)


def _http(url: str, environment: Mapping[str, str]) -> Transport:
    if not url.isascii() or web_address(url, WEB) is None:
        raise UsageError("lineage is not a valid http:// or https:// URL.", _HINT)
    parts = urlsplit(url)
    key = environment.get(KEY)
    return HttpTransport(
        HttpConfig.from_dict(
            {
                "url": f"{parts.scheme}://{parts.netloc}",
                "endpoint": parts.path.strip("/") or _ENDPOINT,
                "retry": {"total": 1, "connect": 1, "read": 0},
                "session": _SingleResponseSession(),
                **({"auth": {"type": "api_key", "apiKey": key}} if key else {}),
            }
        )
    )


def _transport_from_file(path: Path) -> Transport:
    """Create the transport from the section `transport` of the file; no other config file is read."""
    try:
        document = yaml.safe_load(read_own(path).decode())
        client_transport = get_default_factory().create(dict(document["transport"]))
    # The configured transport class may raise any exception.
    except Exception as error:
        reason = f"rejected by OpenLineage ({type(error).__name__})"
        raise UsageError(f"{path}: {reason}.", "Write 'transport: {type: http, url: …}'.") from error
    if isinstance(client_transport, HttpTransport):
        client_transport.session = _SingleResponseSession()
    return client_transport
