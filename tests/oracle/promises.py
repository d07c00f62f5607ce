"""Random clauses that fit a type, as the dicts that a contract's YAML gives; bounds lie near the values."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st
from oracle.evaluate import ITEM, KEY, VALUE, Steps, parts_of
from oracle.formats import INTEGER_FORMATS, TEXT_FORMATS, shortest
from oracle.patterns import patterns
from oracle.predicates import Predicate
from oracle.values import BITS, has_map, values

from dq.contracts.types import DataType

Json = dict[str, Any]
Row = Mapping[str, Any]
OPERATORS = ("mustBe", "mustNotBe", "mustBeGreaterThan", "mustBeGreaterOrEqualTo", "mustBeLessThan")
OPERATORS += ("mustBeLessOrEqualTo", "mustBeBetween", "mustNotBeBetween")
STEPS = (1, 2, 5, 10, 0.5, 0.25, 0.1, 0.01, 3, 1000, 1e-6, 1e-18, 7 * 10**17)
_NUMBERS = ("float", "double", "decimal", *BITS)
# Logical type -> the physical types that may carry it here.
_LOGICAL = {
    **dict.fromkeys(BITS, ("integer", "number")),
    **dict.fromkeys(("float", "double"), ("number",)),
    "decimal": ("number", "integer"),
    **dict.fromkeys(("timestamp", "timestamp_ntz"), ("timestamp",)),
    "binary": ("string",),
    "struct": ("object",),
}


def written(value: Any) -> Any:
    """A value as a contract writes it, or None where YAML cannot."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, str):
        return None if "\x00" in value else value
    return value.isoformat() if hasattr(value, "isoformat") else value


@st.composite
def near(draw: st.DrawFn, kind: DataType, known: Sequence[Any]) -> Any:
    """A value of the contract: one that the column holds, or another of its type."""

    def shown(value: Any) -> Any:
        found = written(value)
        # As a writer names a float, 0.1, and not with all digits that it has as a double.
        return float(shortest(found, "float")) if kind.name == "float" and found is not None else found

    fresh = values(kind).map(shown).filter(lambda value: value is not None)
    there = [found for value in known if (found := shown(value)) is not None]
    return draw(st.one_of(st.sampled_from(there), fresh) if there else fresh)


@st.composite
def options(draw: st.DrawFn, kind: DataType, logical: str, known: Sequence[Any]) -> Json:
    made: Json = {}
    maybe = st.booleans()
    if kind.name in (*_NUMBERS, "date", "timestamp", "timestamp_ntz"):
        for key in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"):
            if draw(maybe):
                made[key] = draw(near(kind, known))
    if kind.name in _NUMBERS and draw(maybe):
        made["multipleOf"] = draw(st.sampled_from(STEPS))
    if logical == "integer" and draw(maybe):
        made["format"] = draw(st.sampled_from(sorted(INTEGER_FORMATS)))
    if kind.name == "string":
        lengths = st.integers(0, 6)
        drawn = {"minLength": lengths, "maxLength": lengths, "pattern": patterns()}
        drawn["format"] = st.sampled_from(sorted(TEXT_FORMATS))
        made |= {key: draw(strategy) for key, strategy in drawn.items() if draw(maybe)}
    if kind.name in ("array", "map"):
        least, most = ("minItems", "maxItems") if kind.name == "array" else ("minProperties", "maxProperties")
        made |= {key: draw(st.integers(0, 3)) for key in (least, most) if draw(maybe)}
        if kind.name == "array" and not has_map(kind) and draw(maybe):
            made["uniqueItems"] = True
    return made


def thresholds(most: int) -> st.SearchStrategy[Json]:
    """One operator with its numbers, around those that counts and percentages of so few rows can be."""
    number = st.one_of(st.integers(0, most + 1), st.sampled_from([0, 50, 100, 33.33, 33.4, 0.5]))

    def rule(operator: str, one: float, other: float) -> Json:
        return {operator: sorted([one, other]) if "Between" in operator else one}

    return st.builds(rule, st.sampled_from(OPERATORS), number, number)


@st.composite
def rules(
    draw: st.DrawFn,
    kind: DataType,
    known: Sequence[Any],
    wheres: st.SearchStrategy[Predicate] | None,
    *,
    single: bool,
    most: int,
) -> Json:
    """One library rule of a property."""
    literal = near(kind, known)
    listable = kind.name in (*_NUMBERS, "string", "date", "timestamp", "timestamp_ntz", "boolean")
    metrics = ["nullValues"]
    metrics += ["duplicateValues"] if single and not has_map(kind) else []
    metrics += ["missingValues", "invalidValues"] if listable else []
    rule: Json = {"metric": draw(st.sampled_from(metrics)), **draw(thresholds(most))}
    lists = st.lists(literal, min_size=1, max_size=3)
    if rule["metric"] == "missingValues":
        rule["arguments"] = {"missingValues": [*draw(lists), *draw(st.sampled_from([[], [None]]))]}
    if rule["metric"] == "invalidValues":
        given: Json = {"validValues": draw(lists)}
        if kind.name == "string" and draw(st.booleans()):
            given["pattern"] = draw(patterns())
            given = given if draw(st.booleans()) else {"pattern": given["pattern"]}
        rule["arguments"] = given
    return rule | draw(scopes(wheres))


@st.composite
def scopes(draw: st.DrawFn, wheres: st.SearchStrategy[Predicate] | None) -> Json:
    """Unit and scope of a rule. `_where` holds the predicate's other half."""
    made: Json = {"unit": draw(st.sampled_from(["rows", "percent"]))}
    value: Json = {}
    if wheres is not None and draw(st.booleans()):
        made["_where"] = draw(wheres)
        value["where"] = made["_where"].text
    if draw(st.booleans()):
        value["rows"] = draw(st.sampled_from(["table", "partition"]))
    if value:
        made["customProperties"] = [{"property": "scope", "vendor": "dq", "value": value}]
    return made


@st.composite
def properties(
    draw: st.DrawFn,
    name: str,
    kind: DataType,
    steps: Steps,
    rows: Sequence[Row],
    wheres: st.SearchStrategy[Predicate] | None,
) -> Json:
    """A property of this type with clauses, and with those of everything inside."""
    logical = draw(st.sampled_from(_LOGICAL.get(kind.name, (kind.name,))))
    known = [value for row in rows for value in parts_of(row, steps) if value is not None]
    made: Json = {"name": name, "logicalType": logical}
    single = all(isinstance(step, str) for step in steps)
    # What a text does not tell apart, the contract must: a float of 32 bits, a timestamp without zone.
    told = draw(st.booleans()) or kind.name in ("timestamp_ntz", "binary", "float")
    if told and not kind.parts:
        made["physicalType"] = str(kind)
    made["required"] = draw(st.booleans())
    made["unique"] = single and not has_map(kind) and draw(st.integers(0, 4)) == 0
    made["logicalTypeOptions"] = draw(options(kind, logical, known))
    if kind.name in (*_NUMBERS, "string", "date", "timestamp", "timestamp_ntz", "boolean"):
        listed = draw(st.lists(near(kind, known), max_size=3))
        made["enum"] = [{"value": value} for value in listed]
    made["quality"] = draw(st.lists(rules(kind, known, wheres, single=single, most=len(rows)), max_size=2))
    inner: Callable[..., Any] = lambda name, part, step: draw(  # noqa: E731
        properties(name, part, (*steps, step), rows, wheres)
    )
    if kind.name == "struct":
        parts = zip(kind.names, kind.parts, strict=True)
        made["properties"] = [inner(field, part, field) for field, part in parts]
    if kind.name == "array":
        made["items"] = inner("", kind.parts[0], ITEM)
    if kind.name == "map":
        made["map"] = {"key": inner("", kind.parts[0], KEY), "value": inner("", kind.parts[1], VALUE)}
    return _lean(made)


def _lean(prop: Json) -> Json:
    """Without what promises nothing."""
    return {key: value for key, value in prop.items() if value not in (False, {}, [], "")}
