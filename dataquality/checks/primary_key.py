"""The columns of the primary key have a value in every row, and no combination of them stands twice.

Why: Consumers merge by the key; a doubled or missing one loses rows or fails their job.
Bad: Two rows with the same key, or a row without one.
Good: Every key once.
Nulls: NULL in a column of the key breaks it; such a row repeats nothing.
Mend: Remove the repeated rows at their source, or correct the key in the contract.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dq.contracts.model import Contract, SchemaObject
from dq.contracts.shared.outcome import Severity
from dq.dataquality.clauses.clause import Clause, Extent, RowScope, RowTest, UniqueKey, asking, of_property
from dq.dataquality.clauses.kind import CheckKind, Example
from dq.dataquality.model.column import Column


def clauses(_contract: Contract, one: SchemaObject) -> Iterator[Clause]:
    parts = one.primary_key()
    for part in parts:
        column = Column((part.column,))
        made = of_property("primary_key", one, part, column, "primaryKey", "no NULL in the key")
        made = replace(made, covers=(part.path("primaryKeyPosition"),))
        yield asking(made, RowTest(column.missing(), "are NULL"))
    if parts:
        keys = tuple(Column((part.column,)) for part in parts)
        path, at, name = one.path("primaryKey"), parts[0].at("primaryKey"), ", ".join(map(str, keys))
        made = Clause("primary_key", path, one.name, name, at, Severity.ERROR, "no key twice")
        yield replace(made, ask=UniqueKey(keys, "repeat a key"), extent=Extent(RowScope.TABLE))


_KEY = """
properties:
  - {name: day, logicalType: date, primaryKey: true, primaryKeyPosition: 2}
  - {name: id, logicalType: integer, primaryKey: true, primaryKeyPosition: 1}
"""
_DDL = "id bigint, day string"
EXAMPLES = (
    Example("once each", _KEY, _DDL, ((1, "a"), (1, "b"), (2, "a")), "pass pass pass"),
    Example("repeated", _KEY, _DDL, ((1, "a"), (1, "a"), (1, "a")), "pass pass fail"),
    Example(
        "NULL twice",
        _KEY,
        _DDL,
        ((1, None), (1, None)),
        "fail pass pass",
        ("2 of 2 rows", "0 of 2 rows", "0 rows"),
    ),
    Example("no rows", _KEY, _DDL, (), "pass pass pass"),
    Example("a column less", _KEY, "id bigint", ((1,),), "error pass error"),
    Example("no key", "properties: [{name: id, logicalType: integer}]", "id bigint", ((1,),), ""),
)
CHECK = CheckKind("primary_key", __doc__, clauses, EXAMPLES)
