"""Pages of the docs, done as they say: files are written, commands run, and what they print compared.

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
from pathlib import Path

BLOCK = re.compile(r"^```(?P<kind>\w+)(?: (?P<how>[^\n]*))?\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
EXIT = re.compile(r"\s*# exit (\d+)$")
# Shown and explained elsewhere, or needing a server that the page tells its reader to start.
NOT_RUN = "not-run"


def blocks(page: Path) -> list[re.Match[str]]:
    """The blocks that are run or compared."""
    return [block for block in BLOCK.finditer(page.read_text()) if NOT_RUN not in (block["how"] or "")]


def follow(page: Path, folder: Path, python: Path) -> None:
    """Does what the page says in the folder, with the dq beside this Python. Asserts that it is so."""
    printed = ""
    for block in blocks(page):
        kind, how, body = block["kind"], block["how"] or "", block["body"]
        if how.startswith("file="):
            file = folder / how.removeprefix("file=")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(body)
        elif kind == "sh":
            printed = "".join(_run(line, folder, python) for line in body.splitlines() if line.strip())
        elif kind == "python":
            (folder / "program.py").write_text(body)
            printed = _run(f"{python} program.py", folder, python)
        elif kind == "text":
            assert _matches(body, printed), f"{page.name} shows:\n{body}\nand it printed:\n{printed}"


def _run(line: str, folder: Path, python: Path) -> str:
    wanted = EXIT.search(line)
    environment = {**os.environ, "PATH": f"{python.parent}:{os.environ['PATH']}", "COLUMNS": "100"}
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


def _matches(shown: str, printed: str) -> bool:
    pattern = "".join(
        r"(?:.*\n)*" if line.strip() == "…" else re.escape(line.rstrip()) + r"[ ]*\n"
        for line in shown.splitlines()
    )
    return re.fullmatch(r"(?:.*\n)*" + pattern, printed.rstrip("\n") + "\n") is not None
