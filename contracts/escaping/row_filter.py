"""Row filters of subscriptions: what Spark and the data filters of Lake Formation read alike.

Source: "PartiQL support in row filter expressions" of the Lake Formation guide. There is no function, no
arithmetic and no query; columns are compared with constants, and never with each other. Texts stand in single
quotes, a name in double quotes is a column, and a backslash is itself.
"""

from __future__ import annotations

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.generator import Generator

from dq.contracts.sql.dialect import SqlDialect
from dq.contracts.sql.guard import Guarded, Refused, condition, guarded_predicate

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
