"""The tables that a contract promises, by their names in a catalog and their folders."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from posixpath import normpath
from typing import NamedTuple

from dq.contracts.access.access_policy import parse
from dq.contracts.access.data_location import is_lake, paths, resolve
from dq.contracts.model import Contract, SchemaObject, Server
from dq.contracts.shared.outcome import Location, TextFault, UsageError
from dq.contracts.slo import NOT_IN_FORCE

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
# another
# one, or that dq does not read, is unknown.

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
    text = normpath(str(made))
    steps = tuple(step for step in text.split("/") if step not in ("", "."))
    # What lies above the working folder holds more than its letters tell.
    above = steps.count("..")
    return TableFolder("/" if text.startswith("/") else "../" * above, steps[above:])


def _may_be_same(value: str, other: str) -> bool:
    return value == other or not (value and other)
