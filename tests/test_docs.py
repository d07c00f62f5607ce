"""Every code block of the docs is true: files are written, commands run, and what they print compared."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from fakes import pages

ROOT = Path(__file__).parent.parent
PAGES = sorted(
    [
        *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
        *(ROOT / "docs").rglob("*.md"),
    ]
)


@pytest.mark.parametrize("page", [page for page in PAGES if pages.blocks(page)], ids=lambda page: page.stem)
def test_the_code_blocks_of_a_page_are_true(page, tmp_path):
    pages.follow(page, tmp_path, Path(sys.executable), together=True)


def test_every_link_between_pages_leads_somewhere():
    broken = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in PAGES
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text())
        if not (page.parent / target).exists()
    ]
    assert broken == []
