"""What is told of many misses at once, and of what came and went between two ticks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from fakes.watcher import TableWatcher, at
from sqlalchemy import Connection, select

from dq.contracts.incident import Breach, CycleStatus, Recovery, Resolution
from dq.dataquality.delivery.cycle import DeliveryPlace, UnnotifiedMiss, WatchTarget
from dq.dataquality.delivery.heartbeat import Uptime, evaluation_problem, record_leap, record_tick
from dq.dataquality.delivery.tables import heartbeat
from dq.dataquality.delivery.tick import tick
from dq.lake.storage import LocalFiles
from dq.store.engine import Store, open_store

DAILY = 'partition: {day: "{due:%F}"}, evidence: [marker]'


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(f"sqlite:///{tmp_path / 'store.db'}")


class Mesh:
    """Some products with one daily delivery each, all under one lake; `told` is what was told, in order."""

    def __init__(self, store: Store, lake: Path, count: int) -> None:
        self.store, self.lake, self.count = store, lake, count
        (slo,) = [one.slo for one in TableWatcher(store, lake, DAILY).watched]
        self.watched = [
            WatchTarget(
                replace(slo, contract=slo.contract.model_copy(update={"id": f"p{number}"})),
                DeliveryPlace(str(lake / f"p{number}"), "parquet", "_SUCCESS"),
                LocalFiles(),
            )
            for number in range(count)
        ]
        for number in range(count):
            self.deliver(number, "2026-05-10", "2026-05-10T03:00")
        self.told: list[Breach | Recovery] = []
        self.past: list[UnnotifiedMiss] = []
        self.tick("2026-05-09T12:00")
        self.tick("2026-05-10T12:00")

    def deliver(self, number: int, day: str, when: str) -> None:
        import os

        place = self.lake / f"p{number}" / f"day={day}"
        place.mkdir(parents=True)
        (place / "_SUCCESS").touch()
        os.utime(place / "_SUCCESS", (at(when).timestamp(),) * 2)

    def tick(self, when: str) -> list[CycleStatus]:
        def past(_: Connection, misses: Sequence[UnnotifiedMiss]) -> None:
            self.past += misses

        found = tick(
            self.store,
            self.watched,
            at(when),
            lambda _, event: self.told.append(event),
            record_unnotified=past,
        )
        return [change.after for change in found.changes]

    @property
    def heard(self) -> list[tuple[str, str, str]]:
        return [(type(event).__name__, event.key.contract, event.key.group) for event in self.told]


PLATFORM = ("Breach", "(platform)", "misses")


def test_many_misses_under_one_root_are_one_incident_first(store: Store, tmp_path: Path) -> None:
    mesh = Mesh(store, tmp_path / "lake", 8)

    mesh.tick("2026-05-11T04:31")
    mesh.tick("2026-05-11T04:40")

    assert mesh.heard == [PLATFORM]
    assert dict(mesh.told[0].facts)["missing"] == "8 deliveries; 8 SLOs were due"


def test_the_owners_are_told_of_what_has_not_come_in_a_quarter_of_an_hour(
    store: Store, tmp_path: Path
) -> None:
    mesh = Mesh(store, tmp_path / "lake", 8)
    mesh.tick("2026-05-11T04:31")
    for number in range(6):
        mesh.deliver(number, "2026-05-11", "2026-05-11T04:35")
    mesh.tick("2026-05-11T04:40")

    mesh.tick("2026-05-11T04:46")
    mesh.tick("2026-05-11T04:50")

    assert mesh.heard == [
        PLATFORM,
        ("Breach", "p6", "daily"),
        ("Breach", "p7", "daily"),
        ("Recovery", "(platform)", "misses"),
    ]
    assert [one.record.cycle.contract for one in mesh.past] == [f"p{number}" for number in range(6)]


def test_what_all_came_after_all_ends_it_without_a_word_to_the_owners(store: Store, tmp_path: Path) -> None:
    mesh = Mesh(store, tmp_path / "lake", 6)
    mesh.tick("2026-05-11T04:31")
    for number in range(6):
        mesh.deliver(number, "2026-05-11", "2026-05-11T04:00")
    mesh.tick("2026-05-11T04:40")

    assert mesh.heard == [PLATFORM, ("Recovery", "(platform)", "misses")]
    assert mesh.past == []


@pytest.mark.parametrize(("count", "missing"), [(4, 4), (20, 6)], ids=["too few", "too small a share"])
def test_few_misses_are_told_to_their_owners_at_once(
    store: Store, tmp_path: Path, count: int, missing: int
) -> None:
    mesh = Mesh(store, tmp_path / "lake", count)
    for number in range(missing, count):
        mesh.deliver(number, "2026-05-11", "2026-05-11T03:00")
    mesh.tick("2026-05-11T04:20")

    mesh.tick("2026-05-11T04:31")

    assert sorted(mesh.heard) == [("Breach", f"p{number}", "daily") for number in range(missing)]


def test_what_is_held_back_ends_with_its_promise(store: Store, tmp_path: Path) -> None:
    mesh = Mesh(store, tmp_path / "lake", 5)
    mesh.tick("2026-05-11T04:31")

    tick(
        store,
        [],
        at("2026-05-11T04:35"),
        lambda _, event: mesh.told.append(event),
        withdrawal_reason=lambda key: "It is retired.",
    )

    assert mesh.heard == [PLATFORM, ("Recovery", "(platform)", "misses")]


def test_what_came_late_between_two_ticks_is_handed_on(store: Store, tmp_path: Path) -> None:
    mesh = Mesh(store, tmp_path / "lake", 1)
    mesh.deliver(0, "2026-05-11", "2026-05-11T04:35")

    assert mesh.tick("2026-05-11T04:36") == [CycleStatus.LATE]
    mesh.tick("2026-05-11T04:37")

    assert (mesh.heard, [one.verdict.status for one in mesh.past]) == ([], [CycleStatus.LATE])


def test_what_was_told_is_not_told_again_as_past(store: Store, tmp_path: Path) -> None:
    mesh = Mesh(store, tmp_path / "lake", 1)
    mesh.tick("2026-05-11T04:31")
    mesh.deliver(0, "2026-05-11", "2026-05-11T05:00")
    mesh.tick("2026-05-11T05:01")
    mesh.tick("2026-06-20T05:01")

    assert [type(event) for event in mesh.told][:2] == [Breach, Recovery]
    # All that was given up of forty days without a tick is past; the rest is missing and told.
    assert {one.verdict.status for one in mesh.past} == {CycleStatus.NEVER}
    assert isinstance(mesh.told[1], Recovery)
    assert mesh.told[1].end is Resolution.RECOVERED


@pytest.mark.parametrize(
    ("last", "now", "doubted"),
    [
        (None, "2026-05-11T04:00", False),
        ("2026-05-11T04:00", "2026-05-11T04:00", False),
        ("2026-05-11T04:01", "2026-05-11T04:00", False),
        ("2026-05-11T04:02", "2026-05-11T04:00", True),
        ("2026-05-11T06:00", "2026-05-11T04:00", True),
    ],
    ids=["the first", "the same instant", "another machine's", "two minutes back", "two hours back"],
)
def test_a_tick_before_the_last_one_is_doubted(url: str, last: str | None, now: str, doubted: bool) -> None:
    store = open_store(url)
    if last is not None:
        with store.write() as tx:
            record_tick(tx, at("2026-05-01T00:00"))
            record_tick(tx, at(last))

    with store.read() as tx:
        assert (evaluation_problem(tx, at(now), is_current=False) is not None) is doubted
    store.close()


@pytest.mark.parametrize("url", ["postgres"], indirect=True)
def test_a_clock_that_a_database_server_contradicts_is_doubted(url: str) -> None:
    store = open_store(url)

    with store.read() as tx:
        assert "the database's" in (evaluation_problem(tx, at("2026-05-11T04:00"), is_current=True) or "")
        assert evaluation_problem(tx, at("2026-05-11T04:00"), is_current=False) is None
    store.close()


START = "2026-05-11T04:00"


def machine(minutes: float, start: str = "8554c5a8-7477-4f48") -> Uptime:
    """A machine that has been running for so long, counted from START."""
    return Uptime(start, timedelta(days=3, minutes=minutes))


def asked(store: Store, clock: str, uptime: Uptime) -> bool:
    """Whether a tick is judged, as the command asks and keeps it."""
    with store.write() as tx:
        if evaluation_problem(tx, at(clock), is_current=True, uptime=uptime) is not None:
            record_leap(tx, at(clock), uptime)
            return False
        record_tick(tx, at(clock), uptime)
    return True


@pytest.mark.parametrize(
    ("clock", "uptime", "judged"),
    [
        ("2026-05-11T04:10", machine(10), True),
        ("2026-05-11T04:10:59", machine(10), True),
        ("2026-05-11T09:10", machine(10), False),
        ("2026-05-11T04:12", machine(10), False),
        ("2026-05-11T04:10", machine(40), False),
        ("2026-05-14T04:10", machine(10, "another start"), True),
        ("2026-05-14T04:10", machine(3 * 1440 + 10), True),
    ],
    ids=["right", "nearly", "hours ahead", "two minutes ahead", "behind", "started anew", "asleep for days"],
)
def test_a_clock_that_was_set_while_the_machine_ran_is_doubted(
    store: Store, clock: str, uptime: Uptime, judged: bool
) -> None:
    assert asked(store, START, machine(0))

    assert asked(store, clock, uptime) is judged


def test_a_clock_that_comes_back_is_believed_at_once(store: Store) -> None:
    asked(store, START, machine(0))

    ahead = asked(store, "2026-05-12T04:10", machine(10))

    assert (ahead, asked(store, "2026-05-11T04:20", machine(20))) == (False, True)


def test_a_clock_that_stays_where_it_was_set_is_believed_after_an_hour(store: Store) -> None:
    asked(store, START, machine(0))

    minutes = (10, 40, 69, 70, 80)
    judged = [asked(store, f"2026-05-12T{4 + m // 60:02}:{m % 60:02}", machine(m)) for m in minutes]

    assert judged == [False, False, False, True, True]


def test_a_clock_that_is_set_again_is_doubted_for_another_hour(store: Store) -> None:
    asked(store, START, machine(0))
    asked(store, "2026-05-12T04:10", machine(10))
    asked(store, "2026-05-13T04:40", machine(40))

    assert not asked(store, "2026-05-13T05:15", machine(75))
    assert asked(store, "2026-05-13T05:40", machine(100))


def test_the_second_clock_keeps_one_machine_alone(store: Store) -> None:
    for number in range(5):
        asked(store, START, machine(0, f"start-{number}"))

    with store.read() as tx:
        names = list(tx.scalars(select(heartbeat.c.name)))
    assert sorted(names) == ["boot:start4", "watch"]
