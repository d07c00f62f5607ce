"""What is published: one delivery of one object, with an identity that a retry has too."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from dq.contracts.extension import dataset
from dq.contracts.identity import identity, key
from dq.contracts.model import Contract, SchemaObject
from dq.contracts.shared.errors import UsageError
from dq.lake.paths import partition_folder
from dq.registry.catalog import Values
from dq.registry.publishing.partition import partition_values
from dq.registry.table import OPEN_FORMATS, TableSpec

# Any fixed values do; with others, every delivery ever published would be news again.
_NAMESPACE = uuid.UUID("2b0e4c1a-7d53-5f0e-9a64-5d1c7e0b8f31")
_BEFORE_SERVERS = uuid.UUID("6f1f1f3e-52f0-5d7a-9c7b-3f1c8f0b1d2a")

MOST_ROWS = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Publication:
    """One delivery. `cycle` is the due instant that it is for, `values` its partition, either may be empty.

    `folder` is where its files lie; `staged`: that is not below the table, as Hive would have it. `marker` is
    the file that says so, "" where the table's own log does. `table_location` is where the contract has the
    whole table, "" where only the catalog knows. `rows` is None when the producer does not say. `environment`
    is the server's, or "". `other_locations` are where the contract's other
    servers have the table, by server.
    """

    contract: str
    contract_version: str
    domain: str
    object: str
    database: str
    table: str
    folder: str
    values: Values = ()
    cycle: datetime | None = None
    rows: int | None = None
    marker: str = "_SUCCESS"
    server: str = ""
    environment: str = ""
    catalog: str = "local"
    table_location: str = ""
    staged: bool = False
    other_locations: tuple[tuple[str, str], ...] = ()

    @property
    def key(self) -> str:
        """What the store files its receipt under; see `identity.key`."""
        return key(self.contract, self.contract_version)

    @property
    def delivery(self) -> str:
        """The same for the same contract in one major, object, cycle, partition, server and catalog."""
        values = partition_folder(sorted(self.values))
        parts = (self.key, self.object, self._cycle(), values, self.server, self.catalog)
        return str(uuid.uuid5(_NAMESPACE, json.dumps(parts)))

    @property
    def delivery_before(self) -> str:
        """What it was called before servers and catalogs were told apart."""
        name = "\n".join((self.key, self.object, self._cycle(), partition_folder(self.values)))
        return str(uuid.uuid5(_BEFORE_SERVERS, name))

    def _cycle(self) -> str:
        return self.cycle.astimezone(UTC).isoformat() if self.cycle else ""


@dataclass(frozen=True, slots=True)
class DeliveryEvent:
    """What consumers are told. `at` is when publishing began, in UTC; a retry tells the same.

    `revision` grows by one when the same is delivered again; `previous_rows` are those of the one before.
    """

    id: str
    publication: Publication
    at: datetime
    revision: int = 1
    previous_rows: int | None = None

    @property
    def name(self) -> str:
        return "delivered" if self.revision == 1 else "redelivered"

    def as_json(self) -> dict[str, object]:
        """One flat object; `contract`, `domain`, `event`, `major_version`, `environment` are to filter by."""
        one = self.publication
        return {
            "event_id": self.id,
            "event": self.name,
            "contract": one.contract,
            "domain": one.domain,
            "major_version": identity(one.contract, one.contract_version)[1],
            "environment": one.environment,
            "contract_version": one.contract_version,
            "object": one.object,
            "server": one.server,
            "catalog": one.catalog,
            "table": f"{one.database}.{one.table}",
            "partition": dict(one.values),
            "location": one.folder,
            "cycle": one.cycle.astimezone(UTC).isoformat() if one.cycle else None,
            "rows": one.rows,
            "revision": self.revision,
            "previous_rows": self.previous_rows,
            "at": self.at.astimezone(UTC).isoformat(),
        }


def first_event_id(one: Publication) -> str:
    """The id of the first revision: the same on every machine, also with another store."""
    return str(uuid.uuid5(_NAMESPACE, one.delivery))


def event_id(one: Publication, revision: int, begun_at: datetime) -> str:
    """The id of a later revision. The instant is in it, for a store that was set back counts anew."""
    return str(uuid.uuid5(_NAMESPACE, f"{one.delivery} {revision} {begun_at.astimezone(UTC).isoformat()}"))


def publication(
    contract: Contract,
    one: SchemaObject,
    spec: TableSpec,
    *,
    server: str,
    environment: str = "",
    catalog: str,
    partition: Mapping[str, str],
    cycle: datetime | None = None,
    rows: int | None = None,
    folder: str | None = None,
    other_locations: Mapping[str, str] | None = None,
) -> Publication:
    """The delivery of a partition of the object's table; `folder` where it does not lie as Hive would put it.

    `server` and its `environment` are where the data is, `catalog` is the id of the catalog it stands in.

    Raises UsageError for a partition that does not fit the table's keys, a delivery without any identity,
    and a table whose place nobody knows.
    """
    values = partition_values(spec, partition)
    if not values and cycle is None:
        raise UsageError(
            f"{spec.database}.{spec.name} has no partitions, so deliveries cannot be told apart.",
            "Name the due instant with --cycle, such as --cycle 2026-11-20T06:00:00Z.",
        )
    if rows is not None and not 0 <= rows <= MOST_ROWS:
        raise UsageError(f"A delivery cannot have {rows} rows.", f"Give a number from 0 to {MOST_ROWS}.")
    if folder is None and not spec.location:
        raise UsageError(
            f"Where {spec.database}.{spec.name} lies is not known.", "Give the server a location."
        )
    default = "/".join(part for part in (spec.location.rstrip("/"), partition_folder(values)) if part)
    return Publication(
        contract.id,
        contract.version,
        contract.domain or "",
        one.name,
        spec.database,
        spec.name,
        default if folder is None else folder,
        values,
        cycle,
        rows,
        "" if spec.format in OPEN_FORMATS else dataset(one)[0].marker,
        server,
        environment,
        catalog,
        spec.location,
        folder is not None,
        tuple(sorted((other_locations or {}).items())),
    )
