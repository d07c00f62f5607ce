"""The wheel of this working tree, and a Python that has what dq needs, but not dq."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
import venv
from pathlib import Path

ROOT = Path(__file__).parents[2]


def uv() -> str:
    """The uv that runs the tests, else that of the machine, else the private one that make brings."""
    return os.environ.get("UV") or shutil.which("uv") or str(ROOT / ".uv" / "bin" / "uv")


def built(folder: Path) -> Path:
    """The wheel, built in a copy of what is in Git or would be, so that no earlier build leaks into it."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (folder / "copy" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / "copy" / name)
    subprocess.run([uv(), "build", "--quiet", "--wheel", "--out-dir", folder, folder / "copy"], check=True)
    return next(folder.glob("*.whl"))


def python_without_dq(folder: Path) -> Path:
    """An environment that sees the packages of this one; a strict editable dq is not one of them."""
    venv.create(folder, symlinks=True)
    (site,) = folder.glob("lib/python3*/site-packages")
    (site / "packages.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder / "bin" / "python"
