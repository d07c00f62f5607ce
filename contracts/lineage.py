"""The tables that a contract promises, and which contracts are made from which."""

from __future__ import annotations

import itertools
import posixpath
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dq.contracts.access.access_policy import parse
from dq.contracts.access.data_location import is_lake, paths, resolve
from dq.contracts.model import Contract, SchemaObject, Server
from dq.contracts.outcome import Location, TextFault, UsageError
from dq.contracts.slo import NOT_IN_FORCE

# Who is made from whom: the declared inputs of contracts, as far as their own texts say so.
#
# An object's inputs stand in three places. `customProperties` with `property: inputs`, on the object or,
# for all objects, on the contract; `transformSourceObjects` of properties; the `to` of relationships. Each
# names a contract (`crm`, `crm@2`), an object of it (`crm/customers`, `crm.customers`), or an object alone
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


# The database, name and folder of a table, as `dq register` writes them into a catalog.

_PATTERN = re.compile(r"[*?\[{]")


def database_name(contract: Contract, server_database: str) -> str:
    """Return the server's database, else domain and data product, else the contract's name or id."""
    if server_database:
        return server_database.lower()
    parts = [part for part in (contract.domain, contract.data_product) if part]
    words = "_".join(parts) or contract.name or contract.id
    word = re.sub(r"[^a-z0-9]+", "_", words.lower()).strip("_")
    return f"_{word}" if word[:1].isdigit() else word


def table_name(schema_object: SchemaObject) -> str:
    """Return the object's physical name, else its name, in lower case."""
    return schema_object.column.lower()


def is_view(schema_object: SchemaObject) -> bool:
    """Whether the object is a view, which has no folder of its own."""
    return (schema_object.physical_type or "").lower() == "view"


def table_folder(path: str) -> str:
    """Return the folder of a pattern such as `s3://lake/orders/*.parquet`; a table is a folder."""
    steps = path.split("/")
    pattern = next((index for index, step in enumerate(steps) if _PATTERN.search(step)), len(steps))
    return "/".join(steps[:pattern])


# The tables that a contract promises, as far as its text alone tells: for comparing contracts of a
# registry.
#
# Nothing outside of the contract is asked: a variable stands for its default, and a place that needs
# another one, or that dq does not read, is unknown.

# No contract that people write has more; one that was made to cost time is compared by the first of them.
MAX_TABLES = 1_000
# The longest key of S3 has 1,024 bytes, the longest path of Linux 4,096.
_MAX_PATH = 4_096
# Stands for a variable without a default in a name or path, which is unknown then.
_UNSET = "variable_without_a_value"
# Every file of a folder, such as *.parquet.
_EVERY_FILE = re.compile(r"/?\*+(\.\w+)*")


class TableFolder(NamedTuple):
    """A folder in its plainest spelling. `root` is `s3://bucket/`, `/`, or "" or `../` of a relative path."""

    root: str
    steps: tuple[str, ...]

    def __str__(self) -> str:
        return self.root + "/".join(self.steps) or "."

    def holds(self, other: TableFolder) -> bool:
        """Whether the other folder is this one or lies in it."""
        return self.root == other.root and other.steps[: len(self.steps)] == self.steps

    def up(self) -> Iterator[TableFolder]:
        """Yield the folder itself and every folder that it lies in."""
        for count in range(len(self.steps), -1, -1):
            yield TableFolder(self.root, self.steps[:count])


@dataclass(frozen=True, slots=True)
class PromisedTable:
    """A table of one object on one server.

    `name` is `database.table`, or "" where the database is not known. `folder` is None for a view, and where
    it is not known. `environment` and `account` are the server's, or "". `at` and `path` are the place of the
    name in the contract, `folder_at` and `folder_path` that of the server's location.
    """

    name: str
    folder: TableFolder | None
    environment: str
    account: str
    at: Location
    path: str
    folder_at: Location
    folder_path: str

    def is_same_table(self, other: PromisedTable) -> bool:
        """Whether both are one table of one catalog."""
        return (
            bool(self.name)
            and self.name == other.name
            and _may_be_same(self.environment, other.environment)
            and _may_be_same(self.account, other.account)
        )

    def overlaps(self, other: PromisedTable) -> bool:
        """Whether the folders are the same, or one lies in the other."""
        if self.folder is None or other.folder is None:
            return False
        inside = self.folder.holds(other.folder) or other.folder.holds(self.folder)
        return inside and _may_be_same(self.environment, other.environment)


def promised_tables(contract: Contract) -> tuple[PromisedTable, ...]:
    """Return the tables of a contract that is in force, on its servers that hold a lake's data."""
    if contract.status in NOT_IN_FORCE:
        return ()
    servers = {server.server: server for server in reversed(contract.servers) if is_lake(server)}
    pairs = itertools.product(servers.values(), contract.objects)
    found = (_promised_table(contract, one, server) for server, one in itertools.islice(pairs, MAX_TABLES))
    return tuple(table for table in found if table is not None)


def _promised_table(contract: Contract, one: SchemaObject, server: Server) -> PromisedTable | None:
    try:
        place = resolve(contract, one, server.server, _ByText())
    except UsageError:
        return None
    name_key = "physicalName" if one.has("physicalName") else "name"
    folder_key = next((key for key, _ in paths(server) if server.get(key)), "")
    known = _UNSET not in place.database
    return PromisedTable(
        f"{database_name(contract, place.database)}.{table_name(one)}" if known else "",
        None if is_view(one) or not place.path or _UNSET in place.path else _folder(place.path),
        server.environment or "",
        server.get("account") or "",
        one.at(name_key),
        one.path(name_key),
        server.at(folder_key),
        server.path(folder_key),
    )


@dataclass(frozen=True, slots=True)
class _ByText:
    """Terms of places for a reader who opens none: every well-formed place, variables by their defaults."""

    def value(self, _name: str, default: str | None) -> str | TextFault:
        return _UNSET if default is None else default

    def vouch(self, text: str) -> str | TextFault:
        made = parse(text)
        return made if isinstance(made, TextFault) else text


def _folder(path: str) -> TableFolder | None:
    """The folder of a place, however it is spelt; None where it is unknown.

    A pattern that takes some files of a folder stands for itself: two of them may lie side by side.
    """
    folder = table_folder(path)
    whole = _EVERY_FILE.fullmatch(path[len(folder) :]) is not None
    made = parse((folder or ("/" if path.startswith("/") else ".")) if whole else path)
    if isinstance(made, TextFault) or len(path) > _MAX_PATH:
        return None
    if made.scheme:
        return TableFolder(f"{made.scheme}://{made.host}/", made.segments)
    text = posixpath.normpath(str(made))
    steps = tuple(step for step in text.split("/") if step not in ("", "."))
    # What lies above the working folder holds more than its letters tell.
    above = steps.count("..")
    return TableFolder("/" if text.startswith("/") else "../" * above, steps[above:])


def _may_be_same(value: str, other: str) -> bool:
    return value == other or not (value and other)
