"""Who is made from whom: the declared inputs of contracts, as far as their own texts say so."""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from dq.contracts.model import Contract, SchemaObject

# Who is made from whom: the declared inputs of contracts, as far as their own texts say so.
#
# An object's inputs stand in three places. `customProperties` with `property: inputs`, on the object or,
# for
# all objects, on the contract; `transformSourceObjects` of properties; the `to` of relationships. Each
# names a
# contract (`crm`, `crm@2`), an object of it (`crm/customers`, `crm.customers`), or an object alone
# (`customers`); columns behind it are left out. A name that fits several contracts is no one's.

DataObject = tuple[str, str]
"""A contract by its key, and the name of one of its objects."""

PROPERTY = "inputs"
_MOST = 200  # a longer list of inputs is no list that somebody keeps


@dataclass(frozen=True, slots=True)
class LineageOutline:
    """What a contract says of lineage, for whoever cannot hold all contracts at once.

    `objects` are the names of each object, its own first (then its id and physical name), and the inputs
    that it writes, those of the whole contract included.
    """

    key: str
    id: str
    file: str
    objects: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]


def outline(contract: Contract) -> LineageOutline:
    """The outline of a contract."""
    shared = _listed(contract.custom(PROPERTY))
    objects = tuple(
        (
            tuple(dict.fromkeys(text for text in (one.name, one.id, one.physical_name) if text)),
            tuple([*shared, *_written(one)][:_MOST]),
        )
        for one in contract.objects
    )
    return LineageOutline(contract.key, contract.id, contract.file, objects)


def inputs(contracts: Iterable[Contract]) -> dict[DataObject, frozenset[DataObject]]:
    """The inputs of every object that declares some which are among these contracts; none is its own."""
    return inputs_of(map(outline, contracts))


def inputs_of(outlines: Iterable[LineageOutline]) -> dict[DataObject, frozenset[DataObject]]:
    """The same by the outlines of contracts."""
    known = list(outlines)
    names = _names(known)
    found: dict[DataObject, frozenset[DataObject]] = {}
    for contract in known:
        for called, written in contract.objects:
            me = (contract.key, called[0])
            made_from = {place for text in written for place in _places(contract, text, names)} - {me}
            if made_from:
                found[me] = frozenset(made_from)
    return found


def declares(contract: Contract) -> bool:
    """Whether a contract names any input, known or not."""
    return bool(_listed(contract.custom(PROPERTY))) or any(any(_written(one)) for one in contract.objects)


def declared(contract: Contract) -> list[str]:
    """The inputs of a contract and its objects as they are written, each once."""
    texts = [text for one in contract.objects for text in _written(one)]
    return list(dict.fromkeys([*_listed(contract.custom(PROPERTY)), *texts]))


def consumers(declared: Mapping[DataObject, Collection[DataObject]], of: DataObject) -> dict[DataObject, int]:
    """Whoever is made from an object, at once (1) or through others (2 and more), the nearest first."""
    users: dict[DataObject, list[DataObject]] = defaultdict(list)
    for user, made_from in declared.items():
        for one in made_from:
            users[one].append(user)
    far: dict[DataObject, int] = {}
    steps, here = 0, [of]
    while here:
        steps += 1
        here = sorted({user for one in here for user in users[one] if user != of and user not in far})
        far |= dict.fromkeys(here, steps)
    return far


def _listed(custom: object) -> list[str]:
    value = getattr(custom, "value", None)
    return [one.strip() for one in value if isinstance(one, str)] if isinstance(value, list) else []


def _written(one: SchemaObject) -> Iterator[str]:
    yield from _listed(one.custom(PROPERTY))
    for element in (one, *one.walk()):
        for relationship in element.relationships:
            to = relationship.to
            yield from to if isinstance(to, list) else [to] if to else []
    for column in one.walk():
        yield from column.transform_source_objects or ()


def _names(contracts: Sequence[LineageOutline]) -> dict[str, frozenset[DataObject]]:
    """What each name stands for that somebody may mean; empty for one that several contracts have."""
    # Most registries declare little, and names of all their objects are many.
    asked = {
        form
        for contract in contracts
        for _, written in contract.objects
        for text in written
        for name in _candidates(contract, text.strip())
        for form in (name, f"{contract.key}/{name}")
    }
    if not asked:
        return {}
    holders: dict[str, set[str]] = defaultdict(set)
    meant: dict[str, set[DataObject]] = defaultdict(set)
    for contract in contracts:
        file = posixpath.normpath(contract.file)
        whole = [(contract.key, called[0]) for called, _ in contract.objects]
        for name in asked.intersection((contract.key, contract.id, f"{file}#")):
            holders[name].add(contract.key)
            meant[name] |= set(whole)
        for called, _ in contract.objects:
            for inner in called:
                forms = [f"{outer}{sign}{inner}" for outer in {contract.key, contract.id} for sign in "/."]
                for name in asked.intersection((inner, *forms, f"{file}#{inner}")):
                    holders[name].add(contract.key)
                    meant[name].add((contract.key, called[0]))
    return {name: frozenset(meant[name]) if len(holders[name]) == 1 else frozenset() for name in meant}


def _places(
    contract: LineageOutline, text: str, names: Mapping[str, frozenset[DataObject]]
) -> frozenset[DataObject]:
    own = {f"{contract.key}/{called[0]}" for called, _ in contract.objects}
    for name in _candidates(contract, text.strip()):
        if f"{contract.key}/{name}" in own:
            return names[f"{contract.key}/{name}"]
        if name in names:
            return names[name]
    return frozenset()


def _candidates(contract: LineageOutline, text: str) -> Iterator[str]:
    """The text, then without the column at its end, and so on; a file of it as seen from the contract."""
    file, hash_, inside = text.removeprefix("file://").rpartition("#")
    if hash_:
        beside = posixpath.normpath(posixpath.join(posixpath.dirname(contract.file), file))
        inside = inside.removeprefix("/schema/").lstrip("/")
        prefix = f"{beside}#"
    else:
        prefix = ""
    parts = inside.split(".")
    for size in range(len(parts), 0, -1):
        yield prefix + ".".join(parts[:size])
    if hash_:
        yield prefix
