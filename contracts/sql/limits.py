"""What a query may cost, how large what it gives may be, and patterns that cannot exhaust a stack."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from dq.contracts import pattern
from dq.contracts.pattern import TOO_LONG, in_sql
from dq.contracts.sql.allow import FLAT, GENERATORS, Forbidden, words

# TABLE: functions with a regular expression, so written that no text can exhaust the stack of Java.

# Their first argument is the text, and the second the regular expression.
PATTERNS = words("regexp regexp_count regexp_extract regexp_instr regexp_like regexp_substr rlike split")


def with_bounded_patterns(tree: exp.Expr) -> exp.Expr:
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


# TABLE: how large what an expression gives may be, from how large its arguments are.
#
# Sizes are those of a nominal row. No rule knows the data, but what makes gigabytes of ten kilobytes does
# so
# with any data.

# Of a value of the data, in bytes and in items of an array or map. A number is eight bytes.
VALUE, ITEMS, NUMBER = 10_000, 1_000, 8
# What may be made of them.
MAX_BYTES = 20_000_000
# More is not told apart.
_MANY = 10**15
# Stands for all columns of a row.
ALL = "*"


@dataclass(frozen=True, slots=True)
class Estimate:
    """What is known of an expression before it runs.

    `parts` is its length when all is put in place. `reads` are the columns of the data that it is made of, in
    lower case. `plain` says that it is a column as it stands, or in a form that keeps different values apart.
    `sources` are the tables of its own SELECT that it names; `outer`, that it names one of a SELECT around.
    """

    size: int = NUMBER
    items: int = 1
    parts: int = 1
    reads: frozenset[str] = frozenset()
    plain: bool = False
    sources: frozenset[str] = frozenset()
    outer: bool = False


def combined(*values: Estimate) -> Estimate:
    """What is made of all of them, as large as the largest."""
    return Estimate(
        max((one.size for one in values), default=NUMBER),
        max((one.items for one in values), default=1),
        min(_MANY, 1 + sum(one.parts for one in values)),
        frozenset().union(*(one.reads for one in values)),
        False,
        frozenset().union(*(one.sources for one in values)),
        any(one.outer for one in values),
    )


def bounded(value: Estimate, node: exp.Expr) -> Estimate:
    """The value. Raises Forbidden where it may be too large."""
    _refuse_work(value.size, node)
    return value


def _refuse_work(size: int, node: exp.Expr) -> None:
    if size > MAX_BYTES:
        what = (
            f"what {node.name.lower()}(…) makes" if isinstance(node, exp.Anonymous) else "one of its values"
        )
        raise Forbidden(
            f"{what} may be {size / VALUE:,.0f} times as large as what is in a row",
            _LESS.get(node.name.lower(), "Compare what is in the row itself, without making more of it."),
        )


_LESS = {
    "levenshtein": "Write levenshtein(left(a, 200), left(b, 200)), or give it a threshold as third argument.",
    "transform": "Write exists or filter, and look at columns of the row outside of the lambda.",
}

_FLAT_NODES = (
    exp.And, exp.Or, exp.Not, exp.Is, exp.In, exp.Between, exp.Exists, exp.EQ, exp.NEQ, exp.GT, exp.GTE,
    exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Like, exp.ILike, exp.RegexpLike, exp.Add, exp.Sub,
    exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Neg, exp.Extract, exp.Interval,
)  # fmt: skip
# They keep different values apart, or nearly: a join on them is one on columns.
_KEEPING = words("bigint btrim date int lcase lower ltrim rtrim string timestamp to_date trim ucase upper")
_FEW_VALUES = frozenset(["BOOLEAN", "TINYINT"])


def grown(node: exp.Expr, values: Sequence[Estimate]) -> Estimate:
    """What a node is, from what is inside of it."""
    made = combined(*values)
    if isinstance(node, exp.Literal | exp.RawString):
        return Estimate(max(1, len(node.name.encode("utf-8", "replace"))))
    if isinstance(node, exp.Anonymous):
        return _called(node, values, made)
    if isinstance(node, exp.DPipe):
        return replace(made, size=sum(one.size for one in values), items=sum(one.items for one in values))
    if isinstance(node, _FLAT_NODES):
        return replace(made, size=NUMBER, items=1)
    if isinstance(node, exp.Paren | exp.Alias | exp.Dot):
        return replace(made, plain=values[0].plain)
    if isinstance(node, exp.Cast):
        few = getattr(node.to.this, "name", "") in _FEW_VALUES
        return replace(made, plain=values[0].plain and not few)
    if isinstance(node, exp.Bracket):
        return replace(made, size=values[0].size, items=max(1, values[0].size // NUMBER))
    return made


def _called(node: exp.Anonymous, values: Sequence[Estimate], made: Estimate) -> Estimate:
    name = node.name.lower()
    if name == "levenshtein" and len(values) == 2:
        _refuse_work(values[0].size * values[1].size, node)
    rule = _GROWTH.get(name)
    if rule is not None:
        size, items = rule(node.expressions, values)
        return replace(made, size=min(_MANY, size), items=min(_MANY, items))
    if name in FLAT:
        made = replace(made, size=NUMBER, items=1)
    return replace(made, plain=name in _KEEPING and len(values) == 1 and values[0].plain)


Arguments = Sequence[exp.Expr]
Rule = Callable[[Arguments, Sequence[Estimate]], tuple[int, int]]


def _sum(_: Arguments, values: Sequence[Estimate]) -> tuple[int, int]:
    return sum(one.size for one in values), sum(one.items for one in values)


def _listed(_: Arguments, values: Sequence[Estimate]) -> tuple[int, int]:
    return sum(one.size for one in values), max(1, len(values))


def _concatenated(_: Arguments, values: Sequence[Estimate]) -> tuple[int, int]:
    between, *rest = values or (Estimate(),)
    return sum(one.size + between.size * one.items for one in rest) or between.size, 1


def _replaced(arguments: Arguments, values: Sequence[Estimate]) -> tuple[int, int]:
    text, *more = values
    by = more[1].size if len(more) > 1 else 0
    found = more[0].size if more and isinstance(arguments[1], exp.Literal) else 1
    return text.size * max(1, -(-by // max(1, found))), 1


def _cut(arguments: Arguments, values: Sequence[Estimate]) -> tuple[int, int]:
    last = arguments[-1]
    written = isinstance(last, exp.Literal) and not last.is_string and last.name.isdigit()
    # A character has four bytes at most.
    return (min(values[0].size, 4 * int(last.name)) if written else values[0].size), values[0].items


def _formatted(_: Arguments, values: Sequence[Estimate]) -> tuple[int, int]:
    return 10 * values[-1].size, 1


def _one(_: Arguments, values: Sequence[Estimate]) -> tuple[int, int]:
    size = max(NUMBER, values[0].size // max(1, values[0].items)) if values else NUMBER
    return size, max(1, size // NUMBER)


_GROWTH: dict[str, Rule] = {
    **dict.fromkeys(("concat", "array_union"), _sum),
    **dict.fromkeys(("array", "named_struct", "struct"), _listed),
    "concat_ws": _concatenated,
    "replace": _replaced,
    **dict.fromkeys(("left", "right", "substr", "substring"), _cut),
    "split": lambda _, values: (2 * values[0].size, values[0].size),
    "flatten": lambda _, values: (values[0].size, max(values[0].items, values[0].size // NUMBER)),
    **dict.fromkeys(("date_format", "from_unixtime"), _formatted),
    **dict.fromkeys(GENERATORS, _one),
}


def element(node: exp.Anonymous, values: Sequence[Estimate]) -> int:
    """How many rows a call makes of one."""
    return values[0].items if node.name.lower() in GENERATORS and values else 1


def with_lambdas(
    node: exp.Anonymous,
    value: Callable[[exp.Expr], Estimate],
    body: Callable[[exp.Lambda, list[Estimate]], Estimate],
) -> Estimate:
    """What a call with lambdas is; `body` looks into one of them with what it is given."""
    name = node.name.lower()
    plain = [value(one) for one in node.expressions if not isinstance(one, exp.Lambda)]
    whole = plain[0] if plain else Estimate()
    size, items = _one([], [whole])
    item = replace(whole, size=size, items=items, parts=1, plain=False)
    if name in ("aggregate", "reduce") and len(plain) > 1:
        sofar = replace(plain[1], parts=1, plain=False)
        given = [[sofar, item], [sofar]]
    else:
        given = [[item, Estimate()]] * len(node.expressions)
    lambdas = [one for one in node.expressions if isinstance(one, exp.Lambda)]
    bodies = [body(one, each) for one, each in zip(lambdas, given, strict=False)]
    work = min(_MANY, whole.items * max((one.size for one in bodies), default=NUMBER))
    _refuse_work(work, node)
    made = combined(*plain, *bodies)
    if name == "transform":
        return replace(made, size=max(work, NUMBER), items=whole.items)
    if name in ("aggregate", "reduce"):
        return made
    return replace(made, size=whole.size if name == "filter" else NUMBER, items=whole.items)


# TABLE: what a query may cost: bounds on its parts, each with what to write instead.
#
# Everything here is judged without the data. What only the data shows, such as a join on a column with one
# value, ends with the time limit of the rule.

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


def _limit_cost(node: exp.Limit | exp.Offset) -> None:
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
    ((exp.Limit, exp.Offset), _limit_cost),
    ((exp.WindowSpec,), _frame),
    ((exp.Not,), _tuples),
)
