"""The site as people use it: by keys, in the dark, on paper, without script, on a day when nobody watches."""

from __future__ import annotations

import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest
from fakes import portal_pages
from fakes.browser import Ear, axe
from fakes.command import Place, contract
from fakes.portal_mesh import AS_OF
from playwright.sync_api import Browser, Page, expect

from dq.portal.preview import PortalServer

LATER = {
    "one tick later": "2026-05-31T09:16:00Z",
    "two ticks later": "2026-05-31T09:29:00Z",
    "more than two ticks later": "2026-05-31T09:31:00Z",
    "days later": "2026-06-04T09:00:00Z",
}
# A page of each kind, by how it is found in a site.
KINDS = {
    "today": "index.html",
    "find": "find.html",
    "changes": "changes.html",
    "domains": "domains/index.html",
    "domain": "domains/sales.html",
    "incidents": "incidents/index.html",
    "product": "products/hub/index.html",
    "product with checks": "products/orders-090/index.html",
    "unreadable product": "products/*broken-later*/index.html",
    "product without promises": "products/least/index.html",
    "incident": "incidents/*.html",
    "list": "lists/late.html",
}


# So many places are reached by keys on pages of some kinds; on the others, as many as there are.
PLACES = {"today": 400, "find": 400, "product": 400, "incident": 40, "domain": 40, "changes": 40}


def path(site: Path, kind: str) -> str:
    """The first page of a kind, below the site."""
    return sorted(site.glob(KINDS[kind]))[0].relative_to(site).as_posix()


def at(site: Path, kind: str) -> str:
    """The address of the first page of a kind."""
    return (site / path(site, kind)).as_uri()


@pytest.mark.parametrize("kind", KINDS)
def test_axe_finds_nothing_in_the_light_and_in_the_dark(page: Page, site: Path, kind: str) -> None:
    page.goto(at(site, kind))
    page.evaluate("() => document.querySelectorAll('details').forEach(one => { one.open = true; })")
    light = axe(page)
    page.emulate_media(color_scheme="dark")
    dark = axe(page)

    assert (light, dark) == ([], [])


def test_the_dark_is_dark(page: Page, site: Path) -> None:
    page.emulate_media(color_scheme="dark")
    for kind in KINDS:
        page.goto(at(site, kind))

        ground = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
        assert all(int(part) < 60 for part in re.findall(r"\d+", ground)[:3]), (kind, ground)


def test_the_first_key_leads_to_the_content(page: Page, site: Path) -> None:
    page.goto(at(site, "product"))

    page.keyboard.press("Tab")
    skip = page.evaluate(
        "() => [document.activeElement.textContent, document.activeElement.offsetWidth > 50]"
    )
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    inside = page.evaluate("() => document.querySelector('main').contains(document.activeElement)")

    assert skip == ["Skip to the content", True]
    assert inside


@pytest.mark.parametrize("kind", PLACES)
def test_keys_reach_everything_in_the_order_of_the_page_and_show_where_they_are(
    page: Page, site: Path, kind: str
) -> None:
    page.goto(at(site, kind))
    here = """() => {
        const one = document.activeElement, style = getComputedStyle(one), box = one.getBoundingClientRect();
        const all = [...document.querySelectorAll("*")];
        return [all.indexOf(one), one.outerHTML.slice(0, 80),
            (style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2) && box.width > 0];
    }"""
    order, unseen = [], []
    for _ in range(PLACES[kind]):
        page.keyboard.press("Tab")
        place, said, visible = page.evaluate(here)
        if order and place <= order[0]:
            break
        order.append(place)
        if not visible:
            unseen.append(said)

    count = page.evaluate(
        "() => [...document.querySelectorAll('a[href], input, select, summary, [tabindex=\"0\"]')]"
        ".filter(one => one.checkVisibility()).length"
    )
    assert unseen == []
    assert order == sorted(order)
    assert len(order) == min(count, PLACES[kind])


def test_on_paper_everything_is_there_and_nothing_that_is_pressed(page: Page, site: Path) -> None:
    page.emulate_media(media="print")
    folded = 0
    for kind in KINDS:
        page.goto(at(site, kind))

        expect(page.locator("nav").first).to_be_hidden()
        expect(page.locator("main h1")).to_be_visible()
        expect(page.locator("#as-of")).to_be_visible()
        # What is folded on the screen is unfolded on paper, where nobody can press it.
        unseen = "() => [...document.querySelectorAll('details td')].filter(one => !one.checkVisibility())"
        assert page.evaluate(f"{unseen}.map(one => one.textContent)") == [], kind
        assert page.evaluate("() => document.body.scrollWidth") <= 1200, kind
        folded += page.locator("details:not([open]) td").count()
    assert folded > 20
    page.goto(at(site, "product with checks"))
    assert len(page.pdf()) > 10_000


def test_without_script_every_screen_says_the_same(chromium: Browser, site: Path) -> None:
    paths = [path(site, kind) for kind in KINDS if kind != "find"]

    without = portal_pages.read(chromium, site, paths, script=False)

    assert without == portal_pages.read(chromium, site, paths, script=True)
    assert min(map(len, without.values())) > 40


def test_without_script_everything_is_there_but_the_search(chromium: Browser, site: Path) -> None:
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    ear = Ear(page, site.as_uri())

    page.goto(at(site, "product with checks"))
    as_of, marks = page.locator("#as-of").inner_text(), page.locator(".deliveries title").count()
    warned = page.locator("footer").inner_text()
    page.goto(at(site, "find"))
    told = page.locator("main").inner_text()
    page.get_by_role("link", name="sales").first.click()
    there = page.locator("main").inner_text()

    assert ear.heard() == []
    assert "2026-05-31 09:00 UTC" in as_of
    assert "Without JavaScript" in warned
    assert marks > 5
    assert "Searching needs JavaScript" in told
    assert "Products, worst first" in there
    context.close()


@pytest.mark.parametrize("when", LATER)
@pytest.mark.parametrize("kind", ["today", "product", "incident"])
def test_a_page_says_by_its_own_clock_that_nobody_watches(
    page: Page, site: Path, kind: str, when: str
) -> None:
    page.clock.set_fixed_time(LATER[when])
    page.goto(at(site, kind))

    warning = page.locator("#stale")
    if when in ("one tick later", "two ticks later"):
        expect(warning).to_be_hidden()
    else:
        expect(warning).to_be_visible()
        expect(warning).to_contain_text("last ran 2026-05-31 09:00 UTC")


def test_a_page_that_stays_open_turns_stale_while_it_is_looked_at(chromium: Browser, site: Path) -> None:
    context = chromium.new_context()
    page = context.new_page()
    page.clock.install(time=AS_OF)
    page.goto(at(site, "today"))
    expect(page.locator("#stale")).to_be_hidden()

    page.clock.run_for(32 * 60 * 1000)

    expect(page.locator("#stale")).to_be_visible()
    context.close()


@pytest.fixture
def served(site: Path) -> Iterator[str]:
    with PortalServer(site) as server:
        Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def test_served_it_is_the_same_and_nothing_is_held_back(page: Page, served: str) -> None:
    ear = Ear(page, served)

    page.goto(f"{served}/")
    page.get_by_role("link", name="Find").click()
    page.get_by_label("Words").fill("hub")
    page.get_by_role("link", name="Hub of the mesh").click()

    expect(page.locator("h1")).to_have_text("Hub of the mesh")
    assert ear.heard() == []


@pytest.mark.parametrize(
    "path", ["/../registry/dq-policy.yaml", "/%2e%2e/registry/dq-policy.yaml", "/.dq-portal/lock",
             "/products", "//etc/passwd", "/products/%00", "/..%2f..%2fetc/passwd", "/index.html/..", "/%ff"]
)  # fmt: skip
def test_nothing_but_files_of_the_site_is_served(served: str, path: str) -> None:
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(served + path)

    assert refused.value.code == 404


def test_another_name_for_this_machine_is_refused(served: str) -> None:
    asked = urllib.request.Request(served, headers={"Host": "evil.example"})

    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(asked)

    assert refused.value.code == 403


SEARCHED = {
    "hub": "Hub of the mesh",
    "HUB": "Hub of the mesh",
    "ledger": "Ledger of the mesh",
    "orders-090": "Orders-090 of the mesh",
    "orders 090 euros": "Orders-090 of the mesh",
    "ünïcödé": "Ünïcödé of the mesh",
    "u\u0308ni": "Ünïcödé of the mesh",
    "unicode": "Ünïcödé of the mesh",
    "owner3": "of the mesh",
    "constructor": "Constructor of the mesh",
    "straße": "Straße of the mesh",
    "STRASSE": "Straße of the mesh",
}


@pytest.mark.parametrize("words", SEARCHED)
def test_words_find_products(page: Page, site: Path, words: str) -> None:
    page.goto(at(site, "find"))

    page.get_by_label("Words").fill(words)

    expect(page.locator("#found li").first).to_contain_text(SEARCHED[words])


def test_words_and_filters_narrow_each_other(page: Page, site: Path) -> None:
    page.goto(at(site, "find"))

    page.get_by_label("Words").fill("mesh")
    expect(page.locator("#told")).to_contain_text("products")
    many = int(page.locator("#told").inner_text().split()[0])
    expect(page.locator("#told")).to_contain_text(f"{many} products; the first 50 are shown.")
    page.locator("#told").get_by_role("link", name="sales", exact=True).click()
    expect(page.locator("#told")).to_have_text(re.compile(r"\d+ products?\."))
    fewer = int(page.locator("#told").inner_text().split()[0])
    status = page.get_by_label("Status", exact=True)
    [late] = [text for text in status.locator("option").all_inner_texts() if text.startswith("late (")]
    status.select_option(label=late)
    expect(page.locator("#told")).not_to_contain_text(str(fewer))
    least = int(page.locator("#told").inner_text().split()[0])

    assert many > fewer > least > 0
    assert int(late.removeprefix("late (").removesuffix(")")) >= least


def test_a_column_is_found_and_leads_to_its_open_panel(page: Page, site: Path) -> None:
    page.goto(at(site, "find"))

    page.get_by_label("Words").fill("amount 90")
    column = page.locator("#found").get_by_role("link", name="amount_90", exact=True)
    expect(column).to_be_visible()
    wrong = axe(page)
    column.click()

    panel = page.locator("#c2")
    expect(panel).to_be_in_viewport()
    expect(panel).to_contain_text("More NULLs since 2026-05-26")
    assert wrong == []


def test_words_that_nothing_has_are_answered_too(page: Page, site: Path) -> None:
    page.goto(at(site, "find"))

    page.get_by_label("Words").fill("zzzz")

    expect(page.locator("#told")).to_contain_text("No product")


@pytest.fixture(scope="module")
def find(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of the search page of three products in two domains."""
    place = Place(tmp_path_factory.mktemp("search"))
    for name, domain in (("ledger", "finance"), ("orders", "sales"), ("shipments", "sales")):
        text = contract(name, status="draft") + f"domain: {domain}\n"
        place.put(f"registry/{name}.odcs.yaml", text)
    assert place.dq("portal", "build", "site", "registry").code == 0
    return (place.folder / "site" / "find.html").as_uri()


# One wrong, missing, extra or swapped letter, from eight letters on two.
MISTYPED = {
    "ledgre": "ledger",
    "ledgr": "ledger",
    "leddger": "ledger",
    "lebger": "ledger",
    "eldger": "ledger",
    "xledger": "ledger",
    "shpimetns": "shipments",
    "LEDGRE": "ledger",
}


def test_a_mistyped_word_finds_the_nearest_one_and_says_so(page: Page, find: str) -> None:
    page.goto(find)
    line, products = page.locator("#told"), page.locator("#found li")

    for typed, word in MISTYPED.items():
        page.get_by_label("Words").fill(typed)
        expect(line).to_have_text(f"No product matches '{typed}'. Did you mean {word}? 1 product.")
        expect(products).to_have_count(1)
        expect(products).to_contain_text(word)

    wrong = axe(page)
    line.get_by_role("link", name="ledger", exact=True).click()
    expect(page.get_by_label("Words")).to_have_value("ledger")
    expect(line).to_have_text("1 product.")
    assert wrong == []


def test_only_the_mistyped_word_is_replaced_and_filters_stay(page: Page, find: str) -> None:
    page.goto(find)
    line, domain = page.locator("#told"), page.get_by_label("Domain", exact=True)

    domain.select_option(label="sales (2)")
    page.get_by_label("Words").fill("orders shipmnets")
    expect(line).to_have_text(
        "No product matches 'orders shipmnets'. Did you mean orders shipments?"
        " It matches none with these words and filters either."
    )
    page.get_by_label("Words").fill("ordres")
    line.get_by_role("link", name="orders", exact=True).click()

    expect(page.get_by_label("Words")).to_have_value("orders")
    expect(line).to_have_text("1 product.")
    assert domain.locator("option:checked").inner_text() == "sales (2)"


def test_nothing_near_is_answered_with_what_to_try(page: Page, find: str) -> None:
    page.goto(find)
    answers = {
        "zzzz": "Try a shorter word, or open a domain below.",
        # Too short for a mistake.
        "ldr": "Try a shorter word, or open a domain below.",
        # Two mistakes in a short word.
        "eldgre": "Try a shorter word, or open a domain below.",
        "ledger zzzz": "No name, column or description has 'zzzz': try without.",
        "ledger orders": "Each word alone: ledger 1 product, orders 1 product.",
    }

    for typed, answer in answers.items():
        page.get_by_label("Words").fill(typed)
        expect(page.locator("#told")).to_have_text(f"No product matches '{typed}'. {answer}")
    page.get_by_label("Domain", exact=True).select_option(label="sales (2)")
    page.get_by_label("Words").fill("ledger")
    expect(page.locator("#told")).to_have_text("No product matches 'ledger'. Without the filters: 1 product.")
    page.locator("#told").get_by_role("link", name="1 product").click()
    expect(page.locator("#told")).to_have_text("1 product.")
    expect(page.get_by_label("Words")).to_have_value("ledger")


def test_the_address_is_the_search_and_the_search_is_the_address(page: Page, find: str) -> None:
    page.goto(f"{find}?q=%3Cb%3Eledger%3C%2Fb%3E")
    expect(page.get_by_label("Words")).to_have_value("<b>ledger</b>")
    expect(page.locator("#told")).to_have_text("1 product.")
    page.goto(f"{find}?q=ORDERS&domain=sales&status=no-such-state")
    expect(page.get_by_label("Words")).to_have_value("ORDERS")
    assert page.get_by_label("Domain", exact=True).locator("option:checked").inner_text() == "sales (2)"

    page.get_by_label("Words").fill("straße & co")
    expect(page).to_have_url(f"{find}?q=stra%C3%9Fe+%26+co&domain=sales")
    page.get_by_label("Domain", exact=True).select_option(label="any")
    expect(page).to_have_url(f"{find}?q=stra%C3%9Fe+%26+co")
    page.reload()
    expect(page.get_by_label("Words")).to_have_value("straße & co")
    page.get_by_label("Words").fill("")
    expect(page).to_have_url(find)


def test_few_products_are_all_there_before_anything_is_asked(page: Page, tmp_path: Path) -> None:
    place = Place(tmp_path)
    for name in ("orders", "Sales", "stock"):
        place.put(f"registry/{name}.odcs.yaml", contract(name, status="draft"))
    assert place.dq("portal", "build", "site", "registry").code == 0
    page.goto((tmp_path / "site" / "find.html").as_uri())
    all_of_them = page.locator("#few")
    there = all_of_them.locator("li a").all_inner_texts()
    wrong = axe(page)

    page.get_by_label("Words").fill("sal")
    expect(page.locator("#found li")).to_have_count(1)
    expect(all_of_them).to_be_hidden()
    page.get_by_label("Words").fill("")

    expect(all_of_them).to_be_visible()
    assert (there, wrong) == (["orders", "Sales", "stock"], [])


def test_many_products_are_not_listed_before_anything_is_asked(page: Page, site: Path) -> None:
    page.goto(at(site, "find"))

    assert page.locator("#few").count() == 0


def test_a_registry_without_contracts_makes_no_site_that_looks_fine(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.put("registry/dq-policy.yaml", "{}")

    built = place.dq("portal", "build", "site", "registry")

    assert (built.code, "dq init" in built.err) == (3, True)
    assert not (tmp_path / "site" / "index.html").exists()
