"""Predicates mean to Python what they mean to Spark, on the values where engines like to differ."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from fakes.examples import contract_of, examples_of

from dq.dataquality.answers.rows import Incomparable, compile_predicate
from dq.dataquality.checks import built_in
from dq.dataquality.clauses.kind import clauses_of
from dq.dataquality.model.column import needs
from dq.dataquality.model.predicate import Constant, Opaque, Predicate, UnsupportedPredicate
from dq.dataquality.spark.measure import schema_of
from dq.dataquality.sql_predicate import predicate_sql

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TEXTS = (
    "", " ", "a", "A", "ab", "open", "OPEN", "it's", "a\\b", "é", "e\u0301", "ß", "İ", "🙂", "🙂🙂",
    "\n", "a\n", "\r\n", "\u0085", "\u00a0", "\u2028", "\ufeff", "٣", "1", "01", "-1", "+1", "1.5",
    "1e3", "NaN", "null", "N/A", "kg", "0000-01-31", "0000-02-29", "2024-02-29", "2023-02-29",
    "1900-02-29", "2000-02-29", "9999-12-31", "10000-01-01", "29.02.2024", "29.02.2023",
    "31.04.2024", "1.1.2024", "29 Feb 24", "30 Feb 24", "9 Dec 99", "2024-03-10T14:22:35Z",
    "2024-03-10T14:22:35+10:00", "2024-03-10T24:00:00Z", "23:59", "24:00", "eve@example.com", "a@b",
    "a@-b.de", "00000000-0000-0000-0000-000000000000", "::1", "1::2::3", "0.0.0.0", "256.0.0.1",
    "https://a.de:80/p?q=1#f", "http://a b", "QQ==", "QQ", "10.00 '$'", "éb", "DE", "DE\n", "${a}",
)  # fmt: skip
DOUBLES = (
    0.0, -0.0, 0.07, 0.1, 0.3, 1.005, -1.1, 1e-18, 1e-19, 5e-324, 1e15, 99999999999999999999.0, 1e20, 1e300,
    float("inf"), float("-inf"), float("nan"), 2.0**53, 2.0**53 + 2,
)  # fmt: skip
INTEGERS = (0, 1, -1, 5, -5, 127, 128, -128, -129, 2**31, 2**53 + 1, 2**63 - 1, -(2**63))
DECIMALS = tuple(Decimal(one) for one in ("0", "-0.00", "0.01", "1.005", "-1.1", "9" * 20, f"-{'9' * 20}"))
DATES = tuple(
    dt.date(*one) for one in ((1, 1, 1), (1000, 1, 1), (1582, 10, 10), (1970, 1, 1), (9999, 12, 31))
)
INSTANTS = tuple(
    dt.datetime(*one, tzinfo=dt.UTC) for one in ((1999, 1, 1), (2025, 12, 31, 23), (2026, 1, 1, 0, 0, 1))
)
VALUES = {
    "string": TEXTS,
    "double": DOUBLES,
    "bigint": INTEGERS,
    "decimal(38,18)": DECIMALS,
    "date": DATES,
    "timestamp": INSTANTS,
    "boolean": (True, False),
}


def predicates(kind: str) -> list[Predicate]:
    """Every predicate of the checks' examples on a column `v` of this type."""
    found: dict[Predicate, None] = {}
    for check in built_in().values():
        for example in examples_of(check.id):
            contract = contract_of(example)
            for clause in clauses_of(contract, contract.objects[0], {check.id: check}):
                if clause.breaks is None:
                    continue
                read = needs(clause.breaks)
                of_v = {str(need.column) for need in read} == {"v"}
                fits = all(not need.types or kind.split("(")[0] in need.types for need in read)
                typed = any(need.types for need in read) or example.columns == f"v {kind}"
                # Spark has no right answer for numbers of more digits; dq refuses to ask.
                narrow = all(need.digits[0] <= 20 and need.digits[1] <= 18 for need in read)
                if of_v and fits and typed and (narrow or not kind.startswith("decimal")):
                    found[clause.breaks] = None
    return list(found)


@pytest.mark.spark
@pytest.mark.parametrize("kind", VALUES)
def test_a_predicate_is_true_for_python_exactly_where_it_is_for_spark(spark: SparkSession, kind: str) -> None:
    asked = predicates(kind)
    rows = [(number, value) for number, value in enumerate((*VALUES[kind], None))]
    frame = spark.createDataFrame(rows, f"n int, v {kind}")
    schema = schema_of(frame)
    shown = [f"coalesce({predicate_sql(one, schema)}, FALSE) AS `{at}`" for at, one in enumerate(asked)]

    on_spark = {row["n"]: row for row in frame.selectExpr("n", *shown).collect()}
    differ = [
        (one, value, on_spark[number][str(at)])
        for at, one in enumerate(asked)
        for number, value in rows
        if compile_predicate(one, schema)({"v": value}) != on_spark[number][str(at)]
    ]

    assert asked
    assert differ == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("reflect('java.lang.System', 'exit')", "needs Spark"),
        ("v RLIKE '\\\\p{L}'", "Java's regular expressions"),
        ("CAST(v AS INT) > 1", "a cast to int needs Spark"),
        ("v > (SELECT 1)", "needs Spark"),
        ("v IN (SELECT 1)", "needs Spark"),
        ("v LIKE 'a%'", "needs Spark"),
        ("v >", "not understood"),
    ],
)
def test_what_has_no_reading_is_refused_with_its_reason(text: str, said: str) -> None:
    with pytest.raises(UnsupportedPredicate, match=said):
        compile_predicate(Opaque(text))


@pytest.mark.parametrize("value", [1, True, b"x"])
def test_values_that_spark_would_cast_are_not_guessed_at(value: object) -> None:
    with pytest.raises(Incomparable):
        compile_predicate(Opaque("v = 'a'"))({"v": value})


def test_a_column_that_is_not_there_is_no_null() -> None:
    with pytest.raises(Incomparable, match="column 'w' is missing"):
        compile_predicate(Opaque("w IS NULL"))({"v": 1})


def test_only_maps_structs_vectors_and_custom_checks_have_no_reading() -> None:
    unread = {}
    for check in built_in().values():
        for example in examples_of(check.id):
            contract = contract_of(example)
            for clause in clauses_of(contract, contract.objects[0], {check.id: check}):
                try:
                    compile_predicate(clause.breaks or Constant(True))
                except UnsupportedPredicate as error:
                    unread[check.id] = str(error)

    assert set(unread) <= {"custom", "items", "required_fields", "vector"}
