"""Events of OpenLineage: names of datasets, facets, runs, who tells of them, and where they are sent."""

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
from dq.contracts.access.access_policy import parse as parse_address
from dq.contracts.access.data_location import DataPlace, resolve, server_beside, server_of
from dq.contracts.access.files import read_own
from dq.contracts.install import NAME, release
from dq.contracts.model import Contract, Property, Quality, SchemaObject, Server
from dq.contracts.outcome import UNTOLD, CheckResult, DqError, Status, TextFault, UsageError
from dq.dataquality.report import Report
from dq.operations.check import Partition, Setup, name_of
from dq.operations.runtime.context import World

# Names of datasets. The place of the files is the name, as the integration of Spark has it; where a catalog
# knows the table too, that name is a symlink. Source: https://openlineage.io/docs/spec/naming.

# Clusters name themselves by host and port; these are the ports of the field.
_HIVE_PORT = "10000"
_REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")


class DatasetName(NamedTuple):
    """The two parts of a dataset's identity."""

    namespace: str
    name: str


def names(
    place: DataPlace, server: Server, one: SchemaObject, environment: Mapping[str, str]
) -> list[DatasetName]:
    """What the dataset is called, and behind it the other names that it goes by; none where nobody knows.

    A server of Glue without an account, or on a machine that names no region, gives the place of the files
    alone.
    """
    made = [of_files(place.path)] if place.path else []
    made.append(_of_table(place, server, one.column, environment))
    return [name for name in made if name is not None]


def of_files(path: str) -> DatasetName | None:
    """What a folder of files is called; None for what is no address."""
    address = parse_address(path)
    if isinstance(address, TextFault):
        return None
    below = "/".join(address.segments)
    if not address.scheme:
        return DatasetName("file", os.path.abspath(str(address)))  # noqa: PTH100  no link is followed
    # Object stores have keys, machines have paths.
    hosted = address.scheme in ("hdfs", "webhdfs", "swebhdfs", "abfs", "abfss", "wasb", "wasbs")
    return DatasetName(f"{address.scheme}://{address.host}", f"/{below}" if hosted else below or "/")


def _of_table(
    place: DataPlace, server: Server, table: str, environment: Mapping[str, str]
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


# What a check found, as the facets that OpenLineage has for it. No row of the data is in any of them.

_Metrics = data_quality_metrics_input_dataset.ColumnMetrics
# A text of a contract may be of any length, and a backend keeps all of it.
_LONGEST = 500
# What a check's number is in OpenLineage's words, where it is the number of all rows of the scope.
_COUNTS = {"required": "nullCount", "distinct_count": "distinctCount"}
_NUMBERS = {"sum": "sum", "min": "min", "max": "max"}


def clipped(text: str) -> str:
    """The text, or as much of it as an event should hold."""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def assertions(report: Report) -> InputDatasetFacet:
    """Each clause that was tested; one that could not be measured is no success, and says so in `actual`."""
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


def metrics(report: Report, one: SchemaObject) -> InputDatasetFacet:
    """The numbers of rows, nulls and values that the clauses measured on all rows of the scope."""
    narrowed = set(_narrowed(one))
    found: dict[str, _Metrics] = {}
    rows = None
    for result in report.results:
        if result.value is None or not math.isfinite(result.value) or result.by or result.clause in narrowed:
            continue
        if result.check == "row_count":
            rows = int(result.value)
        elif result.check in _COUNTS or result.check in _NUMBERS:
            number = int(result.value) if result.check in _COUNTS else result.value
            kept = found.setdefault(result.property, _Metrics())
            setattr(kept, (_COUNTS | _NUMBERS)[result.check], number)
    return data_quality_metrics_input_dataset.DataQualityMetricsInputDatasetFacet(
        columnMetrics=found, rowCount=rows
    )


def tests(report: Report) -> RunFacet:
    """Every clause with what became of it, the skipped ones too."""
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
    """What the run was about, as tags whose source is dq; empty texts are left out."""
    return tags_run.TagsRunFacet(
        tags=[tags_run.TagsRunFacetFields(key, text, "DQ") for key, text in texts.items() if text]
    )


def _column(result: CheckResult) -> str | None:
    """The one column that it is about, as the schema calls it; None for a key of several and for the rows."""
    return result.property if result.property and ", " not in result.property else None


def _severity(result: CheckResult) -> str:
    return "error" if result.severity.blocks else "warn"


def _actual(result: CheckResult) -> str:
    # Why something could not be measured may be an engine's own words, which quote the data.
    return "could not be measured" if result.status is Status.ERROR else clipped(result.observed)


def _narrowed(one: SchemaObject) -> Iterator[str]:
    """The rules whose number is a share, or is of some rows only."""
    for element in (one, *one.walk()):
        for quality in element.quality:
            if _percent(quality) or quality.custom("scope") is not None:
                yield quality.path()


def _percent(quality: Quality) -> bool:
    asked = quality.implementation if isinstance(quality.implementation, dict) else {}
    return any(str(unit).strip().lower() in ("percent", "%") for unit in (quality.unit, asked.get("unit")))


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
# A check or an audit that came to a verdict is COMPLETE, whether the promise is kept or broken; one that
# did
# not is FAIL.

NAMESPACE = "dq"
PRODUCER = f"https://pypi.org/project/{NAME}/{release()}"
# Who made the facets, for all of this process: the client keeps it in one place.
set_producer(PRODUCER)


@dataclass(frozen=True, slots=True)
class LineageSubject:
    """An object of a contract, what its data is called, and what it is made from.

    `called` is not empty; its first name is the dataset's own.
    """

    contract: Contract
    object: SchemaObject
    called: Sequence[DatasetName]
    made_from: Sequence[DatasetName] = ()


@dataclass(frozen=True, slots=True)
class CheckedScope:
    """One check of a subject on a scope, such as `day=2026-11-20`; its id is the same in all its events.

    `verb` is `check`, or `audit` of what is `staged`, which no reader sees yet.
    """

    subject: LineageSubject
    scope: str
    verb: str = "check"
    staged: str = ""
    id: str = field(default_factory=lambda: str(generate_new_uuid()))

    def started(self, at: datetime) -> RunEvent:
        """The check begins."""
        return self._event(RunState.START, at, {}, {})

    def judged(self, report: Report | None, at: datetime) -> RunEvent:
        """The check came to an end, with what it found; None: this very run was published before."""
        if report is None:
            return self._event(RunState.COMPLETE, at, {}, {}, "published before")
        found = {
            "dataQualityAssertions": assertions(report),
            "dataQualityMetrics": metrics(report, self.subject.object),
        }
        run = {"test": tests(report)}
        state = RunState.FAIL if report.verdict == UNTOLD else RunState.COMPLETE
        return self._event(state, at, run, found, report.verdict)

    def failed(self, at: datetime, message: str) -> RunEvent:
        """Nothing could be tested, for this reason."""
        said = error_message_run.ErrorMessageRunFacet(clipped(message), "Python")
        return self._event(RunState.FAIL, at, {"errorMessage": said}, {}, UNTOLD)

    def _event(
        self,
        state: RunState,
        at: datetime,
        run: dict[str, RunFacet],
        found: dict[str, InputDatasetFacet],
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
        (namespace, name), *others = subject.called
        checked = InputDataset(namespace, name, facets=_described(subject.object, others), inputFacets=found)
        return RunEvent(
            eventTime=_time(at),
            producer=PRODUCER,
            eventType=state,
            run=Run(self.id, facets={"tags": tags, **run}),
            job=_job(self.verb, subject),
            inputs=[checked, *(InputDataset(each.namespace, each.name) for each in subject.made_from)],
        )


def published(subject: LineageSubject, id: str, at: datetime, rows: int | None = None) -> list[RunEvent]:
    """A delivery is known: the dataset was made from its inputs. `id` is a UUID that a retry has too."""
    (namespace, name), *others = subject.called
    counted = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(rowCount=rows)
    made = OutputDataset(
        namespace,
        name,
        facets=_described(subject.object, others),
        outputFacets={} if rows is None else {"outputStatistics": counted},
    )
    tags = tags_facet(contract=subject.contract.key, contract_version=subject.contract.version)
    return [
        RunEvent(
            eventTime=_time(at),
            producer=PRODUCER,
            eventType=state,
            run=Run(id, facets={"tags": tags}),
            job=_job("publish", subject),
            inputs=[InputDataset(each.namespace, each.name) for each in subject.made_from],
            outputs=[made],
        )
        for state in (RunState.START, RunState.COMPLETE)
    ]


def _described(one: SchemaObject, others: Sequence[DatasetName]) -> dict[str, DatasetFacet]:
    """The columns that the contract promises, and the names of the dataset as a table in catalogs."""
    columns = schema_dataset.SchemaDatasetFacet(fields=list(_fields(one.properties)))
    tables = [symlinks_dataset.Identifier(each.namespace, each.name, "TABLE") for each in others]
    links = symlinks_dataset.SymlinksDatasetFacet(identifiers=tables)
    return {"schema": columns} | ({"symlinks": links} if tables else {})


def _job(verb: str, subject: LineageSubject) -> Job:
    kind = job_type_job.JobTypeJobFacet(processingType="BATCH", integration="DQ", jobType=verb.upper())
    return Job(NAMESPACE, f"{verb}.{subject.contract.key}.{subject.object.name}", facets={"jobType": kind})


def _time(at: datetime) -> str:
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


# Sends events beside the work: a thread of its own, which is waited for at the end, and not for long.
#
# Whoever takes the events may be down, slow or hostile: that costs one line on stderr, and changes nothing.

# What waits beyond this is thrown away: a backend that is slow for hours must not fill the memory.
_MOST_WAITING = 10_000


class EventSender:
    """Events in the order in which they were given. `emit` hands one over, and raises whatever it likes."""

    def __init__(self, emit: Callable[[Any], object]) -> None:
        self._emit = emit
        self._waiting: queue.Queue[Any] = queue.Queue(_MOST_WAITING)
        self._given = self._sent = 0
        self._reason = ""
        self._lock = threading.Lock()
        self._idle = threading.Event()
        self._idle.set()
        self._thread: threading.Thread | None = None

    def send(self, event: Any) -> None:
        """Takes the event, and never waits."""
        with self._lock:
            self._given += 1
            try:
                self._waiting.put_nowait(event)
            except queue.Full:
                return
            self._idle.clear()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="lineage", daemon=True)
                self._thread.start()

    def close(self, seconds: float) -> str | None:
        """Waits at most so long for what is left, and tells what was not sent and why; None: all was."""
        begun = time.monotonic()
        over = not self._idle.wait(seconds)
        with self._lock:
            missing = self._given - self._sent
            if not missing:
                return None
            waited = f"no answer within {time.monotonic() - begun:.0f} s"
            return f"{missing} of {self._given} events were not sent: {waited if over else self._reason}"

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
        # The one guard around code that is not ours: no error of it may become one of the check. Its words
        # may quote the address, and a key in it.
        except Exception as error:  # noqa: BLE001
            status = getattr(getattr(error, "response", None), "status_code", None)
            return f"HTTP {status}" if status else _said(error)
        return None


def _said(error: Exception) -> str:
    reason = getattr(error, "strerror", None)
    return f"{type(error).__name__}: {reason}" if reason else type(error).__name__


# What operations hand over: each run and delivery with what its data is made from.

Check = Callable[[Setup, Contract, SchemaObject, Partition | None], Report]
Ended = Callable[[Report | None], None]
"""Gets the report of a run; None where it was judged before."""


@dataclass(frozen=True, slots=True)
class Recording:
    """Where events go, and what is known of the contracts that they are about."""

    world: World
    sender: EventSender
    contracts: Mapping[str, Contract]
    made_from: Mapping[tuple[str, str], Iterable[tuple[str, str]]]
    server: str | None = None

    def around(self, check: Check) -> Check:
        """The same check, which tells of its start and its end."""

        def told(given: Setup, contract: Contract, one: SchemaObject, scope: Partition | None) -> Report:
            subject = self.subject(contract, one)
            with self._telling(CheckedScope(subject, name_of(scope)) if subject else None) as ended:
                report = check(given, contract, one, scope)
                ended(report)
            return report

        return told

    @contextmanager
    def audited(
        self, contract: Contract, one: SchemaObject, scope: Partition | None, staged: str
    ) -> Iterator[Ended]:
        """Tells of the start and the end of an audit; who audits hands over what was found.

        Its input is what is staged, so that no graph takes its faults for those of the table.
        """
        called = self._staged(contract, one, staged)
        subject = LineageSubject(contract, one, called) if called else None
        run = CheckedScope(subject, name_of(scope or None), "audit", staged) if subject else None
        with self._telling(run) as ended:
            yield ended

    @contextmanager
    def _telling(self, run: CheckedScope | None) -> Iterator[Ended]:
        if run is None:
            yield lambda _: None
            return
        self.sender.send(run.started(self.world.now()))
        try:
            yield lambda report: self.sender.send(run.judged(report, self.world.now()))
        except DqError as error:
            self.sender.send(run.failed(self.world.now(), error.what))
            raise
        except BaseException as error:
            self.sender.send(run.failed(self.world.now(), type(error).__name__))
            raise

    def published(
        self, contract: Contract, one: SchemaObject, id: str, rows: int | None, staged: str | None = None
    ) -> None:
        """Tells of a delivery; `id` is its event's, a UUID. It was made from what was `staged`, if it was."""
        subject = self.subject(contract, one)
        if subject is not None and staged is not None:
            before = self._staged(contract, one, staged)[:1]
            subject = replace(subject, made_from=[*before, *subject.made_from])
        if subject is not None:
            for event in published(subject, id, self.world.now(), rows):
                self.sender.send(event)

    def subject(self, contract: Contract, one: SchemaObject) -> LineageSubject | None:
        """What events call an object; None where its data has no name, so that nothing can be told."""
        called = self._called(contract, one, self.server)
        return LineageSubject(contract, one, called, self._inputs(contract, one)) if called else None

    def _inputs(self, contract: Contract, one: SchemaObject) -> Sequence[DatasetName]:
        found = []
        for key, name in sorted(self.made_from.get((contract.key, one.name), ())):
            other = self.contracts[key]
            made = other.object(name)
            with suppress(DqError):
                # Of a contract with another set of servers, the one that belongs to ours.
                server = self.server if other is contract else server_beside(contract, self.server, other)
                found += self._called(other, made, server)[:1] if made is not None else []
        return found

    def _staged(self, contract: Contract, one: SchemaObject, staged: str) -> list[DatasetName]:
        """What is staged: a folder by its own place, a branch of Iceberg as Spark calls it."""
        try:
            branch = resolve(contract, one, self.server, self.world.reach).format == "iceberg"
        except DqError:
            return []
        if branch:
            table = self._called(contract, one, self.server)
            return [DatasetName(each.namespace, f"{each.name}.branch_{staged}") for each in table]
        folder = of_files(staged if is_remote(staged) else str(self.world.folder / staged))
        return [folder] if folder else []

    def _called(self, contract: Contract, one: SchemaObject, server: str | None) -> list[DatasetName]:
        try:
            place = resolve(contract, one, server, self.world.reach)
            return names(place, server_of(contract, server), one, self.world.environment)
        except DqError:
            return []


# How events leave: appended to a file, posted to a URL, or as a file of OpenLineage's own settings says.

KEY = "OPENLINEAGE_API_KEY"
_ENDPOINT = "api/v1/lineage"
_MEND = "Correct DQ_LINEAGE, or lineage in dq.toml."


class _OneAnswer(requests.Session):
    """Follows nothing, reads no answer's body, and sends no password of `.netrc`."""

    def __init__(self) -> None:
        super().__init__()
        self.auth = lambda request: request

    def request(self, *given: Any, **options: Any) -> requests.Response:
        answer = super().request(*given, **options | {"stream": True, "allow_redirects": False})
        if answer.is_redirect:
            answer.close()
            raise requests.TooManyRedirects("it sends to another address, which dq does not follow")
        return answer


class AppendedLines(Transport):
    """One line of JSON for each event, whole also where several processes write."""

    kind = "dq_file"
    config_class = Config

    def __init__(self, path: Path) -> None:
        self.path = path

    def emit(self, event: Any) -> None:
        line = Serde.to_json(event).encode() + b"\n"
        # Without O_NONBLOCK, a FIFO that nobody reads would keep us waiting.
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
    """What the setting `lineage` names: a URL, a file of settings (`.yml`, `.yaml`), or a file for lines.

    Raises UsageError, which quotes no URL, for what cannot be understood.
    """
    if target.startswith(("http://", "https://")):
        return _http(target, environment)
    path = Path(target)
    if path.suffix in (".yml", ".yaml"):
        return _of_settings(path)
    return AppendedLines(path)


def _http(url: str, environment: Mapping[str, str]) -> Transport:
    if not url.isascii() or web_address(url, WEB) is None:
        raise UsageError("lineage is no URL that can be posted to.", _MEND)
    parts = urlsplit(url)
    key = environment.get(KEY)
    return HttpTransport(
        HttpConfig.from_dict(
            {
                "url": f"{parts.scheme}://{parts.netloc}",
                "endpoint": parts.path.strip("/") or _ENDPOINT,
                "retry": {"total": 1, "connect": 1, "read": 0},
                "session": _OneAnswer(),
                **({"auth": {"type": "api_key", "apiKey": key}} if key else {}),
            }
        )
    )


def _of_settings(path: Path) -> Transport:
    """As the client makes it of the section `transport`; no other file of it is looked for or read."""
    try:
        written = yaml.safe_load(read_own(path).decode())
        made = get_default_factory().create(dict(written["transport"]))
    # What is wrong in there is said by whatever the file names, a class of the operator's own too.
    except Exception as error:
        reason = f"OpenLineage does not understand it ({type(error).__name__})"
        raise UsageError(f"{path}: {reason}.", "Write 'transport: {type: http, url: …}'.") from error
    if isinstance(made, HttpTransport):
        made.session = _OneAnswer()
    return made
