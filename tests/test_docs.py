"""Every code block of the docs is true: files are written, commands run, and what they print compared.

In a page, in order, in one new folder:

    ```yaml file=NAME    writes NAME; so does every other kind with a file
    ```sh                runs each line; a line that must fail ends in `# exit N`
    ```text              is how the output of the commands before it ends; `…` stands for any lines
    ```python            runs as a program
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"^```(?P<kind>\w+)(?: (?P<how>[^\n]*))?\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
EXIT = re.compile(r"\s*# exit (\d+)$")
# Shown and explained elsewhere, or needing a server that the page tells its reader to start.
NOT_RUN = "not-run"


def blocks(page: Path) -> list[re.Match[str]]:
    return [block for block in BLOCK.finditer(page.read_text()) if NOT_RUN not in (block["how"] or "")]


def run(line: str, folder: Path) -> str:
    wanted = EXIT.search(line)
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "COLUMNS": "100",
    }
    environment.pop("DQ_STORE_URL", None)
    done = subprocess.run(
        ["bash", "-c", EXIT.sub("", line)],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == (int(wanted[1]) if wanted else 0), f"{line}\n{done.stdout}"
    return done.stdout


def matches(shown: str, printed: str) -> bool:
    pattern = "".join(
        r"(?:.*\n)*" if line.strip() == "…" else re.escape(line.rstrip()) + r"[ ]*\n"
        for line in shown.splitlines()
    )
    return re.fullmatch(r"(?:.*\n)*" + pattern, printed.rstrip("\n") + "\n") is not None


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=lambda page: page.stem)
def test_the_code_blocks_of_a_page_are_true(page, tmp_path):
    printed = ""
    for block in blocks(page):
        kind, how, body = block["kind"], block["how"] or "", block["body"]
        if how.startswith("file="):
            file = tmp_path / how.removeprefix("file=")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(body)
        elif kind == "sh":
            printed = "".join(run(line, tmp_path) for line in body.splitlines() if line.strip())
        elif kind == "python":
            (tmp_path / "program.py").write_text(body)
            printed = run(f"{sys.executable} program.py", tmp_path)
        elif kind == "text":
            assert matches(body, printed), f"{page.name} shows:\n{body}\nand it printed:\n{printed}"


def test_every_link_between_pages_leads_somewhere():
    broken = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in PAGES
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text())
        if not (page.parent / target).exists()
    ]
    assert broken == []
