"""`dq.cycle`: how a promised delivery stands."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from fakes.command import Place, contract

import dq
from dq.contracts.incident import CycleStatus
from dq.contracts.outcome import UsageError

DUE = datetime(2026, 5, 11, 6, tzinfo=UTC)
DAY = {"day": "2026-05-10"}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker of Airflow runs anywhere: relative places are those of the folder that is given."""
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))


def lay(folder: Path, arrived: datetime) -> Path:
    """A contract whose day came at an instant."""
    marker = Place(folder).put("lake/orders/day=2026-05-10/_SUCCESS", "")
    os.utime(marker, (arrived.timestamp(), arrived.timestamp()))
    return Place(folder).put("orders.odcs.yaml", contract("orders"))


@pytest.mark.parametrize(
    ("arrived", "status"),
    [
        (DUE.replace(hour=5), CycleStatus.ON_TIME),
        (DUE.replace(minute=20), CycleStatus.ON_TIME_IN_GRACE),
        (DUE.replace(hour=7), CycleStatus.LATE),
    ],
)
def test_what_came_is_told_with_its_time(tmp_path: Path, arrived: datetime, status: CycleStatus) -> None:
    file = lay(tmp_path, arrived)

    found = dq.cycle(file, partition=DAY, around=DUE, now=DUE.replace(hour=8), folder=tmp_path)

    assert (found.status, found.delivered_at, found.delivered) == (status, arrived, True)
    assert (found.due_at, found.breach_at) == (DUE, DUE.replace(minute=30))


def test_nothing_is_there_of_a_day_that_did_not_come(tmp_path: Path) -> None:
    file = lay(tmp_path, DUE)

    before, after = (
        dq.cycle(file, due=DUE.replace(day=12), now=DUE.replace(day=12, hour=hour), folder=tmp_path)
        for hour in (5, 7)
    )

    assert not before.delivered
    assert (after.status, after.delivered) == (CycleStatus.MISSING, False)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"partition": DAY, "due": DUE}, "Pass one of partition"),
        ({}, "Pass one of partition"),
        ({"due": DUE.replace(tzinfo=None)}, "has no time zone"),
        ({"due": DUE.replace(hour=5)}, "has no delivery due 2026-05-11T05:00"),
        ({"partition": {"day": "1999-01-01"}, "around": DUE}, "has no delivery day=1999-01-01"),
        ({"partition": DAY, "slo": "hourly"}, "it has: orders/daily"),
    ],
)
def test_a_question_that_fits_no_delivery_is_refused(
    tmp_path: Path, asked: dict[str, object], said: str
) -> None:
    file = lay(tmp_path, DUE)
    with pytest.raises(UsageError, match=said):
        dq.cycle(file, folder=tmp_path, **asked)  # type: ignore[arg-type]
