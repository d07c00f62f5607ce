"""Which JSON Schemas a policy may hold: those whose evaluation costs a bounded number of steps.

A schema comes from a stranger, like the contract that it describes. Before it is used, its size, depth,
numbers and patterns are limited, and its references are local, acyclic and expand to a bounded number of
schemas.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import unquote

from dq.contracts.patterns import pattern as patterns

MAX_VALUES: Final = 3_000
MAX_CHARACTERS: Final = 100_000
MAX_NESTING: Final = 32
MAX_EXPANDED: Final = 3_000
MAX_PATTERNS: Final = 40
MAX_PATTERN_CHARACTERS: Final = 2_000
MAX_DIGITS: Final = 100

# Steps of a search in a text as long as a code or a name; what takes more is of no use on a longer one.
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
# What moves the base of references, or resolves them at run time.
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
    """Raises UnusableSchema for what is no JSON Schema, or costs too much to evaluate."""
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
    """Raises UnusableSchema for a schema with too many values, levels, characters or digits."""
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
    """Return the reason why a number cannot be compared as JSON; None for any other value."""
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return f"{value} is not a number in JSON"
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
    """Return the reason why a regular expression of a policy may not be used, None if it may."""
    try:
        re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        return f"{text!r} is not a regular expression: {error}"
    refused = patterns.refused_in_sql(text)
    if refused is not None:
        return f"{text!r}: {refused.message}. {refused.mend}"
    steps = patterns.most_steps(text, _SHORT_TEXT)
    if steps is None or steps > _MAX_STEPS_SHORT:
        return f"{text!r} matches one text in too many ways"
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
        known = self.sizes.get(id(schema))
        if known is None:
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
            known = (
                1 + sum(size for size, _ in inner),
                1 + max((levels for _, levels in inner), default=0),
            )
            self.sizes[id(schema)] = known
        if known[0] > MAX_EXPANDED:
            raise UnusableSchema(f"its references expand to more than {MAX_EXPANDED:,} schemas", path)
        if depth + known[1] > MAX_NESTING + 2:
            raise UnusableSchema(f"it is nested deeper than {MAX_NESTING} schemas", path)
        return known

    def _target(self, reference: str, path: Path) -> object:
        """Return the schema that a reference names."""
        if not reference.startswith("#"):
            raise UnusableSchema(f"$ref {reference!r} leaves the schema, and nothing is fetched", path)
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
                raise UnusableSchema(f"$ref {reference!r} names nothing", path)
        if not reference[1:].startswith("/") and reference != "#":
            raise UnusableSchema(f"$ref {reference!r} names nothing", path)
        if not isinstance(target, bool) and id(target) not in self.paths:
            raise UnusableSchema(f"$ref {reference!r} does not name a schema", path)
        return target
