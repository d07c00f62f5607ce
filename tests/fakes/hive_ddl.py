"""A table as Glue has it, in the metastore of a Spark session: what Spark on Glue or a SerDe reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Raw = Mapping[str, Any]


def make(
    spark: SparkSession,
    table: Raw,
    database: str,
    lake: str,
    partitions: Iterable[Raw] = (),
    *,
    by_serde: bool = False,
) -> str:
    """Makes the table by Hive's own DDL, member for member, and gives its name for SQL.

    `lake` is the folder that stands for `s3://lake`. `by_serde` leaves out what only Spark reads, so that the
    classes of Hive do, as Athena's do.
    """
    name = f"{database}.`{table['Name']}`"
    storage = table["StorageDescriptor"]
    parameters = {
        key: text
        for key, text in table["Parameters"].items()
        if not (key.startswith("dq.") or (by_serde and key.startswith("spark.")))
    }
    serde = storage["SerdeInfo"]
    told = {key: _local(text, lake) for key, text in serde.get("Parameters", {}).items()}
    keys = ", ".join(f"`{key['Name']}` {key['Type']}" for key in table.get("PartitionKeys", ()))
    statements = [
        f"CREATE DATABASE IF NOT EXISTS {database}",
        f"DROP TABLE IF EXISTS {name}",
        f"CREATE EXTERNAL TABLE {name} ({_columns(storage['Columns'])})"
        + (f" PARTITIONED BY ({keys})" if keys else "")
        + f" ROW FORMAT SERDE {_text(_class(serde['SerializationLibrary']))}"
        + (f" WITH SERDEPROPERTIES ({_pairs(told)})" if told else "")
        + f" STORED AS INPUTFORMAT {_text(storage['InputFormat'])}"
        + f" OUTPUTFORMAT {_text(storage['OutputFormat'])}"
        + f" LOCATION {_text(_local(storage['Location'], lake))}"
        + f" TBLPROPERTIES ({_pairs(parameters)})",
    ]
    for one in partitions:
        pairs = zip(table["PartitionKeys"], one["Values"], strict=True)
        values = ", ".join(f"`{key['Name']}`={_text(value)}" for key, value in pairs)
        place = _local(one["StorageDescriptor"]["Location"], lake)
        statements.append(f"ALTER TABLE {name} ADD PARTITION ({values}) LOCATION {_text(place)}")
    client: Any = spark._jsparkSession.sharedState().externalCatalog().unwrapped().client()
    system: Any = spark._jvm.java.lang.System
    # Spark keeps this door for its own tests.
    system.setProperty("spark.testing", "true")
    try:
        for statement in statements:
            client.runSqlHive(statement)
    finally:
        system.clearProperty("spark.testing")
    return name


# Athena brings it; Hive's jars here do not, and no test reads by it.
_ELSEWHERE = {"org.openx.data.jsonserde.JsonSerDe": "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"}


def _class(name: str) -> str:
    return _ELSEWHERE.get(name, name)


def _columns(columns: Iterable[Raw]) -> str:
    return ", ".join(f"`{column['Name']}` {column['Type']}" for column in columns)


def _local(text: str, lake: str) -> str:
    return text.replace("s3://lake", f"file:{lake}")


def _pairs(parameters: Mapping[str, str]) -> str:
    return ", ".join(f"{_text(key)}={_text(text)}" for key, text in parameters.items())


def _text(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace(";", "\\;")
    return f"'{escaped}'"
