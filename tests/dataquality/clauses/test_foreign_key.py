from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from fakes.reach import anywhere

from dq.contracts.check_result import CheckResult, Status
from dq.contracts.model import Contract
from dq.contracts.yaml.parse import parse
from dq.dataquality.check import check
from dq.dataquality.checks import built_in
from dq.dataquality.clauses.coverage import clause_coverage
from dq.dataquality.clauses.foreign_key import ExternalReference, target
from dq.dataquality.clauses.kind import clauses_of
from dq.dataquality.model.column import Column, Target, incomparable
from dq.dataquality.model.run_context import Unusable
from dq.dataquality.report import Report
from dq.dataquality.request import Request
from dq.dataquality.spark.dataset import Dataset, locate
from dq.lake.types import from_spark_json

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HEAD = "apiVersion: v3.2.0\nkind: DataContract\nid: shop\nversion: 1.0.0\n"
SHOP = """
servers: [{server: lake, type: local, path: '${LAKE}/{object}', format: parquet}]
schema:
  - name: orders
    id: orders_tbl
    quality: [{metric: rowCount, mustBeGreaterThan: 0}]
    relationships:
      - {from: [orders.product, orders.place.land], to: [schema/products_tbl/properties/nr, products.land]}
    properties:
      - {name: id, logicalType: integer, unique: true}
      - {name: customer, logicalType: integer, relationships: [{to: customers.id}]}
      - {name: product, logicalType: string, classification: internal}
      - {name: day, logicalType: string}
      - name: place
        logicalType: object
        properties: [{name: land, logicalType: string}]
  - name: customers
    properties: [{name: id, physicalName: customer_id, logicalType: integer}]
  - name: products
    id: products_tbl
    properties:
      - {id: nr, name: number, logicalType: string}
      - {id: land_field, name: land, logicalType: string}
"""
ORDERS = "id int, customer int, product string, day string, place struct<land: string>"


def contract(text: str) -> Contract:
    parsed = parse((HEAD + text).encode(), "shop.odcs.yaml")
    assert parsed.contract is not None, parsed.findings
    return parsed.contract


def jobs(spark: SparkSession, group: str, work: Callable[[], object]) -> int:
    spark.sparkContext.setJobGroup(group, group)
    work()
    spark.sparkContext.setJobGroup("rest", "rest")
    return len(spark.sparkContext.statusTracker().getJobIdsForGroup(group))


def related(report: Report) -> list[CheckResult]:
    return [result for result in report.results if result.check == "relationship"]


@pytest.mark.spark
def test_each_relationship_is_one_job(spark: SparkSession) -> None:
    orders = spark.createDataFrame([(1, 7, "a", "d", ("de",)), (2, None, "a", "d", (None,))], ORDERS)
    others = {
        "customers": spark.createDataFrame([(7,), (7,), (None,)], "customer_id bigint"),
        "products": spark.createDataFrame([("a", "de")], "number string, land string"),
    }
    reports: list[Report] = []

    ran = jobs(
        spark,
        "kept",
        lambda: reports.append(check(Request(contract(SHOP), orders, "orders", other_objects=others))),
    )

    assert {result.status for result in reports[0].results} == {Status.PASS}
    # One for the cheap clauses, one for the unique column, one for each of two relationships.
    assert (ran, reports[0].passes) == (4, 4)


@pytest.mark.spark
def test_keys_without_a_match_are_counted_and_shown_with_how_many_rows_have_them(spark: SparkSession) -> None:
    rows = [(index, index % 25, "a", "d", ("at",)) for index in range(50)]
    rows += [(50, 3, "a", "d", ("de",))]
    others = {
        "customers": spark.createDataFrame([(1,)], "customer_id bigint"),
        "products": spark.createDataFrame([("a", "de")], "number string, land string"),
    }

    report = check(
        Request(contract(SHOP), spark.createDataFrame(rows, ORDERS), "orders", other_objects=others)
    )

    both, one = related(report)
    assert (both.property, both.observed, both.value) == ("product, place.land", "50 rows", 50.0)
    assert both.message == (
        "orders.product, place.land: 50 rows do not match any products (number, land);"
        " allowed: a key of products (number, land)"
    )
    assert both.samples == ({"product": "***", "place.land": "at", "count": 50},)
    assert one.message == (
        "orders.customer: 49 rows do not match any customers.customer_id; allowed: a key of "
        "customers.customer_id"
    )
    assert one.samples[:2] == ({"customer": "3", "count": 3}, {"customer": "0", "count": 2})
    assert len(one.samples) == 20


@pytest.mark.spark
def test_without_the_other_object_the_relationship_alone_is_an_error(spark: SparkSession) -> None:
    orders = spark.createDataFrame([(1, 7, "a", "d", ("de",))], ORDERS)

    report = check(Request(contract(SHOP), orders, "orders"))

    assert [result.message for result in report.with_status(Status.ERROR)] == [
        "orders.product, place.land: no data of 'products' was given; pass other_objects={'products': …}",
        "orders.customer: no data of 'customers' was given; pass other_objects={'customers': …}",
    ]
    assert report.exit_code == 3
    assert len(report.with_status(Status.PASS)) == len(report.results) - 2


@pytest.mark.spark
def test_a_partition_is_looked_up_in_the_whole_table_of_the_other_object(
    spark: SparkSession, tmp_path: Path
) -> None:
    made = contract(SHOP)
    lake = anywhere(LAKE=str(tmp_path))
    rows = [(1, 7, "a", "one", ("de",)), (2, 9, "a", "two", ("de",)), (3, 8, "a", "two", ("de",))]
    spark.createDataFrame(rows, ORDERS).write.partitionBy("day").parquet(str(tmp_path / "orders"))
    spark.createDataFrame([(7,), (8,)], "customer_id int").write.parquet(str(tmp_path / "customers"))
    sets = {one.name: locate(made, one, None, lake) for one in made.objects}
    assert isinstance(sets["orders"], Dataset)

    def customer(day: str) -> CheckResult:
        part = [{"day": day}]
        report = check(
            Request(made, sets["orders"], "orders", spark=spark, partitions=part, other_objects=sets)
        )
        products, customers = related(report)
        assert (products.status, "PATH_NOT_FOUND" in products.message) == (Status.ERROR, True)
        return customers

    assert customer("one").status is Status.PASS
    assert (customer("two").status, customer("two").samples) == (
        Status.FAIL,
        ({"customer": "9", "count": 1},),
    )


@pytest.mark.spark
@pytest.mark.parametrize(
    ("here", "there", "missing"),
    [
        ("double", "float", ["0.1"]),
        ("decimal(10,2)", "decimal(12,4)", ["0.10"]),
        ("int", "decimal(20,0)", ["3"]),
        ("string", "string", ["A", "a ", ""]),
    ],
)
def test_keys_are_equal_as_values_are(spark: SparkSession, here: str, there: str, missing: list[str]) -> None:
    values: dict[str, tuple[list[object], list[object]]] = {
        "double": ([0.1, float("nan"), -0.0, 0.5], [0.1, float("nan"), 0.0, 0.5]),
        "decimal(10,2)": ([Decimal("1.50"), Decimal("0.10")], [Decimal("1.5"), Decimal("0.1001")]),
        "int": ([1, 2, 3], [Decimal(1), Decimal(2)]),
        "string": (["a", "A", "a ", ""], ["a"]),
    }
    mine, theirs = values[here]
    made = contract("""
schema:
  - name: a
    properties: [{name: k, relationships: [{to: b.k}]}]
  - name: b
    properties: [{name: k}]
""")
    frame = spark.createDataFrame([(value,) for value in mine], f"k {here}")
    other = spark.createDataFrame([(value,) for value in theirs], f"k {there}")

    result = related(check(Request(made, frame, "a", other_objects={"b": other})))[0]

    assert sorted(str(sample["k"]) for sample in result.samples) == sorted(missing)


def test_types_that_would_be_cast_are_not_compared() -> None:
    def reason(here: str, there: str) -> str | None:
        fields = [{"type": "struct", "fields": [{"name": "k", "type": kind}]} for kind in (here, there)]
        key = (Column(("k",)),)
        return incomparable(from_spark_json(fields[0]), key, from_spark_json(fields[1]), Target("b", key))

    assert reason("string", "bigint") == "column 'k' is string and b.k is bigint; they cannot be compared"
    assert reason("bigint", "double") is not None
    assert reason("timestamp", "timestamp_ntz") is not None
    assert reason("decimal(38,0)", "decimal(38,18)") is not None
    assert reason("decimal(38,18)", "bigint") is None
    assert reason("date", "date") is None


REFERENCES = """
schema:
  - name: orders
    id: orders_tbl
    properties:
      - {name: id, id: id_field}
      - {name: place, id: place_field, logicalType: object, properties: [{name: zip, id: zip_field}]}
      - {name: tags, logicalType: array, items: {logicalType: object, properties: [{name: key}]}}
  - name: eu.sales
    properties: [{name: id, physicalName: nr}]
"""


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("orders.id", "orders.id"),
        ("orders_tbl.place.zip", "orders.place.zip"),
        ("eu.sales.id", "eu.sales.nr"),
        ("schema/orders_tbl/properties/id_field", "orders.id"),
        ("#/schema/orders_tbl/properties/place_field/properties/zip_field", "orders.place.zip"),
    ],
)
def test_a_reference_is_read_by_names_or_by_ids(text: str, found: str) -> None:
    assert str(target(contract(REFERENCES), [text])) == found


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ("people.id", ExternalReference, "the contract with the object 'people' is needed"),
        (
            "people.odcs.yaml#/schema/p/properties/i",
            ExternalReference,
            "the data of 'people.odcs.yaml' is needed",
        ),
        ("https://x/y.yaml#people.id", ExternalReference, "the data of 'https://x/y.yaml' is needed"),
        ("orders.nr", Unusable, "is not a column of this contract"),
        ("orders", Unusable, "write object.property"),
        ("orders.tags.key", Unusable, "with a single value per row"),
        ("schema/orders_tbl/properties/nr", Unusable, "is not a column of this contract"),
    ],
)
def test_a_reference_that_cannot_be_followed_says_why(text: str, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said.replace(".", r"\.")):
        target(contract(REFERENCES), [text])


def test_every_relationship_has_an_account_of_its_own() -> None:
    made = contract("""
schema:
  - name: a
    relationships:
      - {from: [a.k, a.l], to: [b.k, b.l]}
      - {from: b.k, to: a.k}
      - {from: a.k, to: [b.k, b.l]}
      - {from: [a.k, b.k], to: [b.k, b.l]}
    properties:
      - {name: k, relationships: [{to: b.k}, {to: c.k}, {to: b.m}]}
      - {name: l, logicalType: array, items: {logicalType: string, relationships: [{to: b.k}]}}
  - name: b
    properties: [{name: k}, {name: l}]
""")
    one = made.objects[0]

    rows = clause_coverage(made, one, clauses_of(made, one, built_in()))

    said = [(row.clause, row.state.value) for row in rows if row.clause.startswith("relationship")]
    assert said == [
        ("relationship: b.k, b.l", "enforced"),
        ("relationship: a.k", "not evaluated"),
        ("relationship: b.k, b.l", "not evaluated"),
        ("relationship: b.k, b.l", "not evaluated"),
        ("relationship: b.k", "enforced"),
        ("relationship: c.k", "not evaluated"),
        ("relationship: b.m", "not evaluated"),
        ("relationship: b.k", "not evaluated"),
    ]
