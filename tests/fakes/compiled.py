"""Statements of SQLAlchemy are compiled once in the run of the tests, and not once for each store.

An engine keeps what it has compiled to itself, since another one may speak to another release of a database.
Here all speak to the same two, and thousands of stores live for a moment: half of each command went there.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import event
from sqlalchemy.engine import Connection, Engine, default
from sqlalchemy.util import LRUCache

_SHARED: LRUCache[Any, Any] = LRUCache(2000)


def share() -> None:
    """From here on, in this process."""
    # What is compiled is kept by its dialect; two of one class are one.
    default.DefaultDialect.__hash__ = lambda one: hash(type(one))  # type: ignore[method-assign, assignment]
    default.DefaultDialect.__eq__ = lambda one, other: type(one) is type(other)  # type: ignore[method-assign]
    event.listen(Engine, "engine_connect", _share)


def _share(connection: Connection) -> None:
    connection.engine._compiled_cache = _SHARED
