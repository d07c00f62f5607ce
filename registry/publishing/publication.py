"""What is published: one delivery of one object, with an identity that a retry has too."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from dq.contracts.access.hive_path import partition_folder
from dq.contracts.extension import dataset
from dq.contracts.identity import identity, key
from dq.contracts.model import Contract, SchemaObject
from dq.contracts.shared.errors import UsageError
from dq.registry.catalog import Values
from dq.registry.publishing.partition import partition_values
from dq.registry.table import OPEN_FORMATS, TableSpec

# Any fixed value does; with another one, every delivery ever published would be news again.
_NAMESPACE = uuid.UUID("6f1f1f3e-52f0-5d7a-9c7b-3f1c8f0b1d2a")


@dataclass(frozen=True, slots=True)
class Publication:
    """One delivery. `cycle` is the due instant that it is for, `values` its partition, either may be empty.

    `folder` is where its files lie; `marker` the file that says so, "" where the table's own log does.
    `rows` is None when the producer does not say.
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

    @property
    def key(self) -> str:
        """What the store files its receipt under; see `identity.key`."""
        return key(self.contract, self.contract_version)

    @property
    def event_id(self) -> str:
        """The same for the same contract in one major, object, cycle and partition, on every machine."""
        cycle = self.cycle.astimezone(UTC).isoformat() if self.cycle else ""
        name = "\n".join((self.key, self.object, cycle, partition_folder(self.values)))
        return str(uuid.uuid5(_NAMESPACE, name))


@dataclass(frozen=True, slots=True)
class DeliveryEvent:
    """What consumers are told. `at` is when publishing began, in UTC; a retry tells the same."""

    id: str
    publication: Publication
    at: datetime

    def as_json(self) -> dict[str, object]:
        """One flat object; `contract`, `domain`, `event` and `major_version` are there to filter by."""
        one = self.publication
        return {
            "event_id": self.id,
            "event": "delivered",
            "contract": one.contract,
            "domain": one.domain,
            "major_version": identity(one.contract, one.contract_version)[1],
            "contract_version": one.contract_version,
            "object": one.object,
            "table": f"{one.database}.{one.table}",
            "partition": dict(one.values),
            "location": one.folder,
            "cycle": one.cycle.astimezone(UTC).isoformat() if one.cycle else None,
            "rows": one.rows,
            "at": self.at.astimezone(UTC).isoformat(),
        }


def publication(
    contract: Contract,
    one: SchemaObject,
    spec: TableSpec,
    *,
    partition: Mapping[str, str],
    cycle: datetime | None = None,
    rows: int | None = None,
    folder: str | None = None,
) -> Publication:
    """The delivery of a partition of the object's table; `folder` where it does not lie as Hive would put it.

    Raises UsageError for a partition that does not fit the table's keys, a delivery without any identity,
    and a table whose place nobody knows.
    """
    values = partition_values(spec, partition)
    if not values and cycle is None:
        raise UsageError(
            f"{spec.database}.{spec.name} has no partitions, so deliveries cannot be told apart.",
            "Name the due instant with --cycle, such as --cycle 2026-11-20T06:00:00Z.",
        )
    if rows is not None and rows < 0:
        raise UsageError(f"A delivery cannot have {rows} rows.", "Give --rows a number from 0 up.")
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
    )
