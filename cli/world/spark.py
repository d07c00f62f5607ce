"""The Spark session of this process, made when the first command asks for it."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from dq.cli.terminal import output
from dq.cli.world.environment import World, hand_down
from dq.contracts.shared.errors import MissingTool, Unreadable
from dq.contracts.shared.install import install_command
from dq.dataquality.model import jars as lakehouse

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession


SAFE_PATH = "PYTHONSAFEPATH"


def session(world: World, *, hive: bool = False, formats: Collection[str] = ()) -> SparkSession:
    """The session of a `spark-submit` or of Spark Connect, else a local one on all cores of this machine.

    A driver that spark-submit started, and a server of Connect (`SPARK_REMOTE`), are set up by whoever
    started them: only what belongs to SQL is set there. `hive` asks for a metastore: the one that a
    `hive-site.xml` names, else one in files below `.dq`.
    `formats` are those that will be read: a session made here fetches the jars that they need from Maven,
    once for the machine. A session that others started or set up (`PYSPARK_SUBMIT_ARGS`) brings its own.
    The zone of SQL is UTC, so that answers do not depend on the machine. Raises MissingTool without
    pyspark or Java, each with the command that mends it.
    """
    try:
        import pyspark
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise MissingTool("Spark is not installed.", install_command("spark")) from error
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    builder = (
        SparkSession.builder.config("spark.sql.session.timeZone", "UTC")
        # As Spark 4 does by itself: a cast that fails is an error, not a NULL that nobody notices.
        .config("spark.sql.ansi.enabled", "true")
        # A name in a contract is neither a file to be read nor a variable of this machine to be shown.
        .config("spark.sql.runSQLOnFiles", "false")
        .config("spark.sql.variable.substitute", "false")
    )
    needed: Mapping[str, str] = {}
    if "SPARK_REMOTE" not in world.environment:
        # Python puts the working folder first on the path of a task, and that may be a stranger's checkout.
        hand_down(SAFE_PATH, "1")
        builder = builder.config(f"spark.executorEnv.{SAFE_PATH}", "1")
    if not _THEIRS & set(world.environment):
        _java(world)
        builder = _local(builder, world, world.state())
        if not _SETUP & set(world.environment):
            needed = lakehouse.settings(pyspark.__version__, formats)
        for key, value in needed.items():
            builder = builder.config(key, value)
    if hive and "SPARK_REMOTE" not in world.environment:
        builder = builder.enableHiveSupport()
        if not {"SPARK_CONF_DIR", "HIVE_CONF_DIR"} & set(world.environment):
            derby = f"jdbc:derby:;databaseName={world.state() / 'metastore'};create=true"
            builder = builder.config("spark.hadoop.javax.jdo.option.ConnectionURL", derby)
    try:
        # Ivy tells on stdout which jars it loads, where our JSON has to stand alone; and errors of Spark
        # quote the data.
        with output.others():
            made: SparkSession = builder.getOrCreate()
    except (PySparkException, RuntimeError, OSError) as error:
        said = str(error).splitlines()[0]
        raise Unreadable(f"Spark did not start: {said}", _mend(needed)) from error
    return made


# Set for the program that spark-submit starts, and for a client of Spark Connect.
_THEIRS = {"PYSPARK_GATEWAY_PORT", "SPARK_REMOTE"}
# Whoever sets one of these says where Spark runs and what it is started with.
_SETUP = {"SPARK_REMOTE", "MASTER", "PYSPARK_SUBMIT_ARGS"}


def _local(builder: SparkSession.Builder, world: World, settings: Path) -> SparkSession.Builder:
    builder = (
        builder.appName("dq")
        # Several objects are tested at once: a large one must not keep the small ones waiting.
        .config("spark.scheduler.mode", "FAIR")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.warehouse.dir", str(settings / "warehouse"))
    )
    # Derby reads its settings from the working folder else.
    options = [f"-Dderby.system.home={settings}", f"-Dderby.stream.error.file={settings / 'derby.log'}"]
    # Has to be known before the JVM starts, or Spark greets every user with a page of warnings.
    logging = Path(__file__).with_name("log4j2.properties")
    if logging.is_file():
        options.append(f"-Dlog4j2.configurationFile={logging.as_uri()}")
    # Spark takes it apart as a shell would.
    builder = builder.config("spark.driver.extraJavaOptions", shlex.join(options))
    if "MASTER" not in world.environment:
        # What is meant for a cluster makes 200 and 50 tasks of little work.
        builder = builder.master("local[*]").config("spark.sql.shuffle.partitions", "8")
        builder = builder.config("spark.databricks.delta.snapshotPartitions", "8")
        # Tasks in Python take the first python3 on the path else, which may have neither dq nor pyarrow.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    return builder


def _mend(needed: Mapping[str, str]) -> str:
    if not needed:
        return "Run 'dq doctor'."
    jars = needed[lakehouse.PACKAGES]
    return (
        f"Spark says above whether it could fetch {jars}. Where Maven cannot be reached, hand the jars in:"
        " PYSPARK_SUBMIT_ARGS='--jars … pyspark-shell'."
    )


def spark_context(spark: SparkSession) -> SparkContext | None:
    """The session's context; None on Spark Connect, which has none."""
    return getattr(spark, "sparkContext", None)


def label(spark: SparkSession, group: str, description: str) -> None:
    """Names the jobs that this thread will run, so that Spark's pages tell what they are for."""
    context = spark_context(spark)
    if context is not None:
        context.setJobGroup(group, description)
    else:
        spark.clearTags()
        # The one sign that a tag may not hold.
        spark.addTag(group.replace(",", ";"))


def cancel(spark: SparkSession) -> None:
    """Ends every job of this application."""
    context = spark_context(spark)
    if context is not None:
        context.cancelAllJobs()
    else:
        spark.interruptAll()


def _java(world: World) -> None:
    home = world.environment.get("JAVA_HOME")
    found = (Path(home) / "bin" / "java").exists() if home else shutil.which("java") is not None
    if not found:
        where = f"JAVA_HOME={home} holds no bin/java" if home else "there is no java on the PATH"
        raise MissingTool(
            f"Spark needs Java 17, and {where}.",
            "Install it: apt-get install openjdk-17-jre-headless, or brew install openjdk@17.",
        )
