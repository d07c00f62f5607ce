"""What is published: one delivery of one object, its partition, and the CloudEvent that consumers get."""

from __future__ import annotations

import datetime as dt
import json
import re
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from urllib.parse import quote

from dq.contracts.extension import dataset
from dq.contracts.model import Contract, SchemaObject, identity
from dq.contracts.model import key as contract_key
from dq.contracts.shared.outcome import UsageError
from dq.contracts.types import DataType, NotAType, parse
from dq.lake.storage import partition_folder
from dq.registry.catalog import Values
from dq.registry.table import OPEN_FORMATS, TableColumn, TableSpec

# The values of one partition, checked against the table's keys.

# `int` and `Decimal` also take `1_000`, spaces, and digits of other scripts, which no engine reads back.
_WHOLE = re.compile(r"[+-]?[0-9]{1,40}")
_NUMBER = re.compile(r"[+-]?[0-9]{1,40}(\.[0-9]{1,40})?")
_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d{1,6})?", re.ASCII)
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


def _date(text: str, _: DataType) -> str:
    if not _DAY.fullmatch(text):
        raise ValueError(text)
    return dt.date.fromisoformat(text).isoformat()


def _whole(text: str, kind: DataType) -> str:
    if not _WHOLE.fullmatch(text):
        raise ValueError(text)
    number, half = int(text), 1 << (_BITS[kind.name] - 1)
    if not -half <= number < half:
        raise ValueError(text)
    return str(number)


def _decimal(text: str, kind: DataType) -> str:
    if not _NUMBER.fullmatch(text):
        raise ValueError(text)
    digits, places = kind.numbers
    number = Decimal(text)
    shown = f"{number:.{places}f}"
    if Decimal(shown) != number or len(shown.lstrip("-").replace(".", "").lstrip("0")) > digits:
        raise ValueError(text)
    return "0" if number == 0 and not places else shown.removeprefix("-") if number == 0 else shown


def _boolean(text: str, _: DataType) -> str:
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.lower()


def _timestamp(text: str, _: DataType) -> str:
    if not _MOMENT.fullmatch(text):
        raise ValueError(text)
    shown = dt.datetime.fromisoformat(text).isoformat(" ")
    # As Spark names folders: no zeros at the end of a fraction.
    return shown.rstrip("0") if "." in shown else shown


def _limited(text: str, kind: DataType) -> str:
    if kind.numbers and len(text) > kind.numbers[0]:
        raise ValueError(text)
    return text


# How the value of a key is spelled in only one way, by type; other types take any text.
_SPELLINGS: dict[str, tuple[Callable[[str, DataType], str], str]] = {
    "date": (_date, "2026-11-20"),
    "timestamp": (_timestamp, "'2026-11-20 07:00:00'"),
    "timestamp_ntz": (_timestamp, "'2026-11-20 07:00:00'"),
    **dict.fromkeys(_BITS, (_whole, "7")),
    "decimal": (_decimal, "7.50"),
    "boolean": (_boolean, "true"),
    "char": (_limited, "text"),
    "varchar": (_limited, "text"),
}


def given_once(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The values by key. Raises UsageError for a key that is given twice, in whatever case."""
    made: dict[str, str] = {}
    for key, value in pairs:
        if key.lower() in made:
            raise UsageError(f"The partition key {key!r} is given twice.", "Give each key one value.")
        made[key.lower()] = value
    return made


def partition_values(spec: TableSpec, given: Mapping[str, str]) -> Values:
    """The values in the order of the table's keys, each in its one spelling (`07` of an int is `7`).

    Raises UsageError for a key that is missing, unknown or given twice, and for a value that is not of the
    key's type.
    """
    table = f"{spec.database}.{spec.name}"
    lowered = given_once(given.items())
    keys = [column.name for column in spec.partitions]
    if sorted(lowered) != sorted(keys):
        wanted = ", ".join(f"{key}=…" for key in keys) or "no partition"
        found = ", ".join(lowered) or "none"
        raise UsageError(
            f"{table} has the partition keys {', '.join(keys) or 'none'}, not {found}.", f"Give {wanted}."
        )
    return tuple((column.name, _value(table, column, lowered[column.name])) for column in spec.partitions)


def _value(table: str, column: TableColumn, text: str) -> str:
    if not text:
        raise UsageError(f"{table}: partition key {column.name} has no value.", f"Give {column.name}=….")
    try:
        kind = parse(column.type)
    except NotAType:
        return text
    if kind.name not in _SPELLINGS:
        return text
    spelling, example = _SPELLINGS[kind.name]
    try:
        return spelling(text, kind)
    except ValueError as error:
        raise UsageError(
            f"{table}: partition key {column.name} is a {column.type}, and {text!r} is none.",
            f"Write it as {column.name}={example}.",
        ) from error


# What is published: one delivery of one object, with an identity that a retry has too.

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
        return contract_key(self.contract, self.contract_version)

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


# What consumers get: a CloudEvent of version 1.0 in JSON, and the texts that they filter by.
#
# Source: CloudEvents 1.0.2, its JSON format in structured mode.

JsonObject = dict[str, object]

_NOTHING = "none"


def cloud_event(event: DeliveryEvent) -> JsonObject:
    """The event as JSON values; docs/reference/delivery-event.schema.json is its schema."""
    one = event.publication
    data = event.as_json()
    # The envelope says both.
    del data["event_id"], data["at"]
    cycle = data["cycle"]
    what = partition_folder(one.values) or (f"cycle={cycle}" if cycle else "")
    _, major = identity(one.contract, one.contract_version)
    return {
        "specversion": "1.0",
        "id": event.id,
        "source": f"urn:dq:contract:{quote(one.contract, safe='')}:{quote(major, safe='')}",
        "type": f"dq.delivery.{event.name}",
        "time": event.at.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "subject": f"{one.object}/{what}",
        "datacontenttype": "application/json",
        "data": data,
    }


def filter_texts(event: DeliveryEvent) -> dict[str, str]:
    """The five texts that subscriptions filter by; `none` for what is empty, which SNS does not take."""
    data = event.as_json()
    names = ("contract", "domain", "event", "major_version", "environment")
    return {name: str(data[name]) or _NOTHING for name in names}
