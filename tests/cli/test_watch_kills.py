"""The short form of the benchmark of killed watchers: nothing is told twice, and nothing is lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from fakes.benchmark import quick_metrics


@pytest.mark.slow
def test_watchers_that_are_killed_double_and_lose_nothing(tmp_path: Path) -> None:
    metrics = quick_metrics("watch_kills", tmp_path)

    counted = [
        metrics[f"{name}: {what}"] for name in ("SQLite", "PostgreSQL") for what in ("kills", "messages")
    ]
    assert min(counted) > 0
