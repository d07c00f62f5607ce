"""`dq watch --every` goes on when the world is out of order for a moment."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from dq.cli.main import run

CONTRACT = """
apiVersion: v3.2.0
kind: DataContract
id: orders
version: 1.0.0
status: active
servers:
  - {server: lake, type: local, path: lake, format: parquet}
schema:
  - {name: orders, properties: [{name: id, logicalType: integer}]}
slaProperties:
  - id: daily
    property: frequency
    value: 1
    unit: d
    element: orders
    schedule: "0 6 * * *"
    customProperties:
      - {property: delivery, vendor: dq, value: {timezone: UTC, grace: 30m, objective: 50%, window: 30d}}
"""
SCRIPT = Path(sys.executable).parent / "dq"


def soon(holds: Callable[[], bool]) -> bool:
    """Whether it holds within half a minute."""
    until = time.monotonic() + 30
    while not holds() and time.monotonic() < until:
        time.sleep(0.05)
    return holds()


def test_a_store_and_a_contract_that_are_gone_for_a_moment_cost_their_ticks_alone(tmp_path: Path) -> None:
    contract, store, log = tmp_path / "orders.odcs.yaml", tmp_path / ".dq" / "store.db", tmp_path / "log"
    contract.write_text(CONTRACT)
    (tmp_path / "lake").mkdir()

    def ticks() -> int:
        return log.read_text().count("SLOs: 1")

    with log.open("w") as out:
        watcher = subprocess.Popen(
            [SCRIPT, "watch", contract.name, "--every", "1s"],
            cwd=tmp_path,
            stdout=out,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        try:
            assert soon(lambda: ticks() >= 1)
            contract.rename(tmp_path / "away")
            store.rename(tmp_path / "kept.db")
            store.mkdir()
            assert soon(lambda: "the next one tries again" in log.read_text())
            store.rmdir()
            (tmp_path / "kept.db").rename(store)
            (tmp_path / "away").rename(contract)
            before = ticks()
            assert soon(lambda: ticks() > before)
            assert watcher.poll() is None
        finally:
            watcher.kill()
            watcher.wait(10)


def test_what_is_wrong_at_the_first_tick_ends_it(tmp_path: Path) -> None:
    assert run(["watch", str(tmp_path / "nothing.odcs.yaml"), "--every", "1s"]) == 3
