"""TABLE: versions of ODCS, and the server types, service levels and keys of each."""

from __future__ import annotations

from typing import NamedTuple

# TABLE: which versions of ODCS we read, and in which one a key or a value arrived.
#
# Source: the changelog and the JSON Schemas of ODCS 3.0.2, 3.1.0 and 3.2.0.

Version = tuple[int, int, int]

SUPPORTED = ("v3.0.0", "v3.0.1", "v3.0.2", "v3.1.0", "v3.2.0")
NEWEST = "v3.2.0"

# (node type, key as written) -> first version that has it. What is absent here has been there since 3.0.0.
KEY_SINCE: dict[tuple[str, str], Version] = {
    ("Contract", "authoritativeDefinitions"): (3, 0, 1),
    ("Contract", "context"): (3, 2, 0),
    ("SchemaObject", "context"): (3, 2, 0),
    ("SchemaObject", "deprecated"): (3, 2, 0),
    ("SchemaObject", "synonyms"): (3, 2, 0),
    ("SchemaObject", "id"): (3, 1, 0),
    ("SchemaObject", "relationships"): (3, 1, 0),
    ("Property", "deprecated"): (3, 2, 0),
    ("Property", "synonyms"): (3, 2, 0),
    ("Property", "semanticType"): (3, 2, 0),
    ("Property", "enum"): (3, 2, 0),
    ("Property", "map"): (3, 2, 0),
    ("Property", "physicalName"): (3, 0, 2),
    ("Property", "id"): (3, 1, 0),
    ("Property", "relationships"): (3, 1, 0),
    ("SlaProperty", "customProperties"): (3, 2, 0),
    ("SlaProperty", "authoritativeDefinitions"): (3, 2, 0),
    ("SlaProperty", "id"): (3, 1, 0),
    ("SlaProperty", "description"): (3, 1, 0),
    ("SlaProperty", "schedule"): (3, 1, 0),
    ("SlaProperty", "scheduler"): (3, 1, 0),
    ("CustomProperty", "vendor"): (3, 2, 0),
    ("CustomProperty", "id"): (3, 1, 0),
    ("CustomProperty", "description"): (3, 1, 0),
    ("Quality", "id"): (3, 1, 0),
    ("Quality", "metric"): (3, 1, 0),
    ("Quality", "arguments"): (3, 1, 0),
    ("Relationship", "id"): (3, 2, 0),
    ("Server", "id"): (3, 1, 0),
    ("SupportChannel", "id"): (3, 1, 0),
    ("SupportChannel", "customProperties"): (3, 1, 0),
    ("Price", "id"): (3, 1, 0),
    ("Member", "id"): (3, 1, 0),
    ("Member", "tags"): (3, 1, 0),
    ("Member", "customProperties"): (3, 1, 0),
    ("Member", "authoritativeDefinitions"): (3, 1, 0),
    ("Role", "id"): (3, 1, 0),
    ("TypeOptions", "timezone"): (3, 1, 0),
    ("TypeOptions", "defaultTimezone"): (3, 1, 0),
}

# (node type, key, value) -> first version in which the key may have this value.
VALUE_SINCE: dict[tuple[str, str, str], Version] = {
    ("Property", "logicalType", "timestamp"): (3, 1, 0),
    ("Property", "logicalType", "time"): (3, 1, 0),
    ("Property", "logicalType", "map"): (3, 2, 0),
    ("Property", "logicalType", "vector"): (3, 2, 0),
    ("SchemaObject", "logicalType", "blob"): (3, 1, 0),
}

# Until 3.0.2 the metric of a library rule was its `rule`, and some had other names.
EARLIER_METRICS = {
    "duplicateCount": "duplicateValues",
    "nullCheck": "nullValues",
    "validValues": "invalidValues",
}


def of(text: str) -> Version:
    """The version that a contract writes, such as (3, 2, 0) for `v3.2.0`."""
    major, minor, patch = text.removeprefix("v").split(".")
    return int(major), int(minor), int(patch)


def text(version: Version) -> str:
    """The version as contracts write it."""
    return "v" + ".".join(str(part) for part in version)


# TABLE: server types of ODCS, the version each arrived in, and the keys each takes.
#
# Source: the `Server` section of ODCS 3.0.2, 3.1.0 and 3.2.0. `custom` takes every key.


class ServerType(NamedTuple):
    required: tuple[str, ...]
    optional: tuple[str, ...]
    since: tuple[int, int, int]


def _row(required: str, optional: str = "", since: str = "3.0.0") -> ServerType:
    major, minor, patch = (int(part) for part in since.split("."))
    return ServerType(tuple(required.split()), tuple(optional.split()), (major, minor, patch))


SERVER_TYPES: dict[str, ServerType] = {
    "api": _row("location"),
    "athena": _row("schema", "stagingDir catalog regionName workgroup"),
    "azure": _row("location format", "encoding delimiter"),
    "bigquery": _row("project dataset"),
    "btrieve": _row("host database", "port", "3.2.0"),
    "clickhouse": _row("host port database"),
    "cloudsql": _row("host port database schema"),
    "custom": _row(
        "",
        "account catalog database dataset delimiter encoding endpointUrl format host location path port "
        "project region regionName schema serviceName stagingDir stream warehouse",
    ),
    "databricks": _row("catalog schema", "host"),
    "db2": _row("host port database", "schema"),
    "denodo": _row("host port", "database"),
    "dremio": _row("host port", "schema"),
    "duckdb": _row("database", "schema"),
    "exasol": _row("host", "port schema", "3.2.0"),
    "fastobjects": _row("database", "host port", "3.2.0"),
    "glue": _row("account database", "location format encoding"),
    "hana": _row("host", "port database schema", "3.2.0"),
    "hive": _row("host database", "port", "3.1.0"),
    "iceberg": _row("catalog catalogUrl", "namespace warehouse", "3.2.0"),
    "impala": _row("host database", "port", "3.1.0"),
    "informix": _row("host database", "port"),
    "ingres": _row("database host", "port", "3.2.0"),
    "kafka": _row("host", "format encoding"),
    "kinesis": _row("", "region format encoding"),
    "local": _row("path format", "encoding"),
    "mysql": _row("host port database"),
    "oracle": _row("host port serviceName"),
    "poet": _row("database", "host port", "3.2.0"),
    "postgres": _row("host port database schema"),
    "postgresql": _row("host port database schema"),
    "presto": _row("host", "catalog schema"),
    "pubsub": _row("project"),
    "redshift": _row("database schema", "host region account"),
    "s3": _row("location", "endpointUrl format encoding delimiter"),
    "sftp": _row("location", "format encoding delimiter"),
    "snowflake": _row("account database schema", "host port warehouse"),
    "sqlserver": _row("host database schema", "port"),
    "synapse": _row("host port database"),
    "teradata": _row("host", "port database", "3.2.0"),
    "trino": _row("host port catalog schema"),
    "vectorwise": _row("database host", "port", "3.2.0"),
    "versant": _row("database", "host port", "3.2.0"),
    "vertica": _row("host port database schema"),
    "zen": _row("host database", "port", "3.1.0"),
}

# `encoding` came to every type that has it with 3.2.0; of athena's keys `workgroup` came then, and
# `stagingDir` was required before.
LATER_KEYS = {"encoding": (3, 2, 0), "workgroup": (3, 2, 0)}
# Until 3.0.2 the key was another one.
EARLIER_NAMES = {("athena", "stagingDir"): ("staging_dir", (3, 0, 2))}
EARLIER_REQUIRED = {"athena": (("stagingDir",), (3, 2, 0))}


# TABLE: service levels of ODCS and the units that their values may have.
#
# ODCS names the properties ("case-insensitive", and others are allowed) and leaves their units open but for
# days and years. Source: the section "Service-Level Agreement" of ODCS 3.1.

# Lower-case name -> (the name as ODCS writes it, whether its value is a length of time).
SERVICE_LEVELS: dict[str, tuple[str, bool]] = {
    name.lower(): (name, timed)
    for name, timed in (
        ("availability", False),
        ("errorRate", False),
        ("throughput", False),
        ("generalAvailability", False),
        ("endOfSupport", False),
        ("endOfLife", False),
        ("timeOfAvailability", False),
        ("frequency", True),
        ("freshness", True),
        ("latency", True),
        ("retention", True),
        ("timeToDetect", True),
        ("timeToNotify", True),
        ("timeToRepair", True),
    )
}

# Unit of time as our durations write it -> the other spellings that contracts use.
_SPELLINGS = {
    "s": ("sec", "secs", "second", "seconds"),
    "min": ("mins", "minute", "minutes"),
    "h": ("hr", "hrs", "hour", "hours"),
    "d": ("day", "days"),
    "w": ("wk", "week", "weeks"),
    "mo": ("mon", "month", "months"),
    "y": ("yr", "yrs", "year", "years"),
}
TIME_UNITS: dict[str, str] = {
    spelling: unit for unit, others in _SPELLINGS.items() for spelling in (unit, *others)
}


def time_unit(written: str) -> str | None:
    """The unit of time that a spelling means, whatever its case; None for a bare `m` and for what is none."""
    return TIME_UNITS.get(written.strip().lower())
