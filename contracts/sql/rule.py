"""The SQL of quality rules as the guard sees it: the gate and the check ask here, and so judge alike."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from dq.contracts.model import Quality, SchemaObject
from dq.contracts.sql import text as sql
from dq.contracts.sql.guard import Guarded, Refused, guarded, guarded_predicate


def query(one: SchemaObject, quality: Quality, way: Sequence[str] | None) -> Guarded | Refused:
    """The query of a rule of the type `sql`; `way` are the names down to its property, if it is on one."""
    column = None if way is None else ".".join(sql.name(step) for step in way)
    return _query(quality.query or "", one.name, one.column, column)


@lru_cache(256)
def _query(text: str, name: str, physical: str, column: str | None) -> Guarded | Refused:
    return guarded(text, own=name, tables={name: sql.ROWS_VIEW, physical: sql.ROWS_VIEW}, property=column)


@lru_cache(256)
def where(text: str) -> Guarded | Refused:
    """The predicate of a rule's scope."""
    return guarded_predicate(text)
