"""How JVMs are started for the tests: without what only pays in programs that run for long."""

from __future__ import annotations

from pathlib import Path

# Hundreds of small queries end before the optimizing compiler pays: half of the CPU without it.
# And no proof of byte code: a fifth of a start goes into proving what Spark's own releases were tested with.
# That compiler keeps 48 MB of code by itself: full after 20 s of queries, and nothing is compiled then.
_SMALL = (
    "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"
    " -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)
# For a program that says nothing of them: a bar is drawn over its output, and 200 tasks do little work.
_QUIET = "-Dspark.ui.showConsoleProgress=false -Dspark.sql.shuffle.partitions=2"
# Python workers that do not read pyspark.zip anew before each task: most of their time went into that.
_FOLDER = Path(__file__).parent / "worker"
_WORKERS = f'-Dspark.python.daemon.module=quick_daemon "-Dspark.executorEnv.PYTHONPATH={_FOLDER}"'

# Read by Spark's scripts, and by no part of dq: what dq itself sets up stays as it is.
SETTINGS = {"SPARK_SUBMIT_OPTS": f"{_SMALL} {_QUIET} {_WORKERS}", "SPARK_LAUNCHER_OPTS": _SMALL}
