"""Panels of columns: what checks measured, since when it changed, and what it is not compared with."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from dq.contracts.check_result import CheckResult, GroupResult, Status
from dq.contracts.outcome import Location, Severity
from dq.contracts.yaml.parse import parse
from dq.dataquality import results
from dq.dataquality.clauses.foreign_key import ContractSet
from dq.portal.columns import changed_at, column_panels
from dq.portal.contracts import NO_EDGES, VersionChange, VersionImpact, make_card
from dq.portal.product import ObjectFacts, ProductBatch, product
from dq.portal.store_queries import quality
from dq.store.engine import Store, open_store

NOON = datetime(2026, 5, 20, 12, tzinfo=UTC)
TEXT = """\
apiVersion: v3.2.0
kind: DataContract
id: shop
version: 2.0.0
status: active
schema:
  - name: orders
    properties:
      - {name: day, logicalType: date, partitioned: true, partitionKeyPosition: 1}
      - name: amount
        logicalType: number
        required: true
        quality:
          - {name: few, metric: nullValues, unit: percent, mustBeLessThan: 5}
          - {name: mean, type: custom, engine: dq, implementation: {check: mean, mustBeGreaterThan: 0}}
      - {name: address, logicalType: object, properties: [{name: city, logicalType: string}]}
    quality: [{name: whole, metric: rowCount, mustBeGreaterThan: 0}]
"""
AMOUNT = "schema[0].properties[1]"
FEW, MEAN = f"{AMOUNT}.quality[0]", f"{AMOUNT}.quality[1]"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(f"sqlite:///{tmp_path}/dq.db")


def save(store: Store, days: int, values: Mapping[tuple[str, str], float], scope: str = "day={}") -> None:
    """One run on the data of a day, with values by check and clause."""
    rows = [
        CheckResult(check, clause, "orders", "amount" if "properties" in clause else "", Status.PASS,
                    Severity.ERROR, "observed", "allowed", "", Location("shop.odcs.yaml", 1, 1), value=value,
                    fingerprint="mean" if check == "mean" else "")
        for (check, clause), value in values.items()
    ]  # fmt: skip
    at = NOON + timedelta(days=days)
    with store.write() as tx:
        results.save_run(
            tx, contract="shop@2", object="orders", version="2.0.0", scope=scope.format(f"{at:%F}"),
            results=rows, jobs=1, now=at,
        )  # fmt: skip


def facts(store: Store) -> ObjectFacts:
    parsed = parse(TEXT.encode(), "shop.odcs.yaml").contract
    assert parsed is not None
    with store.read() as tx:
        by_object = quality(tx, ["shop@2"], NOON)
    batch = ProductBatch({}, by_object, {}, {}, {}, {}, {}, {})
    near = ContractSet.from_contracts([parsed])
    return product(make_card(parsed, "digest"), parsed, batch, NOON, near, NO_EDGES).objects[0]


def measures(store: Store) -> dict[str, Any]:
    """The measures of the column `amount` by name."""
    panel = next(panel for panel in column_panels(facts(store)).panels if panel["name"] == "amount")
    return {measure["name"]: measure for measure in panel["measures"]}


def test_a_lasting_rise_of_nulls_is_said_with_its_day_and_drawn(store: Store) -> None:
    for days in range(12):
        save(store, days, {("null_values", FEW): 4.5 if days >= 9 else 0.2})

    [share] = measures(store).values()
    assert (share["name"], share["newest"]) == ("NULL share", "4.5%")
    assert share["shift"] == "More NULLs since 2026-05-29: 4.5%, before 0.2%."
    assert 'class="change"' in share["chart"]
    assert share["rows"][0] == ("2026-05-31", "4.5%")
    assert column_panels(facts(store)).changed == (("c1", "amount", share["shift"]),)


def test_a_rise_of_the_newest_check_alone_is_not_called_lasting(store: Store) -> None:
    for days in range(12):
        save(store, days, {("null_values", FEW): 4.5 if days == 11 else 0.2})

    assert measures(store)["NULL share"]["shift"] == (
        "More NULLs in the newest check, 2026-05-31: 4.5%, before 0.2%."
    )


def test_a_single_spike_that_is_over_is_no_lasting_change(store: Store) -> None:
    for days in range(12):
        save(store, days, {("null_values", FEW): 4.5 if days == 9 else 0.2})

    assert measures(store)["NULL share"]["shift"] == "No lasting change in the last 12 checks."
    assert column_panels(facts(store)).changed == ()


def test_a_few_checks_are_not_compared(store: Store) -> None:
    for days, share in enumerate((0.1, 0.1, 40)):
        save(store, days, {("null_values", FEW): share})

    assert measures(store)["NULL share"]["shift"] == "Too few checks to compare: 3 of 8."


def test_nulls_are_a_share_of_the_rows_that_the_same_run_counted(store: Store) -> None:
    required = ("required", f"{AMOUNT}.required")
    save(store, 0, {required: 30, ("row_count", "schema[0].quality[0]"): 1000})

    assert measures(store)["NULL share"]["newest"] == "3%"


def test_nulls_without_counted_rows_are_a_number(store: Store) -> None:
    save(store, 0, {("required", f"{AMOUNT}.required"): 30})

    assert measures(store)["NULLs"]["newest"] == "30"


def test_numbers_of_several_partitions_at_once_are_not_compared_with_those_of_a_day(store: Store) -> None:
    for days in range(3):
        save(store, days, {("mean", MEAN): 20 + days})
    save(store, 3, {("mean", MEAN): 999}, scope="2 partitions")

    assert [row[1] for row in measures(store)["Mean"]["rows"]] == ["22", "21", "20"]


def test_a_measure_is_not_drawn_a_second_time_below_its_rule(store: Store) -> None:
    for days in range(3):
        save(store, days, {("mean", MEAN): 20 + days})

    [panel] = [panel for panel in column_panels(facts(store)).panels if panel["name"] == "amount"]
    assert [rule["lines"] for rule in panel["rules"] if rule["results"]] == [[]]


def test_a_rule_unusual_has_the_measures_that_it_watches(store: Store) -> None:
    for days, share in enumerate((0.1, 0.2)):
        groups = (
            GroupResult(("nullShare",), Status.PASS, "", share),
            GroupResult(("p99",), Status.PASS, "", 7.0),
        )
        row = CheckResult(
            "unusual", FEW, "orders", "amount", Status.PASS, Severity.ERROR, "", "", "",
            Location("shop.odcs.yaml", 1, 1), value=0.9, groups=groups, group_columns=("number",),
            fingerprint="rule",
        )  # fmt: skip
        with store.write() as tx:
            results.save_run(
                tx, contract="shop@2", object="orders", version="2.0.0", scope="table", results=[row], jobs=1,
                now=NOON + timedelta(days=days),
            )  # fmt: skip

    assert measures(store)["NULL share"]["newest"] == "20%"
    [panel] = [panel for panel in column_panels(facts(store)).panels if panel["name"] == "amount"]
    assert "p99" in [line.group for rule in panel["rules"] for line in rule["lines"]]


def test_columns_are_numbered_over_the_page_and_have_the_changes_of_their_own_path(store: Store) -> None:
    changes = [
        VersionChange("1.0.0", "2.0.0", VersionImpact.BREAK, "2026-05-01T00:00:00+00:00", (
            ("type-changed", "orders.amount: type changed."),
            ("type-changed", "orders.amount2: type changed."),
            ("column-removed", "orders.address.city: column removed."),
        )),
    ]  # fmt: skip

    panels = column_panels(facts(store), changes, 5).panels
    assert [panel["id"] for panel in panels] == ["c5", "c6", "c7", "c8"]
    assert [[change["text"] for change in panel["changes"]] for panel in panels] == [
        [], ["type changed."], [], ["column removed."],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("values", "since"),
    [
        ([1.0] * 7 + [2.0], 7),
        ([1.0] * 7 + [2.0, 1.0], None),
        ([1.0] * 6 + [2.0], None),
        ([5.0] * 8 + [1.0] * 4, 8),
        ([1.0, 1.1, 0.9, 1.05, 0.95, 1.0, 1.1, 1.15], None),
        ([0.0] * 30 + [0.001], 30),
        ([], None),
    ],
)
def test_since_when_a_number_differs(values: list[float], since: int | None) -> None:
    assert changed_at(values) == since
