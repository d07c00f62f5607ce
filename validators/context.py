"""What a rule may look at besides its contract, and what is left of a contract to judge all others."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from posixpath import dirname, join, normpath
from typing import Any, Generic, NamedTuple, TypeVar

from dq.contracts import slo
from dq.contracts.lineage import PromisedTable, TableFolder, promised_tables
from dq.contracts.model import Contract, Identity, Node, Property, Quality, Relationship, SchemaObject
from dq.contracts.outcome import Finding, Location
from dq.contracts.subscriptions import Subscription

# What a rule may look at besides the contract or subscription: handed in, never read from the world.

# The names by which a contract's objects and properties can be referred to.


def dotted(contract: Contract) -> frozenset[str]:
    """Every `object` and `object.property`, at any depth; the object by its name or its id."""
    found: set[str] = set()
    for one in contract.objects:
        inside = _inside(one.properties)
        for name in {one.name, one.id or one.name}:
            found.add(name)
            found.update([f"{name}.{below}" for below in inside])
    return frozenset(found)


def by_id(contract: Contract) -> frozenset[str]:
    """Every `schema/<id>` and `schema/<id>/properties/<id>`, at any depth."""
    found: set[str] = set()
    stack: list[tuple[str, SchemaObject | Property]] = [
        (f"schema/{one.id}", one) for one in contract.objects if one.id is not None
    ]
    while stack:
        path, node = stack.pop()
        found.add(path)
        stack += [(f"{path}/properties/{one.id}", one) for one in node.properties if one.id is not None]
    return frozenset(found)


def repeated_names(contract: Contract, walk: Walk) -> frozenset[str]:
    """Every `object.property` inside of an array or map, with which no key can be compared."""
    if not any(prop.items or prop.map for prop in walk.properties):
        return frozenset()
    single: set[str] = set()
    for one in contract.objects:
        paths = [".".join(str(prop.name) for prop in way) for way in one.single()]
        single.update(f"{name}.{path}" for name in {one.name, one.id or one.name} for path in paths)
    return walk.names - single


def _inside(properties: list[Property]) -> set[str]:
    found: set[str] = set()
    stack = [("", prop) for prop in properties]
    while stack:
        above, prop = stack.pop()
        # Items of an array and values of a map have no name of their own: `orders.lines.price`.
        path = f"{above}.{prop.name}" if above and prop.name else prop.name or above
        if path:
            found.add(path)
        stack += [(path, inner) for inner in prop.children()]
    return found


def name_paths(contract: Contract) -> tuple[str, ...]:
    """The paths of the names of all objects and columns, of those too that could not be read."""
    listed = max(len(contract.objects), len(contract.place.items.get("schema", ())))
    objects = [f"schema[{index}].name" for index in range(listed)]
    return (*objects, *(prop.path("name") for one in contract.objects for prop in one.properties))


def sibling_nodes(contract: Contract, walk: Walk) -> Iterator[Sequence[Node]]:
    """Every list of elements that have ids; an id is one of a list, and not of the contract."""
    yield contract.servers
    yield contract.objects
    yield contract.support
    yield contract.roles
    yield contract.sla_properties
    yield contract.custom_properties
    yield contract.members()
    for one in contract.objects:
        yield from (one.properties, one.quality, one.relationships, one.synonyms)
    for prop in walk.properties:
        if prop.properties or prop.quality or prop.enum or prop.synonyms:
            yield from (prop.properties, prop.quality, prop.enum or (), prop.synonyms)


class Reference(NamedTuple):
    """One end of a relationship as written."""

    relationship: Relationship
    key: str
    text: str


def references_of(relationships: Iterable[Relationship]) -> Iterator[Reference]:
    """Every end of every relationship."""
    for relationship in relationships:
        for key, names in (("from", relationship.from_), ("to", relationship.to)):
            for text in names if isinstance(names, list) else [names] if names else []:
                yield Reference(relationship, key, text.strip())


def leaves(text: str, objects: set[str]) -> bool:
    """Whether a reference leaves a contract with these objects.

    `file.yaml#/schema/…` does, and so does `object.property` of an object that the contract does not have.
    """
    if "/" in text:
        return not text.lstrip("#/").startswith("schema/")
    return "." in text and text.split(".")[0] not in objects


# What a rule may look at besides the contract: handed in, never read from the world.

T = TypeVar("T")

COLUMN = re.compile(r"schema\[\d+\](?:\.properties\[\d+\]|\.items|\.map\.(?:key|value))+")
"""The path of a column at any depth."""

Unenforced = Callable[[Contract], Iterable[Finding]]


def nothing(_contract: Contract) -> Iterable[Finding]:
    """What is said of what the checker will not do where nobody can tell."""
    return ()


@dataclass(frozen=True, slots=True)
class Argument(Generic[T]):
    """A value of a rule that the policy may set; the type of the default is the type of the value."""

    name: str
    default: T
    description: str


@dataclass(frozen=True, slots=True)
class Promises:
    """The delivery promises that can be understood, and what is wrong with the others."""

    slos: tuple[slo.Slo, ...] = ()
    wrong: tuple[Finding, ...] = ()

    @staticmethod
    def of(contract: Contract) -> Promises:
        """The promises of a contract, through the same door as the watcher reads them."""
        slos, wrong = slo.read(contract)
        return Promises(tuple(slos), tuple(wrong))


class PropertyPlace(NamedTuple):
    """A property at any depth, with the object that it lies in."""

    object: SchemaObject
    property: Property
    top: bool


class QualityPlace(NamedTuple):
    """A quality rule with what it speaks about; `property` is None on the level of the object."""

    object: SchemaObject
    property: Property | None
    quality: Quality


@dataclass(frozen=True, slots=True)
class Walk:
    """The parts of one contract as flat lists: made once, so that fifty rules need not walk the tree.

    `properties` and `qualities` are `columns` and `clauses` without their places. `names` are the elements
    that can be referred to, as `object` and `object.property`; `references` are what refers to them, or to
    other contracts.
    """

    columns: tuple[PropertyPlace, ...]
    clauses: tuple[QualityPlace, ...]
    properties: tuple[Property, ...]
    qualities: tuple[Quality, ...]
    names: frozenset[str]
    references: tuple[Reference, ...]

    @staticmethod
    def of(contract: Contract) -> Walk:
        """Every property, nested ones after the one that holds them, and every quality rule."""
        columns: list[PropertyPlace] = []
        clauses: list[QualityPlace] = []
        related: list[Relationship] = []
        for one in contract.objects:
            top = {id(prop) for prop in one.properties}
            clauses += [QualityPlace(one, None, quality) for quality in one.quality]
            related += one.relationships
            for prop in one.walk():
                related += prop.relationships
                columns.append(PropertyPlace(one, prop, id(prop) in top))
                if prop.quality:
                    clauses += [QualityPlace(one, prop, quality) for quality in prop.quality]
        return Walk(
            tuple(columns),
            tuple(clauses),
            tuple(one.property for one in columns),
            tuple(one.quality for one in clauses),
            dotted(contract),
            tuple(references_of(related)),
        )


@dataclass(frozen=True, slots=True)
class OfficialSchema:
    """The JSON Schema of ODCS `version`, from a `release` of the standard's own package.

    `accepted` are the versions that it allows a document to name: older ones too.
    """

    release: str
    version: str
    accepted: frozenset[str]
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Context:
    """What surrounds the contract that is judged.

    `file` is its path relative to the registry's root, with forward slashes. `today` is the date of the
    run in UTC. `arguments` are the policy's for the rule that is asked, `schemas` its JSON Schemas for
    custom properties, by level. `unenforced` gives what the checker will not do of a contract, and stands
    on another floor than the gate. `official` is the standard's own schema where its opinion was asked for,
    and `data` then the text of the contract.
    """

    file: str
    today: date
    walk: Walk
    promises: Promises
    arguments: Mapping[str, object] = field(default_factory=dict)
    schemas: Mapping[str, object] = field(default_factory=dict)
    unenforced: Unenforced = nothing
    official: OfficialSchema | None = None
    data: bytes = b""

    def value(self, argument: Argument[T]) -> T:
        """The policy's value of one of the rule's arguments, or its default."""
        # The policy has been checked against the type of the default before it came here.
        return self.arguments.get(argument.name, argument.default)  # type: ignore[return-value]


# What a rule may ask about a subscription: the contract that it names, the other subscriptions, the day.


@dataclass(frozen=True, slots=True)
class Subscribed:
    """The surroundings of one subscription. `today` is the date in UTC; `arguments` are the policy's.

    `contracts` has those of the registry that subscriptions name. `unclear` are ids that a contract seems to
    have which cannot be read: nobody can say what is in it. `ids` are further ids of the registry, as far as
    they were read. `every` has all subscriptions whose form is right, in the order of their files, and `told`
    the files whose findings are wanted. `base_contracts` are the named contracts at the base of a branch.
    """

    today: date
    contracts: Mapping[Identity, Contract] = field(default_factory=dict)
    unclear: Collection[str] = ()
    ids: Collection[str] = ()
    every: tuple[Subscription, ...] = ()
    told: frozenset[str] = frozenset()
    arguments: Mapping[str, object] = field(default_factory=dict)
    base_contracts: Mapping[Identity, Contract] = field(default_factory=dict)

    def value(self, argument: Argument[T]) -> T:
        """The policy's value of one of the rule's arguments, or its default."""
        return self.arguments.get(argument.name, argument.default)  # type: ignore[return-value]

    def contract(self, subscription: Subscription) -> Contract | None:
        """The contract of the id and major that the subscription names."""
        return self.contracts.get(subscription.identity)

    def approving_contract(self, subscription: Subscription) -> Contract | None:
        """Return the contract whose owners approve: that of the base, in its newest major for a new one.

        A contract that the base does not have speaks for itself.
        """
        base = self.base_contracts
        majors = [identity for identity in base if identity[0] == subscription.contract]
        newest = max(majors, key=lambda identity: (len(identity[1]), identity[1]), default=None)
        own = base.get(subscription.identity)
        return own or (base[newest] if newest else self.contract(subscription))

    def majors(self, id_: str) -> list[str]:
        """The majors of a contract that there are, in order."""
        majors = (major for each, major in self.contracts if each == id_)
        return sorted(majors, key=lambda one: (len(one), one))


# What is left of a contract when it has been judged by itself: enough to judge it among all others.

# Contracts of different ids that promise one table, or folders of which one lies in the other.


class TableHolder(NamedTuple):
    """A contract with the tables that it promises; of an `unchanged` one, conflicts are not listed."""

    id: str
    file: str
    tables: tuple[PromisedTable, ...]
    unchanged: bool = False


@dataclass(frozen=True, slots=True)
class TablesAtBase:
    """What the base of a branch says of tables.

    `unchanged` are contracts that the branch leaves alone; those that share no table with the changed ones
    may be left out. `tables` are those that contracts of the base promise, by id.
    """

    unchanged: tuple[TableHolder, ...] = ()
    tables: Mapping[str, tuple[PromisedTable, ...]] = field(default_factory=dict)

    def has_name(self, id_: str, table: PromisedTable) -> bool:
        """Whether a contract of this id had the table, wherever its data lay."""
        return any(table.is_same_table(before) for before in self.tables.get(id_, ()))

    def has(self, id_: str, table: PromisedTable) -> bool:
        """Whether a contract of this id had all that is known of the table."""
        return (not table.name or self.has_name(id_, table)) and (
            table.folder is None or self.has_folder(id_, table)
        )

    def has_folder(self, id_: str, table: PromisedTable) -> bool:
        """Whether a contract of this id had a table in this very folder."""
        before = self.tables.get(id_, ())
        return any(table.folder == other.folder and table.overlaps(other) for other in before)


class TableConflict(NamedTuple):
    """A table of a contract, and a table of another contract that is the same one or shares its folder."""

    table: PromisedTable
    other: PromisedTable
    holder: TableHolder
    by_name: bool


_Promises = dict[str, list[tuple[TableHolder, PromisedTable]]]
"""Who promises one table, or a table in one folder, by id."""


class TableConflicts:
    """The conflicts among contracts, by file. What an id had at the base stands with the newcomer alone."""

    def __init__(self, holders: Iterable[TableHolder], base: TablesAtBase) -> None:
        self._base = base
        self._by_file: dict[str, list[TableConflict]] = {}
        every = [*holders, *base.unchanged]
        names: dict[str, _Promises] = {}
        folders: dict[TableFolder, _Promises] = {}
        for holder in every:
            for table in holder.tables:
                if table.name:
                    names.setdefault(table.name, {}).setdefault(holder.id, []).append((holder, table))
                if table.folder is not None:
                    folders.setdefault(table.folder, {}).setdefault(holder.id, []).append((holder, table))
        for holder in every:
            for table in holder.tables:
                same = _of_another(names.get(table.name, {}), holder.id, table.is_same_table)
                if same is not None:
                    self._add(holder, TableConflict(table, same[1], same[0], by_name=True))
                for folder in table.folder.up() if table.folder is not None else ():
                    other = _of_another(folders.get(folder, {}), holder.id, table.overlaps)
                    if other is not None:
                        self._add(holder, TableConflict(table, other[1], other[0], by_name=False))
                        self._add(other[0], TableConflict(other[1], table, holder, by_name=False))

    def of(self, file: str) -> list[TableConflict]:
        """The conflicts of the contract in this file."""
        return self._by_file.get(file, [])

    def _add(self, holder: TableHolder, conflict: TableConflict) -> None:
        had = self._base.has_name if conflict.by_name else self._base.has_folder
        if not holder.unchanged and not had(holder.id, conflict.table):
            self._by_file.setdefault(holder.file, []).append(conflict)


def _of_another(
    promises: _Promises, id_: str, same: Callable[[PromisedTable], bool]
) -> tuple[TableHolder, PromisedTable] | None:
    """The first promise of another id that is the same."""
    if len(promises) < 2 and id_ in promises:
        return None
    return next(
        (one for other, ones in promises.items() if other != id_ for one in ones if same(one[1])), None
    )


# Names that a reader cannot tell apart although their code points differ.


def alike(name: str) -> str:
    """What all names have in common that are canonically equal: `é` in one code point and in two.

    NFC and not NFKC: what is canonically equal looks the same everywhere, and file systems and editors turn
    one into the other, while NFKC would also make one of `m²` and `m2`, which anybody can tell apart.
    """
    return name if name.isascii() else unicodedata.normalize("NFC", name)


def note(name: str, other: str) -> str:
    """What to add to a message where two names only look the same; "" where they do not differ so."""
    differs = name != other and alike(name) == alike(other)
    return " (it looks the same, and is encoded otherwise)" if differs else ""


# What is left of a contract when it has been judged by itself: enough to judge it among all others.
#
# A registry has thousands of contracts, which are read in several processes and not kept. What a rule of
# the scope `registry` may ask has to be said here.


@dataclass(frozen=True, slots=True)
class Link:
    """A reference that leaves its contract: the key and text, where it stands, and what it relies on."""

    key: str
    text: str
    at: Location
    path: str
    needs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """One contract among others. `at` is the place of its id; `names` and `ids` can be referred to.

    `names` are lines of one text, which crosses between processes faster than a set. `repeated` are those
    of them that stand inside of arrays and maps, so that no key can be compared with them. `tables` are what
    it promises to a catalog.
    """

    file: str
    identity: Identity
    at: Location
    objects: tuple[str, ...]
    names: str
    repeated: frozenset[str]
    ids: frozenset[str]
    links: tuple[Link, ...]
    tables: tuple[PromisedTable, ...]

    @staticmethod
    def of(contract: Contract, context: Context) -> Entry:
        """What the others may know of this contract."""
        return Entry(
            context.file,
            contract.identity,
            contract.at("id"),
            tuple(one.name for one in contract.objects),
            "\n".join(("", *context.walk.names, "")),
            repeated_names(contract, context.walk),
            by_id(contract),
            tuple(_links(contract, context)),
            promised_tables(contract),
        )


def _links(contract: Contract, context: Context) -> Iterable[Link]:
    own = {name for one in contract.objects for name in (one.name, one.physical_name) if name}
    leaving = [one for one in context.walk.references if leaves(one.text, own)]
    needs = name_paths(contract) if leaving else ()
    for one in leaving:
        node = one.relationship
        yield Link(one.key, one.text, node.at(one.key), node.path(one.key), needs)


@dataclass(frozen=True, slots=True)
class Registry:
    """All contracts that were read in one run, in their order.

    `first_of_…` have the first of those whose identities, or whose files, nobody can tell apart.
    """

    first_of_identity: Mapping[Identity, Entry]
    first_of_file: Mapping[str, Entry]
    by_file: Mapping[str, Entry]
    by_object: Mapping[str, tuple[Entry, ...]]
    table_conflicts: TableConflicts

    @staticmethod
    def of(entries: Iterable[Entry], base: TablesAtBase = TablesAtBase()) -> Registry:
        """The entries by what they can be looked up with; objects by their names.

        `base` has the tables of other contracts, and says who is the newcomer.
        """
        identities: dict[Identity, Entry] = {}
        alike_files: dict[str, Entry] = {}
        objects: dict[str, list[Entry]] = defaultdict(list)
        files: dict[str, Entry] = {}
        tables: list[TableHolder] = []
        for one in entries:
            identities.setdefault(_identity_alike(one), one)
            alike_files.setdefault(_file_alike(one), one)
            files[one.file] = one
            tables.append(TableHolder(alike(one.identity[0]), one.file, one.tables))
            for name in one.objects:
                objects[name].append(one)
        by_object = {name: tuple(holders) for name, holders in objects.items()}
        return Registry(identities, alike_files, files, by_object, TableConflicts(tables, base))

    def same_contract(self, one: Entry) -> Entry:
        """The first contract of this id and major version, which may be this one."""
        return self.first_of_identity[_identity_alike(one)]

    def same_file(self, one: Entry) -> Entry:
        """The first file that macOS or Windows would take for this one, which it may be."""
        return self.first_of_file[_file_alike(one)]

    def is_key(self, link: Link, file: str) -> bool:
        """Whether what a reference in this file names can be compared with a key."""
        inside = link.text.rpartition("#")[2].lstrip("/")
        if inside.startswith("schema/"):
            # Ids are those of columns that stand once, and of objects.
            return "/properties/" in inside
        others = self.holders(link, file)
        return not any(inside in one.objects or inside in one.repeated for one in others)

    def holders(self, link: Link, file: str) -> tuple[Entry, ...]:
        """The contracts that have what a reference in this file names: one where it is clear which."""
        if "#" in link.text:
            named, _, path = link.text.rpartition("#")
            beside = normpath(join(dirname(file), named.removeprefix("file://")))
            other = self.by_file.get(beside) or self.by_file.get(normpath(named))
            inside = path.lstrip("/")
            return (other,) if other and (inside in other.ids or f"\n{inside}\n" in other.names) else ()
        line = f"\n{link.text}\n"
        return tuple(one for one in self.by_object.get(link.text.split(".")[0], ()) if line in one.names)


def _identity_alike(one: Entry) -> Identity:
    id_, major = one.identity
    return alike(id_), major


def _file_alike(one: Entry) -> str:
    return alike(one.file.casefold())
