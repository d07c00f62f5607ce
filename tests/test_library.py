"""The gate from Python says what the command says, in threads too."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path

import pytest
from fakes.command import Place

import dq
from dq.contracts.outcome import ReadError, UsageError

PROJECT = Path(__file__).parent.parent / "pyproject.toml"
ORDERS = """\
apiVersion: v3.2.0
kind: DataContract
id: orders
version: 1.0.0
status: active
schema:
  - name: orders
    properties:
      - {name: id, logicalType: integer, physicalType: bigint}
      - {name: state, logicalType: strng}
"""


def test_what_is_found_is_what_the_command_finds(tmp_path):
    folder = Place(tmp_path)
    (tmp_path / "a.odcs.yaml").write_text(ORDERS)
    (tmp_path / "b.odcs.yaml").write_text(ORDERS.replace("strng", "string").replace("bigint", "point"))

    said = json.loads(folder.dq("validate", ".", "--format", "json").out)
    found = dq.validate(tmp_path)

    assert [(one.rule, one.at.line, one.message) for one in found] == [
        (one["rule"], one["line"], one["message"]) for one in said["findings"]
    ]
    assert {one.rule for one in found} >= {"unknown-value"}
    assert dq.validate([tmp_path / "a.odcs.yaml", tmp_path / "b.odcs.yaml"]) == found


def test_subscriptions_are_judged_as_by_the_command(tmp_path):
    (tmp_path / "dq-policy.yaml").write_text("profile: default\n")
    (tmp_path / "a.odcs.yaml").write_text(ORDERS.replace("strng", "string"))
    (tmp_path / "subscriptions").mkdir()
    (tmp_path / "subscriptions/b.yaml").write_text(
        "contract: nosuch\nmajor: 1\nconsumer: {team: x}\npurpose: y\nstartDate: 2026-01-01\n"
    )

    said = json.loads(Place(tmp_path).dq("validate", ".", "--format", "json").out)

    found = dq.validate(tmp_path)
    assert [one.rule for one in found] == [one["rule"] for one in said["findings"]]
    assert "subscription-contract-unknown" in {one.rule for one in found}


def test_a_text_is_judged_as_a_file_is(tmp_path):
    (tmp_path / "a.odcs.yaml").write_text(ORDERS)

    assert [one.rule for one in dq.validate(ORDERS)] == [one.rule for one in dq.validate(str(tmp_path))]
    [finding] = [one for one in dq.validate(ORDERS) if one.severity.blocks]
    assert str(finding).startswith("(text):10:")
    assert dq.validate(ORDERS.replace("strng", "string")) == []


def test_a_text_that_is_none_is_a_finding_and_no_exception():
    [finding] = dq.validate("a: \ud800\n")

    assert finding.rule == "not-utf8"
    with pytest.raises(dq.BrokenContract):
        dq.load("a: \ud800\n")


def test_a_policy_is_that_of_the_registry_or_the_one_that_is_named(tmp_path):
    (tmp_path / "a.odcs.yaml").write_text(ORDERS.replace("strng", "string"))
    (tmp_path / "dq-policy.yaml").write_text("profile: strict\n")
    (tmp_path / "mild.yaml").write_text("profile: default\n")
    (tmp_path / "wrong.yaml").write_text("profil: strict\n")

    assert {one.rule for one in dq.validate(tmp_path)} >= {"missing-owner"}
    assert dq.validate(tmp_path, policy=tmp_path / "mild.yaml") == []
    with pytest.raises(UsageError, match="policy is invalid"):
        dq.validate(tmp_path, policy=tmp_path / "wrong.yaml")


@pytest.mark.parametrize("paths", ["nowhere", []])
def test_what_is_not_there_is_no_good_news(paths):
    with pytest.raises((ReadError, UsageError)):
        dq.validate(paths)


def test_two_versions_are_compared(tmp_path):
    old = ORDERS.replace("strng", "string")
    (tmp_path / "old.yaml").write_text(old)
    new = old.replace("name: state", "name: status")

    found = dq.diff(tmp_path / "old.yaml", new, today=date(2026, 5, 1))

    assert found.verdict == "break"
    assert "column-removed" in {one.rule for one in found.changes}
    assert dq.diff(old, dq.load(old)).verdict == "ok"
    assert dq.diff(old, None, today=date(2026, 5, 1)).verdict == "break"
    with pytest.raises(dq.BrokenContract, match="strng"):
        dq.diff(old, ORDERS)


def test_many_threads_ask_at_once():
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: [str(one) for one in dq.validate(ORDERS)], range(64)))

    assert len({tuple(one) for one in found}) == 1


def test_the_version_is_the_packages():
    assert f'version = "{dq.__version__}"' in PROJECT.read_text()
