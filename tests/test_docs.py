"""Every code block of the docs is true: files are written, commands run, and what they print compared."""

from __future__ import annotations

import re
import shutil
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from fakes import pages
from fakes.command import Place

ROOT = Path(__file__).parent.parent
PAGES = sorted(
    [
        *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
        *(ROOT / "docs").rglob("*.md"),
    ]
)


PATHS = re.compile(
    r"`((?:alerts|api|benchmarks|cli|contracts|dataquality|lake|operations|portal|registry|store|tests|validators)"
    r"/[\w./-]*)`"
)
# How-to pages and tutorials name files that their reader is to write.
OF_WHAT_IS_THERE = [
    page for page in PAGES if not {"how-to", "reference"} & set(page.parts) and "tutorial" not in page.stem
]


@pytest.mark.parametrize("page", OF_WHAT_IS_THERE, ids=lambda page: page.stem)
def test_a_page_names_files_that_there_are(page):
    assert [path for path in PATHS.findall(page.read_text("utf-8")) if not (ROOT / path).exists()] == []


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    with ExitStack() as stack:
        yield pages.Desk(tmp_path_factory.mktemp("desk"), stack)


@pytest.mark.parametrize("page", [page for page in PAGES if pages.blocks(page)], ids=lambda page: page.stem)
def test_the_code_blocks_of_a_page_are_true(page, desk):
    pages.follow(page, desk.cleared(), Path(sys.executable), together=True, desk=desk)


def test_the_readme_shows_what_the_gate_of_the_demonstration_finds(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    shutil.copytree(ROOT / "examples" / "proposals", tmp_path / "proposals")
    shown = (ROOT / "README.md").read_text().split("1. Validate: a pull request proposes a contract\n")[1]

    ran = Place(tmp_path / "proposals").dq("validate", ".")

    assert pages.matches(shown.partition("\n\n4. ")[0], ran.out), ran.out


def test_every_link_between_pages_leads_somewhere():
    broken = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in PAGES
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text())
        if not (page.parent / target).exists()
    ]
    assert broken == []
