"""Texts match the `pattern` of their property.

Why: An identifier of another form joins with nothing.
Bad: `pattern: '^[A-Z]{2}$'` and a row with `de`.
Good: A row with `DE`.
Nulls: NULL passes; the empty text must match like any other. The pattern is searched, not
anchored, as in JSON Schema: write `^` and `$` for the whole text.
How to fix: Correct the value at its source. A pattern that Java's regex and ECMA-262 do not read alike is an
error: write it with what they share; a reference back to a group that is optional, repeated, in an
alternative or in a lookaround is one. Java calls itself for each turn of a repeated group: where turns
cannot be told apart, as in `^([ab]-|[ab])*$`, a text of many hundred characters is an error, too.
"""

from __future__ import annotations

from collections.abc import Iterator

from dq.dataquality.clauses.clause import Clause, PropertyKeys
from dq.dataquality.clauses.kind import property_check
from dq.dataquality.clauses.quality_rule import pattern_clause


def clauses(keys: PropertyKeys) -> Iterator[Clause]:
    if keys.options and (pattern := keys.options.pattern) is not None:
        yield pattern_clause(keys.option("pattern", f"matches {pattern}"), keys.column, pattern)


CHECK = property_check("pattern", __doc__, clauses)
