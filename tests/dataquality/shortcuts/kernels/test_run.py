"""Python tasks give the answers of Spark, or leave the question to it."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fakes.opened import open_frame
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dq.contracts.types import DataType
from dq.dataquality.answers.sources import KnownAnswers, Optimization, ReadOptions, answer_without_scan
from dq.dataquality.model.column import Column, Need
from dq.dataquality.model.metric import Metric, count, distinct, duplicates
from dq.dataquality.model.metric import aggregate as ask
from dq.dataquality.spark.dataset import Dataset
from dq.dataquality.spark.measure import measure, plan, schema_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

TASKS = frozenset({Optimization.KERNELS, Optimization.LOCAL_KEYS})


def column(*steps: str) -> Column:
    return Column(steps)


def of(aggregate: str, name: str, where: str = "") -> Metric:
    return ask(aggregate, f"`{name}`", where, needs=(Need(column(name)),))


def counted(where: str, *names: str) -> Metric:
    return count(where, tuple(Need(column(name)) for name in names))


def write(lake: Path, *tables: pa.Table, **options: Any) -> Dataset:
    lake.mkdir(exist_ok=True)
    for number, table in enumerate(tables):
        pq.write_table(table, lake / f"part-{number}.parquet", store_decimal_as_integer=True, **options)
    return Dataset("t", str(lake), "parquet", None, DataType("struct"), ())


def asked(spark: SparkSession, data: Dataset, *metrics: Metric) -> KnownAnswers:
    """What tasks answer, after it was compared with what Spark answers."""
    frame = open_frame(spark, data)
    found = answer_without_scan(metrics, frame, data, (), ReadOptions(TASKS, tasks_from=0))
    scanned = measure(frame, plan(metrics, schema_of(frame)))
    assert dict(found.answers) == {metric: scanned[metric] for metric in found.answers}
    # Equal numbers of another type would print in another way.
    assert {m: type(a) for m, a in found.answers.items()} == {m: type(scanned[m]) for m in found.answers}
    return found


PRICES = [Decimal("0.01"), None, Decimal("99999.99"), Decimal("0.02"), Decimal("-3.00")]
SHOP = pa.table(
    {
        "id": pa.array([1, 2, 3, 4, 5], pa.int64()),
        "line": pa.array([1, 1, 2, 2, None], pa.int32()),
        "price": pa.array(PRICES, pa.decimal128(15, 2)),
        "day": pa.array([dt.date(2026, 1, day) for day in range(1, 6)], pa.date32()),
        "word": pa.array(["a", "", None, "ž🙂", "a"], pa.string()),
        "ratio": pa.array([0.5, None, float("nan"), -0.0, 0.0], pa.float64()),
    }
)
MORE = SHOP.set_column(0, "id", pa.array([6, 7, 8, 9, 10], pa.int64()))
METRICS = (
    count(),
    counted("`line` IS NULL", "line"),
    counted("`price` < 0 OR isnan(`price`)", "price"),
    counted("NOT (`word` IN ('a', 'b'))", "word"),
    counted("char_length(`word`) > 1", "word"),
    counted("`id` > `line`", "id", "line"),
    of("max", "day"),
    of("min", "price", "`id` > 1"),
    of("avg", "price"),
    of("sum", "price", "`id` <> 2"),
    distinct((column("word"),)),
    distinct((column("day"),)),
    distinct((column("id"), column("line"))),
    distinct((column("word"), column("price"))),
    duplicates((column("id"),)),
    duplicates((column("id"), column("line"))),
)


def test_one_job_answers_all_plain_questions(spark: SparkSession, tmp_path: Path) -> None:
    data = write(tmp_path / "lake", SHOP, MORE)

    counts = (metric for metric in METRICS if metric != counted("`id` > `line`", "id", "line"))
    found = asked(spark, data, *counts)

    assert set(found.answers) == set(METRICS) - {counted("`id` > `line`", "id", "line")}
    assert found.passes == 1


@pytest.mark.parametrize("letters", ["ab", "ž🙂"])
def test_texts_that_are_views_are_compared_and_counted(
    spark: SparkSession, tmp_path: Path, letters: str
) -> None:
    texts = [letters[0] * length for length in (0, 1, 4, 11, 12, 13, 200)] * 3 + [letters, None]
    data = write(tmp_path / "lake", pa.table({"word": pa.array(texts, pa.string_view())}))
    metrics = (
        counted("char_length(`word`) > 12", "word"),
        counted("char_length(`word`) < 1", "word"),
        counted("NOT (`word` IN ('', 'a'))", "word"),
        counted("`word` IS NULL", "word"),
        distinct((column("word"),)),
    )

    assert set(asked(spark, data, *metrics).answers) == set(metrics)


def test_columns_of_two_types_are_compared_by_spark(spark: SparkSession, tmp_path: Path) -> None:
    found = asked(spark, write(tmp_path / "lake", SHOP), counted("`id` > `line`", "id", "line"))

    assert not found.answers


LEFT = {
    "floats": counted("`ratio` < 0", "ratio"),
    "an average of floats": of("avg", "ratio"),
    "a pattern": counted("NOT (`word` RLIKE 'a')", "word"),
    "keys of floats": duplicates((column("ratio"),)),
    "different floats": distinct((column("ratio"),)),
    "some rows' keys": duplicates((column("id"),), "`line` = 1"),
    "different pairs with a float": distinct((column("id"), column("ratio"))),
    "the greatest text": of("max", "word"),
}


@pytest.mark.parametrize("story", LEFT)
def test_what_may_differ_is_left_to_spark(spark: SparkSession, tmp_path: Path, story: str) -> None:
    found = asked(spark, write(tmp_path / "lake", SHOP), LEFT[story])

    assert (dict(found.answers), found.passes) == ({}, 0)


def keys(*ids: int | None) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


REPEATED = {
    "sorted": ((keys(1, 2, 3), keys(4, 5)), 0),
    "unsorted": ((keys(3, 1, 2, 1, 1),), 2),
    "sorted and repeated": ((keys(1, 2, 2, 3), keys(4, 4)), 2),
    "in two files": ((keys(1, 5), keys(5, 9)), 1),
    "at every cut": ((keys(1, 5, 5), keys(5, 5, 9), keys(9, 10, 9), keys(None, 10)), 6),
    "in a file of one value": ((keys(1, 5), keys(5, 5), keys(5, 9), keys(7, 8)), 3),
    "NULLs repeat nothing": ((keys(None, None, 1), keys(None)), 0),
    "no rows": ((keys(),), 0),
    "no keys": ((keys(None), keys(None)), 0),
}


@pytest.mark.parametrize("story", REPEATED)
def test_repeated_keys_are_found_wherever_they_stand(spark: SparkSession, tmp_path: Path, story: str) -> None:
    tables, repeated = REPEATED[story]
    metric = duplicates((column("id"),))

    found = asked(spark, write(tmp_path / "lake", *tables), metric)

    assert found.answers == {metric: repeated}


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(st.tuples(st.integers(0, 6), st.integers(0, 3)), min_size=1, max_size=24).map(sorted),
    cuts=st.lists(st.integers(0, 24), max_size=4).map(sorted),
)
def test_sorted_rows_are_counted_alike_however_they_are_cut(
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[int, int]],
    cuts: list[int],
) -> None:
    pieces = [rows[start:end] for start, end in pairwise([0, *cuts, len(rows)])]
    lake = tmp_path_factory.mktemp("cut") / "lake"
    tables = [
        pa.table({"id": pa.array(ids, pa.int64()), "line": pa.array(lines, pa.int32())})
        for ids, lines in (zip(*piece, strict=True) for piece in pieces if piece)
    ]
    metrics = duplicates((column("id"),)), duplicates((column("line"), column("id")))

    found = asked(spark, write(lake, *tables), *metrics)

    assert metrics[0] in found.answers


def test_one_value_in_nearly_all_rows_is_one_key(spark: SparkSession, tmp_path: Path) -> None:
    heap = pa.table({"id": pa.array([5] * 100_001, pa.int64())})
    before, after = pa.concat_tables([keys(1), heap]), keys(5, 9)

    found = asked(spark, write(tmp_path / "lake", before, after), duplicates((column("id"),)), count())

    assert found.answers[duplicates((column("id"),))] == 100_001


def test_keys_without_an_order_are_exchanged_between_tasks(spark: SparkSession, tmp_path: Path) -> None:
    ids = [(number * 7_919) % 10_007 for number in range(12_000)]
    tables = [
        pa.table({"id": pa.array(ids[at::3], pa.int64()), "word": pa.array(map(str, ids[at::3]))})
        for at in range(3)
    ]
    metrics = [ask((column(name),)) for ask in (duplicates, distinct) for name in ("id", "word")]

    found = asked(spark, write(tmp_path / "lake", *tables), *metrics)

    assert list(found.answers.values()) == [1_993, 1_993, 10_007, 10_007]
    assert found.passes == 1


def test_an_average_is_rounded_as_spark_rounds_it(spark: SparkSession, tmp_path: Path) -> None:
    thirds = pa.table(
        {
            "price": pa.array(
                [Decimal("0.01"), Decimal("0.01"), Decimal("0.03")] * 2 + [Decimal("-1.00")] * 3,
                pa.decimal128(18, 2),
            )
        }
    )

    found = asked(spark, write(tmp_path / "lake", thirds), of("avg", "price"), of("sum", "price"))

    assert len(found.answers) == 2


def test_nothing_has_no_extreme_and_no_average(spark: SparkSession, tmp_path: Path) -> None:
    empty = SHOP.slice(0, 0)
    metrics = [of(aggregate, "price") for aggregate in ("min", "max", "avg", "sum")]

    found = asked(spark, write(tmp_path / "lake", empty), *metrics)

    assert found.answers == dict.fromkeys(metrics)


def test_a_question_that_a_task_cannot_answer_leaves_the_others_theirs(
    spark: SparkSession, tmp_path: Path
) -> None:
    broken = pa.table(
        {"id": pa.array([1], pa.int64()), "word": pa.array([b"\xff"], pa.binary()).view(pa.string())}
    )
    length, number = counted("char_length(`word`) > 3", "word"), counted("`id` > 0", "id")

    found = asked(spark, write(tmp_path / "lake", broken), length, number)

    assert found.answers == {number: 1}


def test_old_dates_are_left_to_spark(spark: SparkSession, tmp_path: Path) -> None:
    old = pa.table({"day": pa.array([dt.date(1500, 1, 1)], pa.date32())})

    found = asked(spark, write(tmp_path / "lake", old), counted("`day` < DATE'1600-01-01'", "day"))

    assert not found.answers


def test_small_tables_start_no_tasks(spark: SparkSession, tmp_path: Path) -> None:
    data = write(tmp_path / "lake", SHOP)

    found = answer_without_scan([count()], open_frame(spark, data), data, (), ReadOptions(TASKS))

    assert (dict(found.answers), found.passes) == ({}, 0)
