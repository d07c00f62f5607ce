"""Lineage between contracts, and the tables that a contract promises."""

from __future__ import annotations

import itertools
import posixpath
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dq.contracts.access.access_policy import parse_location
from dq.contracts.access.data_location import is_lake, location_templates, resolve
from dq.contracts.model import Contract, SchemaObject, Server
from dq.contracts.outcome import Location, UsageError, ValueProblem
from dq.contracts.slo import NOT_IN_FORCE

# Lineage from the declared inputs of contracts.
#
# An object's inputs are declared in three places: `customProperties` with `property: inputs`, on the object
# or, for all objects, on the contract; `transformSourceObjects` of properties; the `to` of relationships.
# Each names a contract (`crm`, `crm@2`), an object of it (`crm/customers`, `crm.customers`), or an object
# alone (`customers`); columns after it are ignored. A name that matches several contracts is not resolved.

DataObject = tuple[str, str]
"""A contract by its key, and the name of one of its objects."""

PROPERTY = "inputs"
_MAX_INPUTS = 200  # longer lists of inputs are truncated


@dataclass(frozen=True, slots=True)
class LineageOutline:
    """Lineage information of a contract, for use without keeping all contracts in memory.

    `objects` are the names of each object (name, id, physical name), and its declared inputs, including those
    of the contract.
    """

    key: str
    id: str
    file: str
    objects: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]


def outline(contract: Contract) -> LineageOutline:
    """Return the lineage outline of a contract."""
    contract_inputs = _text_items(contract.custom(PROPERTY))
    objects = tuple(
        (
            tuple(
                dict.fromkeys(
                    text
                    for text in (schema_object.name, schema_object.id, schema_object.physical_name)
                    if text
                )
            ),
            tuple([*contract_inputs, *_input_texts(schema_object)][:_MAX_INPUTS]),
        )
        for schema_object in contract.objects
    )
    return LineageOutline(contract.key, contract.id, contract.file, objects)


def inputs(contracts: Iterable[Contract]) -> dict[DataObject, frozenset[DataObject]]:
    """Return the inputs of every object that are objects of these contracts, without itself."""
    return inputs_from_outlines(map(outline, contracts))


def inputs_from_outlines(outlines: Iterable[LineageOutline]) -> dict[DataObject, frozenset[DataObject]]:
    """Return the same from the outlines of contracts."""
    all_outlines = list(outlines)
    names = _resolve_names(all_outlines)
    inputs_by_object: dict[DataObject, frozenset[DataObject]] = {}
    for contract in all_outlines:
        for object_names, input_texts in contract.objects:
            data_object = (contract.key, object_names[0])
            sources = {
                place for text in input_texts for place in _matching_objects(contract, text, names)
            } - {data_object}
            if sources:
                inputs_by_object[data_object] = frozenset(sources)
    return inputs_by_object


def declares_inputs(contract: Contract) -> bool:
    """Return True if a contract declares any input, known or not."""
    return bool(_text_items(contract.custom(PROPERTY))) or any(
        any(_input_texts(schema_object)) for schema_object in contract.objects
    )


def declared_inputs(contract: Contract) -> list[str]:
    """Return the distinct inputs of a contract and its objects as written."""
    texts = [text for schema_object in contract.objects for text in _input_texts(schema_object)]
    return list(dict.fromkeys([*_text_items(contract.custom(PROPERTY)), *texts]))


def consumers(
    inputs_by_object: Mapping[DataObject, Collection[DataObject]], source: DataObject
) -> dict[DataObject, int]:
    """Return the consumers of an object with their distance: 1 for direct ones, nearest first."""
    users: dict[DataObject, list[DataObject]] = defaultdict(list)
    for user, sources in inputs_by_object.items():
        for source_object in sources:
            users[source_object].append(user)
    distances: dict[DataObject, int] = {}
    steps, frontier = 0, [source]
    while frontier:
        steps += 1
        frontier = sorted(
            {
                user
                for data_object in frontier
                for user in users[data_object]
                if user != source and user not in distances
            }
        )
        distances |= dict.fromkeys(frontier, steps)
    return distances


def _text_items(custom: object) -> list[str]:
    value = getattr(custom, "value", None)
    return [item.strip() for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _input_texts(schema_object: SchemaObject) -> Iterator[str]:
    yield from _text_items(schema_object.custom(PROPERTY))
    for element in (schema_object, *schema_object.walk()):
        for relationship in element.relationships:
            to = relationship.to
            yield from to if isinstance(to, list) else [to] if to else []
    for column in schema_object.walk():
        yield from column.transform_source_objects or ()


def _resolve_names(contracts: Sequence[LineageOutline]) -> dict[str, frozenset[DataObject]]:
    """Return the objects that each used name refers to; empty if several contracts have it."""
    # Only names in use are indexed: most registries declare few inputs, but have many objects.
    names_in_use = {
        form
        for contract in contracts
        for _, input_texts in contract.objects
        for text in input_texts
        for name in _candidates(contract, text.strip())
        for form in (name, f"{contract.key}/{name}")
    }
    if not names_in_use:
        return {}
    holders: dict[str, set[str]] = defaultdict(set)
    objects_by_name: dict[str, set[DataObject]] = defaultdict(set)
    for contract in contracts:
        file = posixpath.normpath(contract.file)
        all_objects = [(contract.key, object_names[0]) for object_names, _ in contract.objects]
        for name in names_in_use.intersection((contract.key, contract.id, f"{file}#")):
            holders[name].add(contract.key)
            objects_by_name[name] |= set(all_objects)
        for object_names, _ in contract.objects:
            for object_name in object_names:
                forms = [
                    f"{outer}{sign}{object_name}" for outer in {contract.key, contract.id} for sign in "/."
                ]
                for name in names_in_use.intersection((object_name, *forms, f"{file}#{object_name}")):
                    holders[name].add(contract.key)
                    objects_by_name[name].add((contract.key, object_names[0]))
    return {
        name: frozenset(objects_by_name[name]) if len(holders[name]) == 1 else frozenset()
        for name in objects_by_name
    }


def _matching_objects(
    contract: LineageOutline, text: str, names: Mapping[str, frozenset[DataObject]]
) -> frozenset[DataObject]:
    """Return the objects that the text of a contract's input refers to; empty if unknown or ambiguous.

    `names` are those of all contracts; a name in the contract itself takes precedence.
    """
    own_names = {f"{contract.key}/{object_names[0]}" for object_names, _ in contract.objects}
    for name in _candidates(contract, text.strip()):
        if f"{contract.key}/{name}" in own_names:
            return names[f"{contract.key}/{name}"]
        if name in names:
            return names[name]
    return frozenset()


def _candidates(contract: LineageOutline, text: str) -> Iterator[str]:
    """Yield the text, then without its last part, and so on; file names are relative to the contract."""
    file, hash_, fragment = text.removeprefix("file://").rpartition("#")
    if hash_:
        path = posixpath.normpath(posixpath.join(posixpath.dirname(contract.file), file))
        fragment = fragment.removeprefix("/schema/").lstrip("/")
        prefix = f"{path}#"
    else:
        prefix = ""
    parts = fragment.split(".")
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
    """Return True if the object is a view, which has no folder of its own."""
    return (schema_object.physical_type or "").lower() == "view"


def table_folder(path: str) -> str:
    """Return the folder of a pattern such as `s3://lake/orders/*.parquet`; a table is a folder."""
    steps = path.split("/")
    pattern = next((index for index, step in enumerate(steps) if _PATTERN.search(step)), len(steps))
    return "/".join(steps[:pattern])


# Tables that a contract promises, from its text alone, for comparing contracts of a registry.
#
# Nothing outside of the contract is read: variables have their defaults, and a location with another
# variable, or that dq cannot read, is unknown.

# Maximum number of compared tables, which bounds the cost of malicious contracts.
MAX_TABLES = 1_000
# The longest key of S3 has 1,024 bytes, the longest path of Linux 4,096.
_MAX_PATH = 4_096
# Replaces a variable without a default in a name or path, which is then unknown.
_UNSET = "variable_without_a_value"
# Every file of a folder, such as *.parquet.
_EVERY_FILE = re.compile(r"/?\*+(\.\w+)*")


class TableFolder(NamedTuple):
    """A normalized folder. `root` is `s3://bucket/`, `/`, or "" or `../` for a relative path."""

    root: str
    steps: tuple[str, ...]

    def __str__(self) -> str:
        return self.root + "/".join(self.steps) or "."

    def contains(self, other: TableFolder) -> bool:
        """Return True if the other folder is this one or below it."""
        return self.root == other.root and other.steps[: len(self.steps)] == self.steps

    def up(self) -> Iterator[TableFolder]:
        """Yield the folder itself and every parent folder."""
        for count in range(len(self.steps), -1, -1):
            yield TableFolder(self.root, self.steps[:count])


@dataclass(frozen=True, slots=True)
class PromisedTable:
    """A table of one object on one server.

    `name` is `database.table`, or "" if the database is unknown. `folder` is None for a view, and if it is
    unknown. `environment` and `account` are the server's, or "". `location` and `path` locate the name in the
    contract, `folder_location` and `folder_path` the server's location.
    """

    name: str
    folder: TableFolder | None
    environment: str
    account: str
    location: Location
    path: str
    folder_location: Location
    folder_path: str

    def is_same_table(self, other: PromisedTable) -> bool:
        """Return True if both may be the same table of the same catalog."""
        return (
            bool(self.name)
            and self.name == other.name
            and _may_be_same(self.environment, other.environment)
            and _may_be_same(self.account, other.account)
        )

    def overlaps(self, other: PromisedTable) -> bool:
        """Return True if the folders are the same, or one contains the other."""
        if self.folder is None or other.folder is None:
            return False
        nested = self.folder.contains(other.folder) or other.folder.contains(self.folder)
        return nested and _may_be_same(self.environment, other.environment)


def promised_tables(contract: Contract) -> tuple[PromisedTable, ...]:
    """Return the tables of a contract on its lake servers; empty if the contract is not in force."""
    if contract.status in NOT_IN_FORCE:
        return ()
    servers = {server.server: server for server in reversed(contract.servers) if is_lake(server)}
    pairs = itertools.product(servers.values(), contract.objects)
    tables = (
        _promised_table(contract, schema_object, server)
        for server, schema_object in itertools.islice(pairs, MAX_TABLES)
    )
    return tuple(table for table in tables if table is not None)


def _promised_table(contract: Contract, schema_object: SchemaObject, server: Server) -> PromisedTable | None:
    try:
        location = resolve(contract, schema_object, server.server, _TextOnlyPolicy())
    except UsageError:
        return None
    name_key = "physicalName" if schema_object.has("physicalName") else "name"
    folder_key = next((key for key, _ in location_templates(server) if server.get(key)), "")
    has_database = _UNSET not in location.database
    return PromisedTable(
        f"{database_name(contract, location.database)}.{table_name(schema_object)}" if has_database else "",
        None
        if is_view(schema_object) or not location.path or _UNSET in location.path
        else _folder(location.path),
        server.environment or "",
        server.get("account") or "",
        schema_object.locate(name_key),
        schema_object.path(name_key),
        server.locate(folder_key),
        server.path(folder_key),
    )


@dataclass(frozen=True, slots=True)
class _TextOnlyPolicy:
    """Location policy without access: accepts every well-formed location, and uses defaults of variables."""

    def value(self, _name: str, default: str | None) -> str | ValueProblem:
        return _UNSET if default is None else default

    def validate(self, text: str) -> str | ValueProblem:
        address = parse_location(text)
        return address if isinstance(address, ValueProblem) else text


def _folder(path: str) -> TableFolder | None:
    """Return the normalized folder of a location, or None if it is unknown.

    A pattern for some files of a folder is kept, because two of them may not overlap.
    """
    folder = table_folder(path)
    is_every_file = _EVERY_FILE.fullmatch(path[len(folder) :]) is not None
    address = parse_location((folder or ("/" if path.startswith("/") else ".")) if is_every_file else path)
    if isinstance(address, ValueProblem) or len(path) > _MAX_PATH:
        return None
    if address.scheme:
        return TableFolder(f"{address.scheme}://{address.host}/", address.segments)
    text = posixpath.normpath(str(address))
    steps = tuple(step for step in text.split("/") if step not in ("", "."))
    # Folders above the working folder are counted in the root.
    levels_up = steps.count("..")
    return TableFolder("/" if text.startswith("/") else "../" * levels_up, steps[levels_up:])


def _may_be_same(value: str, other: str) -> bool:
    return value == other or not (value and other)
