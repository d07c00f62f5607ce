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
from dq.contracts.outcome import Severity
from dq.dataquality.clauses.clause import Clause, Extent, PropertyKeys, RowScope, RowTest, UniqueKey, asking
from dq.dataquality.clauses.kind import CheckKind
from dq.dataquality.model.column import Column


def clauses(_contract: Contract, one: SchemaObject) -> Iterator[Clause]:
    parts = one.primary_key()
    for part in parts:
        column = Column((part.column,))
        made = PropertyKeys("primary_key", one, part, column).clause("primaryKey", "no NULL in the key")
        made = replace(made, covers=(part.path("primaryKeyPosition"),))
        yield asking(made, RowTest(column.missing(), "are NULL"))
    if parts:
        keys = tuple(Column((part.column,)) for part in parts)
        path, at, name = one.path("primaryKey"), parts[0].at("primaryKey"), ", ".join(map(str, keys))
        made = Clause("primary_key", path, one.name, name, at, Severity.ERROR, "no key twice")
        yield replace(made, ask=UniqueKey(keys, "repeat a key"), extent=Extent(RowScope.TABLE))


CHECK = CheckKind("primary_key", __doc__, clauses)
