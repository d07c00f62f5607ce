"""The SQL of quality rules as the guard sees it: the gate and the check ask here, and so judge alike."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from dq.contracts.model import Quality, SchemaObject
from dq.contracts.sql import text as sql
from dq.contracts.sql.guard import Guarded, Refused, guarded, guarded_predicate

# The name that objects share, so that one query over a thousand of them is judged once.
_ANY = "this_object"
_HOLE = re.compile(r"\{\s*object\s*\}")
# In front of a table these may hold its name in a text, a comment or a quoted name.
_QUOTES = re.compile(r"""['"`]|--|/\*""")


def query(one: SchemaObject, quality: Quality, way: Sequence[str] | None) -> Guarded | Refused:
    """The query of a rule of the type `sql`; `way` are the names down to its property, if it is on one.

    A query that names its object only after FROM and JOIN runs with another name for it.
    """
    column = None if way is None else ".".join(sql.name(step) for step in way)
    text = quality.query or ""
    shared = _of_any(text, one.name, one.column)
    if shared is not None:
        found = _query(shared, _ANY, _ANY, column)
        if isinstance(found, Guarded):
            return found
    # A refusal names the object.
    return _query(text, one.name, one.column, column)


def _of_any(text: str, name: str, physical: str) -> str | None:
    """The query with the shared name of objects, where nothing else can be meant by the object's own name."""
    if _ANY in text.lower():
        return None
    made, last = text, 0
    for written in {name.lower(), physical.lower()}:
        table = re.compile(rf"(\b(?:from|join)\s+){re.escape(written)}(?![\w.`'\"$-])", re.IGNORECASE)
        places = [found.end() for found in table.finditer(text)]
        if len(places) != text.lower().count(written):
            return None
        last = max([last, *places])
        made = table.sub(rf"\g<1>{_ANY}", made)
    last = max([last, *(found.end() for found in _HOLE.finditer(text))])
    return made if last and not _QUOTES.search(text[:last]) else None


@lru_cache(256)
def _query(text: str, name: str, physical: str, column: str | None) -> Guarded | Refused:
    return guarded(text, own=name, tables={name: sql.ROWS_VIEW, physical: sql.ROWS_VIEW}, property=column)


@lru_cache(256)
def where(text: str) -> Guarded | Refused:
    """The predicate of a rule's scope."""
    return guarded_predicate(text)
