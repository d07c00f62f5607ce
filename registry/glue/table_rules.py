"""What a table of Glue must be that no model says: AWS refuses it later, or Athena cannot read it.

Sources: AWS, "Tables, databases, and columns naming requirements" (Athena), "PartitionIndex" and
"TableInput" (Glue API), "Bucket naming rules" (S3); Iceberg's GlueCatalog for names.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dq.registry.glue.formats import FORMATS, format_of
from dq.registry.glue.text_serdes import is_own
from dq.registry.glue.types import NESTED, fault_of
from dq.registry.reader import TEXTS
from dq.registry.table import OPEN_FORMATS

Raw = Mapping[str, Any]

NAME = re.compile(r"[a-z_][a-z0-9_]{0,254}")
DATABASE = re.compile(r"[a-z_][a-z0-9_]{0,251}")
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_DOTTED_NUMBER = re.compile(r"\d+\.\d+\.\d+\.\d+")
_SIGNS = re.compile(r"[*?\[\]{}\\\x00-\x1f\x7f]")

# Glue keeps a table as one compressed item.
_MOST_BYTES = 1_000_000
# Writers of tables say these of themselves: a table that is born with them is not read as what it is.
_RESERVED = re.compile(
    r"(?i)metadata_location|previous_metadata_location|table_type|spark\.sql\..*|numrows|numfiles|totalsize"
    r"|rawdatasize|transient_lastddltime|last_commit_time_sync|updated_by_crawler|crawlerschema.*|comment"
)
_KINDS = {name: kind for kind in FORMATS.values() for name in (kind.serde, *kind.other_serdes)}
_MOST_INDEXES = 3
_INDEX_TYPES = re.compile(r"(string|tinyint|smallint|int|bigint|date|(var)?char\(\d+\))")
_PROJECTIONS = frozenset({"enum", "integer", "date", "injected"})


def created(table: Raw) -> Iterator[str]:
    """What is wrong with a TableInput of CreateTable."""
    name = table.get("Name", "")
    if not NAME.fullmatch(name):
        yield f"TableInput.Name: {name!r} is not of lower case letters, digits and underscores (255 at most)"
    if table.get("TargetTable"):
        return
    if table.get("TableType") != "EXTERNAL_TABLE":
        yield f"TableInput.TableType: {table.get('TableType')!r}, where Athena reads EXTERNAL_TABLE"
    if "PartitionKeys" not in table:
        yield "TableInput.PartitionKeys: missing; Athena cannot read a table without, even if it is empty"
    storage = table.get("StorageDescriptor")
    if not storage:
        yield "TableInput.StorageDescriptor: missing"
        return
    if not storage.get("Location"):
        yield "TableInput.StorageDescriptor.Location: missing; Athena reads from a folder in S3"
    texts = format_of(table) in TEXTS
    for key in table.get("Parameters") or {}:
        if _RESERVED.fullmatch(key) and not (texts and is_own(key)):
            yield f"TableInput.Parameters: {key!r} is reserved for the engines that write tables"
    yield from written(table)
    columns = [*(storage.get("Columns") or []), *(table.get("PartitionKeys") or [])]
    for column in columns:
        if not NAME.fullmatch(column.get("Name", "")):
            yield f"column {column.get('Name')!r}: not of lower case letters, digits and underscores"


def written(table: Raw) -> Iterator[str]:
    """What is wrong with a TableInput of CreateTable or UpdateTable."""
    if table.get("Name", "") != table.get("Name", "").lower():
        yield f"TableInput.Name: {table['Name']!r} is not in lower case, and Glue would fold it"
    yield from _size(table)
    if format_of(table) in OPEN_FORMATS or table.get("TargetTable"):
        # Their own writers answer for the rest.
        return
    storage = table.get("StorageDescriptor") or {}
    yield from _columns(storage.get("Columns") or [], table.get("PartitionKeys") or [])
    yield from storage_faults(storage, "TableInput.StorageDescriptor")
    yield from _parameters(table, storage)


def _size(table: Raw) -> Iterator[str]:
    data = json.dumps(table, default=str).encode()
    if len(data) > _MOST_BYTES and len(gzip.compress(data, 6)) > _MOST_BYTES:
        yield "TableInput: more than a megabyte when compressed, which Glue does not keep"


def _columns(columns: Sequence[Raw], keys: Sequence[Raw]) -> Iterator[str]:
    if not columns:
        yield "TableInput.StorageDescriptor.Columns: none; Athena reads no table without a column"
    seen: set[str] = set()
    for column in (*columns, *keys):
        name = column.get("Name", "")
        if name.lower() in seen:
            yield f"column {name!r}: named twice, and Glue does not tell upper from lower case"
        seen.add(name.lower())
        if name != name.lower():
            yield f"column {name!r}: not in lower case, and Glue would fold it"
        if not name.strip():
            yield f"column {name!r}: without a name"
        why = fault_of(column["Type"]) if column.get("Type") else "it has none"
        if why:
            yield f"type of column {name!r}: {column.get('Type', '')[:60]!r}: {why}"
    for key in keys:
        if re.split(r"[(<]", key.get("Type", ""))[0] in NESTED:
            yield f"partition key {key.get('Name')!r}: a {key.get('Type')}, and keys are plain values"


def storage_faults(storage: Raw, path: str) -> Iterator[str]:
    """What is wrong with the StorageDescriptor of a table or partition: place, classes, buckets, order."""
    if storage.get("Location"):
        yield from _place(storage["Location"], f"{path}.Location")
    serde = (storage.get("SerdeInfo") or {}).get("SerializationLibrary")
    classes = {"InputFormat": storage.get("InputFormat"), "OutputFormat": storage.get("OutputFormat")}
    classes["SerdeInfo.SerializationLibrary"] = serde
    missing = [name for name, text in classes.items() if not text]
    if missing:
        yield f"{path}: without {', '.join(missing)} no engine reads the files"
    known = _KINDS.get(serde or "")
    if known is not None and not missing and (known.input, known.output) != (
        classes["InputFormat"], classes["OutputFormat"],
    ):  # fmt: skip
        yield f"{path}: {serde} does not read what {classes['InputFormat']} gives"
    names = {column.get("Name") for column in storage.get("Columns") or []}
    buckets = storage.get("BucketColumns") or []
    if buckets and not storage.get("NumberOfBuckets", 0) > 0:
        yield f"{path}.NumberOfBuckets: not above 0, and there are BucketColumns"
    sorts = storage.get("SortColumns") or []
    for name in (*buckets, *(order.get("Column") for order in sorts)):
        if name not in names:
            yield f"{path}: buckets or sorts by {name!r}, which is no column"
    for order in sorts:
        if order.get("SortOrder") not in (0, 1):
            yield f"{path}.SortColumns: order {order.get('SortOrder')!r} is neither 0 nor 1"


def _place(text: str, path: str) -> Iterator[str]:
    scheme, _, rest = text.partition("://")
    if scheme != "s3":
        yield f"{path}: {text!r} is not in S3; write s3://bucket/prefix/"
        return
    bucket, _, key = rest.partition("/")
    if not _BUCKET.fullmatch(bucket) or ".." in bucket or _DOTTED_NUMBER.fullmatch(bucket):
        yield f"{path}: {bucket!r} is no name of a bucket"
    if _SIGNS.search(key):
        yield f"{path}: {text!r} has signs of a pattern; a table is a folder"
    if "//" in f"/{key}" or any(step in (".", "..") for step in key.split("/")):
        yield f"{path}: {text!r} has an empty step, or one of dots"


def _parameters(table: Raw, storage: Raw) -> Iterator[str]:
    parameters = table.get("Parameters") or {}
    if "EXTERNAL" in parameters and parameters["EXTERNAL"].upper() != "TRUE":
        yield f"TableInput.Parameters: EXTERNAL is {parameters['EXTERNAL']!r}, and the table is external"
    if not parameters.get("skip.header.line.count", "0").isdecimal():
        yield "TableInput.Parameters: skip.header.line.count is no count"
    told, is_ = parameters.get("classification"), format_of({"StorageDescriptor": storage})
    if told in FORMATS and is_ and told != is_:
        yield f"TableInput.Parameters: classification is {told!r}, and the SerDe reads {is_}"
    if parameters.get("projection.enabled", "false").lower() == "true":
        for key in table.get("PartitionKeys") or []:
            kind = parameters.get(f"projection.{key.get('Name')}.type")
            if kind not in _PROJECTIONS:
                yield f"TableInput.Parameters: projection of {key.get('Name')!r} has the type {kind!r}"


def indexes(wanted: Sequence[Raw], keys: Sequence[Raw] | None) -> Iterator[str]:
    """What is wrong with indexes over these partition keys; None where the keys are not at hand."""
    if len(wanted) > _MOST_INDEXES:
        yield f"PartitionIndexes: {len(wanted)}, where Glue takes {_MOST_INDEXES}"
    for one in wanted:
        name, of = one.get("IndexName", ""), one.get("Keys") or []
        if not NAME.fullmatch(name):
            yield f"index {name!r}: not of lower case letters, digits and underscores"
        if len(set(of)) != len(of):
            yield f"index {name!r}: a key twice"
    for what, values in (
        ("name", [one.get("IndexName") for one in wanted]),
        ("keys", [tuple(one.get("Keys") or []) for one in wanted]),
    ):
        if len(set(values)) != len(values):
            yield f"PartitionIndexes: two with the same {what}"
    if keys is None:
        return
    types = {key["Name"]: key.get("Type", "") for key in keys}
    for one in wanted:
        for key in one.get("Keys") or []:
            if key not in types:
                yield f"index {one.get('IndexName')!r}: {key!r} is no partition key"
            elif not _INDEX_TYPES.fullmatch(types[key]):
                yield f"index {one.get('IndexName')!r}: {key!r} is a {types[key]}, which has no index"
