"""Unusual numbers by the real commands: deliveries, alarms, and people's answers to them."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fakes.command import Place, contract

DUE = datetime(2026, 5, 2, 6, tzinfo=UTC)
DAY = timedelta(days=1)
DAYS = 24
RULE = (
    "    quality:\n"
    "      - {type: custom, engine: dq,"
    " implementation: {check: unusual, arguments: {of: [rowCount, bytes, arrival]}}}\n"
    "    properties:\n"
)


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """24 ordinary days, delivered, watched and checked."""
    place = Place(tmp_path_factory.mktemp("shop"))
    with pytest.MonkeyPatch.context() as environment:
        for name in [name for name in os.environ if name.startswith("DQ_")]:
            environment.delenv(name)
        place.put("orders.odcs.yaml", contract("orders", **{"    properties:\n": RULE}))
        place.put("lake/orders/.keep", "")
        watch(place, DUE - DAY / 2)
        draw = random.Random(7)
        for day in range(DAYS):
            deliver(place, day, draw.randint(985, 1015), draw.randint(2, 9))
            assert check(place, day)["status"] in ("pass", "skipped")
        shutil.copytree(place.folder, place.folder.with_name("saved"))
        yield place


def deliver(place: Place, day: int, rows: int, minutes: int) -> Path:
    """Deliver the rows of the day before DUE + day, this many minutes after due, and look."""
    at = DUE + day * DAY + timedelta(minutes=minutes)
    folder = place.folder / f"lake/orders/day={partition(day)}"
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"id": range(rows)}), folder / "part-0.parquet")
    (folder / "_SUCCESS").touch()
    for file in folder.iterdir():
        os.utime(file, (at.timestamp(), at.timestamp()))
    watch(place, at + timedelta(minutes=1))
    return folder


def partition(day: int) -> str:
    return f"{DUE + (day - 1) * DAY:%F}"


def watch(place: Place, at: datetime) -> None:
    place.dq("watch", ".", "--channel", "console", "--as-of", at.isoformat())


def check(place: Place, day: int, hours: float = 0.5) -> dict[str, object]:
    """Check the partition; the result of the rule."""
    at = (DUE + day * DAY + timedelta(hours=hours)).isoformat()
    ran = place.dq(
        "check", "orders.odcs.yaml", "--partition", f"day={partition(day)}", "--as-of", at,
        "--format", "json", "--channel", "console", "--rule", "unusual",
    )  # fmt: skip
    assert ran.out, ran.err
    [report] = ran.json
    [result] = report["results"]
    return result


@pytest.fixture
def place(history: Place) -> Place:
    """The history as it was; the store knows the contract by its path."""
    restore(history)
    return history


def restore(place: Place) -> None:
    shutil.rmtree(place.folder)
    shutil.copytree(place.folder.with_name("saved"), place.folder)


def incident_of(place: Place) -> str:
    [incident] = place.dq("incidents", "list", "--format", "json", "--all").json["incidents"]
    return incident["id"]


def standing(place: Place) -> dict[str, object]:
    [counts] = place.dq("status", ".", "--format", "json").json["unusual"]
    return counts


def bands(result: dict[str, object]) -> dict[str, str]:
    """The expected range of each number."""
    return {group["by"]["number"]: group["observed"].split("(")[-1] for group in result["groups"]}  # type: ignore[attr-defined]


def test_half_a_delivery_and_its_bytes_are_reported_and_answered(place: Place) -> None:
    deliver(place, DAYS, 480, 5)
    alarm = check(place, DAYS)
    before = standing(place)
    incident = incident_of(place)
    ran = place.dq("incidents", "ack", incident[:8], "--by", "ana", "--real")
    answered = place.dq("status", ".").out
    metrics = place.dq("metrics").out
    built = place.dq("portal", "build", "site", ".")
    page = (place.folder / "site/incidents/index.html").read_text()

    assert built.code == 0, built.all
    assert "Alarms of unusual numbers" in page
    assert "1 alarm: 1 real, 0 not real, 0 without an answer" in page
    assert {group["by"]["number"]: group["status"] for group in alarm["groups"]} == {  # type: ignore[attr-defined]
        "rowCount": "fail", "bytes": "fail", "arrival": "pass",
    }  # fmt: skip
    assert before == {"contract": "orders", "object": "orders", "alarms": 1, "real": 0, "not_real": 0,
                      "unanswered": 1, "precision": None}  # fmt: skip
    assert ran.code == 0
    assert "its unusual numbers are real" in ran.out
    assert "acknowledged by ana" in ran.out
    assert "orders/orders: 1 alarm: 1 real, 0 not real" in answered
    assert 'dq_unusual_alarms{contract="orders",object="orders",answer="real"} 1' in metrics


def test_a_late_delivery_is_reported_within_its_grace(place: Place) -> None:
    deliver(place, DAYS, 1_000, 6 * 60)
    alarm = check(place, DAYS, 7)

    assert alarm["message"].startswith("orders: arrival 6 h 0 min late is unusual for a ")  # type: ignore[attr-defined]


def test_an_alarm_that_was_not_real_is_normal_from_then_on(place: Place) -> None:
    deliver(place, DAYS, 480, 5)
    check(place, DAYS)
    place.dq("incidents", "ack", incident_of(place)[:8], "--not-real", "--by", "ana")
    again = check(place, DAYS, 1)
    deliver(place, DAYS + 1, 1_000, 5)
    usual = check(place, DAYS + 1)
    deliver(place, DAYS + 2, 490, 5)
    similar = check(place, DAYS + 2)

    assert (again["status"], usual["status"], similar["status"]) == ("pass", "pass", "pass")
    assert "its alarm was answered as not real" in str(again["message"])
    assert standing(place)["precision"] == 0.0


def test_an_alarm_that_was_real_changes_nothing_of_what_is_expected(place: Place) -> None:
    deliver(place, DAYS, 480, 5)
    check(place, DAYS)
    place.dq("incidents", "ack", "orders", "--real", "--by", "ana")
    deliver(place, DAYS + 1, 1_000, 5)
    lower = int(bands(check(place, DAYS + 1))["rowCount"].split()[1].replace(",", ""))
    deliver(place, DAYS + 2, 480, 5)

    assert 700 < lower < 985
    assert check(place, DAYS + 2)["status"] == "fail"


def test_a_corrected_delivery_can_still_be_answered_after_its_incident_is_over(place: Place) -> None:
    deliver(place, DAYS, 480, 5)
    check(place, DAYS)
    incident = incident_of(place)
    deliver(place, DAYS, 1_001, 30)
    check(place, DAYS, 2)
    ran = place.dq("incidents", "ack", incident[:8], "--real", "--by", "ana")

    assert ran.code == 0
    assert (standing(place)["real"], standing(place)["alarms"]) == (1, 1)


def test_an_answer_to_an_incident_without_unusual_numbers_is_refused(place: Place) -> None:
    for hours in (12, 13):
        watch(place, DUE + DAYS * DAY + timedelta(hours=hours))
    ran = place.dq("incidents", "ack", "orders", "--real")

    assert ran.code == 2
    assert "has no unusual number to answer" in ran.err
    assert "acknowledged" not in ran.out


def test_the_accepted_false_alarms_of_all_tables_limit_what_is_reported(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    statuses = []
    for accepted in ("1e-12", "0.5", "0"):
        restore_and_deliver(place)
        monkeypatch.setenv("DQ_UNUSUAL_FALSE_ALARMS", accepted)
        statuses.append(check(place, DAYS))

    assert [status["status"] for status in statuses] == ["pass", "fail", "fail"]
    assert "not reported: the accepted false alarms of all tables" in str(statuses[0]["message"])


def restore_and_deliver(place: Place) -> None:
    restore(place)
    deliver(place, DAYS, 480, 5)
