"""Two names that look the same are one name to a reader, however Unicode encodes them."""

from __future__ import annotations

import unicodedata
from datetime import date

import pytest

from dq.validators import rule_page
from dq.validators.lint import lint_files, load_rules

RULES = load_rules()
ONE, TWO = (unicodedata.normalize(form, "é") for form in ("NFC", "NFD"))


def found(*documents: tuple[str, str]) -> list[tuple[str, str]]:
    files = [(file, rule_page.document(fragment)[0].encode()) for file, fragment in documents]
    linted = lint_files(files, rules=RULES, today=date(2026, 11, 21))
    return [(one.rule, one.message) for one in linted.findings if one.rule.startswith("duplicate")]


def objects(first: str, second: str) -> str:
    one, two = (f"  - {{name: '{name}', properties: [{{name: a}}]}}\n" for name in (first, second))
    return f"schema:\n{one}{two}"


def properties(first: str, second: str) -> str:
    return f"schema:\n  - name: orders\n    properties: [{{name: '{first}'}}, {{name: '{second}'}}]\n"


def columns(first: str, second: str) -> str:
    return (
        "schema:\n  - name: orders\n    properties:"
        f" [{{name: a, physicalName: '{first}'}}, {{name: b, physicalName: '{second}'}}]\n"
    )


def ids(first: str, second: str) -> str:
    return (
        "slaProperties:\n"
        f"  - {{id: '{first}', property: latency, value: 2, unit: h}}\n"
        f"  - {{id: '{second}', property: retention, value: 1, unit: y}}\n"
    )


@pytest.mark.parametrize(
    ("fragment", "rule"),
    [
        (objects, "duplicate-object"),
        (properties, "duplicate-property"),
        (columns, "duplicate-property"),
        (ids, "duplicate-id"),
    ],
)
def test_names_that_look_the_same_are_duplicates(fragment, rule):
    assert [one for one, _ in found(("orders.odcs.yaml", fragment(ONE, TWO)))] == [rule]
    assert [one for one, _ in found(("orders.odcs.yaml", fragment(TWO, ONE)))] == [rule]


@pytest.mark.parametrize("fragment", [objects, properties, columns, ids])
@pytest.mark.parametrize(("first", "second"), [("m²", "m2"), ("ﬁ", "fi"), ("é", "e"), ("а", "a")])
def test_names_that_unicode_does_not_call_equal_are_not(fragment, first, second):
    assert found(("orders.odcs.yaml", fragment(first, second))) == []


def test_the_message_says_why_two_names_that_look_the_same_are_not():
    ((_, message),) = found(("orders.odcs.yaml", properties(ONE, TWO)))

    assert " is already used in line " in message
    assert message.endswith(" (it looks the same, but is encoded differently).")


def test_contracts_whose_ids_look_the_same_are_duplicates():
    both = found(("a.odcs.yaml", f"id: '{ONE}'\n"), ("b.odcs.yaml", f"id: '{TWO}'\n"))

    assert [rule for rule, _ in both] == ["duplicate-contract"]


@pytest.mark.parametrize(
    ("first", "second"), [(f"{ONE}.odcs.yaml", f"{TWO}.odcs.yaml"), ("A/x.odcs.yaml", "a/X.odcs.yaml")]
)
def test_files_that_one_clone_cannot_hold_are_duplicates(first, second):
    ((rule, message),) = found((first, "id: one\n"), (second, "id: two\n"))

    assert rule == "duplicate-contract"
    assert message == (
        f"{first} and {second} differ only by case or Unicode normalization, "
        "so some file systems cannot hold both."
    )
