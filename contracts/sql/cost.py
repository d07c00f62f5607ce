"""TABLE: what a query may cost: bounds on its parts, each with what to write instead.

Everything here is judged without the data. What only the data shows, such as a join on a column with one
value, ends with the time limit of the rule.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from dq.contracts.patterns import pattern
from dq.contracts.sql.allowlist import words
from dq.contracts.sql.long_texts import PATTERNS
from dq.contracts.sql.vetting import Forbidden

_TEXT, _DIGITS, _EXPONENT = 1_000, 38, 308
# A lambda in a lambda is asked for each pair of items.
_LAMBDAS = 2
_ARGUMENTS, _DISTINCT, _WINDOWS = 100, 4, 8
# What is sorted to be cut is held in memory.
_LIMIT = 10_000
# A window that moves at both ends is counted anew for each row.
_FRAME = 1_000


@dataclass(frozen=True, slots=True)
class _Bound:
    """A number that a function takes: where it stands, and from what to what it may be."""

    place: int
    least: float
    most: float
    why: str


_NUMBERS = {
    **dict.fromkeys(
        ("round", "bround", "ceil", "ceiling", "floor"),
        _Bound(1, -_DIGITS, _DIGITS, "no number has more digits"),
    ),
    "percentile_approx": _Bound(2, 1, 100_000, "each group keeps so many values"),
    "approx_count_distinct": _Bound(1, 0.01, 0.5, "each group keeps more the smaller it is"),
    "ntile": _Bound(0, 1, 10_000, "it is a number of parts"),
}
# Functions whose second argument is a form of dates and numbers.
_FORMS = words(
    "date_format from_unixtime to_date to_number to_timestamp to_unix_timestamp try_to_number "
    "try_to_timestamp unix_timestamp"
)
_FORM = 100
# What makes a longer text, or a larger array, of what it gets.
_GROWING = words("array array_union concat concat_ws flatten replace split transform")


def vouch_for_cost(tree: exp.Expr) -> None:
    """No part of the query is beyond its bound. Raises Forbidden, with what to write instead."""
    distinct = windows = 0
    for node in tree.walk():
        distinct += isinstance(node, exp.Distinct) and isinstance(node.parent, exp.Anonymous)
        windows += isinstance(node, exp.Window)
        for kinds, judge in _JUDGES:
            if isinstance(node, kinds):
                judge(node)
    _refuse_more(distinct, _DISTINCT, "counts of different values", "Write a rule for each.")
    _refuse_more(windows, _WINDOWS, "windows", "Write a rule for each.")


def _refuse_more(number: int, most: int, what: str, instead: str) -> None:
    if number > most:
        raise Forbidden(f"it has {number:,} {what}; {most:,} are allowed", instead)


def _text(node: exp.Expr) -> None:
    if isinstance(node, exp.RawString) or node.args.get("is_string"):
        _refuse_more(len(node.name), _TEXT, "characters in one text", "Write a shorter text.")
        return
    digits, _, exponent = node.name.lower().partition("e")
    if len(digits) > _DIGITS + 1 or len(exponent.lstrip("+-")) > 3 or abs(int(exponent or 0)) > _EXPONENT:
        raise Forbidden(
            f"the number {node.name[:50]!r} is beyond what can be held",
            f"Write one of {_DIGITS} digits at most, or up to 1e{_EXPONENT}.",
        )


def _function(node: exp.Anonymous) -> None:
    name, arguments = node.name.lower(), node.expressions
    _refuse_more(len(arguments), _ARGUMENTS, f"arguments of {name}", "Write IN (…), or several rules.")
    bound = _NUMBERS.get(name)
    if bound is not None and len(arguments) > bound.place:
        _refuse_number(name, arguments[bound.place], bound)
    if name in PATTERNS and len(arguments) > 1:
        _refuse_pattern(arguments[1])
    if name in _FORMS and len(arguments) > 1:
        _refuse_form(name, arguments[1])
    if name in ("aggregate", "reduce"):
        _refuse_growth(node)


def _refuse_number(name: str, node: exp.Expr, bound: _Bound) -> None:
    written = node.this if isinstance(node, exp.Neg) else node
    number = float(written.name) if isinstance(written, exp.Literal) and not written.is_string else None
    if number is not None and isinstance(node, exp.Neg):
        number = -number
    if number is None or not bound.least <= number <= bound.most:
        shown = node.sql(dialect="spark")[:40]
        raise Forbidden(
            f"{name} takes a number from {bound.least:,} to {bound.most:,} there and not {shown}, because"
            f" {bound.why}",
            "Write a number in these bounds, or leave it out.",
        )


def _refuse_form(name: str, node: exp.Expr) -> None:
    if not isinstance(node, exp.Literal | exp.RawString) or len(node.name) > _FORM:
        raise Forbidden(
            f"{name} takes a form that is written out, of {_FORM} characters at most",
            "Write one such as 'yyyy-MM-dd'.",
        )


def _refuse_pattern(node: exp.Expr) -> None:
    if not isinstance(node, exp.Literal | exp.RawString):
        raise Forbidden(
            "a regular expression that is not written out cannot be judged",
            "Write it as a text, such as a RLIKE '^[0-9]+$'; for the text of a column, contains(a, b).",
        )
    wrong = pattern.refused_in_sql(node.name)
    if wrong is not None:
        raise Forbidden(f"the regular expression {node.name[:60]!r}: {wrong.message}", wrong.mend)


def _like(node: exp.Like | exp.ILike) -> None:
    written = node.expression
    if not isinstance(written, exp.Literal | exp.RawString):
        raise Forbidden("LIKE takes a text that is written out", "Write contains, startswith or endswith.")
    # Each is tried at each place; where the text may go on behind the last one, that ends it.
    many = written.name.removesuffix("%").count("%")
    if many > 2:
        raise Forbidden(
            f"LIKE with {many + written.name.endswith('%')} signs % tries them all against each other",
            "Write several LIKE '%…%' with AND.",
        )


def _refuse_growth(node: exp.Anonymous) -> None:
    """The value that is handed on may not be made longer in each turn."""
    merge = node.expressions[2] if len(node.expressions) > 2 else None
    if not isinstance(merge, exp.Lambda) or not merge.expressions:
        raise Forbidden(
            f"{node.name.lower()} takes a value and a lambda of two arguments",
            "Write aggregate(a, 0, (sum, x) -> sum + x).",
        )
    handed = merge.expressions[0].name.lower()
    for one in merge.this.walk():
        grows = isinstance(one, exp.DPipe) or (
            isinstance(one, exp.Anonymous) and one.name.lower() in _GROWING
        )
        if grows and any(each.name.lower() == handed for each in one.find_all(exp.Identifier)):
            raise Forbidden(
                f"{handed!r} grows in each turn of {node.name.lower()}",
                "Let it be a number, a flag or a date, or write exists, filter or array_contains.",
            )


def _lambda(node: exp.Lambda) -> None:
    depth, around = 1, node.parent
    while around is not None:
        depth += isinstance(around, exp.Lambda)
        around = around.parent
    if depth > _LAMBDAS:
        raise Forbidden(
            f"{depth} lambdas are in each other; {_LAMBDAS} may be",
            "Write flatten, or explode in a subquery.",
        )


def _cut(node: exp.Limit | exp.Offset) -> None:
    written = node.expression
    if not isinstance(written, exp.Literal) or not written.name.isdigit() or int(written.name) > _LIMIT:
        raise Forbidden(
            f"LIMIT and OFFSET take a number up to {_LIMIT:,}",
            "Write LIMIT 1; a rule needs one row and one number.",
        )


def _frame(node: exp.WindowSpec) -> None:
    start, end = (str(node.args.get(one) or "") for one in ("start", "end"))
    whole = start == "UNBOUNDED" and node.args.get("start_side") == "PRECEDING"
    if whole and end in ("", "UNBOUNDED", "CURRENT ROW"):
        return
    numbers = [node.args[one] for one in ("start", "end") if isinstance(node.args.get(one), exp.Expr)]
    near = all(
        isinstance(one, exp.Literal) and one.name.isdigit() and int(one.name) <= _FRAME for one in numbers
    )
    if "UNBOUNDED" in (start, end) or not near or node.args.get("kind") != "ROWS":
        raise Forbidden(
            "each row would be counted with all rows in its window",
            f"Write ROWS BETWEEN n PRECEDING AND CURRENT ROW, n up to {_FRAME:,}, or UNBOUNDED PRECEDING; to"
            " look forward, turn the order.",
        )


def _tuples(node: exp.Not) -> None:
    inner = node.this.unnest() if isinstance(node.this, exp.Paren) else node.this
    if isinstance(inner, exp.In) and inner.args.get("query") and isinstance(inner.this, exp.Tuple):
        raise Forbidden(
            "NOT IN with several columns compares every row with every other",
            "Write NOT EXISTS (SELECT 1 FROM … b WHERE b.id = a.id AND …).",
        )


_JUDGES: tuple[tuple[tuple[type[exp.Expr], ...], Callable[..., None]], ...] = (
    ((exp.Literal, exp.RawString), _text),
    ((exp.Anonymous,), _function),
    ((exp.RegexpLike,), lambda node: _refuse_pattern(node.expression)),
    ((exp.Like, exp.ILike), _like),
    ((exp.Lambda,), _lambda),
    ((exp.Limit, exp.Offset), _cut),
    ((exp.WindowSpec,), _frame),
    ((exp.Not,), _tuples),
)
