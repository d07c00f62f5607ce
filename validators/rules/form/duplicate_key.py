"""Duplicate key in a mapping.

Why: YAML parsers silently use one of the two, and different parsers use different ones.

Bad:
    name: Orders
    domain: sales
    name: Orders of the shop

Good:
    name: Orders of the shop
    domain: sales

How to fix: Keep one of the two.
"""

from dq.validators.rule import form_rule

RULE = form_rule("duplicate-key", __doc__)
