"""A reader that polls while good and bad deliveries are published sees every good one, and no bad row."""

from __future__ import annotations

from pathlib import Path

import pytest
from fakes.benchmark import quick_metrics


@pytest.mark.spark
@pytest.mark.slow
def test_a_reader_that_polls_sees_every_good_delivery_and_no_bad_row(tmp_path: Path) -> None:
    metrics = quick_metrics("write_audit_publish", tmp_path)

    for kind in ("parquet", "iceberg"):
        assert metrics[f"{kind}: of them bad"] == 2
        assert metrics[f"{kind}: polls"] > metrics[f"{kind}: publishes"]
        assert metrics[f"{kind}: bad rows seen"] == 0
        assert metrics[f"{kind}: good deliveries not seen"] == 0
        assert metrics[f"{kind}: bad rows seen without an audit"] > 0
