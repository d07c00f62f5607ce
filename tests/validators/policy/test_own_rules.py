"""Rules of the organisation's own: select elements, assert what holds for their keys."""

from __future__ import annotations

from datetime import date

import pytest

from dq.contracts.outcome import Location, Severity
from dq.validators import rule_page
from dq.validators.lint import lint
from dq.validators.policy.file import read
from dq.validators.rule import Rule

TODAY = date(2026, 11, 21)


def _found(rules: dict[str, Rule], own: str, fragment: str):
    policy, wrong = read(f"own:\n  own-rule: {own}\n".encode(), "dq-policy.yaml", rules)
    assert wrong == []
    text, _ = rule_page.document(fragment)
    return lint(text.encode(), rule_page.BASE_FILE, rules=rules, policy=policy, today=TODAY)


TIMES = (
    "schema:\n"
    "  - name: t\n"
    "    properties:\n"
    "      - {name: created, logicalType: timestamp}\n"
    "      - {name: sent_at, logicalType: timestamp}\n"
    "      - {name: amount, logicalType: integer}\n"
)


def test_an_own_rule_finds_what_it_selects_and_names_it(rules: dict[str, Rule]) -> None:
    own = (
        "{select: property, where: {logicalType: {equals: timestamp}}, "
        "assert: {name: {matches: '_at$'}}, message: instants end in _at., hint: Rename it., severity: error}"
    )

    (found,) = _found(rules, own, TIMES)

    assert (found.rule, found.severity) == ("own-rule", Severity.ERROR)
    assert found.message == "property 'created': instants end in _at."
    assert found.hint == "Rename it."
    assert (found.path, found.at) == ("schema[0].properties[0].name", Location("orders.odcs.yaml", 13, 16))


# Assertion on `contract`, the contract's own lines, and whether it holds.
CASES = {
    "exists: there": ("domain: {exists: true}", "domain: a", True),
    "exists: absent": ("domain: {exists: true}", "", False),
    "must not exist: there": ("domain: {exists: false}", "domain: a", False),
    "must not exist: absent": ("domain: {exists: false}", "", True),
    "not-empty: text": ("domain: {not-empty: true}", "domain: a", True),
    "not-empty: blank": ("domain: {not-empty: true}", "domain: ' '", False),
    "not-empty: absent": ("domain: {not-empty: true}", "", False),
    "not-empty: empty list": ("tags: {not-empty: true}", "tags: []", False),
    "equals": ("domain: {equals: a}", "domain: a", True),
    "equals: other": ("domain: {equals: a}", "domain: b", False),
    "equals: absent passes": ("domain: {equals: a}", "", True),
    "one-of": ("domain: {one-of: [a, b]}", "domain: b", True),
    "one-of: none": ("domain: {one-of: [a, b]}", "domain: c", False),
    "none-of": ("domain: {none-of: [a, b]}", "domain: a", False),
    "matches": ("domain: {matches: '^[a-z]+$'}", "domain: A1", False),
    "contains": ("tags: {contains: gold}", "tags: [gold, core]", True),
    "contains: not": ("tags: {contains: gold}", "tags: [core]", False),
    "max-length of text": ("domain: {max-length: 3}", "domain: abcd", False),
    "min-length of a list": ("tags: {min-length: 2}", "tags: [core]", False),
    "a nested key": ("description.purpose: {exists: true}", "description: {usage: a}", False),
    "a custom property by name": (
        "customProperties.costCentre: {matches: ^H}",
        "customProperties: [{property: costCentre, value: K1}]",
        False,
    ),
    "a custom property that is absent": ("customProperties.costCentre: {exists: true}", "", False),
    "several operators": ("domain: {exists: true, max-length: 3}", "domain: abcd", False),
    "at-most": ("price.priceAmount: {at-most: 5}", "price: {priceAmount: 5.5}", False),
    "at-least": ("price.priceAmount: {at-least: 5}", "price: {priceAmount: 5.5}", True),
}


@pytest.mark.parametrize(("assertion", "lines", "holds"), CASES.values(), ids=CASES)
def test_an_operator_holds_or_not(rules: dict[str, Rule], assertion: str, lines: str, holds: bool) -> None:
    own = f"{{select: contract, assert: {{{assertion}}}, message: no.}}"

    found = _found(rules, own, lines + "\n")

    assert [one.rule for one in found] == ([] if holds else ["own-rule"])


@pytest.mark.parametrize(
    ("select", "key", "path"),
    [
        ("contract", "tenant", "tenant"),
        ("object", "businessName", "schema[0].businessName"),
        ("column", "businessName", "schema[0].properties[0].businessName"),
        ("server", "environment", "servers[0].environment"),
        ("server", "location", "servers[0].location"),
        ("support", "url", "support[0].url"),
        ("member", "name", "team.members[0].name"),
    ],
)
def test_each_kind_of_element_can_be_selected(
    rules: dict[str, Rule], select: str, key: str, path: str
) -> None:
    own = f"{{select: {select}, assert: {{{key}: {{exists: true}}}}, message: is missing.}}"

    found = _found(rules, own, "")

    assert path in [one.path for one in found]
    assert found[0].hint == f"{key} must be present."


def test_a_policy_can_set_an_own_rule_for_some_contracts(rules: dict[str, Rule]) -> None:
    text = (
        "own: {named: {select: contract, assert: {tenant: {exists: true}}, message: no.}}\n"
        "sections: [{for: {path: 'old/**'}, rules: {named: {severity: off}}}]\n"
    )
    policy, wrong = read(text.encode(), "dq-policy.yaml", rules)
    contract = rule_page.document("")[0].encode()

    new = lint(contract, "new/orders.odcs.yaml", rules=rules, policy=policy, today=TODAY)
    old = lint(contract, "old/orders.odcs.yaml", rules=rules, policy=policy, today=TODAY)

    assert ([one.rule for one in new], old, wrong) == (["named"], [], [])


@pytest.mark.parametrize(
    ("own", "message"),
    [
        ("a: {select: table, assert: {}, message: a.}", "unknown select 'table'."),
        ("a: {select: object, assert: {nme: {exists: true}}, message: a.}", "object has no key 'nme'."),
        ("a: {select: object, assert: {name: {exist: true}}, message: a.}", "has no key 'exist'."),
        ("a: {select: object, assert: {name: {matches: '['}}, message: a.}", "is not a regular expression"),
        ("a: {select: object, assert: {name: true}, message: a.}", "name must be a mapping."),
        ("a: {select: object, assert: {name: {exists: true}}, message: ''}", "it must not be empty"),
        ("a: {select: object, assert: {}, message: a.}", "asserts nothing"),
        ("A B: {select: object, assert: {name: {exists: true}}, message: a.}", "is not a valid rule id"),
        ("missing-owner: {select: object, assert: {}, message: a.}", "rule 'missing-owner' already exists."),
        ("a: 1", "a must be a mapping."),
        (
            "a: {select: property, assert: {name: {matches: }}, message: m}",
            "matches of name has no value.",
        ),
        (
            "a: {select: property, assert: {name: {min-length: }}, message: m}",
            "min-length of name has no value.",
        ),
        (
            "a: {select: property, assert: {name: {one-of: }}, message: m}",
            "one-of of name has no value.",
        ),
        (
            "a: {select: property, assert: {name: {at-most: }}, message: m}",
            "at-most of name has no value.",
        ),
    ],
)
def test_a_mistake_in_an_own_rule_is_a_finding(rules: dict[str, Rule], own: str, message: str) -> None:
    policy, found = read(f"own:\n  {own}\n".encode(), "dq-policy.yaml", rules)

    assert any(message in one.message for one in found), found
    assert all(one.at.line >= 2 for one in found)
    assert policy.own_rules == {}
