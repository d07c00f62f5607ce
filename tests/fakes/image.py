"""A Dockerfile done step by step below a folder, for machines that can build no image.

Its absolute paths lie below the folder, its `pip` is uv, which takes what uv.lock has out of its cache, and
`useradd` writes to files of that folder. The base image is not taken: Python is that of the tests, and the
system is this one.
"""

from __future__ import annotations

import fnmatch
import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from fakes import wheel

# The paths of the image that a step may name.
_OWN = re.compile(r"(?<![\w./])(?=/(?:src|opt|var)\b)")


@dataclass
class Image:
    """What the steps have made: stages by name, variables, the user, and what a container starts."""

    root: Path
    python: Path
    stages: dict[str, Path] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)
    user: str = "root"
    folder: str = "/"
    entry: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)

    @property
    def stage(self) -> Path:
        return list(self.stages.values())[-1]

    def start(self, *words: str) -> subprocess.CompletedProcess[str]:
        """What a container of the image does with these words, or without any."""
        path = _OWN.sub(str(self.stage), self.variables["PATH"]).replace("$PATH", os.environ["PATH"])
        return subprocess.run(
            [*self.entry, *(words or self.command)],
            cwd=self.stage / self.folder.lstrip("/"),
            env={"PATH": path, "HOME": str(self.stage / self.folder.lstrip("/"))},
            capture_output=True,
            text=True,
            check=False,
        )


def steps(file: Path) -> list[tuple[str, str]]:
    """The instructions of a Dockerfile with what follows them."""
    text = re.sub(r"^#.*\n", "", file.read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    return [(line.split()[0], line.split(maxsplit=1)[1]) for line in text.splitlines() if line.strip()]


def made(file: Path, root: Path, python: Path) -> Image:
    """Does every step in its order. Raises where one fails, or is of a kind that is not known here."""
    image = Image(root, python)
    for kind, rest in steps(file):
        if kind == "FROM":
            base, _, name = rest.partition(" AS ")
            assert re.fullmatch(r"python:3\.\d+-slim", base), base
            image.stages[name] = root / (name or "last")
            image.stages[name].mkdir()
        elif kind == "COPY":
            _copy(image, file, rest.split())
        elif kind == "RUN":
            for step in rest.split(" && "):
                _run(image, step)
        elif kind == "ENV":
            name, _, value = rest.partition("=")
            image.variables[name] = value
        elif kind in ("USER", "WORKDIR"):
            setattr(image, {"USER": "user", "WORKDIR": "folder"}[kind], rest)
            (image.stage / image.folder.lstrip("/")).mkdir(parents=True, exist_ok=True)
        else:
            setattr(image, {"ENTRYPOINT": "entry", "CMD": "command"}[kind], json.loads(rest))
    return image


def _copy(image: Image, file: Path, words: list[str]) -> None:
    target = image.stage / words[-1].lstrip("/")
    if words[0].startswith("--from="):
        source = image.stages[words[0].removeprefix("--from=")] / words[1].lstrip("/")
        shutil.copytree(source, target, symlinks=True)
        # The programs of an environment name the place that it was made in, which is the same in an image.
        for program in target.glob("bin/*"):
            if program.is_file() and not program.is_symlink():
                program.write_text(program.read_text().replace(str(source), str(target)))
        return
    assert words[0] == "."
    lines = Path(f"{file}.dockerignore").read_text().splitlines()
    ignored = [line for line in lines if line and line[0] != "#"]
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=wheel.ROOT, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    for name in filter(None, listed.split("\0")):
        first = name.partition("/")[0]
        if (wheel.ROOT / name).is_file() and not any(fnmatch.fnmatchcase(first, one) for one in ignored):
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(wheel.ROOT / name, target / name)


def _install_locked(file: Path, extras: list[str], install: str) -> None:
    """What uv.lock has of these extras: a resolver would ask an index about them."""
    words = [word for extra in extras for word in ("--extra", extra)]
    export = [wheel.uv(), "export", "--quiet", "--frozen", "--no-default-groups", "--no-emit-project", *words]
    subprocess.run([*export, "--no-hashes", "--output-file", file], cwd=wheel.ROOT, check=True)
    _shell(f"{install} --requirement {file}")


def _shell(step: str) -> None:
    """The step from the cache of uv, or from the index where the cache lacks a page of it."""
    if (
        " --offline " not in step
        or subprocess.run(["sh", "-c", step], check=False, capture_output=True).returncode
    ):
        subprocess.run(["sh", "-c", step.replace(" --offline ", " ")], check=True)


def _run(image: Image, step: str) -> None:
    step = _OWN.sub(str(image.stage), step)
    program, rest = step.split(maxsplit=1)
    uv = f"'{wheel.uv()}' --no-config"
    if program == "python":
        step = f"'{image.python}' {rest} --without-pip"
    elif program.endswith("/bin/pip"):
        extras = re.findall(r"/src\[([a-z,]+)\]", rest)[0].split(",")
        into = f"--offline --quiet --python {Path(program).with_name('python')}"
        _install_locked(image.root / "locked.txt", extras, f"{uv} pip install --no-deps {into}")
        step = f"{uv} pip {rest.replace('--no-cache-dir', into)}"
    elif program == "useradd":
        if os.geteuid() != 0:
            return
        (image.stage / "etc").mkdir(exist_ok=True)
        for name in ("passwd", "group", "shadow", "gshadow", "login.defs"):
            if Path("/etc", name).exists():
                shutil.copy(Path("/etc", name), image.stage / "etc" / name)
        # Its own option knows the folder that stands for the image's root.
        step = f"useradd --prefix {image.stage} {rest.replace(f'--home-dir {image.stage}', '--home-dir ')}"
    _shell(step)
