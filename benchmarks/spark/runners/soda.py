"""Soda Core on a Spark DataFrame. What SodaCL has no form for is an SQL expression, which Soda puts into the
query that computes all its numbers.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from soda.scan import Scan

from spark import terms

_VIEW, _SOURCE = "lineitem", "spark_df"


def build(
    place: str, scale: float, _variant: str, session: Any
) -> tuple[tuple[str, ...], Callable[[], list[str]]]:
    checks = _checks(scale)
    # JSON is YAML, too.
    text = json.dumps({f"checks for {_VIEW}": [check for _, check in checks]})

    def run() -> list[str]:
        session.read.parquet(place).createOrReplaceTempView(_VIEW)
        scan = Scan()
        scan.set_data_source_name(_SOURCE)
        scan.add_spark_session(session, data_source_name=_SOURCE)
        scan.add_sodacl_yaml_str(text)
        scan.execute()
        outcomes = {check["name"]: check["outcome"] for check in scan.get_scan_results()["checks"]}
        assert set(outcomes) == {name for name, _ in checks}, scan.get_error_logs_text()
        return sorted(name for name, outcome in outcomes.items() if outcome != "pass")

    return tuple(name for name, _ in checks), run


def _checks(scale: float) -> list[tuple[str, Any]]:
    checks: list[tuple[str, Any]] = []

    def add(name: str, condition: str, **settings: Any) -> None:
        checks.append((name, {condition: {"name": name, **settings}}))

    def add_expression(name: str, expression: str, bound: str) -> None:
        metric = name.replace(":", "_") + "_number"
        add(name, f"{metric} {bound}", **{f"{metric} expression": expression})

    checks.append(("schema", {"schema": {"name": "schema", "fail": {"when wrong column type": terms.TYPES}}}))
    add("rows", "row_count between {} and {}".format(*terms.row_bounds(scale)))
    for column in terms.COLUMNS:
        add(f"null:{column}", f"missing_count({column}) = 0")
    add("key", f"duplicate_count({', '.join(terms.KEY)}) = 0")
    for column, (low, high) in terms.RANGES.items():
        bounds = {"valid min": float(low)} | ({"valid max": float(high)} if high is not None else {})
        add(f"range:{column}", f"invalid_count({column}) = 0", **bounds)
    for column, values in terms.ENUMS.items():
        add(f"enum:{column}", f"invalid_count({column}) = 0", **{"valid values": list(values)})
    add("min_length", f"invalid_count({terms.TEXT}) = 0", **{"valid min length": terms.MIN_LENGTH})
    add("max_length", f"invalid_count({terms.TEXT}) = 0", **{"valid max length": terms.MAX_LENGTH})
    add("pattern", f"invalid_count({terms.FORMED}) = 0", **{"valid regex": terms.PATTERN})
    broken = terms.broken_rows("{column} RLIKE '{pattern}'")
    for name in (f"positive:{terms.POSITIVE}", "order", *(f"dates:{column}" for column in terms.DATES)):
        add_expression(name, f"count(CASE WHEN {broken[name]} THEN 1 END)", "= 0")
    late = f"CASE WHEN max({terms.FRESH}) >= DATE '{terms.FRESH_SINCE}' THEN 0 ELSE 1 END"
    add_expression("fresh", late, "= 0")
    add("mean", "avg({}) between {} and {}".format(terms.MEAN, *terms.MEAN_BOUNDS))
    add("maximum", f"max({terms.MAXIMUM}) <= {terms.MAXIMUM_BOUND}")
    distinct = "between {} and {}".format(*terms.distinct_bounds(scale))
    add_expression("distinct", f"count(DISTINCT {terms.DISTINCT})", distinct)
    repeated = f"100.0 * (count(*) - count(DISTINCT {terms.REPEATED})) / count(*)"
    add_expression("repeated", repeated, f"<= {terms.REPEATED_PERCENT}")
    return checks
