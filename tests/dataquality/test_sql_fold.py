"""Queries that share the pass give what they give alone, and the others are left alone."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dq.contracts.check_result import CheckResult
from dq.contracts.model import Contract
from dq.contracts.types import DataType
from dq.contracts.yaml.parse import parse
from dq.dataquality.check import check
from dq.dataquality.checks import built_in
from dq.dataquality.clauses.clause import Clause
from dq.dataquality.clauses.kind import CheckKind, clauses_of
from dq.dataquality.model.metric import MergeRule, Metric, MetricExecution, merge_rule
from dq.dataquality.report import Report
from dq.dataquality.request import Request
from dq.dataquality.sql_predicate import predicate_sql, question

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

HEAD = """
apiVersion: v3.2.0
kind: DataContract
id: shop
version: 1.0.0
schema:
  - name: orders
    physicalName: orders_v1
    properties:
      - {name: id, logicalType: integer}
      - {name: day, logicalType: date, partitioned: true, partitionKeyPosition: 1}
    quality:
"""


def contract(queries: Sequence[str], where: str | None = None) -> Contract:
    scope = [{"property": "scope", "vendor": "dq", "value": {"where": where}}] if where else []
    rules = [{"type": "sql", "query": one, "mustBe": 0, "customProperties": scope} for one in queries]
    text = HEAD + "".join(f"      - {json.dumps(rule)}\n" for rule in rules)  # JSON is YAML
    parsed = parse(text.encode(), "shop.odcs.yaml")
    assert parsed.contract is not None, parsed.findings
    return parsed.contract


def asked(query: str, where: str | None = None) -> Metric:
    made = contract([query], where)
    (found,) = clauses_of(made, made.objects[0], {"sql_rule": built_in()["sql_rule"]})
    assert not found.refusal_reason, found.refusal_reason
    (metric,) = built_in()["sql_rule"].metrics(found)
    return metric


# The text of a user's own SQL does not depend on the columns' types.
NOTHING = DataType("struct")
# Query -> the aggregate, its value and its condition.
FOLDED = [
    ("SELECT count(*) FROM {object}", "count", "1", ""),
    ("SELECT count(1) AS n FROM orders_v1", "count", "1", ""),
    ("SELECT COUNT(id) FROM orders WHERE id > 3", "count", "`id`", "`id` > 3"),
    ("SELECT (max(o.id)) FROM orders o", "max", "`id`", ""),
    ("SELECT min(O.a.b) FROM orders o WHERE a.b <> 1", "min", "`a`.`b`", "`a`.`b` <> 1"),
    ("SELECT sum(id * 2) FROM orders", "sum", "`id` * 2", ""),
    ("SELECT avg(orders.id) FROM orders WHERE isnull(id)", "avg", "`id`", "ISNULL(`id`)"),
    ("SELECT count_if(id IS NULL OR id = 1) FROM orders", "count", "1", "`id` IS NULL OR `id` = 1"),
    ("SELECT sum(id) FILTER (WHERE id > 1) FROM orders WHERE a=2", "sum", "`id`", "(`a` = 2) AND (`id` > 1)"),
    ("SELECT sum(if(id IN (1, 2), 1, 0)) FROM orders", "sum", "IF(`id` IN (1, 2), 1, 0)", ""),
    ("SELECT count(*) FROM orders WHERE `o``d` = '\\''", "count", "1", "`o``d` = CAST(X'27' AS STRING)"),
]  # fmt: skip
ALONE = [
    "SELECT count(*) + 1 FROM orders",
    "SELECT round(avg(id), 2) FROM orders",
    "SELECT coalesce(max(id), 0) FROM orders",
    "SELECT sum(id) / count(*) FROM orders",
    "SELECT DISTINCT count(*) FROM orders",
    "SELECT count(*) FROM orders GROUP BY id",
    "SELECT count(*) FROM orders HAVING count(*) > 1",
    "SELECT count(*) FROM orders ORDER BY 1",
    "SELECT count(*) FROM orders LIMIT 1",
    "SELECT count(*) FROM orders OFFSET 1",
    "SELECT count(*) FROM orders a JOIN orders b ON a.id = b.id",
    "SELECT count(*) FROM (SELECT id FROM orders) x",
    "WITH x AS (SELECT id FROM orders) SELECT count(*) FROM x",
    "SELECT count(*) FROM orders UNION ALL SELECT count(*) FROM orders",
    "SELECT count(*) FROM orders WHERE id IN (SELECT id FROM orders)",
    "SELECT count(*) FROM orders o WHERE EXISTS (SELECT 1 FROM orders p WHERE p.id = o.id)",
    "SELECT count(*) OVER () FROM orders",
    "SELECT id FROM orders",
    "SELECT count(o) FROM orders o",
    "SELECT count(o.*) FROM orders o",
    "SELECT count(id, a) FROM orders",
    "SELECT sum(DISTINCT id) FROM orders",
    "SELECT count(DISTINCT id + 1) FROM orders",
    "SELECT count(DISTINCT *) FROM orders",
    "SELECT percentile_approx(id, 0.5) FROM orders",
    "SELECT count_if(exists(tags, x -> x = 1)) FROM orders",
    "SELECT max(x) FROM orders AS o(x, y)",
    "SELECT count(*) FROM orders WHERE flag",
    "SELECT count(*) FROM orders WHERE 'true'",
    "SELECT count(*) FROM orders WHERE day = current_date()",
    "SELECT max(day) FROM orders",
]


@pytest.mark.parametrize(("query", "aggregate", "value", "where"), FOLDED, ids=lambda one: str(one)[:60])
def test_one_aggregate_of_the_rows_is_folded(query: str, aggregate: str, value: str, where: str) -> None:
    found = asked(query)

    said = f"{aggregate}(CASE WHEN {where} THEN {value} END)" if where else f"{aggregate}({value})"
    assert (found.kind, question(found, NOTHING)) == (MetricExecution.ROWS, said)
    assert found.instead is not None
    assert found.instead.kind is MetricExecution.SQL


@pytest.mark.parametrize("query", ALONE)
def test_every_other_query_stays_by_itself(query: str) -> None:
    assert asked(query).kind is MetricExecution.SQL


def test_different_values_are_counted_as_everywhere() -> None:
    found = asked("SELECT count(DISTINCT o.id, a.b) FROM orders o WHERE id > 1", "id < 9")

    assert (found.kind, [str(key) for key in found.keys]) == (MetricExecution.DISTINCT, ["id", "a.b"])
    assert found.where is not None
    assert predicate_sql(found.where, NOTHING) == "(`id` < 9) AND (`id` > 1)"


def test_what_spark_3_does_not_compile_is_kept_apart() -> None:
    assert (
        asked("SELECT count_if(get_json_object(j, '$.a') = '1') FROM orders").kind
        is MetricExecution.INTERPRETED
    )


def test_answers_merge_where_their_order_and_type_cannot_matter() -> None:
    merges = {
        name: merge_rule(asked("SELECT max(id) FROM orders".replace("max", name)))
        for name in ("count", "min", "max", "sum", "avg")
    }

    assert merges == {
        "count": MergeRule.SUM,
        "min": MergeRule.MIN,
        "max": MergeRule.MAX,
        "sum": MergeRule.NONE,
        "avg": MergeRule.NONE,
    }


def alone(kind: CheckKind) -> dict[str, CheckKind]:
    """The kind with every query by itself."""

    def metrics(clause: Clause) -> tuple[Metric, ...]:
        (metric,) = kind.metrics(clause)
        return (getattr(metric, "instead", None) or metric,)

    return {kind.id: replace(kind, metrics=metrics)}


def both(frame: DataFrame, queries: Sequence[str], where: str | None = None) -> tuple[Report, Report]:
    """The queries folded, and each by itself."""
    kind, made = built_in()["sql_rule"], contract(queries, where)
    return check(Request(made, frame, kinds={kind.id: kind})), check(Request(made, frame, kinds=alone(kind)))


def said(results: Sequence[CheckResult]) -> list[tuple[str, float | None, str, str]]:
    return [(str(one.status), one.value, one.observed, one.message) for one in results]


@pytest.fixture
def ansi(spark: SparkSession) -> Iterator[None]:
    before = spark.conf.get("spark.sql.ansi.enabled", "false")
    spark.conf.set("spark.sql.ansi.enabled", "true")
    yield
    spark.conf.set("spark.sql.ansi.enabled", before or "false")


DDL = "id bigint, small tinyint, price decimal(38,18), share double, text string, flag boolean"
DDL += ", a struct<b: int>"
# Exact in binary, so that no order of adding rounds.
SHARES = st.sampled_from([0.0, -0.0, 0.5, -2.25, 1024.0, float("nan"), float("inf"), float("-inf")])
ROWS = st.lists(
    st.tuples(
        st.none() | st.integers(-3, 3) | st.sampled_from([2**63 - 1, -(2**63)]),
        st.none() | st.integers(-128, 127),
        st.none() | st.sampled_from([Decimal("0"), Decimal("1.5"), Decimal("9" * 20 + "." + "9" * 18)]),
        st.none() | SHARES,
        st.none() | st.sampled_from(["", "a", "7", "é", "-1"]),
        st.none() | st.booleans(),
        st.none() | st.tuples(st.none() | st.integers(0, 2)),
    ),
    max_size=6,
)
VALUES = [
    "id",
    "small",
    "price",
    "share",
    "text",
    "flag",
    "a.b",
    "id * 2",
    "1 / id",
    "CAST(text AS INT)",
    "price + price",
]
VALUES += ["CASE WHEN id > 0 THEN 1 ELSE 0 END", "coalesce(a.b, id)", "length(text)", "NULL"]
CONDITIONS = [
    "",
    "id > 0",
    "id <> 0",
    "text IS NULL",
    "NOT flag",
    "price > 1 OR share < 0",
    "id <> 0 AND 1 / id > 0",
]
CONDITIONS += ["CAST(text AS INT) > 0", "text > 3", "false", "NULL IS NULL", "flag = 'true'", "isnan(share)"]


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.usefixtures("ansi")
def test_a_query_gives_folded_what_it_gives_alone(spark: SparkSession) -> None:
    aggregates = ["count(*)", *(f"{name}({{}})" for name in ("count", "min", "max", "sum", "avg"))]
    aggregates += ["count(DISTINCT {})", "count_if({})"]
    queries = st.builds(
        lambda aggregate, value, where: " ".join(
            ["SELECT", aggregate.format(value), "FROM orders", where and f"WHERE {where}"]
        ),
        st.sampled_from(aggregates),
        st.sampled_from(VALUES),
        st.sampled_from(CONDITIONS),
    )

    @settings(max_examples=2, database=None)
    @given(
        ROWS,
        st.lists(queries, min_size=12, max_size=12, unique=True),
        st.sampled_from([None, "id > 0", "text = 'a'"]),
    )
    def the_same(rows: list[tuple[object, ...]], some: list[str], where: str | None) -> None:
        # Cached, because rows out of Python start a worker of Python in every job.
        frame = spark.createDataFrame(rows, DDL).coalesce(1).cache()

        shared, apart = both(frame, some, where)
        frame.unpersist()

        # Spark sometimes computes what no row asks for: alone, a query may then fail, and folded it gives
        # the number that it means.
        told = [not one.message.startswith("orders: the query failed") for one in apart.results]
        assert list(compress(said(shared.results), told)) == list(compress(said(apart.results), told))

    the_same()


@pytest.mark.spark
@pytest.mark.usefixtures("ansi")
@pytest.mark.parametrize(
    ("query", "ends"),
    [
        ("SELECT sum(10 / id) FROM orders WHERE id <> 0", ("fail", 15.0)),
        ("SELECT sum(10 / id) FROM orders WHERE NOT id = 0", ("fail", 15.0)),
        ("SELECT count(*) FROM orders WHERE id <> 0 AND 10 / id > 1 AND 10 / id < 9", ("fail", 1.0)),
        ("SELECT max(CAST(text AS INT)) FROM orders WHERE id = 1", ("fail", 7.0)),
        ("SELECT sum(10 / id) FROM orders", ("error", None)),
        ("SELECT max(CAST(text AS INT)) FROM orders", ("error", None)),
    ],
)
def test_an_error_counts_only_in_rows_that_the_query_reads(
    spark: SparkSession, query: str, ends: tuple[str, float | None]
) -> None:
    frame = spark.createDataFrame([(0, "x"), (1, "7"), (2, "8")], "id int, text string")
    # Twice, so that Spark finds expressions to share.
    shared, apart = both(
        frame, [query, query.replace("FROM", "AS n FROM"), "SELECT count(1 / id) FROM orders WHERE id <> 0"]
    )

    assert said(shared.results) == said(apart.results)
    assert (shared.results[0].status, shared.results[0].value) == ends


@pytest.mark.spark
def test_a_missing_column_and_a_struct_named_like_its_table_end_as_alone(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1, (7,))], "id int, orders struct<zip: int>")

    shared, apart = both(
        frame,
        [
            "SELECT max(orders.zip) FROM orders",
            "SELECT max(tax) FROM orders",
            "SELECT max(o.tax) FROM orders o",
            "SELECT max(o.id.x) FROM orders o",
        ],
    )

    assert said(shared.results[:2]) == said(apart.results[:2])
    assert [one.status for one in shared.results] == ["fail", "error", "error", "error"]
    assert [one.status for one in apart.results] == ["fail", "error", "error", "error"]


@pytest.mark.spark
def test_folded_queries_and_other_checks_take_one_job_together(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1, 2), (3, None)], "id bigint, paid bigint")
    queries = [
        "SELECT count(*) FROM {object}",
        "SELECT count(*) FROM orders WHERE paid > id",
        "SELECT count(1) FROM orders o WHERE o.paid > o.id",
        "SELECT max(paid) FROM orders",
        "SELECT avg(id) FROM orders WHERE paid IS NULL",
    ]
    spark.sparkContext.setJobGroup("folded", "folded")
    report = check(Request(contract(queries), frame))
    spark.sparkContext.setJobGroup("rest", "rest")

    ran = spark.sparkContext.statusTracker().getJobIdsForGroup("folded")
    assert (len(ran), report.passes) == (1, 1)
    found = [one.value for one in report.results if one.check == "sql_rule"]
    assert found == [2.0, 1.0, 1.0, 2.0, 3.0]
    assert len({asked(one) for one in queries[1:3]}) == 1


@pytest.mark.spark
def test_a_condition_that_all_questions_share_reaches_the_scan(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(10).selectExpr("id", "id % 5 AS part").write.partitionBy("part").parquet(f"{tmp_path}/t")
    # Whoever reads this one fails.
    (tmp_path / "t" / "part=1" / "broken.parquet").write_text("no parquet")
    frame = spark.read.schema("id bigint, part int").parquet(f"{tmp_path}/t")
    spark.sparkContext.setJobGroup("pruned", "pruned")
    made = check(
        Request(
            contract(["SELECT max(id) FROM orders WHERE part = 3"]),
            frame,
            kinds={"sql_rule": built_in()["sql_rule"]},
        )
    )
    spark.sparkContext.setJobGroup("rest", "rest")

    assert [one.value for one in made.results] == [8.0]
    assert len(spark.sparkContext.statusTracker().getJobIdsForGroup("pruned")) == 1
