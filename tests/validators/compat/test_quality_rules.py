"""Quality rules of two versions: which is which, and what a promise that is gone reads as."""

from __future__ import annotations

from typing import Any

import pytest
from fragments.compat import TODAY, contract

from dq.validators.compat.classification import Verdict
from dq.validators.compat.comparison import DiffTerms, diff

UNIQUE: dict[str, Any] = {"type": "text", "description": "No order appears twice."}
FILLED: dict[str, Any] = {"type": "text", "description": "Every order has a customer."}
TOTALS: dict[str, Any] = {"type": "sql", "query": "SELECT count(*) FROM orders WHERE total < 0", "mustBe": 0}
SODA: dict[str, Any] = {"type": "custom", "engine": "soda", "implementation": "row_count > 1"}
EXPECTATIONS: dict[str, Any] = {
    "type": "custom",
    "engine": "greatExpectations",
    "implementation": {"type": "expect_table_row_count_to_be_between", "kwargs": {"min_value": 1}},
}
NO_TWINS: dict[str, Any] = {"type": "library", "metric": "duplicateValues", "mustBe": 0}
NO_NULLS: dict[str, Any] = {"type": "library", "metric": "nullValues", "mustBe": 0}


def orders(*rules: dict[str, Any]) -> Any:
    column = {"name": "id", "logicalType": "string", "quality": list(rules)}
    return contract(
        {
            "apiVersion": "v3.2.0",
            "kind": "DataContract",
            "id": "orders",
            "version": "1.0.0",
            "status": "active",
            "schema": [{"name": "orders", "properties": [column]}],
        }
    )


def changed(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> set[tuple[str, Verdict]]:
    listed = diff(orders(*before), orders(*after), DiffTerms(today=TODAY)).changes
    return {(change.rule, change.verdict) for change in listed if change.rule.startswith("quality-")}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(UNIQUE, FILLED, id="text"),
        pytest.param(NO_TWINS, {**NO_NULLS}, id="another metric"),
        pytest.param(SODA, EXPECTATIONS, id="another engine"),
        pytest.param(UNIQUE, TOTALS, id="another type"),
    ],
)
def test_t61_a_rule_replaced_by_another_reads_as_removed(old: dict[str, Any], new: dict[str, Any]) -> None:
    rules = dict(changed([old], [new]))

    assert rules.keys() == {"quality-removed", "quality-added"}
    assert rules["quality-removed"] is not Verdict.OK


@pytest.mark.parametrize("named", [{"id": "key"}, {"name": "key"}], ids=["id", "name"])
def test_t61_a_kept_id_or_name_hides_no_promise_that_is_gone(named: dict[str, str]) -> None:
    removed = dict(changed([NO_TWINS], []))["quality-removed"]

    replaced = dict(changed([{**NO_TWINS, **named}], [{**NO_NULLS, **named}]))

    assert replaced["quality-removed"] is removed


@pytest.mark.parametrize("named", [{"id": "key"}, {"name": "key"}], ids=["id", "name"])
def test_t61_other_words_of_a_text_rule_are_another_promise(named: dict[str, str]) -> None:
    (change,) = changed([{**UNIQUE, **named}], [{**FILLED, **named}])

    assert change == ("quality-changed", Verdict.WARN)


def test_t61_other_words_about_a_rule_that_is_evaluated_are_no_change_of_it() -> None:
    (change,) = changed([{**NO_TWINS, "description": "a"}], [{**NO_TWINS, "description": "b"}])

    assert change[0] == "quality-label-changed"


@pytest.mark.parametrize("first", [UNIQUE, TOTALS, SODA, NO_TWINS])
@pytest.mark.parametrize(
    "second",
    [FILLED, EXPECTATIONS, NO_NULLS, {**TOTALS, "query": "SELECT count(*) FROM orders WHERE id IS NULL"}],
)
def test_t61_rules_in_another_order_are_no_change(first: dict[str, Any], second: dict[str, Any]) -> None:
    assert changed([first, second], [second, first]) == set()


@pytest.mark.parametrize("kept", [UNIQUE, FILLED])
def test_t61_of_two_text_rules_the_one_that_is_gone_is_removed(kept: dict[str, Any]) -> None:
    (change,) = changed([UNIQUE, FILLED], [kept])

    assert change[0] == "quality-removed"
