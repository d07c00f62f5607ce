"""A benchmark in its quick form, as a test runs it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def quick_metrics(name: str, folder: Path) -> dict[str, float]:
    """Metrics of the quick form, which must meet its goals; `folder` takes what it writes."""
    figures = folder / "figures.json"
    ran = subprocess.run(
        [sys.executable, BENCHMARKS / f"{name}.py", "--quick", "--json", figures],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr[-2000:]
    metrics: dict[str, float] = json.loads(figures.read_text("utf-8"))["metrics"]
    return metrics
