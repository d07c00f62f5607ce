"""JSON Schema 2020-12 for policies: vetting of schemas, and evaluation in a bounded number of steps."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import unquote

from dq.contracts import pattern as patterns
from dq.contracts.pattern import max_search_steps

if TYPE_CHECKING:
    from jsonschema import ValidationError


# A policy may only contain JSON Schemas whose evaluation takes a bounded number of steps.
#
# A schema is untrusted, like the contract that it describes. Before it is used, its size, depth,
# numbers and patterns are limited, and its references are local, acyclic and expand to a bounded number of
# schemas.

MAX_VALUES: Final = 3_000
MAX_CHARACTERS: Final = 100_000
MAX_NESTING: Final = 32
MAX_EXPANDED: Final = 3_000
MAX_PATTERNS: Final = 40
MAX_PATTERN_CHARACTERS: Final = 2_000
MAX_DIGITS: Final = 100

# Step limit of a search in a text as long as a code or a name; a pattern above it is unusable on longer
# texts.
_SHORT_TEXT = 64
_MAX_STEPS_SHORT = 50_000

Path = tuple[str | int, ...]

# TABLE: keywords by how they hold schemas. Source: JSON Schema 2020-12, sections 8 to 11.
_SINGLE = (
    "additionalProperties", "propertyNames", "items", "contains", "not", "if", "then", "else",
    "unevaluatedItems", "unevaluatedProperties", "contentSchema",
)  # fmt: skip
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
_MAPPINGS = ("properties", "patternProperties", "dependentSchemas")
_DEFINITIONS = ("$defs", "definitions")
# Keywords that change the base of references, or resolve them at run time.
_REFUSED = (
    "$id",
    "$anchor",
    "$dynamicRef",
    "$dynamicAnchor",
    "$recursiveRef",
    "$recursiveAnchor",
    "$vocabulary",
)


class UnusableSchema(ValueError):
    """A schema cannot be used; `path` leads to the part that is wrong."""

    def __init__(self, reason: str, path: Path = ()) -> None:
        super().__init__(reason)
        self.path = path


def vet(schema: Any) -> None:
    """Raise UnusableSchema if this is not a JSON Schema, or costs too much to evaluate."""
    from jsonschema import Draft202012Validator, FormatChecker
    from jsonschema.exceptions import SchemaError

    _refuse_large(schema)
    try:
        # Patterns are compiled below; jsonschema's check of them raises OverflowError for a{99999999999}.
        Draft202012Validator.check_schema(schema, format_checker=FormatChecker(formats=()))
    except SchemaError as error:
        raise UnusableSchema(error.message, tuple(error.absolute_path)) from None
    subschemas = dict(_subschemas(schema, ()))
    by_identity = {id(subschema): path for path, subschema in subschemas.items()}
    vetted_patterns: set[str] = set()
    for path, subschema in subschemas.items():
        for keyword in _REFUSED:
            if keyword in subschema:
                raise UnusableSchema(f"{keyword} is not supported", (*path, keyword))
        for keys, text in _patterns(subschema):
            _vet_pattern(text, (*path, *keys), vetted_patterns)
    _Expansion(schema, by_identity).measure(schema, (), 0)


def _refuse_large(schema: object) -> None:
    """Raise UnusableSchema for a schema with too many values, levels, characters or digits."""
    values = characters = 0
    pending: list[tuple[object, Path]] = [(schema, ())]
    while pending:
        value, path = pending.pop()
        values += 1
        if isinstance(value, str):
            characters += len(value)
        elif isinstance(value, Mapping):
            characters += sum(len(key) for key in value)
            pending += [(inner, (*path, key)) for key, inner in value.items()]
        elif isinstance(value, list):
            pending += [(inner, (*path, index)) for index, inner in enumerate(value)]
        elif (problem := number_problem(value)) is not None:
            raise UnusableSchema(problem, path)
        if values > MAX_VALUES:
            raise UnusableSchema(f"it has more than {MAX_VALUES:,} values")
        if characters > MAX_CHARACTERS:
            raise UnusableSchema(f"it has more than {MAX_CHARACTERS:,} characters")
        if len(path) > 2 * MAX_NESTING:
            raise UnusableSchema(f"it is nested deeper than {MAX_NESTING} schemas", path)


def number_problem(value: object) -> str | None:
    """Return why a number cannot be compared as JSON, or None for any other value."""
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return f"{value} is not a JSON number"
    if isinstance(value, int) and abs(value) >= 10**MAX_DIGITS:
        return f"a number has more than {MAX_DIGITS} digits"
    return None


def _children(schema: Mapping[str, Any], *, definitions: bool) -> Iterator[tuple[Path, Any]]:
    """Yield the schemas directly inside a schema, with the keys that lead to them."""
    for keyword in _SINGLE:
        if keyword in schema:
            yield (keyword,), schema[keyword]
    for keyword in _LISTS:
        for index, inner in enumerate(schema.get(keyword, ())):
            yield (keyword, index), inner
    for keyword in (*_MAPPINGS, *(_DEFINITIONS if definitions else ())):
        for key, inner in schema.get(keyword, {}).items():
            yield (keyword, key), inner


def _subschemas(schema: object, path: Path) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """Yield every schema that is a mapping, the whole one included, with its path."""
    if isinstance(schema, Mapping):
        yield path, schema
        for keys, inner in _children(schema, definitions=True):
            yield from _subschemas(inner, (*path, *keys))


def _patterns(schema: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    """Yield the regular expressions of a schema with the keys that lead to them."""
    if "pattern" in schema:
        yield ("pattern",), schema["pattern"]
    for text in schema.get("patternProperties", {}):
        yield ("patternProperties", text), text


def pattern_problem(text: str) -> str | None:
    """Return why a regular expression of a policy must not be used, or None if it is allowed."""
    try:
        re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        return f"{text!r} is not a regular expression: {error}"
    refused = patterns.sql_pattern_problem(text)
    if refused is not None:
        return f"{text!r}: {refused.message}. {refused.hint}"
    steps = patterns.max_search_steps(text, _SHORT_TEXT)
    if steps is None or steps > _MAX_STEPS_SHORT:
        return f"{text!r} matches the same text in too many ways"
    return None


def _vet_pattern(text: str, path: Path, vetted: set[str]) -> None:
    vetted.add(text)
    if len(vetted) > MAX_PATTERNS or sum(map(len, vetted)) > MAX_PATTERN_CHARACTERS:
        raise UnusableSchema(
            f"it has more than {MAX_PATTERNS} patterns, or {MAX_PATTERN_CHARACTERS:,} characters of them",
            path,
        )
    problem = pattern_problem(text)
    if problem is not None:
        raise UnusableSchema(problem, path)


class _Expansion:
    """The size of a schema with every reference replaced by what it names."""

    def __init__(self, root: object, paths: Mapping[int, Path]) -> None:
        self.root = root
        self.paths = paths
        # Identity of a schema -> the number of schemas that it expands to, and how deep they are nested.
        self.sizes: dict[int, tuple[int, int]] = {}
        self.open: set[int] = set()

    def measure(self, schema: object, path: Path, depth: int) -> tuple[int, int]:
        """Return the number of schemas and of levels. Raises UnusableSchema for a cycle, or too many."""
        if not isinstance(schema, Mapping):
            return 1, 1
        extent = self.sizes.get(id(schema))
        if extent is None:
            if id(schema) in self.open:
                raise UnusableSchema("it refers to itself", path)
            if depth > MAX_NESTING:
                raise UnusableSchema(f"it is nested deeper than {MAX_NESTING} schemas", path)
            self.open.add(id(schema))
            inner = [
                self.measure(child, (*path, *keys), depth + 1)
                for keys, child in _children(schema, definitions=False)
            ]
            if "$ref" in schema:
                reference = (*path, "$ref")
                inner.append(self.measure(self._target(schema["$ref"], reference), reference, depth + 1))
            self.open.remove(id(schema))
            extent = (
                1 + sum(size for size, _ in inner),
                1 + max((levels for _, levels in inner), default=0),
            )
            self.sizes[id(schema)] = extent
        if extent[0] > MAX_EXPANDED:
            raise UnusableSchema(f"its references expand to more than {MAX_EXPANDED:,} schemas", path)
        if depth + extent[1] > MAX_NESTING + 2:
            raise UnusableSchema(f"it is nested deeper than {MAX_NESTING} schemas", path)
        return extent

    def _target(self, reference: str, path: Path) -> object:
        """Return the schema that a reference names."""
        if not reference.startswith("#"):
            raise UnusableSchema(
                f"$ref {reference!r} is external, and external schemas are not fetched", path
            )
        target: Any = self.root
        for step in unquote(reference[1:]).split("/")[1:]:
            key = step.replace("~1", "/").replace("~0", "~")
            if (
                isinstance(target, list)
                and re.fullmatch(r"0|[1-9][0-9]{0,5}", key)
                and int(key) < len(target)
            ):
                target = target[int(key)]
            elif isinstance(target, Mapping) and key in target:
                target = target[key]
            else:
                raise UnusableSchema(f"$ref {reference!r} does not exist", path)
        if not reference[1:].startswith("/") and reference != "#":
            raise UnusableSchema(f"$ref {reference!r} does not exist", path)
        if not isinstance(target, bool) and id(target) not in self.paths:
            raise UnusableSchema(f"$ref {reference!r} is not a schema", path)
        return target


# JSON Schema 2020-12 with a limit on the work of one contract, counted in steps.
#
# jsonschema compares the items of `uniqueItems` in pairs, builds messages from whole values and evaluates
# `unevaluated…` again on each level. Every keyword therefore pays for what it is about to do, in steps of
# roughly ten microseconds, and `uniqueItems` compares canonical texts.

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
        """Deduct steps. Raises WorkLimitExceeded if fewer are left."""
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
    """Return the validation errors of a value, sorted by path. Must be called inside `within`.

    Raises WorkLimitExceeded if evaluation costs too much, and ValueError for a number that JSON does not
    have.
    """
    from referencing import Registry

    _reject_non_json_numbers(value)
    # With its own empty registry, jsonschema fetches nothing.
    validator = _validator_class()(schema, registry=Registry())
    return sorted(validator.iter_errors(value), key=lambda error: [str(step) for step in error.absolute_path])


def _reject_non_json_numbers(value: object) -> None:
    """Raise ValueError for a number that JSON does not have, at any depth."""
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

    keywords = {**Draft202012Validator.VALIDATORS, "uniqueItems": unique_items}
    extend: Any = validators.extend  # it has no annotations
    return extend(Draft202012Validator, {name: _charged(name, keyword) for name, keyword in keywords.items()})


def _charged(name: str, keyword: _Keyword) -> _Keyword:
    """Return the keyword wrapped to charge the budget before evaluation and for each error."""
    price = _PRICES.get(name)

    def charged(validator: Any, argument: Any, value: Any, schema: Any) -> Iterator[ValidationError]:
        budget = _BUDGET.get()
        budget.spend(1 + (price(_Call(budget, argument, value, schema)) if price else 0))
        for error in keyword(validator, argument, value, schema) or ():
            characters = budget.weight(value) + budget.weight(argument)
            budget.spend(_STEPS_PER_ERROR + characters // _CHARACTERS_PER_STEP)
            yield error

    return charged


def _search(text: str, value: str) -> int:
    # The length is rounded up to a power of two, so that the bound is computed for few lengths.
    steps = max_search_steps(text, 1 << max(len(value) - 1, 1).bit_length())
    return MAX_STEPS if steps is None else steps // _MATCHER_STEPS_PER_STEP + len(value) // 1_000


def _items(call: _Call) -> int:
    return len(call.value) if isinstance(call.value, list | Mapping) else 0


def _names(call: _Call) -> int:
    """Return the cost of searching each name of a mapping for every pattern next to the keyword."""
    if not isinstance(call.value, Mapping):
        return 0
    patterns = call.schema.get("patternProperties", {})
    call.budget.spend(len(call.value) * len(patterns) // 4)
    return len(call.value) + sum(_search(text, name) for text in patterns for name in call.value)


def _unevaluated(call: _Call) -> int:
    """Return the cost of `unevaluated…`: jsonschema searches a list of evaluated keys for each value."""
    size = len(call.value) if isinstance(call.value, list | Mapping) else 0
    return size * (size + MAX_EXPANDED) // 200 + _names(call)


def _comparison(call: _Call) -> int:
    return call.budget.weight(call.argument) // _COMPARED_PER_STEP


# TABLE: cost of a keyword in addition to one step.
_PRICES: Mapping[str, Callable[[_Call], int]] = {
    "pattern": lambda call: _search(call.argument, call.value) if isinstance(call.value, str) else 0,
    "patternProperties": _names,
    "additionalProperties": _names,
    "propertyNames": _items,
    "items": _items,
    "contains": _items,
    "unevaluatedItems": _unevaluated,
    "unevaluatedProperties": _unevaluated,
    **dict.fromkeys(("properties", "required", "dependentSchemas"), lambda call: len(call.argument) // 10),
    **dict.fromkeys(("dependentRequired", "enum", "const"), _comparison),
    "uniqueItems": lambda call: (
        call.budget.weight(call.value) // _COMPARED_PER_STEP
        if call.argument and isinstance(call.value, list)
        else 0
    ),
}


def unique_items(_validator: Any, argument: Any, value: Any, _schema: Any) -> Iterator[ValidationError]:
    """`uniqueItems` in one pass: jsonschema compares items in pairs where they cannot be sorted."""
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
