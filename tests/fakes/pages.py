"""Pages of the docs, done as they say: files are written, commands run, and what they print compared.

In a page, in order, in one new folder:

    ```yaml file=NAME    writes NAME; so does every other kind with a file
    ```yaml in=NAME      is to stand in NAME, once
    ```yaml end=NAME     is written at the end of NAME, which is there
    ```diff in=NAME      writes its lines with `+` in the place of those with `-`, which stand in NAME once
    ```sh                runs each line; a line that must fail ends in `# exit N`
    ```text              is how the output of the commands before it ends; `…` stands for any lines
    ```python            runs as a program

A block of any kind that says `spark` is left out where there is none.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from threading import Timer

from fakes import jvm

BLOCK = re.compile(r"^```(?P<kind>\w+)(?: (?P<how>[^\n]*))?\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
EXIT = re.compile(r"\s*# exit (\d+)$")
# How long one line may take.
SECONDS = 300
# Variables that a process may get while it runs, before a line.
OWN = re.compile(r"(PYTHONPATH|DQ_\w+)=([\w./:-]+) +")
# A line that needs no shell: no other variable before it, no pipe, no other file.
PLAIN = re.compile(r"(?:dq|python) (?:'[^']*'|\"[^\"$`\\]*\"|[^'\"|&;<>$`\\(){}*?#~\n])*")
# Shown and explained elsewhere, or needing a server that the page tells its reader to start.
NOT_RUN = "not-run"
SPARK = "spark"


def blocks(page: Path, *without: str) -> list[re.Match[str]]:
    """The blocks that are run or compared, without those that say one of these words."""
    left_out = {NOT_RUN, *without}
    return [block for block in BLOCK.finditer(page.read_text())
            if left_out.isdisjoint((block["how"] or "").split())]  # fmt: skip


def commands(page: Path) -> list[str]:
    """Every line that a reader is told to run, those too that are not run here."""
    shown = [block["body"] for block in BLOCK.finditer(page.read_text()) if block["kind"] == "sh"]
    return [line for body in shown for line in body.splitlines() if line.strip()]


@dataclass
class Desk:
    """A folder in which one page after another is followed, and the process that they share.

    A Spark that has started, and has run a few queries, is most of what a page would wait for.
    """

    folder: Path
    stack: ExitStack
    running: list[subprocess.Popen[str]] = field(default_factory=list)

    def cleared(self) -> Path:
        """The folder without what the page before left in it; it stays the one that the process is in."""
        for path in self.folder.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
        return self.folder


def follow(
    page: Path,
    folder: Path,
    python: Path,
    *,
    together: bool = False,
    spark: bool = True,
    desk: Desk | None = None,
) -> None:
    """Does what the page says in the folder, with the dq beside this Python. Asserts that it is so.

    Together: the plain lines of dq and the programs in one process, so that Spark starts once and not once
    a line. All have the session that the first of them made. At a desk, it goes on with the next page.
    """
    printed = ""
    with ExitStack() as stack:
        kept = _Kept(folder, python, stack, desk) if together else None
        for block in blocks(page) if spark else blocks(page, SPARK):
            kind, how, body = block["kind"], block["how"] or "", block["body"]
            if how.startswith("file="):
                file = folder / how.removeprefix("file=")
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(body)
            elif how.startswith(("end=", "in=")):
                file = folder / how.partition("=")[2]
                file.write_text(_edited(file.read_text(), body, how, kind))
            elif kind == "sh":
                printed = "".join(
                    run_line(line, folder, python, kept) for line in body.splitlines() if line.strip()
                )
            elif kind == "python":
                (folder / "program.py").write_text(body)
                printed = run_line("python program.py", folder, python, kept)
            elif kind == "text":
                assert matches(body, printed), f"{page.name} shows:\n{body}\nand it printed:\n{printed}"


@dataclass
class _Kept:
    """A process that runs one line after another, of dq and of programs; started when first needed."""

    folder: Path
    python: Path
    stack: ExitStack
    desk: Desk | None
    running: list[subprocess.Popen[str]] = field(default_factory=list)

    def answer(self, words: list[str], variables: dict[str, str]) -> tuple[int, str]:
        shared = self.desk or self
        if not shared.running or shared.running[-1].poll() is not None:
            shared.running.append(self._start(shared.stack))
        process = shared.running[-1]
        assert process.stdin is not None
        assert process.stdout is not None
        asked = words[1:] if words[0] == "dq" else ["program", *words[1:]]
        process.stdin.write(json.dumps([asked, variables]) + "\n")
        process.stdin.flush()
        late = Timer(SECONDS, process.kill)
        late.start()
        said = process.stdout.readline()
        late.cancel()
        assert said, f"{words}: no answer, and the process has ended"
        answer = json.loads(said)
        return answer["code"], answer["printed"]

    def _start(self, stack: ExitStack) -> subprocess.Popen[str]:
        return stack.enter_context(
            subprocess.Popen(
                [self.python, "-P", Path(__file__).with_name("in_one.py"), "--asked"],
                cwd=self.folder,
                env=_environment(self.python),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        )


def _edited(text: str, body: str, how: str, kind: str) -> str:
    if how.startswith("end="):
        return text + body
    before = after = body
    if kind == "diff":
        lines = body.splitlines()
        before, after = ("".join(f"{line[1:]}\n" for line in lines if line[0] in f" {sign}") for sign in "-+")
    assert text.count(before) == 1, f"{before!r} does not stand once in:\n{text}"
    return text.replace(before, after)


def run_line(
    line: str,
    folder: Path,
    python: Path,
    kept: _Kept | None = None,
    variables: Mapping[str, str] | None = None,
) -> str:
    """What a line prints, with these variables besides ours. Asserts that it exits as it says."""
    wanted = EXIT.search(line)
    command = EXIT.sub("", line)
    own = OWN.match(command)
    plain = command[own.end() :] if own else command
    if kept and PLAIN.fullmatch(plain):
        code, printed = kept.answer(shlex.split(plain), {own[1]: own[2]} if own else {})
    else:
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=folder,
            env={**_environment(python), **(variables or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        code, printed = done.returncode, done.stdout
    assert code == (int(wanted[1]) if wanted else 0), f"{line}\n{printed}"
    return printed


def _environment(python: Path) -> dict[str, str]:
    """Ours, with the dq beside this Python, which is then `python` too."""
    environment = {**os.environ, "PATH": f"{python.parent}:{os.environ['PATH']}", "COLUMNS": "100"}
    environment.pop("DQ_STORE_URL", None)
    if python != Path(sys.executable):
        # What the tests set for their own Spark is a setting of the reader's otherwise.
        for name in jvm.SETTINGS:
            environment.pop(name, None)
    return environment


def matches(shown: str, printed: str) -> bool:
    pattern = "".join(
        r"(?:.*\n)*" if line.strip() == "…" else re.escape(line.rstrip()) + r"[ ]*\n"
        for line in shown.splitlines()
    )
    # Spark's progress is written over, as in a terminal.
    seen = re.sub(r"[^\n]*\r(?!\n)", "", printed)
    return re.fullmatch(r"(?:.*\n)*" + pattern, seen.rstrip("\n") + "\n") is not None
