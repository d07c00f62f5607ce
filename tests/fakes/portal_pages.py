"""A site of the portal as a browser sees it: every page opened, what is in it, and what should not be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from fakes.browser import Ear
from playwright.sync_api import Browser, Page

PHONE = {"width": 360, "height": 740}
_SCRIPT = Path(__file__).with_suffix(".js").read_text()


@dataclass(frozen=True, slots=True)
class Seen:
    """One page: what it has by `facts`, and what it said or asked for that it should not."""

    path: str
    facts: dict[str, Any]
    heard: Sequence[str] = ()


def facts(page: Page) -> dict[str, Any]:
    """What a page has that is open."""
    made: dict[str, Any] = page.evaluate(f"() => {{ {_SCRIPT}; return facts(); }}")
    return made


def strange(page: Page, texts: Sequence[str]) -> list[list[str]]:
    """What of each of these pages came from no template. They are parsed by the browser, and not shown."""
    parsed = "new DOMParser().parseFromString(one, 'text/html')"
    made: list[list[str]] = page.evaluate(
        f"texts => {{ {_SCRIPT}; return texts.map(one => faults({parsed})); }}", texts
    )
    return made


def pages(site: Path) -> list[str]:
    """Every page of a site by its path below it, in order."""
    return sorted(one.relative_to(site).as_posix() for one in site.rglob("*.html"))


def crawl(browser: Browser, site: Path, at: str) -> list[Seen]:
    """Every page, opened from its file on a telephone's screen, by a clock that shows the instant `at`."""
    context = browser.new_context(viewport=PHONE, has_touch=True)  # type: ignore[arg-type]
    page = context.new_page()
    page.clock.set_fixed_time(at)
    ear = Ear(page, site.as_uri())
    seen = []
    for path in pages(site):
        page.goto((site / path).as_uri())
        seen.append(Seen(path, facts(page), ear.heard()))
    context.close()
    return seen


def read(browser: Browser, site: Path, paths: Sequence[str], *, script: bool) -> dict[str, str]:
    """What the main part of each of these pages says, with a reader's scripts or without."""
    context = browser.new_context(java_script_enabled=script)
    page = context.new_page()
    ear = Ear(page, site.as_uri())
    said = {}
    for path in paths:
        page.goto((site / path).as_uri())
        said[path] = page.locator("main").inner_text()
        assert page.locator("#as-of").inner_text().startswith("As of 20"), path
    context.close()
    assert ear.heard() == []
    return said


def lost(site: Path, seen: Sequence[Seen]) -> list[str]:
    """The links that lead nowhere: to a file that is not there, outside, or to no place of a page."""
    ids = {one.path: set(one.facts["ids"]) for one in seen}
    return [
        f"{one.path}: {written}"
        for one in seen
        for written, whole, _ in one.facts["links"]
        if not whole.startswith(("https://", "http://", "mailto:")) and not _leads(site, whole, ids)
    ]


def _leads(site: Path, whole: str, ids: dict[str, set[str]]) -> bool:
    parts = urlsplit(whole)
    target = Path(unquote(parts.path))
    if parts.scheme != "file" or not target.is_relative_to(site) or not target.is_file():
        return False
    return not parts.fragment or parts.fragment in ids.get(target.relative_to(site).as_posix(), ())
