"""A contract that was written to cost time or screen gets little of either."""

from __future__ import annotations

import pytest

from dq.validators.lint import MAX_OF_ONE_RULE, MAX_TEXT


def test_one_rule_lists_at_most_a_hundred_findings_of_a_file(lint_fragment) -> None:
    columns = ", ".join(["{name: a}"] * 500)

    found = lint_fragment(f"schema: [{{name: t, description: a, properties: [{columns}]}}]\n")

    assert {one.rule for one in found} == {"duplicate-property"}
    assert len(found) == MAX_OF_ONE_RULE
    assert found[-1].message.endswith("More of this kind are not listed.")


def test_a_text_of_megabytes_is_not_quoted_in_full(lint_fragment) -> None:
    (found,) = lint_fragment(f"status: {'a' * 1_000_000}\n")

    assert found.rule == "status-unknown"
    assert len(found.message) == MAX_TEXT + 1
    assert found.message.endswith("…")


HUGE = {
    "an id": ("id: '" + "a" * 1_000_000 + "!'\n", ["id-form"]),
    "a version": ("version: '" + "1." * 500_000 + "'\n", ["version-not-semver"]),
    "a type of many fields": (
        "schema: [{name: t, properties: [{name: a, physicalType: 'struct<"
        + "".join(f"f{number}:int," for number in range(50_000))
        + "'}]}]\n",
        ["physical-type-unknown"],
    ),
    "a type that nests without end": (
        "schema: [{name: t, properties: [{name: a, physicalType: '" + "array<" * 100_000 + "'}]}]\n",
        ["physical-type-unknown"],
    ),
    "a pattern of open groups": (
        "schema: [{name: t, properties: [{name: a, logicalType: string, logicalTypeOptions: {pattern: '"
        + "(" * 200_000
        + "'}}]}]\n",
        ["pattern-invalid"],
    ),
    "a query of open braces": (
        "schema: [{name: t, quality: [{type: sql, mustBe: 0, query: 'SELECT " + "{ a " * 200_000 + "'}]}]\n",
        ["sql-refused"],
    ),
}


@pytest.mark.parametrize(("fragment", "expected"), HUGE.values(), ids=HUGE)
def test_a_huge_value_is_one_finding(lint_fragment, fragment: str, expected: list[str]) -> None:
    assert [one.rule for one in lint_fragment(fragment)] == expected


def test_many_unknown_elements_of_many_columns_are_judged_without_comparing_each_with_each(
    lint_fragment,
) -> None:
    columns = ", ".join(f"{{name: a{number}}}" for number in range(5_000))
    levels = ", ".join("{property: latency, value: 1, unit: h, element: t.zz}" for _ in range(2_000))

    found = lint_fragment(
        f"schema: [{{name: t, description: a, properties: [{columns}]}}]\nslaProperties: [{levels}]\n"
    )

    assert {one.rule for one in found} == {"sla-element-unknown"}


def test_the_placeholders_of_odcs_own_examples_are_known(lint_fragment) -> None:
    rule = "{type: sql, mustBe: 0, query: 'SELECT count(*) FROM ${table}'}"

    assert lint_fragment(f"schema: [{{name: t, quality: [{rule}]}}]\n") == []
