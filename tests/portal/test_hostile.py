"""Contracts of strangers, full of texts that want to be more than text: nothing fires, nothing is fetched."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from fakes import portal_pages, portal_strangers
from fakes.browser import Ear
from fakes.portal_mesh import AS_OF, PortalMesh
from fakes.portal_strangers import HOSTILE
from fakes.strangers import quiet_environment
from playwright.sync_api import Browser, Page, expect


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> PortalMesh:
    """The strangers' registry, watched, and its portal."""
    with quiet_environment():
        mesh = portal_strangers.world(tmp_path_factory.mktemp("strangers"))
        for at in ("2026-05-29T09:00:00Z", "2026-05-30T09:00:00Z", "2026-05-30T09:20:00Z", AS_OF):
            watched = mesh.dq("watch", "registry", "--as-of", at, "--channel", "console")
            assert watched.code in (0, 1, 3), watched.err
        built = mesh.dq("portal", "build", "site", "registry", "--as-of", AS_OF)
        assert built.code == 3, built.err
        return mesh


@pytest.fixture(scope="module")
def opened(chromium: Browser, hostile: PortalMesh) -> dict[str, portal_pages.Seen]:
    """Every page of it, as a browser shows it."""
    return {one.path: one for one in portal_pages.crawl(chromium, hostile.folder / "site", AS_OF)}


def test_nothing_is_run_asked_for_or_held_back_on_any_page(opened: dict[str, portal_pages.Seen]) -> None:
    assert len(opened) > 2 * len(HOSTILE)
    assert {path: one.heard for path, one in opened.items() if one.heard} == {}
    assert [path for path, one in opened.items() if one.facts["fired"]] == []


def test_nothing_but_what_templates_write_is_on_any_page(opened: dict[str, portal_pages.Seen]) -> None:
    assert {path: one.facts["faults"] for path, one in opened.items() if one.facts["faults"]} == {}


def test_texts_are_shown_as_they_are(opened: dict[str, portal_pages.Seen]) -> None:
    number = list(HOSTILE).index("picture after a double quote")

    page = opened[f"products/stranger-{number:02}/index.html"]

    assert HOSTILE["picture after a double quote"] in page.facts["h1"]
    assert HOSTILE["picture after a double quote"] in page.facts["title"]


def test_links_lead_to_pages_of_the_site_or_show_where_they_lead(
    hostile: PortalMesh, opened: dict[str, portal_pages.Seen]
) -> None:
    out = [
        (written, said)
        for one in opened.values()
        for written, whole, said in one.facts["links"]
        if not whole.startswith("file://")
    ]

    assert portal_pages.lost(hostile.folder / "site", list(opened.values())) == []
    assert [pair for pair in out if "evil.example" in pair[0] and not pair[0].startswith("mailto:")] == []
    # A stranger's mail shows its address; nothing else is added to what is written.
    assert [pair for pair in out if pair[0].removeprefix("mailto:").partition("?")[0] not in pair[1]] == []


def test_no_page_is_wider_than_a_telephone(opened: dict[str, portal_pages.Seen]) -> None:
    assert {path: one.facts["tooWide"] for path, one in opened.items() if one.facts["tooWide"]} == {}


def test_feeds_and_badges_are_xml(hostile: PortalMesh) -> None:
    files = [*(hostile.folder / "site").rglob("*.xml"), *(hostile.folder / "site").rglob("*.svg")]

    assert len(files) > len(HOSTILE)
    for file in files:
        ElementTree.fromstring(file.read_bytes())


def test_searching_for_a_text_runs_nothing_of_it(page: Page, hostile: PortalMesh) -> None:
    site = hostile.folder / "site"
    ear = Ear(page, site.as_uri())
    page.goto((site / "find.html").as_uri())

    for text in HOSTILE.values():
        page.get_by_label("Words").fill(text[:200])
        page.keyboard.press("Enter")
    page.get_by_label("Words").fill("window fired")
    expect(page.locator("#found li").first).to_be_visible()
    page.get_by_label("Words").fill("stranger")
    expect(page.locator("#told")).to_contain_text("products")

    assert ear.heard() == []
    assert page.evaluate("() => window.fired") is None


def test_files_keep_to_the_folder_and_to_plain_names(hostile: PortalMesh) -> None:
    site = hostile.folder / "site"
    names = [one.relative_to(site).as_posix() for one in site.rglob("*") if ".dq-portal" not in one.parts]

    assert [name for name in names if not name.isascii() or set(name) & set(" <>:\"'\\|?*&;$`{}()")] == []
    assert max(len(part) for name in names for part in Path(name).parts) < 120
    assert {one.name for one in hostile.folder.iterdir()} <= {"registry", "site", ".dq"}


def test_three_hundred_fuzzed_contracts_leave_nothing_on_any_page(page: Page, tmp_path: Path) -> None:
    with quiet_environment():
        mesh = portal_strangers.fuzzed_world(tmp_path, range(300))
        built = mesh.dq("portal", "build", "site", "registry", "--as-of", AS_OF)
    assert built.code in (0, 3), built.err
    paths = portal_pages.pages(tmp_path / "site")

    found = portal_pages.strange(page, [(tmp_path / "site" / path).read_text() for path in paths])

    assert len(paths) > 300
    assert {path: faults for path, faults in zip(paths, found, strict=True) if faults} == {}
