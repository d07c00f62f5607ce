"""The evaluation of a JSON Schema ends when its budget of work is spent, and says what JSON Schema says."""

from __future__ import annotations

import tracemalloc

import pytest

from dq.validators.policy import json_schema


def test_errors_with_long_messages_are_bounded_in_memory() -> None:
    schema, value = {"allOf": [{"type": "integer"}] * 1_000}, "x" * 1_000_000
    tracemalloc.start()

    with json_schema.within(json_schema.WorkBudget()), pytest.raises(json_schema.WorkLimitExceeded):
        json_schema.errors(schema, value)

    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100_000_000


def test_the_work_of_a_contract_is_counted() -> None:
    schema = {"items": {"type": "integer"}}
    budget = json_schema.WorkBudget(1_000)

    with json_schema.within(budget), pytest.raises(json_schema.WorkLimitExceeded):
        json_schema.errors(schema, list(range(100_000)))


@pytest.mark.parametrize(
    ("items", "unique"),
    [
        ([1, 1.0], False),
        ([1, True], True),
        ([0, False], True),
        ([{"a": 1, "b": [2]}, {"b": [2.0], "a": 1}], False),
        (["1", 1], True),
        ([None, "null"], True),
        ([[1, 2], [2, 1]], True),
        ([{"a": 1}, {"a": True}], True),
    ],
)
def test_unique_items_are_compared_as_json_has_them(items: list[object], unique: bool) -> None:
    with json_schema.within(json_schema.WorkBudget()):
        assert (json_schema.errors({"uniqueItems": True}, items) == []) is unique
