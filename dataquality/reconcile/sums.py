"""Numbers of rows and sums of two sides, by group: one aggregation per side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, islice
from typing import Any

from dq.contracts.agreement import SumAgreement
from dq.contracts.outcome import UsageError
from dq.contracts.sql import text as sql
from dq.contracts.types import DataType
from dq.dataquality.clauses.metric_rule import exact, exact_sum
from dq.dataquality.model.metric import GROUP_TYPES, Failure, Group, GroupPairs, NumberPair
from dq.dataquality.model.predicate import INTEGERS
from dq.dataquality.reconcile.columns import ComparedColumn, Pairing, Terms, pair_columns
from dq.dataquality.reconcile.compare import Side, schema_of_side
from dq.dataquality.reconcile.differing_rows import expressions
from dq.dataquality.reconcile.equality import is_number
from dq.dataquality.spark.measure import MOST_GROUPS, too_many_groups

# Doubles below this limit are the sum of an integer and a fraction of at most 52 bits (smaller bits are cut
# off), whose sums are exact: they do not depend on the order of the rows.
_EXACT_BELOW = 2**53
_FRACTION = 2**52
_FLOATS = frozenset({"float", "double"})


@dataclass(frozen=True, slots=True)
class _Sum:
    """A sum, its largest error, and the sum of absolute values of floats with their number."""

    total: Fraction = Fraction(0)
    error: Fraction = Fraction(0)
    absolute: Fraction = Fraction(0)
    values: int = 0


@dataclass(frozen=True, slots=True)
class _Numbers:
    """Numbers of a group of one side."""

    group: Group
    rows: int
    sums: tuple[_Sum | Failure, ...]


def compare_sums(left: Side, right: Side, agreement: SumAgreement) -> tuple[GroupPairs, ...] | Failure:
    """Return the number of rows, and then the sums, of each group of both sides; 0 for a group without rows.

    Sums of integers and decimals are exact. Those of floats do not depend on the order of the rows; next to
    numbers of another type, a difference that rounding explains is tolerated. Too many groups are a Failure.
    Spark's errors are raised.

    Raises:
        UsageError: A column that a side does not have, that is not a number, or that forms no groups.
    """
    pairing = _pairing(left, right, agreement)
    by_name = {column.name.lower(): column for column in pairing.columns}
    summed = [by_name[name.lower()] for name in agreement.sums]
    sides = []
    for side, is_left in ((left, True), (right, False)):
        numbers = _measure(side, pairing.key, summed, is_left=is_left)
        if numbers is None:
            return too_many_groups(agreement.by)
        sides.append(numbers)
    tolerance = {name.lower(): Fraction(amount) for name, amount in agreement.tolerance}
    tolerances = [tolerance.get(column.name.lower(), Fraction(0)) for column in summed]
    nothing = _Numbers((), 0, (_Sum(),) * len(summed))
    pairs = []
    for key in {**sides[0], **sides[1]}:
        own, other = sides[0].get(key, nothing), sides[1].get(key, nothing)
        sums = map(_pair, summed, own.sums, other.sums, tolerances)
        rows = NumberPair(Fraction(own.rows), Fraction(other.rows))
        pairs.append(GroupPairs(own.group or other.group, (rows, *sums)))
    return tuple(pairs)


def _pairing(left: Side, right: Side, agreement: SumAgreement) -> Pairing:
    columns = (*agreement.by, *agreement.sums)
    if not columns:
        return Pairing((), ())
    terms = Terms(agreement.by, columns, renamed=dict(agreement.renamed))
    pairing = pair_columns(schema_of_side(left), schema_of_side(right), terms)
    for uncompared in pairing.uncompared:
        raise UsageError(f"{uncompared.name} {uncompared.reason}.", "Name it with rename, or leave it out.")
    sums = {name.lower() for name in agreement.sums}
    for column in pairing.columns:
        kinds = (column.left_type, column.right_type)
        types = f"{column.left_type} on the left and {column.right_type} on the right"
        if column.name.lower() in sums and not all(map(is_number, kinds)):
            raise UsageError(f"{column.name!r} is {types}, and only numbers have a sum.", "Leave it out.")
        if column.is_key and not all(kind.name in GROUP_TYPES for kind in kinds):
            raise UsageError(f"{column.name!r} is {types}, which forms no groups.", "Leave it out.")
    return pairing


def _measure(
    side: Side, by: Sequence[ComparedColumn], summed: Sequence[ComparedColumn], *, is_left: bool
) -> dict[tuple[str | None, ...], _Numbers] | None:
    """Return the numbers of a side by the normal forms of its groups, or None if there are too many."""
    kinds = [column.left_type if is_left else column.right_type for column in summed]
    parts = [f"CAST({part} AS STRING)" for column in by for part in column.parts]
    aggregates = [_aggregates(f"_dq_s{index}", kind) for index, kind in enumerate(kinds)]
    rows = (
        side.frame.selectExpr(
            "1 AS _dq_row",
            *(text for column in by for text in column.select(is_left=is_left)),
            *(
                f"{sql.name(column.name if is_left else column.right_name)} AS _dq_s{index}"
                for index, column in enumerate(summed)
            ),
        )
        .groupBy(*expressions(*parts))
        .agg(*expressions("count(1)", *chain.from_iterable(aggregates)))
        .limit(MOST_GROUPS + 1)
        .collect()
    )
    if len(rows) > MOST_GROUPS:
        return None
    numbers = {}
    for row in rows:
        key, count, answers = tuple(row[: len(parts)]), row[len(parts)], iter(row[len(parts) + 1 :])
        sums = tuple(
            _sum(column, list(islice(answers, len(texts))), side.label)
            for column, texts in zip(summed, aggregates, strict=True)
        )
        numbers[key] = _Numbers(tuple(_group(by, key)), count, sums)
    return numbers


def _group(by: Sequence[ComparedColumn], key: Sequence[str | None]) -> Iterator[str | None]:
    """Yield the value of each column: its normal form, or the text that has none."""
    texts = iter(key)
    for column in by:
        yield next((text for text in [next(texts) for _ in column.parts] if text is not None), None)


def _aggregates(value: str, kind: DataType) -> list[str]:
    """Return SQL for the sum and the number of values, and then for what `_float_sum` needs."""
    if kind.name in INTEGERS:
        value = f"CAST({value} AS DECIMAL(20,0))"
    if kind.name not in _FLOATS:
        return [f"try_sum({value})", f"count({value})"]
    number = f"CAST({value} AS DOUBLE)"
    small = f"IF(abs({number}) < {_EXACT_BELOW}D, {number}, NULL)"
    return [
        f"sum({number})",
        f"count({number})",
        f"count_if(isnan({number}))",
        f"sum(abs({number}))",
        f"max(abs({number}))",
        f"sum(CAST(floor({small}) AS DECIMAL(20,0)))",
        f"sum(CAST(floor(({small} - floor({small})) * {_FRACTION}D) AS DECIMAL(20,0)))",
    ]


def _sum(column: ComparedColumn, answers: Sequence[Any], label: str) -> _Sum | Failure:
    total = exact_sum((*answers[:2], 0)) if len(answers) == 2 else _float_sum(answers)
    if isinstance(total, Failure):
        return Failure(f"sum of {column.name} in {label}: {total.message}")
    return total if isinstance(total, _Sum) else _Sum(total[0])


def _float_sum(answers: Sequence[Any]) -> _Sum | Failure:
    """Return the sum of floats, as the nearest double."""
    total, values, nans, absolute, greatest, wholes, fractions = answers
    counted = exact_sum((total, values, nans))
    if isinstance(counted, Failure) or not values:
        return counted if isinstance(counted, Failure) else _Sum()
    magnitude = exact(absolute)
    if isinstance(magnitude, Failure):
        return magnitude
    if greatest >= _EXACT_BELOW:
        error = magnitude * Fraction(values + 1, _EXACT_BELOW)
        return _Sum(counted[0], error, magnitude, values)
    nearest = exact(float(Fraction(wholes) + Fraction(fractions) / _FRACTION))
    assert isinstance(nearest, Fraction)
    return _Sum(nearest, Fraction(0), magnitude, values)


def _pair(
    column: ComparedColumn, own: _Sum | Failure, other: _Sum | Failure, tolerance: Fraction
) -> NumberPair | Failure:
    if isinstance(own, Failure):
        return own
    if isinstance(other, Failure):
        return other
    error = own.error + other.error
    if column.left_type != column.right_type:
        # Each value is the nearest float to that of the other side, and its fraction is cut off.
        nearest = Fraction(1, 2**24 if column.equality.compared_as == "float" else _FRACTION)
        for side in (own, other):
            error += side.absolute * nearest + Fraction(side.values, _FRACTION)
    return NumberPair(own.total, other.total, max(tolerance, error))
