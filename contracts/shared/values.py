"""Attributes of a value as JSON has them."""

from __future__ import annotations

from datetime import date


def picked(one: object, names: str) -> dict[str, object]:
    """These attributes, by their names with spaces between, in this order; instants and days as ISO 8601."""
    return {name: _plain(getattr(one, name)) for name in names.split()}


def _plain(value: object) -> object:
    if isinstance(value, date):
        return value.isoformat()
    return list(value) if isinstance(value, tuple) else value
