"""What a relationship refers to: an object of the same contract, and one of its columns."""

from __future__ import annotations

from collections.abc import Sequence

from dq.contracts.model import Contract, SchemaObject
from dq.dataquality.model.classification import classified
from dq.dataquality.model.column import Column, single_columns
from dq.dataquality.model.target import Target
from dq.dataquality.model.threshold import Unusable


class Outside(ValueError):
    """A reference leaves the contract; the text says which contract would be needed."""


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
            for written, column in single_columns(one.properties):
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
        for written, column in single_columns(one.properties):
            ids = [one.id, *(prop.id for prop in written)]
            if None not in ids and path == "schema/" + "/properties/".join(str(part) for part in ids):
                return one, column
    raise Unusable(f"{path!r} is no column of this contract that stands once in a row")
