"""Every benchmark takes `--quick` and `--json FILE`, ends in `finish`, and has no goal in seconds."""

from __future__ import annotations

import ast
import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"
BENCHMARKS = sorted(FOLDER.glob("[a-z]*.py"))
SECONDS = re.compile(r"(\b(s|ms)|seconds(_at)?(_most)?|a minute)$")


@pytest.fixture(scope="module")
def report() -> ModuleType:
    spec = importlib.util.spec_from_file_location("report_of_benchmarks", FOLDER / "_report.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("file", BENCHMARKS, ids=lambda file: file.stem)
def test_every_benchmark_takes_its_options_and_gives_its_figures_alike(file: Path) -> None:
    tree = ast.parse(file.read_text("utf-8"))
    imported = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "_report"
        for alias in node.names
    }
    called = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}

    assert {"arguments", "finish"} <= imported & called
    assert "sys.exit(main())" in file.read_text("utf-8")
    assert not any(name.endswith("ArgumentParser") for name in called)


@pytest.mark.parametrize("file", BENCHMARKS, ids=lambda file: file.stem)
def test_no_goal_is_in_seconds_which_differ_between_machines(file: Path) -> None:
    assert [name for name in goals(ast.parse(file.read_text("utf-8"))) if SECONDS.search(name)] == []


def test_a_name_in_seconds_is_recognized() -> None:
    tree = ast.parse('goals = {"a tick, s": ("<", 1.0), f"{name}_seconds": ("<", 2.0), "times": (">", 3)}')

    assert [bool(SECONDS.search(name)) for name in goals(tree)] == [True, True, False]


def test_the_options_are_declared_and_the_figures_written(
    report: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "figures.json"
    monkeypatch.setattr(
        "sys.argv", ["benchmark", "--quick", "--json", str(file), "--no-growth", "--runs", "3"]
    )

    args = report.arguments("Page.", runs="how many", no_growth={"action": "store_true"})
    code = report.finish({"tables": 5.0, "lost": 1.0}, {"lost": ("<", 1.0), "tables": (">", 4.0)}, args)

    assert (args.quick, args.runs, args.no_growth, code) == (True, 3, True, 1)
    assert json.loads(file.read_text("utf-8")) == {
        "metrics": {"tables": 5.0, "lost": 1.0},
        "goals": {
            "lost": {"goal": "< 1", "value": 1.0, "met": False},
            "tables": {"goal": "> 4", "value": 5.0, "met": True},
        },
    }


def goals(tree: ast.Module) -> list[str]:
    """Names, or their last constant part, of the metrics that the module compares with `("<", …)`."""
    keys = [
        key
        for node in ast.walk(tree)
        if isinstance(node, ast.Dict)
        for key, value in zip(node.keys, node.values, strict=True)
        if _is_goal(value)
    ]
    keys += [
        node.targets[0].slice
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Subscript)
        and _is_goal(node.value)
    ]
    ends = [key.values[-1] if isinstance(key, ast.JoinedStr) else key for key in keys]
    return [str(end.value) for end in ends if isinstance(end, ast.Constant)]


def _is_goal(node: ast.expr) -> bool:
    first = node.elts[0] if isinstance(node, ast.Tuple) and node.elts else None
    return isinstance(first, ast.Constant) and first.value in ("<", ">")
