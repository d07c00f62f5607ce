"""What Spark needs to read the formats that it does not bring itself: jars by Maven coordinates, settings."""

from __future__ import annotations

from collections.abc import Collection, Mapping

# By Spark's line and format. Each is a version that was made for this line.
JARS: Mapping[str, Mapping[str, str]] = {
    "4.0": {
        "iceberg": "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.10.1",
        "delta": "io.delta:delta-spark_2.13:4.0.0",
        "hudi": "org.apache.hudi:hudi-spark4.0-bundle_2.13:1.1.1",
        "avro": "org.apache.spark:spark-avro_2.13:4.0.2",
    },
    "3.5": {
        "iceberg": "org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:1.10.1",
        "delta": "io.delta:delta-spark_2.12:3.3.2",
        "hudi": "org.apache.hudi:hudi-spark3.5-bundle_2.12:1.1.1",
        "avro": "org.apache.spark:spark-avro_2.12:3.5.7",
    },
}

# What a session must be started with to read. Iceberg's SQL extensions are for writing, and those for Spark
# 3.5 break Delta's UPDATE and MERGE in the same session (Iceberg 1.10.1, Delta 3.3.2).
_SETTINGS: Mapping[str, Mapping[str, str]] = {
    "delta": {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    },
    "hudi": {
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
    },
}

PACKAGES = "spark.jars.packages"


def line(spark: str) -> str:
    """The line of a Spark version: `4.0` of 4.0.2."""
    return ".".join(spark.split(".")[:2])


def coordinates(spark: str, formats: Collection[str]) -> tuple[str, ...]:
    """The Maven coordinates that these formats need with this version of Spark, in the table's order.

    Formats that Spark brings itself need none, and a line of Spark that is not in the table has none.
    """
    return tuple(jar for name, jar in JARS.get(line(spark), {}).items() if name in formats)


def settings(spark: str, formats: Collection[str]) -> dict[str, str]:
    """The settings, the jars among them, with which a session that reads these formats must start."""
    jars = coordinates(spark, formats)
    if not jars:
        return {}
    found: dict[str, str] = {PACKAGES: ",".join(jars)}
    for name, wanted in _SETTINGS.items():
        found |= wanted if name in formats else {}
    return found
