"""What a catalog must be able to do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from dq.contracts.shared.outcome import DqError
from dq.registry.diff import Action, LiveTable, Obstacle
from dq.registry.table import TableSpec
from dq.store.engine import Store

Values = tuple[tuple[str, str], ...]
"""A partition as (key, value) pairs in the order of the table's keys."""


class StalePlan(DqError):
    """The table moved between plan and apply."""


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition and the folder that it lies in."""

    values: Values
    location: str


class Catalog(Protocol):
    """Tables and partitions in one catalog. Every method raises Unreadable when it does not answer."""

    @property
    def id(self) -> str:
        """Which catalog it is: what dq remembers of one is never taken for another's."""

    def vet(self, spec: TableSpec) -> None:
        """Raises UsageError, with all that is wrong, for a table that it would not take. Asks nobody."""

    @property
    def formats(self) -> frozenset[str]:
        """The formats that it can create a table of, and whose columns it keeps."""

    def read(self, database: str, name: str) -> LiveTable | None:
        """The table as it is now, folded; None when there is none."""

    def tables(self, database: str) -> list[LiveTable]:
        """Every table of the database by name, whoever made it; none when there is no database."""

    def obstacles(self, action: Action) -> Iterable[Obstacle]:
        """What it cannot do of an action that changes a table, whatever is allowed. Asks nobody."""

    def apply(self, action: Action) -> None:
        """Makes the table what `action.after` says; None there removes it from the catalog, never its files.

        Raises StalePlan, and writes nothing, when the table is no longer `action.before`.
        """

    def add_partition(self, database: str, name: str, values: Values, location: str) -> bool:
        """Adds the partition; False, and nothing is written, when it stands there already.

        Raises DqError when the table does not exist or the partition lies somewhere else.
        """

    def place_of(self, database: str, name: str, values: Values) -> str | None:
        """Where one partition lies, folded; None where there is none, or no such table."""

    def move_partition(self, database: str, name: str, values: Values, location: str) -> None:
        """Gives a partition that stands there another place. Raises DqError when it does not stand there."""

    def partitions(self, database: str, name: str) -> list[Partition]:
        """Every partition of the table, sorted by values."""


@dataclass(frozen=True, slots=True)
class CatalogSettings:
    """What a catalog may need to open. `session` makes or gives a Spark session.

    In AWS: `role_arn` is the role to be, `catalog_id` the account whose catalog it is; "" for one's own.
    `iceberg` are pyiceberg's properties of a REST catalog: `uri`, `warehouse`, credentials.
    """

    store: Store | None = None
    session: Callable[[], object] | None = None
    role_arn: str = ""
    catalog_id: str = ""
    iceberg: Mapping[str, str] = field(default_factory=dict, repr=False)  # it holds secrets


@dataclass(frozen=True, slots=True)
class CatalogKind:
    """One file on the shelf `catalogs/`: its id in the configuration, and how it is opened."""

    id: str
    open: Callable[[CatalogSettings], Catalog]


def stale(database: str, name: str) -> StalePlan:
    """The error for a table that moved."""
    return StalePlan(
        f"The plan is stale: {database}.{name} has changed since it was made.", "Run 'dq register' again."
    )


def no_table(database: str, name: str) -> DqError:
    """The error for a partition of a table that nobody registered."""
    return DqError(f"The catalog has no table {database}.{name}.", "Register it: dq register --apply.")


def moved_partition(database: str, name: str, values: Values, there: str, wanted: str) -> DqError:
    """The error for a partition that stands at another place than the one to add."""
    shown = "/".join(f"{key}={value}" for key, value in values)
    return DqError(
        f"Partition {shown} of {database}.{name} lies at {there}, not at {wanted}.",
        "Publish from that place, or drop the partition from the catalog first.",
    )


def no_partition(database: str, name: str, values: Values) -> DqError:
    """The error for a partition that is gone while it is to be changed."""
    shown = "/".join(f"{key}={value}" for key, value in values)
    return DqError(f"{database}.{name} has no partition {shown} any more.", "Publish again.")
