"""TABLE: how large what an expression gives may be, from how large its arguments are.

Sizes are those of a nominal row. No rule knows the data, but what makes gigabytes of ten kilobytes does so
with any data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from dq.contracts.sql.allowlist import FLAT, GENERATORS, words
from dq.contracts.sql.vetting import Forbidden

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


def _joined(_: Arguments, values: Sequence[Estimate]) -> tuple[int, int]:
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
    "concat_ws": _joined,
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
