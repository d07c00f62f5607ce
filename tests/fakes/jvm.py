"""How JVMs are started for the tests: without what only pays in programs that run for long.

    python tests/fakes/jvm.py

Makes an archive of Spark's classes beside this Python, for half a minute of a processor. Each JVM that starts
with it takes three seconds less; where there is none, or Spark or Java has changed, they start as ever.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

# Hundreds of small queries end before the optimizing compiler pays: half of the CPU without it.
# And no proof of byte code: a fifth of a start goes into proving what Spark's own releases were tested with.
# That compiler keeps 48 MB of code by itself: full after 20 s of queries, and nothing is compiled then.
SMALL = (
    "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"
    " -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)
# Room for what many queries leave behind, so that it is cleared a third as often, and never all of it.
_ROOM = "-Xmn400m -XX:MetaspaceSize=400m"
# The log goes to stdout, and would say that an archive does not fit.
ARCHIVE = Path(sys.prefix, "spark-classes.jsa")
# Airflow's environment has none: it takes that of the same jars in the environment beside it. It does not fit
# other lines of Spark, whose JVMs start as ever.
_BESIDE = Path(sys.prefix).with_name(".venv") / ARCHIVE.name
_FOUND = _BESIDE if _BESIDE.exists() and not ARCHIVE.exists() else ARCHIVE
_ARCHIVED = f'"-XX:SharedArchiveFile={_FOUND}" -Xlog:disable'
# For JVMs that no script of Spark's starts with the settings below: executors and the daemons of a cluster.
CLUSTER = f"{SMALL} {_ARCHIVED}"
# For a program that says nothing of them: a bar is drawn over its output, and 200 tasks do little work.
_QUIET = "-Dspark.ui.showConsoleProgress=false -Dspark.sql.shuffle.partitions=2"
# Each task that groups or sorts takes a page first: 64 MB for three rows, to be cleared and collected.
_PAGES = "-Dspark.buffer.pageSize=2m"
# Python workers that do not read pyspark.zip anew before each task: most of their time went into that.
WORKER = Path(__file__).parent / "worker"
_WORKERS = f'-Dspark.python.daemon.module=quick_daemon "-Dspark.executorEnv.PYTHONPATH={WORKER}"'

# Read by Spark's scripts, and by no part of dq: what dq itself sets up stays as it is.
SETTINGS = {
    "SPARK_SUBMIT_OPTS": f"{SMALL} {_ROOM} {_ARCHIVED} {_QUIET} {_PAGES} {_WORKERS}",
    "SPARK_LAUNCHER_OPTS": SMALL,
}


def make_archive(folder: Path) -> None:
    """Does a little of each thing that the tests do, in a JVM that writes its classes down when it ends."""
    os.environ["SPARK_SUBMIT_OPTS"] = (
        f'{SMALL} "-XX:ArchiveClassesAtExit={folder}/classes.jsa" -Xlog:disable {_QUIET}'
    )
    from pyspark.sql import SparkSession

    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.warehouse.dir", f"{folder}/warehouse")
        .config(
            "spark.hadoop.javax.jdo.option.ConnectionURL", f"jdbc:derby:;databaseName={folder}/db;create=true"
        )
        .config("spark.driver.extraJavaOptions", f"-Dderby.system.home={folder}")
        .enableHiveSupport()
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    rows = spark.range(100).selectExpr(
        "id", "id % 7 AS kind", "CAST(id AS STRING) AS name", "current_date() AS day"
    )
    for form in ("parquet", "csv", "json", "orc"):
        rows.write.format(form).partitionBy("kind").save(f"{folder}/{form}")
        spark.read.format(form).schema(rows.schema).load(f"{folder}/{form}").createOrReplaceTempView("rows")
        spark.sql(
            "SELECT kind, count(*), sum(id), max(name), collect_list(name), count(DISTINCT name) FROM rows"
            " WHERE name RLIKE '[0-9]' GROUP BY kind ORDER BY kind"
        ).collect()
    spark.sql(
        "SELECT a.id, row_number() OVER (ORDER BY b.id) FROM rows a JOIN rows b ON a.id = b.id"
    ).collect()
    spark.sql("CREATE TABLE kept (id BIGINT) PARTITIONED BY (day DATE) STORED AS PARQUET")
    spark.sql("SHOW PARTITIONS kept").collect()
    spark.sql("DROP TABLE kept")
    spark.stop()


if __name__ == "__main__":
    # On the same disk, so that nobody finds half of it.
    with tempfile.TemporaryDirectory(prefix="dq-classes-", dir=sys.prefix) as name:
        make_archive(Path(name))
        # The JVM writes when it hears that this program ends, and this program waits for it.
        from pyspark import SparkContext

        gateway = SparkContext._gateway
        assert gateway is not None
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait()
        Path(name, "classes.jsa").replace(ARCHIVE)
