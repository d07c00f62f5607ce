"""Ten metrics of dq's own engine, one of them by groups: as the contract says them, and written by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql.functions import expr

from dq.contracts.access.access_policy import build_access_policy
from dq.contracts.check_result import GroupResult
from dq.contracts.yaml.parse import parse
from dq.dataquality.check import check
from dq.dataquality.request import Request
from dq.dataquality.spark.dataset import locate
from spark.contract import text

# Column -> the metrics on it; every bound holds on any table. The order is that of the numbers by hand.
METRICS = {
    "l_discount": ["{check: min, mustBeGreaterOrEqualTo: 0}"],
    "l_tax": ["{check: max, mustBeLessThan: 1}"],
    "l_quantity": ["{check: mean, mustBeGreaterThan: 0}", "{check: stddev, mustBeGreaterThan: 0}"],
    "l_extendedprice": [
        "{check: sum, mustBeGreaterThan: 0}",
        "{check: quantile, arguments: {q: 0.95}, mustBeGreaterThan: 0}",
        "{check: sum, arguments: {by: l_returnflag}, mustBeGreaterThan: 0}",
    ],
    "l_suppkey": ["{check: distinctCount, mustBeGreaterThan: 0}"],
    "l_orderkey": ["{check: uniqueRatio, mustBeGreaterOrEqualTo: 0}"],
    "l_linenumber": ["{check: sequenceGaps, mustBe: 0}"],
}
_HEAD = "apiVersion: v3.2.0\nkind: DataContract\nid: metrics\nversion: 1.0.0\n"
_BY_HAND = (
    "min(l_discount)", "max(l_tax)", "sum(l_quantity) / count(l_quantity)", "stddev_samp(l_quantity)",
    "sum(l_extendedprice)", "percentile_approx(l_extendedprice, 0.95, 10000)",
)  # fmt: skip


def build(
    place: str, scale: float, variant: str, session: Any
) -> tuple[tuple[str, ...], Callable[[], list[str]]]:
    run = (_by_hand if variant == "hand" else _by_contract)(place, scale, session)
    return (), run


def _by_contract(place: str, scale: float, session: Any) -> Callable[[], list[str]]:
    types = {"l_suppkey": "integer", "l_orderkey": "integer", "l_linenumber": "integer"}
    properties = "".join(
        f"      - {{name: {column}, logicalType: {types.get(column, 'number')}, quality: ["
        + ", ".join(f"{{type: custom, engine: dq, implementation: {metric}}}" for metric in metrics)
        + "]}\n"
        for column, metrics in METRICS.items()
    )
    # Its server is that of the other contract.
    servers = text(scale).partition("servers:")[2].partition("\nschema:")[0]
    parsed = parse(
        f"{_HEAD}servers:{servers}\nschema:\n  - name: lineitem\n    properties:\n{properties}"
        "      - {name: l_returnflag, logicalType: string}\n".encode(),
        "metrics.odcs.yaml",
    ).contract
    assert parsed is not None
    allowed = build_access_policy(Path.cwd(), [place], names=["C40_DATA"], environment={"C40_DATA": place})
    data = locate(parsed, parsed.objects[0], None, allowed)
    names = sorted(
        {metric.partition("check: ")[2].split(",")[0] for metrics in METRICS.values() for metric in metrics}
    )
    checks = [
        {"distinctCount": "distinct_count", "uniqueRatio": "unique_ratio"}.get(metric, metric)
        for metric in names
    ]
    checks = ["sequence_gaps" if metric == "sequenceGaps" else metric for metric in checks]

    def run() -> list[str]:
        report = check(Request(parsed, data, spark=session, rules=checks))
        values = {
            f"{result.property} {result.check}" + " by ".join(["", *map(str, group.key)]): group.value
            for result in report.results
            for group in result.groups or (GroupResult((), result.status, "", result.value),)
        }
        run.details = {"passes": report.passes, "numbers": values}  # type: ignore[attr-defined]
        if any(result.status != "pass" for result in report.results):
            raise AssertionError(next(result.message for result in report.results if result.status != "pass"))
        return []

    return run


def _by_hand(place: str, _scale: float, session: Any) -> Callable[[], list[str]]:
    frame = session.read.parquet(place)

    def run() -> list[str]:
        row = frame.agg(*(expr(result) for result in _BY_HAND)).collect()[0]
        flags = frame.groupBy("l_returnflag").agg(expr("sum(l_extendedprice)")).collect()
        suppliers = frame.select("l_suppkey").distinct().count()
        orders = frame.groupBy("l_orderkey").count()
        single = orders.agg(expr("count(CASE WHEN count = 1 THEN 1 END) / sum(count)")).collect()[0][0]
        lines = frame.agg(expr("max(l_linenumber) - min(l_linenumber) + 1")).collect()[0][0]
        missing = lines - frame.select("l_linenumber").distinct().count()
        run.details = {  # type: ignore[attr-defined]
            "passes": 6,
            "numbers": {
                "l_discount min": float(row[0]),
                "l_tax max": float(row[1]),
                "l_quantity mean": float(row[2]),
                "l_quantity stddev": float(row[3]),
                "l_extendedprice sum": float(row[4]),
                "l_extendedprice quantile": float(row[5]),
                **{f"l_extendedprice sum by {flag}": float(total) for flag, total in flags},
                "l_suppkey distinct_count": float(suppliers),
                "l_orderkey unique_ratio": float(single),
                "l_linenumber sequence_gaps": float(missing),
            },
        }
        return []

    return run
