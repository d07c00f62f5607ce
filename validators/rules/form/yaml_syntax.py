"""The file is not YAML, or not JSON although its name ends in `.json`.

Why: Nothing in it can be read. The place is where the reader gave up; the mistake is there or just before it.
A file that is called JSON is read by programs that know only JSON.

Bad:
    name: Orders: all of them

Good:
    name: "Orders: all of them"

Mend: Mend the line that is named. Most often a quote, a bracket or the indentation is wrong.
"""

from dq.validators.rule import form

RULE = form("yaml-syntax", __doc__)
