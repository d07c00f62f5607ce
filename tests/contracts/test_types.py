"""Physical types of Spark, Hive and Glue, in every spelling, and what they can carry."""

from __future__ import annotations

import pytest

from dq.contracts.model import Property
from dq.contracts.types import (
    CANONICAL,
    CARRIERS,
    DataType,
    NotAType,
    carries,
    catalog_type,
    parse,
    physical_type,
)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("STRING", "string"),
        ("text", "string"),
        (" Integer ", "int"),
        ("long", "bigint"),
        ("double precision", "double"),
        ("DOUBLE", "double"),
        ("real", "float"),
        ("bool", "boolean"),
        ("decimal", "decimal(10,0)"),
        ("numeric(5)", "decimal(5,0)"),
        ("DEC(18, 2)", "decimal(18,2)"),
        ("decimal(38,38)", "decimal(38,38)"),
        ("varchar(10)", "varchar(10)"),
        ("char(3)", "char(3)"),
        ("timestamp_ltz", "timestamp"),
        ("timestamp with local time zone", "timestamp"),
        ("timestamp without time zone", "timestamp_ntz"),
        ("array<int>", "array<int>"),
        ("ARRAY < STRUCT < a : INT , b string > >", "array<struct<a:int,b:string>>"),
        ("map<string,array<decimal(4,1)>>", "map<string,array<decimal(4,1)>>"),
        ("struct<`a b`:int,c:struct<d:date>>", "struct<a b:int,c:struct<d:date>>"),
    ],
)
def test_a_type_is_read_in_any_case_and_spelling(text: str, canonical: str) -> None:
    assert str(parse(text)) == canonical


@pytest.mark.parametrize("spelling", sorted(set(CANONICAL) - {"array", "map", "struct"}))
def test_every_spelling_of_the_table_is_read(spelling: str) -> None:
    assert parse(spelling).name == CANONICAL[spelling]


@pytest.mark.parametrize(
    "text", ["array<int>", "map<string,int>", "struct<a:int,b:array<date>>", "decimal(18,2)"]
)
def test_a_type_reads_what_it_writes(text: str) -> None:
    assert str(parse(str(parse(text)))) == text


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "it is empty"),
        ("int64", "'int64' is not a type"),
        ("int int", "unexpected 'int' after int"),
        ("int(3)", "int takes no number in parentheses"),
        ("decimal(39, 0)", "decimal(39, 0) is outside 1 to 38 digits"),
        ("decimal(0)", "decimal(0, 0) is outside 1 to 38 digits"),
        ("decimal(2, 3)", "decimal(2, 3) is outside 1 to 38 digits"),
        ("decimal(1, 2, 3)", "decimal takes a precision and a scale"),
        ("decimal(a)", "'a' is not a number"),
        ("decimal(10", "')' is missing"),
        ("varchar(1, 2)", "varchar takes one length"),
        ("varchar(0)", "varchar takes a length of 1 or more"),
        ("array", "'<' is missing"),
        ("array<int", "'>' is missing"),
        ("array<int, int>", "array takes 1 type(s), not 2"),
        ("map<int>", "map takes 2 type(s), not 1"),
        ("struct<a:int,a:int>", "struct has two fields 'a'"),
        ("struct<>", "struct has a field without a name"),
        ("array<int>>", "unexpected '>' after array<int>"),
        ("int; drop table x", "unexpected ';'"),
        ("array<" * 40 + "int" + ">" * 40, "it is nested deeper than 32"),
    ],
)
def test_what_is_no_type_says_why(text: str, reason: str) -> None:
    with pytest.raises(NotAType) as raised:
        parse(text)

    assert str(raised.value) == reason


@pytest.mark.parametrize(
    ("physical", "logical", "fits"),
    [
        ("string", "string", True),
        ("bigint", "number", True),
        ("double", "integer", False),
        ("decimal(10,0)", "integer", True),
        ("timestamp_ntz", "timestamp", True),
        ("timestamp", "date", False),
        ("struct<a:int>", "object", True),
        ("array<int>", "map", False),
        ("string", "unheard of", False),
    ],
)
def test_a_physical_type_carries_some_logical_types(physical: str, logical: str, fits: bool) -> None:
    assert carries(parse(physical), logical, (3, 2, 0)) is fits


def test_t64_a_date_may_be_a_timestamp_before_there_was_a_logical_one() -> None:
    assert carries(parse("timestamp"), "date", (3, 0, 2))
    assert carries(parse("timestamp_ntz"), "date", (3, 0, 0))
    assert carries(parse("date"), "date", (3, 0, 2))
    assert not carries(parse("string"), "date", (3, 0, 2))
    assert not carries(parse("timestamp"), "date", (3, 1, 0))


def test_the_default_carrier_of_every_logical_type_is_a_type() -> None:
    assert {carriers[0] for carriers in CARRIERS.values()} <= set(CANONICAL.values())


def _property(read, text: str) -> Property:
    return read(f"schema: [{{name: t, properties: [{{name: a, {text}}}]}}]").contract.objects[0].properties[0]


@pytest.mark.parametrize(
    ("text", "promised", "created"),
    [
        ("logicalType: integer", None, "bigint"),
        ("logicalType: integer, physicalType: INT", "int", "int"),
        ("physicalType: varchar2(10)", None, "string"),
        ("logicalType: date", None, "date"),
        ("logicalType: array, items: {physicalType: int}", "array<int>", "array<int>"),
        ("logicalType: array, items: {logicalType: integer}", None, "array<bigint>"),
        ("logicalType: array", None, "array<string>"),
        ("logicalType: object", None, "string"),
        (
            "logicalType: object, properties: [{name: b, physicalType: int}, {name: c, physicalName: d, "
            "physicalType: date}]",
            "struct<b:int,d:date>",
            "struct<b:int,d:date>",
        ),
        (
            "logicalType: object, properties: [{name: b, physicalType: int}, {name: c, logicalType: date}]",
            None,
            "struct<b:int,c:date>",
        ),
        (
            "logicalType: map, map: {key: {physicalType: string}, value: {physicalType: int}}",
            "map<string,int>",
            "map<string,int>",
        ),
        ("logicalType: map", None, "string"),
    ],
)
def test_a_property_promises_a_type_and_is_created_with_one(
    read, text: str, promised: str | None, created: str
) -> None:
    prop = _property(read, text)

    found = physical_type(prop)
    assert (None if found is None else str(found), str(catalog_type(prop))) == (promised, created)


def test_types_are_values() -> None:
    assert parse("array<int>") == DataType("array", (), (DataType("int"),))
