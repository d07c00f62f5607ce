"""Which texts and trees of a query may run: everything in them must be on a list."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum

from sqlglot import Token, TokenType, exp

from dq.contracts.form import nearest
from dq.contracts.sql.allowlist import FUNCTIONS, NODES, TYPES, UNITS
from dq.contracts.sql.dialect import Dialect

MAX_NODES = 2_000
# Of parentheses and brackets in the text, and of nodes in the tree.
MAX_DEPTH = 60


class Forbidden(Exception):
    """The query may not run; the message is the reason, as the end of a sentence about it."""


_FIRST = (TokenType.SELECT, TokenType.WITH, TokenType.L_PAREN)
_OPEN = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE)
_CLOSE = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE)
# Spark's pipes, paths into JSON, and parameters.
_STRANGE = (TokenType.PIPE_GT, TokenType.COLON, TokenType.PLACEHOLDER, TokenType.PARAMETER)
_ESCAPES = re.compile(r"\\\\|\\'|\\\"")


def vouch_for_tokens(tokens: list[Token], text: str) -> None:
    """Nothing in the text that is read in different ways, or nested without end. Raises Forbidden."""
    if not tokens:
        raise Forbidden("it is empty")
    if tokens[0].token_type not in _FIRST:
        raise Forbidden(f"it begins with {tokens[0].text!r}; only a SELECT is allowed")
    depth = 0
    for token in tokens:
        depth += (token.token_type in _OPEN) - (token.token_type in _CLOSE)
        if depth > MAX_DEPTH:
            raise Forbidden("it is nested too deeply")
        if token.token_type in _STRANGE:
            raise Forbidden(f"{token.text!r} is not allowed")
        written = text[token.start : token.end + 1]
        # Spark and the parser read other escapes in different ways.
        if token.token_type is TokenType.STRING and "\\" in _ESCAPES.sub("", written):
            raise Forbidden("a text with a single backslash is not allowed; double it, or write r'…'")


def vouch_for_tree(tree: exp.Expr) -> None:
    """Nothing in the tree that is not on the lists. Raises Forbidden."""
    for number, (node, depth) in enumerate(_walk(tree)):
        if number > MAX_NODES:
            raise Forbidden(f"it has more than {MAX_NODES:,} parts")
        if depth > MAX_DEPTH:
            raise Forbidden("it is nested too deeply")
        kind = type(node).__name__
        if kind not in NODES:
            raise Forbidden(f"{_SAID.get(kind) or kind} is not allowed")
        for part, value in node.args.items():
            if value is None or value is False or value == []:
                continue
            if part not in NODES[kind]:
                said = _SAID.get(f"{kind}.{part}") or f"{part.rstrip('_')} of {kind}"
                raise Forbidden(f"{said} is not allowed")
            _vouch_scalars(kind, part, value)
        _vouch_node(node)


def _walk(tree: exp.Expr) -> Iterator[tuple[exp.Expr, int]]:
    stack = [(tree, 0)]
    while stack:
        node, depth = stack.pop()
        yield node, depth
        stack += [(child, depth + 1) for child in node.iter_expressions()]


# What a reader calls it, where the parser's word is not the same.
_SAID = {
    "Concat": "a text beside a text",
    "Hint": "a hint",
    "Select.hint": "a hint",
    "Select.into": "INTO",
    "Select.laterals": "LATERAL VIEW (use explode in a subquery)",
    "Select.locks": "FOR UPDATE",
    "Select.cluster": "CLUSTER BY",
    "Select.distribute": "DISTRIBUTE BY",
    "Select.sort": "SORT BY",
    "Table.version": "time travel",
    "Table.when": "time travel",
    "Table.sample": "TABLESAMPLE",
    "TableSample": "TABLESAMPLE",
    "With.recursive": "a recursive query",
    "Values": "VALUES",
    "Lateral": "LATERAL",
    "Placeholder": "a placeholder",
    "Parameter": "a parameter",
    "SessionParameter": "a session variable",
    "Command": "a command",
}

_KEYWORDS = re.compile(r"[A-Za-z_ ]*")
# Parts that hold the user's own text; each is looked at by `_vouch_node`, or quoted when it is written.
_FREE = frozenset([("Identifier", "this"), ("Literal", "this"), ("RawString", "this"), ("Anonymous", "this")])


def _vouch_scalars(kind: str, part: str, value: object) -> None:
    if isinstance(value, list):
        for one in value:
            _vouch_scalars(kind, part, one)
    elif isinstance(value, str):
        if (kind, part) not in _FREE and not _KEYWORDS.fullmatch(value):
            raise Forbidden(f"{part} of {kind} is not understood")
    elif not isinstance(value, exp.Expr | bool | Enum):
        raise Forbidden(f"{part} of {kind} is not understood")


_NUMBER = re.compile(r"\d+(\.\d*)?([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?")
_INTERVAL = re.compile(r"[+-]?\d{1,9}(\.\d{1,9})?")
# Names of Spark's own: variables of the session, and the files that rows come from.
_RESERVED = frozenset(["session", "system", "_metadata", "global_temp"])


# The parser takes nearly everything in these places.
_QUERY, _TABLE = exp.Select | exp.SetOperation | exp.Subquery, exp.Table | exp.Subquery
_HOLDS = {
    "CTE": ("this", _QUERY),
    "Subquery": ("this", _QUERY | exp.Table),
    "Exists": ("this", _QUERY),
    "From": ("this", _TABLE),
    "Join": ("this", _TABLE),
}


def _vouch_node(node: exp.Expr) -> None:
    name = node.name
    place, wanted = _HOLDS.get(type(node).__name__, ("", exp.Expr))
    if place and not isinstance(node.args.get(place), wanted):
        raise Forbidden(f"{node.args.get(place)!s:.40} stands where a query or a table must")
    if isinstance(node, exp.Anonymous):
        _vouch_function(name)
    elif isinstance(node, exp.Literal) and not node.is_string and not _NUMBER.fullmatch(name):
        raise Forbidden(f"the number {name!r} is not understood")
    elif isinstance(node, exp.Identifier) and (not name or not name.isprintable()):
        raise Forbidden(f"the name {name!r} is not allowed")
    elif isinstance(node, exp.Identifier) and name.lower() in _RESERVED:
        raise Forbidden(f"the name {name!r} belongs to Spark and is not allowed")
    elif isinstance(node, exp.Dot) and not isinstance(node.expression, exp.Identifier):
        raise Forbidden("a function of a schema is not allowed")
    elif isinstance(node, exp.DataType) and getattr(node.this, "name", "") not in TYPES:
        raise Forbidden(f"the type {node.sql(dialect=Dialect)!r} is not allowed in a cast")
    elif isinstance(node, exp.Var) and name.upper() not in UNITS:
        raise Forbidden(f"{name!r} is not understood")
    elif isinstance(node, exp.Interval):
        plain = isinstance(node.this, exp.Literal) and isinstance(node.args.get("unit"), exp.Var)
        if not plain or not _INTERVAL.fullmatch(node.this.name):
            raise Forbidden("an interval is a number and one unit, such as INTERVAL 7 DAYS")
    elif isinstance(node, exp.Join) and not (node.args.get("on") or node.args.get("using")):
        raise Forbidden("a join without ON or USING is not allowed")


def _vouch_function(name: str) -> None:
    if name.lower() in FUNCTIONS:
        return
    near = nearest(name, sorted(FUNCTIONS))
    raise Forbidden(f"the function {name!r} is not allowed" + (f"; did you mean {near!r}?" if near else ""))
