"""SLOs by their keys, and statements about many of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from sqlalchemy import Column, ColumnElement, Table, and_

T = TypeVar("T")
Key = tuple[str, str, str]
"""The contract's key, the object and the SLO."""
KEY = ("contract", "object", "slo")
# Databases bound how many values a statement may have.
AT_ONCE = 500


def key_of(table: Table) -> list[Column[Any]]:
    """The columns that name the SLO of a row."""
    return [table.c[name] for name in KEY]


def is_of(table: Table, key: Sequence[object]) -> ColumnElement[bool]:
    """Whether a row is of an SLO; by a shorter key, of an object. Columns may stand for values."""
    return and_(*(column == value for column, value in zip(key_of(table), key, strict=False)))


def parts(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """All of them, so many at once as a statement may have."""
    return (items[start : start + AT_ONCE] for start in range(0, len(items), AT_ONCE))
