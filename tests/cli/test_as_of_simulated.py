"""The short form of the benchmark of `--as-of`: a past instant reads as it was printed then."""

from __future__ import annotations

from pathlib import Path

import pytest
from fakes.benchmark import quick_metrics


@pytest.mark.slow
def test_a_past_instant_reads_as_it_was_printed_then(tmp_path: Path) -> None:
    assert quick_metrics("as_of", tmp_path) == {"instants": 40, "differences": 0}
