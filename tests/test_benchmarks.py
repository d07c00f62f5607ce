"""Every benchmark takes `--quick` and `--json FILE`, and ends in `finish`."""

from __future__ import annotations

import ast
import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"
BENCHMARKS = sorted(FOLDER.glob("[a-z]*.py"))


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
