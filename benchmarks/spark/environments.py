"""An environment of its own for every peer, made by uv in the work folder and kept there."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import sys
from pathlib import Path

SPARK = f"pyspark=={importlib.metadata.version('pyspark')}"
# The newest Spark that pydeequ knows.
EARLIER_SPARK = "pyspark==3.5.9"
DEEQU = "com.amazon.deequ:deequ:2.0.7-spark-3.5"
# The same Spark for all that run on it; pandas as each of them bears it.
PACKAGES: dict[str, tuple[str, ...]] = {
    "tools": ("tpchgen-cli==4.0.0", "duckdb==2.0.0"),
    "polars": ("polars==2.1.0",),
    "datacontract": ("datacontract-cli[databricks]==1.2.8", SPARK),
    "great_expectations": ("great-expectations[spark]==1.24.1", SPARK),
    "pandera": ("pandera[pyspark]==0.35.0", SPARK, "pandas<3"),
    "cuallee": ("cuallee==0.15.4", SPARK, "pandas<3", "setuptools"),
    "dqx": ("databricks-labs-dqx==0.17.0", SPARK, "pandas<3"),
    "soda": ("soda-sparkdf==4.28.0", SPARK, "pandas<3"),
    "datacompy": ("datacompy[spark]==1.1.0", SPARK),
    "foreign": (
        "duckdb==2.0.0",
        "fastparquet==2026.9.0",
        "deltalake==1.6.6",
        "pyiceberg[sql-sqlite,pyarrow]==0.12.0",
        "arro3-io==0.9.1",
    ),
    "deequ": ("pydeequ==1.7.0", EARLIER_SPARK, "pandas<3", "setuptools"),
}


class Unbuildable(Exception):
    """An environment cannot be made here; the text says why."""


def python(name: str, work: Path) -> Path:
    """The interpreter of an environment; "dq" is the one that runs this. Raises Unbuildable."""
    if name == "dq":
        return Path(sys.executable)
    home = work / "environments" / name
    interpreter = home / "bin" / "python"
    mark = home / "packages"
    requirements = "\n".join(PACKAGES[name])
    if mark.exists() and mark.read_text("utf-8") == requirements and interpreter.exists():
        return interpreter
    uv = os.environ.get("UV") or shutil.which("uv")
    if uv is None:
        raise Unbuildable("there is no uv to install it with")
    print(f"  making the environment of {name}", file=sys.stderr, flush=True)
    shutil.rmtree(home, ignore_errors=True)
    _run([uv, "venv", "--quiet", "--python", sys.executable, str(home)])
    _run([uv, "pip", "install", "--quiet", "--python", str(interpreter), *PACKAGES[name]])
    mark.write_text(requirements, "utf-8")
    return interpreter


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"{command[1]} ends with {done.returncode}"]
        raise Unbuildable(" ".join(line.strip() for line in lines[:3])[:300])
