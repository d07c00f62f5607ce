"""Builds portals of fuzzed contracts, full of texts of strangers, and reads every page as a browser does.

Nothing may be on a page that no template wrote, no build may fail, and what is opened runs and fetches
nothing. Every page is parsed by Chromium; one in fifty is opened, with an ear for what it asks for. `--seed`
begins elsewhere, to find what these ten thousand do not.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
from pathlib import Path

from _report import arguments, finish

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from fakes import browser, portal_pages, portal_strangers
from fakes.browser import Ear
from playwright.sync_api import Page

BATCH = 500
OPENED = 50


def tried(page: Page, ear: Ear, folder: Path, seeds: range) -> tuple[int, int, list[str]]:
    """Numbers of pages and of contracts that can be read, and the problems of the pages."""
    mesh = portal_strangers.fuzzed_world(folder, seeds)
    built = mesh.dq(
        "portal", "build", "site", "registry", "--as-of", "2026-05-31T09:00:00Z", "--format", "json"
    )
    if built.code not in (0, 3):
        return 0, 0, [f"{seeds}: exit code {built.code}: {built.err[-2000:]}"]
    site = folder / "site"
    paths = portal_pages.pages(site)
    texts = [(site / path).read_text("utf-8") for path in paths]
    problems = portal_pages.strange(page, texts)
    wrong = [
        f"{seeds}: {path}: {fault}" for path, faults in zip(paths, problems, strict=True) for fault in faults
    ]
    for path in paths[::OPENED]:
        page.goto((site / path).as_uri())
        wrong += [f"{seeds}: {path}: {message}" for message in ear.heard()]
        if page.evaluate("() => window.fired"):
            wrong.append(f"{seeds}: {path}: a script of a stranger ran")
    states = json.loads(built.out)["states"]
    return len(paths), sum(states.values()) - states.get("unreadable", 0), wrong


def main() -> int:
    args = arguments(__doc__ or "", seed="where to begin")
    if not any(map(shutil.which, browser.NAMES)):
        sys.exit(f"This needs Chromium: {browser.INSTALL}.")
    count, first = 500 if args.quick else 10_000, args.seed or 0
    pages, readable, faults, begun = 0, 0, list[str](), time.perf_counter()
    with browser.browser() as running:
        page = running.new_page()
        ear = Ear(page, "file://")
        for start in range(first, first + count, BATCH):
            with tempfile.TemporaryDirectory() as name:
                page_count, read, wrong = tried(
                    page, ear, Path(name), range(start, min(start + BATCH, first + count))
                )
            pages, readable, faults = pages + page_count, readable + read, faults + wrong
            for problem in wrong[:5]:
                print(problem)
    metrics = {
        "contracts": float(count),
        "of_them_readable": float(readable),
        "pages": float(pages),
        "faults": float(len(faults)),
        "seconds": time.perf_counter() - begun,
    }
    return finish(metrics, {"faults": ("<", 1.0), "of_them_readable": (">", count / 3)}, args)


if __name__ == "__main__":
    sys.exit(main())
