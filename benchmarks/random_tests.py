"""The random tests of pytest in their long form: contracts on tables that dq and plain Python must agree on.

pytest takes a few examples of each, so that all tests fit into twenty minutes. Here there are more: random
tables of Parquet and ORC, tables of Iceberg and Delta with a past, and what their statistics say after every
deed; and without data, contracts that are formatted, queries, patterns, schedules and ticks of the watcher.
A failure is shown as pytest shows it, shrunk to a small contract and a few rows.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from _report import arguments, finish

ROOT = Path(__file__).parents[1]
TABLES = "tests/oracle/test_random_tables.py"
LAKEHOUSE = ("tests/oracle/test_lakehouse_tables.py", "tests/dataquality/lakehouse/test_statistics.py")
WITHOUT_DATA = (
    "tests/contracts/patterns/test_recursion.py",
    "tests/contracts/schedule/test_clock.py",
    "tests/contracts/schedule/test_convert.py",
    "tests/contracts/sql/test_guard.py",
    "tests/contracts/yaml/test_formatting.py",
    "tests/dataquality/delivery/test_same_rows.py",
)
LONG, QUICK = 400, 8


def main() -> int:
    args = arguments(__doc__ or "", examples=f"how many examples of a random table, by default {LONG}")
    examples = args.examples or (QUICK if args.quick else LONG)
    begun = time.monotonic()

    # New examples each time: those of CI are the same in every run.
    environment = {**os.environ, "CI": "", "DQ_EXAMPLES": str(examples)}
    files = (TABLES,) if args.quick else (TABLES, *LAKEHOUSE, *WITHOUT_DATA)
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *files], cwd=ROOT, env=environment, check=False
    )

    metrics = {"examples": float(examples), "seconds": time.monotonic() - begun}
    metrics["exit code of pytest"] = float(ended.returncode)
    return finish(metrics, {"exit code of pytest": ("<", 1.0)}, args)


if __name__ == "__main__":
    sys.exit(main())
