"""The short form of the benchmark of killed watchers: nothing is told twice, and nothing is lost."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_watchers_that_are_killed_double_and_lose_nothing(tmp_path: Path) -> None:
    said = tmp_path / "said.json"

    ran = subprocess.run(
        [sys.executable, ROOT / "benchmarks" / "watch_kills.py", "--quick", "--json", said],
        capture_output=True,
        text=True,
        check=False,
    )

    assert ran.returncode == 0, ran.stdout + ran.stderr
    metrics = json.loads(said.read_text())["metrics"]
    assert (
        min(metrics[f"{name}: {what}"] for name in ("SQLite", "PostgreSQL") for what in ("kills", "messages"))
        > 0
    )
