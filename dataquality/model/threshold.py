"""TABLE: the eight comparisons of ODCS quality rules, what each means and how it is said."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from dq.contracts.model import Quality

_Holds = Callable[[Fraction, tuple[Fraction, ...]], bool]

# Name -> (test of a value against the operands, words). Both bounds of a range belong to it: the standard's
# table says "element of", and the words print them.
OPERATORS: dict[str, tuple[_Holds, str]] = {
    "mustBe": (lambda value, to: value == to[0], "exactly {}"),
    "mustNotBe": (lambda value, to: value != to[0], "anything but {}"),
    "mustBeGreaterThan": (lambda value, to: value > to[0], "more than {}"),
    "mustBeGreaterOrEqualTo": (lambda value, to: value >= to[0], "at least {}"),
    "mustBeLessThan": (lambda value, to: value < to[0], "less than {}"),
    "mustBeLessOrEqualTo": (lambda value, to: value <= to[0], "at most {}"),
    "mustBeBetween": (lambda value, to: to[0] <= value <= to[1], "from {} to {}, both included"),
    "mustNotBeBetween": (lambda value, to: not to[0] <= value <= to[1], "outside of {} to {}, both excluded"),
}
_RANGES = ("mustBeBetween", "mustNotBeBetween")


@dataclass(frozen=True, slots=True)
class Threshold:
    """One operator with its operands, exact as they are written."""

    operator: str
    operands: tuple[Fraction, ...]
    written: tuple[str, ...]

    def holds(self, value: Fraction | int) -> bool:
        """Whether a measured value keeps the promise."""
        return OPERATORS[self.operator][0](Fraction(value), self.operands)

    def exceeded_by(self, value: Fraction | int) -> bool:
        """Whether a measured count that breaks the promise is too large: a smaller one would keep it."""
        return any(self.holds(each) for each in (Fraction(0), *self.operands) if each < value)

    def as_odcs(self) -> dict[str, object]:
        """As a rule of ODCS writes it: `{"mustBe": 0}`, `{"mustBeBetween": [1, 5]}`."""
        numbers = [int(one) if one.denominator == 1 else float(one) for one in self.operands]
        return {self.operator: numbers if len(numbers) > 1 else numbers[0]}

    def __str__(self) -> str:
        return OPERATORS[self.operator][1].format(*self.written)


class Unusable(ValueError):
    """A clause cannot be tested as it is written; the message says why."""


def threshold(quality: Quality) -> Threshold:
    """The one comparison of a quality rule. Raises Unusable when there is none, several, or no number."""
    return comparison(quality.operators())


def comparison(written: Sequence[tuple[str, object]]) -> Threshold:
    """The one comparison among operators with their operands; as `threshold`."""
    if not written:
        raise Unusable("it has no operator such as mustBe")
    if len(written) > 1:
        raise Unusable(
            f"it has {len(written)} operators ({', '.join(one for one, _ in written)}); one is allowed"
        )
    operator, operand = written[0]
    operands = operand if isinstance(operand, list) else [operand]
    wanted = 2 if operator in _RANGES else 1
    if len(operands) != wanted:
        raise Unusable(f"{operator} takes {wanted} number(s), not {len(operands)}")
    for one in operands:
        if isinstance(one, bool) or not isinstance(one, int | float):
            raise Unusable(f"{operator} takes a number, not {one!r}")
        if one != one or abs(one) == float("inf"):
            raise Unusable(f"{operator} takes a finite number, not {one!r}")
    shown = tuple(_shown(one) for one in operands if isinstance(one, int | float))
    exact = tuple(Fraction(one) for one in shown)
    if len(exact) > 1 and exact[0] > exact[1]:
        raise Unusable(f"{operator}: {shown[0]} is greater than {shown[1]}")
    return Threshold(operator, exact, shown)


def _shown(value: int | float) -> str:
    """As the contract has it: the shortest decimal of a float, and no `.0` on whole numbers."""
    whole = isinstance(value, int) or value.is_integer()
    return str(int(value)) if whole else repr(value)
