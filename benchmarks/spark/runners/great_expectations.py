"""Great Expectations on a Spark DataFrame that it does not cache, which is its fastest way.

The variant `cached` is its default, which caches the whole DataFrame.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from typing import Any

import great_expectations as gx
import great_expectations.expectations as gxe

from spark import terms

_TYPES = {"bigint": "LongType", "int": "IntegerType", "string": "StringType", "date": "DateType"}


def build(
    place: str, scale: float, variant: str, session: Any
) -> tuple[tuple[str, ...], Callable[[], list[str]]]:
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = gx.data_context.types.base.ProgressBarsConfig(globally=False)
    source = context.data_sources.add_spark("spark", persist=variant == "cached")
    batch = source.add_dataframe_asset("lineitem").add_batch_definition_whole_dataframe("all")
    expectations = [(name, expectation) for name, expectation in _expectations(scale)]
    for name, expectation in expectations:
        expectation.meta = {"clause": name}
    suite = context.suites.add(
        gx.ExpectationSuite(name="c40", expectations=[expectation for _, expectation in expectations])
    )
    validation = context.validation_definitions.add(
        gx.ValidationDefinition(name="c40", data=batch, suite=suite)
    )

    def run() -> list[str]:
        frame = session.read.parquet(place)
        result = validation.run(batch_parameters={"dataframe": frame}, result_format="SUMMARY")
        return sorted(
            {
                expectation.expectation_config.meta["clause"]
                for expectation in result.results
                if not expectation.success
            }
        )

    return tuple(dict.fromkeys(name for name, _ in expectations)), run


def _expectations(scale: float) -> Iterator[tuple[str, Any]]:
    yield "schema", gxe.ExpectTableColumnsToMatchSet(column_set=list(terms.COLUMNS), exact_match=True)
    for column, kind in terms.TYPES.items():
        named = _TYPES.get(kind, "DecimalType")
        yield "schema", gxe.ExpectColumnValuesToBeOfType(column=column, type_=named)
    fewest, largest = terms.row_bounds(scale)
    yield "rows", gxe.ExpectTableRowCountToBeBetween(min_value=fewest, max_value=largest)
    for column in terms.COLUMNS:
        yield f"null:{column}", gxe.ExpectColumnValuesToNotBeNull(column=column)
    yield "key", gxe.ExpectCompoundColumnsToBeUnique(column_list=list(terms.KEY))
    for column, (low, high) in terms.RANGES.items():
        high_value = None if high is None else float(high)
        yield (
            f"range:{column}",
            gxe.ExpectColumnValuesToBeBetween(column=column, min_value=float(low), max_value=high_value),
        )
    yield (
        f"positive:{terms.POSITIVE}",
        gxe.ExpectColumnValuesToBeBetween(column=terms.POSITIVE, min_value=0, strict_min=True),
    )
    for column, values in terms.ENUMS.items():
        yield f"enum:{column}", gxe.ExpectColumnValuesToBeInSet(column=column, value_set=list(values))
    yield "min_length", gxe.ExpectColumnValueLengthsToBeBetween(column=terms.TEXT, min_value=terms.MIN_LENGTH)
    yield "max_length", gxe.ExpectColumnValueLengthsToBeBetween(column=terms.TEXT, max_value=terms.MAX_LENGTH)
    yield "pattern", gxe.ExpectColumnValuesToMatchRegex(column=terms.FORMED, regex=terms.PATTERN)
    yield (
        "order",
        gxe.ExpectColumnPairValuesAToBeGreaterThanB(
            column_A=terms.LATER, column_B=terms.EARLIER, or_equal=True
        ),
    )
    for column, days in terms.DATES.items():
        first, last = (dt.date.fromisoformat(day) for day in days)
        yield (
            f"dates:{column}",
            gxe.ExpectColumnValuesToBeBetween(column=column, min_value=first, max_value=last),
        )
    since = dt.date.fromisoformat(terms.FRESH_SINCE)
    yield "fresh", gxe.ExpectColumnMaxToBeBetween(column=terms.FRESH, min_value=since)
    least, greatest = terms.MEAN_BOUNDS
    yield "mean", gxe.ExpectColumnMeanToBeBetween(column=terms.MEAN, min_value=least, max_value=greatest)
    yield "maximum", gxe.ExpectColumnMaxToBeBetween(column=terms.MAXIMUM, max_value=terms.MAXIMUM_BOUND)
    least, greatest = terms.distinct_bounds(scale)
    yield (
        "distinct",
        gxe.ExpectColumnUniqueValueCountToBeBetween(
            column=terms.DISTINCT, min_value=least, max_value=greatest
        ),
    )
    unique = 1 - terms.REPEATED_PERCENT / 100
    yield (
        "repeated",
        gxe.ExpectColumnProportionOfUniqueValuesToBeBetween(column=terms.REPEATED, min_value=unique),
    )
