"""Tables of extreme shapes, each checked as a command at a size and at ten times that size.

Thousands of columns, files, partitions and contracts; a group of rows of gigabytes in values; texts of
megabytes; hundreds of clauses on one column; a key that has one value in 90 % of the rows. Files of one
content are links, so that their number is real and their bytes are not written. Printed are the seconds and
the CPU seconds of the command with all its processes, its peak memory, and how both grow: 1 is as fast as the
size. `--only` runs one shape.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from _report import arguments, finish
from spark import machine

STEP = 10
# Largest group of rows that pyarrow writes.
GROUP = 1 << 26


@dataclass(frozen=True, slots=True)
class Shape:
    """A shape and its smaller size; `write` makes the data and contracts, and returns arguments of `dq`.

    `megabytes_of_one` is the memory that each of the size may take. `quick` is the smaller size of the quick
    form, which leaves out shapes without one.
    """

    write: Callable[[Path, int], Sequence[str]]
    size: int
    megabytes_of_one: float = 0.0
    quick: int = 0


@dataclass(frozen=True, slots=True)
class Measured:
    wall: float
    cpu: float
    megabytes: float


def contract(name: str, properties: Sequence[dict[str, object]], **parts: object) -> str:
    """Return a contract of a table in `lake/<name>` as JSON, which is YAML."""
    schema_object = {"name": name, "properties": list(properties), **parts}
    server = {"server": "lake", "type": "local", "path": f"lake/{name}", "format": "parquet"}
    return json.dumps(
        {
            "apiVersion": "v3.2.0",
            "kind": "DataContract",
            "id": name,
            "version": "1.0.0",
            "status": "active",
            "servers": [server],
            "schema": [schema_object],
        }
    )


def put(folder: Path, name: str, text: str) -> list[str]:
    """Write a contract, and return the arguments that check all of its data."""
    file = folder / "registry" / f"{name}.odcs.yaml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(text, "utf-8")
    return ["check", str(file), "--all"]


ID = {"name": "id", "logicalType": "integer", "physicalType": "bigint", "required": True}
TEXT = {"name": "text", "logicalType": "string", "required": True}
DAY = {"name": "day", "logicalType": "string", "partitioned": True, "partitionKeyPosition": 1}
COUNTED = [{"metric": "rowCount", "mustBeGreaterThan": 0}]


def columns(folder: Path, size: int) -> Sequence[str]:
    """Columns that must have values, within bounds: too much data for a check without Spark."""
    bounds = {"logicalTypeOptions": {"minimum": 0, "maximum": 10_000}}
    names = [f"c{number}" for number in range(size)]
    table = {name: pa.array(range(5_000), pa.int64()) for name in names}
    (folder / "lake/wide").mkdir(parents=True)
    pq.write_table(pa.table(table), folder / "lake/wide/part-0.parquet")
    return put(folder, "wide", contract("wide", [{**ID, "name": name, **bounds} for name in names]))


def linked(folder: Path, name: str, places: Sequence[str], rows: int) -> None:
    """Write a file of about 100 kB at the first place, and link the other places to it."""
    first, *linked_places = [folder / "lake" / name / place for place in places]
    first.parent.mkdir(parents=True)
    pq.write_table(pa.table({"id": pa.array(range(rows), pa.int64())}), first, compression="none")
    for number, path in enumerate(linked_places, 1):
        path.parent.mkdir(parents=True, exist_ok=True)
        # A file has at most 65,000 links.
        if number % 50_000 == 0:
            path.write_bytes(first.read_bytes())
            first = path
        else:
            os.link(first, path)


def files(folder: Path, size: int) -> Sequence[str]:
    """Files of 100 kB in one folder."""
    linked(folder, "files", [f"part-{number:06d}.parquet" for number in range(size)], 12_000)
    return put(folder, "files", contract("files", [ID], quality=COUNTED))


def partitions(folder: Path, size: int) -> Sequence[str]:
    """Partitions of one file of 100 rows."""
    linked(folder, "parts", [f"day={number:06d}/part-0.parquet" for number in range(size)], 100)
    return put(folder, "parts", contract("parts", [ID, DAY], quality=COUNTED))


def group_of_rows(folder: Path, size: int) -> Sequence[str]:
    """A group of rows with this many megabytes of numbers, which are one byte or two as encoded."""
    width = 10
    rows = size * 1_000_000 // (8 * width)
    assert rows <= GROUP
    numbers = pa.array([number // 1_000 for number in range(1_000_000)], pa.int64())
    repeated = pa.chunked_array([numbers] * (rows // 1_000_000 + 1))[:rows]
    table = pa.table({f"c{number}": repeated for number in range(width)})
    (folder / "lake/large").mkdir(parents=True)
    pq.write_table(table, folder / "lake/large/part-0.parquet", row_group_size=GROUP)
    properties = [
        {**ID, "name": f"c{number}", "logicalTypeOptions": {"maximum": 1_000}} for number in range(width)
    ]
    properties[0]["quality"] = [
        {"metric": "duplicateValues", "mustBeGreaterThan": 0},
        {"type": "sql", "query": "SELECT COUNT(*) FROM {object} WHERE c0 + c1 > 5000", "mustBe": 0},
    ]
    return put(folder, "large", contract("large", properties))


def long_texts(folder: Path, size: int) -> Sequence[str]:
    """Ten texts of this many kilobytes, matched by a pattern and a length."""
    options = {"logicalTypeOptions": {"pattern": "^[a-z]+[0-9]+$", "maxLength": 20_000_000}}
    texts = [f"{'abcdefghij' * (size * 100)}{number}" for number in range(10)]
    (folder / "lake/texts").mkdir(parents=True)
    pq.write_table(pa.table({"text": texts}), folder / "lake/texts/part-0.parquet", compression="zstd")
    return put(folder, "texts", contract("texts", [{**TEXT, **options}]))


def clauses(folder: Path, size: int) -> Sequence[str]:
    """Rules in SQL and with metrics on one column."""
    rules: list[dict[str, object]] = [
        {"type": "sql", "query": f"SELECT COUNT(*) FROM {{object}} WHERE id % {number + 7} = -1", "mustBe": 0}
        if number % 2
        else {"metric": "invalidValues", "arguments": {"validValues": [number, -1]}, "mustBeGreaterThan": 0}
        for number in range(size)
    ]
    (folder / "lake/ruled").mkdir(parents=True)
    table = pa.table({"id": pa.array(range(100_000), pa.int64())})
    pq.write_table(table, folder / "lake/ruled/part-0.parquet")
    return put(folder, "ruled", contract("ruled", [{**ID, "quality": rules}]))


def contracts(folder: Path, size: int) -> Sequence[str]:
    """Contracts that one `dq check --dry-run` plans."""
    for number in range(size):
        name = f"table_{number:05d}"
        linked(folder, name, ["part-0.parquet"], 10)
        put(folder, name, contract(name, [ID], quality=COUNTED))
    return ["check", str(folder / "registry"), "--dry-run"]


def skewed(folder: Path, size: int) -> Sequence[str]:
    """Thousands of rows whose key has one value in 90 %; the number of repeated keys is expected."""
    chunk = 100_000
    (folder / "lake/skewed").mkdir(parents=True)
    schema = pa.schema({"id": pa.int64(), "text": pa.string()})
    with pq.ParquetWriter(folder / "lake/skewed/part-0.parquet", schema) as writer:
        for start in range(0, size * 1_000, chunk):
            numbers = range(start, min(start + chunk, size * 1_000))
            keys = pa.array([number if number % 10 == 0 else -1 for number in numbers], pa.int64())
            texts = pa.array([f"text {number}" for number in numbers])
            writer.write_table(pa.table({"id": keys, "text": texts}))
    rules = [{"metric": "duplicateValues", "mustBeGreaterThan": 0}]
    return put(folder, "skewed", contract("skewed", [{**ID, "quality": rules}, TEXT]))


# Megabytes of one: an entry of a listing in Python and in the JVM; a contract with its clauses.
SHAPES = {
    "columns": Shape(columns, 200, 0.5, quick=40),
    "files": Shape(files, 5_000, 0.02),
    "partitions": Shape(partitions, 10_000, 0.02),
    "MB in a group of rows": Shape(group_of_rows, 500),
    "kB of a text": Shape(long_texts, 1_000, 0.2),
    "clauses on a column": Shape(clauses, 50, 1.0, quick=10),
    "contracts planned": Shape(contracts, 1_000, 0.1, quick=50),
    "thousand rows of a skewed key": Shape(skewed, 1_000),
}


def measure(folder: Path, words: Sequence[str]) -> Measured:
    """Run a command, and sample its processes. Exits if it fails."""
    environment = {**os.environ, "DQ_LAKE_ROOTS": str(folder)}
    command = [str(Path(sys.executable).with_name("dq")), *words]
    before = time.perf_counter()
    with (folder / "out.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)
        peak = cpu = 0.0

        def watch() -> None:
            nonlocal peak, cpu
            # The command does not wait for the JVM to end, so the system does not add its seconds.
            while process.returncode is None:
                peak = max(peak, resident_megabytes(process.pid))
                cpu = max(cpu, machine.cpu_seconds(process.pid))
                time.sleep(0.1)

        watcher = threading.Thread(target=watch)
        watcher.start()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        watcher.join()
    output = (folder / "out.log").read_text()
    if process.returncode != 0 or not ("Clauses:" in output or "questions for" in output):
        raise SystemExit(f"dq {' '.join(words)}: exit {process.returncode}\n{output[-3_000:]}")
    return Measured(time.perf_counter() - before, max(cpu, used.ru_utime + used.ru_stime), peak)


def resident_megabytes(root: int) -> float:
    """Return the memory of a process and of all that it started; shared pages count once."""
    kilobytes = 0
    for process in machine.family(root):
        try:
            lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        kilobytes += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return kilobytes / 1e3


def main() -> int:
    args = arguments(__doc__ or "", only={"choices": sorted(SHAPES), "help": "this shape alone"})
    metrics: dict[str, float] = {}
    goals: dict[str, tuple[str, float]] = {}
    for name, shape in SHAPES.items():
        small = shape.quick if args.quick else shape.size
        if args.only not in (None, name) or not small:
            continue
        measured = []
        for size in (small, STEP * small):
            with tempfile.TemporaryDirectory() as scratch:
                folder = Path(scratch)
                words = shape.write(folder, size)
                measured.append(measure(folder, words))
            last = measured[-1]
            metrics |= {
                f"{size:,} {name}: seconds": last.wall,
                f"{size:,} {name}: CPU seconds": last.cpu,
                f"{size:,} {name}: peak MB": last.megabytes,
            }
            print(
                f"  {size:,} {name}: {last.wall:.1f} s, {last.cpu:.1f} CPU s, {last.megabytes:,.0f} MB",
                file=sys.stderr,
            )
        first, last = measured
        growth, allowed = f"{name}: growth of CPU per decade", f"{name}: memory / stated"
        metrics[growth] = last.cpu / first.cpu / STEP
        stated = first.megabytes * 1.25 + shape.megabytes_of_one * (STEP - 1) * small
        metrics[allowed] = last.megabytes / stated
        goals |= {growth: ("<", 1.2), allowed: ("<", 1.0)}
    return finish(metrics, goals, args)


if __name__ == "__main__":
    sys.exit(main())
