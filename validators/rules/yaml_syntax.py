"""The file is not YAML.

Why: Nothing in it can be read. The place is where the reader gave up; the mistake is there or just before it.

Bad:
    name: Orders: all of them

Good:
    name: "Orders: all of them"

Mend: Mend the line that is named. Most often a quote, a bracket or the indentation is wrong.
"""

from __future__ import annotations

from dq.validators.rule import form

RULE = form("yaml-syntax", __doc__)
