"""What an engine says of a predicate that it cannot answer."""

from __future__ import annotations


class NoReading(ValueError):
    """A predicate that only Spark can compute; the message says what of it."""
