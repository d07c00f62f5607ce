"""An audit is a run of its own: it starts, and completes with a verdict or fails without one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from cli.test_lineage import events, tags
from cli.test_publish_audit import DAY, contract, desk, publish, stage

__all__ = ["desk"]


@pytest.fixture
def registered(spark, desk, monkeypatch):
    monkeypatch.setenv("DQ_LINEAGE", "events.jsonl")
    contract(desk)
    (desk.folder / "lake").mkdir()
    assert desk.dq("register", "orders.odcs.yaml", "--apply").code == 0
    return desk


def runs(desk):
    """Each event: what it is, of which job, of which run, counted as they come."""
    found = events(desk.folder)
    numbers = {}
    for event in found:
        numbers.setdefault(event["run"]["runId"], len(numbers) + 1)
    return [
        (numbers[one["run"]["runId"]], one["job"]["name"].partition(".")[0], one["eventType"])
        for one in found
    ]


def assertions(event):
    (checked,) = event["inputs"]
    found = checked["inputFacets"]["dataQualityAssertions"]["assertions"]
    return {one["name"]: one["success"] for one in found}


@pytest.mark.spark
def test_an_audit_that_passes_is_a_run_and_what_it_publishes_is_another_made_from_it(registered):
    good = stage(registered, "run-1", [1, 2])

    publish(registered, "--audit", good)
    publish(registered, "--audit", good)

    assert runs(registered) == [
        (1, "audit", "START"),
        (1, "audit", "COMPLETE"),
        (2, "publish", "START"),
        (2, "publish", "COMPLETE"),
        # Nothing is judged or published again.
        (3, "audit", "START"),
        (3, "audit", "COMPLETE"),
    ]
    found = events(registered.folder)
    audited, made, again = found[1], found[3], found[5]
    assert audited["inputs"][0]["name"] == good
    assert set(assertions(audited).values()) == {True}
    assert tags(audited) == {
        "contract": "orders", "contract_version": "1.0.0", "scope": DAY, "staged": good, "verdict": "passed",
    }  # fmt: skip
    assert [one["name"] for one in made["inputs"]] == [good]
    assert [one["name"] for one in made["outputs"]] == [str(registered.folder / "lake")]
    assert tags(again)["verdict"] == "published before"
    assert again["inputs"][0]["inputFacets"] == {}


@pytest.mark.spark
def test_an_audit_that_finds_faults_completes_and_names_what_is_staged_and_no_table(registered):
    bad = stage(registered, "run-2", [1, None])

    ran = publish(registered, "--audit", bad)

    assert ran.code == 1
    assert runs(registered) == [(1, "audit", "START"), (1, "audit", "COMPLETE")]
    end = events(registered.folder)[1]
    assert [one["name"] for one in end["inputs"]] == [bad]
    assert assertions(end)["schema/orders/properties/id/required"] is False
    assert tags(end)["verdict"] == "failed"
    assert "outputs" not in end or end["outputs"] == []


@pytest.mark.spark
def test_an_audit_that_comes_to_no_verdict_fails(registered):
    gone = stage(registered, "run-3", [1])
    shutil.rmtree(f"{gone}/{DAY}")
    unreadable = stage(registered, "run-4", [1])
    Path(unreadable, DAY, "part-0.parquet").write_bytes(b"no parquet")

    codes = [publish(registered, "--audit", staged).code for staged in (gone, unreadable)]

    assert codes == [3, 3]
    assert runs(registered) == [
        (1, "audit", "START"),
        (1, "audit", "FAIL"),
        (2, "audit", "START"),
        (2, "audit", "FAIL"),
    ]
    first, second = events(registered.folder)[1::2]
    assert "Nothing was staged" in first["run"]["facets"]["errorMessage"]["message"]
    assert tags(second)["verdict"] == "unknown"
