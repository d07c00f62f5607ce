"""dq status: a promise, a product, a domain or all, for people, machines and pages."""

from __future__ import annotations

import os
from datetime import UTC, datetime

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
    assert (orders["trend"], orders["usual_minutes"], orders["burning"]) == (None, None, [])
    assert orders["present"] == 1.0
