"""An ECMA-262 pattern as the Java pattern that finds the same texts."""

from __future__ import annotations

import re

from dq.contracts import pattern as shared
from dq.dataquality.operators import Unusable

# ECMA-262 \\s: white space and line terminators of Unicode; Java's has six characters of ASCII.
_SPACE = r"\t\n\x0B\f\r \u00A0\u1680\u2000-\u200A\u2028\u2029\u202F\u205F\u3000\uFEFF"
# Java's `$` also stands before a last line break, its `.` leaves out U+0085 too, and its \b knows letters
# beyond ASCII before Java 19.
_OUTSIDE = {
    ".": r"[^\n\r\u2028\u2029]",
    "$": r"\z",
    r"\s": f"[{_SPACE}]",
    r"\S": f"[^{_SPACE}]",
    r"\b": r"(?:(?<=\w)(?!\w)|(?<!\w)(?=\w))",
    r"\B": r"(?:(?<=\w)(?=\w)|(?<!\w)(?!\w))",
}
_INSIDE = {r"\s": _SPACE, r"\S": f"[^{_SPACE}]"}
_TOKEN = re.compile(r"\\(?:[pP]\{\w+\}|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|.)|\[\^?|.", re.DOTALL)


def java(pattern: str) -> str:
    """The pattern for RLIKE, which searches as JSON Schema's `pattern` does: it is not anchored.

    Raises Unusable, with the position, for what the two languages do not share.
    """
    reason = shared.refused(pattern)
    if reason is not None:
        raise Unusable(f"pattern {pattern!r}: {reason}")
    made: list[str] = []
    opened = ""
    for token in _TOKEN.findall(pattern):
        if opened and token == r"\S" and opened == "[^":
            # Java reads a class inside of a negated one in its own way.
            raise Unusable(f"pattern {pattern!r}: '\\S' in a negated class; name its characters")
        made.append((_INSIDE if opened else _OUTSIDE).get(token, token))
        if not opened and token.startswith("["):
            opened = token
        elif opened and token == "]":
            opened = ""
    return "".join(made)
