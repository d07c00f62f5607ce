"""The parts of a cluster: Spark with an S3 client, and an environment with dq for its executors."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pyspark
from _cluster import PYTHON
from fakes.wheel import built, uv

from dq.contracts.install import NAME

_POM = """\
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>dq</groupId><artifactId>cluster</artifactId><version>1</version><dependencies>{dependencies}
</dependencies></project>
"""
_DEPENDENCY = """
<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>"""
# What YARN's daemons need, and their package for clients' tests leaves out: JAXB was in Java up to 10.
_FOR_YARN = ("org.bouncycastle:bcpkix-jdk18on:1.79", "org.glassfish.jaxb:jaxb-runtime:2.3.9")


class Unbuildable(Exception):
    """A part cannot be made here; the text says why."""


def spark_home(work: Path) -> Path:
    """Return Spark of this environment with Hadoop's S3 client among its jars. Raises Unbuildable."""
    source = Path(pyspark.__file__).parent
    version = _hadoop_version(source)
    home = work / f"spark-{pyspark.__version__}"
    if not home.exists():
        jars = sorted(maven("hadoop-aws", version, work).glob("*.jar"))
        partial = home.with_suffix(".part")
        shutil.rmtree(partial, ignore_errors=True)
        shutil.copytree(source, partial, copy_function=_link)
        for jar in jars:
            if jar.name.startswith(("hadoop-aws", "bundle", "wildfly")):
                _link(str(jar), str(partial / "jars" / jar.name))
        partial.rename(home)
    return home


def _hadoop_version(home: Path) -> str:
    (client,) = home.glob("jars/hadoop-client-api-*.jar")
    return client.stem.rpartition("-")[2]


def hadoop_jars(spark: Path, work: Path) -> Path:
    """Return a folder with the jars of HDFS and YARN, in Spark's version of Hadoop. Raises Unbuildable."""
    return maven("hadoop-client-minicluster", _hadoop_version(spark), work, _FOR_YARN)


def maven(name: str, version: str, work: Path, also: tuple[str, ...] = ()) -> Path:
    """Return a folder with the jars of an artifact of Hadoop, of others, and of what they require.

    Raises Unbuildable.
    """
    artifacts = (f"org.apache.hadoop:{name}:{version}", *also)
    folder = work / "-".join([f"{name}-{version}", *(text.split(":")[1] for text in also)])
    if not folder.exists():
        if shutil.which("mvn") is None:
            raise Unbuildable("there is no mvn to fetch Hadoop's jars with")
        work.mkdir(parents=True, exist_ok=True)
        pom = work / f"{name}.xml"
        dependencies = "".join(_DEPENDENCY.format(*text.split(":")) for text in artifacts)
        pom.write_text(_POM.format(dependencies=dependencies), "utf-8")
        part = folder.with_suffix(".part")
        copy = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={part}"]
        _run(["mvn", "-q", "-B", "-f", str(pom), *copy])
        part.rename(folder)
    return folder


def make(work: Path) -> None:
    """Make the parts that `spark_home` and `environment` return, from the package registries.

    Raises Unbuildable.
    """
    spark_home(work)
    folder = work / "environment"
    home, archive, digest = folder / "dq-env", environment(work), folder / "digest"
    shutil.rmtree(folder / "wheel", ignore_errors=True)
    (folder / "wheel").mkdir(parents=True)
    wheel = built(folder / "wheel")
    # No pyspark: Spark's own scripts put theirs on the path.
    packages = [f"{wheel}[s3]", "numpy", "venv-pack==0.2.0", "setuptools<81"]
    with zipfile.ZipFile(wheel) as files:
        content = repr(
            [python_versions(), packages, [(file.filename, file.CRC) for file in files.infolist()]]
        )
    if archive.exists() and digest.exists() and digest.read_text("utf-8") == content:
        return
    archive.unlink(missing_ok=True)
    if not home.exists():
        _run([uv(), "venv", "--quiet", "--python", PYTHON, str(home)])
    python = str(home / "bin" / "python")
    _run([uv(), "pip", "install", "--quiet", "--reinstall-package", NAME, "--python", python, *packages])
    _run(
        [str(home / "bin" / "venv-pack"), "-q", "-p", str(home), "-o", str(archive), "--compress-level", "1"]
    )
    digest.write_text(content, "utf-8")


def environment(work: Path) -> Path:
    """Return a packed environment with dq of this checkout, for the Python of the nodes."""
    return work / "environment" / "dq-env.tar.gz"


def python_versions() -> tuple[str, str]:
    """Return the Python versions of driver and nodes. Raises Unbuildable if Spark cannot combine them."""
    driver = sys.version.split()[0]
    shown = subprocess.run([PYTHON, "-V"], capture_output=True, text=True, check=False)
    nodes = shown.stdout.strip().rpartition(" ")[2]
    if nodes.rpartition(".")[0] != driver.rpartition(".")[0]:
        raise Unbuildable(
            f"{PYTHON} is {nodes or 'missing'}, and Spark needs the driver's {driver} without its patch"
        )
    return driver, nodes


def _link(source: str, target: str) -> None:
    try:
        os.link(os.path.realpath(source), target)
    except OSError:
        shutil.copyfile(source, target)
        shutil.copymode(source, target)


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Unbuildable(f"{' '.join(command[:3])}: {(done.stderr or done.stdout).strip()[-300:]}")
