"""What a vetted query reads and how far it grows, with every name followed to the columns of the data.

What WITH defines counts as often as it is used, because Spark puts it in place each time. How a single
expression grows is in `growth`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from sqlglot import exp

from dq.contracts.sql.allowlist import AGGREGATES
from dq.contracts.sql.growth import (
    ALL,
    ITEMS,
    VALUE,
    Estimate,
    bounded,
    combined,
    element,
    grown,
    with_lambdas,
)
from dq.contracts.sql.names import DATA, Relation, SelectScope, With, column, named
from dq.contracts.sql.vetting import Forbidden

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
    columns = {name: combined(value, right) for (name, value), right in pairs}
    plain = {name: one.columns[name].plain and value.plain for name, value in columns.items()}
    merged = {name: replace(value, plain=plain[name]) for name, value in columns.items()}
    return Relation(
        {**one.columns, **merged},
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
    return bounded(_seen(node, scope), node)


def _seen(node: exp.Expr, scope: SelectScope) -> Estimate:
    if isinstance(node, exp.Column):
        return column(node, scope)
    if isinstance(node, exp.Star):
        return Estimate(VALUE, ITEMS, reads=frozenset([ALL]))
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
        made, rows = grown(node, arguments), element(node, arguments)
        if rows > 1:
            scope.number *= rows
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
    def body(each: exp.Lambda, given: list[Estimate]) -> Estimate:
        names = [one.name.lower() for one in each.expressions]
        before = scope.arguments
        scope.arguments = {**before, **dict(zip(names, given, strict=False))}
        made = _value(each.this, scope)
        scope.arguments = before
        return made

    return with_lambdas(node, lambda one: _value(one, scope), body)
