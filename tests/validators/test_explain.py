"""`dq explain RULE` prints the page of a rule."""

from __future__ import annotations

import pytest

from dq.contracts.outcome import UsageError
from dq.validators.rule import Rule
from dq.validators.rule_page import explain


def test_a_page_has_its_sections_and_the_fragments_as_they_are_written(rules: dict[str, Rule]) -> None:
    assert explain(rules, "ambiguous-unit") == (
        "ambiguous-unit (warning)\n"
        "\n"
        "Ambiguous unit `m`: minutes or months.\n"
        "\n"
        "Why\n"
        "One tool would expect the data within minutes, another within months.\n"
        "\n"
        "Bad\n"
        "    slaProperties:\n"
        "      - {property: latency, value: 30, unit: m}\n"
        "\n"
        "Good\n"
        "    slaProperties:\n"
        "      - {property: latency, value: 30, unit: min}\n"
        "\n"
        "How to fix\n"
        "Write `min` for minutes, or `mo` for months.\n"
    )


def test_arguments_for_the_policy_are_listed(rules: dict[str, Rule]) -> None:
    assert "  classifications: Classifications of personal data" in explain(
        rules, "retention-missing-for-pii"
    )


def test_every_rule_can_be_explained(rules: dict[str, Rule]) -> None:
    for id_ in rules:
        assert explain(rules, id_).startswith(id_)


def test_a_rule_that_does_not_exist_is_a_usage_error_with_the_nearest(rules: dict[str, Rule]) -> None:
    with pytest.raises(UsageError, match=r"unknown rule 'missing-ownr'\. Did you mean 'missing-owner'\?"):
        explain(rules, "missing-ownr")
