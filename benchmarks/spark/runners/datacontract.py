"""datacontract-cli as a library on a Spark view, with the very contract, where it has words for it.

It knows neither a percentage of duplicates nor the age of a date at a given time, which become SQL rules; the
word that only dq knows is left out.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml
from datacontract.data_contract import DataContract

from spark import terms

_FILE = Path(__file__).parent.parent.parent / "c40.odcs.yaml"
# The way to a session of one's own: it is handed in, and no workspace is asked.
_SERVER = {
    "server": "local",
    "type": "databricks",
    "host": "local",
    "catalog": "spark_catalog",
    "schema": "default",
}

_FRESH = (
    f"SELECT count(*) FROM (SELECT max({terms.FRESH}) AS newest FROM lineitem) AS t"
    f" WHERE newest < DATE '{terms.FRESH_SINCE}'"
)
_REPEATED = f"SELECT 100.0 * (count(*) - count(DISTINCT {terms.REPEATED})) / count(*) FROM lineitem"


def build(
    place: str, scale: float, _variant: str, session: Any
) -> tuple[tuple[str, ...], Callable[[], list[str]]]:
    logging.disable(logging.WARNING)
    text = yaml.safe_dump(_contract(scale), sort_keys=False)

    def run() -> list[str]:
        session.read.parquet(place).createOrReplaceTempView("lineitem")
        result = DataContract(data_contract_str=text, server="local", spark=session).test()
        unknown = [check.reason for check in result.checks if not _has_answer(check)]
        if unknown:
            raise AssertionError(f"not tested: {unknown[0]}")
        return sorted({_clause(check) for check in result.checks if _ENDS[check.result.value]})

    return terms.ALL, run


# Whether the clause is broken. A warning stands at types that it could not compare in full.
_ENDS = {"passed": False, "warning": False, "failed": True}
_QUERIES = ("order", "mean", "maximum", "distinct", "fresh", "repeated")
_BY_TYPE = {
    "field_min_length": "min_length",
    "field_max_length": "max_length",
    "field_regex": "pattern",
    "primary_key_unique": "key",
    "row_count": "rows",
}


def _has_answer(check: Any) -> bool:
    """Return True if a check has an answer; what cannot be evaluated has failed, too."""
    return check.result.value in _ENDS and not str(check.reason).startswith("Error")


def _clause(check: Any) -> str:
    kind, column = check.type, check.field
    if kind == "model_quality_sql":
        return _QUERIES[int(check.key.rpartition("_")[2]) - 1]
    if kind == "field_required":
        return f"null:{column}"
    if kind == "field_invalid_values":
        return f"enum:{column}"
    if kind in ("field_minimum", "field_maximum", "field_not_equal"):
        named = "positive" if column == terms.POSITIVE else "dates" if column in terms.DATES else "range"
        return f"{named}:{column}"
    return _BY_TYPE.get(kind, "schema")


def _contract(scale: float) -> dict[str, Any]:
    document = yaml.safe_load(_FILE.read_text("utf-8"))
    document["apiVersion"] = "v3.1.0"
    del document["slaProperties"]
    document["servers"] = [_SERVER]
    (schema_object,) = document["schema"]
    del schema_object["customProperties"]
    for rule in schema_object["quality"]:
        if rule.get("metric") == "rowCount":
            rule["mustBeBetween"] = list(terms.row_bounds(scale))
        if rule.get("name") == "suppliers":
            rule["mustBeBetween"] = list(terms.distinct_bounds(scale))
        if "query" in rule:
            rule["query"] = rule["query"].replace("{object}", "lineitem")
    for prop in schema_object["properties"]:
        if prop["name"] == terms.REPEATED:
            del prop["quality"]
    schema_object["quality"] += [
        {"name": "fresh", "type": "sql", "query": _FRESH, "mustBe": 0},
        {
            "name": "repeated",
            "type": "sql",
            "query": _REPEATED,
            "mustBeLessOrEqualTo": terms.REPEATED_PERCENT,
        },
    ]
    return document
