"""Names that a reader cannot tell apart although their code points differ."""

from __future__ import annotations

import unicodedata


def alike(name: str) -> str:
    """What all names have in common that are canonically equal: `é` in one code point and in two.

    NFC and not NFKC: what is canonically equal looks the same everywhere, and file systems and editors turn
    one into the other, while NFKC would also make one of `m²` and `m2`, which anybody can tell apart.
    """
    return name if name.isascii() else unicodedata.normalize("NFC", name)


def note(name: str, other: str) -> str:
    """What to add to a message where two names only look the same; "" where they do not differ so."""
    differs = name != other and alike(name) == alike(other)
    return " (it looks the same, and is encoded otherwise)" if differs else ""
