"""What a guarded query asks of its rows: whether it is one aggregate of them, and which values it shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from sqlglot import exp

from dq.contracts.sql.allow import SqlDialect
from dq.contracts.sql.allowlist import NODES, NOT_OF_A_ROW, words
from dq.contracts.sql.limits import ALL
from dq.contracts.sql.reading import Relation


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
