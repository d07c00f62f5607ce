"""TABLE: requests that AWS refuses, or takes and no engine reads; each by what is wrong in a right one."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from dq.registry.aws.glue_requests import new_table
from dq.registry.table import TableColumn, TableSpec

Change = Callable[[dict[str, Any]], Any]

SPEC = TableSpec(
    "air",
    "flights",
    "s3://lake/air",
    "parquet",
    (TableColumn("id", "bigint", "The key."), TableColumn("price", "decimal(18,2)")),
    (TableColumn("flight_date", "date"), TableColumn("hour", "int")),
    (("dq.managed-by", "dq"),),
    "Every flight.",
)


def _partition(value: str) -> dict[str, Any]:
    storage = {
        **new_table(SPEC)["StorageDescriptor"],
        "Location": f"s3://lake/air/flight_date={value}/hour=7/",
    }
    return {"Values": [value, "7"], "StorageDescriptor": storage}


RIGHT: dict[str, dict[str, Any]] = {
    "create_database": {"DatabaseInput": {"Name": "air", "LocationUri": "s3://lake/air/"}},
    "create_table": {"DatabaseName": "air", "TableInput": new_table(SPEC)},
    "update_table": {
        "DatabaseName": "air",
        "TableInput": new_table(SPEC),
        "VersionId": "1",
        "SkipArchive": True,
    },
    "delete_table": {"DatabaseName": "air", "Name": "flights"},
    "get_tables": {"DatabaseName": "air", "MaxResults": 100},
    "get_partitions": {"DatabaseName": "air", "TableName": "flights", "MaxResults": 1000},
    "batch_create_partition": {
        "DatabaseName": "air",
        "TableName": "flights",
        "PartitionInputList": [_partition("2026-11-20"), _partition("2026-11-21")],
    },
    "batch_update_partition": {
        "DatabaseName": "air",
        "TableName": "flights",
        "Entries": [
            {"PartitionValueList": ["2026-11-20", "7"], "PartitionInput": _partition("2026-11-20")},
        ],
    },
    "create_partition_index": {
        "DatabaseName": "air",
        "TableName": "flights",
        "PartitionIndex": {"IndexName": "by_day", "Keys": ["flight_date"]},
    },
}


def at(path: str, value: Any) -> Change:
    """Puts a value at a path such as `TableInput.PartitionKeys.0.Type`; `...` takes away what is there."""

    def change(request: dict[str, Any]) -> None:
        *steps, last = path.split("/")
        holder: Any = request
        for step in steps:
            holder = holder[int(step) if step.isdecimal() else step]
        place = int(last) if last.isdecimal() else last
        if value is ...:
            del holder[place]
        elif isinstance(holder, list) and place == len(holder):
            holder.append(value)
        else:
            holder[place] = value

    return change


def planted(operation: str, change: Change) -> dict[str, Any]:
    """The right request with the mistake in it."""
    made = copy.deepcopy(RIGHT[operation])
    change(made)
    return made


_T, _S, _P = "TableInput", "TableInput/StorageDescriptor", "TableInput/Parameters"
_C = f"{_S}/Columns"
_L = f"{_S}/Location"


def _type(text: str) -> Change:
    return at(f"{_C}/0/Type", text)


def _many(path: str, item: Callable[[int], Any], count: int) -> Change:
    def change(request: dict[str, Any]) -> None:
        at(path, [item(number) for number in range(count)])(request)

    return change


def _index(name: str, *keys: str) -> dict[str, Any]:
    return {"IndexName": name, "Keys": list(keys)}


def _both(first: Change, second: Change) -> Change:
    def change(request: dict[str, Any]) -> None:
        first(request)
        second(request)

    return change


# What is wrong, the operation, how it comes in, and a part of what is said.
MISTAKES: list[tuple[str, str, Change, str]] = [
    ("table name in upper case", "create_table", at(f"{_T}/Name", "Flights"), "lower case"),
    ("table name with a dash", "create_table", at(f"{_T}/Name", "air-flights"), "lower case letters"),
    ("table name with a dot", "create_table", at(f"{_T}/Name", "air.flights"), "lower case letters"),
    ("table name with a space", "create_table", at(f"{_T}/Name", "air flights"), "lower case letters"),
    ("table name that begins with a digit", "create_table", at(f"{_T}/Name", "2026_flights"), "lower case"),
    ("table name of 256 letters", "create_table", at(f"{_T}/Name", "a" * 256), "256 characters"),
    ("table name with a line end", "create_table", at(f"{_T}/Name", "a\nb"), "line break"),
    ("table name beyond ASCII", "create_table", at(f"{_T}/Name", "flüge"), "lower case letters"),
    ("database of a table too long", "create_table", at("DatabaseName", "a" * 256), "256 characters"),
    ("database name in upper case", "create_database", at("DatabaseInput/Name", "Air"), "lower case letters"),
    ("database name with a dash", "create_database", at("DatabaseInput/Name", "a-b"), "lower case letters"),
    ("database name of 253 letters", "create_database", at("DatabaseInput/Name", "a" * 253), "lower case"),
    ("database on a disk", "create_database", at("DatabaseInput/LocationUri", "/lake/air"), "not in S3"),
    (
        "database place too long",
        "create_database",
        at("DatabaseInput/LocationUri", "s3://" + "a" * 1020),
        "1025",
    ),
    ("database description too long", "create_database", at("DatabaseInput/Description", "x" * 2049), "2049"),
    (
        "database parameter key too long",
        "create_database",
        at("DatabaseInput/Parameters", {"k" * 256: "v"}),
        "256",
    ),
    ("table description too long", "create_table", at(f"{_T}/Description", "x" * 2049), "2049 characters"),
    ("description of emoji too long for Java", "create_table", at(f"{_T}/Description", "🛫" * 1025), "2050"),
    (
        "description with a control character",
        "create_table",
        at(f"{_T}/Description", "a\x00b"),
        "a character",
    ),
    ("owner too long", "create_table", at(f"{_T}/Owner", "x" * 256), "256 characters"),
    ("owner with a line end", "create_table", at(f"{_T}/Owner", "a\nb"), "line break"),
    ("managed table", "create_table", at(f"{_T}/TableType", "MANAGED_TABLE"), "EXTERNAL_TABLE"),
    ("no table type", "create_table", at(f"{_T}/TableType", ...), "EXTERNAL_TABLE"),
    ("no partition keys member", "create_table", at(f"{_T}/PartitionKeys", ...), "PartitionKeys: missing"),
    ("no storage", "create_table", at(_S, ...), "StorageDescriptor: missing"),
    ("no location", "create_table", at(_L, ...), "Location: missing"),
    ("location on a disk", "create_table", at(_L, "/lake/air"), "not in S3"),
    ("location of Hadoop's own scheme", "create_table", at(_L, "s3a://lake/air/"), "not in S3"),
    ("location in another cloud", "create_table", at(_L, "gs://lake/air/"), "not in S3"),
    ("bucket with upper case", "create_table", at(_L, "s3://Lake/air/"), "not a valid bucket name"),
    ("bucket with an underscore", "create_table", at(_L, "s3://my_lake/air/"), "not a valid bucket name"),
    ("bucket of two letters", "create_table", at(_L, "s3://ab/air/"), "not a valid bucket name"),
    ("bucket like an address", "create_table", at(_L, "s3://10.0.0.1/air/"), "not a valid bucket name"),
    ("bucket with two dots", "create_table", at(_L, "s3://my..lake/air/"), "not a valid bucket name"),
    ("location with a pattern", "create_table", at(_L, "s3://lake/air/*.parquet"), "wildcard"),
    ("location with an empty step", "create_table", at(_L, "s3://lake//air/"), "empty path segment"),
    ("location that goes up", "create_table", at(_L, "s3://lake/air/../sea/"), "'..'"),
    ("location too long", "create_table", at(_L, "s3://lake/" + "a" * 2050), "2060 characters"),
    ("no columns", "create_table", at(_C, []), "none; Athena"),
    ("column name in upper case", "create_table", at(f"{_C}/0/Name", "Id"), "not in lower case"),
    ("column name too long", "create_table", at(f"{_C}/0/Name", "c" * 256), "256 characters"),
    ("column name with a line end", "create_table", at(f"{_C}/0/Name", "i\nd"), "line break"),
    ("column name with a space", "create_table", at(f"{_C}/0/Name", "the id"), "underscores"),
    ("column name of spaces", "update_table", at(f"{_C}/0/Name", " "), "without a name"),
    ("column named twice", "create_table", at(f"{_C}/1/Name", "id"), "duplicated"),
    ("column named twice but for case", "update_table", at(f"{_C}/1/Name", "ID"), "duplicated"),
    ("column that is a partition key too", "create_table", at(f"{_C}/1/Name", "hour"), "duplicated"),
    ("column comment too long", "create_table", at(f"{_C}/0/Comment", "x" * 256), "256 characters"),
    ("column comment with a line end", "create_table", at(f"{_C}/0/Comment", "two\nlines"), "line break"),
    ("column comment too long in an update", "update_table", at(f"{_C}/0/Comment", "x" * 256), "256"),
    ("column without a type", "create_table", at(f"{_C}/0/Type", ...), "missing"),
    ("type that is none", "create_table", _type("number"), "not a type"),
    ("type of Spark only", "create_table", _type("long"), "writes it as bigint"),
    ("text", "create_table", _type("text"), "writes it as string"),
    ("timestamp without zone", "create_table", _type("timestamp_ntz"), "writes it as timestamp"),
    ("variant", "create_table", _type("variant"), "supports variant"),
    ("interval", "create_table", _type("interval"), "supports interval"),
    ("type in upper case", "create_table", _type("BIGINT"), "lower case"),
    ("type with a space", "create_table", _type("decimal(18, 2)"), "without spaces"),
    ("decimal of 39 digits", "create_table", _type("decimal(39,2)"), "outside 1 to 38"),
    ("decimal with more behind the point", "create_table", _type("decimal(5,6)"), "outside"),
    ("char of 256", "create_table", _type("char(256)"), "limit of 255 characters"),
    ("varchar of 65536", "create_table", _type("varchar(65536)"), "limit of 65535 characters"),
    ("varchar without a length", "create_table", _type("varchar"), "needs a length"),
    ("array of nothing", "create_table", _type("array<>"), "type of column 'id'"),
    ("array not closed", "create_table", _type("array<int"), "'>' is missing"),
    ("map of one type", "create_table", _type("map<string>"), "map takes 2"),
    ("struct with a field twice", "create_table", _type("struct<a:int,a:int>"), "two fields"),
    ("struct with unnamed fields", "create_table", _type("struct<int,string>"), "type of column 'id'"),
    ("variant deep inside", "create_table", _type("array<struct<a:variant>>"), "supports variant"),
    ("type of 140,000 letters", "create_table", _type("string" * 24_000), "144000 characters"),
    ("nested partition key", "create_table", at(f"{_T}/PartitionKeys/0/Type", "array<int>"), "plain values"),
    ("binary partition key", "create_table", at(f"{_T}/PartitionKeys/0/Type", "binary"), "plain values"),
    ("parameter key too long", "create_table", at(f"{_P}/" + "k" * 256, "v"), "256 characters"),
    ("parameter value too long", "create_table", at(f"{_P}/dq.doc", "v" * 512_001), "512001 characters"),
    ("parameter key with a line end", "create_table", at(f"{_P}/a\nb", "v"), "line break"),
    ("Iceberg's pointer", "create_table", at(f"{_P}/metadata_location", "s3://x/y"), "reserved"),
    ("Iceberg's table type", "create_table", at(f"{_P}/table_type", "ICEBERG"), "reserved"),
    ("Spark's schema", "create_table", at(f"{_P}/spark.sql.sources.schema", "{}"), "reserved"),
    ("a crawler's mark", "create_table", at(f"{_P}/UPDATED_BY_CRAWLER", "x"), "reserved"),
    ("statistics of Hive", "create_table", at(f"{_P}/numRows", "1"), "reserved"),
    ("not external", "update_table", at(f"{_P}/EXTERNAL", "FALSE"), "EXTERNAL is 'FALSE'"),
    ("header that is no count", "create_table", at(f"{_P}/skip.header.line.count", "yes"), "not a number"),
    ("classification of another format", "create_table", at(f"{_P}/classification", "csv"), "classification"),
    ("projection without its types", "create_table", at(f"{_P}/projection.enabled", "true"), "projection of"),
    ("no SerDe", "create_table", at(f"{_S}/SerdeInfo", ...), "no engine can read"),
    ("no input format", "create_table", at(f"{_S}/InputFormat", ...), "no engine can read"),
    (
        "input of another format",
        "create_table",
        at(f"{_S}/InputFormat", "org.apache.hadoop.mapred.TextInputFormat"),
        "cannot read the output of",
    ),
    ("input format too long", "create_table", at(f"{_S}/InputFormat", "x" * 129), "129 characters"),
    ("buckets by no column", "create_table", at(f"{_S}/BucketColumns", ["nope"]), "which is not a column"),
    ("buckets without a number", "create_table", at(f"{_S}/BucketColumns", ["id"]), "must be above 0"),
    (
        "sorts by no column",
        "create_table",
        at(f"{_S}/SortColumns", [{"Column": "nope", "SortOrder": 1}]),
        "not a column",
    ),
    (
        "order that is none",
        "create_table",
        at(f"{_S}/SortColumns", [{"Column": "id", "SortOrder": 2}]),
        "order 2",
    ),
    (
        "four indexes",
        "create_table",
        at("PartitionIndexes", [_index(f"i{n}", "hour") for n in range(4)]),
        "allows 3",
    ),
    (
        "index over a type that has none",
        "create_table",
        _both(at(f"{_T}/PartitionKeys/1/Type", "timestamp"), at("PartitionIndexes", [_index("i", "hour")])),
        "a timestamp, which cannot be indexed",
    ),
    ("index without keys", "create_partition_index", at("PartitionIndex/Keys", []), "Keys"),
    ("index of no key", "create_table", at("PartitionIndexes", [_index("i", "id")]), "not a partition key"),
    (
        "two indexes of one name",
        "create_table",
        at("PartitionIndexes", [_index("i", "hour"), _index("i", "flight_date")]),
        "same name",
    ),
    (
        "two indexes of the same keys",
        "create_table",
        at("PartitionIndexes", [_index("i", "hour"), _index("j", "hour")]),
        "same keys",
    ),
    (
        "index with a key twice",
        "create_partition_index",
        at("PartitionIndex/Keys", ["hour", "hour"]),
        "duplicate key",
    ),
    (
        "index name with a dash",
        "create_partition_index",
        at("PartitionIndex/IndexName", "by-day"),
        "lower case",
    ),
    (
        "table of more than a megabyte",
        "create_table",
        _many(
            _C,
            lambda n: {"Name": f"c{n}", "Type": "int", "Comment": f"{n**9:x}{n * 7919**5:x}"},
            60_000,
        ),
        "a megabyte",
    ),
    ("catalog that is no account", "create_table", at("CatalogId", "main"), "12-digit"),
    ("catalog of eleven digits", "delete_table", at("CatalogId", "12345678901"), "12-digit"),
    ("update without a version", "update_table", at("VersionId", ...), "VersionId: missing"),
    ("update that archives without a word", "update_table", at("SkipArchive", ...), "SkipArchive: missing"),
    ("version too long", "update_table", at("VersionId", "1" * 256), "256 characters"),
    ("view action that is none", "update_table", at("ViewUpdateAction", "MAYBE"), "not one of ADD"),
    ("page of 101 tables", "get_tables", at("MaxResults", 101), "101 is not between"),
    ("page of 1,001 partitions", "get_partitions", at("MaxResults", 1001), "1001 is not between"),
    ("expression too long", "get_partitions", at("Expression", "a" * 2049), "2049 characters"),
    (
        "101 partitions at once",
        "batch_create_partition",
        _many("PartitionInputList", lambda n: _partition(f"d{n}"), 101),
        "101 items",
    ),
    ("no partitions at all", "batch_create_partition", at("PartitionInputList", []), "empty"),
    (
        "a partition twice",
        "batch_create_partition",
        at("PartitionInputList/1/Values", ["2026-11-20", "7"]),
        "duplicate partition",
    ),
    (
        "a partition with one value less",
        "batch_create_partition",
        at("PartitionInputList/1/Values", ["x"]),
        "more values",
    ),
    ("an empty value", "batch_create_partition", at("PartitionInputList/1/Values/1", ""), "without a value"),
    ("a value too long", "batch_create_partition", at("PartitionInputList/1/Values/1", "v" * 1025), "1025"),
    (
        "partition without storage",
        "batch_create_partition",
        at("PartitionInputList/1/StorageDescriptor", ...),
        "no StorageDescriptor",
    ),
    (
        "partition without a place",
        "batch_create_partition",
        at("PartitionInputList/1/StorageDescriptor/Location", ...),
        "Location: missing",
    ),
    (
        "partition on a disk",
        "batch_create_partition",
        at("PartitionInputList/1/StorageDescriptor/Location", "/x"),
        "not in S3",
    ),
    (
        "101 updates at once",
        "batch_update_partition",
        _many(
            "Entries",
            lambda n: {"PartitionValueList": [f"d{n}", "7"], "PartitionInput": _partition(f"d{n}")},
            101,
        ),
        "101 items",
    ),
    (
        "an update that renames",
        "batch_update_partition",
        at("Entries/0/PartitionValueList", ["2026-11-21", "7"]),
        "renames",
    ),
]
