"""A mapping holds the same key twice.

Why: Every YAML reader silently takes one of the two, and not every reader the same one.

Bad:
    name: Orders
    domain: sales
    name: Orders of the shop

Good:
    name: Orders of the shop
    domain: sales

Mend: Keep one of the two.
"""

from dq.validators.rule import form

RULE = form("duplicate-key", __doc__)
