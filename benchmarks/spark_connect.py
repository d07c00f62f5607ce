"""Forty clauses through Spark Connect, against a classic session: the same results, and the CPU of both.

Each session runs in a process of its own, with a server on this machine, and checks the table several times;
the run counts that takes the least CPU of Python and the JVM. Without optimizations, Spark scans for both.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from _report import arguments, finish
from spark import data

SCALE, QUICK_SCALE = 3.0, 0.1
RUNS, QUICK_RUNS = 5, 2
PROGRAM = """
import json, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from pyspark.sql import SparkSession
from spark import machine
from dq.contracts.yaml.parse import parse
from dq.dataquality.answers.sources import ALL, NONE
from dq.dataquality.check import check
from dq.dataquality.request import Request

_, _, contract, table, runs, all_ = sys.argv
parsed = parse(Path(contract).read_bytes(), contract).contract
spark = SparkSession.builder.config("spark.sql.shuffle.partitions", "8").getOrCreate()
seconds = []
for _ in range(int(runs)):
    before = machine.cpu_seconds()
    frame = spark.read.parquet(table)
    report = check(Request(parsed, frame, optimizations=ALL if all_ else NONE))
    seconds.append(machine.cpu_seconds() - before)
results = [[r.clause, r.status.value, r.observed, list(r.samples)] for r in report.results]
print("RESULT", json.dumps({"seconds": min(seconds), "results": results, "proven": report.from_statistics,
    "notes": report.notes}, default=str))
"""


def main() -> int:
    args = arguments(__doc__ or "", scale={"type": float, "help": f"scale factor (default: {SCALE:g})"})
    work = (Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")) / "dq-bench").expanduser()
    scale = args.scale or (QUICK_SCALE if args.quick else SCALE)
    table = data.place(data.scaled(scale), work)
    runs = QUICK_RUNS if args.quick else RUNS
    measured = {}
    for name in ("classic", "Connect"):
        for optimized in (True, False):
            measured[name, optimized] = _measure(
                table, runs, is_remote=name == "Connect", optimized=optimized
            )
    results = [answer["results"] for answer in measured.values()]
    seconds = {key: float(answer["seconds"]) for key, answer in measured.items()}
    classic, scan = seconds["classic", True], seconds["classic", False]
    metrics = {
        "scale": scale,
        "classic, CPU s": classic,
        "Connect / classic": seconds["Connect", True] / classic,
        "classic without optimizations / classic": scan / classic,
        "Connect without optimizations / classic": seconds["Connect", False] / classic,
        "sessions with other results": float(sum(result != results[0] for result in results)),
        "clauses from statistics, classic": float(measured["classic", True]["proven"]),
        "clauses from statistics, Connect": float(measured["Connect", True]["proven"]),
    }
    for (name, _), answer in measured.items():
        for note in answer["notes"]:
            print(f"  {name}: {note}", file=sys.stderr)
    goals = {"sessions with other results": ("<", 1.0)}
    if not args.quick:
        goals["Connect / classic"] = ("<", 1.3)
    return finish(metrics, goals, args)


def _measure(table: Path, runs: int, *, is_remote: bool, optimized: bool) -> dict[str, list[str]]:
    """Return the least CPU seconds of a check, its results and notes."""
    own = ("PYSPARK_", "SPARK_", "DQ_")
    environment = {name: text for name, text in os.environ.items() if not name.startswith(own)}
    environment["PYSPARK_PYTHON"] = sys.executable
    master = f"local[{os.cpu_count()}]"
    environment |= {"SPARK_REMOTE": master} if is_remote else {"MASTER": master}
    folder = Path(__file__).parent
    words = [str(folder), str(folder / "c40.odcs.yaml"), str(table), str(runs), "all" if optimized else ""]
    with tempfile.TemporaryDirectory() as scratch:
        ran = subprocess.run(
            [sys.executable, "-c", PROGRAM, *words],
            cwd=scratch,
            env=environment | {"PYSPARK_SUBMIT_ARGS": "--driver-memory 4g pyspark-shell"},
            capture_output=True,
            text=True,
            check=False,
        )
    if "RESULT " not in ran.stdout:
        raise SystemExit(ran.stderr[-3_000:])
    answer: dict[str, list[str]] = json.loads(ran.stdout.partition("RESULT ")[2])
    return answer


if __name__ == "__main__":
    sys.exit(main())
