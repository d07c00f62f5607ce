"""When a delivery is at risk: the decision by its history, and the watcher's events."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from fakes.watcher import TableWatcher, at

from dq.contracts.incident import Breach, Recovery
from dq.contracts.outcome import Severity
from dq.contracts.slo import FalseWarnings, parse_false_warnings
from dq.dataquality.delivery import early_warning
from dq.dataquality.delivery.early_warning import (
    PastCycle,
    WarningCounts,
    plan_warning,
    warning_standings,
)
from dq.store import open_store
from dq.store.engine import Store

BERLIN = ZoneInfo("Europe/Berlin")
FIRST = datetime(2026, 1, 1, 6, tzinfo=BERLIN)
DAY, GRACE = timedelta(days=1), timedelta(minutes=60)


def budget(text: str = "1/quarter") -> FalseWarnings:
    parsed = parse_false_warnings(text)
    assert isinstance(parsed, FalseWarnings)
    return parsed


def past(*minutes: float | None, first: datetime = FIRST, step: timedelta = DAY) -> list[PastCycle]:
    """Cycles with these minutes between due time and arrival, None for one that never came."""
    return [
        PastCycle(
            (first + number * step).astimezone(UTC), timedelta(minutes=late) if late is not None else None
        )
        for number, late in enumerate(minutes)
    ]


def warn_minute(history: list[PastCycle], rate: str = "1/quarter", step: timedelta = DAY) -> float | str:
    """Minutes from the due time to the warning of the next cycle, or why there is none."""
    due_at = (FIRST + len(history) * step).astimezone(UTC)
    plan = plan_warning(history, due_at, due_at + GRACE, budget(rate), BERLIN.key)
    return (plan.warn_at - due_at) / timedelta(minutes=1) if plan.warn_at else plan.reason


def test_the_latest_of_91_daily_deliveries_is_the_first_time_that_keeps_one_a_quarter() -> None:
    steady = [-30.0] * 100
    steady[50] = -12.0

    assert warn_minute(past(*steady[5:])) == -11  # a minute after it, as evidence can be seen late
    assert warn_minute(past(*steady[5:]), "4/quarter") == -29


def test_late_deliveries_do_not_postpone_the_warning() -> None:
    lateness = [-30.0] * 100
    lateness[20], lateness[40] = 300.0, 61.0
    never: list[float | None] = [*lateness]
    never[60] = None

    assert warn_minute(past(*lateness)) == -29
    assert warn_minute(past(*never)) == -29


def test_a_late_delivery_within_the_grace_does() -> None:
    lateness = [-30.0] * 100
    lateness[40] = 41.0

    assert warn_minute(past(*lateness)) == 42


def test_it_is_silent_where_no_time_before_the_breach_keeps_the_budget() -> None:
    lateness = [-30.0] * 100
    lateness[40] = 58.0

    assert warn_minute(past(*lateness)) == "no time before the breach keeps 1/quarter"


@pytest.mark.parametrize(("delivered", "missing"), [(0, 0), (19, 0), (19, 100)])
def test_it_is_silent_below_twenty_deliveries(delivered: int, missing: int) -> None:
    history = past(*[None] * missing, *[-30.0] * delivered)

    assert warn_minute(history, "100/week") == f"{delivered} of 20 deliveries that a warning needs"


def test_it_is_silent_as_long_as_the_history_is_too_short_for_the_budget() -> None:
    assert warn_minute(past(*[-30.0] * 60)) == "60 earlier cycles; 1/quarter needs about 95"
    assert warn_minute(past(*[-30.0] * 30), "10/quarter") == -29


def test_hourly_deliveries_need_a_larger_budget() -> None:
    hourly = past(*[-3.0] * 500, step=timedelta(hours=1))

    assert "more than the 500 that are compared" in str(warn_minute(hourly, step=timedelta(hours=1)))
    assert warn_minute(hourly, "5/quarter", step=timedelta(hours=1)) == -2


def test_slow_mondays_do_not_postpone_the_warnings_of_other_days() -> None:
    lateness = [(-10.0 if (FIRST + number * DAY).weekday() == 0 else -40.0) for number in range(140)]
    history = past(*lateness)
    minutes = {}
    for number in range(120, 127):
        due_at = (FIRST + number * DAY).astimezone(UTC)
        plan = plan_warning(history[:number], due_at, due_at + GRACE, budget(), BERLIN.key)
        assert plan.warn_at is not None
        minutes[(FIRST + number * DAY).weekday()] = (plan.warn_at - due_at) / timedelta(minutes=1)

    # The first Mondays, of which nothing was known, are in the history.
    assert {minutes[day] for day in range(1, 7)} == {-9.0}
    assert minutes[0] == 21.0


def test_a_trend_moves_the_warning() -> None:
    history = past(*[-40 + 0.1 * number for number in range(150)])

    minute = warn_minute(history)

    assert isinstance(minute, float)
    assert -25 < minute < -23  # the last one came at -25.1


def test_a_change_of_the_clocks_moves_the_warning_with_the_due_time() -> None:
    # Due at six in Berlin, on both sides of 2026-03-29.
    history = past(*[-30.0] * 95)
    assert {cycle.due_at.hour for cycle in history} == {4, 5}

    assert warn_minute(history) == -29


@pytest.mark.parametrize("text", ["", "1", "0/quarter", "1/decade", "-1/week", "1.5/month", "99999/year"])
def test_other_budgets_are_refused(text: str) -> None:
    assert not isinstance(parse_false_warnings(text), FalseWarnings)


# The watcher's events.

MORE = "partition: {day: '{due - 1d:%Y-%m-%d}'}, warn: usual, falseWarnings: 10/quarter"


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    opened = open_store(url)
    yield opened
    opened.close()


class Scene(TableWatcher):
    """A watched table with thirty deliveries, each 40 minutes before it was due."""

    def __init__(self, store: Store, root: Path, more: str = MORE, deliveries: int = 30) -> None:
        super().__init__(store, root, more)
        self.root = root
        for number in range(deliveries):
            self.deliver(number, -40)
        self.tick(text(self.due(deliveries - 1) + GRACE), since="2025-12-31T12:00:00")
        self.told.clear()

    def due(self, number: int) -> datetime:
        return (FIRST + number * DAY).astimezone(UTC)

    def deliver(self, number: int, minutes: float) -> None:
        folder = self.root / f"day={FIRST + (number - 1) * DAY:%Y-%m-%d}"
        folder.mkdir(parents=True)
        (folder / "_SUCCESS").touch()
        when = (self.due(number) + timedelta(minutes=minutes)).timestamp()
        os.utime(folder / "_SUCCESS", (when, when))

    def at(self, number: int, minutes: float) -> list[tuple[str, str]]:
        """Kind and title of the events of a tick, some minutes after a due time."""
        self.tick(text(self.due(number) + timedelta(minutes=minutes)))
        events = [(type(event).__name__, event.title) for event in self.told]
        self.told.clear()
        return events

    def standing(self) -> early_warning.WarningStanding:
        with self.store.read() as tx:
            return warning_standings(tx, ["orders"])["orders", "orders", "daily"]


def text(instant: datetime) -> str:
    return instant.replace(tzinfo=None).isoformat()


AT_RISK = ("Breach", "orders is at risk: day=2026-01-30")


def test_a_delivery_at_risk_is_one_event_and_its_breach_another(store: Store, tmp_path: Path) -> None:
    scene = Scene(store, tmp_path)

    events = {minutes: scene.at(30, minutes) for minutes in (-45, -40, -39, -38, 0, 29, 32, 40)}

    assert {minutes: told for minutes, told in events.items() if told} == {
        -39: [AT_RISK],
        32: [("Breach", "orders is missing: day=2026-01-30")],
    }
    assert scene.standing().counts == WarningCounts(true=1)
    assert scene.standing().at_risk_since is None


def test_the_warning_says_what_was_usual_and_is_no_worse_than_a_warning(store: Store, tmp_path: Path) -> None:
    scene = Scene(store, tmp_path)
    scene.tick(text(scene.due(30) - timedelta(minutes=10)))

    [event] = scene.told
    assert isinstance(event, Breach)
    assert event.is_warning
    assert event.severity is Severity.WARNING
    assert event.subject == scene.due(30).isoformat()
    assert dict(event.facts)["at risk"] == (
        "19 of the last 20 came by 05:20; it is 05:50 and the data is not there; breach at 06:30"
    )


@pytest.mark.parametrize("minutes", [-20.0, 20.0])
def test_data_in_time_takes_it_back(store: Store, tmp_path: Path, minutes: float) -> None:
    scene = Scene(store, tmp_path)
    assert scene.at(30, -30) == [AT_RISK]
    assert scene.standing().at_risk_since == scene.due(30) - timedelta(minutes=30)

    scene.deliver(30, minutes)
    events = [scene.at(30, after) for after in (minutes + 1, 25, 60)]

    assert [event for told in events for event in told] == [
        ("Recovery", "orders arrived in time, no longer at risk: day=2026-01-30")
    ]
    assert scene.standing().counts == WarningCounts(false=1)
    assert scene.standing().at_risk_since is None


def test_data_that_comes_late_between_two_ticks_ends_the_warning(store: Store, tmp_path: Path) -> None:
    scene = Scene(store, tmp_path)
    assert scene.at(30, 0) == [AT_RISK]

    scene.deliver(30, 35)

    assert scene.at(30, 40) == [("Recovery", "orders came 35 min late: day=2026-01-30")]
    assert scene.standing().counts == WarningCounts(true=1)


def test_it_is_silent_without_the_term_and_with_little_history(store: Store, tmp_path: Path) -> None:
    little = Scene(store, tmp_path, deliveries=15)

    assert [little.at(15, minutes) for minutes in (-20, 0, 20)] == [[], [], []]
    assert little.standing().silent_reason == "15 of 20 deliveries that a warning needs"


def test_no_warning_is_sent_while_false_ones_are_used_up(store: Store, tmp_path: Path) -> None:
    scene = Scene(store, tmp_path, MORE.replace("10/quarter", "1/week"))
    assert scene.at(30, -20) == [AT_RISK]
    scene.deliver(30, -10)
    assert [kind for kind, _ in scene.at(30, 1)] == ["Recovery"]

    events = [scene.at(31, minutes) for minutes in (-20, 0, 20)]

    assert events == [[], [], []]
    [decision] = [entry for entry in early_warning_rows(store) if entry.due_at == scene.due(31)]
    assert (decision.warn_at, decision.reason) == (None, "false warnings of 1/week are used up")


def test_an_open_miss_is_not_joined_by_warnings(store: Store, tmp_path: Path) -> None:
    scene = Scene(store, tmp_path)
    scene.at(30, -20)
    assert scene.at(30, 35) == [("Breach", "orders is missing: day=2026-01-30")]

    assert scene.at(31, -20) == []


def test_a_watcher_that_missed_the_time_warns_when_it_is_back(store: Store, tmp_path: Path) -> None:
    scene = Scene(store, tmp_path)

    assert scene.at(30, 25) == [AT_RISK]


def test_what_is_being_written_is_not_at_risk(store: Store, tmp_path: Path) -> None:
    scene = Scene(store, tmp_path, MORE + ", evidence: [file]")
    folder = tmp_path / "day=2026-01-30"
    folder.mkdir()
    (folder / "part-0.parquet").write_bytes(b"PAR1")
    now = (scene.due(30) - timedelta(minutes=20)).timestamp()
    os.utime(folder / "part-0.parquet", (now, now))

    assert [kind for kind, _ in scene.at(30, -20)] == []


def test_nothing_is_at_risk_under_a_lake_that_is_gone(store: Store, tmp_path: Path) -> None:
    scene = Scene(store, tmp_path / "lake")
    (tmp_path / "lake").rename(tmp_path / "gone")

    assert scene.at(30, -20) == []
    (tmp_path / "gone").rename(tmp_path / "lake")
    assert scene.at(30, -19) == [AT_RISK]


def test_a_withdrawn_promise_ends_its_warning(store: Store, tmp_path: Path) -> None:
    from dq.dataquality.delivery.tick import withdraw

    scene = Scene(store, tmp_path)
    scene.at(30, -20)
    events: list[Breach | Recovery] = []

    withdraw(
        store, lambda _: "retired", at("2026-01-31T06:00:00"), lambda _, e: events.append(e), lambda _: 0
    )

    assert [event.title for event in events] == ["orders is no longer monitored"]
    assert scene.standing().at_risk_since is None


def test_two_watchers_warn_once(store: Store, tmp_path: Path) -> None:
    first = Scene(store, tmp_path)
    second = TableWatcher(store, tmp_path, MORE)
    when = first.due(30) - timedelta(minutes=20)
    watched = early_warning.cycles_to_warn(store, first.watched, when).decided

    told = first.at(30, -20)
    second.tick(text(when))
    # One that had read the decision before the other one warned.
    late: list[object] = []
    early_warning.emit_warnings(
        store, watched, [], when, lambda _, event: late.append(event), lambda _: {}, lambda _: 0, lambda _: 0
    )

    assert (told, second.told, late) == ([AT_RISK], [], [])
    assert watched[0].stored.warned_at is None


def test_a_decision_is_made_once_and_again_when_its_terms_change(store: Store, tmp_path: Path) -> None:
    scene = Scene(store, tmp_path)
    decided = [entry.planned_at for entry in early_warning_rows(store)]
    scene.at(29, 70)
    assert [entry.planned_at for entry in early_warning_rows(store)] == decided

    other = TableWatcher(store, tmp_path, MORE.replace("10/quarter", "1/quarter"))
    other.tick(text(scene.due(29) + timedelta(minutes=80)))

    newest = early_warning_rows(store)[-1]
    assert (newest.budget, newest.warn_at) == ("1/quarter", None)
    assert newest.reason == "30 earlier cycles; 1/quarter needs about 95"


def early_warning_rows(store: Store) -> list[early_warning.StoredWarning]:
    with store.read() as tx:
        return early_warning.stored_warnings(tx, ["orders"])
