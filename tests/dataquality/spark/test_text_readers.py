"""CSV and JSON of several files on Spark, and texts as exact values."""

from __future__ import annotations

import datetime as dt
import gzip
import io
import json
import math
import random
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from fakes.opened import open_frame
from fakes.reach import anywhere

from dq.contracts.check_result import Status
from dq.contracts.outcome import ReadError
from dq.contracts.sql import text as sql
from dq.contracts.types import parse as parse_type
from dq.contracts.yaml.parse import parse
from dq.dataquality.check import check
from dq.dataquality.report import Report
from dq.dataquality.request import Request
from dq.dataquality.spark.dataset import locate
from dq.dataquality.sql_values import cast
from dq.dataquality.text import NotAValue, value_from_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

CONTRACT = """
apiVersion: v3.2.0
kind: DataContract
id: shop
version: 1.0.0
servers: [{server: lake, type: local, path: '%s', format: %s}]
schema:
  - name: orders
    quality: [{metric: rowCount, mustBe: %d}]
    properties:
      - {name: id, logicalType: integer, unique: true, logicalTypeOptions: {maximum: 9}}
      - {name: price, logicalType: number, physicalType: 'decimal(10,2)', logicalTypeOptions: {minimum: 10}}
"""
DAY = "      - {name: day, logicalType: date, partitioned: true, partitionKeyPosition: 1}\n"


def run(spark: SparkSession, lake: Path, form: str, rows: int, day: str | None = None) -> Report:
    text = CONTRACT % (lake, form, rows) + (DAY if day else "")
    made = parse(text.encode(), "shop.odcs.yaml").contract
    assert made is not None
    data = locate(made, made.objects[0], None, anywhere())
    return check(Request(made, data, spark=spark, partitions=[{"day": day}] if day else None))


def odd(report: Report) -> dict[str, str]:
    return {f"{one.property} {one.check}": one.status.value for one in report.results if one.status != "pass"}


def test_csv_columns_are_found_by_the_name_in_each_files_header(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,price\n1,10\n")
    (tmp_path / "b.csv").write_text("price,id\n20,2\n")
    (tmp_path / "c [x].csv.gz").write_bytes(gzip.compress(b"id\n3\n"))
    (tmp_path / "empty.csv").write_text("")

    report = run(spark, tmp_path, "csv", 3)

    assert odd(report) == {}
    columns = {one.property: one.message for one in report.results if one.check == "columns"}
    assert columns["price"] == "orders.price: decimal(10,2), in 2 of 3 files, NULL in the others"


LAKE = {
    "csv": ("id,price,day\n1,10,2020-02-02\n", "id,price,day\nodd,10,2020-02-02\n"),
    "json": ('{"id": 1, "price": 10, "day": "2020-02-02"}\n', '{"id": "odd", "price": 10, "day": 5}\n'),
}


def test_files_of_another_format_are_named(spark: SparkSession, tmp_path: Path) -> None:
    # Numbers that are not UTF-8, without compression.
    table = pa.table({"id": pa.array([0x90] * 9, pa.int64())})
    pq.write_table(table, tmp_path / "part-0.parquet", compression="none", use_dictionary=False)

    with pytest.raises(ReadError, match=r"part-0\.parquet is a file in the format parquet, not CSV\."):
        run(spark, tmp_path, "csv", 9)


@pytest.mark.parametrize(("form", "good", "bad"), [(form, *texts) for form, texts in LAKE.items()], ids=LAKE)
def test_only_the_partition_asked_for_is_looked_at(
    spark: SparkSession, tmp_path: Path, form: str, good: str, bad: str
) -> None:
    for day, text in (("2026-01-01", good), ("2026-01-02", bad)):
        (tmp_path / f"day={day}").mkdir()
        (tmp_path / f"day={day}" / f"part.{form}").write_text(text)

    first = run(spark, tmp_path, form, 1, "2026-01-01")
    second = run(spark, tmp_path, form, 1, "2026-01-02")

    # What is promised of the whole table meets the other day's value, and cannot be told.
    assert odd(first) == {"id unique": "error"}
    assert odd(second) == {"id columns": "fail", "id bounds": "error"}


TEXTS = (
    "|1x| 1|1 |+1|-0|007|127|128|-128|-129|9223372036854775807|-9223372036854775808|9223372036854775808|1e3|"
    "1.5E-1|.5|5.|.|e1|1e|999.99|999.995|999.990|99999999999999999999999999999999999999|0.00000000001|1e400|"
    "-1e400|1e-400|NaN|nan|Infinity|-Inf|inf|1d|1f|0x1|1_000|\u0663|true|TRUE|t|yes|2026-02-28|2024-02-29|"
    "2023-02-29|1500-01-01|0000-01-01|2026-1-1|20260101|2026-W01-1|2026-01-01T10:00|2026-01-01 10:00:00|"
    "2026-01-01T10:00:00.123456789Z|2026-01-01T10:00:00+02:00|2026-01-01T10:00:00+0200|2026-01-01T24:00:00|"
    "2026-01-01T10:00:60|2026-01-01Z|9999-12-31|2026-01-01T10:00:00-18:00|2026-01-01T10:00:00+18:01|1\n|"
    "2026-01-01\n|12:00|0000000000000000000000000000000000000000000000000000000000000001"
)


def test_a_text_is_the_same_value_for_spark_as_for_the_sample(spark: SparkSession) -> None:
    kinds = [
        "tinyint", "int", "bigint", "decimal(5,2)", "decimal(38,10)", "decimal(38,0)", "double", "boolean",
        "date", "timestamp", "timestamp_ntz",
    ]  # fmt: skip
    random_ = random.Random(5)
    texts = TEXTS.split("|")
    texts += ["".join(random_.choices("0159.eE+-", k=random_.randint(1, 8))) for _ in range(400)]
    frame = spark.createDataFrame([(text,) for text in texts], "v string")

    rows = frame.selectExpr(
        *(f"{cast(parse_type(kind), 'v')} AS {sql.name(kind)}" for kind in kinds)
    ).collect()

    differ = []
    for text, row in zip(texts, rows, strict=True):
        for kind in kinds:
            try:
                own = value_from_text(parse_type(kind), text)
            except NotAValue:
                own = None
            theirs = row[kind]
            if isinstance(own, dt.datetime) and own.tzinfo is not None:
                own = own.astimezone(dt.UTC).replace(tzinfo=None)
                theirs = None if theirs is None else theirs.astimezone(dt.UTC).replace(tzinfo=None)
            same = own == theirs or (isinstance(own, float) and math.isnan(own) and math.isnan(theirs))
            if not same or (own is None) is not (theirs is None):
                differ.append((text, kind, own, row[kind]))
    assert differ == []


NESTED = """\
      - name: price
        logicalType: object
        properties: [{name: net, logicalType: number}]
      - {name: tax, physicalType: 'struct<rate: double>'}
      - {name: lines, logicalType: array, items: {logicalType: object, properties: [
          {name: net, logicalType: number}]}}
"""
BEHIND_DOTS = {
    "SELECT MAX(o.amount) FROM {object} o": "amount",
    "SELECT COUNT(*) FROM {object} a JOIN {object} b ON a.id = b.id WHERE b.amount > 10": "amount",
    "SELECT MAX(price.gross) FROM {object}": "gross",
    "SELECT MAX(o.price.gross) FROM {object} o": "gross",
    "SELECT COUNT(*) FROM {object} WHERE price.gross > 10": "gross",
    "SELECT MAX(p.gross) FROM (SELECT price AS p FROM {object}) x": "gross",
    "SELECT MAX(array_max(transform(lines, x -> x.gross))) FROM {object}": "gross",
    "SELECT MAX(lines[0].gross) FROM {object}": "gross",
    "SELECT MAX(price.net) FROM {object}": None,
    "SELECT MAX(o.price.net + o.tax.rate) FROM {object} o": None,
    "SELECT MAX(x.g) FROM (SELECT price.net AS g FROM {object}) x": None,
    "SELECT MAX(named_struct('g', price.net).g) FROM {object}": None,
    "SELECT MAX(e.pos) FROM (SELECT posexplode(lines) FROM {object}) e": None,
}


def test_sql_reads_no_field_that_the_contract_does_not_declare(spark: SparkSession, tmp_path: Path) -> None:
    prices = '"price":{"net":%s,"gross":%s},"tax":{"rate":1.5},"lines":[{"net":1,"gross":%s}]'
    rows = f'{{"id":%d,"amount":%s,{prices}}}\n'
    (tmp_path / "a.json").write_text(rows % (1, -5, 9, 9, 9) + rows % (2, 10.5, 10, 10, 10))
    head = (CONTRACT % (tmp_path, "json", 2)).splitlines(keepends=True)
    rules = "".join(f'      - {{type: sql, query: "{query}", mustBeLessThan: 99}}\n' for query in BEHIND_DOTS)
    made = parse(("".join(head[:-1]) + NESTED + "    quality:\n" + rules).encode(), "shop.odcs.yaml").contract
    assert made is not None

    report = check(Request(made, locate(made, made.objects[0], None, anywhere()), spark=spark))

    told = [one for one in report.results if one.check == "sql_rule"]
    for (query, field), one in zip(BEHIND_DOTS.items(), told, strict=True):
        said = f"it reads {field}, which the contract does not declare" in one.message
        assert said == (field is not None), query
        assert (one.status == "pass") == (field is None), (query, one.message)


def test_the_frame_of_an_empty_folder_has_the_contracts_columns(spark: SparkSession, tmp_path: Path) -> None:
    made = parse((CONTRACT % (tmp_path, "json", 0)).encode(), "shop.odcs.yaml").contract
    assert made is not None

    frame = open_frame(spark, locate(made, made.objects[0], None, anywhere()))

    assert (frame.count(), dict(frame.dtypes)) == (0, {"id": "bigint", "price": "decimal(10,2)"})


RULES = """\
    quality:
      - {type: sql, query: 'SELECT MIN(amount) FROM {object}', mustBe: -5}
      - {type: sql, query: 'SELECT COUNT(*) FROM {object} WHERE Amount > 10', mustBe: 0}
      - {type: sql, query: 'SELECT MIN(id) FROM {object}', mustBe: 1}
      - {metric: rowCount, mustBe: 2, customProperties: [
          {property: scope, vendor: dq, value: {where: amount < 9}}]}
"""


UNDECLARED = {
    "csv": ("id,price,amount\n1,10,-5\n2,20,10.5\n", "CSV holds texts alone"),
    "json": (
        '{"id":1,"price":10,"amount":-5}\n{"id":2,"price":20,"amount":10.5}\n',
        "what nobody declares is read from JSON as texts",
    ),
}


@pytest.mark.parametrize("form", UNDECLARED)
def test_sql_reads_no_column_of_texts_that_the_contract_does_not_declare(
    spark: SparkSession, tmp_path: Path, form: str
) -> None:
    rows, why = UNDECLARED[form]
    (tmp_path / f"a.{form}").write_text(rows)
    text = CONTRACT % (tmp_path, form, 2)
    text = text.replace("    quality: [{metric: rowCount, mustBe: 2}]\n", RULES)
    declared = f"{text}      - {{name: amount, logicalType: number}}\n"
    told = []

    for each in (text, declared):
        made = parse(each.encode(), "shop.odcs.yaml").contract
        assert made is not None
        report = check(Request(made, locate(made, made.objects[0], None, anywhere()), spark=spark))
        told.append([one for one in report.results if one.check in ("sql_rule", "row_count")])

    assert [one.status for one in told[0]] == ["error", "error", "pass", "error"]
    assert told[0][0].message == (
        f"orders: it reads amount, which the contract does not declare, and {why};"
        " add it to the properties with its logicalType"
    )
    assert [one.status for one in told[1]] == ["pass", "fail", "pass", "fail"]


@pytest.fixture
def passing_over(spark: SparkSession) -> Iterator[None]:
    """The session as it is set for jobs that would rather go on."""
    spark.conf.set("spark.sql.files.ignoreCorruptFiles", "true")
    yield
    spark.conf.set("spark.sql.files.ignoreCorruptFiles", "false")


@pytest.mark.usefixtures("passing_over")
@pytest.mark.parametrize("form", ["csv", "json", "parquet"])
def test_a_file_that_is_cut_off_is_passed_over_in_no_session(
    spark: SparkSession, tmp_path: Path, form: str
) -> None:
    # So many that the end is not seen with the head.
    dice = random.Random(1)
    rows = pa.table({"id": range(9_000), "price": [str(dice.random()) for _ in range(9_000)]})
    name, whole = f"a.{form}.gz", io.BytesIO()
    if form == "parquet":
        name = "a.parquet"
        pq.write_table(rows, whole)
    elif form == "csv":
        pa_csv.write_csv(rows, whole)
    else:
        whole.write("\n".join(map(json.dumps, rows.to_pylist())).encode())
    data = whole.getvalue() if form == "parquet" else gzip.compress(whole.getvalue())
    (tmp_path / name).write_bytes(data)
    (tmp_path / f"b{name[1:]}").write_bytes(data[: len(data) * 2 // 3])

    with suppress(ReadError):
        found = [one for one in run(spark, tmp_path, form, 1).results if one.check in ("row_count", "bounds")]
        assert {one.status for one in found} == {Status.ERROR}
