"""What a dataset is called in OpenLineage, so that its events meet those of Spark and Airflow.

The place of the files is the name, as the integration of Spark has it; where a catalog knows the table too,
that name is a symlink. Source: https://openlineage.io/docs/spec/naming.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

from dq.contracts.access.access_policy import parse
from dq.contracts.access.data_location import DataPlace
from dq.contracts.model import SchemaObject, Server
from dq.contracts.shared.outcome import TextFault

# Clusters name themselves by host and port; these are the ports of the field.
_HIVE_PORT = "10000"
_REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")


class DatasetName(NamedTuple):
    """The two parts of a dataset's identity."""

    namespace: str
    name: str


def names(
    place: DataPlace, server: Server, one: SchemaObject, environment: Mapping[str, str]
) -> list[DatasetName]:
    """What the dataset is called, and behind it the other names that it goes by; none where nobody knows.

    A server of Glue without an account, or on a machine that names no region, gives the place of the files
    alone.
    """
    made = [of_files(place.path)] if place.path else []
    made.append(_of_table(place, server, one.column, environment))
    return [name for name in made if name is not None]


def of_files(path: str) -> DatasetName | None:
    """What a folder of files is called; None for what is no address."""
    address = parse(path)
    if isinstance(address, TextFault):
        return None
    below = "/".join(address.segments)
    if not address.scheme:
        return DatasetName("file", os.path.abspath(str(address)))  # noqa: PTH100  no link is followed
    # Object stores have keys, machines have paths.
    hosted = address.scheme in ("hdfs", "webhdfs", "swebhdfs", "abfs", "abfss", "wasb", "wasbs")
    return DatasetName(f"{address.scheme}://{address.host}", f"/{below}" if hosted else below or "/")


def _of_table(
    place: DataPlace, server: Server, table: str, environment: Mapping[str, str]
) -> DatasetName | None:
    if place.type == "glue":
        region = next((environment[name] for name in _REGIONS if environment.get(name)), None)
        account = server.get("account")
        if not region or not account:
            return None
        return DatasetName(f"arn:aws:glue:{region}:{account}", f"table/{place.database}/{table}")
    if place.type == "hive":
        host, port = server.get("host") or "", server.get("port") or _HIVE_PORT
        return DatasetName(f"hive://{host}:{port}", f"{place.database}.{table}")
    if place.type == "iceberg":
        catalog = (server.get("catalogUrl") or "").rstrip("/")
        parts = [server.get("namespace") or place.database, table]
        return DatasetName(catalog, ".".join(part for part in parts if part)) if catalog else None
    return None
