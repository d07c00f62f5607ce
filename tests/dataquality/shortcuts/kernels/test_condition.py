"""Predicates of users' SQL over Arrow columns: the same truth, with NULL, or left to Spark."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal

import pyarrow as pa
import pytest

from dq.contracts.types import DataType
from dq.dataquality.answers.python_tasks import BatchColumns, condition
from dq.dataquality.model.predicate import Opaque

TYPES = {
    "n": DataType("int"),
    "m": DataType("int"),
    "big": DataType("bigint"),
    "price": DataType("decimal", (9, 2)),
    "day": DataType("date"),
    "word": DataType("string"),
    "flag": DataType("boolean"),
    "ratio": DataType("double"),
    "at": DataType("timestamp"),
}
ROWS = {
    "n": pa.array([1, None, -5], pa.int32()),
    "m": pa.array([1, 2, None], pa.int32()),
    "big": pa.array([2**63 - 1, -(2**63), None], pa.int64()),
    "price": pa.array([Decimal("0.00"), Decimal("-9999999.99"), None], pa.decimal128(9, 2)),
    "day": pa.array([dt.date(2026, 1, 1), dt.date(1999, 12, 31), None], pa.date32()),
    "word": pa.array(["", "e\u0301🙂", None], pa.string()),
    "flag": pa.array([True, False, None], pa.bool_()),
    "ratio": pa.array([1.0, None, float("nan")], pa.float64()),
    "at": pa.array([dt.datetime(2026, 1, 1, tzinfo=dt.UTC), None, None], pa.timestamp("us", tz="UTC")),
}
T, F, N = True, False, None
ALIKE = {
    "`n` IS NULL": [F, T, F],
    "`n` < 0": [F, N, T],
    "`n` < 0 OR isnan(`n`)": [F, N, T],
    "isnan(`price`)": [F, F, F],
    "(`n` > (-5)) AND (`m` = 1)": [T, F, F],
    "NOT (`n` >= 1)": [F, N, T],
    "`n` <= 1.0": [T, N, T],
    "`big` > 0": [T, F, N],
    "`big` >= 9223372036854775807": [T, F, N],
    "`price` < 0": [F, T, N],
    "`price` >= 0.0": [T, F, N],
    "`price` <> (-9999999.99)": [T, F, N],
    "`price` > 123456789012345678901234567890": [F, F, N],
    "`day` < DATE'2000-01-01'": [F, T, N],
    "`n` = `m`": [T, N, N],
    "`word` = ''": [T, F, N],
    "NOT (`word` IN ('', 'a'))": [F, T, N],
    "`n` IN (1, 2)": [T, N, F],
    "`price` IN (0, 1.5)": [T, F, N],
    "char_length(`word`) > 2": [F, T, N],
    "char_length(`word`) < 1": [T, F, N],
    "`word` = CAST(X'41' AS STRING)": [F, F, N],
    "`flag` = TRUE": [T, F, N],
    "`ratio` IS NULL": [F, T, F],
    "`at` IS NULL": [F, T, T],
}
UNLIKE = (
    "`ratio` < 0",
    "`at` < TIMESTAMP'2026-01-01 00:00:00Z'",
    "`n` = `big`",
    "`price` < 0.001",
    "`n` < 0.5",
    "`n` < 9223372036854775808",
    "`word` < 'a'",
    "`word` RLIKE 'a'",
    "`n` + 1 > 0",
    "`n` = '1'",
    "`N` = 1",
    "`s`.`n` = 1",
    "`flag`",
    "`n` IN (1, NULL)",
    "`n` <=> 1",
    "upper(`word`) = 'A'",
    "exists(`xs`, x -> x IS NULL)",
    "`n` <",
    "CAST(`n` AS DATE) = DATE'2026-01-01'",
)


@pytest.mark.parametrize("text", ALIKE)
def test_it_has_the_truth_of_sql(text: str) -> None:
    found = condition(Opaque(text), TYPES)

    assert found is not None
    assert found.evaluate(ROWS).to_pylist() == ALIKE[text]


@pytest.mark.parametrize("text", UNLIKE)
def test_what_may_mean_something_else_is_left_to_spark(text: str) -> None:
    assert condition(Opaque(text), TYPES) is None


def test_it_says_which_columns_it_reads() -> None:
    found = condition(Opaque("(`n` > 0) OR (`m` IS NULL)"), TYPES)

    assert found is not None
    assert found.columns == {"n", "m"}


@pytest.mark.parametrize("letters", ["ab", "é", "aé", "a🙂", "\x00\x7f"])
def test_views_of_texts_have_their_lengths(letters: str) -> None:
    drawn = random.Random(letters)
    lengths = (0, 1, 3, 4, 5, 11, 12, 13, 40)
    texts = ["".join(drawn.choices(letters, k=drawn.choice(lengths))) for _ in range(500)]
    words = [None if drawn.random() < 0.1 else text for text in texts]
    views = pa.RecordBatch.from_arrays(
        [pa.array(words, pa.string_view()).slice(drawn.randrange(9))], ["word"]
    )
    found = condition(Opaque("char_length(`word`) >= 12"), TYPES)

    assert found is not None
    expected = [None if word is None else len(word) >= 12 for word in views["word"].to_pylist()]
    assert found.evaluate(BatchColumns(views, {"word": pa.string()})).to_pylist() == expected


@pytest.mark.parametrize("words", [[], [None], [b"\xff"], [b"\xff" * 20]])
def test_views_of_nothing_or_of_bytes_that_are_no_text(words: list[bytes | None]) -> None:
    views = pa.RecordBatch.from_arrays([pa.array(words, pa.binary_view()).view(pa.string_view())], ["word"])
    found = condition(Opaque("char_length(`word`) > 1"), TYPES)

    assert found is not None
    if words and words[0]:
        with pytest.raises(pa.ArrowInvalid):
            found.evaluate(BatchColumns(views, {"word": pa.string()}))
    else:
        assert found.evaluate(BatchColumns(views, {"word": pa.string()})).to_pylist() == words


def test_bytes_that_are_no_text_have_no_length() -> None:
    found = condition(Opaque("char_length(`word`) > 1"), TYPES)
    broken = pa.array([b"\xff\xfe"], pa.binary()).view(pa.string())

    assert found is not None
    with pytest.raises(pa.ArrowInvalid):
        found.evaluate({"word": broken})
