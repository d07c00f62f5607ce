"""Round numbers a good way off those that were seen."""

from __future__ import annotations

import datetime as dt
import sys
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext

from dq.dataquality.proposal.policy import HEADROOM

# Of decimals of Spark, and their sums.
_DIGITS = 80
# Nobody reads longer numbers digit by digit.
_LONG = Decimal(10) ** 38
Number = int | float | Decimal


def rounded(value: Number, up: bool, digits: int = 2) -> int | float:
    """The nearest number above (or below) with so many significant digits."""
    exact = Decimal(str(value))
    if not exact:
        return 0
    step = Decimal(1).scaleb(exact.adjusted() - digits + 1)
    return plain(_to(exact, step, ROUND_CEILING if up else ROUND_FLOOR))


def room(least: Number, greatest: Number) -> tuple[int | float, int | float]:
    """The bounds of numbers between these: the range that was seen, once more on either side, and round.

    What is not negative, and is nearer to zero than that, is bounded by zero.
    """
    zero, low, high = Decimal(0), Decimal(str(least)), Decimal(str(greatest))
    with localcontext(prec=_DIGITS):
        spread = ((high - low) or abs(high) or Decimal(1)) * HEADROOM
        step = Decimal(1).scaleb(spread.adjusted())
        from_ = zero if 0 <= low <= spread else _to(low - spread, step, ROUND_FLOOR)
        to = zero if low < 0 and high <= 0 and -high <= spread else _to(high + spread, step, ROUND_CEILING)
        return plain(max(from_, zero) if low >= 0 else from_), plain(to)


def _to(value: Decimal, step: Decimal, way: str) -> Decimal:
    return (value / step).to_integral_value(way) * step


def plain(value: Decimal) -> int | float:
    """A number as a contract writes it: whole where it is whole."""
    if value == value.to_integral_value() and abs(value) < _LONG:
        return int(value)
    return max(-sys.float_info.max, min(float(value), sys.float_info.max))


def first_day(least: dt.date, greatest: dt.date) -> dt.date:
    """The first of January that lies at least a year, and all that was seen, before the least date."""
    back = max((greatest - least).days * HEADROOM, 366)
    begin = least.toordinal() - back
    return dt.date(dt.date.fromordinal(begin).year, 1, 1) if begin > 0 else dt.date(1, 1, 1)


def share(part: int, whole: int) -> float:
    """The percent that a part is, with a point as its last digit."""
    return round(100 * part / whole, 1) if whole else 0.0
