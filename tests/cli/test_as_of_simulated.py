"""The short form of the benchmark of `--as-of`: a past instant reads as it was printed then."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_a_past_instant_reads_as_it_was_printed_then(tmp_path: Path) -> None:
    result = tmp_path / "result.json"

    ran = subprocess.run(
        [sys.executable, ROOT / "benchmarks" / "as_of.py", "--quick", "--json", result],
        capture_output=True,
        text=True,
        check=False,
    )

    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert json.loads(result.read_text())["metrics"] == {"instants": 40, "differences": 0}
