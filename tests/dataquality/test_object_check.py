from __future__ import annotations

import datetime as dt
import json
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from dq.contracts.check_result import CheckResult, Status
from dq.contracts.model import Contract
from dq.contracts.outcome import ReadError, Severity, UsageError
from dq.contracts.yaml.parse import parse
from dq.dataquality.check import check
from dq.dataquality.model.column import Column
from dq.dataquality.model.metric import Failure, Metric, aggregate, count, distinct, duplicates, merge_answers
from dq.dataquality.report import Report, Violated
from dq.dataquality.request import Request
from dq.dataquality.spark.measure import measure, plan, schema_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

HEAD = "apiVersion: v3.2.0\nkind: DataContract\nid: shop\nversion: 1.0.0\n"


def contract(schema: str) -> Contract:
    parsed = parse((HEAD + schema).encode(), "shop.odcs.yaml")
    assert parsed.contract is not None
    assert not parsed.findings
    return parsed.contract


TEN = contract("""
schema:
  - name: orders
    quality: [{metric: rowCount, mustBeGreaterThan: 0}]
    properties:
      - {name: id, logicalType: integer, required: true, unique: true}
      - {name: line, logicalType: integer, required: true, logicalTypeOptions: {minimum: 0, maximum: 9}}
      - {name: state, logicalType: string, required: true, enum: [{value: open}, {value: closed}]}
      - name: code
        logicalType: string
        logicalTypeOptions: {pattern: '^[A-Z]+$', minLength: 1, maxLength: 3}
      - {name: price, logicalType: number, physicalType: 'decimal(38,2)', logicalTypeOptions: {minimum: 0}}
""")
DDL = "id bigint, line int, state string, code string, price decimal(38,2)"
GOOD = [(1, 1, "open", "A", Decimal("1.00")), (2, 9, "closed", "BC", Decimal("9" * 36 + ".99"))]


def jobs(spark: SparkSession, group: str, work: Callable[[], object]) -> int:
    """How many Spark jobs a piece of work runs."""
    spark.sparkContext.setJobGroup(group, group)
    work()
    tracker = spark.sparkContext.statusTracker()
    spark.sparkContext.setJobGroup("rest", "rest")
    return len(tracker.getJobIdsForGroup(group))


def by_path(report: Report) -> dict[str, CheckResult]:
    return {result.clause: result for result in report.results}


def test_all_cheap_checks_share_one_job_and_each_key_set_takes_one_more(spark: SparkSession) -> None:
    frame = spark.createDataFrame(GOOD, DDL)
    reports: list[Report] = []

    ran = jobs(spark, "ten", lambda: reports.append(check(Request(TEN, frame))))

    assert {result.status for result in reports[0].results} == {Status.PASS}
    assert len(reports[0].results) == 18
    assert (ran, reports[0].passes) == (2, 2)


def test_samples_of_all_rows_that_fail_take_one_more_job(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(None, -1, "ajar", "abcd", Decimal(-1))] * 3, DDL)
    reports: list[Report] = []

    ran = jobs(spark, "samples", lambda: reports.append(check(Request(TEN, frame))))

    failed = reports[0].with_status(Status.FAIL)
    assert len(failed) == 6
    assert [result.samples for result in failed if result.property == "state"] == [({"state": "ajar"},) * 3]
    assert ran == 3


def test_merged_halves_equal_the_whole(spark: SparkSession) -> None:
    rows = [*GOOD, (3, None, "x", "", None), (4, 5, None, None, Decimal(-1))]
    cheap = [count(), count("`line` IS NULL"), count("`price` < 0")]
    most = aggregate("max", "`line`")
    least = aggregate("min", "`price`")

    def answers(some: list[tuple[object, ...]]) -> dict[Metric, object]:
        frame = spark.createDataFrame(some, DDL)
        return dict(measure(frame, plan([*cheap, most, least], schema_of(frame))))

    whole, left, right, empty = answers(rows), answers(rows[:1]), answers(rows[1:]), answers([])

    for metric in (*cheap, most, least):
        assert merge_answers(metric, left[metric], right[metric]) == whole[metric]  # type: ignore[arg-type]
        assert merge_answers(metric, whole[metric], empty[metric]) == whole[metric]  # type: ignore[arg-type]


def test_distinct_and_repeated_keys_are_exact_and_leave_null_out(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1, "a"), (1, "a"), (1, "b"), (None, "b"), (None, "b")], "k int, v string")
    key = (Column(("k",)), Column(("v",)))

    metrics = [distinct(key), duplicates(key), duplicates((key[1],), "`k` = 1")]

    answers = measure(frame, plan(metrics, schema_of(frame)))

    assert [answers[metric] for metric in metrics] == [2, 1, 1]


def test_a_broken_question_is_found_by_halving_and_the_others_keep_their_answers(spark: SparkSession) -> None:
    frame = spark.range(10).selectExpr("id", "cast(id AS string) AS v")
    sound = [count(), *(count(f"`id` > {bound}") for bound in range(8))]
    broken = [count("raise_error('no such luck') IS NULL"), count("no_such_function(`id`)"), count("`id` >")]

    answers = measure(frame, plan([*sound, *broken], schema_of(frame)))

    assert [answers[metric] for metric in sound] == [10, 9, 8, 7, 6, 5, 4, 3, 2]
    failures = [answers[metric] for metric in broken]
    assert all(isinstance(failure, Failure) and "\n" not in failure.message for failure in failures)
    assert "no such luck" in str(failures[0])
    assert "no_such_function" in str(failures[1])


def test_a_predicate_that_overflows_is_an_error_of_its_own_rule(spark: SparkSession) -> None:
    rules = contract("""
schema:
  - name: orders
    properties:
      - {name: id, logicalType: integer, required: true}
    quality:
      - metric: rowCount
        mustBeGreaterThan: 0
        customProperties: [{property: scope, vendor: dq, value: {where: id + id > 0}}]
""")
    frame = spark.createDataFrame([(2**63 - 1,)], "id bigint")
    ansi = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", "true")
    try:
        results = by_path(check(Request(rules, frame)))
    finally:
        spark.conf.set("spark.sql.ansi.enabled", ansi or "false")

    assert results["schema[0].properties[0].required"].status is Status.PASS
    assert results["schema[0].quality[0]"].status is Status.ERROR
    assert "ARITHMETIC_OVERFLOW" in results["schema[0].quality[0]"].message


def test_a_missing_column_fails_once_and_its_siblings_keep_their_answers(spark: SparkSession) -> None:
    frame = spark.createDataFrame(GOOD, DDL).drop("state")

    results = by_path(check(Request(TEN, frame)))

    assert results["schema[0].properties[2]"].status is Status.FAIL
    required = results["schema[0].properties[2].required"]
    assert (required.status, required.message) == (Status.ERROR, "orders.state: column 'state' is missing")
    assert {results[path].status for path in results if "properties[2]" not in path} == {Status.PASS}


def test_a_column_of_another_type_fails_and_what_cannot_be_compared_is_an_error(spark: SparkSession) -> None:
    frame = spark.createDataFrame(GOOD, DDL).selectExpr(
        "id", "cast(line AS string) AS line", "state", "code", "price"
    )

    results = by_path(check(Request(TEN, frame)))

    assert (
        results["schema[0].properties[1]"].message
        == "orders.line: type string cannot hold integer; allowed: integer"
    )
    assert results["schema[0].properties[1].required"].status is Status.PASS
    assert results["schema[0].properties[1].logicalTypeOptions.minimum"].status is Status.ERROR


MASKED = contract("""
schema:
  - name: people
    properties:
      - {name: id, logicalType: integer, primaryKey: true, primaryKeyPosition: 1}
      - {name: mail, logicalType: string, classification: restricted, primaryKey: true, primaryKeyPosition: 2}
      - {name: "a.b`c", logicalType: string, required: true}
""")


def test_samples_are_at_most_twenty_keys_and_classified_columns_are_masked(spark: SparkSession) -> None:
    rows = [(index, "eve@example.com", None) for index in range(30)] + [(7, "eve@example.com", "ž")]
    frame = spark.createDataFrame(rows, "id int, mail string, `a.b``c` string")

    report = check(Request(MASKED, frame))

    results = by_path(report)
    nulls = results["schema[0].properties[2].required"]
    assert nulls.property == "a.b`c"
    assert len(nulls.samples) == 20
    assert nulls.samples[0] == {"id": "0", "mail": "***"}
    assert results["schema[0].primaryKey"].samples == ({"id": "7", "mail": "***", "count": 2},)
    assert "eve@" not in json.dumps(report.as_dict())


DAILY = contract("""
schema:
  - name: flights
    properties:
      - {name: id, logicalType: integer, unique: true, required: true}
      - {name: day, logicalType: date, partitioned: true, partitionKeyPosition: 1}
    quality:
      - {metric: rowCount, mustBe: 2}
      - metric: duplicateValues
        arguments: {properties: [id, day]}
        mustBe: 0
        customProperties: [{property: scope, vendor: dq, value: {rows: table}}]
      - {name: asked, metric: duplicateValues, arguments: {properties: [id]}, mustBe: 0}
""")


KEYLESS = contract("""
schema:
  - name: people
    properties:
      - {name: team, logicalType: string, physicalType: string}
      - {name: mail, logicalType: string, physicalType: string, required: true}
      - {name: pay, logicalType: integer, classification: restricted}
      - {name: tags, logicalType: array, items: {logicalType: string}}
      - {name: badge, logicalType: integer, unique: true}
      - {name: age, logicalType: integer, logicalTypeOptions: {maximum: 99}}
""")


def test_a_row_without_a_key_is_told_by_what_stands_beside_its_null(spark: SparkSession) -> None:
    rows = [("a", None, 9, ["x"], 7, 100), ("b", "b@x.org", 9, ["x"], 8, 20)]
    frame = spark.createDataFrame(
        rows, "team string, mail string, pay int, tags array<string>, badge int, age int"
    )

    results = by_path(check(Request(KEYLESS, frame)))

    (null,) = results["schema[0].properties[1].required"].samples
    assert null == {"mail": None, "badge": "7", "team": "a", "age": "100"}
    assert results["schema[0].properties[5].logicalTypeOptions.maximum"].samples == ({"age": "100"},)


def test_a_partition_is_tested_alone_but_uniqueness_on_the_whole_table(spark: SparkSession) -> None:
    one, two = dt.date(2026, 1, 1), dt.date(2026, 1, 2)
    frame = spark.createDataFrame([(1, one), (None, one), (1, two), (2, two)], "id int, day date")

    report = check(Request(DAILY, frame, partitions=[{"day": "2026-01-02"}]))

    results = by_path(report)
    assert results["schema[0].quality[0]"].observed == "2 rows"
    assert results["schema[0].properties[0].required"].status is Status.PASS
    unique = results["schema[0].properties[0].unique"]
    assert (unique.status, unique.samples) == (Status.FAIL, ({"id": "1", "count": 2},))
    assert "tested on the whole table" in unique.message
    assert "the key includes the partition columns" in results["schema[0].quality[1]"].message
    assert results["schema[0].quality[2]"].status is Status.PASS
    assert report.partitions == ((("day", "2026-01-02"),),)


def test_an_unknown_partition_column_or_value_is_a_usage_error(spark: SparkSession) -> None:
    frame = spark.createDataFrame([], "id int, day date")

    with pytest.raises(UsageError, match="unknown partition column 'month'"):
        check(Request(DAILY, frame, partitions=[{"month": "1"}]))
    with pytest.raises(UsageError, match="'tomorrow' is not a valid value"):
        check(Request(DAILY, frame, partitions=[{"day": "tomorrow"}]))


SCOPED = contract("""
schema:
  - name: orders
    properties:
      - name: v
        logicalType: string
        quality:
          - metric: nullValues
            mustBe: 0
            unit: percent
            severity: warning
            customProperties: [{property: scope, vendor: dq, value: {where: "state = 'closed'"}}]
      - {name: state, logicalType: string}
    quality:
      - metric: rowCount
        mustBe: 1
        customProperties: [{property: scope, vendor: dq, value: {where: "reflect('java.lang.System')"}}]
      - metric: rowCount
        mustBe: 1
        customProperties: [{property: scope, vendor: dq, value: {rows: window, window: 7d}}]
""")


def test_a_scope_leaves_rows_out_and_a_call_of_java_is_refused(spark: SparkSession) -> None:
    frame = spark.createDataFrame(
        [(None, "open"), (None, "closed"), ("a", "closed")], "v string, state string"
    )

    report = check(Request(SCOPED, frame))

    results = by_path(report)
    nulls = results["schema[0].properties[0].quality[0]"]
    assert (nulls.status, nulls.severity, nulls.observed) == (
        Status.FAIL,
        Severity.WARNING,
        "50 % (1 of 2 rows)",
    )
    assert "'reflect' is not allowed" in results["schema[0].quality[0]"].message
    assert results["schema[0].quality[1]"].status is Status.ERROR


def test_the_report_raises_for_what_is_broken_and_for_what_could_not_be_told(spark: SparkSession) -> None:
    frame = spark.createDataFrame(GOOD, DDL)

    check(Request(TEN, frame)).raise_for_status()
    with pytest.raises(
        Violated, match=r"orders\.state: 2 of 2 rows are not one of 'open', 'closed'"
    ) as broken:
        check(
            Request(TEN, frame.selectExpr("id", "line", "'x' AS state", "code", "price"))
        ).raise_for_status()
    assert broken.value.exit_code == 1
    with pytest.raises(ReadError) as unknown:
        check(Request(SCOPED, spark.createDataFrame([], "v string, state string"))).raise_for_status()
    assert unknown.value.exit_code == 3


def test_a_report_says_the_same_to_machines(spark: SparkSession) -> None:
    now = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)

    made = check(Request(TEN, spark.createDataFrame([], DDL), now=now)).as_dict()

    text = json.dumps(made)
    assert made["counts"] == {"pass": 17, "fail": 1, "error": 0, "skipped": 0}
    assert made["at"] == "2026-01-01T00:00:00+00:00"
    assert '"measure": {"value": 0.0, "observed": "0 rows"}, "threshold": "more than 0 rows"' in text
    assert '"at": "shop.odcs.yaml:8:15"' in text


WIDE_COLUMNS = 120


def test_a_pass_is_split_before_the_jvm_stops_compiling_it(spark: SparkSession) -> None:
    lines = "".join(f"\n      - {{name: c{index}, required: true}}" for index in range(WIDE_COLUMNS))
    wide = contract(f"schema:\n  - name: wide\n    properties:{lines}\n")
    frame = spark.range(1).selectExpr(*(f"id AS c{index}" for index in range(WIDE_COLUMNS)))

    report = check(Request(wide, frame))

    assert report.passes == 2
    assert {result.status for result in report.results} == {Status.PASS}


def nested(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(
        [
            ([{"sku": "a", "n": 1}, {"sku": None, "n": -1}], {"de": 1.0}),
            ([], {"": float("nan")}),
            (None, None),
        ],
        "lines array<struct<sku: string, n: int>>, prices map<string, double>",
    )


def test_parts_of_arrays_and_maps_are_tested_in_a_pass_of_their_own(spark: SparkSession) -> None:
    deep = contract("""
schema:
  - name: orders
    quality: [{metric: rowCount, mustBe: 3}]
    properties:
      - name: lines
        logicalType: array
        items:
          logicalType: object
          properties:
            - {name: sku, logicalType: string, required: true}
            - {name: n, logicalType: integer, logicalTypeOptions: {minimum: 0}}
      - name: prices
        logicalType: map
        map:
          key: {logicalType: string, logicalTypeOptions: {minLength: 1}}
          value: {logicalType: number, logicalTypeOptions: {maximum: 5}}
""")

    report = check(Request(deep, nested(spark)))

    failed = {result.property: result.observed for result in report.with_status(Status.FAIL)}
    assert failed == dict.fromkeys(
        ("lines[].sku", "lines[].n", "prices{key}", "prices{value}"), "1 of 3 rows"
    )
    assert report.passes == 2


def test_importing_the_checks_does_not_import_spark() -> None:
    code = "import sys; import dq.dataquality.check;"
    code += "from dq.dataquality.checks import built_in; built_in();"
    code += "print([name for name in ('pyspark', 'pandas', 'py4j') if name in sys.modules])"

    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert shown.stdout.strip() == "[]"
