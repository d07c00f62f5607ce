"""What must start fast imports nothing heavy."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

HEAVY = (
    "pyspark", "boto3", "botocore", "pandas", "pandera", "numpy", "pyarrow", "slack_sdk", "sqlalchemy",
    "alembic", "git", "croniter", "holidays", "jsonschema", "rich", "typer", "sqlglot",
)  # fmt: skip

GATE = (
    "import datetime\n"
    "from dq.validators.lint import lint, load_rules\n"
    "from dq.validators.reports import load_reports\n"
    "load_reports()\n"
    "lint(b'kind: DataContract', 'a.odcs.yaml', rules=load_rules(), today=datetime.date(2026, 1, 1))\n"
)


def _imported(program: str) -> set[str]:
    listing = program + "import sys\nprint(*{name.split('.')[0] for name in sys.modules})\n"
    done = subprocess.run([sys.executable, "-c", listing], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.fixture(scope="module")
def imported() -> set[str]:
    return _imported(GATE)


LIBRARY = (
    "import dq\n"
    "text = 'apiVersion: v3.2.0\\nkind: DataContract\\nid: a\\nversion: 1.0.0\\nstatus: active\\n'\n"
    "assert dq.validate(text) == [] and dq.diff(text, text) and dq.load(text).id == 'a' and dq.__version__\n"
)


@pytest.mark.parametrize("module", HEAVY)
def test_the_light_half_of_the_library_does_not_import(module: str) -> None:
    assert module not in _imported_by_library()


@cache
def _imported_by_library() -> set[str]:
    return _imported(LIBRARY)


@pytest.mark.parametrize("module", HEAVY)
def test_linting_a_contract_does_not_import(imported: set[str], module: str) -> None:
    assert module not in imported


@pytest.mark.parametrize("module", ["pyspark", "pandas", "pandera", "numpy", "pyarrow", "sqlglot", "polars"])
def test_the_python_interface_waits_with_engines_until_they_are_asked_for(python: set[str], module: str):
    assert module not in python


@pytest.fixture(scope="module")
def python() -> set[str]:
    names = "dq.Report, dq.status, dq.check, dq.backtest, dq.sample"
    return _imported(f"import dq, dq.operations.registry_files, dq.dataquality\n{names}\n")


# For SQL, calendars, a policy with schemas, a state, a base in Git: a plain contract has none of them.
_STATE = {"sqlalchemy", "alembic", "asyncio"}
_OF_SOME = {*HEAVY, *_STATE, "tomllib", "logging", "ssl", "multiprocessing", "unittest"} - {"typer"}
_OF_CONTRACTS = {"pydantic", "yaml", "jsonschema"}
STARTS = {
    "validate": ("validate orders.odcs.yaml", _OF_SOME | {"yaml"}),
    "diff": ("diff orders.odcs.yaml orders.odcs.yaml", _OF_SOME),
    "fmt": ("fmt --check orders.odcs.yaml", _OF_SOME),
    "explain": ("explain orders.odcs.yaml", _OF_SOME - {"rich"}),
    "watch": ("watch orders.odcs.yaml", _OF_SOME - {*_STATE, "logging", "ssl", "tomllib"}),
    "version": ("--version", _OF_SOME | _OF_CONTRACTS),
    "help": ("--help", (_OF_SOME | _OF_CONTRACTS) - {"rich", "logging"}),
}


@pytest.mark.parametrize("name", STARTS)
def test_a_command_starts_without_what_it_does_not_need(name: str, tmp_path: Path):
    line, heavy = STARTS[name]
    (tmp_path / "orders.odcs.yaml").write_text(
        "apiVersion: v3.2.0\nkind: DataContract\nid: orders\nversion: 1.0.0\nstatus: active\n"
        "schema:\n  - name: orders\n    properties:\n      - {name: id, logicalType: integer}\n"
    )

    code, modules = _started(line, tmp_path)

    assert (code, heavy & modules) == (0, set())


def _started(line: str, folder: Path) -> tuple[int, set[str]]:
    """The exit code of a command, and what it imported."""
    program = (
        "import sys\nfrom dq.cli.main import run\n"
        f"code = run({line.split()})\nprint(code, *{{name.split('.')[0] for name in sys.modules}})\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=folder
    )
    code, *modules = done.stdout.splitlines()[-1].split()
    return int(code), set(modules)


@pytest.mark.parametrize("line", [["--version"], ["no-such-command"]])
def test_the_collector_runs_again_when_a_command_does_and_leaves_the_end_alone(line: list[str]):
    program = (
        "import atexit, gc, sys\nfrom dq.cli.main import main\n"
        "at_end = lambda: print(gc.isenabled(), len(gc.get_objects()) < gc.get_freeze_count())\n"
        "atexit.register(at_end)\nsys.argv[1:] = " + repr(line) + "\nmain()\n"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert done.stdout.splitlines()[-1] == "True True"
