"""What is proposed from what was seen: a table of facts and rules, without any data."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from dq.contracts.types import DataType
from dq.dataquality.proposed_rules import (
    ColumnProfile,
    Proposal,
    TableProfile,
    bounds_with_headroom,
    column_proposals,
    first_day,
    is_key_like,
    is_sensitive_name,
    looks_like_secret,
    may_be_in_future,
    natural_bounds,
    pattern_of,
    proposals,
    snake,
)
from dq.dataquality.proposed_rules import PartitionColumnStats as Seen

NOW = dt.datetime(2026, 11, 23, tzinfo=dt.UTC)
WAY = ("schema", 0, "properties", 0)


# Instants as the session's clock shows them have no zone.
at = dt.datetime.fromisoformat


def column(kind: str, *seen: Seen, name: str = "v", **more: Any) -> ColumnProfile:
    return ColumnProfile(WAY, name, DataType(kind), seen or (Seen(100),), **more)


def table(
    *columns: ColumnProfile, sizes: tuple[int, ...] = (), keys: tuple[str, ...] = (), **more: Any
) -> TableProfile:
    sizes = sizes or tuple(one.rows for one in columns[0].partition_stats)
    return TableProfile(("schema", 0), "orders", sizes, columns, keys, now=NOW, **more)


def told(one: ColumnProfile, **more: Any) -> dict[str, Any]:
    """The rules of the column by their key, those of quality by metric and bound."""
    keys = ("day",) if len(one.partition_stats) > 1 else ()
    return {_short(each): each.value for each in column_proposals(one, table(one, keys=keys, **more))}


def _short(one: Proposal) -> str:
    if one.key:
        return one.key
    assert isinstance(one.value, dict)
    implementation = one.value.get("implementation", {})
    return str(one.value.get("metric") or implementation.get("check") or one.value["type"])


NO_NULL = {"metric": "nullValues", "mustBe": 0, "severity": "warning"}


def bound(check: str, number: int) -> dict[str, object]:
    """A warning of numbers below (`min`) or above (`max`) it."""
    operator = "mustBeGreaterOrEqualTo" if check == "min" else "mustBeLessOrEqualTo"
    implementation = {"check": check, operator: number}
    return {"type": "custom", "engine": "dq", "implementation": implementation, "severity": "warning"}


def listed(*values: str) -> dict[str, object]:
    """A warning of values beyond these."""
    arguments = {"validValues": list(values)}
    return {"metric": "invalidValues", "arguments": arguments, "mustBe": 0, "severity": "warning"}


TEXTS = {"open": (30, 900), "paid": (30, 585)}
THREE = {**TEXTS, "lost": (30, 15)}
SQL = "SELECT count(*) FROM {object} WHERE {property} > "
CASES: dict[str, tuple[ColumnProfile, dict[str, Any]]] = {
    "few rows tell nothing": (column("int", Seen(19, 0, 1, 2)), {}),
    "a column without a value is promised nothing": (column("int", Seen(100, 100)), {}),
    "no NULL, and numbers not below zero": (
        column("int", Seen(100, 0, 12, 881)),
        {"required": True, "minimum": 0, "maximum": 1800},
    ),
    "numbers far from zero keep their distance": (
        column("int", Seen(100, 0, 2007, 2009)),
        {"required": True, "minimum": 2005, "maximum": 2011},
    ),
    "numbers on both sides of zero": (
        column("double", Seen(100, 0, -43.0, 1301.0)),
        {"required": True, "minimum": -2000, "maximum": 3000},
    ),
    "none above zero": (
        column("int", Seen(100, 0, -50, 0)), {"required": True, "minimum": -100, "maximum": 0},
    ),
    "one number only": (column("int", Seen(100, 0, 7, 7)), {"required": True}),
    "one month only": (
        column("int", Seen(100, 0, 7, 7), name="month"), {"required": True, "minimum": 1, "maximum": 12},
    ),
    "one day only": (column("date", Seen(100, 0, at("2026-01-01"), at("2026-01-01"))), {"required": True}),
    "one text only": (
        column("string", Seen(100, 0, None, None, 1, 1), distinct_count=1, values={"F": (1, 100)}),
        {"required": True},
    ),
    "shares": (column("double", Seen(100, 0, 0.02, 0.97)), {"required": True, "minimum": 0, "maximum": 2}),
    "decimals": (
        column("decimal", Seen(100, 0, Decimal("0.10"), Decimal("25.00"))),
        {"required": True, "minimum": 0, "maximum": 50},
    ),
    "NaN or an infinity: no bound": (column("double", Seen(100, 0, 1.0, None)), {"required": True}),
    "a latitude is of the world": (
        column("double", Seen(100, 0, 19.7, 72.3), name="lat"),
        {"required": True, "minimum": -90, "maximum": 90},
    ),
    "what is no latitude is not": (
        column("double", Seen(100, 0, 19.0, 172.0), name="lat"),
        {"required": True, "minimum": 0, "maximum": 400},
    ),
    "a number for each row has no greatest": (
        column("bigint", Seen(100, 0, 1, 100), distinct_count=100),
        {"required": True, "minimum": 0},
    ),
    "what grows from partition to partition has no greatest": (
        column("int", *(Seen(100, 0, 5, 10 * day) for day in range(1, 31))),
        {"required": True, "minimum": 0},
    ),
    "of few partitions growth is not known": (
        column("int", *(Seen(100, 0, 5, 10 * day) for day in range(1, 4))),
        {"nullValues": NO_NULL, "min": bound("min", 0), "max": bound("max", 60)},
    ),
    "a NULL in one partition of many": (
        column("int", Seen(100, 4, 1, 9), *[Seen(100, 0, 1, 9)] * 29),
        {
            "minimum": 0,
            "maximum": 17,
            "nullValues": {
                "metric": "nullValues", "mustBeLessOrEqualTo": 13, "unit": "percent", "severity": "warning",
            },
        },
    ),
    "mostly NULL": (column("int", Seen(400, 300, 1, 9)), {"minimum": 0, "maximum": 17}),
    "few values among NULLs": (
        column("int", Seen(400, 301, 1, 9)), {"min": bound("min", 0), "max": bound("max", 17)},
    ),
    "few rows": (
        column("int", Seen(99, 0, 1, 9)),
        {"nullValues": NO_NULL, "min": bound("min", 0), "max": bound("max", 17)},
    ),
    "few partitions": (
        column("int", *[Seen(100, 0, 1, 9)] * 29),
        {"nullValues": NO_NULL, "min": bound("min", 0), "max": bound("max", 17)},
    ),
    "partitions enough": (
        column("int", *[Seen(100, 0, 1, 9)] * 30), {"required": True, "minimum": 0, "maximum": 17},
    ),
    "a name like a key needs no history": (
        column("string", Seen(99), name="order_id"), {"required": True},
    ),
    "one partition far above the others": (
        column("int", *[Seen(100, 0, 1, 9)] * 15, Seen(100, 0, 1, 900), *[Seen(100, 0, 1, 9)] * 15),
        {"required": True, "minimum": 0, "max": bound("max", 1800)},
    ),
    "one partition far below the others": (
        column("int", *[Seen(9, 0, 500, 509)] * 15, Seen(9, 0, -400, 509), *[Seen(9, 0, 500, 509)] * 15),
        {"required": True, "min": bound("min", -1400), "maximum": 1500},
    ),
    "days of few partitions": (
        column("date", *[Seen(100, 0, at("2012-01-01"), at("2015-12-31"))] * 2, name="valid_to"),
        {"nullValues": NO_NULL,
         "sql": {"type": "sql", "query": "SELECT count(*) FROM {object} WHERE {property} < DATE '2008-01-01'",
                 "mustBe": 0, "severity": "warning"}},
    ),
    "a list of values": (
        column("string", *[Seen(50)] * 30, distinct_count=3, values=THREE),
        {"required": True, "enum": [{"value": "lost"}, {"value": "open"}, {"value": "paid"}]},
    ),
    "two values": (
        column("string", *[Seen(50)] * 30, distinct_count=2, values=TEXTS),
        {"required": True, "invalidValues": listed("open", "paid")},
    ),
    "a list of few partitions": (
        column("string", *[Seen(50)] * 29, distinct_count=3, values=THREE),
        {"nullValues": NO_NULL, "invalidValues": listed("lost", "open", "paid")},
    ),
    "a value in less than one percent of the rows": (
        column("string", *[Seen(50)] * 30, distinct_count=3, values={**TEXTS, "lost": (14, 14)}),
        {"required": True, "invalidValues": listed("lost", "open", "paid")},
    ),
    "a value in one percent of the rows": (
        column("string", *[Seen(50)] * 30, distinct_count=3, values={**TEXTS, "lost": (15, 15)}),
        {"required": True, "enum": [{"value": "lost"}, {"value": "open"}, {"value": "paid"}]},
    ),
    "a value that one partition alone has": (
        column("string", *[Seen(50)] * 30, distinct_count=3, values={**TEXTS, "lost": (1, 90)}),
        {"required": True},
    ),
    "a value that is rare in a snapshot": (
        column("string", distinct_count=3, values={"a": (1, 50), "b": (1, 48), "c": (1, 2)}),
        {"required": True},
    ),
    "the values of a sensitive column": (
        column("string", Seen(100, 0, None, None, 2, 9), values=TEXTS, distinct_count=2, is_sensitive=True),
        {"required": True, "minLength": 1, "maxLength": 18},
    ),
    "numbers of a sensitive column": (
        column("int", Seen(100, 0, 1, 2), is_sensitive=True), {"required": True}),
    "days of a sensitive column": (
        column("date", Seen(100, 0, at("1980-01-01"), at("1990-01-01")), is_sensitive=True),
        {"required": True},
    ),
    "a value that looks like a token": (
        column("string", distinct_count=2, values={"a": (1, 50), "ghp_0123456789abcdefghij": (1, 50)}),
        {"required": True},
    ),
    "a value that asks for a setting": (
        column("string", distinct_count=2, values={"a": (1, 50), "${HOME}": (1, 50)}),
        {"required": True},
    ),
    "too many values": (
        column("string", distinct_count=31, values={f"v{at}": (1, 9) for at in range(31)}),
        {"required": True},
    ),
    "a format": (
        column("string", Seen(100, 0, None, None, 36, 36), distinct_count=100,
               forms=frozenset({"uuid", "uri"})),
        {"required": True, "format": "uuid"},
    ),
    "one outline": (
        column("string", Seen(100, 0, None, None, 3, 3), distinct_count=100, shape="AA9"),
        {"required": True, "pattern": "^[A-Z]{2}[0-9]$"},
    ),
    "few values may share an outline by chance": (
        column("string", Seen(100, 0, None, None, 3, 3), distinct_count=9, shape="AA9"),
        {"required": True,
         "sql": {"type": "sql", "query": "SELECT count(*) FROM {object} WHERE char_length({property}) <> 3",
                 "mustBe": 0, "severity": "warning"}},
    ),
    "plain texts": (
        column("string", Seen(100, 0, None, None, 3, 31), distinct_count=90, is_ascii=True),
        {
            "required": True, "minLength": 1, "maxLength": 62,
            "invalidValues": {
                "metric": "invalidValues", "arguments": {"pattern": "^[ -~]*$"}, "mustBe": 0,
                "severity": "warning",
            },
        },
    ),
    "empty texts": (column("string", Seen(100, 0, None, None, 0, 5)), {"required": True, "maxLength": 10}),
    "days": (
        column("date", Seen(100, 0, at("2012-01-01"), at("2015-12-31")), name="date"),
        {"required": True, "minimum": "2008-01-01",
         "sql": {"type": "sql", "query": f"{SQL}current_date()", "mustBe": 0}},
    ),
    "instants": (
        column("timestamp", Seen(100, 0, at("2026-05-01"), at("2026-05-02")), name="at"),
        {"required": True, "minimum": "2025-01-01T00:00:00Z",
         "sql": {"type": "sql", "query": f"{SQL}current_timestamp()", "mustBe": 0}},
    ),
    "days to come": (
        column("date", Seen(100, 0, at("2026-01-01"), at("2027-01-01"))),
        {"required": True, "minimum": "2024-01-01"},
    ),
    "days that may come": (
        column("date", Seen(100, 0, at("2026-01-01"), at("2026-02-01")), name="valid_to"),
        {"required": True, "minimum": "2024-01-01"},
    ),
    "a struct": (column("struct"), {"required": True}),
    "what a partition is named": (column("string", distinct_count=2, values=TEXTS, is_partition=True), {}),
}  # fmt: skip


@pytest.mark.parametrize(("one", "rules"), CASES.values(), ids=CASES)
def test_what_is_proposed_for_a_column(one: ColumnProfile, rules: dict[str, Any]) -> None:
    assert told(one) == rules


ALL = column("int", Seen(100, 0, 12, 881), name="n")
WRITTEN = {
    "required": "required",
    "primaryKey": "required",
    "quality nullValues": "required",
    "logicalTypeOptions.minimum": "minimum",
    "logicalTypeOptions.exclusiveMinimum": "minimum",
    "logicalTypeOptions.maximum": "maximum",
    "logicalTypeOptions.exclusiveMaximum": "maximum",
}


@pytest.mark.parametrize(("key", "left"), WRITTEN.items(), ids=WRITTEN)
def test_what_the_contract_says_is_not_said_again(key: str, left: str) -> None:
    assert told(ALL).keys() - told(replace(ALL, declared_keys=frozenset({key}))).keys() == {left}


@pytest.mark.parametrize("key", ["enum", "logicalTypeOptions.pattern", "logicalTypeOptions.format"])
def test_a_form_that_is_there_leaves_no_room_for_another(key: str) -> None:
    text = column(
        "string",
        Seen(100, 0, None, None, 3, 3),
        distinct_count=90,
        shape="AA9",
        declared_keys=frozenset({key}),
    )

    assert told(text) == {"required": True}


def test_the_evidence_says_how_much_history_it_is() -> None:
    one = column("int", Seen(100, 0, 12, 800), Seen(50, 0, 30, 881))

    evidence = {_short(each): each.evidence for each in column_proposals(one, table(one, keys=("day",)))}

    assert evidence == {
        "nullValues": "no NULL in 2 of 2 partitions; a warning: fewer than 30 partitions",
        "min": "smallest 12 in 2 of 2 partitions; a warning: fewer than 30 partitions",
        "max": "largest 881 in 2 of 2 partitions; a warning: fewer than 30 partitions",
    }


def of_table(one: TableProfile) -> list[Any]:
    return [each.value if not each.key else each.key for each in proposals(one) if each.key in ("", "unique")]


def rows(low: int, high: int) -> list[Any]:
    some = {"metric": "rowCount", "mustBeGreaterThan": 0}
    return [some, {"metric": "rowCount", "mustBeBetween": [low, high], "severity": "warning"}]


def key(name: str, low: int, high: int, kind: str = "int", **more: Any) -> ColumnProfile:
    return column(kind, Seen(1000, 0, low, high), name=name, **{"distinct_count": 1000, **more})


TABLES: dict[str, tuple[TableProfile, list[Any]]] = {
    "numbers that chance would repeat": (table(key("n", 1, 1000)), ["unique", *rows(660, 1500)]),
    "numbers that it would not": (table(key("n", 1, 10**9)), rows(660, 1500)),
    "an id among many": (table(key("order_id", 1, 10**9)), ["unique", *rows(660, 1500)]),
    "codes of one outline": (
        table(column("string", Seen(1000), name="n", distinct_count=1000, shape="AAA")),
        ["unique", *rows(660, 1500)],
    ),
    "long codes": (
        table(column("string", Seen(1000), name="n", distinct_count=1000, shape="A" * 9)), rows(660, 1500),
    ),
    "uuids": (
        table(column("string", Seen(1000), name="n", distinct_count=1000, forms=frozenset({"uuid"}))),
        ["unique", *rows(660, 1500)],
    ),
    "several alike": (table(key("id", 1, 1000, distinct_count=700)), rows(660, 1500)),
    "measures are no keys": (table(key("id", 1, 1000, "double")), rows(660, 1500)),
    "a key that is there": (
        table(key("id", 1, 1000, declared_keys=frozenset({"primaryKey"}))),
        rows(660, 1500),
    ),
    "a count that is there": (table(key("n", 1, 10**9), declared_keys=frozenset({"quality rowCount"})), []),
    "few rows": (table(column("int", Seen(3, 0, 1, 3), name="id", distinct_count=3)),
                 [{"metric": "rowCount", "mustBeGreaterThan": 0}]),
    "no rows": (table(column("int", Seen(0), name="id")), []),
}  # fmt: skip


@pytest.mark.parametrize(("one", "rules"), TABLES.values(), ids=TABLES)
def test_what_is_proposed_for_a_table(one: TableProfile, rules: list[Any]) -> None:
    made = of_table(one)

    assert [
        each for each in made if not isinstance(each, dict) or each.get("metric") != "duplicateValues"
    ] == rules


def test_a_key_of_several_columns_goes_before_all_of_them() -> None:
    one = column("string", Seen(1000), name="origin", distinct_count=3)
    other = column("string", Seen(1000), name="hour", distinct_count=400)
    pair = table(one, other, key_candidates=(("origin", "hour"),), distinct_rows=1000)

    assert [each for each in of_table(pair) if each["metric"] == "duplicateValues"] == [
        {"metric": "duplicateValues", "arguments": {"properties": ["origin", "hour"]}, "mustBe": 0}
    ]
    assert [
        each for each in of_table(replace(pair, key_candidates=())) if each["metric"] == "duplicateValues"
    ] == [
        {
            "metric": "duplicateValues",
            "arguments": {"properties": ["origin", "hour"]},
            "mustBe": 0,
            "severity": "warning",
        }
    ]


def test_the_rows_of_partitions_are_bounded_for_each() -> None:
    days = column("int", *(Seen(size, 0, 1, 9) for size in (90, 120, 100, 110)), name="n")

    made = of_table(table(days, keys=("a day",)))
    (band,) = [each for each in made if isinstance(each, dict) and "GROUP BY" in str(each.get("query"))]

    grouped = "SELECT `a day` FROM {object} GROUP BY `a day`"
    query = f"SELECT count(*) FROM ({grouped} HAVING count(*) NOT BETWEEN 60 AND 180) AS odd"  # noqa: S608
    assert band == {"type": "sql", "query": query, "mustBe": 0, "severity": "warning"}


SHAPES = {
    "AA99": "^[A-Z]{2}[0-9]{2}$", "a": "^[a-z]$", "9-9": "^[0-9]-[0-9]$", "9.9": "^[0-9][.][0-9]$",
    "(99) 9": "^[(][0-9]{2}[)] [0-9]$", "9]\\^": "^[0-9][\\]][\\\\][\\^]$", "--": "", "": "", "é9": "",
    "9" * 41: "", "${A}": "", "9\n": "",
}  # fmt: skip


@pytest.mark.parametrize(("shape", "pattern"), SHAPES.items(), ids=repr)
def test_an_outline_becomes_a_pattern(shape: str, pattern: str) -> None:
    assert pattern_of(shape) == pattern


@pytest.mark.parametrize(
    ("least", "greatest", "bounds"),
    [
        (32.1, 59.6, (0, 90)), (172, 231, (110, 290)), (0, 0, (0, 1)), (1, 1, (0, 2)), (-5, -5, (-10, 0)),
        (-1e300, 1e300, (-3e300, 3e300)), (1.0, 1.7e308, (0, 1.7976931348623157e308)),
        (5e-324, 5e-324, (0, 1e-323)),
        (10**30, 10**30 + 1, (10**30 - 1, 10**30 + 2)),
        (-180, -60, (-300, 0)), (-0.0, 0.0, (0, 1)), (Decimal("1.10"), Decimal("1.30"), (0.9, 1.5)),
    ],
    ids=str,
)  # fmt: skip
def test_bounds_are_round_and_hold_what_was_seen(least: Any, greatest: Any, bounds: tuple[Any, Any]) -> None:
    assert bounds_with_headroom(least, greatest) == bounds
    assert bounds[0] <= least <= greatest <= bounds[1]


def test_the_first_day_does_not_fall_out_of_the_calendar() -> None:
    assert first_day(dt.date(2013, 3, 1), dt.date(2013, 3, 2)) == dt.date(2012, 1, 1)
    assert first_day(dt.date(3, 1, 1), dt.date(2013, 1, 1)) == dt.date(1, 1, 1)


@pytest.mark.parametrize(
    "name",
    ["email", "E-Mail", "customerEmail", "phone_number", "LastName", "birthDate", "IBAN", "user_name",
     "home_address",
     "ip", "accessToken", "zip_code", "SSN"],
)  # fmt: skip
def test_names_that_are_about_a_person(name: str) -> None:
    assert is_sensitive_name(name)


@pytest.mark.parametrize(
    "name", ["species", "shipping", "tip", "pinned", "usernames_count_of", "status", "name", "day"]
)
def test_names_that_are_not(name: str) -> None:
    assert not is_sensitive_name(name)


def test_words_of_names() -> None:
    assert snake("ordersPlaced At") == "orders_placed_at"
    keys = [name for name in ("id", "orderId", "valid", "iata", "paid") if is_key_like(name)]
    assert keys == ["id", "orderId", "iata"]
    assert [may_be_in_future(name) for name in ("dueDate", "valid_to", "created_at")] == [True, True, False]
    assert natural_bounds("Longitude") == (-180, 180)
    assert natural_bounds("plates") is None
    assert natural_bounds("birthMonth") == (1, 12)
    assert natural_bounds("months") is None
    assert looks_like_secret("sk-0123456789abcdefghij")
    assert not any(looks_like_secret(text) for text in ("Torgersen", "a b" * 20, "0" * 30))
