"""The gate says at the line what the guard of SQL refuses, and what to write instead."""

from __future__ import annotations

import json

import pytest

from dq.contracts.outcome import Finding
from dq.contracts.sql import text as sql
from dq.contracts.sql.guard import ValidatedSql, validate_query, validate_rule_query
from dq.contracts.yaml.parse import parse


def _found(lint_fragment, query: str) -> list[Finding]:
    return lint_fragment(
        "schema:\n"
        "  - name: orders\n"
        "    physicalName: shop_orders\n"
        "    properties:\n"
        "      - {name: order_id, logicalType: string, description: The order.}\n"
        "    quality:\n"
        f"      - {{type: sql, mustBe: 0, query: {json.dumps(query)}}}\n"
    )


FINE = [
    "SELECT count(*) FROM {object}",
    "SELECT count(*) FROM ${object}",
    "select count(1) from shop_orders;",
    "WITH a AS (SELECT * FROM orders) SELECT count(*) FROM a",
    "SELECT count(*) FROM orders WHERE order_id = 'DELETE FROM x; DROP TABLE y' -- ; DELETE FROM x",
    'SELECT count(`insert into`) FROM orders WHERE a <> "a;b" /* ; update t set a */',
    "SELECT count(update) + count(delete) FROM orders",
    "SELECT count(*) FROM orders WHERE order_id IN ('it''s', 'a\\'b;') OR order_id || 'x' = 'ax'",
]
NOT_READ_ONLY = {
    "DELETE FROM orders": "it begins with 'DELETE'; only a SELECT is allowed",
    "SET a = b": "it begins with 'SET'; only a SELECT is allowed",
    "SELECT 1; SELECT 2": "it has 2 statements; one is allowed",
    "SELECT 1; DROP TABLE orders": "it has 2 statements; one is allowed",
    "WITH a AS (SELECT 1) INSERT INTO orders SELECT * FROM a": "it is not a SELECT",
    "SELECT * INTO other FROM orders": "INTO is not allowed",
    "SELECT reflect('java.lang.System', 'exit', 1) FROM orders": "the function 'reflect' is not allowed",
    "-- nothing": "it is empty",
}
REFUSED = {
    "SELECT count(*) FROM customers": (
        "it reads 'customers'; a rule reads only orders or shop_orders",
        "Write FROM {object}.",
    ),
    "SELECT 'open FROM orders": ("it is not supported SQL", "Correct it there."),
    "SELECT median(a) FROM orders": (
        "the function 'median' is not allowed",
        "Write percentile_approx(a, 0.5).",
    ),
    "SELECT count(* FRM {object} WHRE": ("it is not supported SQL", "Correct it there."),
    "SELECT count(*) FROM orders a, orders b": (
        "a join without ON or USING is not allowed",
        "Write JOIN … ON a.id = b.id.",
    ),
}


@pytest.mark.parametrize("query", FINE)
def test_a_query_that_may_run_passes(lint_fragment, query: str) -> None:
    # Columns of these names are not in the contract, which another rule says.
    assert [one for one in _found(lint_fragment, query) if one.rule != "sql-column-unknown"] == []


@pytest.mark.parametrize(("query", "reason"), NOT_READ_ONLY.items())
def test_what_is_no_statement_that_only_reads_is_said_so(lint_fragment, query: str, reason: str) -> None:
    (found,) = _found(lint_fragment, query)

    assert (found.rule, found.message) == ("sql-not-read-only", f"the query cannot run: {reason}.")


@pytest.mark.parametrize(("query", "said"), REFUSED.items())
def test_what_else_is_refused_comes_with_what_to_write(
    lint_fragment, query: str, said: tuple[str, str]
) -> None:
    (found,) = _found(lint_fragment, query)

    assert (found.rule, found.hint) == ("sql-refused", said[1])
    assert found.message.startswith(f"the query is refused: {said[0]}")
    assert not found.message.endswith("..")


def test_a_predicate_is_refused_at_its_place(lint_fragment) -> None:
    (found,) = lint_fragment(
        "schema:\n"
        "  - name: orders\n"
        "    properties:\n"
        "      - {name: order_id, logicalType: string, description: The order.}\n"
        "    quality:\n"
        "      - metric: rowCount\n"
        "        mustBe: 0\n"
        "        customProperties:\n"
        "          - property: scope\n"
        "            vendor: dq\n"
        "            value: {where: reflect('java.lang.System') = 1}\n"
    )

    assert (found.rule, found.path) == ("sql-refused", "schema[0].quality[0].customProperties[0].value.where")
    assert found.message == "the predicate is refused: the function 'reflect' is not allowed."


def test_a_property_below_a_struct_is_named_by_its_way(lint_fragment) -> None:
    found = lint_fragment(
        "schema:\n"
        "  - name: orders\n"
        "    properties:\n"
        "      - name: address\n"
        "        logicalType: object\n"
        "        description: Where to.\n"
        "        properties:\n"
        "          - name: zip\n"
        "            logicalType: string\n"
        "            description: The code.\n"
        "            quality:\n"
        "              - {type: sql, mustBe: 0, query: 'SELECT count({property}) FROM {object}'}\n"
    )

    assert found == []


def test_one_mistake_is_one_finding(lint_fragment) -> None:
    found = _found(lint_fragment, "SELECT count(*) FROM {table}")

    assert [one.rule for one in found] == ["placeholder-unknown"]


# Names of an object, and queries over it: in each the name stands for something else, too, or is no name.
TWICE = [
    ("orders", "SELECT count(*) FROM orders WHERE note = 'from orders'"),
    ("orders", "SELECT count(orders) FROM orders"),
    ("orders", "SELECT count(orders.order_id) FROM orders"),
    ("orders", "SELECT count(*) FROM orders AS orders WHERE orders.order_id = 'a'"),
    ("a", "SELECT max(a) FROM a"),
    ("orders", "SELECT count(*) FROM `orders` WHERE order_id = '{object}'"),
    ("orders", "SELECT 'from orders', count(*) FROM orders"),
    ("orders", "SELECT count(*) /* from orders */ FROM orders"),
    ("orders", "SELECT count(this_object) FROM orders"),
    ("orders", "SELECT count(*) FROM {object} o JOIN orders p ON o.order_id = p.order_id"),
    (
        "orders",
        "WITH w AS (SELECT order_id FROM ORDERS) SELECT count(*) FROM w JOIN {object} USING (order_id)",
    ),
]


@pytest.mark.parametrize(("name", "text"), TWICE)
def test_a_query_means_the_same_whatever_its_object_is_called(name: str, text: str) -> None:
    parsed = parse(
        (
            "apiVersion: v3.2.0\nkind: DataContract\nid: a\nversion: 1.0.0\n"
            f"schema: [{{name: {name}, quality: [{{type: sql, mustBe: 0, query: {json.dumps(text)}}}]}}]\n"
        ).encode(),
        "a.odcs.yaml",
    )
    assert parsed.contract is not None
    one = parsed.contract.objects[0]

    found = validate_rule_query(one, one.quality[0], None)

    alone = validate_query(text, own_table=name, tables={name: sql.ROWS_VIEW}, property=None)
    assert isinstance(found, ValidatedSql)
    assert isinstance(alone, ValidatedSql)
    renamed = found.sql.replace("`this_object`", f"`{name}`")
    assert alone.sql.replace("`ORDERS`", f"`{name}`") in (found.sql, renamed)
    assert (found.columns, found.qualified_columns, found.revealed_columns) == (
        alone.columns,
        alone.qualified_columns,
        alone.revealed_columns,
    )
