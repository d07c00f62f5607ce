"""A value is a key in each type and spelling, and no other value is; Arrow's path is that of Python."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dq.dataquality.erasure.keys import Keys, Unsearchable

UUID = "00112233-4455-6677-8899-aabbccddeeff"
LARGE, MOMENT = pa.large_string(), dt.datetime(2001, 2, 3, tzinfo=dt.UTC)
KEYS = Keys(("ann@example.com", "17", "2001-02-03", UUID, "Straße 7", "+49 170 1234567", "0.5"))


@pytest.mark.parametrize(
    ("values", "normalize", "hits"),
    [
        (pa.array(["Ann@Example.com ", None, "ann@example.org"]), "text", {0: (0,)}),
        (pa.array(["Ann@Example.com ", "ann@example.com"]), "exact", {1: (0,)}),
        (pa.array(["\tＡnn@example.com", "ann\x00@example.com"], LARGE), "text", {0: (0,), 1: (0,)}),
        (pa.array(["ann@example.com", "x"], pa.string_view()), "text", {0: (0,)}),
        (pa.array(["STRASSE  7", "strasse7"]), "text", {0: (4,)}),
        (pa.array([UUID.upper(), UUID.replace("-", ""), "{" + UUID]), "text", {0: (3,), 1: (3,)}),
        (pa.array(["0170/1234567", "0049 170 1234567", "0171 1234567"]), "phone:49", {0: (5,), 1: (5,)}),
        (pa.array([1701234567, 491701234567, 18], pa.int64()), "phone:49", {0: (5,), 1: (5,)}),
        (pa.array([17, 18, None], pa.int8()), "text", {0: (1,)}),
        (pa.array([17, 18], pa.uint64()), "exact", {0: (1,)}),
        (pa.array([Decimal("17.00"), Decimal("0.50")], pa.decimal128(9, 2)), "text", {0: (1,), 1: (6,)}),
        (pa.array([17.0, 0.5, float("nan")]), "text", {0: (1,), 1: (6,)}),
        (pa.array([17.0, 0.5], pa.float32()), "text", {0: (1,), 1: (6,)}),
        (pa.array([dt.date(2001, 2, 3), dt.date(2001, 2, 4)]), "text", {0: (2,)}),
        (pa.array([MOMENT], pa.timestamp("ns", "Europe/Berlin")), "text", {0: (2,)}),
        (pa.array([MOMENT], pa.timestamp("ms")), "text", {0: (2,)}),
        (pa.array([bytes.fromhex(UUID.replace("-", ""))], pa.binary(16)), "text", {0: (3,)}),
        (pa.array([b"ANN@example.com", b"\xff"]), "text", {0: (0,)}),
        (pa.array(["x", "ann@example.com", "x"]).dictionary_encode(), "text", {1: (0,)}),
        (pa.array([True, False]), "text", {}),
        (pa.nulls(3), "text", {}),
    ],
)  # fmt: skip
def test_a_value_of_each_type_is_compared_by_value(values: pa.Array, normalize: str, hits: dict) -> None:
    assert dict(KEYS.in_array(values, normalize)) == hits


def test_a_type_that_cannot_be_compared_is_not_passed_over() -> None:
    with pytest.raises(Unsearchable, match="time64"):
        KEYS.in_array(pa.array([dt.time(1)]), "text")


def test_two_keys_with_one_spelling_are_both_hit() -> None:
    assert Keys(("A@x", "b", "a@X ")).in_array(pa.array(["a@x"]), "text") == [(0, (0, 2))]


def test_keys_are_not_shown() -> None:
    assert "ann" not in f"{KEYS!r} {KEYS}"


ODD = st.text(st.sampled_from("aA1 ß\u0130é\u0301\u200b\x00\t ﬁ\x1c+(0)49"), max_size=8)


@settings(max_examples=400, deadline=None)
@given(
    st.lists(ODD, min_size=1, max_size=4),
    st.lists(ODD, max_size=12),
    st.sampled_from(["text", "exact", "phone:49"]),
)
def test_arrow_finds_the_texts_that_python_finds(keys: list[str], texts: list[str], normalize: str) -> None:
    expected = {
        at: hit for at, text in enumerate(texts) if (hit := Keys(tuple(keys)).matching(text, normalize))
    }

    assert dict(Keys(tuple(keys)).in_array(pa.array(texts, pa.string()), normalize)) == expected
