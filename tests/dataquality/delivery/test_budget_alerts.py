"""An error budget is told when it is half used and when it is exhausted, once each, and when it recovers."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import pytest
from fakes.watcher import TableWatcher, at

from dq.contracts.incident import Breach, Recovery, Resolution
from dq.contracts.outcome import Severity
from dq.dataquality.delivery import cycle_store
from dq.dataquality.delivery.tick import tick
from dq.store.engine import Store, open_store

# Four misses of twenty days.
TERMS = 'partition: {day: "{due:%F}"}, evidence: [marker]'


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(f"sqlite:///{tmp_path / 'store.db'}")


class Days:
    """A daily product from the first of May on; `told` is what was told of its budget, in order."""

    def __init__(self, store: Store, root: Path, objective: str = "80%", window: str = "20d") -> None:
        self.root = root
        self.watcher = TableWatcher(
            store,
            root,
            TERMS,
            terms={"objective: 50%": f"objective: {objective}", "window: 30d": f"window: {window}"},
        )
        self.watcher.tick("2026-05-01T00:00")

    def pass_(self, first: int, last: int, *, good: bool) -> None:
        for number in range(first, last + 1):
            due = at("2026-04-30T04:00") + timedelta(days=number)
            if good:
                place = self.root / f"day={due:%F}"
                place.mkdir(parents=True)
                (place / "_SUCCESS").touch()
                os.utime(place / "_SUCCESS", (due.timestamp(),) * 2)
            self.watcher.tick(f"{due + timedelta(minutes=32):%Y-%m-%dT%H:%M}")

    @property
    def told(self) -> list[tuple[str, str]]:
        events = [event for event in self.watcher.told if event.key.group == "daily:budget"]
        return [(type(event).__name__, event.subject) for event in events]


def test_half_and_exhausted_are_told_once_and_their_end_too(store: Store, tmp_path: Path) -> None:
    days = Days(store, tmp_path / "t")
    days.pass_(1, 16, good=True)

    days.pass_(17, 17, good=False)
    one = days.told
    days.pass_(18, 19, good=False)
    two_of_three = days.told
    days.pass_(20, 22, good=False)
    exhausted = days.told
    days.pass_(23, 42, good=True)

    assert one == []
    assert two_of_three == [("Breach", "half")]
    assert exhausted == [("Breach", "half"), ("Breach", "exhausted"), ("Recovery", "half")]
    assert [event for event in days.told[3:] if event[0] == "Breach"] == [("Breach", "half")]
    assert days.told[-1] == ("Recovery", "half")


def test_a_product_too_young_for_one_miss_has_no_budget_to_be_told_of(store: Store, tmp_path: Path) -> None:
    days = Days(store, tmp_path / "t")

    days.pass_(1, 4, good=False)

    assert days.told == []


def test_a_budget_ends_with_its_promise(store: Store, tmp_path: Path) -> None:
    days = Days(store, tmp_path / "t")
    days.pass_(1, 10, good=True)
    days.pass_(11, 12, good=False)
    told: list[Breach | Recovery] = []

    tick(
        store,
        [],
        at("2026-05-20T00:00"),
        lambda _, event: told.append(event),
        withdrawal_reason=lambda _: "Retired.",
    )

    ends = [event.end for event in told if isinstance(event, Recovery) and event.key.group == "daily:budget"]
    assert (days.told, ends) == ([("Breach", "half")], [Resolution.WITHDRAWN])


def test_sources_that_disagree_are_kept_with_the_delivery(store: Store, tmp_path: Path) -> None:
    watcher = TableWatcher(store, tmp_path / "t", 'partition: {day: "{due:%F}"}, evidence: [marker, file]')
    watcher.tick("2026-05-10T12:00")
    place = tmp_path / "t" / "day=2026-05-11"
    place.mkdir(parents=True)
    for name, when in (("_SUCCESS", "2026-05-11T03:00"), ("part-0.parquet", "2026-05-11T03:50")):
        (place / name).write_text("rows")
        os.utime(place / name, (at(when).timestamp(),) * 2)

    watcher.tick("2026-05-11T05:00")

    with store.read() as tx:
        (kept,) = cycle_store.all_cycles(tx, ("orders", "orders", "daily"))
    assert kept.reason.endswith("But the file says 2026-05-11 03:50:00Z.")


def test_a_set_that_is_not_whole_says_how_much_of_it_came(store: Store, tmp_path: Path) -> None:
    terms = 'partition: {day: "{due:%F}", region: [eu, us, jp]}, evidence: [marker]'
    watcher = TableWatcher(store, tmp_path / "t", terms)
    watcher.tick("2026-05-10T12:00")
    for region in ("eu", "us"):
        place = tmp_path / "t" / "day=2026-05-11" / f"region={region}"
        place.mkdir(parents=True)
        (place / "_SUCCESS").touch()
        os.utime(place / "_SUCCESS", (at("2026-05-11T03:00").timestamp(),) * 2)

    watcher.tick("2026-05-11T05:00")

    with store.read() as tx:
        (kept,) = cycle_store.all_cycles(tx, ("orders", "orders", "daily"))
    assert "So far: 2 of 3 partitions." in kept.reason


def test_t32_a_budget_without_a_miss_left_is_not_called_half_used(store: Store, tmp_path: Path) -> None:
    days = Days(store, tmp_path / "t", window="10d")
    days.pass_(1, 10, good=True)
    days.pass_(11, 13, good=False)
    days.pass_(14, 21, good=True)

    events = [event for event in days.watcher.told if event.key.group == "daily:budget"]
    titles = [
        (event.title, event.severity, dict(event.facts)["budget"].split(",")[0])
        for event in events
        if isinstance(event, Breach)
    ]
    assert ("orders: error budget used up", Severity.WARNING, "error budget: 2 of 2 misses used") in titles
    assert not [
        title for title, _, line in titles if line == "error budget: 2 of 2 misses used" and "50%" in title
    ]
    severities = [event.severity for event in events if isinstance(event, Recovery)]
    assert Severity.WARNING in severities, "what is left of an exhausted budget is a warning"


def test_t9_an_alert_after_a_late_delivery_names_it(store: Store, tmp_path: Path) -> None:
    watcher = TableWatcher(store, tmp_path / "t", TERMS)
    watcher.tick("2026-05-10T12:00")
    place = tmp_path / "t" / "day=2026-05-11"
    place.mkdir(parents=True)
    (place / "_SUCCESS").touch()
    os.utime(place / "_SUCCESS", (at("2026-05-11T07:00").timestamp(),) * 2)
    watcher.tick("2026-05-11T08:00")

    watcher.tick("2026-05-12T04:32")

    breach = [event for event in watcher.told if isinstance(event, Breach) and event.key.group == "daily"][-1]
    assert dict(breach.facts)["last on time"] == "day=2026-05-11, 2026-05-11 09:00 CEST, 3 h late"
