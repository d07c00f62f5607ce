"""dq schedule: what is next, what a contract promises, and how EventBridge writes it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dq.cli.main import run

CONTRACT = """\
apiVersion: v3.2.0
kind: DataContract
id: orders
version: 1.0.0
schema:
  - name: orders
    properties:
      - {name: day, logicalType: date, partitioned: true, partitionKeyPosition: 1}
slaProperties:
  - id: daily
    property: frequency
    value: 1
    unit: d
    element: orders
    schedule: "30 2 * * *"
    customProperties:
      - property: delivery
        vendor: dq
        value: {timezone: Europe/Berlin, grace: 30m, partition: {day: "{due - 1d:%F}"}, calendar: CALENDAR}
"""


@pytest.fixture
def contract(tmp_path: Path) -> Path:
    file = tmp_path / "orders.odcs.yaml"
    file.write_text(
        CONTRACT.replace("CALENDAR", "{holidays: [DE-BY], free_days: move, excuse: [2026-12-30]}")
    )
    return file


def explained(contract: Path, capsys: pytest.CaptureFixture[str], after: str, count: int) -> list[dict]:
    code = run(
        ["schedule", "explain", str(contract), "--after", after, "--count", str(count), "--format", "json"]
    )
    assert code == 0
    return json.loads(capsys.readouterr().out)


def test_explain_shows_dues_partitions_and_what_the_calendar_does(contract, capsys) -> None:
    (slo,) = explained(contract, capsys, "2026-12-24T12:00:00Z", 4)

    assert [(one["due_at"], one["partitions"]) for one in slo["cycles"]] == [
        ("2026-12-27T01:30:00Z", ["day=2026-12-26"]),
        (
            "2026-12-28T01:30:00Z",
            ["day=2026-12-24", "day=2026-12-25", "day=2026-12-27"],
        ),
        ("2026-12-29T01:30:00Z", ["day=2026-12-28"]),
        ("2026-12-30T01:30:00Z", ["day=2026-12-29"]),
    ]
    assert slo["cycles"][0]["breach_at"] == "2026-12-27T02:00:00Z"
    assert slo["cycles"][3]["excuse"] == "Excluded by the calendar: 2026-12-30 is listed."
    assert [(one["day"], one["effect"], one["due_on"]) for one in slo["calendar"]] == [
        ("2026-12-25", "move", "2026-12-28"),
        ("2026-12-26", "move", "2026-12-28"),
        ("2026-12-30", "excuse", None),
    ]


def test_explain_names_the_nights_of_clock_changes(contract, capsys) -> None:
    assert run(["schedule", "explain", str(contract), "--after", "2027-03-27T12:00:00Z"]) == 0

    printed = capsys.readouterr().out
    assert "due 2027-03-28 03:00 CEST = 2027-03-28T01:00:00Z" in printed
    assert "(gap)" in printed
    assert "2027-10-31 02:30 occurs twice; due at the first, 2027-10-31T00:30:00Z" in printed


def test_explain_says_what_is_wrong_with_a_calendar(tmp_path, capsys) -> None:
    file = tmp_path / "orders.odcs.yaml"
    file.write_text(CONTRACT.replace("CALENDAR", "{holidays: [DE-XX]}"))

    assert run(["schedule", "explain", str(file)]) == 3
    assert (
        "calendar-invalid: holidays: no public holidays available for subdivision 'XX'"
        in capsys.readouterr().err
    )


def test_convert_prints_both_readings_and_where_they_differ(capsys) -> None:
    code = run(
        ["schedule", "convert", "30 2 1 * 1", "--tz", "Europe/Berlin", "--after", "2027-03-01T00:00:00Z"]
    )

    printed = capsys.readouterr().out
    assert code == 0
    assert "day of month 1 or weekday MON; in Europe/Berlin, clock changes as 'vixie'" in printed
    assert "cron(30 2 1 * ? *)" in printed
    assert "cron(30 2 ? * MON *)" in printed
    assert "one schedule for each" in printed


def test_convert_tells_the_nights_on_which_the_two_differ(capsys) -> None:
    code = run(["schedule", "convert", "30 2 * * *", "--tz", "Europe/Berlin", "--format", "json",
                "--after", "2027-03-01T00:00:00Z"])  # fmt: skip

    said = json.loads(capsys.readouterr().out)
    assert code == 0
    assert said["differences"] == [
        {"at": f"{at}T01:00:00Z", "unix": True, "eventbridge": False} for at in ("2027-03-28", "2028-03-26")
    ]


@pytest.mark.parametrize("text", ["cron(0 6 15W * ? *)", "rate(5 minutes)", "0 6 */2 * 1", "nonsense"])
def test_convert_refuses_what_cannot_be_said(text: str, capsys) -> None:
    assert run(["schedule", "convert", text]) == 2
    assert capsys.readouterr().out
