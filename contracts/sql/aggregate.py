"""What a guarded query asks of its rows: whether it is one aggregate of them, and which values it shows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from dq.contracts.sql.allowlist import NODES, NOT_OF_A_ROW
from dq.contracts.sql.dialect import Dialect


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
_FLAG_FUNCTIONS = frozenset(
    [
        "array_contains",
        "contains",
        "endswith",
        "isnan",
        "isnotnull",
        "isnull",
        "regexp_like",
        "rlike",
        "startswith",
    ]
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


_COUNTS = frozenset(["approx_count_distinct", "count", "count_if", "regr_count"])
_COMPARED = tuple(kind for kind in _FLAGS if kind not in (exp.And, exp.Or, exp.Not, exp.Boolean))


def shown(tree: exp.Expr) -> frozenset[str]:
    """The columns whose values the answer may show, or be made of, in lower case.

    A number of rows shows none, and neither does the condition of those rows, with two exceptions, by which
    a value could be told from numbers: a condition that compares two columns, and conditions of several
    numbers in one answer. Of a query inside of a query, all columns count.
    """
    if len(list(tree.find_all(exp.Select))) != 1 or not isinstance(tree, exp.Select):
        found = list(tree.find_all(exp.Column))
    else:
        found = [column for one in tree.expressions for column in _values(one)]
        conditional = [columns for one in tree.expressions for columns in _conditions(one) if columns]
        if len(conditional) > 1:
            found += [column for columns in conditional for column in columns]
        for compared in tree.find_all(*_COMPARED):
            columns = list(compared.find_all(exp.Column))
            if len({column.name.lower() for column in columns}) > 1:
                found += columns
    return frozenset(part.name.lower() for column in found for part in column.parts)


def _values(node: exp.Expr) -> Iterator[exp.Column]:
    """The columns that a value is made of; how many rows there are is made of none."""
    if isinstance(node, exp.Column):
        yield node
    elif isinstance(node, exp.Filter):
        yield from _values(node.this)
    elif not _is_count(node):
        for part in node.iter_expressions():
            yield from _values(part)


def _conditions(node: exp.Expr) -> Iterator[list[exp.Column]]:
    """For each number that counts some of the rows, the columns that say which."""
    if isinstance(node, exp.Filter):
        yield list(node.expression.find_all(exp.Column))
        yield from _conditions(node.this)
    elif _is_count(node):
        # `count(column)` tells of NULLs alone.
        if not all(isinstance(_bare(one), exp.Column | exp.Distinct) for one in node.expressions):
            yield list(node.find_all(exp.Column))
    else:
        for part in node.iter_expressions():
            yield from _conditions(part)


def _is_count(node: exp.Expr) -> bool:
    """Whether it counts rows: a count, or a sum of ones."""
    if not isinstance(node, exp.Anonymous):
        return False
    if node.name.lower() != "sum" or len(node.expressions) != 1:
        return node.name.lower() in _COUNTS
    summed = _bare(node.expressions[0])
    if isinstance(summed, exp.Case) and summed.this is None and len(summed.args["ifs"]) == 1:
        branches = (summed.args["ifs"][0].args["true"], summed.args.get("default"))
    elif isinstance(summed, exp.If):
        branches = (summed.args["true"], summed.args.get("false"))
    else:
        return False
    return all(
        one is None or isinstance(one, exp.Null) or (isinstance(one, exp.Literal) and one.name in ("0", "1"))
        for one in branches
    )


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
    return node.sql(dialect=Dialect, comments=False)
