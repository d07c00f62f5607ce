"""What EventBridge starts over a year, counted as AWS documents it, is what the promises say is due."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from fakes import scheduler
from fakes.aws_cron import AwsCron, CronRefused
from fakes.glue import GlueShim
from fakes.scheduler import TARGET, promising

from dq.cli.main import run
from dq.contracts.schedule.clock import Schedule, parse
from dq.contracts.schedule.cron import Dialect

START = datetime(2026, 1, 1, tzinfo=UTC)
END = datetime(2027, 1, 1, tzinfo=UTC)
# Both clock changes of 2026, in UTC, by zone.
CHANGES = {
    "Europe/Berlin": ("2026-03-29T01:00", "2026-10-25T01:00"),
    "America/New_York": ("2026-03-08T07:00", "2026-11-01T06:00"),
    "Australia/Lord_Howe": ("2026-04-04T15:00", "2026-10-03T15:30"),
    "Asia/Kolkata": (),
}
# At hours that no clock change touches, so that both count alike all year.
EQUAL = (
    "0 6 * * *",
    "0 6 1 * 1",
    "15,45 8-18/2 * * 1-5",
    "0 5 31 * *",
    "0 12 29 2 *",
    "30 4 * 1-6/2 0",
    "0 22 L * *",
    "0 22 * * 5#2",
    "10 7 13 * 5L",
    "*/20 9 */7 * *",
)
# Within the nights on which clocks change.
NIGHTLY = ("30 2 * * *", "15 1 * * *", "*/30 * * * *")


Promised = dict[tuple[str, str], Schedule]


@pytest.fixture
def promised(glue: GlueShim, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Promised:
    """A registry with one contract for each zone that promises all of it, by contract and promise."""
    folder = tmp_path / "contracts"
    folder.mkdir()
    (folder / "dq-policy.yaml").write_text("registry: air\n")
    made: Promised = {}
    for number, zone in enumerate(CHANGES):
        name = f"table{number}"
        head, promises = promising(name).replace("Europe/Berlin", zone).split("slaProperties:\n")
        text = f"{head}slaProperties:\n"
        for at, cron in enumerate((*EQUAL, *NIGHTLY)):
            text += promises.replace("id: daily", f"id: at{at}").replace('"0 6 * * *"', f'"{cron}"')
            read = parse(cron, timezone=zone, dialect=Dialect.UNIX)
            assert isinstance(read, Schedule)
            made[name, f"at{at}"] = read
        (folder / f"{name}.odcs.yaml").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DQ_LAKE_ROOTS", "s3://lake")
    monkeypatch.setenv("DQ_SCHEDULE_TARGET", TARGET)
    monkeypatch.setenv("DQ_SCHEDULE_ROLE", "arn:aws:iam::123456789012:role/dq-scheduler")
    monkeypatch.setenv("DQ_SCHEDULE_AT", "due")
    scheduler.make_group(glue)
    return made


def test_over_a_year_with_both_clock_changes_aws_starts_what_is_promised(
    glue: GlueShim, promised: Promised, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["register", "contracts", "--catalog", "glue", "--apply"]) == 0
    told = capsys.readouterr().out

    fired: dict[tuple[str, str], list[datetime]] = {key: [] for key in promised}
    for one in scheduler.schedules(glue).values():
        about = json.loads(one["Target"]["Input"])
        key, zone = (about["contract"], about["slo"]), one["ScheduleExpressionTimezone"]
        assert zone == promised[key].timezone
        fired[key] += AwsCron(one["ScheduleExpression"]).fires(zone, START, END)

    for key, promise in promised.items():
        due = [one.at for one in promise.between(START, END)]
        said = (promise.expression, promise.timezone)
        if promise.expression in EQUAL:
            # Where days of the month and of the week meet, both of two schedules start it.
            assert sorted(set(fired[key])) == due, said
            continue
        differ = set(fired[key]) ^ set(due)
        nights = [datetime.fromisoformat(f"{one}Z") for one in CHANGES[promise.timezone]]
        assert all(min(abs(at - night) for night in nights) < timedelta(hours=3) for at in differ), said
        contract, slo = key
        assert bool(differ) == (f"{contract}/{contract}/{slo}: EventBridge " in told), said


def test_over_90_days_with_a_clock_change_aws_starts_an_evaluation_within_a_minute_of_each_breach(
    glue: GlueShim, promised: Promised, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("DQ_SCHEDULE_AT")
    assert run(["register", "contracts", "--catalog", "glue", "--apply"]) == 0
    assert "DST change" not in capsys.readouterr().out

    starts: dict[tuple[str, str], list[tuple[AwsCron, str]]] = {key: [] for key in promised}
    for schedule in scheduler.schedules(glue).values():
        payload = json.loads(schedule["Target"]["Input"])
        assert schedule["FlexibleTimeWindow"] == {"Mode": "OFF"}
        cron = AwsCron(schedule["ScheduleExpression"])
        starts[payload["contract"], payload["slo"]].append((cron, schedule["ScheduleExpressionTimezone"]))
    grace = timedelta(minutes=30)
    lost = []
    for key, promise in promised.items():
        for day in CHANGES[promise.timezone] or ("2026-03-01T00:00",):
            middle = datetime.fromisoformat(f"{day}Z")
            begin, end = middle - timedelta(days=45), middle + timedelta(days=45)
            fires = {at for cron, zone in starts[key] for at in cron.fires(zone, begin, end)}
            breaches = [due.at + grace for due in promise.between(begin, end - grace)]
            lost += [(key, breach) for breach in breaches if breach not in fires]
    assert lost == []


@pytest.mark.parametrize(
    "text", ["0 6 * * *", "cron(0 6 * * *)", "cron(0 6 1 * MON *)", "cron(0 6 ? * ? *)", "cron(60 6 * * ? *)"]
)
def test_the_counter_of_these_tests_takes_what_aws_takes_and_no_more(text: str) -> None:
    with pytest.raises(CronRefused):
        AwsCron(text)
