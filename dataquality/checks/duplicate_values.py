"""The number or share of repeated values is within the bounds of a `duplicateValues` rule.

Why: Some repetition is tolerable, and its growth shows a fault.
Bad: `metric: duplicateValues` with `mustBe: 0`, and three rows that are alike in the column.
Good: The same rule, and every value once.
Nulls: A row with NULL in the key repeats nothing. Counted are the rows beyond the first of each key (three
alike are two duplicates); a percentage is of all rows, and of zero rows it is skipped.
Mend: Remove the repeated rows at their source, or correct the bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dq.contracts.model import Contract, Property, Quality, SchemaObject
from dq.dataquality.clauses.clause import Clause, UniqueKey, asking, refuse
from dq.dataquality.clauses.kind import CheckKind, Example
from dq.dataquality.clauses.quality_rule import arguments, clauses_by, listed, metric, of_quality
from dq.dataquality.model.column import Column, columns
from dq.dataquality.model.threshold import Unusable

_CHECK = "duplicate_values"


def _of_property(one: SchemaObject, quality: Quality, _: Property, column: Column) -> Clause:
    arguments(quality)
    if not column.single:
        raise Unusable("a value inside of an array or map has no row of its own")
    return _keyed(of_quality(_CHECK, one, quality, str(column)), (column,))


def clauses(contract: Contract, one: SchemaObject) -> Iterator[Clause]:
    yield from clauses_by(_CHECK, "duplicateValues", _of_property)(contract, one)
    for quality in one.quality:
        if metric(quality) != "duplicateValues":
            continue
        made = of_quality(_CHECK, one, quality, "")
        try:
            keys = _keys(one, quality)
        except Unusable as error:
            yield refuse(made, str(error))
            continue
        yield _keyed(replace(made, property=", ".join(str(key) for key in keys)), keys)


def _keyed(made: Clause, keys: tuple[Column, ...]) -> Clause:
    return asking(made, UniqueKey(keys, "repeat a value"))


def _keys(one: SchemaObject, quality: Quality) -> tuple[Column, ...]:
    """The columns that the rule names, by name or physical name."""
    known: dict[str, Column] = {}
    for prop, column in columns(one):
        if column.single:
            named = Column((*column.steps[:-1], prop.name or prop.column))
            known.setdefault(str(named), column)
            known.setdefault(str(column), column)
    wanted = listed(arguments(quality, "properties").get("properties"), "properties")
    absent = [name for name in wanted if not isinstance(name, str) or name not in known]
    if absent:
        raise Unusable(f"{absent[0]!r} is not a property of {one.name}")
    return tuple(known[str(name)] for name in wanted)


def _rule(rest: str) -> str:
    return f"properties: [{{name: v, logicalType: string, quality: [{{metric: duplicateValues, {rest}}}]}}]"


def _pair(names: str) -> str:
    return (
        "{properties: [{name: a, logicalType: string}, {name: b, physicalName: b_id, logicalType: string}],"
        f" quality: [{{metric: duplicateValues, mustBe: 0, arguments: {{properties: [{names}]}}}}]}}"
    )


_SOME = (("a",), ("a",), ("a",), ("b",), (None,), (None,))
EXAMPLES = (
    Example("rows beyond the first", _rule("mustBe: 2"), "v string", _SOME, "pass", ("2 rows",)),
    Example("too many", _rule("mustBeLessThan: 2"), "v string", _SOME, "fail", ("2 rows",)),
    Example(
        "percent of all rows",
        _rule("mustBeLessThan: 33, unit: percent"),
        "v string",
        _SOME,
        "fail",
        ("33.33 % (2 of 6 rows)",),
    ),
    Example("percent of nothing", _rule("mustBe: 0, unit: percent"), "v string", (), "skipped"),
    Example("no rows", _rule("mustBe: 0"), "v string", (), "pass"),
    Example(
        "a pair",
        _pair("a, b"),
        "a string, b_id string",
        (("x", "1"), ("x", "2"), ("x", "2")),
        "fail",
        ("1 row",),
    ),
    Example("a pair with NULL", _pair("a, b"), "a string, b_id string", (("x", None), ("x", None)), "pass"),
    Example(
        "NaN, zeros and a field of a struct",
        "properties: [{name: s, logicalType: object, properties: [{name: v, logicalType: number, quality:"
        " [{metric: duplicateValues, mustBe: 2}]}]}]",
        "s struct<v: double>",
        (((float("nan"),),), ((float("nan"),),), ((0.0,),), ((-0.0,),), ((None,),), (None,)),
        "pass",
        ("2 rows",),
    ),
    Example(
        "nothing left of",
        _rule("mustBe: 0, customProperties: [{property: scope, vendor: dq, value: {where: \"v = 'x'\"}}]"),
        "v string",
        _SOME,
        "pass",
        ("0 rows",),
    ),
    Example("an unknown name", _pair("a, c"), "a string, b_id string", (("x", "1"),), "error"),
)
CHECK = CheckKind(_CHECK, __doc__, clauses, EXAMPLES)
