"""Contracts of different ids that promise one table, or folders of which one lies in the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from dq.contracts.tables.promised_tables import PromisedTable, TableFolder


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
                self._compare_names(holder, table, names)
                self._compare_folders(holder, table, folders)

    def of(self, file: str) -> list[TableConflict]:
        """The conflicts of the contract in this file."""
        return self._by_file.get(file, [])

    def _compare_names(
        self, holder: TableHolder, table: PromisedTable, names: Mapping[str, _Promises]
    ) -> None:
        found = _of_another(names.get(table.name, {}), holder.id, table.is_same_table)
        if found is not None:
            self._add(holder, TableConflict(table, found[1], found[0], by_name=True))

    def _compare_folders(
        self, holder: TableHolder, table: PromisedTable, folders: Mapping[TableFolder, _Promises]
    ) -> None:
        for folder in table.folder.up() if table.folder is not None else ():
            found = _of_another(folders.get(folder, {}), holder.id, table.overlaps)
            if found is not None:
                self._add(holder, TableConflict(table, found[1], found[0], by_name=False))
                self._add(found[0], TableConflict(found[1], table, holder, by_name=False))

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
