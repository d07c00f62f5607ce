"""TABLE: where in a SELECT an aggregate, a window and a generator may stand, as Spark has it.

Spark refuses them elsewhere only when it plans the query, which is too late for a gate. Whether every column
is grouped is judged where no name can mean anything else.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from dq.contracts.sql.allowlist import AGGREGATES, GENERATORS, WINDOWS
from dq.contracts.sql.vetting import Forbidden

_PARTS = {
    "expressions": "SELECT",
    "where": "WHERE",
    "joins": "the condition of a join",
    "group": "GROUP BY",
    "having": "HAVING",
    "order": "ORDER BY",
    "limit": "LIMIT",
}
_AROUND = "Put it into a subquery under a name, and ask for that name around it."
# By kind: the parts of a SELECT in which it may stand, and what to write where it may not.
_ALLOWED = {
    "an aggregate": (frozenset({"expressions", "having", "order"}), "Write HAVING, or use a subquery."),
    "a window": (frozenset({"expressions"}), _AROUND),
    "a generator": (frozenset({"expressions"}), _AROUND),
}


def vouch_for_places(tree: exp.Expr) -> None:
    """Nothing stands where Spark would refuse it. Raises Forbidden."""
    for select in tree.find_all(exp.Select):
        parts = [(part, node) for part in _PARTS for node in _nodes(select, part)]
        aggregates = False
        for part, top in parts:
            for node in _within(top):
                kind = _kind(node)
                # A subquery of HAVING may compare with an aggregate of the query around it.
                if kind is not None and not (kind == "an aggregate" and select.find_ancestor(exp.Having)):
                    _vouch(kind, node, part, top)
                    aggregates |= kind == "an aggregate"
        groups = list(_nodes(select, "group"))
        if (aggregates or groups) and select.parent_select is None:
            _vouch_for_groups(select, groups)


def _nodes(select: exp.Select, part: str) -> Iterator[exp.Expr]:
    held = select.args.get(part)
    if part == "joins":
        yield from (on for join in held or () if (on := join.args.get("on")) is not None)
    elif isinstance(held, list):
        yield from held
    elif held is not None:
        yield from held.expressions if isinstance(held, exp.Group | exp.Order) else [held]


def _within(top: exp.Expr) -> Iterator[exp.Expr]:
    """The node and what is in it, without the queries in it."""
    stack = [top]
    while stack:
        node = stack.pop()
        yield node
        stack += [child for child in node.iter_expressions() if not isinstance(child, exp.Query)]


def _kind(node: exp.Expr) -> str | None:
    if isinstance(node, exp.Window):
        if isinstance(node.this, exp.Filter):
            raise Forbidden(
                "FILTER before OVER is not allowed", "Write sum(CASE WHEN … THEN 1 END) OVER (…)."
            )
        return "a window"
    name = node.name.lower() if isinstance(node, exp.Anonymous) else ""
    if name in GENERATORS:
        return "a generator"
    if name in WINDOWS and _windowed(node) is None:
        said = f"{name!r} without OVER is not allowed"
        raise Forbidden(said, f"Write {name}(…) OVER (PARTITION BY … ORDER BY …).")
    return "an aggregate" if name in AGGREGATES and _windowed(node) is None else None


def _windowed(call: exp.Expr) -> exp.Window | None:
    """The window that a call is asked over, if it is."""
    above = call.parent
    return above if isinstance(above, exp.Window) and above.this is call else None


def _vouch(kind: str, node: exp.Expr, part: str, top: exp.Expr) -> None:
    places, instead = _ALLOWED[kind]
    if part not in places:
        raise Forbidden(f"{kind} in {_PARTS[part]} is not allowed", instead)
    if kind == "a generator" and node is not top and not (isinstance(top, exp.Alias) and top.this is node):
        raise Forbidden("a generator inside of an expression is not allowed", _AROUND)
    above = node.parent
    while above is not None and not isinstance(above, exp.Query):
        if _kind(above) == "an aggregate":
            raise Forbidden(f"{kind} inside of an aggregate is not allowed", _AROUND)
        above = above.parent


def _vouch_for_groups(select: exp.Select, groups: list[exp.Expr]) -> None:
    known = {part.name.lower() for one in groups if isinstance(one, exp.Column) for part in one.parts}
    given = {one.alias.lower() for one in select.expressions if one.alias}
    if known & given or not all(isinstance(one, exp.Column) for one in groups):
        # Places, names of the SELECT and expressions are left to Spark.
        return
    known |= given
    known |= {name.name.lower() for each in select.find_all(exp.Lambda) for name in each.expressions}
    for part in ("expressions", "having", "order"):
        for top in _nodes(select, part):
            for column in _outside_aggregates(top):
                if known.isdisjoint(each.name.lower() for each in column.parts):
                    raise Forbidden(
                        f"{column.name!r} is neither grouped nor in an aggregate",
                        f"Write GROUP BY … {column.name}, or an aggregate such as max({column.name}).",
                    )


def _outside_aggregates(top: exp.Expr) -> Iterator[exp.Column]:
    stack = [top]
    while stack:
        node = stack.pop()
        if isinstance(node, exp.Column):
            yield node
        elif _kind(node) != "an aggregate" and not isinstance(node, exp.Filter):
            stack += [child for child in node.iter_expressions() if not isinstance(child, exp.Query)]
