"""The tables of the demonstration as its producer left them one noon, written without Spark."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from dq.cli.demo import producer, scenario
from dq.contracts.model import SchemaObject
from dq.contracts.shared.install import needing
from dq.contracts.shared.outcome import UsageError
from dq.contracts.types import catalog_type

if TYPE_CHECKING:
    from pyarrow import Table

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
        sources = producer.sources(Path(cache), *EXTRAS)
        events = [event for event in scenario.events() if event.object and event.at <= UNTIL]
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
    seconds = scenario.instant(at).timestamp()
    os.utime(file, (seconds, seconds))
    return int(rows.num_rows)
