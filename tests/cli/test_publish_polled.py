"""A reader that polls while good and bad deliveries are published sees every good one, and no bad row."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.spark
@pytest.mark.slow
def test_a_reader_that_polls_sees_every_good_delivery_and_no_bad_row(tmp_path):
    said = tmp_path / "said.json"

    ran = subprocess.run(
        [sys.executable, ROOT / "benchmarks" / "write_audit_publish.py", "--quick", "--json", said],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )

    assert ran.returncode == 0, ran.stdout + ran.stderr[-2000:]
    found = json.loads(said.read_text())["metrics"]
    for kind in ("parquet", "iceberg"):
        assert found[f"{kind}: of them bad"] == 2
        assert found[f"{kind}: polls"] > found[f"{kind}: publishes"]
        assert found[f"{kind}: bad rows seen"] == 0
        assert found[f"{kind}: good deliveries not seen"] == 0
        assert found[f"{kind}: bad rows seen without an audit"] > 0
