"""What checks found, as messages of OORS: one for each run, and none that says more than is known."""

from __future__ import annotations

import json

import pytest
from cli.test_publish_audit import DAY, publish, registered, stage  # noqa: F401  a fixture
from cli.test_publish_audit import desk as audit_desk
from fakes.desk import Desk
from fakes.lake import CONTRACT, write_days
from fragments.oors import SCHEMA
from jsonschema import Draft202012Validator, FormatChecker

CHECK = ("check", "--channel", "console", "--format", "oors", "--partition")
GOOD, BROKEN = "day=2026-05-10", "day=2026-05-11"
PROPERTIES = "    properties:\n"
FORMATS = FormatChecker()


@pytest.fixture
def desk(request, tmp_path, monkeypatch, capfd):
    """A folder with a contract and two days; the session began elsewhere, so that places are whole."""
    if "registered" in request.fixturenames:
        return audit_desk.__wrapped__(tmp_path, monkeypatch, capfd)
    made = Desk(tmp_path, monkeypatch, capfd)
    monkeypatch.setenv("DQ_VARS", "DQ_LAKE")
    monkeypatch.setenv("DQ_LAKE", str(tmp_path / "lake"))
    write_days(tmp_path)
    return made


def messages(ran):
    """The messages of a run, each of which keeps the schema, and whose status is that of its results."""
    found = [json.loads(line) for line in ran.out.splitlines()]
    for one in found:
        Draft202012Validator(SCHEMA, format_checker=FORMATS).validate(one)
        states = [result["status"] for result in one["results"]]
        order = ["error", "fail", "warn", "pass", "skip", "unknown"]
        assert one["status"] == min(states, key=order.index)
        assert len({result["id"] for result in one["results"]}) == len(states)
    return found


def statuses(message):
    return {result["id"]: result["status"] for result in message["results"]}


@pytest.mark.spark
def test_a_message_says_of_each_clause_what_it_asked_and_how_many_rows_broke_it(spark, desk):
    ran = desk.dq(*CHECK, BROKEN)

    (found,) = messages(ran)
    minimum = next(one for one in found["results"] if "minimum" in one["id"])
    key = next(
        one for one in found["results"] if one["id"].endswith("@schema/orders/properties/id/primaryKey")
    )
    assert ran.code == 1
    assert (found["status"], found["source"]["process"]) == ("fail", "dq check")
    assert found["contract"] == {
        "contractId": "orders", "standard": "ODCS", "version": "1.0.0", "server": "lake",
    }  # fmt: skip
    assert (key["status"], key["severity"]) == ("fail", "high")
    assert key["relatesTo"] == "schema/orders/properties/id"
    assert key["target"] == {
        "resourceType": "table", "resourceIdentifier": "orders", "filter": "day = '2026-05-11'",
    }  # fmt: skip
    assert key["measure"]["failedRowCount"] == 1
    assert (key["measure"]["rowCount"], key["measure"]["threshold"]) == (3, {"mustBe": 0})
    assert (minimum["status"], minimum["measure"]["failedRowCount"]) == ("pass", 0)


@pytest.mark.spark
def test_a_rule_has_its_own_bound_and_a_warning_is_one(spark, desk):
    rules = "    quality: [{metric: rowCount, mustBeBetween: [4, 9], severity: warning}]\n"
    desk.write("orders.odcs.yaml", CONTRACT.replace(PROPERTIES, rules + PROPERTIES))

    (found,) = messages(desk.dq(*CHECK, GOOD))

    (rule,) = (one for one in found["results"] if one["measure"]["metric"] == "row_count")
    assert found["status"] == rule["status"] == "warn"
    assert rule["measure"] == {
        "metric": "row_count",
        "value": 3,
        "threshold": {"mustBeBetween": [4, 9]},
        "unit": "rows",
        "rowCount": 3,
    }
    assert "severity" not in rule


@pytest.mark.spark
def test_what_could_not_be_tested_is_an_error_and_what_nobody_tests_is_unknown(spark, desk):
    rules = "    quality: [{type: custom, engine: soda, implementation: 'checks: x'}]\n"
    desk.write("orders.odcs.yaml", CONTRACT.replace(PROPERTIES, rules + PROPERTIES))
    desk.write("other.odcs.yaml", "id: [")

    broken, lost = messages(desk.dq(*CHECK, "nonsense=1"))
    _, kept = messages(desk.dq(*CHECK, GOOD))

    assert (broken["status"], "contract" in broken) == ("error", False)
    assert (lost["status"], statuses(lost)) == ("error", {"data": "error"})
    assert lost["results"][0]["target"]["filter"] == "nonsense = '1'"
    assert kept["status"] == "pass"
    assert [one for one, status in statuses(kept).items() if status == "unknown"] == [
        "schema/orders/quality/0"
    ]


@pytest.mark.spark
def test_messages_of_one_command_have_one_run_and_ids_of_their_own(spark, desk):
    first = messages(desk.dq(*CHECK, GOOD, "--partition", BROKEN))
    second = messages(desk.dq(*CHECK, GOOD))

    assert [one["status"] for one in first] == ["pass", "fail"]
    assert len({one["source"]["runId"] for one in first}) == 1
    assert len({one["id"] for one in (*first, *second)}) == 3
    assert first[0]["source"]["runId"] != second[0]["source"]["runId"]


@pytest.mark.spark
def test_no_reader_finds_a_variable_to_put_in_and_no_row(spark, desk):
    rules = "    quality: [{id: '${AWS_SECRET_ACCESS_KEY}', type: text, description: '${HOME}'}]\n"
    desk.write("orders.odcs.yaml", CONTRACT.replace(PROPERTIES, rules + PROPERTIES))

    ran = desk.dq(*CHECK, BROKEN)

    assert messages(ran)[0]["status"] == "fail"
    assert "${" not in ran.out
    assert "id=4" not in ran.out


def test_a_dry_run_and_a_publish_without_an_audit_have_nothing_to_tell(desk):
    dry = desk.dq("check", "--dry-run", "--format", "oors")
    plain = desk.dq("publish", "orders.odcs.yaml", "--partition", GOOD, "--format", "oors")

    assert (dry.code, plain.code) == (2, 2)
    assert "Add --audit" in plain.err


@pytest.mark.spark
def test_an_audit_is_a_message_whatever_its_end(registered):  # noqa: F811
    good, bad = stage(registered, "run-1", [1, 2]), stage(registered, "run-2", [None])

    ran = [publish(registered, "--audit", one, "--format", "oors") for one in (bad, good, good)]

    found = [messages(one)[0] for one in ran]
    assert [one.code for one in ran] == [1, 0, 0]
    assert [one["status"] for one in found] == ["fail", "pass", "unknown"]
    assert {one["source"]["process"] for one in found} == {"dq publish --audit"}
    # Of the target, readers see something else.
    assert [one["customProperties"][0]["value"] for one in found] == [bad, good, good]
    assert f"orders {DAY}: partition, marker, receipt, notify." in ran[1].err
