"""Feeds the commands damaged and hostile inputs: no traceback, nothing slow, bounded memory.

An input is slow that takes more processor time than PyYAML takes to read a contract of a megabyte.

The real commands run on all processors of this machine, each in a folder of its own with a state store and
a catalog in which the undamaged contracts are registered. Damage is done to bytes, YAML tokens, lines and
values of every contract in tests, examples and docs, to policies, to file names and to arguments. What went
wrong is written to the working folder as fuzz-N, with its files and its command; --only N shows it again.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from _cost import cpu_seconds, read_plainly
from _hostile import large
from _mutants import Input, inputs
from _report import arguments, finish
from _seeds import Seed, seeds

from dq.cli.main import run
from dq.contracts.access.files import MAX_BYTES

LATE_SECONDS = 20
"""Of the clock: then an input is stopped."""
STUCK_SECONDS = 90
"""Of the clock: then its process is killed, since nothing in Python can stop it."""
FRESH_EVERY = 1_000
"""So many inputs share a state store."""
FINE = {0, 1, 2, 3, 4}
CONTROL = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]")


class Late(BaseException):
    """Not an Exception: nothing may catch it and go on."""


def _late(_number: int, _frame: FrameType | None) -> None:
    raise Late


@contextmanager
def captured(file: int) -> Iterator[None]:
    """Redirect the output of this process to the file."""
    sys.stdout.flush()
    streams = os.dup(1), os.dup(2)
    os.dup2(file, 1)
    os.dup2(file, 2)
    try:
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for number, copy in zip((1, 2), streams, strict=True):
            os.dup2(copy, number)
            os.close(copy)


def tried(case: Input, out: int) -> tuple[float, int | str, str]:
    """CPU seconds, the exit code, and what went wrong. The working folder is one's own."""
    for name, data in case.files.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_bytes(data)
    os.ftruncate(out, 0)
    os.lseek(out, 0, os.SEEK_SET)
    code: int | str
    signal.alarm(LATE_SECONDS)
    before = time.process_time()
    try:
        with captured(out):
            code = run(case.words)
    except Late:
        code = "late"
    finally:
        signal.alarm(0)
    seconds = time.process_time() - before
    printed = os.pread(out, 50_000_000, 0)
    for name in case.files:
        Path(name).unlink(missing_ok=True)
    return seconds, code, _wrong(case, code, printed)


def _wrong(case: Input, code: int | str, printed: bytes) -> str:
    if code not in FINE or b"Traceback (most recent call last)" in printed:
        return f"exit code {code}\n" + printed[-3_000:].decode("utf-8", "replace")
    if CONTROL.search(printed):
        return f"a raw control character at {CONTROL.search(printed)}"
    return (
        _misplaced(case, printed)
        if "json" in case.words and case.words[0] == "validate" and code in (0, 1)
        else ""
    )


def _misplaced(case: Input, printed: bytes) -> str:
    for finding in json.loads(printed.partition(b"\ndq: ")[0])["findings"]:
        data = next((data for name, data in case.files.items() if name.endswith(finding["file"])), b"\n")
        lines = max(len(data.decode("utf-8", "replace").splitlines()), data.count(b"\n")) + 1
        if not (1 <= finding["line"] <= lines and finding["column"] >= 1):
            return f"a finding outside of its file of {lines} lines: {finding}"
    return ""


def settled(folder: Path, all_seeds: list[Seed]) -> None:
    """A state store in which every contract that can be registered is."""
    os.chdir(folder)
    for data in dict.fromkeys(seed.data for seed in all_seeds):
        (folder / "fuzz.odcs.yaml").write_bytes(data)
        run(["register", "fuzz.odcs.yaml", "--apply"])
    (folder / "fuzz.odcs.yaml").unlink()


def megabyte_read_plainly() -> float:
    """Processor seconds in which PyYAML reads a contract of a megabyte."""
    lines = "".join(f"  - {{name: c{number:07d}, logicalType: string}}\n" for number in range(25_000))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "columns.odcs.yaml"
        file.write_text("schema:\n" + lines, "utf-8")
        return cpu_seconds(lambda: read_plainly([file]))


def work(
    all_seeds: list[Seed], numbers: range, folder: Path, results: Path, ready: Path, slow_seconds: float
) -> None:
    """Every input of these numbers; a line of JSON for each that went wrong, and one for the whole."""
    os.chdir(folder)
    out = os.open(folder.with_suffix(".out"), os.O_RDWR | os.O_CREAT)
    signal.signal(signal.SIGALRM, _late)
    total, worst, slow, commands = 0.0, (0.0, -1), 0, Counter[str]()
    with results.open("a", buffering=1) as file:
        for done, number in enumerate(numbers):
            if done % FRESH_EVERY == 0:
                for left in folder.iterdir():
                    shutil.rmtree(left) if left.is_dir() else left.unlink()
                shutil.copytree(ready, folder, dirs_exist_ok=True)
            file.write(json.dumps({"at": number}) + "\n")
            case = inputs(all_seeds, number)
            seconds, code, what = tried(case, out)
            commands[f"{case.words[0]} {code}"] += 1
            total, worst, slow = (
                total + seconds,
                max(worst, (seconds, number)),
                slow + (seconds > slow_seconds),
            )
            if what or seconds > slow_seconds:
                what = what or f"{seconds:.1f} s"
                file.write(json.dumps({"wrong": number, "what": what}) + "\n")
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        last = {"total": total, "worst": worst, "slow": slow, "peak": peak, "commands": commands}
        file.write(json.dumps({"last": last}) + "\n")


def watched(
    all_seeds: list[Seed], count: int, folder_: Path, processes: int, slow_seconds: float
) -> list[dict[str, object]]:
    """Runs the numbers in so many processes; one that hangs is killed, and the others go on."""
    os.environ.pop("DQ_STORE_URL", None)
    ready = folder_ / "ready"
    ready.mkdir()
    working_folder = Path.cwd()
    with (folder_ / "settled").open("w") as log, captured(log.fileno()):
        settled(ready, all_seeds)
    os.chdir(working_folder)
    waiting = [range(first, count, processes) for first in range(processes)]
    fork = multiprocessing.get_context("fork")
    running: list[tuple[multiprocessing.process.BaseProcess, range, Path]] = []
    lines: list[dict[str, object]] = []
    tried_before = 0
    while waiting or running:
        while waiting:
            numbers = waiting.pop()
            folder = folder_ / f"folder-{tried_before}"
            folder.mkdir()
            results = folder_ / f"results-{tried_before}"
            process = fork.Process(
                target=work, args=(all_seeds, numbers, folder, results, ready, slow_seconds)
            )
            process.start()
            running.append((process, numbers, results))
            tried_before += 1
        time.sleep(0.2)
        for worker in list(running):
            process, numbers, results = worker
            still = results.exists() and time.time() - results.stat().st_mtime > STUCK_SECONDS
            if process.is_alive() and not still:
                continue
            process.kill()
            process.join()
            running.remove(worker)
            outcome = (
                [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []
            )
            lines += [line for line in outcome if "at" not in line]
            if not any("last" in line for line in outcome):
                at = max((line["at"] for line in outcome if "at" in line), default=numbers.start)
                lines.append(
                    {"wrong": at, "what": "its process stood still" if still else "its process died"}
                )
                waiting.append(range(at + processes, count, processes))
    return lines


def repeat(all_seeds: list[Seed], number: int) -> int:
    case = inputs(all_seeds, number)
    print(case)
    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)
        settled(Path(name), all_seeds)
        for file, data in case.files.items():
            Path(file).parent.mkdir(parents=True, exist_ok=True)
            Path(file).write_bytes(data)
        print("-" * 80, *case.words, sep="\n")
        return run(case.words)


def keep(all_seeds: list[Seed], number: int, what: str) -> None:
    """Writes an input that went wrong to the working folder."""
    case = inputs(all_seeds, number)
    folder = Path(f"fuzz-{number}")
    folder.mkdir(exist_ok=True)
    (folder / "command.json").write_text(json.dumps(case.words))
    (folder / "what.txt").write_text(what)
    for place, data in enumerate(case.files.values()):
        (folder / f"{place}.yaml").write_bytes(data)


def _short(what: str) -> str:
    """The last line of a traceback, else the first line."""
    lines = [line for line in what.splitlines() if re.match(r"\w+(Error|Exception)?: ", line)]
    return (lines or what.splitlines())[-1][:200]


def at_the_limits(folder_: Path) -> tuple[float, list[str]]:
    """The files at the limits of size, judged: the longest CPU seconds, and what went wrong."""
    os.chdir(folder_)
    out = os.open(folder_ / "out", os.O_RDWR | os.O_CREAT)
    signal.signal(signal.SIGALRM, _late)
    worst, wrong = 0.0, []
    for name, content in large().items():
        data = content().encode()
        assert len(data) <= MAX_BYTES, (name, len(data))
        seconds, _, what = tried(Input(["validate", "fuzz.odcs.yaml"], {"fuzz.odcs.yaml": data}), out)
        print(f"{name:<44}{len(data) / 1e6:>8.2f} MB{seconds:>10.2f} s", flush=True)
        worst = max(worst, seconds)
        if what:
            wrong.append(f"{name}: {what}")
    return worst, wrong


def main() -> int:
    args = arguments(__doc__ or "", only="run this input alone, and show it", count="so many inputs")
    all_seeds = seeds()
    if args.only is not None:
        return repeat(all_seeds, args.only)
    count = args.count or (2_000 if args.quick else 100_000)
    processes = len(os.sched_getaffinity(0))
    begun = time.time()
    with tempfile.TemporaryDirectory(prefix="dq-fuzz-") as name:
        slow_seconds = megabyte_read_plainly()
        lines = watched(all_seeds, count, Path(name), processes, slow_seconds)
        taken = time.time() - begun
        (Path(name) / "large").mkdir()
        folder = Path.cwd()
        limits, wrong = at_the_limits(Path(name) / "large")
        os.chdir(folder)
    ends = [line["last"] for line in lines if "last" in line]
    failed = [line for line in lines if "wrong" in line]
    for line in failed[:50]:
        keep(all_seeds, line["wrong"], line["what"])
        print(f"input {line['wrong']}: {_short(line['what'])}")
    print(*wrong, sep="\n")
    commands = sum((Counter(end["commands"]) for end in ends), Counter())
    print(
        "command and exit code:",
        ", ".join(f"{name}: {number:,}" for name, number in sorted(commands.items())),
    )
    slow = sum(end["slow"] for end in ends)
    metrics = {
        "seeds": float(len({seed.data for seed in all_seeds})),
        "inputs": float(count),
        "seconds": taken,
        "tracebacks": float(len(failed) - slow + len(wrong)),
        "a_megabyte_read_plainly_seconds": slow_seconds,
        "slower_than_reading_a_megabyte": float(slow),
        "mean_milliseconds": sum(end["total"] for end in ends) / count * 1e3,
        "worst_seconds": max(end["worst"][0] for end in ends),
        "peak_megabytes": max(end["peak"] for end in ends),  # of one process
        "worst_at_the_limits_seconds": limits,
    }
    goals = {"tracebacks": ("<", 1.0), "slower_than_reading_a_megabyte": ("<", 1.0)}
    return finish(metrics, goals, args)


if __name__ == "__main__":
    sys.exit(main())
