"""Waivers: exact, dated; an expired one is an error, an unused one a warning."""

from __future__ import annotations

from datetime import date

import pytest

from dq.contracts.outcome import Location, Severity
from dq.validators import rule_page
from dq.validators.lint import lint_files
from dq.validators.policy.file import read
from dq.validators.policy.policy import apply_waivers
from dq.validators.rule import Rule

FILE = "dq-policy.yaml"
MISSPELT = rule_page.document("status: activ\n")[0].encode()
WAIVER = (
    "waivers:\n"
    "  - {rule: status-unknown, contract: orders, path: status, "
    "reason: The portal is old., by: ana@example.com, expires: 2026-12-31}\n"
)


def _found(rules: dict[str, Rule], policy: str, today: date, contract: bytes = MISSPELT):
    made, wrong = read(policy.encode(), FILE, rules)
    assert wrong == []
    return lint_files([(rule_page.BASE_FILE, contract)], rules=rules, policy=made, today=today).findings


def test_a_waived_finding_is_not_said(rules: dict[str, Rule]) -> None:
    assert _found(rules, WAIVER, date(2026, 11, 21)) == ()


def test_a_waiver_holds_on_its_last_day(rules: dict[str, Rule]) -> None:
    assert _found(rules, WAIVER, date(2026, 12, 31)) == ()


def test_after_it_the_finding_is_back_and_the_waiver_is_an_error_in_the_policy(
    rules: dict[str, Rule],
) -> None:
    expired, back = _found(rules, WAIVER, date(2027, 1, 1))

    assert (expired.rule, expired.severity) == ("waiver-expired", Severity.ERROR)
    assert expired.at == Location(FILE, 2, 5)
    assert expired.message == (
        "the waiver of status-unknown for 'orders' expired on 2026-12-31. "
        "It was granted by ana@example.com: The portal is old."
    )
    assert back.rule == "status-unknown"


def test_a_waiver_that_waives_nothing_is_a_warning(rules: dict[str, Rule]) -> None:
    (found,) = _found(rules, WAIVER, date(2026, 11, 21), rule_page.document("")[0].encode())

    assert (found.rule, found.severity, found.at.file) == ("waiver-unused", Severity.WARNING, FILE)


def test_the_path_of_a_waiver_is_exact(rules: dict[str, Rule]) -> None:
    found = _found(rules, WAIVER.replace("path: status", "path: stat"), date(2026, 11, 21))

    assert [one.rule for one in found] == ["waiver-unused", "status-unknown"]


def test_a_waiver_of_a_contract_that_was_not_read_is_not_judged(rules: dict[str, Rule]) -> None:
    found = _found(rules, WAIVER.replace("orders", "returns"), date(2026, 11, 21))

    assert [one.rule for one in found] == ["status-unknown"]


def test_the_policy_sets_how_much_an_unused_waiver_matters(rules: dict[str, Rule]) -> None:
    policy = WAIVER + "rules: {waiver-unused: {severity: off}}\n"

    assert _found(rules, policy, date(2026, 11, 21), rule_page.document("")[0].encode()) == ()


def test_a_waiver_may_name_a_rule_from_elsewhere_and_is_left_to_those_who_know_it(
    rules: dict[str, Rule],
) -> None:
    policy, wrong = read(
        WAIVER.replace("status-unknown", "type-narrowed").encode(),
        FILE,
        rules,
        extra_rule_ids=["type-narrowed"],
    )

    here = apply_waivers([], policy.waivers, rules=rules, contracts=["orders"], today=date(2026, 11, 21))
    there = apply_waivers(
        [], policy.waivers, rules=["type-narrowed"], contracts=["orders"], today=date(2026, 11, 21)
    )

    assert (wrong, here, [one.rule for one in there]) == ([], [], ["waiver-unused"])


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("rule: status-unknown", "rule: status-unknwn", "unknown rule 'status-unknwn'."),
        ("rule: status-unknown", "rule: unknown-key", "unknown-key cannot be waived."),
        ("reason: The portal is old.", "reason: ''", "it must not be empty"),
        (", expires: 2026-12-31", "", "waivers[0] needs 'expires'."),
        ("expires: 2026-12-31", "expires: soon", "'soon' is not a date of the form 2027-01-31"),
    ],
)
def test_a_mistake_in_a_waiver_is_a_finding_and_waives_nothing(
    rules: dict[str, Rule], before: str, after: str, message: str
) -> None:
    policy, found = read(WAIVER.replace(before, after).encode(), FILE, rules)

    assert [message in one.message for one in found] == [True]
    assert policy.waivers == ()


def test_two_waivers_of_one_finding_are_one_too_many(rules: dict[str, Rule]) -> None:
    policy, (found,) = read((WAIVER + WAIVER.partition("\n")[2]).encode(), FILE, rules)

    assert (found.rule, found.at.line, len(policy.waivers)) == ("duplicate-key", 3, 1)
