"""Every package is installed and typed, light commands start light, and no two folders import each other."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from fakes import versions

ROOT = Path(__file__).parent.parent
ROOMS = (
    "alerts",
    "cli",
    "contracts",
    "dataquality",
    "lake",
    "operations",
    "portal",
    "registry",
    "store",
    "validators",
)
HEAVY = (
    "pyspark", "boto3", "pandas", "pandera", "slack_sdk", "pyarrow", "sqlalchemy", "alembic", "git",
    "sqlglot",
)  # fmt: skip


def test_every_folder_with_code_is_a_package_that_is_installed():
    listed = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"])
    on_disk = {
        ".".join(("dq", *folder.parent.relative_to(ROOT).parts))
        for room in (*ROOMS, "examples")
        for folder in (ROOT / room).rglob("__init__.py")
    } | {"dq", "dq.airflow", "dq.aws"}  # the folder `api`
    assert listed == on_disk


@pytest.mark.parametrize("room", ["api", *ROOMS])
def test_every_room_says_that_it_is_typed(room):
    assert (ROOT / room / "py.typed").is_file()


def test_every_core_dependency_is_imported_by_product_code():
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    distributions = {re.split("[<>=]", one)[0].lower() for one in listed}
    named = {"gitpython": "git", "pyyaml": "yaml"}
    texts = [file.read_text() for room in ROOMS for file in (ROOT / room).rglob("*.py")]

    unused = {
        one
        for one in distributions
        if not any(
            re.search(rf'^ *(from|import) {module}\b|import_module\("{module}"\)', text, re.MULTILINE)
            for text in texts
            for module in [named.get(one, one)]
        )
    }

    assert unused == set()


def test_one_place_knows_how_an_extra_is_installed():
    naming = {
        str(file.relative_to(ROOT))
        for room in ("api", *ROOMS)
        for file in (ROOT / room).rglob("*.py")
        if "dq-contracts" in file.read_text()
    }
    assert naming == {"contracts/install.py"}


def test_validate_imports_no_engine_no_cloud_and_no_database(tmp_path):
    contract = ROOT / "examples" / "registry" / "flights.odcs.yaml"
    program = (
        "import sys\n"
        "from dq.cli.main import run\n"
        f"code = run(['validate', {str(contract)!r}])\n"
        f"print(code, [name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, timeout=99, check=False
    )
    assert done.stderr.strip().splitlines()[-1] == "0 []"


def test_every_decision_has_a_number_of_its_own():
    numbers = sorted(file.name[:4] for file in (ROOT / "docs" / "decisions").glob("*.md"))
    assert numbers == [f"{number:04}" for number in range(1, len(numbers) + 1)]


def test_no_modules_import_each_other():
    """Imports in functions and for types alone included."""
    graph = {
        str(file.relative_to(ROOT)): {str(target.relative_to(ROOT)) for target in _imported(file)}
        for file in _product()
    }
    for module, targets in graph.items():
        targets.discard(module)

    assert [*TopologicalSorter(graph).static_order()]


def _product() -> list[Path]:
    return [file for room in ("api", *ROOMS) for file in (ROOT / room).rglob("*.py")]


def _imported(file: Path) -> set[Path]:
    """Our own modules and packages that a module imports, also in functions and for types alone."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {_module(f"{node.module}.{alias.name}") or _module(node.module) for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {_module(alias.name) for alias in node.names}
    return {path for path in found if path is not None}


def _module(name: str) -> Path | None:
    """The file of one of our modules or packages."""
    if not name.startswith("dq."):
        return None
    path = ROOT / name.split(".", 1)[1].replace(".", "/")
    return next((one for one in (path.with_suffix(".py"), path / "__init__.py") if one.is_file()), None)


def test_what_is_left_to_one_version_of_spark_is_there():
    """A test that was given another name would leave the other version in silence, or come back to it."""
    missing = []
    for file, (_, stay) in versions.ALIKE.items():
        text = (ROOT / "tests" / file).read_text()
        for name, _, parameter in (test.partition("[") for test in stay):
            if f"def {name}(" not in text or parameter.removesuffix("]") not in text:
                missing.append(f"{file}: {name}")
    missing += [place for place in versions.COMPILED if not (ROOT / "tests" / place).exists()]
    assert missing == []


CLOCKS = {"monotonic", "perf_counter", "process_time", "time", "thread_time"}


def parts_of(node: ast.expr) -> list[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple) else [node]


def clock_assertions_below_a_minute(source: str) -> list[int]:
    """Lines of assertions that something measured by a clock takes less than a minute."""
    tree = ast.parse(source)
    constants = {
        name.id: value.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        for name, value in zip(parts_of(target), parts_of(node.value), strict=False)
        if isinstance(name, ast.Name) and isinstance(value, ast.Constant)
    }
    lines = []
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        measured: set[str] = set()

        def reads_clock(node: ast.AST, names: set[str] = measured) -> bool:
            return any(
                (isinstance(part, ast.Call) and ast.unparse(part.func) in {f"time.{name}" for name in CLOCKS})
                or (isinstance(part, ast.Name) and part.id in names)
                for part in ast.walk(node)
            )

        for statement in ast.walk(function):
            if isinstance(statement, ast.Assign) and reads_clock(statement.value):
                measured |= {name.id for name in ast.walk(statement) if isinstance(name, ast.Name)}
        for statement in ast.walk(function):
            if isinstance(statement, ast.Assert) and isinstance(statement.test, ast.Compare):
                limit = statement.test.comparators[-1]
                value = constants.get(limit.id) if isinstance(limit, ast.Name) else None
                value = limit.value if isinstance(limit, ast.Constant) else value
                if isinstance(value, int | float) and value < 60 and reads_clock(statement.test.left):
                    lines.append(statement.lineno)
    return lines


def test_no_test_asserts_a_time_below_a_minute():
    assert clock_assertions_below_a_minute(
        "def test():\n begun = time.monotonic()\n took = time.monotonic() - begun\n assert took < 2\n"
    ) == [4]
    assert clock_assertions_below_a_minute(
        "LEAST, MOST = 1, 2\ndef f():\n begun = time.monotonic()\n assert time.monotonic() - begun < MOST\n"
    ) == [4]
    assert {
        str(file.relative_to(ROOT)): lines
        for file in (ROOT / "tests").rglob("*.py")
        if (lines := clock_assertions_below_a_minute(file.read_text()))
    } == {}
