"""Negative price.

Why: Consumers are not paid for reading; usually the dash was meant as a list or a range.

Bad:
    price: {priceAmount: -9.95, priceCurrency: USD}

Good:
    price: {priceAmount: 9.95, priceCurrency: USD}

How to fix: Write the amount, or 0 if the data is free.
"""

from dq.validators.rule import Context, Contract, Rule, Severity, Violations, violation


def check(contract: Contract, _context: Context) -> Violations:
    price = contract.price
    if price is not None and price.price_amount is not None and price.price_amount < 0:
        message = f"negative price {price.price_amount:g}."
        yield violation(price, "priceAmount", message, "Write the amount, or 0 if the data is free.")


RULE = Rule("negative-price", Severity.WARNING, __doc__, check)
