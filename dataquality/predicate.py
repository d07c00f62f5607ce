"""Which SQL predicates of a contract (`scope.where`) may reach Spark.

A contract is untrusted text, and Spark's expressions can call any Java method (`reflect`), so that lists
say what is allowed, comparisons and tame functions, and everything else is refused.
"""

from __future__ import annotations

import re

from dq.dataquality.operators import Unusable


def _words(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


_FUNCTIONS = _words(
    "abs array_contains ceil char_length coalesce concat contains date date_add date_sub date_trunc day "
    "dayofweek endswith floor greatest hour ifnull isnan isnotnull isnull least left length lower ltrim "
    "minute month nullif nvl quarter right round rtrim second size startswith substring to_date trim "
    "trunc upper weekday year"
)
# Words that a parenthesis may follow without a call.
_KEYWORDS = _words("and or not in between like rlike is case when then else end cast as interval")
_TYPES = _words("decimal varchar char")
_FORBIDDEN = _words("select from union with values table lateral over filter exists transform")
_TOKEN = re.compile(
    r"\s+|(?P<word>[A-Za-z_][A-Za-z0-9_]*)|(?P<quoted>`[^`$]+`)|'[^'\\$]*'|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?"
    r"|<=>|<>|<=|>=|!=|==|(?P<open>\()|(?P<close>\))|[-+*/%<>=,.]"
)


def guarded(text: str) -> str:
    """The predicate as it is, when it may run. Raises Unusable, with the reason, otherwise."""
    position, depth, before = 0, 0, ""
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None or text.startswith(("--", "/*"), position):
            raise Unusable(f"where: {text[position : position + 10]!r} is not allowed in a predicate")
        word = (match.group("word") or "").lower()
        if word in _FORBIDDEN:
            raise Unusable(f"where: {word!r} is not allowed; a predicate on the object's own columns is")
        if match.group("open"):
            depth += 1
            if before == "`" or (before and before not in _FUNCTIONS | _KEYWORDS | _TYPES):
                raise Unusable(f"where: the function {before!r} is not allowed")
        if match.group("close"):
            depth -= 1
            if depth < 0:
                break
        if not match.group().isspace():
            before = "`" if match.group("quoted") else word
        position = match.end()
    if depth != 0 or not text.strip():
        raise Unusable("where: the parentheses do not match" if text.strip() else "where: it is empty")
    return text.strip()
