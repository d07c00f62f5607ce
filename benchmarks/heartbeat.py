"""One look at the metadata of 100,000 tables: seconds and memory of the first look, and of one without news.

1,000 real Parquet files (packed and cut in several ways, 10 to 3,000 rows), each linked into the folders of
100 tables, and contracts of ten tables each: every table has a folder and a file of its own name, on the disk
of this machine. The tables of one contract in ten are Delta's, with a log that says the rows and NULLs of the
file. What is simulated is the number of different files: 1,000 footers and logs are read 100 times each, and
an object store would add the way to it. One table in a thousand breaks its contract, and one has a footer
that nobody can read. The command is the real one, each time in a process of its own. Beside it, a loop by
hand reads the same contracts with PyYAML and lists the folder of each table: what a table costs of processor
time beyond the start of the command is a multiple of that.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from _cost import cpu_seconds, read_plainly
from _report import arguments, finish

TABLES, QUICK_TABLES, FILES, OF_A_CONTRACT, ODD = 100_000, 2_000, 1_000, 10, 1_000
OF_DELTA = 10
HEAD = """\
apiVersion: v3.2.0
kind: DataContract
id: c{number:05d}
version: 1.0.0
status: active
servers: [{{server: lake, type: local, path: 'lake/c{number:05d}/{{object}}', format: {form}}}]
schema:
"""
TABLE = """\
  - name: {name}
    properties:
      - {{name: id, logicalType: integer, physicalType: bigint, required: true}}
      - {{name: name, logicalType: string}}
      - {{name: at, logicalType: timestamp}}
"""


def main() -> int:
    args = arguments(__doc__ or "", tables=f"how many, by default {TABLES}")
    tables = args.tables or (QUICK_TABLES if args.quick else TABLES)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        began = time.monotonic()
        _deliver(place, tables)
        print(f"  {tables:,} tables made in {time.monotonic() - began:.0f} s", file=sys.stderr)
        first, healthy = _look(place)
        repeated, twice = _look(place)
        _touch(place, tables // 100)
        partial, thrice = _look(place)
        twentieth = tables // 20
        names = (f"contracts/c{number:05d}.odcs.yaml" for number in range(twentieth // OF_A_CONTRACT))
        small, _ = _look(place, *names)
        by_hand = cpu_seconds(lambda: _read_by_hand(place)) / tables
    odd = -(-tables // ODD)
    metrics = {
        "tables": float(tables),
        "first look, s": first[0],
        "first look, CPU ms per table": 1_000 * first[1] / tables,
        "nothing new, s": repeated[0],
        "nothing new, CPU ms per table": 1_000 * repeated[1] / tables,
        "1 % new, s": partial[0],
        "by hand, CPU ms per table": 1_000 * by_hand,
        "first look, CPU of a table / by hand": (first[1] - small[1]) / (tables - twentieth) / by_hand,
        "nothing new, CPU of a table / by hand": (repeated[1] - small[1]) / (tables - twentieth) / by_hand,
        "peak MB, first look": first[2],
        "peak MB, nothing new": repeated[2],
        "peak MB / that of a twentieth": repeated[2] / small[2],
        "wrong verdicts": float(sum(_wrong(summary, tables, odd) for summary in (healthy, twice, thrice))),
    }
    goals = {
        "nothing new, CPU of a table / by hand": ("<", 2.0),
        "peak MB / that of a twentieth": ("<", 1.5),
        "wrong verdicts": ("<", 1.0),
    }
    return finish(metrics, goals, args)


def _deliver(place: Path, tables: int) -> None:
    (place / "files").mkdir()
    (place / "contracts").mkdir()
    for number in range(min(FILES, tables)):
        _write(place / "files" / f"{number}.parquet", random.Random(number))
    pq.write_table(pa.table({"id": ["x"]}), place / "broken.parquet")
    (place / "unreadable.parquet").write_bytes(b"PAR1 no footer PAR1")
    old = time.time() - 3_600
    for file in (*(place / "files").iterdir(), place / "broken.parquet", place / "unreadable.parquet"):
        os.utime(file, (old, old))
    for contract in range(-(-tables // OF_A_CONTRACT)):
        own = range(contract * OF_A_CONTRACT, min(tables, (contract + 1) * OF_A_CONTRACT))
        form = "delta" if _of_delta(contract) else "parquet"
        text = HEAD.format(number=contract, form=form) + "".join(
            TABLE.format(name=f"t{number}") for number in own
        )
        (place / "contracts" / f"c{contract:05d}.odcs.yaml").write_text(text, "utf-8")
        for number in own:
            lake = place / "lake" / f"c{contract:05d}" / f"t{number}"
            lake.mkdir(parents=True)
            real = place / "files" / f"{number % FILES}.parquet"
            if number % ODD == 1:
                real = place / "broken.parquet"
            elif number % ODD == 2:
                real = place / "unreadable.parquet"
            (lake / "part-0.parquet").hardlink_to(real)
            if _of_delta(contract):
                (lake / "_delta_log").mkdir()
                (lake / "_delta_log" / f"{0:020}.json").hardlink_to(real.with_suffix(".json"))


def _read_by_hand(place: Path) -> None:
    """Reads all contracts and lists all tables, without a thought of what it means."""
    read_plainly((place / "contracts").iterdir())
    for folder, _, names in os.walk(place / "lake"):
        for name in names:
            Path(folder, name).stat()


def _of_delta(contract: int) -> bool:
    return contract % OF_DELTA == OF_DELTA // 2


def _write(file: Path, chance: random.Random) -> None:
    rows = chance.choice((10, 200, 3_000))
    table = pa.table(
        {
            "id": pa.array(range(rows), pa.int64()),
            "name": [chance.choice(("a", "b", None)) for _ in range(rows)],
            "at": pa.array([1_700_000_000_000_000 + n for n in range(rows)], pa.timestamp("us", "UTC")),
        }
    )
    packed, pages = chance.choice((("snappy", "1.0"), ("zstd", "2.0"))), chance.choice((True, False))
    size = chance.choice((100, 10_000))
    pq.write_table(table, file, compression=packed[0], data_page_version=packed[1], use_dictionary=pages,
                   row_group_size=size)  # fmt: skip
    types = {"id": "long", "name": "string", "at": "timestamp"}
    fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in types.items()]
    schema = json.dumps({"type": "struct", "fields": fields})
    stats = {"numRecords": rows, "nullCount": {name: table[name].null_count for name in types}}
    entry = {
        "path": "part-0.parquet",
        "partitionValues": {},
        "size": file.stat().st_size,
        "modificationTime": 1_700_000_000_000,
        "stats": json.dumps(stats),
    }
    log = (
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {"metaData": {"id": file.stem, "schemaString": schema, "partitionColumns": [], "configuration": {}}},
        {"add": entry},
    )
    file.with_suffix(".json").write_text("\n".join(map(json.dumps, log)), "utf-8")


def _touch(place: Path, tables: int) -> None:
    """Another file in the folder of so many tables; of Delta, another commit."""
    for number in range(tables):
        lake = place / "lake" / f"c{number // OF_A_CONTRACT:05d}" / f"t{number}"
        new, form = lake / "part-1.parquet", "parquet"
        if _of_delta(number // OF_A_CONTRACT):
            new, form = lake / "_delta_log" / f"{1:020}.json", "json"
        new.hardlink_to(place / "files" / f"{number % FILES}.{form}")


def _look(place: Path, *words: str) -> tuple[tuple[float, float, float], str]:
    """Seconds, CPU seconds and peak MB of one command line, and what it printed."""
    line = [sys.executable, "-c", _CHILD, "tables", *(words or ("contracts",))]
    done = subprocess.run(line, cwd=place, capture_output=True, text=True, check=False)
    if not done.stderr.strip().startswith("{") and "{" not in done.stderr:
        raise SystemExit(done.stdout[-1000:] + done.stderr[-2000:])
    summary = json.loads(done.stderr.strip().splitlines()[-1])
    return (summary["seconds"], summary["cpu"], summary["mb"]), done.stdout


_CHILD = """
import json, resource, sys, time
begun = time.monotonic()
from dq.cli.main import run
code = run(sys.argv[1:])
used = resource.getrusage(resource.RUSAGE_SELF)
seconds, cpu = time.monotonic() - begun, used.ru_utime + used.ru_stime
told = {"seconds": seconds, "cpu": cpu, "mb": used.ru_maxrss / 1024}
print(json.dumps(told), file=sys.stderr)
"""


def _wrong(summary: str, tables: int, odd: int) -> int:
    """Distance of the summary from what was made."""
    expected = f"{tables:,} tables: {tables - 2 * odd:,} as promised, {odd:,} broken, 0 only listed,"
    return int(expected not in summary)


if __name__ == "__main__":
    sys.exit(main())
