"""datacontract-cli as a library on a Spark view, with the very contract, where it has words for it.

It does not know a percentage of duplicates nor freshness of a date, which become SQL rules; the two words
that only dq knows are left out.
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
_SERVER = {"server": "local", "type": "databricks", "host": "local", "catalog": "spark_catalog", "schema": "default"}  # fmt: skip
_REPEATED = (
    f"SELECT 100.0 * (count(*) - count(DISTINCT {terms.REPEATED})) / count(*) FROM lineitem"
)


def build(
    place: str, scale: float, _variant: str, session: Any
) -> tuple[tuple[str, ...], Callable[[], list[str]]]:
    logging.disable(logging.WARNING)
    text = yaml.safe_dump(_contract(scale), sort_keys=False)

    def run() -> list[str]:
        session.read.parquet(place).createOrReplaceTempView("lineitem")
        found = DataContract(data_contract_str=text, server="local", spark=session).test()
        broken = set()
        for one in found.checks:
            print(one.type, one.key, one.name, one.field, one.result, one.reason)
        return sorted(broken)

    return terms.ALL, run


def _contract(scale: float) -> dict[str, Any]:
    made = yaml.safe_load(_FILE.read_text("utf-8"))
    made["apiVersion"] = "v3.1.0"
    made["servers"] = [_SERVER]
    (one,) = made["schema"]
    del one["customProperties"]
    for rule in one["quality"]:
        if rule.get("metric") == "rowCount":
            rule["mustBeBetween"] = list(terms.row_bounds(scale))
        if rule.get("name") == "suppliers":
            rule["mustBeBetween"] = list(terms.distinct_bounds(scale))
        if "query" in rule:
            rule["query"] = rule["query"].replace("{object}", "lineitem")
    for prop in one["properties"]:
        if prop["name"] == terms.REPEATED:
            del prop["quality"]
    one["quality"].append(
        {"name": "repeated", "type": "sql", "query": _REPEATED, "mustBeLessOrEqualTo": terms.REPEATED_PERCENT}
    )
    return made
