"""The small languages of the room: SQL text, operators, patterns, predicates, metrics, messages of Spark."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from fractions import Fraction

import pytest

from dq.contracts.model import Contract, Quality
from dq.contracts.sql import text as sql
from dq.contracts.yaml.parse import parse
from dq.dataquality.clauses.kind import percent
from dq.dataquality.java_pattern import to_java
from dq.dataquality.model.column import Column, Need, resolve
from dq.dataquality.model.metric import Failure, MetricExecution, aggregate, count, duplicates, merge_answers
from dq.dataquality.model.predicate import Inside
from dq.dataquality.model.run_context import Unusable, threshold
from dq.dataquality.spark.measure import MAX_EXPRESSIONS, plan
from dq.dataquality.spark.schema import ddl
from dq.lake.types import from_spark_json


def quality(rule: str) -> Quality:
    text = "apiVersion: v3.2.0\nkind: DataContract\nid: a\nversion: 1.0.0\nschema:\n"
    contract = parse(f"{text}  - {{name: t, quality: [{rule}]}}\n".encode(), "a.odcs.yaml").contract
    assert isinstance(contract, Contract)
    return contract.objects[0].quality[0]


LITERALS = [
    (sql.name("a.b`c"), "`a.b``c`"),
    (sql.text("plain é 🙂"), "'plain é 🙂'"),
    (sql.text("it's"), "CAST(X'69742773' AS STRING)"),
    (sql.text("a\\b"), "CAST(X'615C62' AS STRING)"),
    (sql.text("${x}"), "CAST(X'247B787D' AS STRING)"),
    (sql.number(0.1), "0.1"),
    (sql.number(-5), "(-5)"),
    (sql.number(1e300), "(1e+300D)"),
    (sql.number(Decimal("9" * 38)), "9" * 38),
    (sql.number(10**38), "(1e+38D)"),
    (sql.date(dt.date(999, 1, 2)), "DATE'0999-01-02'"),
    (
        sql.timestamp(dt.datetime(2026, 1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=2)))),
        "TIMESTAMP'2025-12-31 23:00:00Z'",
    ),
]


@pytest.mark.parametrize(("written", "expected"), LITERALS)
def test_values_become_literals_that_no_setting_of_spark_reads_differently(
    written: str, expected: str
) -> None:
    assert written == expected


def test_what_is_no_number_or_no_instant_is_refused() -> None:
    with pytest.raises(ValueError, match="not a finite number"):
        sql.number(float("nan"))
    with pytest.raises(ValueError, match="no instant"):
        sql.timestamp(dt.datetime.combine(dt.date(2026, 1, 1), dt.time()))


OPERATORS = [
    ("mustBe: 5", [5], [4, 6], "exactly 5"),
    ("mustNotBe: 0.1", [0], [Fraction(1, 10)], "anything but 0.1"),
    ("mustBeGreaterThan: 5", [6], [5], "more than 5"),
    ("mustBeGreaterOrEqualTo: 5", [5], [4], "at least 5"),
    ("mustBeLessThan: 5", [4], [5], "less than 5"),
    ("mustBeLessOrEqualTo: 5.5", [5], [6], "at most 5.5"),
    ("mustBeBetween: [1, 3]", [1, 2, 3], [0, 4], "1 to 3"),
    ("mustNotBeBetween: [1, 3]", [0, 4], [1, 2, 3], "outside 1 to 3"),
]


@pytest.mark.parametrize(("rule", "kept", "broken", "shown"), OPERATORS)
def test_an_operator_keeps_and_breaks(rule: str, kept: list[int], broken: list[int], shown: str) -> None:
    limit = threshold(quality(f"{{metric: rowCount, {rule}}}"))

    assert [limit.holds(value) for value in kept] == [True] * len(kept)
    assert [limit.holds(value) for value in broken] == [False] * len(broken)
    assert str(limit) == shown


NO_OPERATORS = [
    ("description: x", "no operator"),
    ("mustBe: 1, mustBeLessThan: 2", "2 operators"),
    ("mustBe: many", "a number, not 'many'"),
    ("mustBe: true", "a number, not True"),
    ("mustBe: .nan", "a finite number"),
    ("mustBeBetween: [1]", r"takes 2 number\(s\), not 1"),
    ("mustBeBetween: [3, 1]", "3 is greater than 1"),
]


@pytest.mark.parametrize(("rule", "said"), NO_OPERATORS)
def test_a_rule_without_one_clear_operator_is_unusable(rule: str, said: str) -> None:
    with pytest.raises(Unusable, match=said):
        threshold(quality(f"{{metric: rowCount, {rule}}}"))


def test_a_percentage_never_rounds_to_none_or_all() -> None:
    assert [percent(Fraction(value)) for value in (0, 100, Fraction(100, 3))] == ["0", "100", "33.33"]
    assert percent(Fraction(100, 10**9)) == "1e-07"
    assert percent(100 - Fraction(1, 10**6)) == "99.999999"


def test_a_pattern_means_the_same_in_java() -> None:
    assert to_java(r"^[.$\w]+\.\d{2}$").text == r"^[.$\w]+\.\d{2}\z"
    assert to_java("a.b").text == (
        r"a[\x{E}-\x{7F}[\x{0}-\x{9}[\x{B}-\x{C}[\x{202A}-\x{10FFFF}[\x{80}-\x{2027}]]]]]b"
    )
    assert to_java(r"^[^\S]").text == "^" + to_java(r"\s").text
    assert to_java(r"[^\p{L}]").text == r"[^\p{L}]"
    with pytest.raises(Unusable, match="position 1"):
        to_java("(?i)a")


def test_a_search_leaves_out_the_repetition_that_it_does_not_need() -> None:
    assert to_java(r".*@\d+").text == r"@\d+"


STRUCT = {
    "type": "struct",
    "fields": [
        {"name": "a b", "type": {"type": "array", "elementType": "integer", "containsNull": True}},
        {"name": "m", "type": {"type": "map", "keyType": "string", "valueType": "decimal(3,1)"}},
        {"name": "s", "type": {"type": "struct", "fields": [{"name": "T", "type": "timestamp_ntz"}]}},
        {"name": "odd", "type": "interval day to second"},
    ],
}


def test_a_schema_of_spark_comes_and_goes() -> None:
    schema = from_spark_json(STRUCT)

    assert str(schema) == (
        "struct<a b:array<int>,m:map<string,decimal(3,1)>,s:struct<T:timestamp_ntz>,"
        "odd:interval day to second>"
    )
    assert ddl(schema) == (
        "`a b` array<int>, `m` map<string, decimal(3,1)>, `s` struct<`T`: timestamp_ntz>, "
        "`odd` interval day to second"
    )


COLUMNS = [
    (("A B", Inside.ITEM), "int"),
    (("m", Inside.KEY), "string"),
    (("m", Inside.VALUE), "decimal(3,1)"),
    (("s", "t"), "timestamp_ntz"),
    (("s", "u"), "column 's.u' is missing"),
    (("m", "u"), "m is map<string,decimal(3,1)>, not struct"),
    (("s", Inside.ITEM), "s is struct<T:timestamp_ntz>, not array"),
]


@pytest.mark.parametrize(("steps", "found"), COLUMNS)
def test_a_column_is_found_by_its_way(steps: tuple[str | Inside, ...], found: str) -> None:
    assert str(resolve(from_spark_json(STRUCT), Column(steps))) == found


def test_equal_questions_are_asked_once_and_long_passes_are_split() -> None:
    schema = from_spark_json(STRUCT)
    many = [count(f"`odd` = {index}") for index in range(MAX_EXPRESSIONS)]
    deep = count("x", (Need(Column(("a b", Inside.ITEM))),))

    made = plan(
        [count(), count(), *many, deep, duplicates((Column(("odd",)),)), duplicates((Column(("no",)),))],
        schema,
    )

    assert [(one.kind, len(one.metrics)) for one in made.passes] == [
        (MetricExecution.ROWS, MAX_EXPRESSIONS),
        (MetricExecution.ROWS, 1),
        (MetricExecution.INTERPRETED, 1),
        (MetricExecution.DUPLICATES, 1),
    ]
    assert [failure.message for _, failure in made.failures] == ["column 'no' is missing"]


def test_answers_merge_as_their_metric_says() -> None:
    least = aggregate("min", "a")
    broken = Failure("no")

    assert merge_answers(count(), 2, 3) == 5
    assert (merge_answers(least, 2, 3), merge_answers(least, None, 3), merge_answers(least, None, None)) == (
        2,
        3,
        None,
    )
    assert (merge_answers(count(), 2, broken), merge_answers(count(), broken, 2)) == (broken, broken)
    assert isinstance(merge_answers(duplicates(()), 1, 2), Failure)
