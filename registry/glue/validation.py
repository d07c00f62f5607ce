"""Looks at every request before it leaves: AWS's model first, then what AWS keeps to itself."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from dq.contracts.shared.outcome import UsageError
from dq.registry.glue.conversion import FORMATS, NESTED, Raw, fault_of, format_of, is_own
from dq.registry.table import OPEN_FORMATS, TEXTS

# What the model of AWS says of a request and botocore does not check: sizes, patterns, enumerations.
#
# botocore itself refuses what is missing, unknown, of a wrong type, or too small.

Rule = Callable[[Raw], Iterable[str]]
"""What AWS keeps to itself about a request of one operation."""

_SHOWN_LENGTH = 60
# Java's words in the patterns of the model -> Python's.
_TRANSLATED = (
    (r"\uD800\uDC00-\uDBFF\uDFFF", r"\U00010000-\U0010FFFF"),
    (r"\p{L}\p{N}\p{P}", r"\x21-\x7e\u00a1-\uFFFD"),
    (r"\p{Graph}", r"\x21-\x7e"),
    (r"\p{L}\p{Z}\p{N}", r"\w\x20\xa0\u2000-\u200a\u3000"),
)


def refusals(operation: Any, params: Raw, rules: Mapping[str, Rule]) -> list[str]:
    """All that AWS would refuse of a request, each once: by its model, then by the rule of the operation."""
    shape, own = operation.input_shape, rules.get(operation.name)
    wrong = list(faults(shape, params)) if shape is not None else []
    return list(dict.fromkeys([*wrong, *(own(params) if own is not None else ())]))


def faults(shape: Any, value: Any, path: str = "") -> Iterator[str]:
    """What AWS would refuse in `value` by its shape, each as a text that begins with the place."""
    limits = shape.metadata
    if shape.type_name == "structure" and isinstance(value, dict):
        for name, inner in value.items():
            if name in shape.members:
                yield from faults(shape.members[name], inner, f"{path}.{name}" if path else name)
    elif shape.type_name == "list" and isinstance(value, (list, tuple)):
        yield from _size(path, len(value), limits, "items")
        for index, inner in enumerate(value):
            yield from faults(shape.member, inner, f"{path}[{index}]")
    elif shape.type_name == "map" and isinstance(value, dict):
        yield from _size(path, len(value), limits, "entries")
        for key, inner in value.items():
            yield from faults(shape.key, key, f"{path} key {_shown(key)}")
            yield from faults(shape.value, inner, f"{path}[{_shown(key)}]")
    elif shape.type_name == "string" and isinstance(value, str):
        yield from _text(path, value, limits)
    elif shape.type_name in ("integer", "long") and isinstance(value, int):
        low, high = limits.get("min", value), limits.get("max", value)
        if not low <= value <= high:
            yield f"{path}: {value} is not within {low} and {high}"


def _size(path: str, size: int, limits: Any, what: str) -> Iterator[str]:
    low, high = limits.get("min", 0), limits.get("max", size)
    if not low <= size <= high:
        yield f"{path}: {size} {what}, where AWS takes {low} to {high}"


def _text(path: str, text: str, limits: Any) -> Iterator[str]:
    # Java counts what lies beyond the basic plane as two.
    size = len(text.encode("utf-16-le", "surrogatepass")) // 2
    yield from _size(path, size, limits, "characters")
    choices = limits.get("enum")
    if choices and text not in choices:
        yield f"{path}: {_shown(text)} is none of {', '.join(choices)}"
    pattern = limits.get("pattern")
    if pattern and not compiled(pattern).fullmatch(text):
        yield f"{path}: {_shown(text)} has a character that AWS does not take there, such as a line end"


@lru_cache(256)
def compiled(pattern: str) -> re.Pattern[str]:
    """A pattern of the model for Python. Raises re.error for one that we cannot translate."""
    for java, python in _TRANSLATED:
        pattern = pattern.replace(java, python)
    return re.compile(pattern)


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN_LENGTH else f"{text[: _SHOWN_LENGTH - 1]}…")


# What a table of Glue must be that no model says: AWS refuses it later, or Athena cannot read it.
#
# Sources: AWS, "Tables, databases, and columns naming requirements" (Athena), "PartitionIndex" and
# "TableInput" (Glue API), "Bucket naming rules" (S3); Iceberg's GlueCatalog for names.

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


def created_table_faults(table: Raw) -> Iterator[str]:
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
    yield from written_table_faults(table)
    columns = [*(storage.get("Columns") or []), *(table.get("PartitionKeys") or [])]
    for column in columns:
        if not NAME.fullmatch(column.get("Name", "")):
            yield f"column {column.get('Name')!r}: not of lower case letters, digits and underscores"


def written_table_faults(table: Raw) -> Iterator[str]:
    """What is wrong with a TableInput of CreateTable or UpdateTable."""
    if table.get("Name", "") != table.get("Name", "").lower():
        yield f"TableInput.Name: {table['Name']!r} is not in lower case, and Glue would fold it"
    yield from _table_size(table)
    if format_of(table) in OPEN_FORMATS or table.get("TargetTable"):
        # Their own writers answer for the rest.
        return
    storage = table.get("StorageDescriptor") or {}
    yield from _columns(storage.get("Columns") or [], table.get("PartitionKeys") or [])
    yield from storage_faults(storage, "TableInput.StorageDescriptor")
    yield from _parameters(table, storage)


def _table_size(table: Raw) -> Iterator[str]:
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


def index_faults(wanted: Sequence[Raw], keys: Sequence[Raw] | None) -> Iterator[str]:
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


# Looks at every request before it leaves: AWS's model first, then what AWS keeps to itself.
#
# Hooked on the session, so that no client of it can skip it.

_ACCOUNT = re.compile(r"\d{12}(:.+)?")
_MOST = 10


def refuse(operation: Any, params: Raw) -> None:
    """Raises UsageError, with all that is wrong, for a request that AWS would refuse or misunderstand.

    `operation` is botocore's model of the operation.
    """
    wrong = [*_account(params), *refusals(operation, params, RULES)]
    if not wrong:
        return
    more = [f"and {len(wrong) - _MOST} more"] if len(wrong) > _MOST else []
    raise UsageError(
        f"{_subject(params)}: Glue would not take this {operation.name}: {'; '.join(wrong[:_MOST] + more)}.",
        "Nothing was sent; mend the contract.",
    )


def _subject(params: Raw) -> str:
    table = params.get("TableInput") or {}
    database = params.get("DatabaseInput") or {}
    parts = (params.get("DatabaseName"), table.get("Name"), params.get("TableName"), params.get("Name"))
    words = list(dict.fromkeys([*(part for part in parts if part), *filter(None, [database.get("Name")])]))
    return ".".join(str(word) for word in words) or "Glue"


def _account(params: Raw) -> Iterator[str]:
    catalog = params.get("CatalogId")
    if isinstance(catalog, str) and not _ACCOUNT.fullmatch(catalog):
        yield f"CatalogId: {catalog!r} is no account of 12 digits"


def _create_database(params: Raw) -> Iterator[str]:
    made = params.get("DatabaseInput") or {}
    name = made.get("Name", "")
    if not DATABASE.fullmatch(name):
        yield f"DatabaseInput.Name: {name!r} is not of lower case letters, digits and underscores"
    place = made.get("LocationUri")
    if place and not place.startswith("s3://"):
        yield f"DatabaseInput.LocationUri: {place!r} is not in S3"


def _create_table(params: Raw) -> Iterator[str]:
    made = params.get("TableInput") or {}
    yield from created_table_faults(made)
    yield from index_faults(params.get("PartitionIndexes") or [], made.get("PartitionKeys") or [])


def _update_table(params: Raw) -> Iterator[str]:
    if not params.get("VersionId"):
        yield "VersionId: missing; without it the change of another is lost"
    if "SkipArchive" not in params:
        yield "SkipArchive: missing; every write would keep an old version"
    yield from written_table_faults(params.get("TableInput") or {})


def _partitions(items: str, of: Callable[[Raw], Raw]) -> Callable[[Raw], Iterator[str]]:
    def check(params: Raw) -> Iterator[str]:
        partitions = [of(one) for one in params.get(items) or []]
        values = [tuple(one.get("Values") or ()) for one in partitions]
        if not partitions:
            yield f"{items}: empty"
        if len({len(one) for one in values}) > 1:
            yield f"{items}: some have more values than others"
        if len(set(values)) != len(values):
            yield f"{items}: a partition twice"
        if any(not one or not all(one) for one in values):
            yield f"{items}: a partition without a value"
        for number, one in enumerate(partitions):
            if one.get("StorageDescriptor"):
                path = f"{items}[{number}].StorageDescriptor"
                if not one["StorageDescriptor"].get("Location"):
                    yield f"{path}.Location: missing"
                yield from storage_faults(one["StorageDescriptor"], path)
            else:
                yield f"{items}[{number}]: no StorageDescriptor, and Glue does not take the table's"

    return check


def _update_entries(params: Raw) -> Iterator[str]:
    for number, entry in enumerate(params.get("Entries") or []):
        if list(entry.get("PartitionValueList") or []) != list(
            (entry.get("PartitionInput") or {}).get("Values") or []
        ):
            yield f"Entries[{number}]: renames a partition"
    yield from _UPDATE(params)


_UPDATE = _partitions("Entries", lambda one: one.get("PartitionInput") or {})

# Operation -> what AWS keeps to itself about its request.
RULES: dict[str, Rule] = {
    "CreateDatabase": _create_database,
    "CreateTable": _create_table,
    "UpdateTable": _update_table,
    "BatchCreatePartition": _partitions("PartitionInputList", lambda one: one),
    "BatchUpdatePartition": _update_entries,
    "CreatePartitionIndex": lambda params: index_faults([params.get("PartitionIndex") or {}], None),
}
