"""Every screen of two hundred products in every state, opened from its file on a telephone's screen."""

from __future__ import annotations

from pathlib import Path

from fakes.portal_mesh import PortalMesh
from fakes.portal_pages import Seen, lost


def _of(seen: list[Seen], what: str) -> dict[str, object]:
    return {one.path: one.facts[what] for one in seen}


def test_there_is_a_page_for_every_product_and_every_kind_of_screen(
    mesh: PortalMesh, seen: list[Seen]
) -> None:
    paths = {one.path for one in seen}
    products = [path for path in paths if path.startswith("products/")]

    removed = [one for one in mesh.products if one.text == ""]
    assert len(products) == len(mesh.products) - len(removed)
    assert {"index.html", "find.html", "changes.html", "domains/index.html", "incidents/index.html"} <= paths
    assert len([path for path in paths if path.startswith("domains/")]) > 5
    assert len([path for path in paths if path.startswith("incidents/")]) > 100


def test_no_page_says_or_asks_for_anything_that_it_should_not(seen: list[Seen]) -> None:
    assert {one.path: one.heard for one in seen if one.heard} == {}


def test_no_page_holds_anything_that_is_not_of_the_portal(seen: list[Seen]) -> None:
    assert {path: faults for path, faults in _of(seen, "faults").items() if faults} == {}


def test_every_page_has_content_a_heading_and_says_as_of_when(seen: list[Seen]) -> None:
    empty = [one.path for one in seen if one.facts["words"] < 40 or not one.facts["h1"].strip()]
    titles = [one.path for one in seen if "Data products" not in one.facts["title"]]
    times = {path for path, said in _of(seen, "asOf").items() if "2026-05-31 09:00 UTC" not in str(said)}

    assert (empty, titles, times) == ([], [], set())


def test_every_link_leads_to_a_file_of_the_site(site: Path, seen: list[Seen]) -> None:
    assert sum(len(one.facts["links"]) for one in seen) > 3_000
    assert lost(site, seen) == []


def test_every_page_is_reached_from_the_first_one_by_links(site: Path, seen: list[Seen]) -> None:
    leads = {one.path: [whole for _, whole, _ in one.facts["links"]] for one in seen}
    found, ahead = {"index.html"}, ["index.html"]
    while ahead:
        for whole in leads[ahead.pop()]:
            path = whole.partition("#")[0].removeprefix(f"{site.as_uri()}/")
            if path in leads and path not in found:
                found.add(path)
                ahead.append(path)

    # Nothing leads to a list of nothing.
    empty = {
        one.path for one in seen if one.path.startswith("lists/") and "No products." in one.facts["said"]
    }
    assert set(leads) - found - empty == set()


def test_nothing_is_wider_than_a_telephone(seen: list[Seen]) -> None:
    wide = {path: sticks for path, sticks in _of(seen, "tooWide").items() if sticks}

    assert wide == {}


def test_everything_that_can_be_chosen_has_a_name(seen: list[Seen]) -> None:
    assert {path: names for path, names in _of(seen, "nameless").items() if names} == {}


def test_changes_name_what_ends_soon_and_leave_out_what_does_not(site: Path) -> None:
    said = (site / "changes.html").read_text()

    assert "endOfSupport: 2026-06-20" in said
    assert [day for day in ("2026-06-03", "2026-06-01", "2027-01-01") if day in said] == [
        "2026-06-03",
        "2026-06-01",
    ]


def test_lists_of_incidents_say_whose_they_are(site: Path) -> None:
    today = (site / "index.html").read_text()

    began = today[today.index("Opened incidents") :]
    assert began.count("<bdi>orders-") > 5


def test_no_page_is_larger_than_150_kilobytes(site: Path) -> None:
    sizes = {file.relative_to(site).as_posix(): file.stat().st_size for file in site.rglob("*.html")}

    assert len(sizes) > 300
    assert {path: size for path, size in sizes.items() if size > 150_000} == {}


def test_charts_are_in_the_page_and_need_no_script(site: Path) -> None:
    for path in (
        "index.html",
        "incidents/index.html",
        "domains/sales.html",
        "products/orders-090/index.html",
    ):
        text = (site / path).read_text()
        assert text.count('role="img"') >= 1, path
        assert "<script" not in text.replace('<script src="', ""), path
