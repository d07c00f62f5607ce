"""The parts of the measurement, each in a process of its own; results are stored."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spark import data, environments

# Seconds after which a whole part is given up.
PATIENCE = 1_800


@dataclass(frozen=True, slots=True)
class Part:
    """`environment` is a key of environments.PACKAGES, or dq. `quick` parts also run with --quick, and
    `growing` ones on the largest table; those that are `by_month` run on the copy by month alone, and those
    that are not `whole`, because they ask something else than the forty clauses, on sound tables.
    """

    name: str
    title: str
    environment: str
    runner: str
    variant: str = ""
    quick: bool = False
    growing: bool = False
    peer: bool = False
    spark: bool = True
    by_month: bool = False
    covers_all: bool = True
    settings: dict[str, str] = field(default_factory=dict)


PARTS = (
    Part("bound", "by hand in Spark, all exact", "dq", "bound", quick=True),
    Part("dq-none", "dq, no optimizations", "dq", "dq", "none", quick=True, growing=True),
    Part("dq-but-statistics", "dq, all but statistics", "dq", "dq", "but-statistics"),
    Part("dq-but-local-keys", "dq, all but local keys", "dq", "dq", "but-local-keys"),
    Part("dq-but-kernels", "dq, all but kernels", "dq", "dq", "but-kernels"),
    Part("dq-all", "dq, all optimizations", "dq", "dq", "all", quick=True, growing=True),
    Part("datacontract", "datacontract-cli 1.2.8", "datacontract", "datacontract", growing=True, peer=True),
    Part("gx", "Great Expectations 1.24.1", "great_expectations", "great_expectations", peer=True),
    Part("pandera", "pandera.pyspark 0.35.0", "pandera", "pandera", peer=True),
    Part("cuallee", "cuallee 0.15.4", "cuallee", "cuallee", peer=True),
    Part("dqx", "DQX 0.17.0", "dqx", "dqx", peer=True),
    Part("soda", "Soda Core 4.28.0", "soda", "soda", peer=True),
    Part(
        "deequ",
        "Deequ 2.0.7 (Spark 3.5)",
        "deequ",
        "deequ",
        peer=True,
        settings={"spark.jars.packages": environments.DEEQU},
    ),
    Part("duckdb", "DuckDB 2.0.0, by hand", "tools", "duckdb", spark=False, quick=True, growing=True),
    Part("polars", "Polars 2.1.0, by hand", "polars", "polars", spark=False),
    Part("counts-scan", "counts by month, a scan", "dq", "counts", "scan", by_month=True),
    Part("counts-statistics", "counts by month, statistics", "dq", "counts", "statistics", by_month=True),
    Part("metrics-hand", "ten metrics, by hand in Spark", "dq", "metrics", "hand", covers_all=False),
    Part("metrics-dq", "ten metrics, dq", "dq", "metrics", "dq", covers_all=False),
)

Line = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Effort:
    """The extent of the measurement. `memory` is that of a Spark driver; `budget` is in seconds per table."""

    scales: tuple[float, ...]
    largest: float | None
    runs: int
    warmups: int
    budget: float
    memory: str


def names(part: Part, effort: Effort) -> list[str]:
    """The tables of a part, in the order in which it runs on them."""
    if part.by_month:
        return [data.months(effort.scales[-1])]
    if not part.covers_all:
        return [data.scaled(effort.scales[-1])]
    scales = [*effort.scales, *([effort.largest] if part.growing and effort.largest else [])]
    return [*data.BROKEN, *(data.scaled(scale) for scale in scales)]


def run(part: Part, effort: Effort, work: Path, results: Path, resume: bool) -> None:
    """Measures what is asked for, and keeps it; why something could not be is kept too."""
    results.mkdir(parents=True, exist_ok=True)
    out = results / f"{part.name}.jsonl"
    if not resume:
        out.unlink(missing_ok=True)
    stored = lines(part, results)
    missing = [name for name in names(part, effort) if "reason" in stored.get(name, {"reason": ""})]
    if not missing:
        return None
    print(f"{part.title}: {', '.join(missing)}", file=sys.stderr, flush=True)
    try:
        interpreter = environments.python(part.environment, work)
        tables = [_table(name, index, effort, work) for index, name in enumerate(missing)]
    except environments.Unbuildable as error:
        return _keep(out, missing, str(error))
    with tempfile.TemporaryDirectory(dir=work, prefix="scratch-") as scratch:
        order = {
            "runner": part.runner,
            "variant": part.variant,
            "spark": _settings(part, effort, scratch) if part.spark else None,
            "tables": tables,
            "out": str(out),
        }
        output = _process(
            [str(interpreter), "-m", "spark.worker"], json.dumps(order), results / f"{part.name}.log"
        )
    done = lines(part, results)
    return _keep(out, [name for name in missing if name not in done], output)


def lines(part: Part, results: Path) -> dict[str, Line]:
    """The stored results of a part, the last of each table."""
    file = results / f"{part.name}.jsonl"
    texts = file.read_text("utf-8").splitlines() if file.exists() else []
    return {line["table"]: line for line in map(json.loads, texts)}


def _table(name: str, index: int, effort: Effort, work: Path) -> Line:
    broken = name in data.BROKEN
    scale = data.BROKEN_SCALE if broken else float(name.rpartition("sf")[2])
    return {
        "name": name,
        "place": str(data.place(name, work)),
        "scale": scale,
        # A process that has run on other tables is warm but for the size of this one.
        "warmups": 0 if broken else effort.warmups if index <= len(data.BROKEN) else 1,
        "runs": 1 if broken else effort.runs,
        "budget": effort.budget,
    }


def _settings(part: Part, effort: Effort, scratch: str) -> dict[str, str]:
    return {
        "spark.driver.memory": effort.memory,
        "spark.sql.shuffle.partitions": "8",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.local.dir": scratch,
        "spark.sql.warehouse.dir": f"{scratch}/warehouse",
        **part.settings,
    }


def _process(command: list[str], order: str, log: Path) -> str:
    """Runs a worker and gives the last of what it said, for the case that it failed."""
    folder = Path(__file__).parent.parent
    environment = {key: text for key, text in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    with (
        log.open("w", encoding="utf-8") as file,
        subprocess.Popen(
            command,
            cwd=folder,
            env=environment
            # Spark's own workers, too, must be of this environment.
            | {"PYTHONPATH": str(folder), "PYTHONUNBUFFERED": "1", "PYSPARK_PYTHON": command[0]},
            stdin=subprocess.PIPE,
            stdout=file,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as process,
    ):
        try:
            process.communicate(order, timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            return f"given up after {PATIENCE} seconds"
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    return _reason(log.read_text("utf-8", errors="replace"), process.returncode)


# What tells more than the last line does, the best first.
_TELLING = ("unresolved dependency", "not found", "Error:", "Exception:")


def _reason(text: str, code: int) -> str:
    lines_ = [line.strip() for line in text.splitlines() if line.strip()]
    for sign in _TELLING:
        for line in lines_:
            if sign in line:
                return line.strip(": ")[:300]
    return lines_[-1][:300] if lines_ else f"its process ended with {code}"


def _keep(out: Path, tables: Sequence[str], reason: str) -> None:
    with out.open("a", encoding="utf-8") as file:
        for name in tables:
            file.write(json.dumps({"table": name, "reason": reason}) + "\n")
