"""Arrays, maps and objects have an allowed number of parts, and unique items if the contract requires them.

Why: An order without lines, or a box with too many labels, breaks its consumers.
The keys are `minItems`, `maxItems`, `uniqueItems`, `minProperties` and `maxProperties`.
Bad: `minItems: 1` and a row with an empty array.
Good: A row with one item.
Nulls: NULL instead of an array passes; items that are NULL count, and repeat each other. Of an
object with `properties` those fields count that are not NULL; without them it must be a map, whose entries
count.
How to fix: Correct the value at its source, or the bound in the contract.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from dq.contracts.model import Property
from dq.contracts.types import physical_type
from dq.dataquality.clauses.clause import Clause, PropertyKeys, RowTest, with_test
from dq.dataquality.clauses.kind import property_check
from dq.dataquality.model.predicate import Compare, Entries, Operator, Path, Predicate, Present, Repeats, Size

# Key -> (attribute, type, operator of a violation, allowed sizes, complaint).
_SIZES: dict[str, tuple[str, str, Operator, str, str]] = {
    "minItems": ("min_items", "array", "<", "at least {} items", "have fewer items"),
    "maxItems": ("max_items", "array", ">", "at most {} items", "have more items"),
    "minProperties": ("min_properties", "map", "<", "at least {} entries", "have fewer entries"),
    "maxProperties": ("max_properties", "map", ">", "at most {} entries", "have more entries"),
}


def clauses(keys: PropertyKeys) -> Iterator[Clause]:
    options = keys.options
    if options is None:
        return
    for key, (attribute, kind, comparison, allowed, complaint) in _SIZES.items():
        bound = getattr(options, attribute)
        if bound is None:
            continue
        fields = _fields(keys.property) if kind == "map" else ()
        breaks = keys.column.where(partial(_breaks, kind, fields, comparison, bound))
        complaint = complaint.replace("entries", "fields") if fields else complaint
        yield with_test(keys.option(key, allowed.format(bound)), RowTest(breaks, complaint))
    if options.unique_items:
        breaks = keys.column.where(Repeats)
        yield with_test(keys.option("uniqueItems", "no item twice"), RowTest(breaks, "repeat an item"))


def _breaks(kind: str, fields: tuple[str, ...], comparison: Operator, bound: int, value: Path) -> Predicate:
    size = Size(value) if kind == "array" else Present(value, fields) if fields else Entries(value)
    return Compare(size, comparison, bound)


def _fields(prop: Property) -> tuple[str, ...]:
    """Return the fields of an object that is a struct; empty for a map."""
    promised = physical_type(prop)
    if promised is not None and promised.name == "map":
        return ()
    return tuple(inner.column for inner in prop.properties)


CHECK = property_check("items", __doc__, clauses)
