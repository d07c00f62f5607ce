"""TABLE: odd contracts for catalogs, each with the data that it promises or the reason why it is refused."""

from __future__ import annotations

from dataclasses import dataclass, field

from fakes.lakehouse import SPARK

CONTRACT = """\
apiVersion: v3.2.0
kind: DataContract
id: {name}
version: 1.0.0
status: {status}
domain: odd
servers:
{servers}
schema:
  - name: {table}
{object}\
    properties:
{properties}
"""


@dataclass(frozen=True)
class Odd:
    """A contract of one table.

    `properties` are lines of YAML; one with `# here` is that of the refusal. `select` makes the rows, which
    are written as `format`; `files` are texts instead. `ends` says by catalog how it ends, where that is not
    `create`: another action, or a part of the finding that refuses it ("" stands for every catalog).
    """

    properties: str
    select: str = ""
    format: str = "parquet"
    files: dict[str, str] = field(default_factory=dict)
    ends: dict[str, str] = field(default_factory=dict)
    object: str = ""
    server: str = ""
    table: str = ""
    path: str = ""
    status: str = "active"
    more_servers: str = ""


def plain(*columns: str) -> str:
    """Lines of properties, each as `name type`, with more keys behind a comma."""
    lines = []
    for column in columns:
        name, _, rest = column.partition(" ")
        kind, _, more = rest.partition(", ")
        lines.append(f"{{name: {name}, physicalType: '{kind}'{', ' + more if more else ''}}}")
    return "\n".join(f"      - {line}" for line in lines)


KEY = "partitioned: true, partitionKeyPosition: "
ID = plain("id bigint")
WAITS = {"glue": "wait", "hive": "wait"}
OTHER = {"iceberg": "an Iceberg catalog cannot hold"}
ROW = "SELECT 1L AS id"


def partitioned(kind: str, value: str) -> Odd:
    return Odd(plain("id bigint", f"part {kind}, {KEY}1"), f"SELECT 1L AS id, {value} AS part")


def text(terms: str, body: str, columns: str, ends: dict[str, str] | None = None, **more: object) -> Odd:
    server = f"    customProperties: [{{property: csv, vendor: dq, value: {{{terms}}}}}]\n"
    return Odd(columns, format="csv", files={"a.csv": body}, server=server, ends=OTHER | (ends or {}), **more)  # type: ignore[arg-type]


LONG = "n" * 255
# Spark 3.5 knows no variants.
OLD_SPARK = {"hive": "does not support"} if SPARK.startswith("3.") else {}
NAMES = dict.fromkeys(("glue", "hive", "local", "iceberg"), "no catalog accepts")


def refused(reason: str) -> dict[str, str]:
    return dict.fromkeys(("glue", "hive", "local", "iceberg"), reason)


ODD = {
    "nested": Odd(
        plain("id bigint", "a struct<x:array<struct<y:map<string,decimal(10,2)>>>,z:date>"),
        "SELECT 1L AS id, named_struct('x', array(named_struct('y', map('k', CAST(1.5 AS DECIMAL(10,2))))),"
        " 'z', DATE'2026-11-20') AS a UNION ALL SELECT 2L, NULL",
    ),
    "maps": Odd(
        plain("m map<string,array<int>>", "n map<int,struct<a:string>>"),
        "SELECT map('a', array(1, NULL)) AS m, map(1, named_struct('a', 'x')) AS n",
    ),
    "arrays": Odd(plain("a array<array<int>>", "b array<date>"),
                  "SELECT array(array(1), array()) AS a, array(DATE'2026-01-01', NULL) AS b"),
    "decimals": Odd(
        plain("a decimal(38,0)", "b decimal(38,38)", "c decimal(1,0)", "d decimal(18,2)"),
        "SELECT CAST('99999999999999999999999999999999999999' AS DECIMAL(38,0)) AS a,"
        " CAST('0.12345678901234567890123456789012345678' AS DECIMAL(38,38)) AS b,"
        " CAST(-9 AS DECIMAL(1,0)) AS c, CAST('-0.01' AS DECIMAL(18,2)) AS d",
    ),
    "numbers": Odd(
        plain("a tinyint", "b smallint", "c int", "d float", "e double", "f boolean"),
        "SELECT CAST(-128 AS TINYINT) AS a, CAST(32767 AS SMALLINT) AS b, 1 AS c, CAST(0.5 AS FLOAT) AS d,"
        " CAST('NaN' AS DOUBLE) AS e, true AS f",
    ),
    "bounded_texts": Odd(plain("a char(3)", "b varchar(5)"),
                         "SELECT 'abc' AS a, 'abcde' AS b"),
    "binary_data": Odd(plain("a binary"), "SELECT X'00FF' AS a"),
    "instants": Odd(plain("a timestamp", "b date"),
                    "SELECT TIMESTAMP'2026-11-20 10:00:00.123456' AS a, DATE'1582-10-15' AS b"),
    "civil_times": Odd(plain("a timestamp_ntz"), "SELECT TIMESTAMP_NTZ'2026-11-20 10:00:00' AS a"),
    "variants": Odd(plain("id bigint", "v variant"),
                    ends={"glue": "neither Glue nor Athena supports variant",
                          "iceberg": "Iceberg has no variant"} | OLD_SPARK),
    "logical_alone": Odd(
        "\n".join(
            f"      - {{name: c_{kind}, logicalType: {kind}}}"
            for kind in ("string", "integer", "number", "boolean", "date", "timestamp", "time", "object")
        ),
        "SELECT 'a' AS c_string, 1L AS c_integer, CAST(1.5 AS DOUBLE) AS c_number, true AS c_boolean,"
        " DATE'2026-11-20' AS c_date, TIMESTAMP'2026-11-20 00:00:00' AS c_timestamp, '10:00' AS c_time,"
        " '{}' AS c_object",
    ),
    "an_array_of_anything": Odd("      - {name: a, logicalType: array}", "SELECT array('x') AS a"),
    "a_vector": Odd("      - {name: a, logicalType: vector, items: {logicalType: number}}",
                    "SELECT array(CAST(0.5 AS DOUBLE)) AS a"),
    "reserved_words": Odd(
        plain("select bigint", "order string", "group int", "table string", "date date", "timestamp string"),
        "SELECT 1L AS `select`, 'a' AS `order`, 1 AS `group`, 't' AS `table`, DATE'2026-01-01' AS `date`,"
        " 'x' AS `timestamp`",
    ),
    "user": Odd(plain("id bigint", "end int, partitioned: true"), "SELECT 1L AS id, 1 AS `end`"),
    "upper_case": Odd(plain("Id bigint", "PRICE double"), "SELECT 1L AS Id, CAST(2 AS DOUBLE) AS PRICE"),
    "underscores": Odd(plain("_id bigint", "__x int"), "SELECT 1L AS _id, 1 AS __x"),
    "a_long_table": Odd(ID, ROW, table=LONG, path="lake/a_long_table"),
    "a_long_column": Odd(plain(f"{LONG} bigint"), f"SELECT 1L AS {LONG}"),
    "too_long_a_column": Odd(plain(f"{LONG}n bigint") + "  # here", ends=NAMES),
    "too_long_a_table": Odd(ID, table=LONG + "n", path="lake/x", ends=refused("no catalog accepts the name")),
    "a_long_partition_key": Odd(
        plain("id bigint", f"{'k' * 200} string, {KEY}1"),
        ends={"hive": "Hive's metastore allows 128"},
    ),
    "five_hundred_columns": Odd(
        plain(*(f"c{at} {'decimal(18,2)' if at % 2 else 'string'}" for at in range(500))),
        "SELECT " + ", ".join(
            f"CAST({at} AS {'DECIMAL(18,2)' if at % 2 else 'STRING'}) AS c{at}" for at in range(500)
        ),
    ),
    "a_wide_struct": Odd(
        plain(f"s struct<{','.join(f'a_rather_long_field_{at}:string' for at in range(300))}>"),
        "SELECT named_struct("
        + ", ".join(f"'a_rather_long_field_{at}', '{at}'" for at in range(300)) + ") AS s",
    ),
    "deep": Odd(plain("a " + "array<" * 12 + "int" + ">" * 12),
                "SELECT " + "array(" * 12 + "1" + ")" * 12 + " AS a"),
    "keys_alone": Odd(plain(f"day date, {KEY}1"), ends=refused("has no columns besides its partition keys")),
    "a_struct_as_key": Odd(
        ID + "\n" + plain(f"k struct<a:int>, {KEY}1") + "  # here", ends=refused("partition key 'k' has type")
    ),
    "a_map_as_key": Odd(
        ID + "\n" + plain(f"k map<int,int>, {KEY}1") + "  # here", ends=refused("partition key 'k' has type")
    ),
    "by_date": partitioned("date", "DATE'2026-11-20'"),
    "by_int": partitioned("int", "7"),
    "by_bigint": partitioned("bigint", "-9007199254740993L"),
    "by_text": partitioned("string", "'a/b c%d=e:f''g'"),
    "by_umlaut": partitioned("string", "'K\u00f6ln \u6771'"),
    "by_boolean": partitioned("boolean", "true"),
    "by_decimal": partitioned("decimal(10,2)", "CAST(1.50 AS DECIMAL(10,2))"),
    "by_timestamp": partitioned("timestamp", "TIMESTAMP'2026-11-20 10:00:00'"),
    "by_varchar": partitioned("varchar(10)", "'abc'"),
    "by_three": Odd(
        plain("id bigint", f"c int, {KEY}3", f"a date, {KEY}1", f"b string, {KEY}2"),
        "SELECT 1L AS id, DATE'2026-11-20' AS a, 'x' AS b, 3 AS c",
    ),
    "several_servers": Odd(
        ID, more_servers="  - {server: other, type: local, path: lake/x, format: parquet}\n",
        ends=refused("has several servers"),
    ),
    "a_variable": Odd(ID, path="lake/${NO_SUCH_VARIABLE}",
                      ends=refused("needs the variable NO_SUCH_VARIABLE")),
    "a_pattern": Odd(ID, ROW, path="lake/a_pattern/*.parquet"),
    "spaces": Odd(plain("id bigint", f"part string, {KEY}1"), "SELECT 1L AS id, 'a b' AS part",
                  path="lake/with some spaces"),
    "umlauts_in_the_path": Odd(ID, ROW, path="lake/Stra\u00dfe"),
    "a_column_of_umlauts": Odd(plain("stra\u00dfe string") + "  # here", ends=NAMES),
    "a_column_of_digits": Odd(plain("1a string") + "  # here", ends=NAMES),
    "a_column_with_a_dot": Odd("      - {name: 'a.b', physicalType: string}  # here", ends=NAMES),
    "case_alone": Odd(ID + "\n" + plain("ID string") + "  # here",
                      ends=refused("has a duplicate column 'id'")),
    "fields_with_a_hyphen": Odd(plain("s struct<from-to:int>") + "  # here",
                                ends=refused("the field name 'from-to'")),
    "fields_by_case_alone": Odd(plain("s struct<a:int,A:int>") + "  # here",
                                ends=refused("the type of 's' cannot be read")),
    "a_table_with_a_dot": Odd(ID, table="sales.orders", ends=refused("sales.orders")),
    "texts": Odd(
        plain(f"id bigint, description: \"it's `a` $x ${{y}} \\\\ ; -- /* \\n {'long ' * 99}\"",
              "n string, description: '\u6771\u4eac'"),
        "SELECT 1L AS id, 'x' AS n",
        object=f"    description: \"two\\nlines; it's ${{z}} {'and more ' * 400}\"\n",
    ),
    "upper_case_json": Odd(
        plain("Id bigint", "Place struct<Zip:string,AT:date>"), format="json", ends=OTHER,
        files={"a.json": '{"Id": 1, "Place": {"Zip": "07", "AT": "2026-11-20"}}\n{"Id": 2}\n'},
        select="SELECT 1L AS Id, named_struct('Zip', '07', 'AT', DATE'2026-11-20') AS Place"
        " UNION ALL SELECT 2L, NULL",
    ),
    "nested_json": Odd(
        plain("a array<struct<b:int>>", "m map<string,double>"), format="json", ends=OTHER,
        files={"a.json": '{"a": [{"b": 1}, {}], "m": {"x": 1.5}}\n'},
        select="SELECT array(named_struct('b', 1), named_struct('b', CAST(NULL AS INT))) AS a,"
        " map('x', CAST(1.5 AS DOUBLE)) AS m",
    ),
    "csv_with_header": text(
        "quote: none, delimiter: ;", "id;price;note\n1;1.50;a,b\n",
        plain("id int", "price decimal(9,2)", "note string"),
        select="SELECT 1 AS id, CAST(1.5 AS DECIMAL(9,2)) AS price, 'a,b' AS note",
    ),
    "csv_in_quotes": text(
        "", 'id,note\n1,"a,b"\n', plain("id int", "note string"), select="SELECT 1 AS id, 'a,b' AS note",
        ends={"glue": "reads only strings, and id is a int"},
    ),
    "csv_of_texts": text("header: false", '1,"a,""b"\n', plain("a string", "b string"),
                         select="SELECT '1' AS a, 'a,\"b' AS b"),
    "csv_with_wrong_terms": text("delimiter: '\"'", "", ID, ends=refused("must differ")),
    "csv_with_a_map": text("", "", ID + "\n" + plain("m map<int,int>") + "  # here",
                           ends=refused("CSV holds only plain values")),
    "orc_files": Odd(plain("id bigint", "a array<struct<b:decimal(5,1)>>", f"part int, {KEY}1"),
                     "SELECT 1L AS id, array(named_struct('b', CAST(0.5 AS DECIMAL(5,1)))) AS a, 1 AS part",
                     format="orc", ends=OTHER),
    "avro_files": Odd(plain("id bigint", "note string"), format="avro", ends=OTHER),
    "a_view": Odd(ID, object="    physicalType: view\n", ends=WAITS | {"local": "wait", "iceberg": "wait"}),
    "iceberg_table": Odd(ID, format="iceberg", ends=WAITS),
    "delta_table": Odd(ID, format="delta", ends=WAITS | OTHER),
    "hudi_table": Odd(ID, format="hudi", ends=WAITS | OTHER),
    "a_draft": Odd(ID, status="draft", ends=refused("")),
    "a_retired_one": Odd(ID, status="retired", ends=refused("held")),
}  # fmt: skip


def contract(name: str, odd: Odd, catalog: str) -> str:
    """The contract of this name for a catalog: of data in S3 or in a folder, of files or of Iceberg."""
    in_s3 = catalog == "glue"
    # What stands as Parquet for others is a table of Iceberg there; other formats it does not hold.
    format = "iceberg" if catalog == "iceberg" and odd.format == "parquet" else odd.format
    path = odd.path or f"lake/{name}"
    where = f"type: s3\n    location: 's3://{path}'" if in_s3 else f"type: local\n    path: '{path}'"
    servers = f"  - server: lake\n    {where}\n    format: {format}\n{odd.server}{odd.more_servers}"
    return CONTRACT.format(
        name=name,
        status=odd.status,
        servers=servers.rstrip("\n"),
        table=f"'{odd.table or name}'",
        object=odd.object,
        properties=odd.properties.rstrip("\n"),
    )
