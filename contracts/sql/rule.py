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
# One pattern for all names: each of a pattern's own would be compiled anew.
_TABLE = re.compile(r"\b(?:from|join)\s+(?P<name>[A-Za-z_]\w*)(?![\w.`'\"$-])", re.IGNORECASE)
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
    lower, own = text.lower(), {name.lower(), physical.lower()}
    places = [found.span("name") for found in _TABLE.finditer(text) if found["name"].lower() in own]
    alone = all(lower.count(each) == sum(lower[a:b] == each for a, b in places) for each in own)
    last = max([*(end for _, end in places), *(found.end() for found in _HOLE.finditer(text))], default=0)
    if not last or not alone or _ANY in lower or _QUOTES.search(text[:last]):
        return None
    for begin, end in reversed(places):
        text = f"{text[:begin]}{_ANY}{text[end:]}"
    return text


@lru_cache(256)
def _query(text: str, name: str, physical: str, column: str | None) -> Guarded | Refused:
    return guarded(text, own=name, tables={name: sql.ROWS_VIEW, physical: sql.ROWS_VIEW}, property=column)


@lru_cache(256)
def where(text: str) -> Guarded | Refused:
    """The predicate of a rule's scope."""
    return guarded_predicate(text)
