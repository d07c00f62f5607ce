"""The tables of the benchmark, each made if it is missing."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from spark import environments

# About 1.5 million rows a file at every scale, so that more rows are more files and not larger ones.
FILES_PER_SCALE = 4
BROKEN = ("dirty", "retyped")
BROKEN_SCALE = 0.01


def scaled(scale: float) -> str:
    """The name of lineitem at a scale factor."""
    return f"sf{scale:g}"


def months(scale: float) -> str:
    """The name of its copy by month."""
    return f"months-sf{scale:g}"


def place(name: str, work: Path) -> Path:
    """The folder of a table, made now if it is not there. Raises Unbuildable without the tools."""
    folder = work / "data" / name
    if not folder.exists():
        print(f"  making the table {name}", file=sys.stderr, flush=True)
        _maker(name)(name, folder, work)
    return folder


def _maker(name: str) -> Callable[[str, Path, Path], None]:
    return _generated if name.startswith("sf") else _derived


def _generated(name: str, folder: Path, work: Path) -> None:
    scale = float(name.removeprefix("sf"))
    scratch = work / "data" / f"{name}.part"
    shutil.rmtree(scratch, ignore_errors=True)
    generate = environments.python("tools", work).parent / "tpchgen-cli"
    parts = max(1, round(FILES_PER_SCALE * scale))
    options = [
        f"--scale-factor={scale:g}",
        "--tables=lineitem",
        f"--parts={parts}",
        f"--output-dir={scratch}",
    ]
    _run([str(generate), "parquet", *options])
    (scratch / "lineitem").rename(folder)
    shutil.rmtree(scratch)


def _derived(name: str, folder: Path, work: Path) -> None:
    what, _, source = name.partition("-")
    origin = place(source or scaled(BROKEN_SCALE), work)
    python = environments.python("tools", work)
    _run([str(python), "-m", "spark.tables", what, str(origin), str(folder)])


def _run(command: list[str]) -> None:
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=Path(__file__).parent.parent
    )
    if done.returncode != 0:
        raise environments.Unbuildable(done.stderr.strip()[-300:] or f"{command[0]} failed")
