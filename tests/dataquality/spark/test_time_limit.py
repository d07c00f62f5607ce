"""A rule that takes too long is an error of its own, and its siblings keep their verdicts."""

from __future__ import annotations

import time

import pytest

from dq.contracts.check_result import Status
from dq.contracts.model import Contract
from dq.contracts.yaml.parse import parse
from dq.dataquality.check import check
from dq.dataquality.request import Request

HEAD = "apiVersion: v3.2.0\nkind: DataContract\nid: shop\nversion: 1.0.0\n"


def contract(schema: str) -> Contract:
    parsed = parse((HEAD + schema).encode(), "shop.odcs.yaml")
    assert parsed.contract is not None, parsed.findings
    return parsed.contract


pytestmark = pytest.mark.spark

# 3,000 rows with one key: 27,000,000,000 rows of a join that could not be refused.
SLOW = (
    "SELECT count(*) FROM {object} a JOIN {object} b ON a.k = b.k JOIN {object} c ON b.k = c.k"
    " WHERE a.n < c.n"
)
JOINED = contract(
    """
schema:
  - name: t
    properties:
      - {name: n, logicalType: integer, required: true, logicalTypeOptions: {minimum: 5}}
      - {name: k, logicalType: integer}
    quality:
      - {id: slow, type: sql, query: "%s", mustBe: 0}
      - {id: quick, type: sql, query: "SELECT max(n) FROM {object}", mustBe: 2999}
""".replace("%s", SLOW)
)


def _statuses(report):
    return {f"{one.check} {one.property}".strip(): one.status for one in report.results}


def test_a_query_that_takes_too_long_is_an_error_and_its_siblings_keep_their_verdicts(spark):
    frame = spark.range(3000).selectExpr("CAST(id AS INT) AS n", "1 AS k").coalesce(1)

    begun = time.monotonic()
    report = check(Request(JOINED, frame, limit_seconds=2.0))

    assert time.monotonic() - begun < 300
    (late,) = report.with_status(Status.ERROR)
    assert late.clause == "schema[0].quality[0]"
    assert "stopped after 2 s, the time limit of one rule (setting rule_seconds)" in late.message
    statuses = _statuses(report)
    assert (statuses["bounds n"], statuses["required n"]) == (Status.FAIL, Status.PASS)
    assert [one.status for one in report.results if one.check == "sql_rule"] == [Status.ERROR, Status.PASS]


SHARED = contract("""
schema:
  - name: t
    properties:
      - {name: n, logicalType: integer, required: true}
      - {name: v, logicalType: string, logicalTypeOptions: {pattern: "^user-[0-9]+(-[a-z]+)?$"}}
""")


def test_a_pattern_in_the_shared_pass_costs_only_itself(spark):
    frame = spark.range(8_000_000).selectExpr("CAST(id AS INT) AS n", "concat('user-', id) AS v")

    statuses = _statuses(check(Request(SHARED, frame.coalesce(1), limit_seconds=0.3)))

    assert (statuses["required n"], statuses["pattern v"]) == (Status.PASS, Status.ERROR)


def test_the_properties_of_the_session_are_as_before(spark):
    context = spark.sparkContext
    context.setLocalProperty("spark.job.interruptOnCancel", "false")
    context.addJobTag("mine")
    try:
        check(
            Request(JOINED, spark.range(5).selectExpr("CAST(id AS INT) AS n", "1 AS k"), limit_seconds=60.0)
        )

        assert list(context.getJobTags()) == ["mine"]
        assert context.getLocalProperty("spark.job.interruptOnCancel") == "false"
    finally:
        context.clearJobTags()
        context.setLocalProperty("spark.job.interruptOnCancel", None)
