"""What the gate costs: thousands of contracts on two processes, one as a whole process, growth, and a peer.

The peer is `datacontract lint`, the linter that teams use for ODCS today: in a virtual environment of its
own, asked through its library in one process, which is its fastest way. Without a network it is left out,
and the output says so. With DQ_AGAINST=PATH, another `dq`, such as that of an earlier commit, does the same
in turns, and the ratios of processor time are printed.
"""

from __future__ import annotations

import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path

from _contracts import write
from _report import arguments, finish

from dq.cli.gating.unenforced import unenforced
from dq.validators.lint import lint_paths, rules_of

TODAY = date(2026, 11, 21)
PEER = "datacontract-cli==1.2.8"
PEER_PROGRAM = """
import sys, time
from pathlib import Path
from datacontract.data_contract import DataContract
files = sorted(Path(sys.argv[1]).iterdir())[: int(sys.argv[2])]
DataContract(data_contract_file=str(files[0])).lint()
before = time.perf_counter()
for file in files:
    DataContract(data_contract_file=str(file)).lint()
print((time.perf_counter() - before) / len(files))
"""


def seconds(folder: Path, processes: int, clock: Callable[[], float] = time.perf_counter) -> float:
    """How long the gate takes for a folder of good contracts."""
    rules = rules_of()
    before = clock()
    linted = lint_paths(
        [folder], root=folder, rules=rules, today=TODAY, processes=processes, unenforced=unenforced
    )
    took = clock() - before
    assert linted.findings == (), linted.findings[:3]
    return took


def whole_process(command: list[str], times: int) -> float:
    """The median seconds of a command, with warm byte code."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    taken = []
    for _ in range(times + 2):
        before = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
        taken.append(time.perf_counter() - before)
    return statistics.median(taken[2:])


def processor_seconds(dq: str, path: Path) -> float:
    """The processor time of `dq validate` as a whole process, with those that it starts."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([dq, "validate", str(path)], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def ratio(dq: str, other: str, path: Path, times: int) -> float:
    """The median of our processor time over the other's; they run in turns, of which the first is warming."""
    taken = [(processor_seconds(dq, path), processor_seconds(other, path)) for _ in range(times + 1)][1:]
    return statistics.median(ours for ours, _ in taken) / statistics.median(theirs for _, theirs in taken)


def peer_seconds(scratch: Path, folder: Path, count: int) -> float | None:
    """The seconds per contract of `datacontract lint`, or None when it cannot be installed."""
    uv = os.environ.get("UV") or shutil.which("uv")
    home = scratch / "peer"
    python = home / "bin" / "python"
    if uv is None:
        print("datacontract-cli is left out: there is no uv to install it with.")
        return None
    try:
        subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, str(home)], check=True)
        subprocess.run([uv, "pip", "install", "--quiet", "--python", str(python), PEER], check=True)
    except subprocess.CalledProcessError:
        print("datacontract-cli is left out: it cannot be installed, perhaps for want of a network.")
        return None
    done = subprocess.run(
        [str(python), "-c", PEER_PROGRAM, str(folder), str(count)], check=True, capture_output=True, text=True
    )
    return float(done.stdout.split()[-1])


def main() -> int:
    args = arguments(__doc__ or "")
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        small, middle = write(scratch / "500", 500), write(scratch / "2000", 2_000)
        metrics = {"validate_2000_seconds": min(seconds(middle, 2) for _ in range(2 if args.quick else 3))}
        metrics["validate_2000_one_process_seconds"] = seconds(middle, 1)

        one = sorted(small.iterdir())[0]
        times = 7 if args.quick else 15
        dq = str(Path(sys.executable).parent / "dq")
        metrics["one_contract_process_seconds"] = whole_process([dq, "validate", str(one)], times)
        metrics["python_pass_seconds"] = whole_process([sys.executable, "-c", "pass"], times)

        other = os.environ.get("DQ_AGAINST")
        if other:
            metrics["one_contract_cpu_over_the_other"] = ratio(dq, other, one, times)
            metrics["validate_2000_cpu_over_the_other"] = ratio(dq, other, middle, 2 if args.quick else 5)

        # Processor time: another program on the machine must not look like growth.
        few = min(seconds(small, 1, time.process_time) for _ in range(3))
        large = middle if args.quick else write(scratch / "8000", 8_000)
        count = 2_000 if args.quick else 8_000
        many = min(seconds(large, 1, time.process_time) for _ in range(1 if args.quick else 2))
        metrics["growth_of_time_over_growth_of_count"] = many / few / (count / 500)

        peer = peer_seconds(scratch, middle, 10 if args.quick else 50)
        if peer is not None:
            metrics["datacontract_lint_milliseconds"] = peer * 1e3
            ours = metrics["validate_2000_one_process_seconds"] / 2_000
            metrics["our_milliseconds"] = ours * 1e3
            metrics["times_faster_than_datacontract_lint"] = peer / ours
    goals = {
        "validate_2000_seconds": ("<", 3.0),
        "one_contract_process_seconds": ("<", 0.35),
        "growth_of_time_over_growth_of_count": ("<", 1.15),
        "times_faster_than_datacontract_lint": (">", 50.0),
    }
    return finish(metrics, {name: goal for name, goal in goals.items() if name in metrics}, args)


if __name__ == "__main__":
    sys.exit(main())
