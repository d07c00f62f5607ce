"""Whenever and however often a watcher looks, the rows are the same in the end: status is a pure function."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from fakes.watcher import TableWatcher
from hypothesis import given, settings
from hypothesis import strategies as st

from dq.dataquality.delivery import cycle_store, replay
from dq.dataquality.delivery.replay import slo_keys
from dq.store.engine import open_store

# The long form is benchmarks/random_tests.py.
EXAMPLES = int(os.environ.get("DQ_EXAMPLES", "20"))
MORE = 'partition: {day: "{due:%Y-%m-%d}"}, evidence: [marker], giveUpAfter: 2d'
# Berlin's clock goes back in these days.
BEGIN = datetime(2026, 10, 22, tzinfo=UTC)
DAYS, MINUTES = 6, 24 * 60
END = BEGIN + timedelta(days=DAYS)

# By day: when its delivery comes, in minutes after midnight in UTC of that day; None for never.
ARRIVALS = st.lists(
    st.one_of(
        st.none(), st.integers(0, MINUTES), st.integers(0, 5 * MINUTES), st.sampled_from([240, 270, 300])
    ),
    min_size=DAYS,
    max_size=DAYS,
)
# Instants of ticks, in minutes after the beginning: in any order, and the same one twice.
TICKS = st.lists(st.integers(1, DAYS * MINUTES), max_size=8)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty store: to make its schema takes longer than all the rest."""
    file = tmp_path_factory.mktemp("template") / "store.db"
    open_store(f"sqlite:///{file}").close()
    return file


def rows(template: Path, arrivals: Sequence[int | None], ticks: Sequence[int]) -> list[tuple[object, ...]]:
    """What is kept of each cycle after these ticks and a last one, each seeing what had come by then."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copy(template, folder / "store.db")
        (folder / "lake").mkdir()
        store = open_store(f"sqlite:///{folder / 'store.db'}")
        watcher = TableWatcher(store, folder / "lake", MORE)
        watcher.tick(_text(BEGIN))
        for tick in (*ticks, DAYS * MINUTES):
            now = BEGIN + timedelta(minutes=tick)
            _deliver(folder / "lake", arrivals, now)
            watcher.tick(_text(now))
        with store.read() as tx:
            assert [one.differences for one in replay.replay(tx, slo_keys(tx)) if one.differences] == []
            kept = cycle_store.all_cycles(tx, ("orders", "orders", "daily"))
        store.close()
    return [
        # Of what was given up and never told it is not looked for what comes after all.
        (one.cycle.due_at, one.status, one.delivered_at if one.status != "never" else None)
        for one in kept
    ]


def _deliver(lake: Path, arrivals: Sequence[int | None], now: datetime) -> None:
    for day, minutes in enumerate(arrivals):
        came = BEGIN + timedelta(days=day, minutes=minutes) if minutes is not None else None
        marker = lake / f"day={BEGIN + timedelta(days=day):%Y-%m-%d}" / "_SUCCESS"
        if came is not None and came <= now and not marker.exists():
            marker.parent.mkdir()
            marker.touch()
            os.utime(marker, (came.timestamp(),) * 2)


def _text(instant: datetime) -> str:
    return f"{instant:%Y-%m-%dT%H:%M:%S}"


@settings(max_examples=EXAMPLES, deadline=None)
@given(arrivals=ARRIVALS, ticks=TICKS)
def test_any_order_and_grouping_of_ticks_gives_the_same_rows(
    template: Path, arrivals: list[int | None], ticks: list[int]
) -> None:
    assert rows(template, arrivals, ticks) == rows(template, arrivals, [])
