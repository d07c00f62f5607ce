"""Cost of `dq check` of a small table next to Spark itself, and its parts.

`bare` starts the same session and counts the rows of the same Parquet file, which is the least that any check
on Spark does. `answered` is `dq check` of clauses that its own process answers, without Spark; in `dq`, one
rule more is in SQL, for which Spark is begun. Processor time is that of the whole tree: the driver in Python,
the JVM, and the workers. The parts are measured inside one process, by the clock: what is imported, the
session, the first check, and a second one, which costs what a check costs when everything is started. The
same once more with the options of the JVM that docs/explanation/starts.md recommends for short runs, without
and with an archive of classes, which --quick leaves out.
"""

from __future__ import annotations

import ctypes
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from _report import arguments, finish

CONTRACT = """apiVersion: v3.2.0
kind: DataContract
id: orders
version: 1.0.0
status: active
servers:
  - {server: local, type: local, path: orders.parquet, format: parquet}
schema:
  - name: orders
    properties:
      - {name: id, logicalType: integer, physicalType: bigint, required: true, unique: true}
      - {name: kind, logicalType: string, physicalType: string, required: true}
      - name: amount
        logicalType: number
        physicalType: double
        quality:
          - {metric: nullValues, mustBeLessThan: 1, unit: percent}
    quality:
      - {metric: rowCount, mustBeGreaterThan: 10}
"""
SQL = "      - {type: sql, query: 'SELECT count(*) FROM ${object} WHERE amount > 2', mustBe: 0}\n"
BARE = """
import sys
from pyspark.sql import SparkSession
spark = (SparkSession.builder.master("local[*]").config("spark.ui.enabled", "false")
         .config("spark.ui.showConsoleProgress", "false").getOrCreate())
assert spark.read.parquet(sys.argv[1]).count() == 1000
"""
PARTS = """
import sys, time
clock = [time.perf_counter()]
def lap():
    clock.append(time.perf_counter())
import dq.cli.commands.check
lap()
import dq
from dq.operations.runtime.context import runtime_context
from dq.operations.runtime.spark import session
spark = session(runtime_context())
lap()
for _ in range(2):
    assert dq.check(sys.argv[1], spark=spark).exit_code == 0
    lap()
print(*[later - earlier for earlier, later in zip(clock, clock[1:])])
"""
# As the page recommends them.
SHORT = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"
_SUBREAPER = 36  # prctl(2)


@dataclass(frozen=True, slots=True)
class Tree:
    """Seconds on the clock, and of processors: of the process itself and of all that it left behind."""

    wall: float
    own: float
    children: float

    @property
    def cpu(self) -> float:
        return self.own + self.children


def tree(command: Sequence[str], folder: Path, **variables: str) -> Tree:
    """Cost of a command and everything that it starts. Raises CalledProcessError when it fails."""
    before = time.perf_counter()
    process = subprocess.Popen(
        command,
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **variables},
    )
    seconds: dict[int, float] = {}
    wall = 0.0
    while True:
        # The JVM outlives its driver, and comes to us as to the nearest reaper.
        try:
            pid, status, used = os.wait4(-1, 0)
        except ChildProcessError:
            break
        seconds[pid] = used.ru_utime + used.ru_stime
        if pid == process.pid:
            wall = time.perf_counter() - before
            process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise subprocess.CalledProcessError(process.returncode or 1, list(command))
    own = seconds.pop(process.pid)
    return Tree(wall, own, sum(seconds.values()))


def medians(commands: Mapping[str, tuple[list[str], str]], folder: Path, times: int) -> dict[str, Tree]:
    """The medians of commands, each with the options of its JVM, in turns."""
    turns = [
        {
            name: tree(command, folder, SPARK_SUBMIT_OPTS=options)
            for name, (command, options) in commands.items()
        }
        for _ in range(times)
    ]
    return {
        name: Tree(
            *(statistics.median(getattr(turn[name], part) for turn in turns) for part in Tree.__slots__)
        )
        for name in commands
    }


def main() -> int:
    args = arguments(__doc__ or "")
    # So that processes that lose their parent become ours, with what they cost.
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    times = 1 if args.quick else 5
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = {"id": list(range(1000)), "kind": ["a"] * 1000, "amount": [1.5] * 1000}
        pq.write_table(pa.table(rows), folder / "orders.parquet")
        (folder / "answered.odcs.yaml").write_text(CONTRACT, "utf-8")
        (folder / "orders.odcs.yaml").write_text(CONTRACT + SQL, "utf-8")
        bare = [sys.executable, "-c", BARE, "orders.parquet"]
        dq = [str(Path(sys.executable).parent / "dq"), "check", "orders.odcs.yaml"]
        answered = [*dq[:-1], "answered.odcs.yaml"]
        archive = folder / "classes.jsa"
        commands = {"bare": (bare, ""), "answered": (answered, ""), "dq": (dq, "")}
        if not args.quick:
            tree(dq, folder, SPARK_SUBMIT_OPTS=f"{SHORT} -XX:ArchiveClassesAtExit={archive} -Xlog:disable")
            archived = f"{SHORT} -XX:SharedArchiveFile={archive} -Xlog:disable"
            commands |= {"short": (dq, SHORT), "archived": (dq, archived)}
        taken = medians(commands, folder, times)
        completed = subprocess.run(
            [sys.executable, "-c", PARTS, "orders.odcs.yaml"],
            cwd=folder,
            check=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
    parts = [float(word) for word in completed.stdout.split()[-4:]]
    metrics = {}
    for name, cost in taken.items():
        metrics |= {f"{name}_wall_seconds": cost.wall, f"{name}_cpu_seconds": cost.cpu}
    metrics |= {
        "answered_over_bare_cpu": taken["answered"].cpu / taken["bare"].cpu,
        "answered_jvm_cpu_seconds": taken["answered"].children,
        "answered_jvm_over_bare_jvm_cpu": taken["answered"].children / taken["bare"].children,
        "dq_driver_cpu_seconds": taken["dq"].own,
        "dq_over_bare_cpu": taken["dq"].cpu / taken["bare"].cpu,
        "dq_own_driver_cpu_seconds": taken["dq"].own - taken["bare"].own,
        "dq_driver_over_bare_driver_cpu": taken["dq"].own / taken["bare"].own,
        "dq_own_share_of_cpu": (taken["dq"].cpu - taken["bare"].cpu) / taken["dq"].cpu,
        **{
            f"{name}_over_dq_cpu": taken[name].cpu / taken["dq"].cpu
            for name in ("short", "archived")
            if name in taken
        },
    }
    names = ("imports", "session", "first_check", "second_check")
    metrics |= {f"of_it_{name}_wall_seconds": part for name, part in zip(names, parts, strict=True)}
    goals = {
        "answered_over_bare_cpu": ("<", 0.12),
        "answered_jvm_over_bare_jvm_cpu": ("<", 0.01),
        "dq_driver_over_bare_driver_cpu": ("<", 2.0),
        "dq_own_share_of_cpu": ("<", 0.25),
    }
    return finish(metrics, goals, args)


if __name__ == "__main__":
    sys.exit(main())
