"""What SQL of a contract costs and does is bounded, and the gate and the check bound it alike (S9).

Of queries that only the data shows to be expensive, `tests/dataquality/spark/test_time_limit.py` tells.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from dq.cli.main import run
from dq.contracts.model import Contract
from dq.contracts.sql.guard import RejectedSql, ValidatedSql, validate_query
from dq.contracts.yaml.parse import parse
from dq.dataquality.checks import built_in
from dq.dataquality.clauses.kind import clauses_of

CASES = Path(__file__).parents[1] / "contracts" / "sql"
HOSTILE, LEGITIMATE, EXPENSIVE = (
    yaml.safe_load((CASES / f"{name}.yaml").read_text()) for name in ("hostile", "legitimate", "expensive")
)
HEAD = """\
apiVersion: v3.2.0
kind: DataContract
id: shop-NUMBER
version: 1.0.0
status: draft
schema:
  - name: orders
    physicalName: shop_orders
    properties:
      - {name: id, logicalType: integer}
    quality:
"""
REFUSING = {"sql-refused", "sql-not-read-only", "placeholder-unknown", "sql-without-query"}


def contract(query: str, number: int = 0) -> str:
    rule = json.dumps({"type": "sql", "mustBe": 0, "query": query})  # JSON is YAML
    return HEAD.replace("NUMBER", str(number)) + f"      - {rule}\n"


def refused_by_check(text: str) -> str:
    made = parse(text.encode(), "shop.odcs.yaml").contract
    assert isinstance(made, Contract)
    (clause,) = clauses_of(made, made.objects[0], {"sql_rule": built_in()["sql_rule"]})
    return clause.refusal_reason


@pytest.fixture(scope="module")
def findings(tmp_path_factory: pytest.TempPathFactory) -> Callable[[list[str]], list[dict[str, Any]]]:
    """The findings of the gate that refuse each of some queries, one contract for each."""

    def judged(queries: list[str]) -> list[list[dict[str, Any]]]:
        folder = tmp_path_factory.mktemp("gate")
        for number, query in enumerate(queries):
            (folder / f"shop-{number}.odcs.yaml").write_text(contract(query, number))
        run(["validate", str(folder), "--report", f"json={folder / 'found.json'}"])
        found = json.loads((folder / "found.json").read_text())["findings"]
        refusing = [one for one in found if one["rule"] in REFUSING]
        return [
            [one for one in refusing if one["contract"] == f"shop-{number}"] for number in range(len(queries))
        ]

    return judged


def test_there_are_enough_of_each() -> None:
    assert (len(HOSTILE) >= 133, len(LEGITIMATE) >= 53, len(EXPENSIVE) >= 40) == (True, True, True)


@pytest.mark.parametrize("case", EXPENSIVE, ids=[case["does"] for case in EXPENSIVE])
def test_an_expensive_query_is_refused_with_what_to_write(case: dict[str, str]) -> None:
    found = validate_query(case["query"], own_table="orders", tables={"orders": "_dq_rows"}, property=None)

    assert isinstance(found, RejectedSql), found
    assert found.hint.endswith(".")


@pytest.mark.parametrize(
    "cases", [HOSTILE, EXPENSIVE, LEGITIMATE], ids=["hostile", "expensive", "legitimate"]
)
def test_the_gate_and_the_check_refuse_the_same(findings: Any, cases: list[dict[str, str]]) -> None:
    queries = [case["query"].replace("shop.orders_v1", "shop_orders") for case in cases]

    at_gate = [bool(found) for found in findings(queries)]

    at_check = [bool(refused_by_check(contract(query))) for query in queries]
    assert [query for query, one, other in zip(queries, at_gate, at_check, strict=True) if one != other] == []
    assert set(at_check) == {cases is not LEGITIMATE}


def test_the_gate_says_it_at_the_line_once_and_with_what_to_write(findings: Any) -> None:
    (found,) = findings(["SELECT count(*) FROM {object} a CROSS JOIN {object} b"])

    (one,) = found
    assert (one["rule"], one["line"]) == ("sql-refused", 12)
    assert one["message"] == "the query is refused: a join without ON or USING is not allowed."
    assert one["hint"] == "Write JOIN … ON a.id = b.id."


# What people write, and what must stay allowed beside the bounds.
ALLOWED = [
    "SELECT count(*) FROM orders a JOIN (SELECT id, max(placed) AS last FROM orders GROUP BY id) b"
    " ON a.id = b.id AND a.placed = b.last",
    "SELECT count(*) FROM (SELECT lower(mail) AS m FROM orders) a JOIN (SELECT mail AS m FROM orders) b"
    " ON a.m = b.m",
    "SELECT count(*) FROM orders a JOIN orders b USING (id, placed)",
    "SELECT count(*) FROM orders a JOIN orders b ON CAST(a.id AS STRING) = b.state",
    "SELECT count(*) FROM orders o WHERE NOT EXISTS"
    " (SELECT 1 FROM orders p WHERE p.id = o.parent AND p.placed <= o.placed)",
    "SELECT count(*) FROM orders o WHERE price > (SELECT avg(p.price) FROM orders p WHERE p.state = o.state)",
    "WITH d AS (SELECT id, count(*) AS n FROM orders GROUP BY id), e AS (SELECT max(n) AS m FROM d)"
    " SELECT max(m) FROM e",
    "SELECT max(gap) FROM (SELECT datediff(placed, lag(placed) OVER (PARTITION BY id ORDER BY placed)) AS gap"
    " FROM orders)",
    "SELECT max(s) FROM (SELECT sum(price) OVER (ORDER BY id ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) AS s"
    " FROM orders)",
    "SELECT count_if(size(filter(items, x -> x LIKE 'a%')) > 1) FROM orders",
    "SELECT max(aggregate(transform(items, x -> length(x)), 0, (a, x) -> a + x)) FROM orders",
    "SELECT count(*) FROM orders WHERE concat(id, '-', parent) IN (SELECT concat_ws('-', id, parent)"
    " FROM orders)",
    "SELECT count(*) FROM orders WHERE mail RLIKE '(?i)^[a-z0-9._%+-]+@[a-z0-9.-]+[.][a-z]{2,}$'",
    "SELECT max(levenshtein(left(mail, 100), left(state, 100))) FROM orders",
    "SELECT count(*) FROM orders WHERE state LIKE 'a%b%c' AND mail NOT LIKE '%test%'",
    "SELECT percentile_approx(price, 0.95) FROM orders",
    "SELECT count(*) FROM orders WHERE state = 'it''s' OR state || 'x' = 'ax'",
    "SELECT count(*) FROM (SELECT explode(items) AS i FROM orders) WHERE i IS NULL",
    "SELECT abs(sum(price) - sum(round(price, 2))) FROM orders",
]


@pytest.mark.parametrize("query", ALLOWED)
def test_ordinary_queries_stay_within_the_bounds(query: str) -> None:
    found = validate_query(query, own_table="orders", tables={"orders": "_dq_rows"}, property=None)

    assert isinstance(found, ValidatedSql), found
