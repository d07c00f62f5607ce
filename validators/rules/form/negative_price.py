"""The price is below zero.

Why: Nobody is paid for reading; most often a dash was meant as a list or a range.

Bad:
    price: {priceAmount: -9.95, priceCurrency: USD}

Good:
    price: {priceAmount: 9.95, priceCurrency: USD}

Mend: Write the amount, or 0 for what is free.
"""

from dq.validators.rule import Context, Contract, Faults, Rule, Severity, fault


def check(contract: Contract, _context: Context) -> Faults:
    price = contract.price
    if price is not None and price.price_amount is not None and price.price_amount < 0:
        message = f"the price is {price.price_amount:g}."
        yield fault(price, "priceAmount", message, "Write the amount, or 0 for what is free.")


RULE = Rule("negative-price", Severity.WARNING, __doc__, check)
