"""Unusual numbers: what is reported, what is learned, and what it costs."""

from __future__ import annotations

import datetime as dt
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fakes.reach import anywhere
from fakes.unusual import clause, daily

from dq.contracts.check_result import CheckResult, Status
from dq.contracts.incident import Breach
from dq.contracts.schedule.calendar import HolidayCalendar
from dq.contracts.yaml.parse import read
from dq.dataquality import results
from dq.dataquality.answers.sources import ALL, Optimization
from dq.dataquality.backtest import backtest
from dq.dataquality.check import check
from dq.dataquality.checks.unusual import CHECK
from dq.dataquality.clauses.kind import clauses_of, evaluate_clause, metrics_for
from dq.dataquality.model.metric import Aggregate, Answers, DistinctKeys
from dq.dataquality.model.run_context import Partition, RunContext
from dq.dataquality.request import Request
from dq.dataquality.spark.dataset import locate
from dq.dataquality.unusual import ADAPTS_AFTER, Scale, judge
from dq.store.engine import open_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KINDS = {CHECK.id: CHECK}
SUNDAY = dt.datetime(2026, 11, 22, 12, tzinfo=dt.UTC)
# Sundays are a third of other days.
WEEK = (1.0, 1.02, 0.99, 1.01, 1.0, 0.5, 0.33)


def rule(arguments: str) -> str:
    return f"{{type: custom, engine: dq, implementation: {{check: unusual, arguments: {{{arguments}}}}}}}"


ROWS = f"quality: [{rule('of: [rowCount], falseAlarms: 1/year')}]"


def weekly(days: int, level: float = 900_000, noise: float = 0.02) -> list[float]:
    """Numbers of rows up to the day before SUNDAY."""
    draw = np.random.default_rng(1)
    first = SUNDAY.date() - dt.timedelta(days=days)
    return [
        round(level * WEEK[(first + dt.timedelta(days=day)).weekday()] * (1 + noise * draw.standard_normal()))
        for day in range(days)
    ]


def judged(
    contract: str,
    answers: Sequence[int],
    now: dt.datetime = SUNDAY,
    calendar: HolidayCalendar | None = None,
    minutes: float | None = None,
    **earlier: Sequence[float],
) -> CheckResult:
    """The result of a run; `answers` are those of the metrics in their order."""
    history = daily(contract, now, **earlier)
    context = RunContext(now, (), history, calendar, {} if minutes is None else {(): minutes})
    bound = replace(clause(contract), context=context)
    measured: Answers = dict(zip(metrics_for(bound, KINDS), answers, strict=True))
    return evaluate_clause(bound, measured, KINDS)


def test_half_a_load_is_reported_with_what_was_expected() -> None:
    result = judged(ROWS, [150_000], rowCount=weekly(120))

    assert result.status is Status.FAIL
    assert result.message.startswith("t: rowCount 150,000 is unusual for a Sunday: expected 2")
    assert " (the last Sundays: " in result.message
    assert result.message.endswith("; 1 false alarm a year accepted")
    assert result.value is not None
    assert result.value < 1 / 365


def test_the_weekday_is_known() -> None:
    assert judged(ROWS, [300_000], rowCount=weekly(120)).status is Status.PASS
    assert judged(ROWS, [900_000], rowCount=weekly(120)).status is Status.FAIL


ARRIVAL = f"quality: [{rule('of: [arrival]')}]"


def test_a_delivery_that_is_unusually_late_is_reported_in_minutes_after_due() -> None:
    usually = [round(float(number), 2) for number in np.random.default_rng(3).normal(-20, 4, 120)]

    late = judged(ARRIVAL, [], minutes=245.5, arrival=usually)
    usual = judged(ARRIVAL, [], minutes=-14.0, arrival=usually)
    unknown = judged(ARRIVAL, [], minutes=None, arrival=usually)

    assert (late.status, late.groups[0].value) == (Status.FAIL, 245.5)
    assert late.message.startswith("t: arrival 4 h 6 min late is unusual for a Sunday: expected ")
    assert usual.status is Status.PASS
    assert (unknown.status, unknown.message) == (Status.SKIPPED, "t: arrival no delivery of it is recorded")


def test_a_holiday_may_be_like_a_sunday() -> None:
    monday, history = SUNDAY + dt.timedelta(days=1), [*weekly(120), 297_000]
    holiday = HolidayCalendar(skip=frozenset({monday.date()}))

    assert judged(ROWS, [300_000], monday, rowCount=history).status is Status.FAIL
    assert judged(ROWS, [300_000], monday, holiday, rowCount=history).status is Status.PASS
    assert judged(ROWS, [100_000], monday, holiday, rowCount=history).status is Status.FAIL


def test_a_rule_learns_during_twenty_runs() -> None:
    result = judged(ROWS, [1], rowCount=weekly(12))

    assert (result.status, result.value) == (Status.SKIPPED, None)
    assert result.message == "t: rowCount 1 not compared: learning (12 of 20 runs)"


def test_a_reported_number_does_not_change_what_is_expected() -> None:
    usual = weekly(120)
    damaged = [*usual[:-3], 20_000_000, *usual[-2:]]

    assert judged(ROWS, [150_000], rowCount=damaged).status is Status.FAIL
    assert judged(ROWS, [300_000], rowCount=damaged).status is Status.PASS


def test_a_level_that_persists_is_reported_until_it_is_the_new_one() -> None:
    days = np.datetime64("2026-01-01T00") + np.arange(120) * np.timedelta64(1, "D")
    draw = np.random.default_rng(2)
    values = 1_000 * np.exp(0.02 * draw.standard_normal(120))
    values[80:] *= 0.5

    unusual = judge(days.astype("datetime64[s]"), values[None], [Scale.ROWS], 1 / 365).unusual[0]

    assert np.flatnonzero(unusual).tolist() == list(range(80, 80 + ADAPTS_AFTER))


def test_a_change_that_is_taken_back_is_not_reported_again() -> None:
    days = np.datetime64("2026-01-01T00") + np.arange(120) * np.timedelta64(1, "D")
    values = 1_000 * np.exp(0.02 * np.random.default_rng(2).standard_normal(120))
    values[80:90] *= 0.5

    unusual = judge(days.astype("datetime64[s]"), values[None], [Scale.ROWS], 1 / 365).unusual[0]

    assert np.flatnonzero(unusual).tolist() == list(range(80, 80 + ADAPTS_AFTER))


def test_a_date_that_the_rule_expects_is_right_and_is_learned() -> None:
    usual = weekly(120)
    day = SUNDAY.date() - dt.timedelta(days=1)
    with_sale = [*usual[:-1], 3_000_000]
    contract = f"quality: [{rule(f'expected: [{day}]')}]"

    assert judged(contract, [300_000], rowCount=with_sale).status is Status.PASS
    today = judged(f"quality: [{rule('expected: [2026-11-22]')}]", [3_000_000], rowCount=usual)
    assert (today.status, "accepted by the rule for this date" in today.message) == (Status.PASS, True)


def test_the_judgement_of_a_day_does_not_depend_on_later_days() -> None:
    days = (np.datetime64("2026-01-01T00") + np.arange(200) * np.timedelta64(1, "D")).astype("datetime64[s]")
    draw = np.random.default_rng(4)
    values = np.exp(draw.standard_normal((5, 200)))
    values[2, 50:60] = np.nan

    whole = judge(days, values, [Scale.NUMBER] * 5, 0.01)
    part = judge(days[:150], values[:, :150], [Scale.NUMBER] * 5, 0.01)

    np.testing.assert_array_equal(whole.p[:, :150], part.p)


@pytest.mark.parametrize("hours", [24, 6, 168])
def test_a_number_judged_among_others_is_judged_as_alone(hours: int) -> None:
    times = np.datetime64("2026-01-01T00") + np.arange(150) * np.timedelta64(hours, "h")
    draw = np.random.default_rng(6)
    scales = [*Scale] * 5
    values = 50 * np.exp(0.1 * draw.standard_t(2, (len(scales), 150)))
    values[[scale is Scale.SHARE for scale in scales]] /= 1_000
    values[::3, 60:] *= 1.8
    values[draw.random(values.shape) < 0.1] = np.nan
    holidays = draw.random(150) < 0.05
    right, normal = draw.random((2, *values.shape)) < 0.05

    together = judge(times.astype("datetime64[s]"), values, scales, 0.05, holidays, right, normal=normal)

    assert together.unusual.sum() > 50
    for place, scale in enumerate(scales):
        row = slice(place, place + 1)
        alone = judge(
            times.astype("datetime64[s]"),
            values[row],
            [scale],
            0.05,
            holidays,
            right[row],
            normal=normal[row],
        )
        assert (together.unusual[row] == alone.unusual).all()
        for name in ("p", "lower", "upper", "level"):
            np.testing.assert_allclose(getattr(together, name)[row], getattr(alone, name), rtol=1e-9)


@pytest.mark.parametrize("value", [1e308, -1e308, float("inf"), 0.0, 5e-324])
@pytest.mark.parametrize("scale", list(Scale))
def test_an_extreme_number_has_a_verdict_and_spoils_nothing(value: float, scale: Scale) -> None:
    days = (np.datetime64("2026-01-01T00") + np.arange(60) * np.timedelta64(1, "D")).astype("datetime64[s]")
    values = np.abs(np.random.default_rng(5).normal(0.5, 0.01, (1, 60)))
    values[0, 50] = value

    found = judge(days, values, [scale], 1 / 365)

    assert not np.isnan(found.p[0, 40:]).any()
    assert not found.unusual[0, 51:].any()
    assert np.isfinite([found.lower, found.upper]).all()


def test_false_alarms_of_noise_stay_within_the_promise() -> None:
    days = (np.datetime64("2024-01-01T00") + np.arange(730) * np.timedelta64(1, "D")).astype("datetime64[s]")
    values = 1_000 * np.exp(0.05 * np.random.default_rng(5).standard_normal((200, 730)))

    unusual = judge(days, values, [Scale.NUMBER] * 200, 1 / 365).unusual

    assert unusual.sum() / 200 / (710 / 365) < 1


COLUMN = "properties: [{name: v, logicalType: number, quality: [%s]}]"


BARE = """
import sys
sys.modules["numpy"] = None  # as in an environment with Arrow alone
from dataclasses import replace
import datetime as dt
from fakes.unusual import CHECK, clause, daily
from dq.dataquality.clauses.kind import evaluate_clause, metrics_for
from dq.dataquality.model.run_context import RunContext

now = dt.datetime(2026, 11, 22, tzinfo=dt.UTC)
rule = "quality: [{type: custom, engine: dq, implementation: unusual}]"
bound = replace(clause(rule), context=RunContext(now, (), daily(rule, now, rowCount=[9] * 30)))
result = evaluate_clause(bound, dict.fromkeys(metrics_for(bound, {CHECK.id: CHECK}), 9), {CHECK.id: CHECK})
print(result.status, result.groups[0].value, result.message)
"""


def test_without_numpy_the_rule_is_an_error_that_keeps_its_numbers() -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}

    ran = subprocess.run(
        [sys.executable, "-c", BARE], capture_output=True, text=True, check=False, env=environment, timeout=99
    )

    assert ran.stderr == ""
    assert ran.stdout.startswith("error 9.0 t: rowCount 9 not compared: The check unusual needs NumPy")
    assert "pip install" in ran.stdout


def test_all_numbers_of_an_object_share_its_false_alarms() -> None:
    shared = COLUMN.replace("%s", rule("of: [mean, stddev]")) + f"\n{ROWS}"
    alone = COLUMN.replace("%s", rule("of: [mean]"))

    assert clause(alone).test.value.sharing == 1  # type: ignore[union-attr]
    contract = read("apiVersion: v3.2.0\nkind: DataContract\nid: x\nversion: 1.0.0\nschema:\n  - name: t\n"
                    + "".join(f"    {line}\n" for line in shared.splitlines()))  # fmt: skip
    assert [found.test.value.sharing for found in clauses_of(contract, contract.objects[0], KINDS)] == [3, 3]


MISTAKES = {
    "of: [rows]": "'rows' is not a number of this rule",
    "of: [nullshare]": "Did you mean 'nullShare'?",
    "of: [mean]": "Write it in a rule on a property",
    "of: [arival]": "Did you mean 'arrival'?",
    "of: []": "Write a list of numbers",
    "of: [rowCount, rowCount]": "listed twice",
    "falseAlarms: often": "Write e.g. 1/year",
    "falseAlarms: 0/year": "Write e.g. 1/year",
    "expected: [soon]": "'soon' is not a date",
    "falseAlarm: 1/year": "Did you mean 'falseAlarms'?",
}


@pytest.mark.parametrize(("arguments", "reason"), MISTAKES.items(), ids=MISTAKES)
def test_a_mistaken_argument_is_refused_with_its_reason(arguments: str, reason: str) -> None:
    assert reason in clause(f"quality: [{rule(arguments)}]").refusal_reason


def test_the_former_name_is_refused_with_the_new_spelling() -> None:
    former = clause("quality: [{type: custom, engine: dq, implementation: rowCountAnomaly}]")

    assert "{check: unusual, arguments: {of: [rowCount], falseAlarms: 1/year}}" in former.refusal_reason


def test_a_number_that_needs_a_pass_is_taken_from_a_rule_that_has_one() -> None:
    distinct = "{type: custom, engine: dq, implementation: {check: distinctCount, mustBeGreaterThan: 0}}"
    median = "{type: custom, engine: dq, implementation: {check: quantile, arguments: {q: 0.5}, mustBe: 1}}"
    wanted = rule("of: [distinctCount, p50]")

    refused = clause(COLUMN.replace("%s", wanted))
    taken = clause(COLUMN.replace("%s", f"{distinct}, {median}, {wanted}"))

    assert "{check: distinctCount, mustBeGreaterThan: 0}" in refused.refusal_reason
    assert taken.refusal_reason == ""
    assert {type(metric) for metric in metrics_for(taken, KINDS)} == {DistinctKeys, Aggregate}


def test_the_numbers_of_a_classified_column_are_not_kept() -> None:
    secret = COLUMN.replace("name: v,", "name: v, classification: restricted,")

    assert "is classified" in clause(secret.replace("%s", rule("of: [mean]"))).refusal_reason
    assert clause(secret.replace("%s", rule("of: [nullShare]"))).refusal_reason == ""


def test_what_the_store_keeps_is_what_the_next_run_compares_with(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/dq.db")
    numbers = weekly(60)
    with store.write() as tx:
        for day, rows in enumerate(numbers):
            now = SUNDAY - dt.timedelta(days=len(numbers) - day)
            bound = replace(clause(ROWS), context=RunContext(now, (), ()))
            found = evaluate_clause(bound, dict.fromkeys(metrics_for(bound, KINDS), int(rows)), KINDS)
            results.save_run(
                tx, contract="shop", object="t", version="1.0.0", scope="table",
                results=[found], jobs=1, now=now,
            )  # fmt: skip
        path = clause(ROWS).path
        history = results.earlier_measures(tx, "shop", "t", {path: "schema/t/quality/0"})
        counts = results.earlier_counts(tx, "shop", "t")

    bound = replace(clause(ROWS), context=RunContext(SUNDAY, (), history))
    result = evaluate_clause(bound, dict.fromkeys(metrics_for(bound, KINDS), 150_000), KINDS)

    assert (len(history), result.status) == (60, Status.FAIL)
    assert sorted(count.rows for count in counts) == sorted(numbers)


def test_an_incident_names_the_most_unusual_numbers_first() -> None:
    less = judged(ROWS, [190_000], rowCount=weekly(120))
    more = replace(judged(ROWS, [10], rowCount=weekly(120)), property="v")

    event = results.verdict("shop", "t", "table", [less, more], SUNDAY)

    assert isinstance(event, Breach)
    assert [label for label, _ in event.facts] == ["v unusual", "unusual"]


CONTRACT = """
apiVersion: v3.2.0
kind: DataContract
id: shop
version: 1.0.0
servers: [{server: lake, type: local, path: orders, format: parquet}]
schema:
  - name: orders
    quality: [RULE]
    properties:
      - {name: day, logicalType: date, partitioned: true, partitionKeyPosition: 1}
      - name: amount
        logicalType: number
        physicalType: double
        quality:
          - {type: custom, engine: dq, implementation: {check: mean, mustBeGreaterThan: 0}}
          - {type: custom, engine: dq, implementation: {check: distinctCount, mustBeGreaterThan: 0}}
          - {type: custom, engine: dq, implementation: {check: quantile, arguments: {q: 0.99},
             mustBeGreaterThan: 0}}
          - COLUMN
"""


def contract(*, with_rules: bool) -> str:
    rules = rule("of: [rowCount, bytes, arrival]"), rule("of: [nullShare, mean, sum, distinctCount, p99]")
    text = CONTRACT.replace("RULE", rules[0] if with_rules else "")
    return text.replace("- COLUMN", f"- {rules[1]}" if with_rules else "")


def deliver(folder: Path, days: int) -> None:
    """Partitions of about a hundred rows, the last with half of them and prices in cents."""
    draw = np.random.default_rng(3)
    for day in range(days):
        last = day == days - 1
        rows = 40 if last else int(draw.integers(97, 104))
        partition = folder / f"day={dt.date(2026, 5, 11) + dt.timedelta(days=day)}"
        partition.mkdir(parents=True)
        amounts = draw.normal(20, 2, rows) * (100 if last else 1)
        pq.write_table(pa.table({"amount": amounts}), partition / "part-0.parquet")


@pytest.mark.spark
def test_unusual_numbers_cost_no_pass_of_their_own(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.createDataFrame([(float(number),) for number in range(9)], "amount double").selectExpr(
        "DATE'2026-05-01' AS day", "amount"
    )
    passes, jobs = [], []
    context = spark.sparkContext
    for with_rules in (False, True):
        context.setJobGroup(f"unusual {with_rules}", "")
        report = check(
            Request(read(contract(with_rules=with_rules)), frame, now=SUNDAY, history=(), samples=False)
        )
        passes.append(report.passes)
        jobs.append(len(context.statusTracker().getJobIdsForGroup(f"unusual {with_rules}")))

    assert passes[0] == passes[1]
    assert jobs[0] == jobs[1]


@pytest.mark.spark
def test_a_backtest_shows_what_would_have_been_reported(spark: SparkSession, tmp_path: Path) -> None:
    deliver(tmp_path / "orders", 30)
    shop = read(contract(with_rules=True).replace("path: orders", f"path: '{tmp_path}/orders'"))
    data = locate(shop, shop.objects[0], "lake", anywhere(tmp_path))

    found = backtest(Request(shop, data, spark=spark, now=SUNDAY))

    days = {
        (history.property or "object"): [
            dict(partition)["day"] for partition, _ in history.with_status(Status.FAIL)
        ]
        for history in found.rules
        if history.check == "unusual"
    }
    assert days == {"object": ["2026-06-09"], "amount": ["2026-06-09"]}


def test_bytes_are_those_of_the_files_of_the_partition(tmp_path: Path) -> None:
    deliver(tmp_path / "orders", 3)
    text = contract(with_rules=False).replace("quality: []", f"quality: [{rule('of: [bytes]')}]")
    shop = read(text.replace("path: orders", f"path: '{tmp_path}/orders'"))
    data = locate(shop, shop.objects[0], "lake", anywhere(tmp_path))
    sizes = {file.parent.name: file.stat().st_size for file in tmp_path.rglob("*.parquet")}

    def of(partitions: list[dict[str, str]] | None, **reading: object) -> float | None:
        request = Request(
            shop, data, now=SUNDAY, history=(), rules=["unusual"], partitions=partitions, **reading
        )  # type: ignore[arg-type]
        (result,) = check(request).results
        return result.groups[0].value

    assert of([{"day": "2026-05-12"}]) == sizes["day=2026-05-12"]
    assert of(None) == sum(sizes.values())


@pytest.mark.spark
@pytest.mark.parametrize("optimizations", [frozenset(), ALL])
def test_bytes_read_by_spark_are_the_same(
    spark: SparkSession, tmp_path: Path, optimizations: frozenset[Optimization]
) -> None:
    deliver(tmp_path / "orders", 3)
    text = contract(with_rules=False).replace("quality: []", f"quality: [{rule('of: [bytes]')}]")
    shop = read(text.replace("path: orders", f"path: '{tmp_path}/orders'"))
    data = locate(shop, shop.objects[0], "lake", anywhere(tmp_path))
    sizes = {file.parent.name: file.stat().st_size for file in tmp_path.rglob("*.parquet")}
    request = Request(shop, data, spark=spark, now=SUNDAY, history=(), rules=["unusual"],
                      optimizations=optimizations)  # fmt: skip

    for partitions, expected in (
        ([{"day": "2026-05-12"}], sizes["day=2026-05-12"]),
        (None, sum(sizes.values())),
    ):
        (result,) = check(replace(request, partitions=partitions)).results
        assert result.groups[0].value == expected


def _days(results: Sequence[tuple[Partition, CheckResult]]) -> list[str]:
    return [dict(partition)["day"] for partition, _ in results]
