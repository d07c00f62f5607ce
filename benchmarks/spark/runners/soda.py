"""Soda Core on a Spark session. What its contracts have no form for is a metric with an SQL expression, which
Soda puts into the query that computes the other numbers.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from soda_core.common.yaml import ContractYamlSource
from soda_core.contracts.contract_verification import CheckOutcome, ContractVerificationSession
from soda_sparkdf import SparkDataFrameDataSource

from spark import terms

Checks = list[dict[str, Any]]


def build(
    place: str, scale: float, _variant: str, session: Any
) -> tuple[tuple[str, ...], Callable[[], list[str]]]:
    session.sql("DROP TABLE IF EXISTS lineitem")
    session.sql(f"CREATE TABLE lineitem USING parquet LOCATION '{place}'")
    source = SparkDataFrameDataSource.from_existing_session(session=session, name="default")
    contract = _contract(scale)
    # JSON is YAML, too.
    texts = [ContractYamlSource.from_str(json.dumps(contract))]

    def run() -> list[str]:
        session.catalog.refreshTable("lineitem")
        answer = ContractVerificationSession.execute(texts, data_source_impls=[source])
        (verified,) = answer.contract_verification_results
        outcomes = {result.check.name: result.outcome for result in verified.check_results}
        assert set(outcomes) == set(terms.ALL), answer.get_errors_str()
        return sorted(name for name, outcome in outcomes.items() if outcome != CheckOutcome.PASSED)

    return terms.ALL, run


def _contract(scale: float) -> dict[str, Any]:
    columns: defaultdict[str, Checks] = defaultdict(list)
    for column in terms.COLUMNS:
        columns[column].append({"missing": {"name": f"null:{column}"}})

    def add_invalid(name: str, column: str, **validity: Any) -> None:
        columns[column].append({"invalid": {"name": name, "qualifier": name, **validity}})

    for column, (low, high) in terms.RANGES.items():
        bounds = {"valid_min": float(low)} | ({"valid_max": float(high)} if high is not None else {})
        add_invalid(f"range:{column}", column, **bounds)
    for column, values in terms.ENUMS.items():
        add_invalid(f"enum:{column}", column, valid_values=list(values))
    add_invalid("min_length", terms.TEXT, valid_min_length=terms.MIN_LENGTH)
    add_invalid("max_length", terms.TEXT, valid_max_length=terms.MAX_LENGTH)
    add_invalid("pattern", terms.FORMED, valid_format={"regex": terms.PATTERN, "name": "pattern"})
    for name, function, column, threshold in (
        ("mean", "avg", terms.MEAN, _between(*terms.MEAN_BOUNDS)),
        ("maximum", "max", terms.MAXIMUM, {"must_be_less_than_or_equal": terms.MAXIMUM_BOUND}),
    ):
        check = {"name": name, "function": function, "threshold": threshold}
        columns[column].append({"aggregate": check})
    return {
        "dataset": "default/default/lineitem",
        "columns": [
            {"name": column, **_type(kind), "checks": columns[column]} for column, kind in terms.TYPES.items()
        ],
        "checks": _table_checks(scale),
    }


def _type(kind: str) -> dict[str, Any]:
    if not kind.startswith("decimal"):
        return {"data_type": kind}
    precision, scale = kind.removeprefix("decimal(").removesuffix(")").split(",")
    return {"data_type": "decimal", "numeric_precision": int(precision), "numeric_scale": int(scale)}


def _table_checks(scale: float) -> Checks:
    broken = terms.broken_rows("{column} RLIKE '{pattern}'")
    rows = (f"positive:{terms.POSITIVE}", "order", *(f"dates:{column}" for column in terms.DATES))
    late = f"CASE WHEN max({terms.FRESH}) >= DATE '{terms.FRESH_SINCE}' THEN 0 ELSE 1 END"
    repeated = f"100.0 * (count(*) - count(DISTINCT {terms.REPEATED})) / count(*)"
    expressions: list[tuple[str, str, dict[str, Any]]] = [
        *((name, f"count(CASE WHEN {broken[name]} THEN 1 END)", {"must_be": 0}) for name in rows),
        ("fresh", late, {"must_be": 0}),
        ("distinct", f"count(DISTINCT {terms.DISTINCT})", _between(*terms.distinct_bounds(scale))),
        ("repeated", repeated, {"must_be_less_than_or_equal": terms.REPEATED_PERCENT}),
    ]
    return [
        {"schema": {"name": "schema"}},
        {"row_count": {"name": "rows", "threshold": _between(*terms.row_bounds(scale))}},
        {"duplicate": {"name": "key", "columns": list(terms.KEY)}},
        *(
            {"metric": {"name": name, "qualifier": name, "expression": expression, "threshold": threshold}}
            for name, expression, threshold in expressions
        ),
    ]


def _between(least: float, greatest: float) -> dict[str, Any]:
    return {"must_be_between": {"greater_than_or_equal": least, "less_than_or_equal": greatest}}
