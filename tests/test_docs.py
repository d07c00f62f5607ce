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


def slugs(page: Path) -> set[str]:
    """The anchors of a page: of its headings, as GitHub makes them, and those that it sets itself."""
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", line) for line in re.findall(r"^#+ (.*)$", text, re.M)]
    made = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
    return made | set(re.findall(r'<a id="([^"]+)">', text))


def test_every_anchor_of_a_link_between_pages_is_a_heading() -> None:
    broken = [
        f"{page.relative_to(ROOT)}: {target}#{anchor}"
        for page in [*PAGES, ROOT / "CHANGELOG.md"]
        for target, anchor in re.findall(r"\]\(([^)#:\s]*)#([^)\s]+)\)", page.read_text("utf-8"))
        if (page.parent / target if target else page).suffix == ".md"
        and anchor not in slugs(page.parent / target if target else page)
    ]
    assert broken == []


# What readers search for, in words of the index, and where they have to land.
SEARCHES = {
    "silence alerts at night": "how-to/handle-incidents.md#silence-alerts-at-night",
    "add a Slack channel": "how-to/slack.md#add-a-slack-channel",
    "backfill": "how-to/publish.md#backfill-old-partitions",
    "CSV with semicolons": "how-to/import.md#csv-with-semicolons",
    "Airflow": "how-to/airflow.md#run-dq-in-airflow",
    "restore the store": "how-to/operate.md#backup-and-restore",
    "why is a clause not enforced": "how-to/check-data.md#why-a-clause-is-not-enforced",
    "deprecate a column": "how-to/change-a-contract.md#deprecate-a-column",
    "partitions by hour": "how-to/delivery-slo.md#partitions-by-hour",
    "PostgreSQL": "how-to/postgres.md#postgresql-as-the-state-store",
    "who approves a subscription": "how-to/subscriptions.md#who-approves-a-subscription",
    "rename a table": "how-to/change-a-contract.md#rename-a-table",
    "false alarm": "how-to/handle-incidents.md#a-false-alarm",
    "upgrade": "how-to/operate.md#upgrade",
    "uninstall": "how-to/install.md#uninstall",
    "move an existing store": "how-to/postgres.md#move-an-existing-store-from-sqlite-to-postgresql",
    "logs": "how-to/operate.md#logs",
    "comparison with Soda": "explanation/comparison.md"
    "#comparison-with-soda-great-expectations-and-datacontract-cli",
    "install size": "how-to/install.md#size-and-time",
}


@pytest.mark.parametrize(("words", "target"), SEARCHES.items())
def test_the_first_line_of_the_index_with_these_words_leads_to_their_heading(words: str, target: str) -> None:
    index = ROOT / "docs" / "index.md"
    lines = [line for line in index.read_text("utf-8").splitlines() if "](" in line and line[0] in "|-"]

    found = next((line for line in lines if words.lower() in line.lower()), "")

    [link] = re.findall(r"\]\(([^)]+)\)", found) or ["no line of the index has these words"]
    file, _, anchor = link.partition("#")
    first = re.search(r"^# (.*)$", (index.parent / file).read_text("utf-8"), re.M) if anchor == "" else None
    title = re.sub(r"[^\w\- ]", "", first[1].lower()).replace(" ", "-") if first else anchor
    assert f"{file}#{title}" == target
    assert title in slugs(index.parent / file)
