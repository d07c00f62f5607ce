"""The lineage graph on a product's page: two steps in both directions, many neighbours, states by badge."""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from fakes.browser import Ear, axe
from fakes.command import Place, contract
from fakes.strangers import quiet_environment
from playwright.sync_api import Page

from dq.portal.charts import BADGE_START, BADGE_WIDTH
from dq.portal.contracts import ContractCard, Lineage, LineageNode, adjacent_products, lineage
from dq.portal.product import ProductState
from dq.portal.product_page import badge

MAX_PAGE_BYTES = 150_000
AS_OF = "2026-05-31T09:00:00Z"
LATE = {"staged_orders", "mart_1"}
NAMES = LATE | {"raw_orders", "staged_customers", "orders", "mart_0", "report"}


def product(
    place: Place, name: str, inputs: list[str], domain: str = "sales", status: str = "active"
) -> None:
    """Write a contract with inputs."""
    declared = ", ".join(inputs)
    place.put(
        f"registry/{name}.odcs.yaml",
        contract(name, status=status)
        + f"domain: {domain}\ncustomProperties: [{{property: inputs, vendor: dq, value: [{declared}]}}]\n",
    )


def came(place: Place, name: str, day: str) -> None:
    """Write the marker of a day's data, in time."""
    marker = place.put(f"lake/{name}/day={day}/_SUCCESS", "")
    arrived_at = (datetime.fromisoformat(f"{day}T05:00:00Z") + timedelta(days=1)).timestamp()
    os.utime(marker, (arrived_at, arrived_at))


def build(place: Place, *options: str) -> int:
    """Build the site and return the number of rendered products."""
    built = place.dq("portal", "build", "site", "registry", "--as-of", AS_OF, "--format", "json", *options)
    assert built.code in (0, 3), built.err
    return int(built.json["rendered"])


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A chain of products, one with fifty neighbours in four domains, and one in a circle."""
    with quiet_environment():
        place = Place(tmp_path_factory.mktemp("lineage"))
        place.put("registry/dq-policy.yaml", "{}")
        product(place, "raw_orders", [])
        product(place, "raw_customers", [])
        product(place, "staged_orders", ["raw_orders"])
        product(place, "staged_customers", ["raw_customers", "staged_orders"])
        product(place, "orders", ["staged_orders", "staged_customers"])
        for number in range(3):
            product(place, f"mart_{number}", ["orders"], "finance")
        product(place, "report", ["mart_0", "mart_1"], "finance")
        product(place, "round", ["round_again"])
        product(place, "round_again", ["round"])
        for number in range(25):
            product(place, f"source_{number:02}", [], f"domain_{number % 4}")
            product(place, f"user_{number:02}", ["wide"], "finance" if number else "alone")
        product(place, "wide", [f"source_{number:02}" for number in range(25)])
        for day, names in (("2026-05-29", NAMES), ("2026-05-30", NAMES - LATE)):
            for name in names:
                came(place, name, day)
        for at in ("2026-05-31T05:00:00Z", AS_OF):
            watched = place.dq("watch", "registry", "--as-of", at, "--channel", "console")
            assert watched.code in (0, 1), watched.err
        build(place)
        return place


def card(key: str, domain: str = "sales") -> ContractCard:
    return ContractCard(f"{key}.yaml", "", key, key, key, domain=domain)


def graph_of(key: str, uses: dict[str, list[str]], domains: dict[str, str] | None = None) -> Lineage:
    """The lineage of a product; `uses` are the inputs of each product."""
    keys = sorted({*uses, *(source for sources in uses.values() for source in sources)})
    edges = {
        product: (
            tuple((product, source, source) for source in uses.get(product, ())),
            tuple((product, user, user) for user in keys if product in uses.get(user, ())),
        )
        for product in keys
    }
    cards = {product: card(product, (domains or {}).get(product, "sales")) for product in keys}
    return lineage(key, adjacent_products(edges), cards)


def labels(graph: Lineage) -> list[list[str]]:
    return [[node.label for node in column] for column in graph.columns]


def named(graph: Lineage) -> set[tuple[str, str]]:
    """The links by the labels of their nodes."""
    return {
        (graph.columns[a][b].label, graph.columns[c][d].label)
        for (a, b), (c, d) in graph.links
    }  # fmt: skip


def test_two_steps_in_both_directions_and_no_third() -> None:
    uses = {"e": ["d"], "d": ["c"], "c": ["b"], "b": ["a"], "f": ["e"], "a": ["z"]}

    graph = graph_of("c", uses)

    assert labels(graph) == [["a"], ["b"], ["c"], ["d"], ["e"]]
    assert named(graph) == {("a", "b"), ("b", "c"), ("c", "d"), ("d", "e")}


def test_an_input_of_an_input_that_is_also_an_input_is_there_once() -> None:
    graph = graph_of("c", {"c": ["a", "b"], "b": ["a"]})

    assert labels(graph) == [[], ["a", "b"], ["c"], [], []]
    assert named(graph) == {("a", "c"), ("b", "c"), ("a", "b")}


def test_products_that_use_each_other_are_on_both_sides() -> None:
    graph = graph_of("a", {"a": ["b", "a"], "b": ["a"]})

    assert labels(graph) == [[], ["b"], ["a"], ["b"], []]
    assert named(graph) == {("a", "b"), ("b", "a")}


def test_a_product_without_neighbours_has_no_graph() -> None:
    assert graph_of("a", {"a": [], "b": ["c"]}) == graph_of("z", {"a": ["a"]}) == Lineage()


def test_more_than_twelve_neighbours_are_grouped_by_domain_with_their_number() -> None:
    many = [f"p{number:02}" for number in range(13)]
    domains = {name: "alone" if name == "p03" else "sales" for name in many}

    twelve, thirteen = graph_of("c", {"c": many[:12]}), graph_of("c", {"c": many}, domains)

    assert labels(twelve)[1] == many[:12]
    assert thirteen.columns[1] == (
        LineageNode("sales", "domains/sales.html", 12),
        LineageNode("p03", "products/p03/index.html"),
    )
    assert thirteen.links == (((1, 0), (2, 0)), ((1, 1), (2, 0)))


def test_more_than_twelve_domains_are_one_node_in_the_end() -> None:
    domains = {f"p{number:03}": f"d{number // 2:02}" for number in range(100)}

    groups = graph_of("c", {"c": list(domains)}, domains).columns[1]

    assert len(groups) == 12
    assert groups[-1] == LineageNode("other domains", "domains/index.html", 78)
    assert sum(group.count for group in groups) == 100


def test_the_state_of_every_badge_fits_into_a_node() -> None:
    assert all(badge(state)["whole"] <= BADGE_START + BADGE_WIDTH for state in ProductState)


@pytest.mark.parametrize("name", ["orders", "wide", "round"])
def test_the_graph_is_accessible_small_and_loads_its_badges(page: Page, place: Place, name: str) -> None:
    file = place.folder / "site" / "products" / name / "index.html"
    ear = Ear(page, "file://")
    page.set_viewport_size({"width": 360, "height": 740})

    page.goto(file.as_uri())
    page.locator(".graph").scroll_into_view_if_needed()
    heard = ear.heard()
    too_wide = page.evaluate("() => document.documentElement.scrollWidth > innerWidth")
    light = axe(page)
    page.emulate_media(color_scheme="dark")

    assert (heard, too_wide, light, axe(page)) == ([], False, [], [])
    assert file.stat().st_size < MAX_PAGE_BYTES


def test_fifty_neighbours_are_counted_and_listed_below(page: Page, place: Place) -> None:
    page.goto((place.folder / "site/products/wide/index.html").as_uri())

    nodes = page.locator(".graph a").all_text_contents()
    listed = page.locator("#lineage ~ ul a").count()

    assert sum("products" in text for text in nodes) == 5
    assert listed == 50


def test_a_node_leads_to_its_page_and_shows_its_state(page: Page, place: Place) -> None:
    page.goto((place.folder / "site/products/orders/index.html").as_uri())
    shown = page.locator(".graph image").evaluate_all(
        "all => all.map(one => new URL(one.href.baseVal, document.baseURI).pathname)"
    )
    states = {Path(path).parent.name: "data: late" in Path(path).read_text() for path in shown}

    page.locator(".graph a", has_text="staged_orders").click()

    assert states == {
        "raw_customers": True, "raw_orders": False, "staged_customers": False, "staged_orders": True,
        "orders": False, "mart_0": False, "mart_1": True, "mart_2": True, "report": False,
    }  # fmt: skip
    assert page.locator("h1").inner_text() == "staged_orders"


def test_a_new_state_of_an_input_is_shown_without_writing_the_page_again(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.put("registry/dq-policy.yaml", "{}")
    product(place, "raw", [])
    product(place, "made", ["raw"], status="draft")
    build(place)
    page, state = (tmp_path / "site/products" / name for name in ("made/index.html", "raw/badge.svg"))
    before = page.read_bytes(), state.read_text()
    for at in ("2026-05-30T09:00:00Z", AS_OF):
        assert place.dq("watch", "registry", "--as-of", at, "--channel", "console").code in (0, 1)

    rendered = build(place)

    assert rendered == 1
    assert page.read_bytes() == before[0]
    assert "late" in state.read_text()
    assert "late" not in before[1]


def test_what_changes_two_steps_away_is_shown_and_what_is_farther_writes_nothing(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.put("registry/dq-policy.yaml", "{}")
    for name, inputs in (("a", []), ("b", []), ("c", ["b"]), ("d", ["c"]), ("e", ["d"])):
        product(place, name, inputs)
    build(place)

    product(place, "b", ["a"])
    rendered = build(place)

    pages = {name: (tmp_path / f"site/products/{name}/index.html").read_text() for name in "abcde"}
    assert rendered == 3, "d is three steps from a, and e four"
    assert [name for name, text in pages.items() if 'href="../../products/a/index.html"' in text] == [
        "b",
        "c",
    ]
