"""All commands say the same of the files, rows, columns, types and partitions of a table, and as Spark does.

A few tables, the same each time; benchmarks/commands_agree.py is the long run of it, with all writers.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
OWN = ("_agree", "_referee", "_report", "commands_agree")
BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.parametrize("seeds", [range(1, 7), range(7, 13)], ids=["first", "second"])
def test_all_commands_say_the_same_of_a_table(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seeds: range
) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.setenv("DQ_STORE_URL", f"sqlite:///{tmp_path}/store.db")
    monkeypatch.delenv("DQ_CONFIG", raising=False)
    from commands_agree import Tally, compare

    tally = Tally()
    writers = ["Spark, INT96", "Spark, micros", "pyarrow", "polars", "CSV", "JSON"]
    try:
        compare(seeds, writers, spark, None, tmp_path / "work", tally)
    finally:
        for name in [
            name for name in sys.modules if name.startswith(("_agree", "_referee", "_report", "commands_"))
        ]:
            del sys.modules[name]

    assert tally.differences == 0
    # Silence is no agreement: each command tells something, and most of what is told stands against another.
    assert set(tally.claims) >= {
        "Spark", "import", "tables", "tables again", "check", "check --scan", "sample", "status", "portal",
        "propose",
    }  # fmt: skip
    assert tally.tables.total() >= 5
    assert tally.compared > 300
