"""The guard in front of Spark: a rule's untrusted SQL becomes SQL of our own writing, or is refused."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ErrorLevel, SqlglotError
from sqlglot.generator import Generator

from dq.contracts.model import Quality, SchemaObject
from dq.contracts.sql import text as sql
from dq.contracts.sql.allow import (
    NOT_OF_A_ROW,
    OF_A_ROW,
    Forbidden,
    SqlDialect,
    unquoted,
    vouch_for_places,
    vouch_for_tokens,
    vouch_for_tree,
)
from dq.contracts.sql.analysis import (
    Folded,
    columns,
    fields,
    folded,
    qualified,
    read,
    read_condition,
    shown,
    vouch_for_cost,
    with_bounded_patterns,
)

# It is parsed into a tree, every node of the tree must be on a list (`allow`) and within its bounds
# (`analysis`), and what runs is written anew from the tree: the user's text never reaches Spark. The
# gate asks the same guard, so that what it lets pass will run. Nothing here imports Spark.

MAX_CHARACTERS = 20_000
# Identifiers that begin like this are ours.
OURS = "_dq_"


@dataclass(frozen=True, slots=True)
class Guarded:
    """SQL that may run.

    `tables` are the identifiers of the tables that it reads. `columns` are the names, without a table, that
    the query does not define itself: Spark would look for one that is no column among the variables of the
    session, so the caller must see that each is a column. `folded` is the same question as an aggregate of
    the table's rows, where it is one. `shown` are the columns, in lower case, of which the answer tells more
    than how many rows there are. `qualified` are columns that stand after a table of the data: `o.amount`.
    `fields` are all names behind a dot that the query does not define itself, in lower case.
    """

    sql: str
    tables: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    folded: Folded | None = None
    shown: frozenset[str] = frozenset()
    qualified: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Refused:
    """Why SQL may not run, as the end of a sentence about it, and what to write instead.

    `reads` is false for what is no single statement that only reads.
    """

    reason: str
    instead: str
    reads: bool = True


def guarded(query: str, *, own: str, tables: Mapping[str, str], property: str | None) -> Guarded | Refused:
    """The query as SQL that may run, or the reason why it may not.

    `tables` are the names that may stand after FROM and JOIN (case does not matter), each with the
    identifier that takes its place; `own` is what `{object}` stands for, one of them, and `property` what
    `{property}` stands for, an expression that is already quoted. Never raises for what is in the query.
    """
    try:
        tree = _parsed(_filled(query, own, property))
        vouch_for_tree(tree)
        vouch_for_cost(tree)
        vouch_for_places(tree)
        named = _renamed(tree, tables)
        rows = read(tree)
        with_bounded_patterns(tree)
        tables_read = tuple(sorted(named))
        asked, told = folded(tree), shown(tree, rows)
        parts = list(tree.walk())
        return Guarded(
            _written(tree), tables_read, columns(parts), asked, told, qualified(parts, named), fields(parts)
        )
    except (Forbidden, SqlglotError, RecursionError) as error:
        return _refused(error)


@lru_cache(256)
def guarded_predicate(text: str) -> Guarded | Refused:
    """A condition on the rows of one object as SQL that may run, or the reason why it may not.

    It looks at the columns of one row, and at nothing else. Never raises for what is in the text.
    """
    try:
        tree = condition(text)
        vouch_for_tree(tree)
        _vouch_for_row(tree)
        vouch_for_cost(tree)
        read_condition(tree)
        tree = with_bounded_patterns(tree)
        names = {one.parts[0].name for one in tree.find_all(exp.Column)}
        return Guarded(_written(tree), (), tuple(sorted(names)), fields=fields(list(tree.walk())))
    except (Forbidden, SqlglotError, RecursionError) as error:
        return _refused(error)


def _refused(error: Exception) -> Refused:
    if isinstance(error, Forbidden):
        return Refused(str(error), error.instead, error.reads)
    if isinstance(error, SqlglotError):
        return Refused(f"it is not SQL that is understood: {_first_line(error)}", "Correct it there.")
    return Refused("it is nested too deeply", "Write a simpler one.")


def _written(tree: exp.Expr) -> str:
    made = tree.sql(dialect=SqlDialect, comments=False)
    if "${" in made:
        raise Forbidden("it holds a sign that Spark would replace")
    return made


def condition(text: str) -> exp.Expr:
    """The tree of a condition. Raises Forbidden or SqlglotError for what is none."""
    _refuse_long(text)
    if OURS in text.lower():
        raise Forbidden(f"names that begin with {OURS!r} are not allowed", "Name a column of the object.")
    dialect = SqlDialect()
    tokens = unquoted(dialect.tokenize(text), text)
    vouch_for_tokens(tokens, text, is_query=False)
    (tree,) = dialect.parser(error_level=ErrorLevel.IMMEDIATE).parse_into(exp.Condition, tokens, text)
    if tree is None:
        raise Forbidden("it is empty", _ON_A_ROW)
    return tree


def _refuse_long(text: str) -> None:
    if len(text) > MAX_CHARACTERS:
        message = f"it has {len(text):,} characters; {MAX_CHARACTERS:,} are allowed"
        raise Forbidden(message, "Write a shorter one, or several rules.")


_ON_A_ROW = "Write a condition on the object's own columns, such as state = 'open'."


def _vouch_for_row(tree: exp.Expr) -> None:
    for node in tree.walk():
        if type(node).__name__ in NOT_OF_A_ROW:
            said = "a lambda" if isinstance(node, exp.Lambda) else f"{node.key.upper()}"
            raise Forbidden(f"{said} is not allowed in a predicate", _ON_A_ROW)
        if isinstance(node, exp.Anonymous) and node.name.lower() not in OF_A_ROW:
            raise Forbidden(f"the function {node.name!r} is not allowed in a predicate", _ON_A_ROW)


_PLACEHOLDER = re.compile(
    r"(?P<quote>`?)(?:\$?\{\s*(?P<word>object|property)\s*\}|\$\{\s*(?P<old>table|column)\s*\})(?P=quote)"
)
_LEFT = re.compile(r"\$?\{[^{}\n]{0,40}\}?")


def _filled(query: str, own: str, property: str | None) -> str:
    _refuse_long(query)

    def fill(found: re.Match[str]) -> str:
        if (found["word"] or found["old"]) in ("object", "table"):
            return sql.name(own)
        if property is None:
            raise Forbidden(
                f"{found.group()} stands in a rule that is on no property",
                "Name the column, or move the rule to the property.",
            )
        return property

    text = _PLACEHOLDER.sub(fill, query)
    if "${" in text:
        raise Forbidden(f"{_LEFT.findall(text)[0]!r} is not a placeholder that is filled", "Write {object}.")
    if OURS in text.lower():
        raise Forbidden(f"names that begin with {OURS!r} are not allowed", "Name it otherwise.")
    return text


def _parsed(text: str) -> exp.Query:
    """The one statement of a text, which must begin like a query."""
    dialect = SqlDialect()
    tokens = unquoted(dialect.tokenize(text), text)
    vouch_for_tokens(tokens, text, is_query=True)
    statements = [one for one in dialect.parser(error_level=ErrorLevel.IMMEDIATE).parse(tokens, text) if one]
    if len(statements) != 1:
        raise Forbidden(f"it has {len(statements)} statements; one is allowed", reads=False)
    tree = statements[0]
    if not isinstance(tree, exp.Query):
        raise Forbidden("it is not a SELECT", reads=False)
    return tree


def _renamed(tree: exp.Expr, tables: Mapping[str, str]) -> set[str]:
    """Puts the allowed tables' identifiers into the tree, and names of our own for what WITH defines.

    With them a name means the same here and in Spark, whatever the scopes: one of WITH that is used where
    it is not visible finds nothing, and no table of the catalog. Returns the identifiers.
    """
    known = {name.lower(): view for name, view in tables.items()}
    defined = {one.alias.lower() for one in tree.find_all(exp.CTE)}
    for name in defined & known.keys():
        said = f"WITH defines {name!r}, which is the name of a table of the contract"
        raise Forbidden(said, "Give it another name.")
    for one in tree.find_all(exp.CTE):
        one.args["alias"].set("this", exp.to_identifier(_own(one.alias)))
    taken = set()
    for table in list(tree.find_all(exp.Table)):
        name = ".".join(part.name for part in table.parts).lower()
        if not all(isinstance(part, exp.Identifier) for part in table.parts):
            raise Forbidden("a function in the place of a table is not allowed", _FROM)
        if name in defined and len(table.parts) == 1:
            view = _own(name)
        elif name in known:
            view = known[name]
            taken.add(view)
        else:
            unknown = ".".join(part.name for part in table.parts)
            only = " or ".join(sorted(tables))
            raise Forbidden(f"it reads {unknown!r}; a rule reads only {only}", _FROM)
        alias = table.args.get("alias") or exp.TableAlias(this=exp.to_identifier(table.name))
        table.replace(exp.Table(this=exp.to_identifier(view), alias=alias))
    if not taken:
        raise Forbidden("it reads no table of the contract", _FROM)
    return taken


_FROM = "Write FROM {object}."


def _own(name: str) -> str:
    return f"{OURS}with_{name.lower()}"


def _first_line(error: SqlglotError) -> str:
    shown = re.sub(r"\x1b\[\d*m", "", str(error))
    return shown.strip().split("\n", 1)[0][:200].rstrip(".")


# The SQL of quality rules as the guard sees it: the gate and the check ask here, and so judge alike.

# The name that objects share, so that one query over a thousand of them is judged once.
_ANY = "this_object"
# One pattern for all names: each of a pattern's own would be compiled anew.
_TABLE = re.compile(r"\b(?:from|join)\s+(?P<name>[A-Za-z_]\w*)(?![\w.`'\"$-])", re.IGNORECASE)
_HOLE = re.compile(r"\{\s*object\s*\}")
# In front of a table these may hold its name in a text, a comment or a quoted name.
_QUOTES = re.compile(r"""['"`]|--|/\*""")


def query(one: SchemaObject, quality: Quality, way: Sequence[str] | None) -> Guarded | Refused:
    """The query of a rule of the type `sql`; `way` are the names down to its property, if it is on one.

    A query that names its object only after FROM and JOIN runs with another name for it.
    """
    column = None if way is None else ".".join(sql.name(step) for step in way)
    text = quality.query or ""
    shared = _of_any(text, one.name, one.column)
    if shared is not None:
        found = _query(shared, _ANY, _ANY, column)
        if isinstance(found, Guarded):
            return found
    # A refusal names the object.
    return _query(text, one.name, one.column, column)


def _of_any(text: str, name: str, physical: str) -> str | None:
    """The query with the shared name of objects, where nothing else can be meant by the object's own name."""
    lower, own = text.lower(), {name.lower(), physical.lower()}
    places = [found.span("name") for found in _TABLE.finditer(text) if found["name"].lower() in own]
    alone = all(lower.count(each) == sum(lower[a:b] == each for a, b in places) for each in own)
    last = max([*(end for _, end in places), *(found.end() for found in _HOLE.finditer(text))], default=0)
    if not last or not alone or _ANY in lower or _QUOTES.search(text[:last]):
        return None
    for begin, end in reversed(places):
        text = f"{text[:begin]}{_ANY}{text[end:]}"
    return text


@lru_cache(256)
def _query(text: str, name: str, physical: str, column: str | None) -> Guarded | Refused:
    return guarded(text, own=name, tables={name: sql.ROWS_VIEW, physical: sql.ROWS_VIEW}, property=column)


# Row filters of subscriptions: what Spark and the data filters of Lake Formation read alike.
#
# Source: "PartiQL support in row filter expressions" of the Lake Formation guide. There is no function, no
# arithmetic and no query; columns are compared with constants, and never with each other. Texts stand in
# single quotes, a name in double quotes is a column, and a backslash is itself.

# In characters, of the whole expression.
_LONGEST = 2047
_MEND = (
    "Compare columns with literals by =, <>, <, <=, >, >=, BETWEEN, IN, LIKE and IS NULL; join them by AND,"
    " OR and NOT."
)
_SINGLE_QUOTES = "Write texts in single quotes, and a quote inside of one twice: 'it''s'."
_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)


class _PartiqlGenerator(Generator):
    """PartiQL: texts in single quotes, names as they are, those in back quotes in double quotes."""

    def not_sql(self, expression: exp.Not) -> str:
        negated = expression.this
        if isinstance(negated, exp.Is):
            return f"{self.sql(negated, 'this')} IS NOT {self.sql(negated, 'expression')}"
        return f"NOT ({self.sql(negated.unnest())})"


class PartiqlDialect(Dialect):
    Generator = _PartiqlGenerator


def guarded_filter(text: str) -> Guarded | Refused:
    """The row filter as an expression for Lake Formation, or the reason why it may be none.

    Never raises for what is in the text.
    """
    if not text.strip():
        return Refused("it is empty", _MEND)
    if '"' in text or "\\" in text:
        return Refused("a double quote or a backslash is read in different ways", _SINGLE_QUOTES)
    found = guarded_predicate(text)
    if isinstance(found, Refused):
        return found
    if any(token.comments for token in SqlDialect().tokenize(text)):
        return Refused("it holds a comment", "Leave the comment out, or write it in YAML, behind #.")
    tree = condition(text)
    wrong = _wrong(tree)
    if wrong:
        return Refused(wrong, _MEND)
    written = tree.sql(dialect=PartiqlDialect, comments=False)
    if len(written) > _LONGEST:
        return Refused(f"it has {len(written):,} characters, and data filters take {_LONGEST:,}", _MEND)
    return Guarded(written, (), found.columns, fields=found.fields)


def _wrong(node: exp.Expr) -> str:
    """Why a condition cannot be one of a data filter; empty for one that can."""
    match node:
        case exp.And() | exp.Or():
            return _wrong(node.this) or _wrong(node.expression)
        case exp.Paren() | exp.Not():
            return _wrong(node.this)
        case exp.Between():
            return _compared(node.this, node.args["low"], node.args["high"])
        case exp.In() if node.expressions:
            return _compared(node.this, *node.expressions)
        case exp.Like():
            return _compared(node.this, node.expression)
        case exp.Is() if isinstance(node.expression, exp.Null):
            return _compared(node.this)
    if not isinstance(node, _COMPARISONS):
        known = isinstance(node, (exp.Column, exp.Literal, exp.Boolean, exp.Null, exp.Neg))
        return "it is no comparison" if known else f"{node.key.upper()} is not known to data filters"
    sides = [node.this, node.expression]
    return _compared(*(sides if isinstance(node.this, exp.Column) else reversed(sides)))


def _compared(column: exp.Expr, *values: exp.Expr) -> str:
    if not isinstance(column, exp.Column):
        return f"{column.sql(dialect=SqlDialect)} is not a column"
    if len(column.parts) > 1:
        return f"{column.sql()!r} is not a column of the object"
    for value in values:
        plain = value.this if isinstance(value, exp.Neg) else value
        if not isinstance(plain, (exp.Literal, exp.Boolean, exp.Null)):
            return f"{value.sql(dialect=SqlDialect)} is not a literal"
    return ""
