"""What a relationship refers to: an object of the same contract, and one of its columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dq.contracts.model import Contract, Property, SchemaObject
from dq.contracts.types import DataType
from dq.dataquality.model.column import Column, resolve
from dq.dataquality.model.term import FLOATS, INTEGERS, TEXTS
from dq.dataquality.model.threshold import Unusable
from dq.dataquality.quarantine.masking import classified


class Outside(ValueError):
    """A reference leaves the contract; the text says which contract would be needed."""


@dataclass(frozen=True, slots=True)
class Target:
    """The columns of an object, by its name, that hold the keys which others refer to.

    Where one of them is `classified`, so is what refers to it.
    """

    object: str
    keys: tuple[Column, ...]
    classified: bool = False

    def __str__(self) -> str:
        shown = ", ".join(str(key) for key in self.keys)
        return f"{self.object}.{shown}" if len(self.keys) == 1 else f"{self.object} ({shown})"


def has_relationships(one: SchemaObject) -> bool:
    """Whether the object or one of its properties refers to something."""
    return any(element.relationships for element in (one, *one.walk()))


def target(contract: Contract, texts: Sequence[str]) -> Target:
    """The one object that all references name, and their columns in this order.

    A reference is `object.property` by names (or the object's id), or `schema/<id>/properties/<id>` by ids,
    at any depth of structs. Raises Outside for one that leaves the contract, and Unusable, with the reason,
    for one that names nothing, or something that does not stand once in a row.
    """
    found = [_resolve(contract, text.strip()) for text in texts]
    objects = {one.name for one, _ in found}
    if len(objects) != 1:
        raise Unusable(f"its columns are of several objects: {', '.join(sorted(objects)) or 'none'}")
    secret = any(str(column.steps[0]).lower() in classified(one) for one, column in found)
    return Target(objects.pop(), tuple(column for _, column in found), secret)


def _resolve(contract: Contract, text: str) -> tuple[SchemaObject, Column]:
    file, hash_, inside = text.rpartition("#")
    path = inside.lstrip("/")
    if file or ("/" in path and not path.startswith("schema/")):
        needed = file if hash_ else text
        raise Outside(f"{text!r} leaves this contract; the data of {needed!r} would be needed")
    if path.startswith("schema/"):
        return _by_id(contract, path)
    return _by_name(contract, path)


def _by_name(contract: Contract, path: str) -> tuple[SchemaObject, Column]:
    known = False
    for one in contract.objects:
        for name in {one.name, one.id or one.name, one.column}:
            known = known or path == name or path.startswith(f"{name}.")
            for written, column in single_columns(one.properties, ()):
                if path == f"{name}.{'.'.join(prop.name or '' for prop in written)}":
                    return one, column
    if not known and "." in path:
        holder = path.partition(".")[0]
        raise Outside(
            f"{path!r} leaves this contract; the contract with the object {holder!r} would be needed"
        )
    raise Unusable(f"{path!r} is no column of this contract that stands once in a row; write object.property")


def _by_id(contract: Contract, path: str) -> tuple[SchemaObject, Column]:
    for one in contract.objects:
        for written, column in single_columns(one.properties, ()):
            ids = [one.id, *(prop.id for prop in written)]
            if None not in ids and path == "schema/" + "/properties/".join(str(part) for part in ids):
                return one, column
    raise Unusable(f"{path!r} is no column of this contract that stands once in a row")


def single_columns(
    properties: Sequence[Property], above: tuple[Property, ...]
) -> Iterator[tuple[tuple[Property, ...], Column]]:
    """The columns that stand once in a row, with the properties on the way to them."""
    for prop in properties:
        way = (*above, prop)
        yield way, Column(tuple(part.column for part in way))
        yield from single_columns(prop.properties, way)


# Types that can be compared without a cast that may fail or round; every other type only with itself.
_FAMILIES = {
    **dict.fromkeys(INTEGERS | {"decimal"}, "exact number"),
    **dict.fromkeys(FLOATS, "float"),
    **dict.fromkeys(TEXTS, "text"),
    **{name: name for name in ("boolean", "date", "timestamp", "timestamp_ntz", "binary")},
}
_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
# Spark's largest decimal: beyond it, a common type of two decimals would round them.
_MOST_DIGITS = 38


def incomparable(schema: DataType, keys: Sequence[Column], other: DataType, found: Target) -> str | None:
    """Why keys in data of one schema cannot be looked up in data of the other one, or None."""
    for key, column in zip(keys, found.keys, strict=True):
        here, there = resolve(schema, key), resolve(other, column)
        if isinstance(here, str):
            return here
        if isinstance(there, str):
            return f"in {found.object}: {there}"
        family = _FAMILIES.get(here.name)
        if family is None or family != _FAMILIES.get(there.name) or _too_wide(here, there):
            there_ = f"{found.object}.{column} is {there}"
            return f"column {str(key)!r} is {here} and {there_}; they cannot be compared"
    return None


def _too_wide(*types: DataType) -> bool:
    if all(one.name != "decimal" for one in types):
        return False
    sizes = [one.numbers if one.name == "decimal" else (_DIGITS.get(one.name, 0), 0) for one in types]
    return max(size[0] - size[1] for size in sizes) + max(size[1] for size in sizes) > _MOST_DIGITS
