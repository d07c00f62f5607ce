"""The state: engine, transactions, schema version."""

from __future__ import annotations

from dq.store.engine import Store, open_store

__all__ = ["Store", "open_store"]
