"""The Spark session of this process, concurrent work on several objects, and opening of catalogs."""

from __future__ import annotations

import importlib.util
import logging
import os
import queue
import re
import shlex
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from dq.contracts.install import install_command
from dq.contracts.outcome import DqError, MissingTool, ReadError
from dq.dataquality.model import run_context as lakehouse
from dq.operations.runtime.context import RuntimeContext, export_env
from dq.registry.catalog import Catalog, CatalogSettings
from dq.registry.catalogs import open_catalog
from dq.store.engine import Store

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession


# The Spark session of this process, created on request or for the first table that needs it.

SAFE_PATH = "PYTHONSAFEPATH"


def session(context: RuntimeContext, *, hive: bool = False, formats: Collection[str] = ()) -> SparkSession:
    """Return the session of spark-submit or Spark Connect, or a local one on all cores of this machine.

    A driver started by spark-submit and a Connect server (`SPARK_REMOTE`) are already configured: only SQL
    settings are set there. `hive` enables a metastore: the one in `hive-site.xml`, or one in files below
    `.dq`. `formats` are the formats to read: a session created here fetches their jars from Maven, once per
    machine. A session configured elsewhere (`PYSPARK_SUBMIT_ARGS`) brings its own jars. The SQL time zone is
    UTC, so that results do not depend on the machine. Raises MissingTool without pyspark or Java, with the
    install command.
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
        # The default of Spark 4: a failed cast is an error, not a silent NULL.
        .config("spark.sql.ansi.enabled", "true")
        # Names in contracts must not be read as files or substituted as variables.
        .config("spark.sql.runSQLOnFiles", "false")
        .config("spark.sql.variable.substitute", "false")
        # Skipped files would not be checked; see also `text_files.reader_of`.
        .config("spark.sql.files.ignoreCorruptFiles", "false")
        .config("spark.sql.files.ignoreMissingFiles", "false")
    )
    jar_settings: Mapping[str, str] = {}
    if "SPARK_REMOTE" not in context.environment:
        # Python workers put the working folder first on their path, and it may be an untrusted checkout.
        export_env(SAFE_PATH, "1")
        builder = builder.config(f"spark.executorEnv.{SAFE_PATH}", "1")
    if not _EXTERNALLY_STARTED & set(context.environment):
        _java(context)
        builder = _local(builder, context, context.state())
        if not _SETUP & set(context.environment):
            jar_settings = lakehouse.settings(pyspark.__version__, formats)
        for key, value in jar_settings.items():
            builder = builder.config(key, value)
    if hive and "SPARK_REMOTE" not in context.environment:
        builder = builder.enableHiveSupport()
        if not {"SPARK_CONF_DIR", "HIVE_CONF_DIR"} & set(context.environment):
            derby = f"jdbc:derby:;databaseName={context.state() / 'metastore'};create=true"
            builder = builder.config("spark.hadoop.javax.jdo.option.ConnectionURL", derby)
    # py4j logs what it also raises, with a traceback, to the root logger: an interrupt, the end of the JVM.
    logging.getLogger().addFilter(_is_not_of_py4j)
    try:
        # Ivy prints the jars to stdout, which is reserved for JSON output; and Spark errors quote the data.
        with context.messages.program_output():
            spark: SparkSession = builder.getOrCreate()
    except (PySparkException, RuntimeError, OSError) as error:
        reason = str(error).splitlines()[0]
        raise ReadError(f"Spark did not start: {reason}", _hint(jar_settings)) from error
    return spark


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    return record.module not in ("java_gateway", "clientserver")


# Set for programs started by spark-submit and for Spark Connect clients.
_EXTERNALLY_STARTED = {"PYSPARK_GATEWAY_PORT", "SPARK_REMOTE"}
# If one of these is set, the user configures where and how Spark runs.
_SETUP = {"SPARK_REMOTE", "MASTER", "PYSPARK_SUBMIT_ARGS"}
# The address of a cluster, in Spark's options.
_CLUSTER = re.compile(r"(?:--master[ =]+|\bspark\.master=)['\"]?(?!local(?:\[|['\"\s]|$))\S")


def _local(builder: SparkSession.Builder, context: RuntimeContext, settings: Path) -> SparkSession.Builder:
    builder = (
        builder.appName("dq")
        # Several objects are checked concurrently: a large one must not delay the small ones.
        .config("spark.scheduler.mode", "FAIR")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.warehouse.dir", str(settings / "warehouse"))
    )
    # By default, Derby reads its settings from the working folder.
    options = [f"-Dderby.system.home={settings}", f"-Dderby.stream.error.file={settings / 'derby.log'}"]
    # Must be set before the JVM starts to suppress Spark's startup warnings.
    log4j = Path(__file__).with_name("log4j2.properties")
    if log4j.is_file():
        options.append(f"-Dlog4j2.configurationFile={log4j.as_uri()}")
    # Spark splits this like a shell.
    builder = builder.config("spark.driver.extraJavaOptions", shlex.join(options))
    submitted = context.environment.get("PYSPARK_SUBMIT_ARGS", "")
    if "MASTER" not in context.environment and not _CLUSTER.search(submitted):
        # The defaults of 200 and 50 partitions are for clusters.
        builder = builder.master("local[*]").config("spark.sql.shuffle.partitions", "8")
        builder = builder.config("spark.databricks.delta.snapshotPartitions", "8")
        # Folders are listed by up to 10,000 tasks, one for each, which take 20 ms of CPU.
        builder = builder.config("spark.sql.sources.parallelPartitionDiscovery.parallelism", "64")
        # By default, Python tasks use the first python3 on the path, which may lack dq and pyarrow.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    return builder


def _hint(jar_settings: Mapping[str, str]) -> str:
    if not jar_settings:
        return "Run 'dq doctor'."
    jars = jar_settings[lakehouse.PACKAGES]
    return (
        f"See above whether Spark could fetch {jars}. Without access to Maven, pass the jars:"
        " PYSPARK_SUBMIT_ARGS='--jars … pyspark-shell'."
    )


def ended_jvm() -> ReadError | None:
    """Return the error that Spark's JVM, started by this process, has ended; None if it runs or never ran."""
    context: Any = getattr(sys.modules.get("pyspark"), "SparkContext", None)
    process = getattr(getattr(context, "_gateway", None), "proc", None)
    if process is None:
        return None
    try:
        # Its connections end a moment before the process does.
        process.wait(timeout=1)
    except subprocess.TimeoutExpired:
        return None
    return ReadError(
        "Spark's JVM has ended during the run, probably for lack of memory.",
        "Give it more than 1 GB: PYSPARK_SUBMIT_ARGS='--driver-memory 4g pyspark-shell'.",
    )


class LazySparkSession:
    """Spark session that is created by the first thread that needs it."""

    def __init__(self, begin: Callable[[], SparkSession]) -> None:
        self._begin, self._lock = begin, threading.Lock()
        self._outcome: SparkSession | DqError | None = None

    @property
    def current(self) -> SparkSession | None:
        """The session, or None if it has not been created."""
        return None if isinstance(self._outcome, DqError) else self._outcome

    def __call__(self) -> SparkSession:
        """Return the session, creating it if needed. A failed creation is raised to every caller."""
        with self._lock:
            if self._outcome is None:
                try:
                    self._outcome = self._begin()
                except DqError as error:
                    self._outcome = error
        if isinstance(self._outcome, DqError):
            raise self._outcome
        return self._outcome

    def for_job(self, group: str, description: str) -> SparkSession:
        """Return the session, with this thread's jobs in a scheduler pool of their own and labelled."""
        spark = self()
        own_pool(spark)
        label(spark, group, description)
        return spark


def lazy_session(
    context: RuntimeContext, *, hive: bool = False, formats: Collection[str] = ()
) -> LazySparkSession:
    """Return a lazy `session`.

    It is created immediately if Spark was started or configured elsewhere, because only the session then
    knows how it reads files. Raises as `session`, also on first use.
    """
    lazy = LazySparkSession(lambda: session(context, hive=hive, formats=formats))
    if "pyspark" in sys.modules or not is_stock_spark(context.environment):
        lazy()
    return lazy


_SPARK_PREFIXES = ("SPARK_", "PYSPARK_", "MASTER", "HADOOP_CONF_DIR", "YARN_CONF_DIR")
# Variables of Spark's scripts that do not affect how it reads files. SPARK_HOME is inspected.
_HARMLESS = {
    "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_HOME",
    "SPARK_LOCAL_DIRS", "SPARK_LOCAL_IP", "SPARK_LOCAL_HOSTNAME",
    # Set by pyspark itself once a session of this process started, and inherited by its children.
    "SPARK_AUTH_SOCKET_TIMEOUT", "SPARK_BUFFER_SIZE",
}  # fmt: skip
_TO_JAVA = {
    "SPARK_SUBMIT_OPTS", "SPARK_LAUNCHER_OPTS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS",
}  # fmt: skip
# A Java property named `spark.…` is a Spark setting, also in an argument file.
_SETTING = re.compile(r"-Dspark\.|@|VMOptionsFile")


def is_stock_spark(environment: Mapping[str, str]) -> bool:
    """True if a session created by dq will have only default settings and dq's own."""
    for name, value in environment.items():
        if name in _TO_JAVA:
            if _SETTING.search(value):
                return False
        elif name.startswith(_SPARK_PREFIXES) and name not in _HARMLESS:
            return False
    return not any(
        file.suffix in (".conf", ".sh", ".xml")
        for home in _spark_homes(environment)
        for file in home.glob("conf/*")
    )


def _spark_homes(environment: Mapping[str, str]) -> list[Path]:
    """Return the candidates of `pyspark.find_spark_home`, without importing pyspark."""
    if "SPARK_HOME" in environment:
        return [Path(environment["SPARK_HOME"])]
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        return []
    package = Path(spec.origin).parent
    return [package, package / "spark-distribution", package.parent.parent]


def own_pool(spark: SparkSession) -> None:
    """Run the jobs of this thread in a fair scheduler pool of its own."""
    context = spark_context(spark)
    if context is not None:
        context.setLocalProperty("spark.scheduler.pool", threading.current_thread().name)


def spark_context(spark: SparkSession) -> SparkContext | None:
    """Return the SparkContext of the session, or None on Spark Connect."""
    return getattr(spark, "sparkContext", None)


def label(spark: SparkSession, group: str, description: str) -> None:
    """Set the job group of this thread, shown in the Spark UI."""
    context = spark_context(spark)
    if context is not None:
        context.setJobGroup(group, description)
    else:
        spark.clearTags()
        # Tags must not contain commas.
        spark.addTag(group.replace(",", ";"))


def cancel(spark: SparkSession) -> None:
    """Cancel all jobs of this application."""
    context = spark_context(spark)
    if context is not None:
        context.cancelAllJobs()
    else:
        spark.interruptAll()


def _java(context: RuntimeContext) -> None:
    home = context.environment.get("JAVA_HOME")
    has_java = (Path(home) / "bin" / "java").exists() if home else shutil.which("java") is not None
    if not has_java:
        problem = f"JAVA_HOME={home} has no bin/java" if home else "java was not found on the PATH"
        raise MissingTool(
            f"Spark needs Java 17, but {problem}.",
            "Install it: apt-get install openjdk-17-jre-headless, or brew install openjdk@17.",
        )


# Concurrent work in one Spark application: a bounded number of threads with one fair scheduler pool each.
#
# Spark runs the jobs of one thread sequentially, so that small tables would wait for the driver. With a few
# threads, the jobs of several objects share the executors. Pools belong to threads, so that their number does
# not grow in a long-running application.

T = TypeVar("T")
R = TypeVar("R")


def default_parallelism(processors: int) -> int:
    """Return the default number of objects checked concurrently."""
    return min(8, processors + 2)


def run_concurrently(
    get_session: Callable[[], SparkSession | None], items: Sequence[T], work: Callable[[T], R], threads: int
) -> list[R | Exception]:
    """Apply `work` to each item in threads; return the results in order, exceptions as values.

    An exception does not stop the other items. An interrupt cancels the running jobs. `get_session` returns
    the session if there is one; work that creates it sets its own scheduler pool.
    """
    todo = queue.SimpleQueue[int]()
    for number in range(len(items)):
        todo.put(number)
    answers: dict[int, R | Exception] = {}
    spark = get_session()
    thread_class = _thread(spark)

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
        thread = thread_class(target=drain)
        thread.name = f"dq-{number + 1}"
        # An interrupt must end the process while a job is still being cancelled.
        thread.daemon = True
        thread.start()
        running.append(thread)
    try:
        for thread in running:
            thread.join()
    except KeyboardInterrupt:
        while _next(todo) is not None:
            pass
        if (active := get_session()) is not None:
            cancel(active)
        raise
    return [answers[number] for number in range(len(items))]


def _thread(spark: SparkSession | None) -> type[threading.Thread]:
    """Return the thread class that inherits the local properties of Spark, if there are any."""
    if spark is None or spark_context(spark) is None:
        return threading.Thread
    from pyspark import InheritableThread

    return InheritableThread


def _next(todo: queue.SimpleQueue[int]) -> int | None:
    try:
        return todo.get_nowait()
    except queue.Empty:
        return None


# Opening of catalogs.

_ICEBERG = "PYICEBERG_CATALOG__DEFAULT__"


def open_named_catalog(
    context: RuntimeContext, store: Store | None, name: str, role: str, account: str
) -> Catalog:
    """Open the catalog with this id. Raises UsageError if it is unknown or a setting is missing."""
    settings = CatalogSettings(
        store, lambda: session(context, hive=True), role, account, iceberg_properties(context.environment)
    )
    return open_catalog(name, settings)


def iceberg_properties(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of pyiceberg's catalog `default` from the environment, with pyiceberg's naming
    rule.

    Its config file is not read: it may be in the working folder, which may be an untrusted checkout.
    """
    return {
        name[len(_ICEBERG) :].lower().replace("__", ".").replace("_", "-"): value
        for name, value in environment.items()
        if name.upper().startswith(_ICEBERG)
    }
