"""Which of the products that are missing at once is the cause: the one whose own inputs are all there."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime

Product = tuple[str, str]
"""A contract by its key, and one of its objects."""

Broken = Mapping[Product, tuple[datetime, str]]
"""Of each product with an open incident, what tells which broke first: an instant, and an id."""


def causes(broken: Broken, made_from: Mapping[Product, Collection[Product]]) -> dict[Product, Product]:
    """From each broken product to the broken one that it waits for, at once or through others.

    Who has no broken input is not in it. Products that are made from each other are one: the first to break
    stands for them. Of several causes it is the one that broke first.
    """
    above = {one: _inputs(one, made_from) & broken.keys() for one in broken}
    # Who is above each other goes in a circle.
    circle = {one: {other for other in those if one in above[other]} | {one} for one, those in above.items()}
    first = {one: min(those, key=lambda other: broken[other]) for one, those in circle.items()}
    sources = {one for one, those in above.items() if those <= circle[one]}
    found = {}
    for one, those in above.items():
        among = {first[other] for other in {*those, one} & sources}
        cause = min(among, key=lambda other: broken[other]) if among else one
        if cause != one:
            found[one] = cause
    return found


def _inputs(one: Product, made_from: Mapping[Product, Collection[Product]]) -> set[Product]:
    found: set[Product] = set()
    left = [one]
    while left:
        new = {other for other in made_from.get(left.pop(), ()) if other not in found}
        found |= new
        left += new
    return found
