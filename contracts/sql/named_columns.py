"""Which names of columns and fields a query or a condition holds, by the nodes of its tree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from sqlglot import exp


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
