"""Nothing of the working folder is run, here or in Spark's tasks. The canaries are modules there."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from fakes import jvm

# What Python, Spark's daemon and its tasks import, from the library and from packages.
MODULES = ("numbers", "select", "socket", "traceback", "random", "decimal", "dq", "pyspark", "pyarrow",
           "typing", "sitecustomize", "usercustomize", "pathlib", "json", "click", "typer")  # fmt: skip
TASKS = """
from pathlib import Path
from dq.operations.runtime.spark import session
from dq.operations.runtime.context import runtime_context

def work(number):
    import decimal, random, sys
    return [path for path in sys.path if path in ("", CHECKOUT)]

spark = session(runtime_context())
print(spark.sparkContext.parallelize([1], 1).map(work).collect())
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A working folder with a module of every name that somebody imports; each leaves a mark when run."""
    home = tmp_path / "checkout"
    home.mkdir()
    for name in MODULES:
        (home / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'a').write({name!r} + ' ')\n")
    points = home / "evil-1.0.dist-info"
    points.mkdir()
    (points / "METADATA").write_text("Metadata-Version: 2.1\nName: evil\nVersion: 1.0\n")
    (points / "entry_points.txt").write_text("[dq.checks]\nevil = random:evil\n")
    (home / "c.odcs.yaml").write_text(
        textwrap.dedent("""\
            apiVersion: v3.2.0
            kind: DataContract
            id: c
            version: 1.0.0
            status: active
            schema: [{name: c, properties: [{name: id, logicalType: string}]}]
            """)
    )
    return home


def run(home: Path, *command: str, **more: str) -> subprocess.CompletedProcess[str]:
    ours = ("DQ_", "SPARK_", "PYSPARK_", "PYTHON")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    environment |= jvm.SETTINGS | more
    return subprocess.run(
        command, cwd=home, env=environment, capture_output=True, text=True, timeout=300, check=False
    )


@pytest.mark.spark
@pytest.mark.parametrize("more", [{}, {"PYSPARK_SUBMIT_ARGS": "--master local[1] pyspark-shell"}], ids=str)
def test_the_tasks_of_spark_import_nothing_of_the_working_folder(checkout, more):
    program = checkout.parent / "program.py"
    program.write_text(TASKS.replace("CHECKOUT", repr(str(checkout))))

    done = run(checkout, sys.executable, str(program), **more)

    assert done.stdout.splitlines()[-1:] == ["[[]]"], done.stderr[-2000:]
    assert not (checkout.parent / "ran").exists()


@pytest.mark.spark
def test_the_tasks_of_a_spark_submit_import_nothing_of_the_working_folder(checkout):
    program = checkout.parent / "program.py"
    program.write_text(TASKS.replace("CHECKOUT", repr(str(checkout))))
    submit = Path(sys.executable).parent / "spark-submit"

    done = run(
        checkout, str(submit), "--master", "local[1]", str(program), PYSPARK_PYTHON=sys.executable,
    )  # fmt: skip

    assert "[[]]" in done.stdout.splitlines(), done.stderr[-2000:]
    assert not (checkout.parent / "ran").exists()


@pytest.mark.parametrize(
    "command", [["--version"], ["validate", "c.odcs.yaml"], ["doctor"], ["explain", "evil"]]
)
def test_the_script_imports_nothing_of_the_working_folder(checkout, command):
    script = Path(sys.executable).parent / "dq"

    done = run(checkout, str(script), *command)

    assert done.returncode != 70
    assert not (checkout.parent / "ran").exists()


@pytest.mark.parametrize("command", [["--version"], ["validate", "c.odcs.yaml"], ["explain", "evil"]])
def test_the_module_imports_nothing_of_the_working_folder_under_a_safe_path(checkout, command):
    done = run(checkout, sys.executable, "-P", "-m", "dq", *command)

    assert done.returncode != 70
    assert not (checkout.parent / "ran").exists()


@pytest.mark.parametrize("command", [["--version"], ["validate", "c.odcs.yaml"], ["explain", "evil"]])
def test_the_module_imports_nothing_but_dq_itself_from_the_working_folder(checkout, command):
    (checkout / "dq.py").unlink()

    done = run(checkout, sys.executable, "-m", "dq", *command)

    assert done.returncode == (2 if "evil" in command else 0), done.stderr
    assert not (checkout.parent / "ran").exists()
