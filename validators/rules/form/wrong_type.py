"""A value is of another type than ODCS wants at this place.

Why: YAML reads `yes`, `1.10` and `2026-01-31` as a truth value, a number and a date. Tools that convert
them back guess, and guess differently.

Bad:
    version: 1.2

Good:
    version: "1.2.0"

Mend: Quote what is meant as text; remove the quotes from what is meant as a number or as true or false.
"""

from dq.validators.rule import form

RULE = form("wrong-type", __doc__)
