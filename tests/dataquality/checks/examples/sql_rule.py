"""Examples of the check `sql_rule`."""

from __future__ import annotations

from fakes.examples import Example


def _rule(query: str, rest: str = "mustBe: 0") -> str:
    return f'quality: [{{type: sql, query: "{query}", {rest}}}]'


def _of_price(query: str) -> str:
    return f"properties: [{{name: price, logicalType: number, {_rule(query)}}}]"


_DDL = "price double, paid double"
_SOME = ((1.0, 1.0), (2.0, 3.0), (None, 1.0))
_PAID = "SELECT count(*) FROM {object} WHERE paid > price"
EXAMPLES = (
    Example("kept", _rule(_PAID), _DDL, _SOME[:1], "pass", ("0",)),
    Example("broken", _rule(_PAID), _DDL, _SOME, "fail", ("1",)),
    Example("no rows", _rule(_PAID), _DDL, (), "pass", ("0",)),
    Example("no number", _rule("SELECT max(price) FROM t"), _DDL, (), "error"),
    Example("a share", _rule("SELECT avg(price) FROM t", "mustBe: 1.5"), _DDL, _SOME, "pass", ("1.5",)),
    Example("many rows", _rule("SELECT paid FROM t"), _DDL, _SOME, "error"),
    Example("a text", _rule("SELECT 'a' FROM t"), _DDL, _SOME[:1], "error"),
    Example("a flag", _rule("SELECT max(paid) > 1 FROM t"), _DDL, _SOME, "error"),
    Example("NaN", _rule("SELECT max(price) FROM t"), _DDL, ((float("nan"), 1.0),), "error"),
    Example(
        "of a property",
        _of_price("SELECT count(*) FROM {object} WHERE {property} IS NULL"),
        _DDL,
        _SOME,
        "fail",
        ("1",),
    ),
    Example("a missing column", _rule("SELECT max(tax) FROM t"), _DDL, _SOME, "error"),
    Example("refused", _rule("DROP TABLE t"), _DDL, _SOME, "error"),
    Example("no query", "quality: [{type: sql, query: '', mustBe: 0}]", _DDL, _SOME, "error"),
    Example(
        "where",
        f"quality: [{{type: sql, query: '{_PAID}', mustBe: 0, customProperties:"
        " [{property: scope, vendor: dq, value: {where: price < 2}}]}]",
        _DDL,
        _SOME,
        "pass",
    ),
)
