"""The check `luhn`: numbers of cards, devices and the like end in the right check digit."""

from __future__ import annotations

from dq.dataquality.clauses.plugins import Broken, Given


def luhn(given: Given) -> Broken:
    """Every text is digits that end in the check digit of Luhn's algorithm, as numbers of cards do.

    It stands on a property and takes no arguments. NULL breaks nothing; a blank or a dash does.
    """
    if given.column is None or given.arguments:
        raise ValueError("it stands on a property and takes no arguments")
    column = given.column
    breaks = column.rows_where(lambda value: f"NOT luhn_check(CAST({value} AS STRING))")
    return Broken(breaks, (column,), "do not end in their check digit")
