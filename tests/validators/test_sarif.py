"""SARIF is what GitHub's code scanning opens, and an alert keeps its identity when lines move."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from fragments.sarif import SCHEMA
from jsonschema import Draft202012Validator

from dq.contracts.outcome import Finding, Location, Severity
from dq.validators import rule_page
from dq.validators.lint import LintResult, TerminalOptions, lint_files
from dq.validators.reports import load_reports
from dq.validators.rule import Rule

GOLDEN = Path(__file__).parent / "golden"
SARIF = load_reports()["sarif"]


def _run(linted: LintResult) -> dict[str, Any]:
    document = json.loads(SARIF.render(linted, TerminalOptions()))
    Draft202012Validator(SCHEMA).validate(document)
    run: dict[str, Any] = document["runs"][0]
    return run


def _linted(rules: dict[str, Rule], text: str, file: str = "orders.odcs.yaml") -> LintResult:
    return lint_files([(file, text.encode())], rules=rules, today=date(2026, 11, 21))


def _prints(linted: LintResult) -> list[str]:
    return [result["partialFingerprints"]["primaryLocationLineHash"] for result in _run(linted)["results"]]


def test_a_report_is_sarif(rules: dict[str, Rule]) -> None:
    files = [(path.name, path.read_bytes()) for path in sorted(GOLDEN.glob("*.odcs.yaml"))]

    run = _run(lint_files(files, rules=rules, today=date(2026, 11, 21)))

    listed = run["tool"]["driver"]["rules"]
    assert all(listed[one["ruleIndex"]]["id"] == one["ruleId"] for one in run["results"])
    assert len(run["results"]) > 10


def test_nothing_found_is_sarif_too() -> None:
    assert _run(LintResult((), ("a",)))["results"] == []


@pytest.mark.parametrize("id_", ["cron-invalid", "missing-owner", "duplicate-contract", "yaml-syntax"])
def test_a_rule_brings_its_page(id_: str) -> None:
    finding = Finding(id_, Severity.ERROR, "wrong.", "Mend it.", Location("f"))

    (rule,) = _run(LintResult((finding,), ("f",)))["tool"]["driver"]["rules"]

    assert rule["help"]["text"].startswith(f"{id_} (")
    assert "## How to fix" in rule["help"]["markdown"]


def test_a_rule_of_the_organisation_needs_no_page() -> None:
    finding = Finding("our-own", Severity.WARNING, "wrong.", "", Location("f"))

    (rule,) = _run(LintResult((finding,), ("f",)))["tool"]["driver"]["rules"]

    assert rule["shortDescription"] == {"text": "our own"}
    assert rule["defaultConfiguration"] == {"level": "warning"}


def test_the_level_is_the_finding_s_and_not_the_rule_s() -> None:
    finding = Finding("missing-owner", Severity.CRITICAL, "wrong.", "", Location("f"))

    (result,) = _run(LintResult((finding,), ("f",)))["results"]

    assert (result["level"], result["properties"]["severity"]) == ("error", "critical")


def test_a_region_ends_with_its_line_and_counts_code_points(rules: dict[str, Rule]) -> None:
    text = rule_page.document("name: '𝄞𝄞'\nstatus: '𝄞x'  \n")[0]

    (result,) = _run(_linted(rules, text))["results"]

    region = result["locations"][0]["physicalLocation"]["region"]
    assert (region["startColumn"], region["endColumn"]) == (9, 13)


def test_a_name_with_a_space_is_a_uri() -> None:
    finding = Finding("a-rule", Severity.ERROR, "wrong.", "", Location("my contracts/ä.odcs.yaml"))

    (result,) = _run(LintResult((finding,), ()))["results"]

    artifact = result["locations"][0]["physicalLocation"]["artifactLocation"]
    assert artifact == {"uri": "my%20contracts/%C3%A4.odcs.yaml", "uriBaseId": "%SRCROOT%"}


def test_what_a_user_wrote_is_no_link() -> None:
    finding = Finding("a-rule", Severity.ERROR, "'[see](1)' and [0].", "", Location("f"))

    (result,) = _run(LintResult((finding,), ()))["results"]

    assert result["message"]["text"] == "'\\[see](1)' and [0]."


BAD = "schema: [{name: t, properties: [{name: a, logicalType: strng}]}]\n"


def test_a_fingerprint_outlives_lines_above(rules: dict[str, Rule]) -> None:
    before = rule_page.document(BAD)[0]

    assert _prints(_linted(rules, "# one\n# two\n" + before)) == _prints(_linted(rules, before))


def test_a_fingerprint_outlives_neighbours_and_a_move(rules: dict[str, Rule]) -> None:
    lines = "schema:\n  - name: t\n    properties:\n{}      - name: a\n        logicalType: strng\n"
    before = rule_page.document(lines.format(""))[0]
    after = rule_page.document(lines.format("      - {name: b}\n"))[0]

    assert _prints(_linted(rules, before)) == _prints(_linted(rules, after, "sales/orders.odcs.yaml"))


def test_equal_lines_are_told_apart_by_their_number(rules: dict[str, Rule]) -> None:
    one = "      - name: {}\n        logicalType: strng\n"
    text = rule_page.document("schema:\n  - name: t\n    properties:\n" + one.format("a") + one.format("b"))[
        0
    ]

    first, second = _prints(_linted(rules, text))

    assert (first[:-2], first[-2:], second[-2:]) == (second[:-2], ":1", ":2")
