"""A lake of many tables in every format and layout, and what is true of each of them.

Some lie in each other's folders, have hostile names, are copies of others, or cannot be read. In families of
tables (one per tenant or month) the columns are the same and the rows are not: they are no copies.
"""

from __future__ import annotations

import csv
import json
import os
import random
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
from pyiceberg.catalog.memory import InMemoryCatalog

WRITTEN_AT = 1_750_000_000
DOMAINS = ("sales", "finance", "logistics", "web", "people", "risk", "supply", "support")
_HOSTILE = (
    "new\nline", "quo'te", 'dou"ble', "per%41cent", "e\u0301clair", "-dash", "cur{l}y", "st*r", "br[a]cket",
    "sp ace", "emo\U0001f600ji", "<script>alert(1)</script>", "a:b", "semi;colon", "back`tick", "dol$lar",
    "am&p", "pi|pe", "hash#tag", "que?ry", "tab\tbed", "rtl\u202eoverride", os.fsdecode(b"latin-\xe9"),
    "plus+plus", "at@sign", "x" * 200, "CaseName", "casename", "comma,separated", "back\\slash",
)  # fmt: skip
_WORDS = (
    "amount", "city", "country", "currency", "price", "quantity", "status", "customer", "product",
    "vendor", "channel", "region", "campaign", "score", "weight", "height", "rating", "visits",
    "clicks", "views", "cost", "tax", "discount", "margin", "budget", "code", "label", "title", "email",
    "phone", "street", "zip", "state", "lat", "lon", "device", "browser", "version", "source", "medium",
    "referrer", "duration", "retries", "flag", "note",
)  # fmt: skip
_KINDS = ("bigint", "double", "string", "date", "bool", "int")
_ARROW = {
    "bigint": pa.int64(), "double": pa.float64(), "string": pa.string(), "date": pa.date32(),
    "bool": pa.bool_(), "int": pa.int32(),
}  # fmt: skip


@dataclass(slots=True)
class TruthTable:
    """A table of the lake: its folder or file below the root, and the rows that are in it."""

    path: str
    form: str
    layout: str
    rows: pa.Table = field(repr=False)
    copy_of: str = ""
    contract: str = ""
    broken: bool = False


def write_lake(
    root: Path, count: int, copies: int, broken: int, seed: int, *, hostile: bool = True
) -> list[TruthTable]:
    """Write the tables below the root; return them. With `hostile`, some have odd names."""
    return _Lake(root, random.Random(seed), _HOSTILE if hostile else ()).fill(count, copies, broken)


def columns_of(rows: pa.Table) -> Iterator[tuple[str, str]]:
    """Name and physical type of each column as a contract has them."""
    names = {str(kind): name for name, kind in _ARROW.items()} | {"bool": "boolean"}
    yield from ((column.name, names[str(column.type)]) for column in rows.schema)


class _Lake:
    def __init__(self, root: Path, chance: random.Random, hostile: Sequence[str]) -> None:
        self.root, self.chance, self.hostile = root, chance, hostile
        self.tables: list[TruthTable] = []
        self.iceberg = InMemoryCatalog("lake", warehouse=str(root))
        self.iceberg.create_namespace("lake")
        self.writers: dict[tuple[str, str], Callable[[str, pa.Table], None]] = {
            **{("parquet", layout): self._writer(layout, _parquet) for layout in _LAYOUTS},
            **{("csv", layout): self._writer(layout, _csv) for layout in ("flat", "day", "ymd")},
            **{("json", layout): self._writer(layout, _json) for layout in ("flat", "ymdh")},
            ("avro", "flat"): self._writer("flat", _avro),
            ("orc", "day"): self._writer("day", _orc),
            ("delta", ""): self._delta,
            ("iceberg", ""): self._iceberg,
            ("hudi", ""): self._hudi,
        }

    def fill(self, count: int, copies: int, broken: int) -> list[TruthTable]:
        forms = list(self.writers)
        families = count // 10
        plain = count - copies - broken - families
        for number in range(plain):
            form, layout = forms[number % len(forms)]
            # Most lakes are Parquet.
            if self.chance.random() < 0.5:
                form, layout = "parquet", self.chance.choice(list(_LAYOUTS))
            self.add(self._path(number), form, layout, self._rows())
        self._add_families(families)
        originals = [
            table
            for table in self.tables
            if table.form in ("parquet", "delta", "csv", "iceberg") and table.rows.num_columns >= 4
        ]
        for number, original in enumerate(self.chance.sample(originals, copies)):
            self._add_copy(number, original)
        for number in range(broken):
            self._add_broken(number)
        for path in self.root.rglob("*"):
            if not path.is_dir():
                os.utime(path, (WRITTEN_AT, WRITTEN_AT))
        return self.tables

    def add(self, path: str, form: str, layout: str, rows: pa.Table, **facts: Any) -> None:
        self.writers[form, layout](path, rows)
        self.tables.append(TruthTable(path, form, layout, rows, **facts))

    def _path(self, number: int) -> str:
        domain = DOMAINS[number % len(DOMAINS)]
        name = f"{self.chance.choice(_WORDS)}_{number}"
        if number % 12 == 0 and number // 12 < len(self.hostile):
            name = f"{self.hostile[number // 12]}_{number}"
        if number % 25 == 7 and self.tables[-1].form not in ("delta", "iceberg", "hudi"):
            # In the folder of another table, next to its files or partitions.
            return f"{self.tables[-1].path}/nested_{number}"
        return f"{domain}/{name}" if number % 5 else f"{domain}/team_{number % 7}/raw/{name}"

    def _rows(self, names: Sequence[str] | None = None, kinds: Sequence[str] | None = None) -> pa.Table:
        count = self.chance.randint(20, 400)
        if names is None or kinds is None:
            width = self.chance.randint(3, 14)
            names = ["id", *self.chance.sample(_WORDS, width)]
            kinds = ["bigint", *(self.chance.choice(_KINDS) for _ in range(width))]
        columns = {name: self._values(kind, count) for name, kind in zip(names, kinds, strict=True)}
        return pa.table(columns)

    def _values(self, kind: str, count: int) -> pa.Array:
        start, span = self.chance.randint(0, 100_000), self.chance.randint(2, 50_000)
        numbers = [start + self.chance.randrange(span) for _ in range(count)]
        values: dict[str, Callable[[int], Any]] = {
            "bigint": int, "int": int, "double": lambda number: number / 7,
            "bool": lambda number: number % 2 == 0, "string": lambda number: f"w{number}",
            "date": lambda number: date(2000, 1, 1) + timedelta(number % 9_000),
        }  # fmt: skip
        return pa.array([values[kind](number) for number in numbers], _ARROW[kind])

    def _add_families(self, count: int) -> None:
        """Tables of the same columns with rows of their own, one per tenant or month."""
        for start in range(0, count, 25):
            names = ["id", *self.chance.sample(_WORDS, self.chance.randint(4, 9))]
            kinds = ["bigint", *(self.chance.choice(_KINDS) for _ in names[1:])]
            domain, form = self.chance.choice(DOMAINS), self.chance.choice(("parquet", "parquet", "csv"))
            for number in range(start, min(start + 25, count)):
                path = f"{domain}/family_{start}/tenant_{number}/events"
                if start % 50:
                    path = f"{domain}/events_{start}_2025{number % 12 + 1:02d}_{number}"
                self.add(path, form, "flat", self._rows(names, kinds))

    def _add_copy(self, number: int, original: TruthTable) -> None:
        rows, form = original.rows, original.form
        path = f"{self.chance.choice(DOMAINS)}/{'tmp/' if number % 3 else ''}c{number}_{number * 7919}"
        change = number % 6
        if form == "csv" or change == 0:
            # The same files elsewhere.
            shutil.copytree(self.root / original.path, self.root / path, ignore=self._other_tables)
            self.tables.append(TruthTable(path, form, original.layout, rows, copy_of=original.path))
            return
        if change == 1 and rows.num_columns > 4:
            rows = rows.drop_columns([rows.column_names[-1]])
        elif change == 2 and rows.num_columns > 3:
            rows = rows.append_column("copied_by", pa.array(["etl"] * rows.num_rows))
        elif change == 3 and rows.num_columns > 4:
            names = rows.column_names
            rows = rows.rename_columns([*names[:-1], f"{names[-1]}_renamed"])
        elif change == 4:
            # A day old: the last rows are not in it.
            rows = rows.slice(0, max(1, rows.num_rows * 98 // 100))
        forms = [("parquet", layout) for layout in _LAYOUTS] + [("delta", "")]
        form, layout = self.chance.choice(forms)
        self.add(path, form, layout, rows, copy_of=original.path)

    def _other_tables(self, _: str, names: list[str]) -> list[str]:
        return [name for name in names if name.startswith("nested_")]

    def _add_broken(self, number: int) -> None:
        path = f"{DOMAINS[number % len(DOMAINS)]}/broken_{number}"
        folder = self.root / path
        folder.mkdir(parents=True)
        kinds: list[tuple[str, str, bytes]] = [
            ("parquet", "part-0.parquet", b"PAR1 is where it began, and it never ended"),
            ("parquet", "part-0.parquet", b""),
            ("delta", "_delta_log/00000000000000000000.json", b"{not json"),
            ("delta", "_delta_log/_last_checkpoint", b"{}"),
            ("iceberg", "metadata/v1.metadata.json", b"{}"),
            ("csv", "part-0.csv", b"a,a\n1,2\n"),
            ("csv", "part-0.csv", b"name\n\xff\xfe\xfd\n"),
            ("json", "part-0.json", b'{"a": 1}\n{"a": '),
            ("json", "part-0.json", b"[1, 2, 3]"),
            ("avro", "part-0.avro", b"Obj\x01truncated"),
        ]
        form, name, content = kinds[number % len(kinds)]
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
        self.tables.append(TruthTable(path, form, "", pa.table({}), broken=True))

    def _writer(
        self, layout: str, write: Callable[[Path, pa.Table], None]
    ) -> Callable[[str, pa.Table], None]:
        def written(path: str, rows: pa.Table) -> None:
            folders = _LAYOUTS[layout]
            size = -(-rows.num_rows // len(folders))
            for number, folder in enumerate(folders):
                part = rows.slice(number * size, size)
                if part.num_rows:
                    place = self.root / path / folder
                    place.mkdir(parents=True, exist_ok=True)
                    write(place / f"part-{number:05d}", part)
            (self.root / path / "_SUCCESS").touch()

        return written

    def _delta(self, path: str, rows: pa.Table) -> None:
        folder = self.root / path
        (folder / "_delta_log").mkdir(parents=True)
        half = max(1, rows.num_rows // 2)
        types = {"bigint": "long", "int": "integer"}
        fields = [
            {"name": name, "type": types.get(kind, kind), "nullable": True, "metadata": {}}
            for name, kind in columns_of(rows)
        ]
        actions: list[dict[str, Any]] = [
            {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
            {"metaData": {
                "id": path.encode("utf-8", "surrogateescape").hex()[:32],
                "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps({"type": "struct", "fields": fields}),
                "partitionColumns": [], "configuration": {}, "createdTime": WRITTEN_AT * 1000}},
        ]  # fmt: skip
        for number, part in enumerate((rows.slice(0, half), rows.slice(half))):
            if part.num_rows:
                file = folder / f"part-{number:05d}.parquet"
                _parquet(file.with_suffix(""), part)
                stats = json.dumps({"numRecords": part.num_rows})
                actions.append({"add": {
                    "path": file.name, "partitionValues": {}, "size": file.stat().st_size,
                    "modificationTime": WRITTEN_AT * 1000, "dataChange": True, "stats": stats}})  # fmt: skip
        text = "\n".join(map(json.dumps, actions)) + "\n"
        (folder / "_delta_log" / f"{0:020d}.json").write_text(text)

    def _iceberg(self, path: str, rows: pa.Table) -> None:
        name = ("lake", f"t{len(self.tables)}")
        location = f"file://{self.root / f'_iceberg_{len(self.tables)}'}"
        table = self.iceberg.create_table(name, rows.schema, location=location)
        table.append(rows)
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.move(location.removeprefix("file://"), self.root / path)

    def _hudi(self, path: str, rows: pa.Table) -> None:
        folder = self.root / path
        (folder / ".hoodie").mkdir(parents=True)
        (folder / ".hoodie" / "hoodie.properties").write_text("hoodie.table.name=t\nhoodie.table.version=6\n")
        (folder / ".hoodie" / "20250101000000000.commit").write_text("{}")
        keys = pa.array([str(number) for number in range(rows.num_rows)])
        _parquet(folder / "a_0-1-2_20250101000000000", rows.append_column("_hoodie_record_key", keys))


_LAYOUTS: dict[str, tuple[str, ...]] = {
    "flat": ("", ""),
    "day": ("day=2025-06-01", "day=2025-06-02", "day=2025-06-03"),
    "two": ("region=eu/day=2025-06-01", "region=us/day=2025-06-01"),
    "ymd": ("2025/06/01", "2025/06/02"),
    "ymdh": ("2025/06/01/05", "2025/06/01/06"),
    "iso": ("2025-06-01", "2025-06-02"),
    "compact": ("20250601", "20250602"),
    "month": ("2025/05", "2025/06"),
    "year": ("2024", "2025"),
}


def _parquet(path: Path, rows: pa.Table) -> None:
    with Path(f"{path}.parquet").open("wb") as file:
        pq.write_table(rows, file)


def _csv(path: Path, rows: pa.Table) -> None:
    with Path(f"{path}.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(rows.column_names)
        writer.writerows(zip(*(column.to_pylist() for column in rows.columns), strict=True))


def _json(path: Path, rows: pa.Table) -> None:
    lines = [json.dumps(row, default=str) for row in rows.to_pylist()]
    Path(f"{path}.json").write_text("\n".join(lines) + "\n")


def _orc(path: Path, rows: pa.Table) -> None:
    with Path(f"{path}.orc").open("wb") as file:
        orc.write_table(rows, file)


def _avro(path: Path, rows: pa.Table) -> None:
    kinds = {"bigint": "long", "int": "int", "double": "double", "string": "string", "boolean": "boolean"}
    fields = [
        {"name": name, "type": kinds.get(kind, {"type": "int", "logicalType": "date"})}
        for name, kind in columns_of(rows)
    ]
    with Path(f"{path}.avro").open("wb") as file:
        fastavro.writer(file, {"type": "record", "name": "row", "fields": fields}, rows.to_pylist())
