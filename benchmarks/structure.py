"""Shape of the product's code: modules, lines, imports, cycles, and what five journeys run through.

Lines of code are counted without blanks, comments and docstrings. A cycle is a set of modules that import
each other, imports under TYPE_CHECKING included. `cli_lines_apart` are lines of modules of the command line
that import neither typer nor the terminal. A journey runs one command in a process of its own under
`sys.setprofile`: `modules` are the modules of dq in which a function ran, `hops` the calls from one of them
into another.

With DQ_AGAINST=PYTHON, the Python of another checkout's environment, the journeys are compared with those
there, and processor time too, in paired runs.
"""

from __future__ import annotations

import ast
import io
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import tokenize
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from _report import arguments, finish

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from fakes import command
from fakes.command import Place

ROOT = Path(__file__).parent.parent
# Figures of version 0.1.0 before its modules were regrouped, which the goals are ratios of.
HOPS_BEFORE = {"validate": 16_782, "validate_base": 7_494, "check": 739, "tick": 945, "register": 1_273}
LINES_BEFORE = 68_892
NOT_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}

JOURNEY = """
import json, sys
from dq.cli.main import run
arguments = json.loads(sys.argv[1])
for before in arguments[:-1]:
    run(before)
modules, hops = set(), 0
def profile(frame, event, _argument):
    global hops
    if event != "call":
        return
    called = frame.f_globals.get("__name__", "")
    # Class bodies and modules run once, at their import.
    if not called.startswith("dq.") or not frame.f_code.co_flags & 2:
        return
    modules.add(called)
    caller = frame.f_back
    while caller is not None and not caller.f_globals.get("__name__", "").startswith("dq."):
        caller = caller.f_back
    if caller is not None and caller.f_globals["__name__"] != called:
        hops += 1
sys.setprofile(profile)
code = run(arguments[-1])
sys.setprofile(None)
sys.stderr.write("\\n" + json.dumps({"code": code, "modules": len(modules), "hops": hops}))
"""


@dataclass(frozen=True)
class Module:
    """A module of the product, its lines of code, and the modules of the product that it imports."""

    name: str
    lines: int
    import_lines: int
    imports: frozenset[str]
    texts: frozenset[str]


def code_lines(source: str, tree: ast.Module) -> set[int]:
    """Numbers of the lines that hold code."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in NOT_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(tree):
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            docstring = node.body[0]
            lines.difference_update(range(docstring.lineno, (docstring.end_lineno or docstring.lineno) + 1))
    return lines


def imported(node: ast.Import | ast.ImportFrom, known_modules: set[str]) -> Iterator[str]:
    """Modules of the product that an import names."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name in known_modules)
    elif node.module:
        for alias in node.names:
            inner = f"{node.module}.{alias.name}"
            if inner in known_modules or node.module in known_modules:
                yield inner if inner in known_modules else node.module


def product() -> list[Module]:
    """Every module of the installed packages, examples aside."""
    setup = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]
    files: dict[str, Path] = {}
    for package in setup["packages"]:
        folder = package.replace(".", "/").removeprefix("dq/") if package != "dq" else "api"
        if package.startswith("dq.examples"):
            continue
        folder = setup["package-dir"].get(package, folder)
        for file in sorted((ROOT / folder).glob("*.py")):
            files[package if file.stem == "__init__" else f"{package}.{file.stem}"] = file
    known_modules, modules = set(files), []
    for name, file in files.items():
        source = file.read_text("utf-8")
        tree = ast.parse(source)
        lines = code_lines(source, tree)
        nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
        import_lines = {
            line for node in nodes for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
        }
        inner = frozenset(
            target for node in nodes for target in imported(node, known_modules) if target != name
        )
        named = frozenset(
            alias.name if isinstance(node, ast.Import) else f"{node.module}.{alias.name}"
            for node in nodes
            for alias in node.names
        )
        modules.append(Module(name, len(lines), len(lines & import_lines), inner, named))
    return modules


def cycles(modules: list[Module]) -> list[set[str]]:
    """Sets of modules that import each other, by Tarjan's algorithm without recursion."""
    graph = {module.name: sorted(module.imports) for module in modules}
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    components = []
    for start in graph:
        work = [(start, iter(graph[start]))] if start not in index else []
        if work:
            index[start] = low[start] = len(index)
            stack.append(start)
        while work:
            name, targets = work[-1]
            target = next(targets, None)
            if target is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[name])
                if low[name] == index[name]:
                    component = set(stack[stack.index(name) :])
                    del stack[stack.index(name) :]
                    if len(component) > 1:
                        components.append(component)
            elif target not in index:
                index[target] = low[target] = len(index)
                stack.append(target)
                work.append((target, iter(graph[target])))
            elif target in stack:
                low[name] = min(low[name], index[target])
    return components


def is_apart(module: Module) -> bool:
    """Return True if a module of the command line touches neither typer nor the terminal."""
    texts = module.texts
    return module.name.startswith("dq.cli.") and not any(
        text.startswith(("typer", "dq.cli.output", "rich")) for text in texts
    )


def write_registry(folder: Path) -> None:
    """A repository with two contracts of small Parquet tables, a changed one, and the examples' registry."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    shutil.copytree(ROOT / "examples" / "registry", folder / "registry")
    place = Place(folder)
    key = {"bigint}": "bigint, required: true, unique: true}"}
    delivered = command.HEAD + command.SCHEMA + command.ID + command.DAY + command.PROMISE
    for name in ("orders", "items"):
        place.put(f"two/{name}.odcs.yaml", command.written(delivered, name, **key))
    flat = command.HEAD + command.SCHEMA + command.ID
    place.put("flat.odcs.yaml", command.written(flat, "flat", **key))
    for table in ("orders/day=2026-05-10", "items/day=2026-05-10", "flat"):
        file = place.put(f"lake/{table}/part-0.parquet", "")
        pq.write_table(pa.table({"id": list(range(50))}), file)
    who = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")
    for words in (("init", "-q"), ("add", "."), ("commit", "-q", "-m", "a")):
        subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)
    file = folder / "registry" / "planes.odcs.yaml"
    file.write_text(file.read_text("utf-8").replace("version: 1.0.0", "version: 1.1.0"), "utf-8")


TICKS = ("2026-05-10T12:00:00Z", "2026-05-11T07:12:00Z", "2026-05-11T07:20:00Z")
JOURNEYS = {
    "validate": [["validate", "registry"]],
    "validate_base": [["validate", "registry", "--base", "HEAD"]],
    "check": [["check", "flat.odcs.yaml", "--all", "--channel", "console"]],
    "tick": [["watch", "two", "--as-of", at, "--channel", "console"] for at in TICKS],
    "register": [["register", "two", "--apply"]],
}


def journey(python: str, name: str) -> dict[str, int]:
    """Modules run and hops of a journey in a new folder."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_registry(folder)
        ran = subprocess.run(
            [python, "-c", JOURNEY, json.dumps(JOURNEYS[name])],
            cwd=folder,
            env=command.without_settings(),
            capture_output=True,
            text=True,
            check=True,
        )
    measured = json.loads(ran.stderr.rpartition("\n")[2])
    if measured["code"] not in (0, 1):
        raise SystemExit(f"{name} ended with {measured['code']}:\n{ran.stdout}{ran.stderr}")
    return {key: measured[key] for key in ("modules", "hops")}


def cpu_ratio(dq_program: str, peer_program: str, name: str, runs: int) -> float:
    """Median of the ratios of processor seconds in paired runs, in turns, each in a folder of its own."""
    ratios = []
    with tempfile.TemporaryDirectory() as ours_folder, tempfile.TemporaryDirectory() as theirs_folder:
        sides = ((dq_program, Path(ours_folder)), (peer_program, Path(theirs_folder)))
        for _, folder in sides:
            write_registry(folder)
        for _ in range(runs + 1):
            seconds = [cpu_seconds(python, folder, JOURNEYS[name][-1]) for python, folder in sides]
            ratios.append(seconds[0] / seconds[1])
    # The first pair reads from a cold disk, and writes byte code.
    return statistics.median(ratios[1:])


def cpu_seconds(python: str, folder: Path, line: list[str]) -> float:
    """Processor seconds of a command that ends with 0 or 1."""
    program = "import sys; from dq.cli.main import run; sys.exit(run(sys.argv[1:]))"
    # With byte code, as an installed package has it: a container may turn it off.
    byte_code = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(folder / "byte-code")}
    before = os.times()
    ran = subprocess.run(
        [python, "-c", program, *line],
        cwd=folder,
        env=command.without_settings() | byte_code,
        capture_output=True,
        text=True,
        check=False,
    )
    after = os.times()
    if ran.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(line)} ended with {ran.returncode}:\n{ran.stdout}{ran.stderr}")
    return (after.children_user + after.children_system) - (before.children_user + before.children_system)


def main() -> int:
    args = arguments(__doc__ or "")
    modules = product()
    lines = sum(module.lines for module in modules)
    inner_cycles = cycles(modules)
    for cycle in inner_cycles:
        print("cycle:", ", ".join(sorted(cycle)))
    metrics: dict[str, float] = {
        "modules": len(modules),
        "code_lines": lines,
        "mean_module_lines": lines / len(modules),
        "import_share": sum(module.import_lines for module in modules) / lines,
        "cli_lines_apart": sum(module.lines for module in modules if is_apart(module)),
        "modules_in_cycles": sum(map(len, inner_cycles)),
    }
    against = os.environ.get("DQ_AGAINST")
    for name in JOURNEYS:
        measured = journey(sys.executable, name)
        metrics |= {f"{name}_{key}": value for key, value in measured.items()}
        metrics[f"{name}_hops_ratio"] = measured["hops"] / (
            journey(against, name)["hops"] if against else HOPS_BEFORE[name]
        )
        if against:
            metrics[f"{name}_cpu_ratio"] = cpu_ratio(sys.executable, against, name, 3 if args.quick else 7)
    goals = {
        "modules": ("<", 480.5),
        "code_lines": ("<", 0.9 * LINES_BEFORE),
        "import_share": ("<", 0.09),
        "cli_lines_apart": ("<", 0.5),
        "modules_in_cycles": ("<", 0.5),
        **{f"{name}_hops_ratio": ("<", 0.5) for name in JOURNEYS},
        **({f"{name}_cpu_ratio": ("<", 1.05) for name in JOURNEYS} if against else {}),
    }
    return finish(metrics, goals, args)


if __name__ == "__main__":
    sys.exit(main())
