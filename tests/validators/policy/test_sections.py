"""Sections of the policy: what differs below a path or for a domain."""

from __future__ import annotations

from datetime import date

import pytest

from dq.contracts.outcome import Severity
from dq.validators import rule_page
from dq.validators.lint import lint_files
from dq.validators.policy.file import read
from dq.validators.policy.policy import Policy
from dq.validators.rule import Rule

TODAY = date(2026, 11, 21)
MISSPELT = rule_page.document("status: activ\n")[0]


def _policy(text: str, rules: dict[str, Rule]) -> Policy:
    policy, findings = read(text.encode(), "dq-policy.yaml", rules)
    assert findings == []
    return policy


def _severities(rules: dict[str, Rule], policy: Policy, file: str, text: str = MISSPELT) -> list[str]:
    linted = lint_files([(file, text.encode())], rules=rules, policy=policy, today=TODAY)
    return [f"{one.rule} {one.severity}" for one in linted.findings]


@pytest.mark.parametrize(
    ("pattern", "file", "covered"),
    [
        pytest.param("finance/**", "finance/orders.odcs.yaml", True, id="below a folder"),
        pytest.param("finance/**", "finance/eu/orders.odcs.yaml", True, id="at any depth"),
        pytest.param("finance/*", "finance/eu/orders.odcs.yaml", False, id="a star stays in its folder"),
        pytest.param("**/eu/*", "finance/eu/orders.odcs.yaml", True, id="folders before"),
        pytest.param("**/orders.odcs.yaml", "orders.odcs.yaml", True, id="or none before"),
        pytest.param("finance", "finance/orders.odcs.yaml", False, id="a folder is not its files"),
        pytest.param("order?.odcs.yaml", "orders.odcs.yaml", True, id="one sign"),
        pytest.param("orders.odcs.yaml", "ordersXodcs.yaml", False, id="a dot is a dot"),
    ],
)
def test_a_section_covers_the_files_that_its_path_fits(
    rules: dict[str, Rule], pattern: str, file: str, covered: bool
) -> None:
    policy = _policy(
        f"sections: [{{for: {{path: '{pattern}'}}, rules: {{status-unknown: {{severity: critical}}}}}}]",
        rules,
    )

    assert ("status-unknown critical" in _severities(rules, policy, file)) == covered


def test_a_section_for_a_domain_covers_its_contracts_wherever_they_lie(rules: dict[str, Rule]) -> None:
    policy = _policy("sections: [{for: {domain: finance}, profile: strict}]", rules)

    finance = _severities(rules, policy, "x/orders.odcs.yaml", MISSPELT + "domain: finance\n")
    other = _severities(rules, policy, "x/orders.odcs.yaml", MISSPELT + "domain: sales\n")

    assert (finance, other) == (["status-unknown error"], ["status-unknown warning"])


def test_both_keys_of_a_section_must_fit(rules: dict[str, Rule]) -> None:
    policy = _policy("sections: [{for: {domain: finance, path: 'eu/**'}, profile: strict}]", rules)

    assert _severities(rules, policy, "us/orders.odcs.yaml", MISSPELT + "domain: finance\n") == [
        "status-unknown warning"
    ]


def test_a_later_section_wins_and_keeps_what_it_does_not_say(rules: dict[str, Rule], lint_fragment) -> None:
    policy = _policy(
        "rules: {comment-too-long: {column_characters: 3}}\n"
        "sections:\n"
        "  - {for: {path: '**'}, rules: {comment-too-long: {severity: error}}}\n"
        "  - {for: {path: '**'}, rules: {comment-too-long: {severity: critical}}}\n",
        rules,
    )

    found = lint_fragment("schema: [{name: a, properties: [{name: b, description: long}]}]\n", policy)

    assert [(one.rule, one.severity) for one in found] == [("comment-too-long", Severity.CRITICAL)]


@pytest.mark.parametrize(
    ("text", "rule", "line", "message"),
    [
        ("sections: [{for: {}}]", "missing-key", 1, "the section does not specify its contracts."),
        ("sections: [{profile: strict}]", "missing-key", 1, "sections[0] needs 'for'."),
        ("sections: [{for: {pth: a}}]", "unknown-key", 1, "sections[0].for has no key 'pth'."),
        (
            "sections:\n  - for: {path: a}\n    rules: {status-unknwn: {severity: off}}",
            "unknown-key",
            3,
            "unknown rule 'status-unknwn'.",
        ),
    ],
)
def test_a_mistake_in_a_section_is_a_finding_at_its_place(
    rules: dict[str, Rule], text: str, rule: str, line: int, message: str
) -> None:
    found = read(text.encode(), "dq-policy.yaml", rules)[1]

    assert (rule, line, message) in [(one.rule, one.at.line, one.message) for one in found]
