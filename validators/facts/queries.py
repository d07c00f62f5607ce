"""The SQL of a contract that the guard refuses, for the rules that say so.

The parser is imported when there is SQL to judge: a contract without starts as fast as before.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from dq.contracts import extension
from dq.contracts.extension import Scope
from dq.contracts.model import Contract, Quality, SchemaObject
from dq.contracts.node import Node
from dq.validators.context import Context, QualityPlace

if TYPE_CHECKING:
    from dq.contracts.sql.guard import Guarded, Refused


def refused(contract: Contract, context: Context) -> Iterator[tuple[Quality, Refused]]:
    """Every rule of the type `sql` whose query may not run, and why."""
    for one, found in _judged(contract, context):
        from dq.contracts.sql.guard import Refused

        if isinstance(found, Refused):
            yield one.quality, found


def read_columns(
    contract: Contract, context: Context
) -> Iterator[tuple[SchemaObject, Node, str, tuple[str, ...]]]:
    """Every query that may run: its object, where it stands, and the columns that it reads."""
    for one, found in _judged(contract, context):
        from dq.contracts.sql.guard import Guarded

        if isinstance(found, Guarded):
            yield one.object, one.quality, "query", (*found.columns, *found.qualified)


def _judged(contract: Contract, context: Context) -> Iterator[tuple[QualityPlace, Guarded | Refused]]:
    asked = [one for one in context.walk.clauses if one.quality.type == "sql" and one.quality.query]
    if not asked:
        return
    from dq.contracts.sql.rule import query

    named = any(one.property is not None for one in asked)
    single = (holders for one in contract.objects for holders in one.single()) if named else ()
    ways = {id(holders[-1]): tuple(prop.column for prop in holders) for holders in single}
    for one in asked:
        way = None if one.property is None else ways.get(id(one.property))
        yield one, query(one.object, one.quality, way)


def refused_scopes(context: Context) -> Iterator[tuple[Scope, Refused]]:
    """Every scope whose predicate may not run, and why."""
    for one in context.walk.clauses:
        if not one.quality.custom_properties:
            continue
        terms, wrong = extension.scope(one.quality)
        if terms.where is None or wrong:
            continue
        from dq.contracts.sql.guard import Refused
        from dq.contracts.sql.rule import where

        found = where(terms.where)
        if isinstance(found, Refused):
            yield terms, found
