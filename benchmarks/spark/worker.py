"""The process in which one engine is measured, warm: `python -m spark.worker`, an order as JSON on stdin.

It runs in the engine's own environment and writes one JSON line per table to the file that the order names.
A failure is a line too, with its reason.
"""

from __future__ import annotations

import importlib
import json
import statistics
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from spark import machine

Run = Callable[[], list[str]]


def main() -> int:
    """The order: `runner`, `variant`, `spark` (settings, or null), `tables`, `out`.

    A table has `name`, `place`, `scale`, `warmups`, `runs` and `budget` (seconds for all runs after the
    first; two of them are counted in any case).
    """
    order = json.load(sys.stdin)
    began = time.perf_counter()
    session = _session(order["spark"]) if order["spark"] is not None else None
    started = time.perf_counter() - began
    runner = importlib.import_module(f"spark.runners.{order['runner']}")
    for table in order["tables"]:
        line = {"table": table["name"], "scale": table["scale"], "session_seconds": started}
        if session is not None:
            line["spark"] = session.version
        try:
            line |= _measured(runner, order["variant"], table, session)
        except Exception as error:  # noqa: BLE001  # the reason is told, and the next table has its turn
            traceback.print_exc()
            line["reason"] = f"{type(error).__name__}: {error}".split("\n", 1)[0][:300]
        with Path(order["out"]).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
    if session is not None:
        gateway = session.sparkContext._gateway
        session.stop()
        # Deequ's calls from Java into Python keep the process alive otherwise.
        gateway.shutdown_callback_server()
    return 0


def _session(settings: dict[str, str]) -> Any:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").appName("spark_checks")
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    session.range(1).count()
    return session


def _measured(runner: Any, variant: str, table: dict[str, Any], session: Any) -> dict[str, Any]:
    covers, run = runner.build(table["place"], table["scale"], variant, session)
    machine.forget_peak()
    warm = [_once(run, session, table["name"]) for _ in range(table["warmups"])]
    counted: list[dict[str, Any]] = []
    began = time.perf_counter()
    while len(counted) < table["runs"]:
        if len(counted) >= 2 and time.perf_counter() - began > table["budget"]:
            break
        counted.append(_once(run, session, table["name"]))
    every = [*warm, *counted]
    if len({tuple(measurement["broken"]) for measurement in every}) != 1:
        raise AssertionError("its answers differ from run to run")
    return {
        "covers": list(covers),
        "broken": every[-1]["broken"],
        "first_seconds": every[0]["wall"],
        "wall": _three([measurement["wall"] for measurement in counted]),
        "cpu": _three([measurement["cpu"] for measurement in counted]),
        "others_cpu": _three([measurement["others"] for measurement in counted]),
        "runs": len(counted),
        "jobs": every[-1]["jobs"],
        "peak_megabytes": machine.peak_megabytes(),
        "details": getattr(run, "details", {}),
    }


def _once(run: Run, session: Any, name: str) -> dict[str, Any]:
    before = _jobs(session)
    busy, cpu, wall = machine.busy_seconds(), machine.cpu_seconds(), time.perf_counter()
    broken = run()
    wall = time.perf_counter() - wall
    cpu = machine.cpu_seconds() - cpu
    others_cpu = max(0.0, machine.busy_seconds() - busy - cpu)
    print(f"    {name}: {wall:.2f} s, {cpu:.2f} CPU s, others {others_cpu:.1f}", file=sys.stderr, flush=True)
    return {
        "wall": wall,
        "cpu": cpu,
        "others": others_cpu,
        "jobs": _jobs(session) - before,
        "broken": sorted(broken),
    }


def _jobs(session: Any) -> int:
    """Number of jobs that the session has run; ids count from 0."""
    return int(session.sparkContext._jsc.sc().dagScheduler().nextJobId()) if session is not None else 0


def _three(values: list[float]) -> list[float]:
    """Least, median, greatest."""
    return [round(value, 4) for value in (min(values), statistics.median(values), max(values))]


if __name__ == "__main__":
    sys.exit(main())
