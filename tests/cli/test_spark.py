"""The session that dq starts by itself."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark

PROGRAM = """
import sys
from dq.operations.runtime.spark import session
from dq.operations.runtime.context import runtime_context
context = session(runtime_context()).sparkContext
print(context.parallelize([0], 1).map(lambda _: sys.prefix).first() == sys.prefix)
"""


def test_tasks_run_in_the_environment_of_dq_whatever_the_path_and_the_folder(tmp_path):
    other = tmp_path / "bin"
    other.mkdir()
    (other / "python3").write_text("#!/bin/sh\nexit 1\n")
    (other / "python3").chmod(0o755)
    java = Path(shutil.which("java") or "java").parent
    environment = {name: text for name, text in os.environ.items() if not name.startswith("PYSPARK")}

    # Spark takes the options of its JVM apart as a shell would.
    folder = tmp_path / 'the "first" user\'s'
    folder.mkdir()

    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=folder,
        env=environment | {"PATH": f"{other}:{java}:{os.defpath}"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert done.stdout.strip().splitlines()[-1:] == ["True"], done.stderr[-2_000:]


KILLED = """
import signal, sys, threading
from dq.cli.main import run
from dq.operations.runtime.context import runtime_context
from dq.operations.runtime.spark import session

spark = session(runtime_context())
process = type(spark.sparkContext)._gateway.proc
if sys.argv[1] == "between":
    process.kill()
    process.wait()
else:
    process.send_signal(signal.SIGSTOP)
    threading.Timer(2, process.kill).start()
sys.exit(run(sys.argv[2:]))
"""
CONTRACT = """\
apiVersion: v3.2.0
kind: DataContract
id: orders
version: 1.0.0
status: active
servers: [{server: lake, type: local, path: lake, format: orc}]
schema:
  - name: orders
    properties: [{name: id, logicalType: integer, required: true}]
"""


@pytest.mark.parametrize(("when", "format"), [("between", "text"), ("during", "json")])
def test_a_jvm_that_has_ended_is_reported_as_such(tmp_path, when, format):
    import pyarrow as pa
    import pyarrow.orc as orc

    (tmp_path / "lake").mkdir()
    orc.write_table(pa.table({"id": [1, 2]}), tmp_path / "lake/part-0.orc")
    (tmp_path / "orders.odcs.yaml").write_text(CONTRACT)

    done = subprocess.run(
        [
            sys.executable,
            "-c",
            KILLED,
            when,
            "check",
            "orders.odcs.yaml",
            "--all",
            "--scan",
            "--format",
            format,
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert done.returncode == 3, done.stderr
    assert "dq: Spark's JVM has ended during the run, probably for lack of memory." in done.stderr
    assert "--driver-memory 4g" in done.stderr
    assert "Traceback" not in done.stderr
    assert "pass" not in done.stdout
    assert "No new deliveries" not in done.stdout
