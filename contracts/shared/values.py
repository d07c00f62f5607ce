"""Values as JSON has them."""

from __future__ import annotations

from datetime import date


def iso(at: date | None) -> str | None:
    """An instant or a day as ISO 8601, or None if there is none."""
    return None if at is None else at.isoformat()
