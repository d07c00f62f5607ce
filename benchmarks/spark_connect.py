"""Forty clauses through Spark Connect, against a classic session: the same results, and the CPU of both.

Each session runs in a process of its own, with a server on this machine, and checks the table several times;
the run counts that takes the least CPU of Python and the JVM. Without optimizations, Spark scans for both.
Then both sessions check random contracts on random tables, with and without optimizations.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from _report import arguments, finish
from spark import data
from spark.contract import text

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from _referee_tables import NOW, contract, table  # after the path
from _referee_truth import Json
from _referee_writers import EVERY, write

SCALE, QUICK_SCALE = 3.0, 0.1
RUNS, QUICK_RUNS = 5, 2
COMPARISONS, QUICK_COMPARISONS = 1_000, 20
PROGRAM = """
import datetime as dt, json, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from pyspark.sql import SparkSession
from spark import machine
from dq.contracts.yaml.parse import parse
from dq.dataquality.answers.sources import ALL, NONE
from dq.dataquality.check import check
from dq.dataquality.request import Request

spark = SparkSession.builder.config("spark.sql.shuffle.partitions", "8").getOrCreate()
for line in Path(sys.argv[2]).read_text().splitlines():
    case = json.loads(line)
    parsed = parse(case["contract"].encode(), "random.odcs.yaml").contract
    now = dt.datetime.fromisoformat(case["now"])
    seconds = []
    for _ in range(case["runs"]):
        before = machine.cpu_seconds()
        frame = spark.read.parquet(case["table"])
        optimizations = ALL if sys.argv[3] else NONE
        options = {} if case["tasks_from"] is None else {"tasks_from": case["tasks_from"]}
        report = check(Request(parsed, frame, now=now, optimizations=optimizations, **options))
        seconds.append(machine.cpu_seconds() - before)
    results = {r.clause: json.dumps([r.status, r.observed, r.value, list(r.samples)], default=str)
        for r in report.results}
    print("RESULT", json.dumps({"seconds": min(seconds), "results": results, "proven": report.from_statistics,
        "notes": report.notes}), flush=True)
"""
SESSIONS = [(name, optimized) for name in ("classic", "Connect") for optimized in (True, False)]
Answers = dict[tuple[str, bool], list[dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class Case:
    """A contract, the folder of its table, and `tasks_from` of the request (None: its default)."""

    contract: str
    table: str
    now: str
    runs: int = 1
    tasks_from: int | None = None


def main() -> int:
    args = arguments(
        __doc__ or "",
        scale={"type": float, "help": f"scale factor (default: {SCALE:g})"},
        runs=f"checks of each session (default: {RUNS})",
        comparisons=f"random comparisons (default: {COMPARISONS})",
        seed="seed of the random tables (default: a random one)",
    )
    work = (Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")) / "dq-bench").expanduser()
    scale = args.scale or (QUICK_SCALE if args.quick else SCALE)
    runs = args.runs or (QUICK_RUNS if args.quick else RUNS)
    lineitem = str(data.place(data.scaled(scale), work))
    measured = _measure([Case(text(scale), lineitem, "1998-12-02T00:00:00+00:00", runs)])
    seconds = {key: float(answers[0]["seconds"]) for key, answers in measured.items()}
    classic, scan = seconds["classic", True], seconds["classic", False]
    reports = [answers[0]["results"] for answers in measured.values()]
    metrics = {
        "scale": scale,
        "classic, CPU s": classic,
        "Connect / classic": seconds["Connect", True] / classic,
        "classic without optimizations / classic": scan / classic,
        "Connect without optimizations / classic": seconds["Connect", False] / classic,
        "sessions with other results": float(sum(report != reports[0] for report in reports)),
        "clauses from statistics, classic": float(measured["classic", True][0]["proven"]),
        "clauses from statistics, Connect": float(measured["Connect", True][0]["proven"]),
    }
    for (name, _), answers in measured.items():
        for note in answers[0]["notes"]:
            print(f"  {name}: {note}", file=sys.stderr)
    comparisons = QUICK_COMPARISONS if args.quick else COMPARISONS
    comparisons_ = comparisons if args.comparisons is None else args.comparisons
    metrics |= _compare_random_tables(comparisons_, args.seed)
    goals = {"sessions with other results": ("<", 1.0), "random comparisons that differ": ("<", 1.0)}
    if not args.quick:
        goals["Connect / classic"] = ("<", 1.3)
    return finish(metrics, goals, args)


def _compare_random_tables(minimum: int, seed: int | None) -> dict[str, float]:
    """Compare each clause of random contracts between the sessions, with and without optimizations."""
    seed = random.SystemRandom().randrange(10**9) if seed is None else seed
    print(f"  seed of the random tables: {seed}", file=sys.stderr)
    tables = comparisons = differences = proven = 0
    with tempfile.TemporaryDirectory() as folder:
        while comparisons < minimum:
            # About seven clauses in a contract, compared twice.
            count = max(1, min(100, (minimum - comparisons) // 14))
            cases = [_random_case(seed + tables + number, Path(folder)) for number in range(count)]
            answers = _measure(cases)
            for optimized in (True, False):
                pairs = zip(answers["classic", optimized], answers["Connect", optimized], strict=True)
                for number, (classic, connect) in enumerate(pairs):
                    proven += classic["proven"]
                    for clause in classic["results"].keys() | connect["results"].keys():
                        comparisons += 1
                        both = [answer["results"].get(clause) for answer in (classic, connect)]
                        if both[0] != both[1]:
                            differences += 1
                            print(f"  seed {seed + tables + number}, {clause}: {both}", file=sys.stderr)
            tables += count
            print(f"  {comparisons} comparisons on {tables} tables", file=sys.stderr, flush=True)
    return {
        "random tables": float(tables),
        "random comparisons": float(comparisons),
        "random clauses proven by statistics": float(proven),
        "random comparisons that differ": float(differences),
    }


def _random_case(seed: int, folder: Path) -> Case:
    chance = random.Random(seed)
    random_table = table(chance, EVERY)
    document = contract(chance, random_table)
    written = write(
        chance.choice(("pyarrow", "polars")), random_table, folder / str(seed), chance, None, None
    )
    server = {"server": "lake", "type": "local", "path": str(written.place), "format": "parquet"}
    promised = json.dumps(_public({**document, "servers": [server]}), ensure_ascii=False)
    return Case(promised, str(written.place), NOW.isoformat(), tasks_from=0)


def _public(node: Json) -> Any:
    """Return the document without keys that only the referee's evaluator reads."""
    if isinstance(node, dict):
        return {key: _public(value) for key, value in node.items() if not key.startswith("_")}
    return [_public(item) for item in node] if isinstance(node, list) else node


def _measure(cases: list[Case]) -> Answers:
    """Return the least CPU seconds of a check, its results and notes, by session and case."""
    return {
        (name, optimized): _answers(cases, is_remote=name == "Connect", optimized=optimized)
        for name, optimized in SESSIONS
    }


def _answers(cases: list[Case], *, is_remote: bool, optimized: bool) -> list[dict[str, Any]]:
    own = ("PYSPARK_", "SPARK_", "DQ_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    environment["PYSPARK_PYTHON"] = sys.executable
    master = f"local[{os.cpu_count()}]"
    environment |= {"SPARK_REMOTE": master} if is_remote else {"MASTER": master}
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch, "cases.jsonl")
        lines = [{name: getattr(case, name) for name in Case.__slots__} for case in cases]
        file.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
        words = [str(Path(__file__).parent), str(file), "all" if optimized else ""]
        ran = subprocess.run(
            [sys.executable, "-c", PROGRAM, *words],
            cwd=scratch,
            env=environment | {"PYSPARK_SUBMIT_ARGS": "--driver-memory 4g pyspark-shell"},
            capture_output=True,
            text=True,
            check=False,
        )
    lines = [line for line in ran.stdout.splitlines() if line.startswith("RESULT ")]
    if len(lines) != len(cases):
        raise SystemExit(ran.stderr[-3_000:])
    return [json.loads(line.partition("RESULT ")[2]) for line in lines]


if __name__ == "__main__":
    sys.exit(main())
