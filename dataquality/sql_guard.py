"""The guard in front of Spark: a rule's untrusted query becomes SQL of our own writing, or is refused.

The query is parsed into a tree, every node of the tree must be on a list (`sql_words`), and what runs is
written anew from the tree: the user's text never reaches Spark. Nothing here imports Spark; sqlglot is
imported by this module, so that only those who have a rule to guard import it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from sqlglot import Token, TokenType, exp
from sqlglot.errors import ErrorLevel, SqlglotError

from dq.contracts.form import nearest
from dq.dataquality import sql
from dq.dataquality.sql_dialect import Dialect
from dq.dataquality.sql_words import FUNCTIONS, NODES, TYPES, UNITS

MAX_CHARACTERS = 20_000
MAX_NODES = 2_000
# Of parentheses and brackets in the text, and of nodes in the tree.
MAX_DEPTH = 60
# Every table is one more pass over the data, and joins multiply rows.
MAX_TABLES = 8
# Identifiers that begin like this are ours.
OURS = "_dq_"


@dataclass(frozen=True, slots=True)
class Guarded:
    """A query that may run.

    `tables` are the identifiers of the tables that it reads. `columns` are the names, without a table, that
    the query does not define itself: Spark would look for one that is no column among the variables of the
    session, so the caller must see that each is a column.
    """

    sql: str
    tables: tuple[str, ...]
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a query may not run, as the end of a sentence about it."""

    reason: str


class _No(Exception):
    """The query is refused; the message is the reason."""


def guarded(query: str, *, own: str, tables: Mapping[str, str], property: str | None) -> Guarded | Refused:
    """The query as SQL that may run, or the reason why it may not.

    `tables` are the names that may stand after FROM and JOIN (case does not matter), each with the
    identifier that takes its place; `own` is what `{object}` stands for, one of them, and `property` what
    `{property}` stands for, an expression that is already quoted. Never raises for what is in the query.
    """
    try:
        text = _filled(query, own, property)
        tree = _parsed(text)
        _vouch(tree)
        named = _renamed(tree, tables)
        made = tree.sql(dialect=Dialect, comments=False)
        if "${" in made:
            raise _No("it holds a sign that Spark would replace")
    except _No as refusal:
        return Refused(str(refusal))
    except SqlglotError as error:
        return Refused(f"it is not SQL that is understood: {_first_line(error)}")
    except RecursionError:
        return Refused("it is nested too deeply")
    return Guarded(made, tuple(sorted(named)), _columns(tree))


_PLACEHOLDER = re.compile(
    r"(?P<quote>`?)(?:\$?\{\s*(?P<word>object|property)\s*\}|\$\{\s*(?P<old>table|column)\s*\})(?P=quote)"
)
_LEFT = re.compile(r"\$?\{[^{}\n]{0,40}\}?")


def _filled(query: str, own: str, property: str | None) -> str:
    if len(query) > MAX_CHARACTERS:
        raise _No(f"it has {len(query):,} characters; {MAX_CHARACTERS:,} are allowed")

    def fill(found: re.Match[str]) -> str:
        if (found["word"] or found["old"]) in ("object", "table"):
            return sql.name(own)
        if property is None:
            raise _No(f"{found.group()} stands in a rule that is on no property")
        return property

    text = _PLACEHOLDER.sub(fill, query)
    if "${" in text:
        raise _No(f"{_LEFT.findall(text)[0]!r} is not a placeholder that is filled")
    if OURS in text.lower():
        raise _No(f"names that begin with {OURS!r} are not allowed")
    return text


def _parsed(text: str) -> exp.Query:
    """The one statement of a text, which must begin like a query."""
    dialect = Dialect()
    tokens = dialect.tokenize(text)
    _vouch_tokens(tokens, text)
    statements = [one for one in dialect.parser(error_level=ErrorLevel.IMMEDIATE).parse(tokens, text) if one]
    if len(statements) != 1:
        raise _No(f"it has {len(statements)} statements; one is allowed")
    tree = statements[0]
    if not isinstance(tree, exp.Query):
        raise _No("it is not a SELECT")
    return tree


_FIRST = (TokenType.SELECT, TokenType.WITH, TokenType.L_PAREN)
_OPEN = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE)
_CLOSE = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE)
_ESCAPES = re.compile(r"\\\\|\\'|\\\"")


def _vouch_tokens(tokens: list[Token], text: str) -> None:
    if not tokens:
        raise _No("it is empty")
    if tokens[0].token_type not in _FIRST:
        raise _No(f"it begins with {tokens[0].text!r}; only a SELECT is allowed")
    depth = 0
    for token in tokens:
        depth += (token.token_type in _OPEN) - (token.token_type in _CLOSE)
        if depth > MAX_DEPTH:
            raise _No("it is nested too deeply")
        if token.token_type is TokenType.PIPE_GT:
            raise _No("the operator |> is not allowed")
        written = text[token.start : token.end + 1]
        # Spark and the parser read other escapes in different ways.
        if token.token_type is TokenType.STRING and "\\" in _ESCAPES.sub("", written):
            raise _No("a text with a single backslash is not allowed; double it, or write r'…'")


def _vouch(tree: exp.Expr) -> None:
    """Nothing in the tree that is not on the lists. Raises _No."""
    for number, (node, depth) in enumerate(_walk(tree)):
        if number > MAX_NODES:
            raise _No(f"it has more than {MAX_NODES:,} parts")
        if depth > MAX_DEPTH:
            raise _No("it is nested too deeply")
        kind = type(node).__name__
        if kind not in NODES:
            raise _No(f"{_SAID.get(kind) or kind} is not allowed")
        for part, value in node.args.items():
            if value is None or value is False or value == []:
                continue
            if part not in NODES[kind]:
                said = _SAID.get(f"{kind}.{part}") or f"{part.rstrip('_')} of {kind}"
                raise _No(f"{said} is not allowed")
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
            raise _No(f"{part} of {kind} is not understood")
    elif not isinstance(value, exp.Expr | bool | Enum):
        raise _No(f"{part} of {kind} is not understood")


_NUMBER = re.compile(r"\d+(\.\d*)?([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?")
_INTERVAL = re.compile(r"[+-]?\d{1,9}(\.\d{1,9})?")
# Names of Spark's own: variables of the session, and the files that rows come from.
_RESERVED = frozenset(["session", "system", "_metadata", "global_temp"])


def _vouch_node(node: exp.Expr) -> None:
    name = node.name
    if isinstance(node, exp.Anonymous):
        _vouch_function(name)
    elif isinstance(node, exp.Literal) and not node.is_string and not _NUMBER.fullmatch(name):
        raise _No(f"the number {name!r} is not understood")
    elif isinstance(node, exp.Identifier) and (not name or not name.isprintable()):
        raise _No(f"the name {name!r} is not allowed")
    elif isinstance(node, exp.Identifier) and name.lower() in _RESERVED:
        raise _No(f"the name {name!r} belongs to Spark and is not allowed")
    elif isinstance(node, exp.Dot) and not isinstance(node.expression, exp.Identifier):
        raise _No("a function of a schema is not allowed")
    elif isinstance(node, exp.DataType) and getattr(node.this, "name", "") not in TYPES:
        raise _No(f"the type {node.sql(dialect=Dialect)!r} is not allowed in a cast")
    elif isinstance(node, exp.Var) and name.upper() not in UNITS:
        raise _No(f"{name!r} is not understood")
    elif isinstance(node, exp.Interval):
        plain = isinstance(node.this, exp.Literal) and isinstance(node.args.get("unit"), exp.Var)
        if not plain or not _INTERVAL.fullmatch(node.this.name):
            raise _No("an interval is a number and one unit, such as INTERVAL 7 DAYS")
    elif isinstance(node, exp.Join) and not (node.args.get("on") or node.args.get("using")):
        raise _No("a join without ON or USING is not allowed")


def _vouch_function(name: str) -> None:
    if name.lower() in FUNCTIONS:
        return
    near = nearest(name, sorted(FUNCTIONS))
    raise _No(f"the function {name!r} is not allowed" + (f"; did you mean {near!r}?" if near else ""))


def _renamed(tree: exp.Expr, tables: Mapping[str, str]) -> set[str]:
    """Puts the allowed tables' identifiers into the tree, and names of our own for what WITH defines.

    With them a name means the same here and in Spark, whatever the scopes: one of WITH that is used where
    it is not visible finds nothing, and no table of the catalog. Returns the identifiers.
    """
    known = {name.lower(): view for name, view in tables.items()}
    defined = {one.alias.lower() for one in tree.find_all(exp.CTE)}
    for name in defined & known.keys():
        raise _No(f"WITH defines {name!r}, which is the name of a table of the contract")
    for one in tree.find_all(exp.CTE):
        one.args["alias"].set("this", exp.to_identifier(_own(one.alias)))
    found = list(tree.find_all(exp.Table))
    if len(found) > MAX_TABLES:
        raise _No(f"it reads {len(found)} tables; {MAX_TABLES} are allowed")
    read = set()
    for table in found:
        name = ".".join(part.name for part in table.parts).lower()
        if not all(isinstance(part, exp.Identifier) for part in table.parts):
            raise _No("a function in the place of a table is not allowed")
        if name in defined and len(table.parts) == 1:
            view = _own(name)
        elif name in known:
            view = known[name]
            read.add(view)
        else:
            shown = ".".join(part.name for part in table.parts)
            raise _No(f"it reads {shown!r}; a rule reads only {' or '.join(sorted(tables))}")
        alias = table.args.get("alias") or exp.TableAlias(this=exp.to_identifier(table.name))
        table.replace(exp.Table(this=exp.to_identifier(view), alias=alias))
    if not read:
        raise _No("it reads no table of the contract")
    return read


def _columns(tree: exp.Expr) -> tuple[str, ...]:
    inside = {one.alias.lower() for one in tree.find_all(exp.Alias)}
    for one in tree.find_all(exp.TableAlias):
        # A whole row can be named by its table: `count(o)`.
        inside |= {one.name.lower(), *(column.name.lower() for column in one.columns)}
    for each in tree.find_all(exp.Lambda):
        inside |= {argument.name.lower() for argument in each.expressions}
    used = {
        one.name
        for one in tree.find_all(exp.Column)
        if not one.table and isinstance(one.this, exp.Identifier)
    }
    return tuple(sorted(name for name in used if name.lower() not in inside))


def _own(name: str) -> str:
    return f"{OURS}with_{name.lower()}"


def _first_line(error: SqlglotError) -> str:
    shown = re.sub(r"\x1b\[\d*m", "", str(error))
    return shown.strip().split("\n", 1)[0][:200]
