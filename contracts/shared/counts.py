"""Numbers of things in words."""

from __future__ import annotations


def counted(number: int, one: str, many: str = "") -> str:
    """`1 miss`, `1,204 misses`; `many` where an s makes no plural."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
