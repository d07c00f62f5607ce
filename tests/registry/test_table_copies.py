"""Likely copies: nearly the same columns and rows, among many tables that only look alike."""

from __future__ import annotations

import random

import pytest

from dq.registry.table_copies import Copy, TableSketch, base_name, columns_of, find_copies

ORDERS = [("id", "bigint"), ("city", "string"), ("amount", "double"), ("day", "date"), ("note", "string")]


def sketch(
    name: str = "sales/orders", columns=ORDERS, rows: int | None = 100, shift: int = 0, **parts
) -> TableSketch:
    bounds = {column: (f"{column} {shift}", f"{column} {shift + 9}") for column, _ in columns}
    facts = {"format": "parquet", "bounds": bounds, **parts}
    return TableSketch(name, columns=columns_of(columns), rows=rows, **facts)


CASES: dict[str, tuple[TableSketch, TableSketch, str]] = {
    "the same": (
        sketch(),
        sketch("x/y"),
        "5 of 5 columns, the same number of rows, 10 of 10 equal minima and maxima",
    ),
    "a column less": (
        sketch(),
        sketch("x/y", ORDERS[:4]),
        "4 of 5 columns, the same number of rows, 8 of 8 equal minima and maxima",
    ),
    "a few rows more": (
        sketch(),
        sketch("x/y", rows=103),
        "5 of 5 columns, 103 and 100 rows, 10 of 10 equal minima and maxima",
    ),
    "other rows": (sketch(), sketch("x/y", shift=1), ""),
    "many rows more": (sketch(), sketch("x/y", rows=120), ""),
    "empty": (sketch(rows=0), sketch("x/y", rows=0), ""),
    "other columns": (sketch(), sketch("x/y", [*ORDERS[:3], ("a", "int"), ("b", "int")]), ""),
    "another type": (
        sketch(),
        sketch("x/y", [*ORDERS[:4], ("note", "int")]),
        "4 of 6 columns, the same number of rows, 10 of 10 equal minima and maxima",
    ),
    "the same files": (
        sketch(rows=None, bounds={}, sizes=(10, 20)),
        sketch("x/y", rows=None, bounds={}, sizes=(10, 20)),
        "5 of 5 columns, files of the same sizes",
    ),
    "similar names": (
        sketch(rows=None, bounds={}),
        sketch("sales/orders_old", rows=None, bounds={}),
        "5 of 5 columns, similar names",
    ),
    "months": (
        sketch("sales/orders_202601", rows=None, bounds={}),
        sketch("sales/orders_202602", rows=None, bounds={}),
        "",
    ),
    "tenants": (sketch("a/orders", rows=None, bounds={}), sketch("b/orders", rows=None, bounds={}), ""),
    "two columns": (sketch(columns=ORDERS[:2]), sketch("x/y", ORDERS[:2]), ""),
}


@pytest.mark.parametrize("case", CASES)
def test_evidence(case: str) -> None:
    first, second, evidence = CASES[case]
    expected = [Copy(0, 1, evidence)] if evidence else []
    assert find_copies([first, second]) == expected


def test_copies_of_a_copy_are_copies_of_the_first() -> None:
    copies = find_copies([sketch(f"x/t{number}") for number in range(4)])

    assert [(copy.original, copy.copy) for copy in copies] == [(0, 1), (0, 2), (0, 3)]


def test_they_are_found_among_thousands_with_the_same_columns() -> None:
    chance = random.Random(7)
    tables = [sketch(f"t/{number}", shift=number * 20) for number in range(3_000)]
    copies = {}
    for original in chance.sample(range(3_000), 50):
        copies[len(tables)] = original
        tables.append(sketch(f"c/{original}", shift=original * 20))

    assert {copy.copy: copy.original for copy in find_copies(tables)} == copies


def test_names_without_the_words_of_copies() -> None:
    assert base_name("sales/orders_copy") == base_name("sales_backup/orders") == "sales_orders"
    assert base_name("tmp/copy_of") is None
