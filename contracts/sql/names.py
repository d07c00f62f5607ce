"""The names of a query: which table, or which SELECT around, a column is of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from dq.contracts.sql.growth import ALL, ITEMS, VALUE, Estimate, combined


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
    spare = Estimate(VALUE, ITEMS, reads=frozenset([ALL]))
    columns = {name: values[at] if at < len(values) else spare for at, name in enumerate(names)}
    return replace(rows, columns=columns, others=None)


def column(node: exp.Column, scope: SelectScope) -> Estimate:
    """What a column is, by its name and where it stands."""
    first, *rest = (part.name.lower() for part in node.parts)
    if isinstance(node.this, exp.Star):
        return Estimate(VALUE, ITEMS, reads=frozenset([ALL]))
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
    return Estimate(VALUE, ITEMS, reads=frozenset([ALL]))


def _found(scope: SelectScope, first: str, rest: list[str]) -> Estimate | None:
    if first in scope.arguments:
        return scope.arguments[first]
    if rest and first in scope.tables:
        found = scope.tables[first].get(rest[0])
        return replace(found, sources=frozenset([first])) if found is not None else None
    named = [(name, rows) for name, rows in scope.tables.items() if first in rows.columns]
    if not named and first in scope.tables:
        # The whole row.
        return Estimate(VALUE, ITEMS, reads=frozenset([ALL]), sources=frozenset([first]))
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
