"""Whether a contract's data lies where Spark, Hive, Glue or Athena decide on names and types."""

from __future__ import annotations

from dq.contracts.model import Contract

LAKE_SERVERS = frozenset({"athena", "azure", "databricks", "glue", "hive", "iceberg", "local", "s3"})


def on_lake(contract: Contract) -> bool:
    """Whether one of the contract's servers is a lake or its catalog."""
    return any(server.type in LAKE_SERVERS for server in contract.servers)
