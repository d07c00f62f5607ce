"""How far a table is complete by the real commands: `dq status` and `dq.complete_through`."""

from __future__ import annotations

import os
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from fakes import command
from fakes.command import Place, contract

import dq
from dq.contracts.outcome import UsageError

DUE = datetime(2026, 5, 11, 6, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    for name in [name for name in os.environ if name.startswith("DQ_")]:
        monkeypatch.delenv(name)
    place = Place(tmp_path)
    place.put("orders.odcs.yaml", contract("orders"))
    place.put("lake/orders/.keep", "")
    watch(place, DUE - DAY / 2)
    return place


def deliver(place: Place, day: str, at: datetime) -> Path:
    marker = place.put(f"lake/orders/day={day}/_SUCCESS", "")
    os.utime(marker, (at.timestamp(), at.timestamp()))
    return marker


def watch(place: Place, at: datetime) -> None:
    place.dq("watch", ".", "--channel", "console", "--as-of", at.isoformat())


def through(place: Place, **options: datetime) -> tuple[str, str | None, str | None]:
    """State, complete through and checked through; the command and the function say the same."""
    standing = dq.complete_through("orders", folder=place.folder, **options)
    if not options:
        [printed] = place.dq("status", ".", "--format", "json").json["complete_through"]
        assert printed == standing.as_dict()
    points = (standing.through, standing.checked)
    return standing.state.value, *(None if point is None else point.text for point in points)


def test_it_stops_before_a_hole_and_passes_it_once_it_is_filled(place: Place) -> None:
    seen = [through(place)]
    deliver(place, "2026-05-10", DUE)
    watch(place, DUE + DAY / 24)
    seen.append(through(place))
    # The 11th does not come, the 12th does.
    watch(place, DUE + DAY * 1.1)
    deliver(place, "2026-05-12", DUE + 2 * DAY)
    watch(place, DUE + DAY * 2.1)
    seen.append(through(place))
    printed = place.dq("status", ".").out
    deliver(place, "2026-05-11", DUE + 2.5 * DAY)
    watch(place, DUE + 2.6 * DAY)
    seen.append(through(place))

    assert seen == [
        ("pending", None, None),
        ("complete", "day=2026-05-10", "day=2026-05-10"),
        ("incomplete", "day=2026-05-10", "day=2026-05-12"),
        ("complete", "day=2026-05-12", "day=2026-05-12"),
    ]
    assert "orders/orders  day=2026-05-10, incomplete: day=2026-05-11. Nothing arrived by" in printed
    # As of the past it is what was known then.
    assert through(place, now=DUE + DAY * 2.2) == seen[2]


def test_removed_data_and_an_undone_exclusion_take_it_back(place: Place) -> None:
    folder = deliver(place, "2026-05-10", DUE - DAY / 24).parent
    watch(place, DUE + DAY / 24)
    delivered = through(place)
    shutil.rmtree(folder)
    # The second look confirms that it is gone.
    watch(place, DUE + DAY / 8)
    watch(place, DUE + DAY / 7)
    removed = through(place)
    terms = {"by": "ann", "reason": "move", "channel": "console", "folder": place.folder, "due": [DUE]}
    dq.excuse("orders.odcs.yaml", **terms, now=DUE + DAY / 4)
    excluded = through(place)
    dq.excuse("orders.odcs.yaml", **terms, now=DUE + DAY / 4, undo=True)
    watch(place, DUE + DAY / 3)

    assert delivered == ("complete", "day=2026-05-10", "day=2026-05-10")
    assert removed == ("incomplete", None, "day=2026-05-10")
    assert excluded == ("complete", "day=2026-05-10", "day=2026-05-10")
    assert through(place) == removed


def test_removed_data_of_a_late_delivery_takes_it_back_and_opens_its_incident_again(place: Place) -> None:
    def incidents() -> list[str]:
        listed = place.dq("incidents", "list", "--as-of", (DUE + DAY).isoformat(), "--format", "json").json
        return [incident["state"] for incident in listed["incidents"]]

    watch(place, DUE + DAY / 24)
    missing = (through(place), incidents())
    folder = deliver(place, "2026-05-10", DUE + DAY / 20).parent
    watch(place, DUE + DAY / 16)
    late = (through(place), incidents())
    shutil.rmtree(folder)
    watch(place, DUE + DAY / 4)
    watch(place, DUE + DAY / 3)
    removed = (through(place), incidents())
    deliver(place, "2026-05-10", DUE + DAY / 2)
    watch(place, DUE + DAY / 1.9)

    hole = (("incomplete", None, "day=2026-05-10"), ["open"])
    complete = (("complete", "day=2026-05-10", "day=2026-05-10"), [])
    assert (missing, late, removed) == (hole, complete, hole)
    assert (through(place), incidents()) == complete
    printed = place.dq("status", ".").out
    assert "orders/daily  ◐" in printed


def test_an_slo_that_is_no_longer_watched_counts_no_longer(place: Place) -> None:
    deliver(place, "2026-05-10", DUE)
    watch(place, DUE + DAY / 24)
    place.put("orders.odcs.yaml", contract("orders", status="retired"))
    watch(place, DUE + DAY / 12)

    assert dq.complete_through("orders", folder=place.folder).state.value == "unwatched"


def test_a_schedule_that_any_new_data_meets_says_nothing_of_completeness(place: Place) -> None:
    delivery = command.PROMISE[command.PROMISE.index("    customProperties:") :]
    place.put("orders.odcs.yaml", contract("orders").replace(delivery.format(name="orders"), ""))
    deliver(place, "2026-05-09", DUE - DAY / 24)

    watch(place, DUE + DAY / 4)

    # Something came; whether the partition of this cycle did, nobody promised.
    assert "orders/daily  ●" in place.dq("status", ".").out
    assert through(place) == ("unwatched", None, None)


def test_a_contract_can_be_named_by_its_file(place: Place) -> None:
    file = place.folder / "orders.odcs.yaml"

    by_key, by_path, by_text = (
        dq.complete_through(name, "orders", folder=place.folder)
        for name in ("orders", file, file.read_text())
    )

    assert by_key == by_path == by_text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("order",), "the store has no deliveries of 'order'"),
        (("orders", "lines"), "the store has no deliveries of orders/lines"),
    ],
)
def test_an_unknown_table_is_an_error(place: Place, arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        dq.complete_through(*arguments, folder=place.folder)

    assert message in caught.value.message


def until(place: Place, instant: datetime, **options: datetime) -> tuple[bool | None, str]:
    """Whether nothing is missing until an instant, and the reason; the command and the function agree."""
    file = place.folder / "orders.odcs.yaml"
    standing = dq.cycle(file, until=instant, folder=place.folder, **options)
    if not options:
        words = ("cycles", "show", "orders.odcs.yaml", "--until", instant.isoformat())
        assert place.dq(*words, "--format", "json").json == standing.as_dict()
        shown = {True: ": complete\n", False: ": not complete\n", None: ": not known yet\n"}
        assert shown[standing.complete] in place.dq(*words).out
    return standing.complete, standing.reason


def test_a_table_is_complete_until_an_instant_if_nothing_due_by_then_is_missing(place: Place) -> None:
    undecided = until(place, DUE)
    deliver(place, "2026-05-10", DUE)
    watch(place, DUE + DAY / 24)
    first = [until(place, DUE + part * DAY)[0] for part in (0, 0.99, 1)]
    # The 11th does not come, the 12th does.
    watch(place, DUE + DAY * 1.1)
    folder = deliver(place, "2026-05-12", DUE + 2 * DAY).parent
    watch(place, DUE + DAY * 2.1)
    hole = [until(place, DUE + part * DAY) for part in (0.5, 1, 2, 2.5)]
    deliver(place, "2026-05-11", DUE + 2.2 * DAY)
    watch(place, DUE + DAY * 2.3)
    filled = until(place, DUE + 2.5 * DAY)
    shutil.rmtree(folder)
    # A delivery is looked at again from time to time, and a second look confirms that it is gone.
    watch(place, DUE + DAY * 2.95)
    watch(place, DUE + DAY * 2.98)
    revoked = until(place, DUE + 2.5 * DAY)

    assert undecided == (None, "No delivery was evaluated yet.")
    assert first == [True, True, None]
    assert [complete for complete, _ in hole] == [True, False, False, False]
    assert all("day=2026-05-11 is incomplete. Nothing arrived by" in reason for _, reason in hole[1:])
    assert filled == (True, "Nothing is missing.")
    assert revoked[0] is False
    assert "day=2026-05-12 is incomplete." in revoked[1]
    # As of the past it is what was known then.
    assert until(place, DUE + 2 * DAY, now=DUE + DAY * 2.15) == hole[2]


def test_until_midnight_does_not_include_a_delivery_that_is_due_in_the_morning(place: Place) -> None:
    """As the page of Airflow says: the day before midnight is delivered afterwards."""
    deliver(place, "2026-05-10", DUE)
    watch(place, DUE + DAY / 24)
    midnight = DUE + timedelta(hours=18)

    at_midnight, in_the_morning = until(place, midnight), until(place, midnight + timedelta(hours=6))

    assert at_midnight[0] is True
    assert in_the_morning[0] is None


def test_until_an_instant_of_which_nothing_can_be_known_is_refused(place: Place) -> None:
    file = place.folder / "orders.odcs.yaml"
    deliver(place, "2026-05-10", DUE)
    watch(place, DUE + DAY / 24)
    arguments_by_message = {
        r"no delivery was watched before 2026-05-11T06:00:00\+00:00": {"until": DUE - DAY},
        "ambiguous delivery": {"until": DUE, "due": DUE},
        "all SLOs of an object count with until": {"until": DUE, "slo": "daily"},
        "has no time zone": {"until": DUE.replace(tzinfo=None)},
    }
    for message, arguments in arguments_by_message.items():
        with pytest.raises(UsageError, match=message):
            dq.cycle(file, folder=place.folder, **arguments)

    delivery = command.PROMISE[command.PROMISE.index("    customProperties:") :]
    place.put("orders.odcs.yaml", contract("orders").replace(delivery.format(name="orders"), ""))
    with pytest.raises(UsageError, match="no partition is due within 40 days"):
        dq.cycle(file, until=DUE, folder=place.folder)
