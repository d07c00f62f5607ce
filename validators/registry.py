"""What is left of a contract when it has been judged by itself: enough to judge it among all others.

A registry has thousands of contracts, which are read in several processes and not kept. What a rule of the
scope `registry` may ask has to be said here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from posixpath import dirname, join, normpath

from dq.contracts.identity import Identity
from dq.contracts.model import Contract
from dq.contracts.shared.outcome import Location
from dq.contracts.tables.promised_tables import PromisedTable, promised_tables
from dq.validators.alike import alike
from dq.validators.context import Context
from dq.validators.elements import by_id, leaves, name_paths, repeated_names
from dq.validators.table_conflicts import TableConflicts, TableHolder, TablesAtBase


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
