"""Patterns that mean the same in ECMA-262 and Python's `re`: each is made once and written twice."""

from __future__ import annotations

import re
from collections.abc import Callable

from hypothesis import assume
from hypothesis import strategies as st

from dq.contracts.pattern import pattern_problem

# ECMA-262 -> Python. `\s` of ECMA-262 is WhiteSpace and LineTerminator, sections 12.2 and 12.3.
_SPACE = "\t\n\x0b\x0c\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
ATOMS = {
    "a": "a",
    "A": "A",
    "é": "é",
    "🙂": "🙂",
    ".": "[^\n\r\u2028\u2029]",
    r"\d": "[0-9]",
    r"\D": "[^0-9]",
    r"\w": "[A-Za-z0-9_]",
    r"\W": "[^A-Za-z0-9_]",
    r"\s": f"[{_SPACE}]",
    r"\S": f"[^{_SPACE}]",
    r"\.": r"\.",
    r"\$": r"\$",
    r"\-": r"\-",
    "'": "'",
    "[a-z]": "[a-z]",
    "[^a-z]": "[^a-z]",
    r"[\s0-9]": f"[{_SPACE}0-9]",
    r"[^\d_]": "[^0-9_]",
    "(?:a|9)": "(?:a|9)",
    "(?:ab|)": "(?:ab|)",
    r"\u00e9": "é",
    r"\x41": "A",
    "(?=a)": "(?=a)",
    "(?!a)": "(?!a)",
}
_BOUNDARIES = {
    r"\b": r"(?a:\b)",
    r"\B": r"(?:(?a:(?<=\w)(?=\w)|(?<!\w)(?!\w)))",
    "^": r"\A",
    "$": r"\Z",
    "": "",
}
_COUNTS = ("", "*", "+", "?", "{2}", "{1,3}", "+?", "*?")
_TWICE: dict[str, str] = {}


def _repeatable(atom: str) -> bool:
    return not atom.startswith(("(?=", "(?!"))


@st.composite
def patterns(draw: st.DrawFn) -> str:
    """An ECMA-262 pattern that takes no matcher too long; `unmatched` knows its other half."""
    ecma, python = "", ""
    for _ in range(draw(st.integers(1, 4))):
        atom = draw(st.sampled_from(sorted(ATOMS)))
        count = draw(st.sampled_from(_COUNTS)) if _repeatable(atom) else ""
        edge = draw(st.sampled_from(["", "", "", r"\b", r"\B"]))
        ecma += edge + atom + count
        python += _BOUNDARIES[edge] + ATOMS[atom] + count
    begin, end = draw(st.sampled_from(["", "^"])), draw(st.sampled_from(["", "$"]))
    ecma, python = begin + ecma + end, _BOUNDARIES[begin] + python + _BOUNDARIES[end]
    _TWICE[ecma] = python
    wrong = pattern_problem(ecma)
    assume(wrong is None or wrong.code != "PATTERN_AMBIGUOUS")
    return ecma


def unmatched(pattern: str) -> Callable[[str], bool]:
    """Whether a text holds no match."""
    made = re.compile(_TWICE[pattern])
    return lambda value: made.search(value) is None
