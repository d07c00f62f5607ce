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
