"""`dq watch` that cannot see its lake tells the platform team, and says when it can."""

from __future__ import annotations

from pathlib import Path

import pytest

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
  - name: orders
    properties:
      - {name: day, logicalType: date, partitioned: true, partitionKeyPosition: 1}
support:
  - {channel: team, tool: console}
slaProperties:
  - id: daily
    property: frequency
    value: 1
    unit: d
    element: orders
    schedule: "0 6 * * *"
    customProperties:
      - property: delivery
        vendor: dq
        value:
          timezone: UTC
          grace: 30m
          objective: 50%
          window: 30d
          partition: {day: "{due:%Y-%m-%d}"}
          evidence: [marker]
"""


def test_a_lake_that_cannot_be_read_is_told_once_and_when_it_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "orders.odcs.yaml").write_text(CONTRACT)
    lake = tmp_path / "lake"
    lake.symlink_to(lake)

    def watch(when: str) -> tuple[int, str]:
        code = run(["watch", "orders.odcs.yaml", "--as-of", when])
        return code, capsys.readouterr().out

    watch("2026-05-10T12:00:00Z")
    blind, again = watch("2026-05-11T07:00:00Z"), watch("2026-05-11T08:00:00Z")
    lake.unlink()
    (lake / "day=2026-05-11").mkdir(parents=True)
    (lake / "day=2026-05-11" / "_SUCCESS").touch()
    returned = watch("2026-05-11T09:00:00Z")

    assert (blind[0], "cannot be seen" in blind[1]) == (3, True)
    assert (again[0], "cannot be seen" in again[1]) == (3, False)
    assert "RESOLVED" in returned[1].upper()


def test_a_platform_channel_that_is_none_is_said_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DQ_PLATFORM_CHANNEL", "slak:#data")
    (tmp_path / "orders.odcs.yaml").write_text(CONTRACT)

    assert run(["watch", "orders.odcs.yaml"]) == 2
    assert "DQ_PLATFORM_CHANNEL" in capsys.readouterr().err
