"""DQX of Databricks Labs, on Spark alone. It has no form for the share of repeated values.

Its engine asks a Databricks workspace whether it is there, and nothing else that these rules need: a stand-in
says yes. The number of broken rows of each rule comes from its observer.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

from databricks.labs.dqx import check_funcs
from databricks.labs.dqx.engine import DQEngineCore
from databricks.labs.dqx.metrics_observer import DQMetricsObserver
from databricks.labs.dqx.rule import DQDatasetRule, DQRowRule
from pyspark.sql import functions as f

from spark import terms

_WORKSPACE = SimpleNamespace(
    config=SimpleNamespace(_product_info=("dqx", "")),
    clusters=SimpleNamespace(select_spark_version=lambda: "4.0"),
)


def build(
    place: str, scale: float, _variant: str, session: Any
) -> tuple[tuple[str, ...], Callable[[], list[str]]]:
    rules = _rules(scale)
    clauses = {rule.name: name for name, rule in rules}
    assert len(clauses) == len(rules)

    def run() -> list[str]:
        engine = DQEngineCore(_WORKSPACE, session, observer=DQMetricsObserver(name="c40"))
        frame, observation = engine.apply_checks(session.read.parquet(place), [rule for _, rule in rules])
        frame.select("_errors").write.format("noop").mode("overwrite").save()
        counted = json.loads(observation.get["check_metrics"])
        assert {count["check_name"] for count in counted} == set(clauses)
        return sorted({clauses[count["check_name"]] for count in counted if count["error_count"]})

    return tuple(dict.fromkeys(name for name, _ in rules)), run


def _rules(scale: float) -> list[tuple[str, Any]]:
    rules: list[tuple[str, Any]] = []

    def add(name: str, kind: Any, function: Any, **words: Any) -> None:
        place = {key: words.pop(key) for key in ("column", "columns") if key in words}
        named = f"{name}#{len(rules)}"
        rule = kind(
            name=named, criticality="error", check_func=function, check_func_kwargs=words, **place
        )  # fmt: skip
        rules.append((name, rule))

    def row(name: str, function: Any, column: str, **words: Any) -> None:
        add(name, DQRowRule, function, column=column, **words)

    def aggregate(name: str, kind: str, column: str, least: Any = None, greatest: Any = None) -> None:
        lower, upper = check_funcs.is_aggr_not_less_than, check_funcs.is_aggr_not_greater_than
        for function, limit in ((lower, least), (upper, greatest)):
            if limit is not None:
                add(name, DQDatasetRule, function, column=column, aggr_type=kind, limit=limit)

    columns = ", ".join(f"{column} {kind}" for column, kind in terms.TYPES.items())
    add("schema", DQDatasetRule, check_funcs.has_valid_schema, expected_schema=columns, strict=True)
    aggregate("rows", "count", "*", *terms.row_bounds(scale))
    for column in terms.COLUMNS:
        row(f"null:{column}", check_funcs.is_not_null, column)
    add("key", DQDatasetRule, check_funcs.is_unique, columns=list(terms.KEY))
    for column, (low, high) in terms.RANGES.items():
        if high is None:
            row(f"range:{column}", check_funcs.is_not_less_than, column, limit=int(low))
        else:
            bounds = {"min_limit": Decimal(low), "max_limit": Decimal(high)}
            row(f"range:{column}", check_funcs.is_in_range, column, **bounds)
    for column, values in terms.ENUMS.items():
        row(f"enum:{column}", check_funcs.is_in_list, column, allowed=[f"'{value}'" for value in values])
    row("pattern", check_funcs.regex_match, terms.FORMED, regex=terms.PATTERN)
    expressions = {
        f"positive:{terms.POSITIVE}": f"{terms.POSITIVE} > 0",
        "min_length": f"length({terms.TEXT}) >= {terms.MIN_LENGTH}",
        "max_length": f"length({terms.TEXT}) <= {terms.MAX_LENGTH}",
        "order": f"{terms.EARLIER} <= {terms.LATER}",
    }
    for name, expression in expressions.items():
        add(name, DQRowRule, check_funcs.sql_expression, expression=expression)
    for column, days in terms.DATES.items():
        first, last = (dt.date.fromisoformat(day) for day in days)
        row(f"dates:{column}", check_funcs.is_in_range, column, min_limit=first, max_limit=last)
    aggregate("fresh", "max", terms.FRESH, f.lit(dt.date.fromisoformat(terms.FRESH_SINCE)))
    aggregate("mean", "avg", terms.MEAN, *terms.MEAN_BOUNDS)
    aggregate("maximum", "max", terms.MAXIMUM, greatest=terms.MAXIMUM_BOUND)
    aggregate("distinct", "count_distinct", terms.DISTINCT, *terms.distinct_bounds(scale))
    return rules
