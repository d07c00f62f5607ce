"""TABLE: what makes a table of Glue one of a format: input, output, SerDe and parameters.

Source: AWS, "Choose a SerDe for your data" (Athena); the classes are Hive's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_HIVE = "org.apache.hadoop.hive.ql.io"
_TEXT_IN = "org.apache.hadoop.mapred.TextInputFormat"
_TEXT_OUT = f"{_HIVE}.HiveIgnoreKeyTextOutputFormat"


@dataclass(frozen=True, slots=True)
class GlueFormat:
    """The classes that read and write a format, and what they have to be told."""

    input: str
    output: str
    serde: str
    serde_parameters: tuple[tuple[str, str], ...] = (("serialization.format", "1"),)
    parameters: tuple[tuple[str, str], ...] = ()


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
    # Names in files may be upper case, the catalog's never are.
    "json": GlueFormat(
        _TEXT_IN,
        _TEXT_OUT,
        "org.openx.data.jsonserde.JsonSerDe",
        (("case.insensitive", "true"), ("serialization.format", "1")),
    ),
    # As `dq check` reads CSV: a header, and commas.
    "csv": GlueFormat(
        _TEXT_IN,
        _TEXT_OUT,
        "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe",
        (("field.delim", ","), ("serialization.format", ",")),
        (("skip.header.line.count", "1"),),
    ),
}

# A part of a SerDe's class -> the format; some have several SerDes.
_SERDES = (
    ("parquet", "parquet"), ("orc", "orc"), ("avro", "avro"), ("json", "json"), ("opencsv", "csv"),
    ("lazysimple", "csv"),
)  # fmt: skip
_OPEN = ("iceberg", "delta", "hudi")


def own_parameters(name: str) -> dict[str, str]:
    """The parameters of a table that belong to its format, and not to its contract."""
    kind = FORMATS.get(name)
    if kind is None:
        return {}
    return {"EXTERNAL": "TRUE", "classification": name, **dict(kind.parameters)}


def format_of(table: Mapping[str, Any]) -> str:
    """The format of a table as Glue answers it; "" for a view, a link, and what nobody knows."""
    parameters = table.get("Parameters") or {}
    storage = table.get("StorageDescriptor") or {}
    for key in ("table_type", "spark.sql.sources.provider"):
        word = str(parameters.get(key, "")).lower()
        if word in _OPEN:
            return word
    if "hoodie" in (storage.get("InputFormat") or "").lower():
        return "hudi"
    if table.get("TargetTable") or "VIEW" in (table.get("TableType") or ""):
        return ""
    serde = ((storage.get("SerdeInfo") or {}).get("SerializationLibrary") or "").lower()
    return next((name for part, name in _SERDES if part in serde), "")
