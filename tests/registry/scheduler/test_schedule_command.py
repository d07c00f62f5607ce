"""Delivery promises become schedules of EventBridge by `dq register`, as a user runs it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fakes import scheduler
from fakes.glue import Answer, Call, GlueShim, refused
from fakes.scheduler import TARGET
from fakes.scheduler import promising as contract
from jsonschema import Draft202012Validator

from dq.cli.main import run
from dq.operations.output_schemas import json_schema


@pytest.fixture
def registry(glue: GlueShim, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "contracts"
    folder.mkdir()
    (folder / "dq-policy.yaml").write_text("registry: air\n")
    (folder / "orders.odcs.yaml").write_text(contract())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DQ_LAKE_ROOTS", "s3://lake")
    monkeypatch.setenv("DQ_SCHEDULE_TARGET", TARGET)
    monkeypatch.setenv("DQ_SCHEDULE_ROLE", "arn:aws:iam::123456789012:role/dq-scheduler")
    monkeypatch.setenv("DQ_SCHEDULE_AT", "due")
    scheduler.make_group(glue)
    return folder


def register(*more: str) -> int:
    return run(["register", "contracts", "--catalog", "glue", *more])


def test_without_a_target_eventbridge_is_never_asked(
    glue: GlueShim, registry: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DQ_SCHEDULE_TARGET")

    assert register("--apply") == 0

    assert {call.operation for call in glue.calls}.isdisjoint(scheduler.OPERATIONS)


def test_a_plan_shows_the_schedule_and_an_apply_makes_it_once(
    glue: GlueShim, registry: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DQ_SCHEDULE_DEAD_LETTERS", "arn:aws:sqs:eu-central-1:123456789012:dq-dead-letters")
    monkeypatch.setenv("DQ_SCHEDULE_WINDOW_MINUTES", "10")
    planned = register("--check")
    assert (planned, glue.writes()) == (1, [])
    told = capsys.readouterr().out
    applied = register("--apply")
    start = len(glue.calls)
    again = register("--apply", "--check")
    calls = [call.operation for call in glue.calls[start:]]

    assert (applied, again) == (0, 0)
    assert "cron(0 6 * * ? *) in Europe/Berlin for orders/orders/daily" in told
    # One look at the group and one page: nothing else, while nothing has changed.
    assert [one for one in calls if one in scheduler.OPERATIONS] == ["GetScheduleGroup", "ListSchedules"]
    ((name, made),) = scheduler.schedules(glue).items()
    assert name.startswith("orders-orders-daily-")
    assert made["ScheduleExpression"] == "cron(0 6 * * ? *)"
    assert made["ScheduleExpressionTimezone"] == "Europe/Berlin"
    assert made["FlexibleTimeWindow"] == {"Mode": "FLEXIBLE", "MaximumWindowInMinutes": 10}
    assert made["Description"] == 'Kept by dq for the registry "air": orders/orders/daily'
    assert made["Target"] == {
        "Arn": TARGET,
        "RoleArn": "arn:aws:iam::123456789012:role/dq-scheduler",
        "Input": made["Target"]["Input"],
        "RetryPolicy": {"MaximumEventAgeInSeconds": 3600, "MaximumRetryAttempts": 10},
        "DeadLetterConfig": {"Arn": "arn:aws:sqs:eu-central-1:123456789012:dq-dead-letters"},
    }
    assert json.loads(made["Target"]["Input"]) == {
        "contract": "orders",
        "version": "1.0.0",
        "object": "orders",
        "slo": "daily",
        "due": "<aws.scheduler.scheduled-time>",
        "grace_seconds": 1800,
        "registry": "air",
    }
    said = capsys.readouterr().out
    assert "Schedules: applied 1 of 1 changes." in said
    assert "Schedules: applied 0 of 0 changes." in said


def test_by_default_it_starts_when_the_grace_is_over_and_a_change_to_due_replaces_it(
    glue: GlueShim, registry: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DQ_SCHEDULE_AT")
    (registry / "orders.odcs.yaml").write_text(contract(cron="0 23 LW * *"))
    register("--apply")
    ((name, made),) = scheduler.schedules(glue).items()
    monkeypatch.setenv("DQ_SCHEDULE_AT", "due")
    (registry / "orders.odcs.yaml").write_text(contract())
    register("--apply")
    ((same_name, changed),) = scheduler.schedules(glue).items()

    assert made["ScheduleExpression"] == "cron(30 23 26-31 * ? *)"
    assert made["ScheduleExpressionTimezone"] == "Europe/Berlin"
    assert made["FlexibleTimeWindow"] == {"Mode": "OFF"}
    payload = json.loads(made["Target"]["Input"])
    assert (payload["scheduled_at"], "due" in payload) == ("<aws.scheduler.scheduled-time>", False)
    assert (same_name, changed["ScheduleExpression"]) == (name, "cron(0 6 * * ? *)")


def test_a_calendar_keeps_the_schedule_that_evaluates_breaches(
    glue: GlueShim, registry: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("DQ_SCHEDULE_AT")
    text = contract().replace("grace: 30m", "grace: 30m, calendar: {weekdays_only: true}")
    (registry / "orders.odcs.yaml").write_text(text)

    assert register("--apply") == 0

    assert [one["ScheduleExpression"] for one in scheduler.schedules(glue).values()] == ["cron(30 6 * * ? *)"]
    assert "schedule-unsayable" not in capsys.readouterr().err


def test_where_cron_means_either_there_are_two_schedules_and_the_second_goes_with_it(
    glue: GlueShim, registry: Path
) -> None:
    (registry / "orders.odcs.yaml").write_text(contract(cron="0 6 1 * 1"))
    register("--apply")
    both = sorted(one["ScheduleExpression"] for one in scheduler.schedules(glue).values())
    (registry / "orders.odcs.yaml").write_text(contract(cron="0 7 1 * *"))
    register("--apply")

    assert both == ["cron(0 6 1 * ? *)", "cron(0 6 ? * MON *)"]
    assert [one["ScheduleExpression"] for one in scheduler.schedules(glue).values()] == ["cron(0 7 1 * ? *)"]


@pytest.mark.parametrize(
    ("cron", "said"),
    [
        ("*/2 6 */2 * 1", "both days of the month and weekdays"),
        ("0 6 LW * *", "LW"),
        ("0 6 * * 8", "cron-invalid"),
    ],
)
def test_what_eventbridge_cannot_say_is_a_finding_and_keeps_what_is_there(
    glue: GlueShim, registry: Path, capsys: pytest.CaptureFixture[str], cron: str, said: str
) -> None:
    register("--apply")
    before = scheduler.schedules(glue)
    (registry / "orders.odcs.yaml").write_text(contract(cron=cron))
    (registry / "lines.odcs.yaml").write_text(contract("lines"))
    capsys.readouterr()

    code = register("--apply")

    told = capsys.readouterr().err
    assert code == 3
    assert said in told
    assert "contracts/orders.odcs.yaml:18:" in told
    after = scheduler.schedules(glue)
    # The other contract has its own all the same.
    assert {name: after[name] for name in before} == before
    assert len(after) == 2


def test_a_calendar_is_told_and_makes_no_wrong_schedule(
    glue: GlueShim, registry: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = contract().replace("grace: 30m", "grace: 30m, calendar: {weekdays_only: true}")
    (registry / "orders.odcs.yaml").write_text(text)

    code = register("--apply")

    said = capsys.readouterr()
    assert (code, scheduler.schedules(glue)) == (0, {})
    assert "warning schedule-unsayable: EventBridge has no calendars" in said.err


def test_the_night_on_which_clocks_change_is_told_with_the_schedule(
    registry: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (registry / "orders.odcs.yaml").write_text(contract(cron="30 2 * * *"))

    register()

    said = capsys.readouterr().out
    assert "EventBridge does not start it" in said


def test_what_others_made_is_never_touched(
    glue: GlueShim, registry: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    register("--apply")
    ((ours, _),) = scheduler.schedules(glue).items()
    scheduler.drop(glue, ours)
    # A stranger's under our very name, and one beside it.
    scheduler.make_foreign(glue, ours)
    scheduler.make_foreign(glue, "payroll-0123456789ab")
    theirs = scheduler.schedules(glue)
    capsys.readouterr()

    codes = [register("--apply")]
    (registry / "orders.odcs.yaml").unlink()
    (registry / "lines.odcs.yaml").write_text(contract("lines"))
    codes.append(register("--apply", "--prune", "--prune-limit", "9"))

    after = scheduler.schedules(glue)
    assert codes == [3, 0]
    assert {name: after[name] for name in theirs} == theirs
    assert "is not managed by dq: it is left unchanged" in capsys.readouterr().out


def test_what_somebody_changed_is_put_back_and_what_was_removed_is_made_again(
    glue: GlueShim, registry: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    register("--apply")
    before = scheduler.schedules(glue)
    (name,) = before
    scheduler.alter(glue, name, State="DISABLED", ScheduleExpression="cron(0 9 * * ? *)")
    capsys.readouterr()
    register("--apply")
    said = capsys.readouterr().out
    mended = scheduler.schedules(glue)
    scheduler.drop(glue, name)
    register("--apply")

    assert "changed by someone else: ScheduleExpression cron(0 9 * * ? *) → cron(0 6 * * ? *)" in said
    assert "State DISABLED → ENABLED" in said
    for after in (mended, scheduler.schedules(glue)):
        assert after[name]["ScheduleExpression"] == "cron(0 6 * * ? *)"
        assert after[name]["State"] == "ENABLED"


def test_a_promise_that_is_no_more_loses_its_schedule_and_a_contract_that_is_gone_waits_for_prune(
    glue: GlueShim, registry: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("lines", "items"):
        (registry / f"{name}.odcs.yaml").write_text(contract(name))
    register("--apply")
    text = contract()
    (registry / "orders.odcs.yaml").write_text(text[: text.index("slaProperties")])
    (registry / "lines.odcs.yaml").unlink()

    # A part of the registry, and a registry that is not understood, say nothing of what is gone.
    assert run(["register", "contracts/items.odcs.yaml", "--catalog", "glue", "--apply", "--prune"]) == 3
    assert len(scheduler.schedules(glue)) == 3
    (registry / "broken.odcs.yaml").write_text("kind: [")
    assert register("--apply", "--prune") == 3
    slugs = sorted(name.rpartition("-")[0] for name in scheduler.schedules(glue))
    assert slugs == ["items-items-daily", "lines-lines-daily"]
    (registry / "broken.odcs.yaml").unlink()
    capsys.readouterr()
    assert register("--apply") == 0
    assert "contract 'lines' no longer exists; remove it with --prune" in capsys.readouterr().out
    assert len(scheduler.schedules(glue)) == 2
    assert register("--apply", "--prune") == 0

    assert [name.rpartition("-")[0] for name in scheduler.schedules(glue)] == ["items-items-daily"]


def test_a_prune_of_many_asks_first(
    glue: GlueShim, registry: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("lines", "items"):
        (registry / f"{name}.odcs.yaml").write_text(contract(name))
    register("--apply")
    for name in ("lines", "orders"):
        (registry / f"{name}.odcs.yaml").unlink()
    capsys.readouterr()

    assert register("--apply", "--prune") == 3

    assert len(scheduler.schedules(glue)) == 3
    assert "2 of 3 schedules would be deleted, limit 1" in capsys.readouterr().err
    assert register("--apply", "--prune", "--prune-limit", "2") == 0
    assert len(scheduler.schedules(glue)) == 1


def test_of_a_retired_contract_the_schedule_stands_still_and_of_a_draft_it_stays(
    glue: GlueShim, registry: Path
) -> None:
    (registry / "lines.odcs.yaml").write_text(contract("lines"))
    register("--apply")
    retired = contract().replace("status: active", "status: retired")
    (registry / "orders.odcs.yaml").write_text(retired)
    draft = contract("lines").replace("status: active", "status: draft")
    (registry / "lines.odcs.yaml").write_text(draft)

    register("--apply", "--prune")
    with glue.counted() as writes:
        register("--apply", "--prune")

    states = {name.partition("-")[0]: one["State"] for name, one in scheduler.schedules(glue).items()}
    assert (states, writes) == ({"orders": "DISABLED", "lines": "ENABLED"}, [])


def test_nothing_is_started_before_the_table_is_as_its_contract_says(
    glue: GlueShim, registry: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    glue.faults["CreateTable"] = [lambda call, go: refused("AccessDeniedException", "Not yours.")]

    assert register("--apply") == 3

    assert scheduler.schedules(glue) == {}
    assert "no schedule is created until the table matches its contract" in capsys.readouterr().out
    assert register("--apply") == 0
    assert len(scheduler.schedules(glue)) == 1


def test_a_store_that_is_lost_makes_nothing_twice_and_removes_nothing(
    glue: GlueShim, registry: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (registry / "lines.odcs.yaml").write_text(contract("lines"))
    register("--apply")
    for file in (registry.parent / ".dq").glob("*.db*"):
        file.unlink()
    (registry / "lines.odcs.yaml").unlink()

    with glue.counted() as writes:
        register("--apply", "--prune")

    assert [one for one in writes if "Schedule" in one] == []
    assert len(scheduler.schedules(glue)) == 2
    assert "the state store has no record that dq created it" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("variable", "text", "said"),
    [
        (
            "DQ_SCHEDULE_TARGET",
            "arn:aws:sqs:eu-central-1:123456789012:q.fifo",
            "not a target that EventBridge",
        ),
        ("DQ_SCHEDULE_TARGET", "lambda", "not a target that EventBridge"),
        ("DQ_SCHEDULE_ROLE", "", "schedule_role"),
        ("DQ_SCHEDULE_GROUP", "a group", "schedule_group"),
        ("DQ_SCHEDULE_DEAD_LETTERS", "queue", "schedule_dead_letters"),
        ("DQ_SCHEDULE_WINDOW_MINUTES", "1441", "schedule_window_minutes"),
        ("DQ_SCHEDULE_AT", "grace", "DQ_SCHEDULE_AT='grace' is not"),
        ("DQ_SCHEDULE_GROUP", "other", "has no group 'other'"),
    ],
)
def test_a_setting_that_cannot_be_is_a_mistake_of_usage(
    registry: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    variable: str,
    text: str,
    said: str,
) -> None:
    monkeypatch.setenv(variable, text)

    assert register() == 2

    assert said in capsys.readouterr().err


def test_the_plan_for_machines_and_as_a_comment_has_the_schedules(
    registry: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    register("--format", "json")
    printed = json.loads(capsys.readouterr().out)
    machine: dict[str, Any] = printed["schedules"]
    register("--format", "markdown")
    comment = capsys.readouterr().out

    assert [(step["kind"], step["outcome"]) for step in machine["steps"]] == [("MakeSchedule", None)]
    assert list(Draft202012Validator(json_schema("register")).iter_errors(printed)) == []
    assert "### Schedules" in comment
    assert "orders/orders/daily" in comment


@pytest.mark.parametrize("repeated", [True, False])
def test_a_schedule_whose_making_was_not_heard_of_is_made_once(
    glue: GlueShim, registry: Path, repeated: bool
) -> None:
    def lost(call: Call, go: Callable[[], Answer]) -> Answer | None:
        go()
        return None

    def unheard(call: Call, go: Callable[[], Answer]) -> Answer | None:
        go()
        return refused("AccessDeniedException", "Not yours.")

    # The same client asks again after a lost answer, and the next run after a refusal that was none.
    glue.faults["CreateSchedule"] = [lost if repeated else unheard]
    first = register("--apply")
    made = scheduler.schedules(glue)
    with glue.counted() as writes:
        second = register("--apply")
    with glue.counted() as later:
        register("--apply")
    (registry / "orders.odcs.yaml").write_text(contract(cron="0 7 * * *"))
    register("--apply")

    assert (first, second) == (0 if repeated else 3, 0)
    assert (writes, later) == ([], [])
    assert scheduler.schedules(glue).keys() == made.keys()
    assert [one["ScheduleExpression"] for one in scheduler.schedules(glue).values()] == ["cron(0 7 * * ? *)"]


@pytest.mark.parametrize("heard", [True, False])
def test_a_removal_that_failed_is_done_by_the_next_run(glue: GlueShim, registry: Path, heard: bool) -> None:
    def fails(call: Call, go: Callable[[], Answer]) -> Answer | None:
        if heard:
            go()
        return refused("AccessDeniedException", "Not yours.")

    register("--apply")
    text = contract()
    (registry / "orders.odcs.yaml").write_text(text[: text.index("slaProperties")])
    glue.faults["DeleteSchedule"] = [fails]

    codes = [register("--apply") for _ in range(2)]
    with glue.counted() as writes:
        codes.append(register("--apply"))

    assert (codes, writes) == ([3, 0, 0], [])
    assert scheduler.schedules(glue) == {}
