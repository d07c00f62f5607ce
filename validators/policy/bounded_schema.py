"""JSON Schema 2020-12 with a limit on the work of one contract, counted in steps.

jsonschema compares the items of `uniqueItems` in pairs, builds messages from whole values and evaluates
`unevaluated…` again on each level. Every keyword therefore pays for what it is about to do, in steps of
roughly ten microseconds, and `uniqueItems` compares canonical texts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from dq.contracts.patterns.pattern import most_steps
from dq.validators.policy.schema_vetting import MAX_EXPANDED, number_problem

if TYPE_CHECKING:
    from jsonschema import ValidationError

MAX_STEPS: Final = 100_000

# An error keeps its message and its path; a few thousand are as many as a report can use.
_STEPS_PER_ERROR = 20
_CHARACTERS_PER_STEP = 100
_COMPARED_PER_STEP = 20
_MATCHER_STEPS_PER_STEP = 500

_Keyword = Callable[[Any, Any, Any, Any], Iterator["ValidationError"] | None]


class _Call(NamedTuple):
    """One keyword of a schema with its argument, on one value."""

    budget: WorkBudget
    argument: Any
    value: Any
    schema: Any


class WorkLimitExceeded(Exception):
    """The schemas of a policy ask for more work than one contract may cost."""


class WorkBudget:
    """The steps that are left for one contract, and the sizes of the values that were weighed."""

    def __init__(self, steps: int = MAX_STEPS) -> None:
        self.steps = steps
        self._weights: dict[int, int] = {}
        # Keeps the weighed values alive, so that no other value gets the identity of one.
        self._weighed: list[object] = []

    def spend(self, steps: int) -> None:
        """Raises WorkLimitExceeded where fewer steps are left."""
        self.steps -= steps
        if self.steps < 0:
            raise WorkLimitExceeded

    def weight(self, value: object) -> int:
        """Return about the number of characters that a value has when it is printed."""
        if isinstance(value, str):
            return 2 + len(value)
        if not isinstance(value, list | Mapping):
            return 8
        weight = self._weights.get(id(value))
        if weight is None:
            items = value if isinstance(value, list) else [*value, *value.values()]
            self.spend(len(items) // _COMPARED_PER_STEP)
            weight = 2 + sum(self.weight(item) for item in items)
            self._weights[id(value)] = weight
            self._weighed.append(value)
        return weight


_BUDGET: ContextVar[WorkBudget] = ContextVar("budget")


@contextmanager
def within(budget: WorkBudget) -> Iterator[None]:
    """Charge all validation inside of the block to a budget."""
    token = _BUDGET.set(budget)
    try:
        yield
    finally:
        _BUDGET.reset(token)


def errors(schema: Any, value: object) -> list[ValidationError]:
    """Return what is wrong with a value, sorted by place; inside of `within`.

    Raises WorkLimitExceeded where that costs too much, and ValueError for a number that JSON does not have.
    """
    from referencing import Registry

    _refuse_numbers(value)
    # With a registry of its own, which holds nothing, jsonschema fetches nothing.
    validator = _validator_class()(schema, registry=Registry())
    return sorted(validator.iter_errors(value), key=lambda error: [str(step) for step in error.absolute_path])


def _refuse_numbers(value: object) -> None:
    budget = _BUDGET.get()
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, list):
            budget.spend(len(item) // _COMPARED_PER_STEP)
            pending += item
        elif isinstance(item, Mapping):
            budget.spend(len(item) // _COMPARED_PER_STEP)
            pending += item.values()
        elif (problem := number_problem(item)) is not None:
            raise ValueError(problem)


@lru_cache(1)
def _validator_class() -> Any:
    from jsonschema import Draft202012Validator, validators

    keywords = {**Draft202012Validator.VALIDATORS, "uniqueItems": _unique_items}
    extend: Any = validators.extend  # it has no annotations
    return extend(Draft202012Validator, {name: _charged(name, keyword) for name, keyword in keywords.items()})


def _charged(name: str, keyword: _Keyword) -> _Keyword:
    """The keyword, which pays before it looks at a value, and for each error."""
    price = _PRICES.get(name, _nothing)

    def charged(validator: Any, argument: Any, value: Any, schema: Any) -> Iterator[ValidationError]:
        budget = _BUDGET.get()
        budget.spend(1 + price(_Call(budget, argument, value, schema)))
        for error in keyword(validator, argument, value, schema) or ():
            characters = budget.weight(value) + budget.weight(argument)
            budget.spend(_STEPS_PER_ERROR + characters // _CHARACTERS_PER_STEP)
            yield error

    return charged


def _nothing(_call: _Call) -> int:
    return 0


def _search(text: str, value: str) -> int:
    # The bound holds for every text up to the length, which is rounded up so that few lengths are computed.
    steps = most_steps(text, 1 << max(len(value) - 1, 1).bit_length())
    return MAX_STEPS if steps is None else steps // _MATCHER_STEPS_PER_STEP + len(value) // 1_000


def _pattern(call: _Call) -> int:
    return _search(call.argument, call.value) if isinstance(call.value, str) else 0


def _items(call: _Call) -> int:
    return len(call.value) if isinstance(call.value, list | Mapping) else 0


def _names(call: _Call) -> int:
    """The names of a mapping, each searched for every pattern that stands next to the keyword."""
    if not isinstance(call.value, Mapping):
        return 0
    patterns = call.schema.get("patternProperties", {})
    call.budget.spend(len(call.value) * len(patterns) // 4)
    return len(call.value) + sum(_search(text, name) for text in patterns for name in call.value)


def _unevaluated(call: _Call) -> int:
    """jsonschema lists what is evaluated, once for each schema, and looks each value up in that list."""
    size = len(call.value) if isinstance(call.value, list | Mapping) else 0
    return size * (size + MAX_EXPANDED) // 200 + _names(call)


def _arguments(call: _Call) -> int:
    return len(call.argument) // 10


def _comparison(call: _Call) -> int:
    return call.budget.weight(call.argument) // _COMPARED_PER_STEP


def _canonical_texts(call: _Call) -> int:
    compared = call.argument and isinstance(call.value, list)
    return call.budget.weight(call.value) // _COMPARED_PER_STEP if compared else 0


_PRICES: Mapping[str, Callable[[_Call], int]] = {
    "pattern": _pattern,
    "patternProperties": _names,
    "additionalProperties": _names,
    "propertyNames": _items,
    "items": _items,
    "contains": _items,
    "unevaluatedItems": _unevaluated,
    "unevaluatedProperties": _unevaluated,
    "properties": _arguments,
    "required": _arguments,
    "dependentRequired": _comparison,
    "dependentSchemas": _arguments,
    "enum": _comparison,
    "const": _comparison,
    "uniqueItems": _canonical_texts,
}


def _unique_items(_validator: Any, argument: Any, value: Any, _schema: Any) -> Iterator[ValidationError]:
    from jsonschema import ValidationError

    if not argument or not isinstance(value, list):
        return
    first: dict[str, int] = {}
    for index, item in enumerate(value):
        earlier = first.setdefault(canonical(item), index)
        if earlier != index:
            yield ValidationError(f"items {earlier} and {index} are equal")
            return


def canonical(value: object) -> str:
    """Return a text that two values share if and only if they are equal in JSON: 1 is 1.0, and not true."""
    if isinstance(value, Mapping):
        inner = sorted((json.dumps(str(key)), canonical(item)) for key, item in value.items())
        return "{" + ",".join(f"{key}:{item}" for key, item in inner) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return json.dumps(value)
