"""The short form of the simulation: what the watcher tells and keeps is what an oracle of its own expects."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.slow
def test_a_simulated_mesh_has_no_false_alarm_and_no_silent_miss(tmp_path: Path) -> None:
    said = tmp_path / "said.json"

    ran = subprocess.run(
        [sys.executable, ROOT / "benchmarks" / "watch_simulation.py", "--quick", "--json", said],
        capture_output=True,
        text=True,
        check=False,
    )

    metrics = json.loads(said.read_text())["metrics"]
    assert ran.returncode == 0, ran.stdout
    assert min(metrics[name] for name in ("cycles", "lost lakes", "downtimes")) > 0
