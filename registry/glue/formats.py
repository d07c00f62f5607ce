"""TABLE: what makes a table of Glue one of a format: input, output, SerDe.

Source: AWS, "Choose a SerDe for your data" (Athena); the classes are Hive's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dq.registry.glue.text_serdes import LAZY, OPEN_CSV, OPENX
from dq.registry.table import VIEW

_HIVE = "org.apache.hadoop.hive.ql.io"
_TEXT_IN = "org.apache.hadoop.mapred.TextInputFormat"
_TEXT_OUT = f"{_HIVE}.HiveIgnoreKeyTextOutputFormat"


@dataclass(frozen=True, slots=True)
class GlueFormat:
    """The classes that read and write a format."""

    input: str
    output: str
    serde: str
    other_serdes: tuple[str, ...] = ()


FORMATS = {
    "parquet": GlueFormat(
        f"{_HIVE}.parquet.MapredParquetInputFormat",
        f"{_HIVE}.parquet.MapredParquetOutputFormat",
        f"{_HIVE}.parquet.serde.ParquetHiveSerDe",
    ),
    "orc": GlueFormat(f"{_HIVE}.orc.OrcInputFormat", f"{_HIVE}.orc.OrcOutputFormat", f"{_HIVE}.orc.OrcSerde"),
    "avro": GlueFormat(
        f"{_HIVE}.avro.AvroContainerInputFormat",
        f"{_HIVE}.avro.AvroContainerOutputFormat",
        "org.apache.hadoop.hive.serde2.avro.AvroSerDe",
    ),
    # How these are told to read is in `text_serdes`.
    "json": GlueFormat(_TEXT_IN, _TEXT_OUT, OPENX),
    "csv": GlueFormat(_TEXT_IN, _TEXT_OUT, LAZY, (OPEN_CSV,)),
}

# A part of a SerDe's class -> the format; some have several SerDes.
_SERDES = (
    ("parquet", "parquet"), ("orc", "orc"), ("avro", "avro"), ("json", "json"), ("opencsv", "csv"),
    ("lazysimple", "csv"),
)  # fmt: skip
_OPEN = ("iceberg", "delta", "hudi")


FILTERING = {"partition_filtering.enabled": "true"}
"""The parameter without which Athena does not ask a table's partition indexes."""


def own_parameters(name: str) -> dict[str, str]:
    """The parameters of a table that belong to its format, and not to its contract."""
    return {"EXTERNAL": "TRUE", "classification": name} if name in FORMATS else {}


def format_of(table: Mapping[str, Any]) -> str:
    """The format of a table as Glue answers it; "" for a link, and for what nobody knows."""
    parameters = table.get("Parameters") or {}
    storage = table.get("StorageDescriptor") or {}
    for key in ("table_type", "spark.sql.sources.provider"):
        word = str(parameters.get(key, "")).lower()
        if word in _OPEN:
            return word
    if "hoodie" in (storage.get("InputFormat") or "").lower():
        return "hudi"
    if table.get("TargetTable"):
        return ""
    if "VIEW" in (table.get("TableType") or ""):
        return VIEW
    serde = ((storage.get("SerdeInfo") or {}).get("SerializationLibrary") or "").lower()
    return next((name for part, name in _SERDES if part in serde), "")
