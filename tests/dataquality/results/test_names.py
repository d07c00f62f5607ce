"""Kept results are found again by the names of their clauses when a rule or a column has moved."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from dq.contracts.check_result import CheckResult, Status
from dq.contracts.model import Contract, clause_namer
from dq.contracts.outcome import Location, Severity
from dq.contracts.yaml.parse import parse
from dq.dataquality import results as check_runs
from dq.operations.check import load_history
from dq.store import Store, open_store

NOON = datetime(2026, 5, 10, 12, tzinfo=UTC)
HEAD = "apiVersion: v3.2.0\nkind: DataContract\nid: shop\nversion: 1.0.0\nschema:\n  - name: orders\n"
COLUMN = "    properties: [{name: id, logicalType: integer}]\n"
MOST = "      - {id: most, metric: rowCount, mustBeLessThan: 9}\n"
BAND = "      - {id: usual, metric: rowCount, mustBeGreaterThan: 0}\n"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = open_store(f"sqlite:///{tmp_path}/dq.db")
    yield made
    made.close()


def contract(*rules: str) -> Contract:
    parsed = parse(f"{HEAD}    quality:\n{''.join(rules)}{COLUMN}".encode(), "shop.odcs.yaml")
    assert parsed.contract is not None
    return parsed.contract


def counted(path: str, rows: int, name: str) -> CheckResult:
    told = {"observed": f"{rows} rows", "allowed": "", "message": "", "at": Location("shop.odcs.yaml")}
    return CheckResult(
        "row_count", path, "orders", "", Status.PASS, Severity.ERROR, **told, value=rows, name=name
    )  # type: ignore[arg-type]


def keep(store: Store, of: Contract, *, named: bool = True, hours: int = 1) -> None:
    """A run that counted 1 row for the first rule, 2 for the second, and so on."""
    [one] = of.objects
    name = clause_namer(one)
    paths = [rule.path() for rule in one.quality]
    results = [counted(path, at, name(path) if named else "") for at, path in enumerate(paths, 1)]
    with store.write() as tx:
        check_runs.save_run(
            tx, contract="shop", object="orders", version="1.0.0", scope="table", results=results, jobs=1,
            now=NOON - timedelta(hours=hours),
        )  # fmt: skip


def known(store: Store, of: Contract) -> dict[str, list[int]]:
    """What was counted for each rule of a contract, newest first, by its id."""
    [one] = of.objects
    ids = {rule.path(): rule.id or "" for rule in one.quality}
    found: dict[str, list[int]] = {}
    for each in load_history(store, of, one):
        found.setdefault(ids[each.clause], []).append(each.rows)  # type: ignore[union-attr]
    return found


def test_a_rule_that_moved_keeps_its_history(store: Store) -> None:
    keep(store, contract(MOST, BAND))

    assert known(store, contract(BAND, MOST)) == {"most": [1], "usual": [2]}


def test_a_rule_that_is_gone_gives_its_history_to_no_other(store: Store) -> None:
    keep(store, contract(MOST, BAND))

    assert known(store, contract(BAND)) == {"usual": [2]}


def test_results_of_an_older_dq_are_found_by_their_paths(store: Store) -> None:
    keep(store, contract(MOST, BAND), named=False, hours=2)
    keep(store, contract(MOST, BAND))

    assert known(store, contract(MOST, BAND)) == {"most": [1, 1], "usual": [2, 2]}


def test_a_rule_whose_id_is_a_number_is_not_taken_for_the_one_at_that_place() -> None:
    odd = contract(MOST.replace("most", "1"), "      - {metric: rowCount, mustBeLessThan: 7}\n")
    [one] = odd.objects
    name = clause_namer(one)

    assert len({name(rule.path()) for rule in one.quality}) == 2
