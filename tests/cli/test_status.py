"""dq status: a promise, a product, a domain or all, for people, machines and pages."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from fakes.command import BEGIN, Place, contract

NOW = "2026-05-12T08:00:00Z"


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Two domains: orders came twice, sales once of twice, and stock is of another domain and never came."""
    made = Place(tmp_path_factory.mktemp("status"))
    made.put("registry/dq-policy.yaml", "{}")
    for name, domain in (("orders", "shop"), ("sales", "shop"), ("stock", "house")):
        made.put(f"registry/{name}.odcs.yaml", contract(name) + f"domain: {domain}\n")
    (made.folder / "lake").mkdir()
    assert made.dq("watch", "registry", "--as-of", BEGIN, "--channel", "console").code == 0
    for name, days in (("orders", (10, 11)), ("sales", (10,))):
        for day in days:
            marker = made.put(f"lake/{name}/day=2026-05-{day}/_SUCCESS", "")
            os.utime(marker, (datetime(2026, 5, day + 1, 5, tzinfo=UTC).timestamp(),) * 2)
    made.dq("watch", "registry", "--as-of", NOW, "--channel", "console")
    return made


def status(registry: Place, *more: str):
    return registry.dq("status", "registry", "--as-of", NOW, *more)


def test_a_domain_is_a_line(registry: Place) -> None:
    found = status(registry, "--by", "domain", "--format", "json").json["groups"]

    assert [(one["name"], one["products"], one["good"], one["bad"]) for one in found] == [
        ("house", 1, 0, 2),
        ("shop", 2, 3, 1),
    ]


@pytest.mark.parametrize(("by", "names"), [("all", ["all"]), ("product", ["orders", "sales", "stock"])])
def test_products_and_all_are_lines_too(registry: Place, by: str, names: list[str]) -> None:
    found = status(registry, "--by", by)

    assert found.code == 0
    assert [name for name in names if name not in found.out] == []
    assert "Open incidents: 2" in found.out


def test_one_domain_and_one_product_are_shown_alone(registry: Place) -> None:
    domain = status(registry, "--domain", "shop", "--format", "json").json
    product = status(registry, "--product", "sales", "--format", "json").json

    assert [one["contract"] for one in domain["deliveries"]] == ["orders", "sales"]
    assert [one["contract"] for one in product["deliveries"]] == ["sales"]
    assert [one["key"] for one in product["incidents"]] == ["sales/sales/daily"]


def test_a_domain_that_is_none_is_a_mistake_and_not_an_empty_page(registry: Place) -> None:
    assert status(registry, "--domain", "shpo").code == 2


def test_a_page_of_markdown(registry: Place) -> None:
    found = status(registry, "--format", "markdown")

    assert found.out.splitlines()[0] == "## Deliveries"
    assert "| orders/daily | 100.0% | 90% | 0 misses in 2 cycles" in found.out


def test_machines_read_what_people_do(registry: Place) -> None:
    (orders,) = status(registry, "--product", "orders", "--format", "json").json["deliveries"]

    assert orders["streak"] == {"length": 2, "good": True}
    assert (orders["trend"], orders["usual_minutes"], orders["burn_rates"]) == (None, None, [])
    assert orders["availability"] == 1.0


def test_no_share_is_shown_where_no_delivery_counts(registry: Place) -> None:
    # As after the tutorial, whose data is of 2013: all cycles are older than the window of 90 days.
    arguments = ("--product", "stock", "--as-of", "2027-05-12T08:00:00Z")
    lines = registry.dq("status", "registry", *arguments).out.splitlines()
    markdown = registry.dq("status", "registry", *arguments, "--format", "markdown").out
    (stock,) = registry.dq("status", "registry", *arguments, "--format", "json").json["deliveries"]

    assert lines[1:5] == [
        "  stock/daily  ○○",
        "      no deliveries counted in the last 90 d, objective 90%; the last was due 2026-05-12 06:00 UTC",
        "      2 missed in a row",
        "      missing 2026-05-11 06:00 UTC",
    ]
    assert "| stock/daily | - | 90% | no deliveries counted in the window | 2 missed in a row |" in markdown
    assert (stock["attainment"], stock["availability"], stock["budget"]) == (
        None,
        None,
        "no deliveries counted in the window",
    )


def test_a_promise_that_was_never_evaluated_says_so(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.put("registry/orders.odcs.yaml", contract("orders"))

    found = place.dq("status", "registry", "--as-of", NOW).out.splitlines()

    assert found[1:4] == ["  orders/daily", "      no deliveries evaluated yet, objective 90%", ""]
