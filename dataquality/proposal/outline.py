"""The outline that texts share, such as two capitals and a digit, as a pattern."""

from __future__ import annotations

import re

from dq.dataquality.proposal.policy import LONGEST_SHAPE

_RUN = re.compile(r"(.)\1*", re.DOTALL)
_CLASSES = {"A": "[A-Z]", "a": "[a-z]", "9": "[0-9]"}


def pattern_of(shape: str) -> str:
    """A shape as the pattern of a whole text; "" for one that says nothing, or holds other letters.

    In a shape `A`, `a` and `9` stand for a letter of ASCII or a digit, and every other sign for itself.
    """
    if not 0 < len(shape) <= LONGEST_SHAPE or not any(sign in _CLASSES for sign in shape):
        return ""
    if not all(32 <= ord(sign) < 127 for sign in shape) or "${" in shape:
        return ""
    parts = []
    for found in _RUN.finditer(shape):
        sign, count = found[1], len(found[0])
        plain = sign.isalnum() or sign in " _-:/,;@#=%&"
        inside = f"\\{sign}" if sign in "\\]^[&~-" else sign
        one = _CLASSES.get(sign) or (sign if plain else f"[{inside}]")
        parts.append(one if count == 1 else f"{one}{{{count}}}")
    return f"^{''.join(parts)}$"
