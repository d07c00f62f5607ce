"""The Spark session of this process, work on several objects side by side, and catalogs opened with it."""

from __future__ import annotations

import importlib.util
import os
import queue
import re
import shlex
import shutil
import sys
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from dq.contracts.install import install_command
from dq.contracts.outcome import DqError, MissingTool, Unreadable
from dq.dataquality.model import run_context as lakehouse
from dq.operations.runtime.context import World, hand_down
from dq.registry.catalog import Catalog, CatalogSettings
from dq.registry.catalogs import open_catalog
from dq.store.engine import Store

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession


# The Spark session of this process, made when a command asks for it, or the first table that needs it.

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
        # What is passed over is not checked; see also `text_files.reader_of`.
        .config("spark.sql.files.ignoreCorruptFiles", "false")
        .config("spark.sql.files.ignoreMissingFiles", "false")
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
        with world.messages.program_output():
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


class SparkAtNeed:
    """The session of a command, begun by the first of its threads that needs one."""

    def __init__(self, begin: Callable[[], SparkSession]) -> None:
        self._begin, self._lock = begin, threading.Lock()
        self._outcome: SparkSession | DqError | None = None

    @property
    def begun(self) -> SparkSession | None:
        """The session; None as long as nothing needed it."""
        return None if isinstance(self._outcome, DqError) else self._outcome

    def __call__(self) -> SparkSession:
        """The session, begun now if it is not yet. What kept it from that is raised to all that need it."""
        with self._lock:
            if self._outcome is None:
                try:
                    self._outcome = self._begin()
                except DqError as error:
                    self._outcome = error
        if isinstance(self._outcome, DqError):
            raise self._outcome
        return self._outcome

    def labelled(self, group: str, description: str) -> SparkSession:
        """The session; it runs this thread's jobs in a pool of their own, and tells what they are for."""
        spark = self()
        own_pool(spark)
        label(spark, group, description)
        return spark


def at_need(world: World, *, hive: bool = False, formats: Collection[str] = ()) -> SparkAtNeed:
    """`session`, as late as nobody can tell the difference.

    It is begun at once where others began or set it up: then only the session tells how it reads files.
    Raises what `session` raises, as does the value.
    """
    made = SparkAtNeed(lambda: session(world, hive=hive, formats=formats))
    if "pyspark" in sys.modules or not as_shipped(world.environment):
        made()
    return made


_TELLING = ("SPARK_", "PYSPARK_", "MASTER", "HADOOP_CONF_DIR", "YARN_CONF_DIR")
# Variables of Spark's scripts that say nothing of how it reads files. SPARK_HOME is looked into.
_HARMLESS = {
    "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_HOME",
    "SPARK_LOCAL_DIRS", "SPARK_LOCAL_IP", "SPARK_LOCAL_HOSTNAME",
}  # fmt: skip
_TO_JAVA = {
    "SPARK_SUBMIT_OPTS", "SPARK_LAUNCHER_OPTS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS",
}  # fmt: skip
# A property of Java whose name is one of Spark's is a setting of Spark, also where a file says it.
_SETTING = re.compile(r"-Dspark\.|@|VMOptionsFile")


def as_shipped(environment: Mapping[str, str]) -> bool:
    """Whether a session of dq's own will have no settings but Spark's and dq's."""
    for name, value in environment.items():
        if name in _TO_JAVA:
            if _SETTING.search(value):
                return False
        elif name.startswith(_TELLING) and name not in _HARMLESS:
            return False
    return not any(
        file.suffix in (".conf", ".sh", ".xml")
        for home in _spark_homes(environment)
        for file in home.glob("conf/*")
    )


def _spark_homes(environment: Mapping[str, str]) -> list[Path]:
    """Where `pyspark.find_spark_home`, which costs the import of all of it, may find Spark."""
    if "SPARK_HOME" in environment:
        return [Path(environment["SPARK_HOME"])]
    found = importlib.util.find_spec("pyspark")
    if found is None or found.origin is None:
        return []
    package = Path(found.origin).parent
    return [package, package / "spark-distribution", package.parent.parent]


def own_pool(spark: SparkSession) -> None:
    """Jobs of this thread share the executors with those of others; see `concurrency`."""
    context = spark_context(spark)
    if context is not None:
        context.setLocalProperty("spark.scheduler.pool", threading.current_thread().name)


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


# Pieces of work side by side in one Spark application: a bounded number of threads, one fair pool each.
#
# Spark runs the jobs of one thread one after another, so that a small table would wait on the driver's work
# for it. With a few threads the jobs of several objects share the executors. The scheduler's pool belongs
# to
# the thread: an object has it for itself as long as it runs, and pools do not pile up in a long
# application.

T = TypeVar("T")
R = TypeVar("R")


def at_once(processors: int) -> int:
    """How many objects are tested side by side when nobody says."""
    return min(8, processors + 2)


def together(
    begun: Callable[[], SparkSession | None], items: Sequence[T], work: Callable[[T], R], threads: int
) -> list[R | Exception]:
    """What `work` gives for each item, in their order; an item whose work raised gives its exception.

    Nothing that is raised keeps the other items from their turn. An interrupt cancels the jobs that run.
    `begun` is the session; work that begins it itself sees to its own pool.
    """
    todo = queue.SimpleQueue[int]()
    for number in range(len(items)):
        todo.put(number)
    answers: dict[int, R | Exception] = {}
    spark = begun()
    kind = _thread(spark)

    def drain() -> None:
        if spark is not None:
            own_pool(spark)
        while (number := _next(todo)) is not None:
            try:
                answers[number] = work(items[number])
            except Exception as error:  # noqa: BLE001  # the one guard per object; the caller raises it again
                answers[number] = error

    running = []
    for number in range(min(threads, len(items))):
        thread = kind(target=drain)
        thread.name = f"dq-{number + 1}"
        # So that an interrupt can end the process while a job is still being cancelled.
        thread.daemon = True
        thread.start()
        running.append(thread)
    try:
        for thread in running:
            thread.join()
    except KeyboardInterrupt:
        while _next(todo) is not None:
            pass
        if (running_on := begun()) is not None:
            cancel(running_on)
        raise
    return [answers[number] for number in range(len(items))]


def _thread(spark: SparkSession | None) -> type[threading.Thread]:
    """One that keeps the properties that a spark-submit set; Spark Connect has none."""
    if spark is None or spark_context(spark) is None:
        return threading.Thread
    from pyspark import InheritableThread

    return InheritableThread


def _next(todo: queue.SimpleQueue[int]) -> int | None:
    try:
        return todo.get_nowait()
    except queue.Empty:
        return None


# The catalog that a command names, opened.

_ICEBERG = "PYICEBERG_CATALOG__DEFAULT__"


def opened(world: World, store: Store | None, name: str, role: str, account: str) -> Catalog:
    """The catalog of this id. Raises UsageError for an unknown one, and for what it misses."""
    settings = CatalogSettings(
        store, lambda: session(world, hive=True), role, account, iceberg_properties(world.environment)
    )
    return open_catalog(name, settings)


def iceberg_properties(environment: Mapping[str, str]) -> dict[str, str]:
    """What the environment says of pyiceberg's catalog `default`, by pyiceberg's own rule for names.

    Its file is not read: it may lie in the working folder, which may be a stranger's checkout.
    """
    return {
        name[len(_ICEBERG) :].lower().replace("__", ".").replace("_", "-"): value
        for name, value in environment.items()
        if name.upper().startswith(_ICEBERG)
    }
