"""The short form of the simulation: what the watcher tells and keeps is what an oracle of its own expects."""

from __future__ import annotations

from pathlib import Path

import pytest
from fakes.benchmark import quick_metrics


@pytest.mark.slow
def test_a_simulated_mesh_has_no_false_alarm_and_no_silent_miss(tmp_path: Path) -> None:
    metrics = quick_metrics("watch_simulation", tmp_path)

    assert min(metrics[name] for name in ("cycles", "lost lakes", "downtimes")) > 0
