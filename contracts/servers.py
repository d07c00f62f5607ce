"""TABLE: server types of ODCS, the version each arrived in, and the keys each takes.

Source: the `Server` section of ODCS 3.0.2, 3.1.0 and 3.2.0. `custom` takes every key.
"""

from __future__ import annotations

from typing import NamedTuple


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
