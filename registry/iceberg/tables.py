"""Tables behind Iceberg's REST protocol: read, made and changed; each change is one commit, or none."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError as AnswerFault
from pyiceberg import exceptions as ice
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.table import Table
from pyiceberg.view import View

from dq.contracts.shared.errors import DqError, Unreadable, UsageError
from dq.contracts.types import NotAType
from dq.registry.action import Action, LiveTable, Obstacle
from dq.registry.catalog import Partition, Values, no_table, stale
from dq.registry.diff import changes
from dq.registry.iceberg.client import UNKNOWN, explained
from dq.registry.iceberg.evolution import evolve, obstacles
from dq.registry.iceberg.shapes import (
    FORMAT,
    StrangeTable,
    live_table,
    partitions_of,
    properties_of,
    schema_of,
)
from dq.registry.reader import UnsayableTerms
from dq.registry.table import MANAGED_BY, REGISTRY, VIEW, Key, TableSpec

_ABSENT = (ice.NoSuchTableError, ice.NoSuchViewError, ice.NoSuchNamespaceError)


@dataclass(frozen=True, slots=True)
class Iceberg:
    """A `Catalog` behind Iceberg's REST protocol, which makes and evolves the tables of its contracts.

    What a table is not by its contract, such as how it is sorted or hidden parts of it, stays its writers'.
    """

    rest: RestCatalog
    id: str
    formats: frozenset[str] = frozenset({FORMAT})

    def vet(self, spec: TableSpec) -> None:
        if spec.format == VIEW:
            return
        if spec.format not in self.formats:
            raise UnsayableTerms(
                f"{_name(spec.key)}: a catalog of Iceberg holds no tables of {spec.format}.",
                "Register it with the catalog glue, hive or local; or deliver Iceberg.",
            )
        try:
            schema_of(spec)
        except NotAType as error:
            raise UsageError(
                f"{_name(spec.key)}: {error}.", "Give the column another physicalType."
            ) from error

    def read(self, database: str, name: str) -> LiveTable | None:
        with explained(f"read {database}.{name}"):
            found = self._load((database, name))
        return None if found is None else live_table(found)

    def tables(self, database: str) -> list[LiveTable]:
        with explained(f"list the tables of {database}"):
            try:
                names = [*self.rest.list_tables((database,)), *self.rest.list_views((database,))]
            except ice.NoSuchNamespaceError:
                return []
            found = [self._load((database, name[-1])) for name in sorted(names)]
        return [live_table(one) for one in found if one is not None]

    def obstacles(self, action: Action) -> Iterable[Obstacle]:
        if action.after is None or action.after.format == VIEW:
            return ()
        return obstacles(action)

    def apply(self, action: Action) -> None:
        with explained(f"write {_name(action.key)}"):
            found = self._load(action.key)
            live = None if found is None else live_table(found)
            seen = action.before.version if action.before else None
            if (live.version if live else None) != seen:
                raise stale(*action.key)
            try:
                self._write(found, live, action.after)
            except (ice.CommitFailedException, ice.TableAlreadyExistsError) as error:
                # Another has written between our reading and our writing: who asks compares.
                raise stale(*action.key) from error
            except UNKNOWN:
                if not self._arrived(action):
                    raise

    def add_partition(self, database: str, name: str, values: Values, location: str) -> bool:
        if self.read(database, name) is None:
            raise no_table(database, name)
        raise _by_commits(database, name)

    def place_of(self, database: str, name: str, values: Values) -> str | None:
        raise _by_commits(database, name)

    def move_partition(self, database: str, name: str, values: Values, location: str) -> None:
        raise _by_commits(database, name)

    def partitions(self, database: str, name: str) -> list[Partition]:
        if self.read(database, name) is None:
            return []
        raise _by_commits(database, name)

    def _load(self, key: Key) -> Table | View | StrangeTable | None:
        try:
            with suppress(*_ABSENT):
                table: Table = self.rest.load_table(key)
                return table
            view: View = self.rest.load_view(key)
            return view
        except (*_ABSENT, NotImplementedError):
            # The last where the catalog knows no views.
            return None
        except AnswerFault:
            return StrangeTable(key)

    def _write(
        self, found: Table | View | StrangeTable | None, live: LiveTable | None, after: TableSpec | None
    ) -> None:
        if found is None or live is None:
            if after is not None:
                self._create(after)
        elif after is None:
            self._drop(found)
        elif isinstance(found, View):
            self._describe(found, live.spec, after)
        elif isinstance(found, Table):
            with found.transaction() as transaction:
                evolve(transaction, live.spec, after)

    def _create(self, spec: TableSpec) -> None:
        schema = schema_of(spec)
        for _ in range(2):
            try:
                self.rest.create_table(
                    spec.key,
                    schema,
                    spec.location or None,
                    partitions_of(spec, schema),
                    properties=properties_of(spec),
                )
                return
            except ice.NoSuchNamespaceError:
                # Most are there: asking before each table would be a call for nothing.
                self._create_namespace(spec)
        raise Unreadable(
            f"The catalog does not find the namespace {spec.database} that it has just made.",
            "Try again later.",
        )

    def _create_namespace(self, spec: TableSpec) -> None:
        marks = {MANAGED_BY: "dq", REGISTRY: spec.parameter(REGISTRY)}
        with suppress(ice.NamespaceAlreadyExistsError):
            self.rest.create_namespace((spec.database,), {key: text for key, text in marks.items() if text})

    def _drop(self, found: Table | View | StrangeTable) -> None:
        """From the catalog alone: no file is purged."""
        # It may be gone: by our own first try, of which the answer was lost, or by another.
        with suppress(*_ABSENT):
            if isinstance(found, View):
                self.rest.drop_view(found.name())
            else:
                self.rest.drop_table(found.name())

    def _describe(self, view: View, live: TableSpec, after: TableSpec) -> None:
        """Sets the properties of a view, which is all that is ours; pyiceberg has no word for it."""
        is_, should = properties_of(live), properties_of(after)
        gone = sorted(is_.keys() - should.keys())
        changed = {key: text for key, text in should.items() if is_.get(key) != text}
        updates: list[dict[str, Any]] = []
        if gone:
            updates.append({"action": "remove-properties", "removals": gone})
        if changed:
            updates.append({"action": "set-properties", "updates": changed})
        commit = {
            "requirements": [{"type": "assert-view-uuid", "uuid": view.metadata.view_uuid}],
            "updates": updates,
        }
        database, name = view.name()[-2:]
        url = self.rest.url("namespaces/{namespace}/views/{view}", namespace=database, view=name)
        answer = self.rest._session.post(url, json=commit)
        if answer.status_code == _CONFLICT:
            raise stale(database, name)
        answer.raise_for_status()

    def _arrived(self, action: Action) -> bool:
        """Whether the catalog is as the action wants it, though nobody said that it was done."""
        found = self._load(action.key)
        if found is None or action.after is None:
            return found is None and action.after is None
        left = changes(live_table(found).spec, action.after, None, own=self.formats)
        return all(change.kept for change in left)


_CONFLICT = 409


def _name(key: Key) -> str:
    return ".".join(key)


def _by_commits(database: str, name: str) -> DqError:
    return DqError(
        f"{database}.{name}: writers of Iceberg add and drop partitions by their own commits.",
        "Leave partitions to them; dq publish and dq repair do so.",
    )
