"""Cost of the gate: one contract as a whole process, thousands in one process and on two, and a peer.

One contract is compared with `python -c pass`, in turns: with and without a rule in SQL, which asks for the
parser of SQL, and with the parts that a start is made of. `ruff check` of a small file, a linter that is not
in Python, is the yardstick of what a start can be. The peer is `datacontract lint`, the linter that teams use
for ODCS today: in a virtual environment of its own, asked through its library in one process, which is its
fastest way. Without a network it is left out, and the output says so. Thousands are also validated again,
from the cache of results, and with one of them changed. On two idle processors, thousands take the processor
time of the first process and half of that of the two that it starts, which other programs of the machine
change less than the clock. With DQ_AGAINST=PATH, another `dq`, such as that of an earlier commit, does the
same in turns, and the ratios of processor time are printed.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from _contracts import text, write
from _cost import Cost, cost, in_turns
from _report import arguments, finish

PEER = "datacontract-cli==1.2.8"
# Each prints the seconds on the clock and of the processor for one contract, without its start.
OURS_PROGRAM = """
import sys, time
from datetime import date
from pathlib import Path
from dq.operations.gate import unenforced
from dq.validators.lint import lint_paths, load_rules
folder, rules = Path(sys.argv[1]), load_rules()
def seconds(paths):
    before = time.perf_counter(), time.process_time()
    linted = lint_paths(paths, root=folder, rules=rules, today=date(2026, 11, 21), unenforced=unenforced)
    assert linted.findings == (), linted.findings[:3]
    return [(now - then) / len(linted.files)
            for now, then in zip((time.perf_counter(), time.process_time()), before)]
seconds([sorted(folder.iterdir())[0]])
print(*seconds([folder]))
"""
# The same for thousands on two processors, without results in the cache (`cold`), and with them; also the
# seconds that they would take if both processors were idle.
CACHED_PROGRAM = """
import resource, sys, time
from datetime import date
from pathlib import Path
from dq.operations.gate import lint_registry
folder, cache = Path(sys.argv[1]), Path(sys.argv[2])
def clocks():
    own, started = (
        used.ru_utime + used.ru_stime
        for used in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )
    return time.perf_counter(), own + started, own + started / 2
def seconds(paths, cache_folder):
    before = clocks()
    linted = lint_registry(paths, None, date(2026, 11, 21), 2, cache_folder=cache_folder)
    assert linted.findings == (), linted.findings[:3]
    return [(now - then) / len(linted.files) for now, then in zip(clocks(), before)]
seconds([sorted(folder.iterdir())[0]], None)
print(*seconds([folder], cache))
"""
PEER_PROGRAM = """
import sys, time
from pathlib import Path
from datacontract.data_contract import DataContract
files = sorted(Path(sys.argv[1]).iterdir())[: int(sys.argv[2])]
DataContract(data_contract_file=str(files[0])).lint()
before = time.perf_counter(), time.process_time()
for file in files:
    DataContract(data_contract_file=str(file)).lint()
print(*[(now - then) / len(files) for now, then in zip((time.perf_counter(), time.process_time()), before)])
"""
# What a start is made of, each with all above it.
STARTS = {
    "typer": "import typer",
    "pydantic_and_yaml": "import typer, yaml, pydantic; pydantic.BaseModel",
    "models": "import typer, yaml; from dq.contracts.model import Contract; Contract.model_rebuild()",
    "code_of_the_gate": (
        "import dq.cli.commands.validate as v; from dq.contracts.model import Contract;"
        "from dq.dataquality.checks import built_in; from dq.validators.lint import load_rules;"
        "Contract.model_rebuild(); built_in(); load_rules()"
    ),
}


def of_one(scratch: Path, dq: str, times: int) -> dict[str, float]:
    """One contract as a whole process over `python -c pass`, and the parts of it as multiples of that."""
    with_sql = text(1, 30)
    rule = with_sql.index("      - type: sql")
    plain = with_sql[:rule] + with_sql[with_sql.index("team:") :]
    files = {}
    for name, written in (("plain", plain), ("with_sql", with_sql)):
        # A registry of its own each: they have one id.
        folder = scratch / name
        folder.mkdir()
        files[name] = folder / "billing-00001.odcs.yaml"
        files[name].write_text(written, "utf-8")
    python = [sys.executable, "-c"]
    commands = {
        "pass": [*python, "pass"],
        **{name: [*python, f"import gc; gc.disable(); {code}; gc.freeze()"] for name, code in STARTS.items()},
        **{name: [dq, "validate", str(file)] for name, file in files.items()},
    }
    small = scratch / "small.py"
    small.write_text('"""Nothing."""\n', "utf-8")
    ruff = Path(sys.executable).parent / "ruff"
    if ruff.exists():
        commands["ruff"] = [str(ruff), "check", "--isolated", "--no-cache", str(small)]
    taken = in_turns(commands, times)
    bare = taken["pass"]
    metrics = {
        "python_pass_cpu_seconds": bare.cpu,
        "one_contract_cpu_seconds": taken["plain"].cpu,
        "one_contract_wall_seconds": taken["plain"].wall,
        "one_contract_megabytes": taken["plain"].megabytes,
        "one_contract_cpu_over_python_pass": taken["plain"].cpu / bare.cpu,
        "one_contract_wall_over_python_pass": taken["plain"].wall / bare.wall,
        "one_contract_with_sql_cpu_over_python_pass": taken["with_sql"].cpu / bare.cpu,
        "one_contract_cpu_over_its_packages_alone": taken["plain"].cpu / taken["pydantic_and_yaml"].cpu,
    }
    if "ruff" in taken:
        metrics["ruff_check_cpu_over_python_pass"] = taken["ruff"].cpu / bare.cpu
        metrics["one_contract_cpu_over_ruff_check"] = taken["plain"].cpu / taken["ruff"].cpu
    before = bare
    for name in (*STARTS, "plain", "with_sql"):
        part = {"plain": "judging", "with_sql": "parser_of_sql"}.get(name, name)
        metrics[f"of_it_{part}_in_python_passes"] = (taken[name].cpu - before.cpu) / bare.cpu
        before = taken[name]
    return metrics


def of_many(scratch: Path, dq: str, start: float, *, quick: bool) -> dict[str, float]:
    """Thousands as a whole process on all processors, and the growth of processor time and memory.

    `start` are the seconds of one contract, which thousands share: with them, time would seem to grow less.
    """
    counts = (500, 2_000) if quick else (2_000, 8_000)
    small, many = (write(scratch / str(count), count) for count in counts)
    commands = {
        name: [dq, "validate", str(path), "--no-cache"] for name, path in (("few", small), ("many", many))
    }
    taken = in_turns(commands, 1, warm=False)
    two_thousand = taken["many" if quick else "few"]
    growth = counts[1] / counts[0]
    return {
        "validate_2000_wall_seconds": two_thousand.wall,
        "validate_2000_cpu_seconds": two_thousand.cpu,
        "validate_2000_megabytes": two_thousand.megabytes,
        "growth_of_cpu_over_growth_of_count": (taken["many"].cpu - start)
        / (taken["few"].cpu - start)
        / growth,
        "growth_of_megabytes": taken["many"].megabytes / taken["few"].megabytes,
    }


def of_unchanged(scratch: Path, dq: str, times: int) -> dict[str, float]:
    """Two thousand as a whole process with the cache: not there yet, there, and there for all but one."""
    folder = scratch / "2000"
    contract = folder / "billing-00001.odcs.yaml"
    costs: dict[str, list[Cost]] = {"cold": [], "again": [], "one_changed": [], "one_contract": []}
    for turn in range(times):
        variables = {"XDG_CACHE_HOME": str(scratch / f"cache-{turn}")}
        command = [dq, "validate", str(folder)]
        costs["cold"].append(cost(command, **variables))
        costs["again"].append(cost(command, **variables))
        contract.write_text(text(1, 30) + f"# {turn}\n", "utf-8")
        costs["one_changed"].append(cost(command, **variables))
        costs["one_contract"].append(cost([dq, "validate", str(contract)], **variables))
    wall, cpu = (
        {name: statistics.median(getattr(item, clock) for item in items) for name, items in costs.items()}
        for clock in ("wall", "cpu")
    )
    return {
        "validate_2000_cold_wall_seconds": wall["cold"],
        "validate_2000_again_wall_seconds": wall["again"],
        "validate_2000_cold_cpu_over_again": cpu["cold"] / cpu["again"],
        "one_changed_of_2000_cpu_over_one_contract": cpu["one_changed"] / cpu["one_contract"],
        "one_changed_of_2000_wall_over_one_contract": wall["one_changed"] / wall["one_contract"],
    }


def against_the_peer(scratch: Path, folder: Path, *, quick: bool) -> dict[str, float]:
    """Milliseconds per contract of both in one process, in turns; empty when the peer cannot be installed.

    Ours also on two processors, without the cache of results and with it.
    """
    uv = os.environ.get("UV") or shutil.which("uv")
    home = scratch / "peer"
    python = str(home / "bin" / "python")
    if uv is None:
        print("datacontract-cli is left out: there is no uv to install it with.")
        return {}
    try:
        subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, str(home)], check=True)
        subprocess.run([uv, "pip", "install", "--quiet", "--python", python, PEER], check=True)
    except subprocess.CalledProcessError:
        print("datacontract-cli is left out: it cannot be installed, perhaps for want of a network.")
        return {}
    theirs_command = [python, "-c", PEER_PROGRAM, str(folder), "10" if quick else "50"]
    turns = []
    for turn in range(1 if quick else 2):
        cached = [sys.executable, "-c", CACHED_PROGRAM, str(folder), str(scratch / f"peer-cache-{turn}")]
        dq_program = [sys.executable, "-c", OURS_PROGRAM, str(folder)]
        turns.append([_per_contract(command) for command in (dq_program, theirs_command, cached, cached)])
    (wall, cpu), (their_wall, their_cpu), (cold_wall, _, cold_idle), (again_wall, again_cpu, _) = (
        [statistics.median(clock) for clock in zip(*(turn[side] for turn in turns), strict=True)]
        for side in range(4)
    )
    return {
        "our_cpu_milliseconds": cpu * 1e3,
        "datacontract_lint_cpu_milliseconds": their_cpu * 1e3,
        "times_faster_than_datacontract_lint_cpu": their_cpu / cpu,
        "times_faster_than_datacontract_lint_wall": their_wall / wall,
        "times_faster_cold_on_two_processors_wall": their_wall / cold_wall,
        "times_faster_cold_on_two_idle_processors": their_cpu / cold_idle,
        "times_faster_again_wall": their_wall / again_wall,
        "times_faster_again_cpu": their_cpu / again_cpu,
    }


def _per_contract(command: list[str]) -> list[float]:
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return [float(word) for word in done.stdout.splitlines()[-1].split()]


def of_help(dq: str, times: int) -> dict[str, float]:
    """`dq --help` over the packages that format it."""
    packages = [sys.executable, "-c", "import typer, typer.rich_utils"]
    taken = in_turns({"help": [dq, "--help"], "packages": packages}, times)
    return {
        "help_cpu_seconds": taken["help"].cpu,
        "help_cpu_over_its_packages_alone": taken["help"].cpu / taken["packages"].cpu,
    }


def against_another(dq: str, other: str, words: list[str], times: int) -> float:
    """Our processor time over that of another dq, both without results in a cache."""

    def seconds(program: str) -> float:
        # A folder of its own, in which there are no results.
        with tempfile.TemporaryDirectory() as empty:
            return cost([program, *words], XDG_CACHE_HOME=empty).cpu

    return statistics.median(seconds(dq) / seconds(other) for _ in range(times))


def main() -> int:
    args = arguments(__doc__ or "")
    dq = str(Path(sys.executable).parent / "dq")
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        metrics = of_one(scratch, dq, 5 if args.quick else 15)
        metrics |= of_help(dq, 5 if args.quick else 15)
        metrics |= of_many(scratch, dq, metrics["one_contract_cpu_seconds"], quick=args.quick)
        metrics |= of_unchanged(scratch, dq, 1 if args.quick else 3)
        metrics |= against_the_peer(scratch, scratch / "2000", quick=args.quick)
        other = os.environ.get("DQ_AGAINST")
        if other:
            for part, words, times in (
                ("one_contract", ["validate", str(scratch / "plain")], 10),
                ("help", ["--help"], 10),
                ("validate_2000", ["validate", str(scratch / "2000")], 2),
            ):
                metrics[f"{part}_cpu_over_the_other"] = against_another(dq, other, words, times)
    goals = {
        # Why not 12 times `python -c pass`: docs/explanation/starts.md.
        "one_contract_cpu_over_its_packages_alone": ("<", 4.0),
        "help_cpu_over_its_packages_alone": ("<", 1.5),
        "growth_of_cpu_over_growth_of_count": ("<", 1.1),
        "growth_of_megabytes": ("<", 4.0),
        "times_faster_than_datacontract_lint_cpu": (">", 50.0),
        "times_faster_cold_on_two_idle_processors": (">", 100.0),
        # By processor time, which other programs of the machine change less.
        "times_faster_again_cpu": (">", 500.0),
        "one_changed_of_2000_cpu_over_one_contract": ("<", 1.3),
    }
    return finish(metrics, {name: goal for name, goal in goals.items() if name in metrics}, args)


if __name__ == "__main__":
    sys.exit(main())
