"""Invalid YAML, or invalid JSON in a `.json` file.

Why: Nothing in the file can be read. The location is where the parser stopped; the mistake is there or just
before it. Files named `.json` are read by programs that only understand JSON.

Bad:
    name: Orders: all of them

Good:
    name: "Orders: all of them"

How to fix: Correct the line in the message. Usually a quote, a bracket or the indentation is wrong.
"""

from dq.validators.rule import form_rule

RULE = form_rule("yaml-syntax", __doc__)
