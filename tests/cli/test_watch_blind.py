"""`dq watch` that cannot see its lake tells the platform team, and says when it can."""

from __future__ import annotations

from pathlib import Path

import pytest


def test_a_lake_that_cannot_be_read_is_told_once_and_when_it_can(folder: Path, dq) -> None:
    lake = folder / "lake"
    lake.symlink_to(lake)

    def watch(when: str) -> tuple[int, str]:
        ran = dq("watch", "orders.odcs.yaml", "--channel", "console", "--as-of", when)
        return ran.code, ran.out

    watch("2026-05-10T12:00:00Z")
    blind, again = watch("2026-05-11T07:00:00Z"), watch("2026-05-11T08:00:00Z")
    shown = dq("status", "orders.odcs.yaml", "--as-of", "2026-05-11T08:00:00Z").out
    lake.unlink()
    (lake / "day=2026-05-10").mkdir(parents=True)
    (lake / "day=2026-05-10" / "_SUCCESS").touch()
    returned = watch("2026-05-11T09:00:00Z")

    assert (blind[0], "cannot read evidence" in blind[1]) == (3, True)
    assert (again[0], "cannot read evidence" in again[1]) == (3, False)
    assert "cannot read evidence" in shown
    assert "RESOLVED" in returned[1].upper()


def test_a_platform_channel_that_is_none_is_said_at_once(
    folder: Path, dq, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DQ_PLATFORM_CHANNEL", "slak:#data")

    ran = dq("watch", "orders.odcs.yaml")

    assert ran.code == 2
    assert "DQ_PLATFORM_CHANNEL" in ran.err
