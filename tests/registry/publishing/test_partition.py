"""Which values a partition key takes, and the one spelling that each of them has."""

from __future__ import annotations

import pytest

from dq.contracts.outcome import UsageError
from dq.registry.publications import partition_values, values_by_key
from dq.registry.table import TableColumn, TableSpec


def value(kind: str, text: str) -> str:
    spec = TableSpec(
        "air", "flights", "", "parquet", (TableColumn("id", "int"),), (TableColumn("key", kind),)
    )
    return partition_values(spec, {"key": text})[0][1]


@pytest.mark.parametrize(
    ("kind", "text", "spelled"),
    [
        ("int", "07", "7"),
        ("int", "-2147483648", "-2147483648"),
        ("int", "+5", "5"),
        ("tinyint", "127", "127"),
        ("bigint", "9223372036854775807", "9223372036854775807"),
        ("decimal(5,2)", "7.5", "7.50"),
        ("decimal(5,2)", "-0", "0.00"),
        ("decimal(5,2)", "999.99", "999.99"),
        ("decimal(38,0)", "9" * 38, "9" * 38),
        ("boolean", "True", "true"),
        ("date", "2026-11-20", "2026-11-20"),
        ("timestamp", "2026-11-20T07:00:00", "2026-11-20 07:00:00"),
        ("timestamp", "2026-11-20 07:00:00.500000", "2026-11-20 07:00:00.5"),
        ("varchar(3)", "abc", "abc"),
        ("string", " any text ", " any text "),
    ],
)
def test_a_value_has_one_spelling(kind: str, text: str, spelled: str) -> None:
    assert value(kind, text) == spelled


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("int", "99999999999"),
        ("int", "1_000"),
        ("int", "٣"),
        ("int", " 7"),
        ("int", "7.0"),
        ("tinyint", "128"),
        ("smallint", "-32769"),
        ("bigint", "9223372036854775808"),
        ("bigint", "9" * 5000),
        ("decimal(5,2)", "abc"),
        ("decimal(5,2)", "1e2"),
        ("decimal(5,2)", "1000"),
        ("decimal(5,2)", "0.001"),
        ("decimal(5,2)", "NaN"),
        ("boolean", "maybe"),
        ("boolean", "1"),
        ("date", "2026-02-30"),
        ("date", "20261120"),
        ("date", "2026-W47-5"),
        ("timestamp", "2026-11-20"),
        ("timestamp", "2026-11-20T07:00:00Z"),
        ("varchar(3)", "abcd"),
    ],
)
def test_a_value_that_is_none_of_the_type_is_refused(kind: str, text: str) -> None:
    with pytest.raises(UsageError, match=r"has type .*, but the value is "):
        value(kind, text)


def test_a_key_that_is_given_twice_is_refused() -> None:
    with pytest.raises(UsageError, match="'Day' is duplicated"):
        values_by_key([("day", "1"), ("Day", "2")])
