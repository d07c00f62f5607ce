"""What a vetted query reads, how large what it gives may be, and what it may cost."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from dq.contracts import pattern
from dq.contracts.pattern import TOO_LONG, in_sql
from dq.contracts.sql.allow import (
    AGGREGATES,
    FLAT,
    GENERATORS,
    NODES,
    NOT_OF_A_ROW,
    Forbidden,
    SqlDialect,
    words,
)

# TABLE: functions with a regular expression, so written that no text can exhaust the stack of Java.

# Their first argument is the text, and the second the regular expression.
PATTERNS = words("regexp regexp_count regexp_extract regexp_instr regexp_like regexp_substr rlike split")


def with_bounded_patterns(tree: exp.Expr) -> exp.Expr:
    """The query, in which repeated groups are possessive where that means the same.

    Where it does not, a text that is too long is an error of the query, and not the end of the session. The
    regular expressions were vouched for (`vouch_for_cost`).
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
# so with any data.

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


# What cannot be followed may be any column, or all of them.
_ANY_COLUMN = Estimate(VALUE, ITEMS, reads=frozenset([ALL]))


def _refuse_work(size: int, node: exp.Expr) -> None:
    """Raises Forbidden where a value may be too large."""
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


# Which names of columns and fields a query or a condition holds, by the nodes of its tree.


def columns(parts: Sequence[exp.Expr]) -> tuple[str, ...]:
    """Names without a table that are no names of the query's own."""
    given = Counter(one.alias.lower() for one in parts if isinstance(one, exp.Alias))
    inside: set[str] = set()
    for table in (one for one in parts if isinstance(one, exp.TableAlias)):
        # A whole row can be named by its table: `count(o)`.
        inside |= {table.name.lower(), *(column.name.lower() for column in table.columns)}
    for each in (one for one in parts if isinstance(one, exp.Lambda)):
        inside |= {argument.name.lower() for argument in each.expressions}
    used = {
        one.name
        for one in parts
        if isinstance(one, exp.Column)
        and not one.table
        and isinstance(one.this, exp.Identifier)
        and one.name.lower() not in inside
        and given[one.name.lower()] <= _own_aliases(one).count(one.name.lower())
    }
    return tuple(sorted(used))


def qualified(parts: Sequence[exp.Expr], views: set[str]) -> tuple[str, ...]:
    """Columns after the alias of a table of the data, where the alias stands for nothing else."""
    of_data: set[str] = set()
    others = exp.Subquery, exp.CTE, exp.Alias
    of_others: set[str] = {one.alias.lower() for one in parts if isinstance(one, others)}
    for table in (one for one in parts if isinstance(one, exp.Table)):
        (of_data if table.name in views else of_others).add(table.alias_or_name.lower())
    aliases = of_data - of_others
    return tuple(
        sorted(
            {
                one.name
                for one in parts
                if isinstance(one, exp.Column)
                and one.table.lower() in aliases
                and len(one.parts) == 2
                and isinstance(one.this, exp.Identifier)
            }
        )
    )


# What generators and maps call their own.
_GIVEN = frozenset({"pos", "col", "key", "value"})


def fields(parts: Sequence[exp.Expr]) -> tuple[str, ...]:
    """Names behind a dot, whatever stands before it: a table, a struct, an argument of a lambda."""
    used, given = set(), set(_GIVEN)
    for one in parts:
        if isinstance(one, exp.Column):
            used |= {part.name.lower() for part in one.parts[1:] if isinstance(part, exp.Identifier)}
        elif isinstance(one, exp.Dot):
            used.add(one.expression.name.lower())
        elif isinstance(one, exp.Alias):
            given.add(one.alias.lower())
        elif isinstance(one, exp.TableAlias):
            given |= {column.name.lower() for column in one.columns}
        elif isinstance(one, exp.Anonymous) and one.name.lower() == "named_struct":
            given |= {each.name.lower() for each in one.expressions if isinstance(each, exp.Literal)}
    return tuple(sorted(used - given))


def _own_aliases(column: exp.Column) -> list[str]:
    """The aliases that a SELECT gives to its results, and that its WHERE therefore does not see."""
    where = column.find_ancestor(exp.Where, exp.Select)
    if not isinstance(where, exp.Where) or not isinstance(where.parent, exp.Select):
        return []
    return [one.alias.lower() for one in where.parent.expressions if isinstance(one, exp.Alias)]


# The names of a query: which table, or which SELECT around, a column is of.


@dataclass(frozen=True, slots=True)
class Relation:
    """What is known of a query, or of a table: its columns by their names in lower case.

    `others` is what every column is whose name is not among them; None where there is no other. `number` is
    how many rows are made of one. `reads` are the columns that decide which rows there are. `outer` says
    that it names a column of a SELECT around it.
    """

    columns: Mapping[str, Estimate] = field(default_factory=dict)
    others: Estimate | None = None
    number: int = 1
    tables: int = 0
    parts: int = 1
    reads: frozenset[str] = frozenset()
    outer: bool = False

    def get(self, name: str) -> Estimate | None:
        """A column by its name."""
        found = self.columns.get(name)
        if found is None and self.others is not None:
            return replace(self.others, reads=self.others.reads | {name})
        return found


DATA = Relation(others=Estimate(VALUE, ITEMS, plain=True), tables=1)
With = Mapping[str, Relation]


@dataclass(slots=True)
class SelectScope:
    """The tables of one SELECT, the SELECT around it, the arguments of lambdas, and what was counted."""

    known: With
    outer: SelectScope | None
    tables: dict[str, Relation] = field(default_factory=dict)
    arguments: Mapping[str, Estimate] = field(default_factory=dict)
    number: int = 1
    read: int = 0
    deciding: frozenset[str] = frozenset()


def named(rows: Relation, alias: exp.Expr | None) -> Relation:
    """The rows with the columns' names that an alias such as `x(a, b)` gives."""
    names = [column.name.lower() for column in alias.columns] if isinstance(alias, exp.TableAlias) else []
    if not names:
        return rows
    values = list(rows.columns.values())
    columns = {name: values[at] if at < len(values) else _ANY_COLUMN for at, name in enumerate(names)}
    return replace(rows, columns=columns, others=None)


def column(node: exp.Column, scope: SelectScope) -> Estimate:
    """What a column is, by its name and where it stands."""
    first, *rest = (part.name.lower() for part in node.parts)
    if isinstance(node.this, exp.Star):
        return _ANY_COLUMN
    here: SelectScope | None = scope
    if rest and first not in scope.arguments:
        # A table around goes before a struct of this name, which the data may have or not.
        around = scope
        while first not in around.tables and around.outer is not None:
            around = around.outer
        here = around if first in around.tables else scope
    while here is not None:
        found = _found(here, first, rest)
        if found is not None:
            # A name that a subquery around has given, and that the data may have or not.
            named_outside = here is scope and not rest and _given(scope.outer, first, up=True)
            unsure = named_outside and not _given(scope, first)
            sources = found.sources if here is scope else frozenset()
            plain = found.plain and not unsure
            return replace(found, outer=here is not scope or unsure, sources=sources, plain=plain)
        here = here.outer
    # Not one that can be followed, such as one that Spark names: it may be any.
    return _ANY_COLUMN


def _found(scope: SelectScope, first: str, rest: list[str]) -> Estimate | None:
    if first in scope.arguments:
        return scope.arguments[first]
    if rest and first in scope.tables:
        found = scope.tables[first].get(rest[0])
        return replace(found, sources=frozenset([first])) if found is not None else None
    named = [(name, rows) for name, rows in scope.tables.items() if first in rows.columns]
    if not named and first in scope.tables:
        # The whole row.
        return replace(_ANY_COLUMN, sources=frozenset([first]))
    holders = named or [(name, rows) for name, rows in scope.tables.items() if rows.others is not None]
    values = [(name, value) for name, rows in holders if (value := rows.get(first)) is not None]
    if not values:
        return None
    made = combined(*(value for _, value in values))
    plain = all(value.plain for _, value in values)
    return replace(made, parts=made.parts - 1, plain=plain, sources=frozenset(name for name, _ in values))


def _given(scope: SelectScope | None, name: str, *, up: bool = False) -> bool:
    """Whether a SELECT, or with `up` one around it, has a column that a subquery has given this name."""
    while scope is not None:
        if any(name in rows.columns for rows in scope.tables.values()):
            return True
        scope = scope.outer if up else None
    return False


# What a vetted query reads and how far it grows, with every name followed to the columns of the data.
#
# What WITH defines counts as often as it is used, because Spark puts it in place each time. How a single
# expression grows is in `grown`.

# How many rows may be made of one, how long a query may be when all is put in place, and its tables then:
# every table is one more pass over the data.
MAX_ROWS, MAX_PARTS, MAX_TABLES = 100_000, 20_000, 8
_IN_STEPS = "Write several rules, each of which asks for one thing."


def read(tree: exp.Expr) -> Relation:
    """What is known of a query. Raises Forbidden, with what to write, for one that grows too far.

    All tables that it names are those that the guard has put there: data, or defined by WITH.
    """
    return _query(tree, {}, None)


def read_condition(tree: exp.Expr) -> Estimate:
    """What is known of a condition on one row of the data. Raises Forbidden as `read`."""
    return _value(tree, SelectScope({}, None, {"": DATA}))


def _query(node: exp.Expr, known: With, outer: SelectScope | None, equal: bool = False) -> Relation:
    defined = node.args.get("with_")
    for one in defined.expressions if defined else ():
        # Names of WITH are our own, and each is seen by those behind it.
        known = {**known, one.alias.lower(): named(_query(one.this, known, None), one.args["alias"])}
    if isinstance(node, exp.Subquery):
        return _query(node.this, known, outer, equal)
    if isinstance(node, exp.SetOperation):
        one, other = (_query(side, known, outer, equal) for side in (node.this, node.expression))
        return _counted(_both(one, other))
    assert isinstance(node, exp.Select)
    return _counted(_select(node, known, outer, equal))


def _counted(rows: Relation) -> Relation:
    if rows.tables > MAX_TABLES:
        said = f"it reads {rows.tables} tables, each as often as it is used; {MAX_TABLES} are allowed"
        raise Forbidden(said, _IN_STEPS)
    if rows.parts > MAX_PARTS:
        raise Forbidden(f"it has more than {MAX_PARTS:,} parts when all subqueries are in place", _IN_STEPS)
    if rows.number > MAX_ROWS:
        raise Forbidden(
            f"it may make {rows.number:,} rows of one; {MAX_ROWS:,} are allowed",
            "Write exists, filter or size instead of explode in explode.",
        )
    return rows


def _both(one: Relation, other: Relation) -> Relation:
    """The rows of both; columns are matched by their place."""
    pairs = zip(one.columns.items(), other.columns.values(), strict=False)
    return Relation(
        {**one.columns, **{name: combined(value, right) for (name, value), right in pairs}},
        one.others or other.others,
        one.number + other.number,
        one.tables + other.tables,
        one.parts + other.parts,
        # All but UNION ALL compare the rows.
        one.reads.union(
            other.reads, *(value.reads for value in (*one.columns.values(), *other.columns.values()))
        ),
        one.outer or other.outer,
    )


def _select(node: exp.Select, known: With, outer: SelectScope | None, equal: bool) -> Relation:
    scope = SelectScope(known, outer)
    asked: list[Estimate] = []
    from_ = node.args.get("from_")
    if from_ is not None:
        _opened(from_.this, scope)
    for join in node.args.get("joins") or ():
        asked.append(_joined(join, _opened(join.this, scope), scope))
    where = node.args.get("where")
    if where is not None:
        asked.append(_value(where.this, scope))
    columns, others = _projected(node, scope)
    values = [*columns.values(), *asked]
    # In these, the names that the SELECT gives are seen too.
    scope.tables = {**scope.tables, "": Relation(columns)} if from_ is not None else scope.tables
    groups = [_value(one, scope) for one in node.args["group"].expressions] if node.args.get("group") else []
    more = [_value(one, scope) for key in ("having", "order") if (one := node.args.get(key)) is not None]
    values += [*groups, *more]
    correlated = outer is not None and any(one.outer for one in values)
    if (
        correlated
        and not equal
        and not any(_matches(one, scope) for one in _conditions(where and where.this))
    ):
        raise Forbidden(
            "a subquery that looks at the row around it has no equality between columns of both",
            "Write WHERE b.id = a.id in it, with columns as they stand in the tables.",
        )
    folded = all(one.plain for one in groups) and (bool(groups) or _aggregates(node))
    tables = [one for name, one in scope.tables.items() if name]
    deciding = scope.deciding.union(*(one.reads for one in (*asked, *groups, *more)))
    if any(node.args.get(key) for key in ("distinct", "group", "order")):
        # They may name what is selected by its place.
        deciding = deciding.union(*(one.reads for one in columns.values()))
    return Relation(
        columns,
        others,
        1 if folded else scope.number * math.prod(one.number for one in tables),
        sum(one.tables for one in tables) + scope.read,
        1 + sum(one.parts for one in tables) + sum(one.parts for one in values),
        deciding.union(*(one.reads for one in tables)),
        correlated,
    )


def _opened(node: exp.Expr, scope: SelectScope) -> str:
    """Adds a table to the scope; its name there."""
    known = scope.known.get(node.name.lower(), DATA) if isinstance(node, exp.Table) else None
    name = node.alias_or_name.lower() or f"_{len(scope.tables)}"
    rows = known if known is not None else _query(node, scope.known, None)
    scope.tables[name] = named(rows, node.args.get("alias"))
    return name


def _projected(node: exp.Select, scope: SelectScope) -> tuple[dict[str, Estimate], Estimate | None]:
    columns: dict[str, Estimate] = {}
    others: Estimate | None = None
    for at, one in enumerate(node.expressions):
        if one.is_star and isinstance(one, exp.Star | exp.Column):
            table = one.table.lower() if isinstance(one, exp.Column) else ""
            for name, rows in scope.tables.items():
                if table in ("", name):
                    columns |= rows.columns
                    others = others or rows.others
        else:
            columns[one.alias_or_name.lower() or f"_{at}"] = _value(one, scope)
    return columns, others


def _aggregates(node: exp.Select) -> bool:
    """Whether it makes one row of all."""
    calls = (one for each in node.expressions for one in each.find_all(exp.Anonymous))
    return any(
        one.name.lower() in AGGREGATES and one.find_ancestor(exp.Window, exp.Query) is node for one in calls
    )


def _conditions(whole: exp.Expr | None) -> Iterator[exp.Expr]:
    """What is joined with AND."""
    todo = [whole] if whole is not None else []
    while todo:
        one = todo.pop()
        if isinstance(one, exp.And):
            todo += [one.this, one.expression]
        elif isinstance(one, exp.Paren):
            todo.append(one.this)
        else:
            yield one


def _sides(one: exp.Expr, scope: SelectScope) -> tuple[Estimate, Estimate] | None:
    """The two sides of an equality of columns as they stand."""
    if not isinstance(one, exp.EQ | exp.NullSafeEQ) or one.find(exp.Query):
        return None
    left, right = _value(one.this, scope), _value(one.expression, scope)
    return (left, right) if left.plain and right.plain else None


def _matches(one: exp.Expr, scope: SelectScope) -> bool:
    """Whether a condition equals a column of the SELECT with one of the SELECT around it."""
    sides = _sides(one, scope)
    return sides is not None and sides[0].outer != sides[1].outer


def _joined(join: exp.Join, name: str, scope: SelectScope) -> Estimate:
    """The condition of a join, which must hold columns of both sides equal."""
    using = [one.name.lower() for one in join.args.get("using") or ()]
    before = [table for table in scope.tables if table != name]
    pairs = [
        (scope.tables[name].get(each), scope.tables[table].get(each)) for each in using for table in before
    ]
    if any(mine and other and mine.plain and other.plain for mine, other in pairs):
        return combined(*(value for pair in pairs for value in pair if value is not None))
    on: exp.Expr | None = join.args.get("on")
    for one in _conditions(on):
        sides = _sides(one, scope)
        if on is None or sides is None:
            continue
        mine, other = sorted(sides, key=lambda side: name not in side.sources)
        if mine.sources == {name} and other.sources and name not in other.sources and not other.outer:
            return _value(on, scope)
    raise Forbidden(
        f"the join with {join.this.alias_or_name!r} holds no columns of both sides equal, so that every row"
        " may meet every other",
        "Write JOIN … ON a.id = b.id, with the tables' names before columns as they stand in them.",
    )


def _value(node: exp.Expr, scope: SelectScope) -> Estimate:
    """What an expression is. Raises Forbidden where its value may be too large."""
    made = _seen(node, scope)
    _refuse_work(made.size, node)
    return made


def _seen(node: exp.Expr, scope: SelectScope) -> Estimate:
    if isinstance(node, exp.Column):
        return column(node, scope)
    if isinstance(node, exp.Star):
        return _ANY_COLUMN
    if isinstance(node, exp.Identifier):
        return scope.arguments.get(node.name.lower(), Estimate())
    if isinstance(node, exp.Query | exp.Exists):
        return _inner(node, scope)
    if isinstance(node, exp.In) and node.args.get("query"):
        left = _value(node.this, scope)
        return grown(node, [left, _inner(node.args["query"], scope, equal=left.plain)])
    if isinstance(node, exp.Anonymous):
        if any(isinstance(one, exp.Lambda) for one in node.expressions):
            return _with_lambdas(node, scope)
        # The rows themselves are counted, and none of their columns is looked at.
        counted = node.name.lower() == "count" and len(node.expressions) == 1 and node.expressions[0].is_star
        arguments = [] if counted else [_value(one, scope) for one in node.expressions]
        made = grown(node, arguments)
        if node.name.lower() in GENERATORS and arguments and arguments[0].items > 1:
            # It makes so many rows of one.
            scope.number *= arguments[0].items
            scope.deciding |= made.reads
        return made
    return grown(node, [_value(one, scope) for one in node.iter_expressions()])


def _inner(node: exp.Expr, scope: SelectScope, *, equal: bool = False) -> Estimate:
    """A query inside of an expression."""
    query = node.this if isinstance(node, exp.Exists) else node
    rows = _query(query, scope.known, scope, equal)
    scope.read += rows.tables
    values = list(rows.columns.values())
    made = combined(*values, Estimate(reads=rows.reads | (rows.others.reads if rows.others else frozenset())))
    return replace(made, parts=rows.parts, sources=frozenset(), outer=False, plain=False)


def _with_lambdas(node: exp.Anonymous, scope: SelectScope) -> Estimate:
    """What a call with lambdas is."""
    name = node.name.lower()
    plain = [_value(one, scope) for one in node.expressions if not isinstance(one, exp.Lambda)]
    whole = plain[0] if plain else Estimate()
    size, items = _one([], [whole])
    item = replace(whole, size=size, items=items, parts=1, plain=False)
    arguments = [[item, Estimate()]] * len(node.expressions)
    if name in ("aggregate", "reduce") and len(plain) > 1:
        sofar = replace(plain[1], parts=1, plain=False)
        arguments = [[sofar, item], [sofar]]
    lambdas = [one for one in node.expressions if isinstance(one, exp.Lambda)]
    bodies = [_lambda_body(one, given, scope) for one, given in zip(lambdas, arguments, strict=False)]
    work = min(_MANY, whole.items * max((one.size for one in bodies), default=NUMBER))
    _refuse_work(work, node)
    made = combined(*plain, *bodies)
    if name == "transform":
        return replace(made, size=max(work, NUMBER), items=whole.items)
    if name in ("aggregate", "reduce"):
        return made
    return replace(made, size=whole.size if name == "filter" else NUMBER, items=whole.items)


def _lambda_body(node: exp.Lambda, arguments: list[Estimate], scope: SelectScope) -> Estimate:
    names = [one.name.lower() for one in node.expressions]
    before = scope.arguments
    scope.arguments = {**before, **dict(zip(names, arguments, strict=False))}
    made = _value(node.this, scope)
    scope.arguments = before
    return made


# What a guarded query asks of its rows: whether it is one aggregate of them, and which values it shows.


@dataclass(frozen=True, slots=True)
class Folded:
    """A query as one question to each row: `aggregate` of `value` where all `conditions` are true.

    `keys` are the columns of `count(DISTINCT …)`, step by step; then there is no value. `columns` are the
    names of all columns that are read. `interpreted` says that Spark does not compile a function in it.
    """

    aggregate: str
    value: str
    conditions: tuple[str, ...]
    keys: tuple[tuple[str, ...], ...]
    columns: tuple[str, ...]
    interpreted: bool


# Spark 3.5 does not compile these, nor an aggregation that holds one (Spark 4.0 compiles all of the list).
_INTERPRETED = frozenset(["get_json_object", "json_array_length"])
_AGGREGATES = frozenset(["count", "min", "max", "sum", "avg"])
_INSIDE = NODES.keys() - NOT_OF_A_ROW
# A condition must be a flag by itself: together with the rule's scope, Spark would cast a text to one.
_FLAGS = (
    exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.Is,
    exp.In, exp.Between, exp.Like, exp.ILike, exp.RegexpLike, exp.Boolean,
)  # fmt: skip
_FLAG_FUNCTIONS = words(
    "array_contains contains endswith isnan isnotnull isnull regexp_like rlike startswith"
)


def folded(tree: exp.Expr) -> Folded | None:
    """The guarded query as a question to each row, or None when it is not certainly one.

    `tree` reads only tables that the guard has named; it is not changed.
    """
    if not isinstance(tree, exp.Select) or _parts(tree) != {"expressions", "from_"} | (
        _parts(tree) & {"where"}
    ):
        return None
    table = tree.args["from_"].this
    if len(tree.expressions) != 1 or not isinstance(table, exp.Table) or table.args["alias"].columns:
        return None
    alias = table.alias.lower()
    asked = _bare(tree.expressions[0])
    conditions = [tree.args["where"].this] if tree.args.get("where") else []
    if isinstance(asked, exp.Filter):
        conditions.append(asked.expression.this)
        asked = asked.this
    if not isinstance(asked, exp.Anonymous) or len(asked.expressions) != 1:
        return None
    name, argument = asked.name.lower(), asked.expressions[0]
    if name == "count_if":
        conditions.append(argument)
        name, argument = "count", exp.Star()
    if name not in _AGGREGATES or not all(_is_flag(one) for one in conditions):
        return None
    keys: list[exp.Expr] = []
    if isinstance(argument, exp.Distinct):
        keys = argument.expressions
        if name != "count" or not all(isinstance(key, exp.Column) for key in keys):
            return None
    every_row = isinstance(argument, exp.Star | exp.Literal) and name == "count"
    values = keys or ([] if every_row else [argument])
    if not all(_foldable(one, alias) for one in (*values, *conditions)):
        return None
    read = [_own(one, alias) for one in (*values, *conditions)]
    return Folded(
        name,
        "" if keys else "1" if every_row else _written(read[0]),
        tuple(_written(one) for one in read[len(values) :]),
        tuple(tuple(part.name for part in _column(key).parts) for key in read[: len(keys)]),
        tuple(sorted({column.parts[0].name for one in read for column in one.find_all(exp.Column)})),
        any(called.name.lower() in _INTERPRETED for one in read for called in one.find_all(exp.Anonymous)),
    )


_COUNTS = frozenset(["approx_count_distinct", "count", "count_if"])
_NULL_TESTS = frozenset(["isnotnull", "isnull"])
_RELATIONS = tuple(kind for kind in _FLAGS if kind not in (exp.And, exp.Or, exp.Not, exp.Is, exp.Boolean))


def shown(tree: exp.Expr, rows: Relation) -> frozenset[str]:
    """The columns, in lower case, of which the answer tells more than how many rows there are.

    A number of rows tells of a column once: whether it is NULL, or one condition on it. Several counts in one
    answer, a condition that compares two columns, a CASE, a sorted or grouped query or one in a query can
    spell a value out. `rows` is what the whole query reads.
    """
    everything = rows.reads.union(*(one.reads for one in rows.columns.values()))
    if not isinstance(tree, exp.Select) or len(list(tree.find_all(exp.Query))) != 1:
        return everything
    table = tree.args.get("from_")
    if table is None or not _parts(tree) <= {"expressions", "from_", "where"}:
        return everything
    alias = table.this.alias_or_name.lower()
    counts, told = _told(tree.expressions)
    asked = [tree.args["where"]] if tree.args.get("where") else []
    found = _bases(told, alias) | (_bases(_compared(*asked), alias) if told else frozenset())
    often = Counter(name for one in counts for name in _bases(_compared(*one, *asked), alias))
    related = (_bases(_compared(one), alias) for one in tree.find_all(*_RELATIONS))
    # Rows that are counted up to a value of theirs tell the value.
    against = frozenset().union(*(names for names in related if len(names) > 1))
    return found | against | {name for name, times in often.items() if times > 1}


def _told(asked: list[exp.Expr]) -> tuple[list[list[exp.Expr]], list[exp.Expr]]:
    """The counts, each with its condition, and the columns that stand outside of them."""
    counts: list[list[exp.Expr]] = []
    told: list[exp.Expr] = []
    todo = list(asked)
    while todo:
        one = todo.pop()
        inner = one.this if isinstance(one, exp.Filter) else one
        if isinstance(inner, exp.Anonymous) and inner.name.lower() in _COUNTS:
            counts.append([one])
        elif isinstance(one, exp.Column | exp.Star):
            told.append(one)
        else:
            todo += one.iter_expressions()
    return counts, told


def _compared(*asked: exp.Expr) -> list[exp.Expr]:
    """The columns that are not only looked at for NULL."""
    return [column for one in asked for column in one.find_all(exp.Column) if not _only_null(column.parent)]


def _only_null(around: exp.Expr | None) -> bool:
    if isinstance(around, exp.Is):
        return isinstance(around.expression, exp.Null)
    if isinstance(around, exp.Anonymous):
        return around.name.lower() in _NULL_TESTS or around.name.lower() == "count"
    return False


def _bases(columns: Iterable[exp.Expr], alias: str) -> frozenset[str]:
    """The columns of the data that these are, or lie in; a whole row is all of them."""
    names = (
        [part.name.lower() for part in one.parts] if isinstance(one, exp.Column) else [ALL] for one in columns
    )
    found = (name[1:] if name[0] == alias and len(name) > 1 else name for name in names)
    return frozenset(ALL if name == [alias] or name[0] == "*" else name[0] for name in found)


def _parts(node: exp.Expr) -> set[str]:
    return {name for name, value in node.args.items() if value not in (None, False, [])}


def _bare(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Alias | exp.Paren):
        node = node.this
    return node


def _is_flag(node: exp.Expr) -> bool:
    inner = _bare(node)
    if isinstance(inner, exp.Anonymous):
        return inner.name.lower() in _FLAG_FUNCTIONS
    return isinstance(inner, _FLAGS)


def _foldable(node: exp.Expr, alias: str) -> bool:
    return all(type(one).__name__ in _INSIDE for one in node.walk()) and not any(
        # A table's name alone is the whole row.
        [part.name.lower() for part in column.parts] == [alias]
        for column in node.find_all(exp.Column)
    )


def _column(node: exp.Expr) -> exp.Column:
    assert isinstance(node, exp.Column)
    return node


def _own(node: exp.Expr, alias: str) -> exp.Expr:
    """A copy without the table's name before its columns."""

    def bare(one: exp.Expr) -> exp.Expr:
        if isinstance(one, exp.Column) and len(one.parts) > 1 and one.parts[0].name.lower() == alias:
            this, *outer = reversed([part.copy() for part in one.parts[1:]])
            return exp.Column(this=this, **dict(zip(("table", "db", "catalog"), outer, strict=False)))
        return one

    return node.copy().transform(bare)


def _written(node: exp.Expr) -> str:
    return node.sql(dialect=SqlDialect, comments=False)
