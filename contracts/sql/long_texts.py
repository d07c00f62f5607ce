"""TABLE: functions with a regular expression, so written that no text can exhaust the stack of Java."""

from __future__ import annotations

from sqlglot import exp

from dq.contracts.patterns.recursion import TOO_LONG, in_sql
from dq.contracts.sql.allowlist import words

# Their first argument is the text, and the second the regular expression.
PATTERNS = words("regexp regexp_count regexp_extract regexp_instr regexp_like regexp_substr rlike split")


def bounded(tree: exp.Expr) -> exp.Expr:
    """The query, in which repeated groups are possessive where that means the same.

    Where it does not, a text that is too long is an error of the query, and not the end of the session. The
    regular expressions were vouched for (`cost`).
    """
    for node in list(tree.walk()):
        found = _searched(node)
        if found is None:
            continue
        text, written = found
        possessive, longest = in_sql(written.name)
        if possessive != written.name:
            written.set("this", possessive)
        if longest is not None:
            made = _within(node, text, longest)
            if node is tree:
                return made
            node.replace(made)
    return tree


def _searched(node: exp.Expr) -> tuple[exp.Expr, exp.Expr] | None:
    if isinstance(node, exp.RegexpLike):
        return node.this, node.expression
    if isinstance(node, exp.Anonymous) and node.name.lower() in PATTERNS and len(node.expressions) > 1:
        return node.expressions[0], node.expressions[1]
    return None


def _within(node: exp.Expr, text: exp.Expr, longest: int) -> exp.Expr:
    length = exp.Anonymous(this="length", expressions=[text.copy()])
    short = exp.LTE(this=length, expression=exp.Literal.number(longest))
    beyond = exp.Anonymous(this="raise_error", expressions=[exp.Literal.string(TOO_LONG)])
    known = exp.Not(this=exp.Is(this=text.copy(), expression=exp.Null()))
    return exp.Paren(
        this=exp.Case(ifs=[exp.If(this=short, true=node.copy()), exp.If(this=known, true=beyond)])
    )
