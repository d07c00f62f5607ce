"""What a relationship refers to: columns of an object, in the same contract or in one beside it."""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from dq.contracts.model import Contract, SchemaObject
from dq.dataquality.clauses.clause import Clause, ForeignKey, NoResult, OutsideKeys, refuse
from dq.dataquality.model.column import Column, Target, classified, single_columns
from dq.dataquality.model.run_context import Unusable


class Outside(ValueError):
    """A reference leaves the contract; the text says which contract would be needed."""


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The contracts that are at hand together, for references from one into another."""

    by_file: Mapping[str, Contract] = field(default_factory=dict)
    by_object: Mapping[str, tuple[Contract, ...]] = field(default_factory=dict)

    @staticmethod
    def of(contracts: Iterable[Contract]) -> Neighbours:
        """The contracts by their files, and by the names and ids of their objects."""
        files: dict[str, Contract] = {}
        objects: dict[str, list[Contract]] = defaultdict(list)
        for contract in contracts:
            files.setdefault(posixpath.normpath(contract.file), contract)
            for name in {text for one in contract.objects for text in (one.name, one.id) if text}:
                if not any(_is(contract, other) for other in objects[name]):
                    objects[name].append(contract)
        return Neighbours(files, {name: tuple(held) for name, held in objects.items()})

    def object(self, name: str) -> SchemaObject | None:
        """The object that a target calls by this name: `crm/customers`."""
        key, _, inside = name.rpartition("/")
        held = (other for other in self.by_object.get(inside, ()) if other.key == key)
        return next((other.object(inside) for other in held), None)


ALONE = Neighbours()


def _is(one: Contract, other: Contract) -> bool:
    """Whether two are one contract; those that came as texts have one file name."""
    return one is other or (one.file, one.key) == (other.file, other.key)


def followed(clause: Clause, contract: Contract, neighbours: Neighbours) -> Clause:
    """The clause; a reference that leaves its contract is followed where the other one is at hand."""
    outside = clause.ask.outside if isinstance(clause.ask, NoResult) else None
    if outside is None:
        return clause
    return leading(clause, outside, lambda: target_beside(contract, outside.references, neighbours)[1])


def leading(clause: Clause, outside: OutsideKeys, find: Callable[[], Target]) -> Clause:
    """The clause with the keys that its references lead to, as `find` gives them; else with the reason."""
    try:
        found = find()
    except Outside as error:
        return replace(clause, ask=NoResult(str(error), proven=False, outside=outside))
    except Unusable as error:
        return refuse(clause, f"its 'to': {error}")
    asked = ForeignKey(outside.keys, found, f"refer to no {found}")
    return replace(clause, ask=asked, allowed=f"a key of {found}")


def target_beside(
    contract: Contract, references: Sequence[str], neighbours: Neighbours
) -> tuple[tuple[Contract, SchemaObject], Target]:
    """The one object of another contract that all references lead to, and their columns in this order.

    The target is called by the other contract's key and the object's name: `crm/customers`. Raises Outside,
    with the reason, where no contract at hand or more than one has it, and Unusable as `target`.
    """
    places = [_beside(contract, text.strip(), neighbours) for text in references]
    others = {other.key: other for other, _ in places}
    if len(others) != 1:
        raise Unusable(f"its columns are of several contracts: {', '.join(sorted(others))}")
    other = places[0][0]
    try:
        found = target(other, [path for _, path in places])
    except (Outside, Unusable) as error:
        raise Unusable(f"in {other.key}, {str(error).replace('this contract', 'that contract')}") from error
    one = next(one for one in other.objects if one.name == found.object)
    return (other, one), found if _is(other, contract) else replace(
        found, object=f"{other.key}/{found.object}"
    )


def referred(
    contract: Contract, one: SchemaObject, neighbours: Neighbours
) -> dict[str, tuple[Contract, SchemaObject]]:
    """What the relationships of an object refer to in neighbours, by the names that targets have."""
    found = {}
    for element in (one, *one.walk()):
        for relationship in element.relationships:
            with suppress(Outside, Unusable):
                place, aim = target_beside(contract, listed(relationship.to), neighbours)
                found[aim.object] = place
    return {name: place for name, place in found.items() if not _is(place[0], contract)}


def _beside(contract: Contract, text: str, neighbours: Neighbours) -> tuple[Contract, str]:
    """The contract that a reference leads into, and the reference as that contract would write it."""
    file, hash_, inside = text.rpartition("#")
    if not hash_ and "/" not in text:
        return _by_object(contract, text, neighbours)
    named = (file if hash_ else text).removeprefix("file://")
    beside = posixpath.normpath(posixpath.join(posixpath.dirname(contract.file), named))
    other = neighbours.by_file.get(beside) or neighbours.by_file.get(posixpath.normpath(named))
    if other is None or not hash_:
        raise Outside(f"{text!r} leaves this contract; the contract {named!r} is not at hand")
    return other, inside


def _by_object(contract: Contract, path: str, neighbours: Neighbours) -> tuple[Contract, str]:
    """By the object's name, which may hold dots itself. No contract is chosen among several."""
    parts = path.split(".")
    names = [".".join(parts[:size]) for size in range(len(parts) - 1, 0, -1)]
    for name in names:
        held = [other for other in neighbours.by_object.get(name, ()) if not _is(other, contract)]
        if len(held) > 1:
            several = ", ".join(sorted(f"{other.id} {other.version}" for other in held))
            raise Outside(
                f"{path!r} leaves this contract, and several have the object {name!r}: {several};"
                f" write {posixpath.basename(held[0].file)}#{path}"
            )
        if held:
            return held[0], path
    raise Outside(f"{path!r} leaves this contract; none with the object {names[-1]!r} is at hand")


def listed(names: str | list[str] | None) -> list[str]:
    """One end of a relationship, which may be one name or several."""
    return names if isinstance(names, list) else [names] if names else []


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
