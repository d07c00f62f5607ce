"""The policy decides which rules hold; its own mistakes are findings with places."""

from __future__ import annotations

import pytest

from dq.contracts.outcome import Severity
from dq.validators.policy.file import read
from dq.validators.policy.policy import DEFAULT, Policy
from dq.validators.rule import Rule

FILE = "dq-policy.yaml"


def _policy(text: str, rules: dict[str, Rule]) -> Policy:
    policy, findings = read(text.encode(), FILE, rules)
    assert findings == []
    return policy


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "profile: default\n", "rules: {}\n"])
def test_an_empty_policy_is_the_default(rules: dict[str, Rule], text: str) -> None:
    assert _policy(text, rules) == DEFAULT


@pytest.mark.parametrize(
    ("rule", "default", "strict"),
    [
        ("status-unknown", Severity.WARNING, Severity.ERROR),
        ("duplicate-property", Severity.ERROR, Severity.ERROR),
    ],
)
def test_the_strict_profile_raises_each_severity_by_one(
    rules: dict[str, Rule], rule: str, default: Severity, strict: Severity
) -> None:
    assert DEFAULT.severity(rules[rule]) is default
    assert _policy("profile: strict\n", rules).severity(rules[rule]) is strict


@pytest.mark.parametrize("rule", ["missing-owner", "missing-notification-channel", "file-name-not-id"])
def test_what_only_we_wish_for_is_asked_by_a_policy_alone(rules: dict[str, Rule], rule: str) -> None:
    assert DEFAULT.severity(rules[rule]) is None
    assert _policy("profile: strict\n", rules).severity(rules[rule]) is not None
    assert _policy(f"rules: {{{rule}: {{severity: error}}}}\n", rules).severity(rules[rule]) is Severity.ERROR


@pytest.mark.parametrize("word", ["off", '"off"', "Off"])
def test_a_rule_that_is_off_finds_nothing(rules: dict[str, Rule], lint_fragment, word: str) -> None:
    policy = _policy(f"rules:\n  status-unknown: {{severity: {word}}}\n", rules)

    assert lint_fragment("status: activ\n", policy) == []


def test_a_severity_of_the_policy_beats_the_profile(rules: dict[str, Rule], lint_fragment) -> None:
    policy = _policy("profile: strict\nrules:\n  status-unknown: {severity: info}\n", rules)

    assert [one.severity for one in lint_fragment("status: activ\n", policy)] == [Severity.INFO]


def test_arguments_reach_the_rule_and_leave_the_severity_to_the_profile(
    rules: dict[str, Rule], lint_fragment
) -> None:
    policy = _policy("profile: strict\nrules:\n  comment-too-long: {column_characters: 5}\n", rules)

    found = lint_fragment("schema: [{name: a, properties: [{name: b, description: too long}]}]\n", policy)

    assert [(one.rule, one.severity) for one in found] == [("comment-too-long", Severity.ERROR)]


def test_a_list_of_words_is_an_argument(rules: dict[str, Rule], lint_fragment) -> None:
    policy = _policy("rules:\n  classification-unknown: {classifications: [public, internal]}\n", rules)

    found = lint_fragment("schema: [{name: a, properties: [{name: b, classification: pubic}]}]\n", policy)

    assert [(one.rule, one.hint) for one in found] == [("classification-unknown", "Did you mean 'public'?")]


@pytest.mark.parametrize(
    ("text", "rule", "line", "column", "message", "hint"),
    [
        pytest.param(
            "rules:\n  missing-ownr: {severity: error}\n",
            "unknown-key", 2, 3, "unknown rule 'missing-ownr'.", "Did you mean 'missing-owner'?",
            id="a rule that does not exist",
        ),
        pytest.param(
            "rules:\n  missing-owner: {severity: eror}\n",
            "unknown-value", 2, 29, "unknown severity 'eror'.",
            "Did you mean 'error'?", id="a severity that does not exist",
        ),
        pytest.param(
            "rules:\n  missing-owner: error\n",
            "wrong-type", 2, 18, "missing-owner must be a mapping.",
            "Write missing-owner: {severity: warning}.",
            id="a setting that is no mapping",
        ),
        pytest.param(
            "rules:\n  comment-too-long: {column_characters: many}\n",
            "wrong-type", 2, 41, "column_characters must be a whole number, not the string 'many'.",
            "Write column_characters: 1.", id="an argument of the wrong type",
        ),
        pytest.param(
            "rules:\n  comment-too-long: {column_caracters: 3}\n",
            "unknown-key", 2, 22, "rules.comment-too-long has no key 'column_caracters'.",
            "Did you mean 'column_characters'?", id="an argument that does not exist",
        ),
        pytest.param(
            "rules:\n  unknown-key: {severity: off}\n",
            "unknown-value", 2, 3, "unknown-key is always an error, because its contracts cannot be read.",
            "Remove this setting.", id="a rule of form",
        ),
        pytest.param(
            "profil: strict\n",
            "unknown-key", 1, 1, "the policy has no key 'profil'.", "Did you mean 'profile'?",
            id="a key that does not exist",
        ),
        pytest.param(
            "profile: lax\n",
            "unknown-value", 1, 10, "unknown profile 'lax'.",
            "Write one of default, strict.", id="a profile that does not exist",
        ),
        pytest.param(
            "- strict\n",
            "wrong-type", 1, 1, "the document is a list.", "Write a mapping, e.g. 'profile: strict'.",
            id="a list",
        ),
        pytest.param(
            "rules: [missing-owner]\n",
            "wrong-type", 1, 8, "rules must be a mapping, not a list.", "Write rules: {…}.",
            id="rules in a list",
        ),
    ],
)  # fmt: skip
def test_a_mistake_in_the_policy_is_a_finding(
    rules: dict[str, Rule], text: str, rule: str, line: int, column: int, message: str, hint: str
) -> None:
    _, (found,) = read(text.encode(), FILE, rules)

    assert (found.rule, found.severity) == (rule, Severity.ERROR)
    assert (found.at.file, found.at.line, found.at.column) == (FILE, line, column)
    assert (found.message, found.hint) == (message, hint)


def test_what_is_right_in_a_policy_holds_beside_a_mistake(rules: dict[str, Rule]) -> None:
    policy, findings = read(b"rules:\n  nope: {}\n  missing-owner: {severity: off}\n", FILE, rules)

    assert len(findings) == 1
    assert policy.severity(rules["missing-owner"]) is None
