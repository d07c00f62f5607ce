"""Feeds the gate mutated contracts and hostile files: no traceback, findings in their file, no long wait.

Mutations work on three levels: bytes (flips, cuts, copies), lines (dropped, doubled, moved, indented) and
values (another type, a hostile text, a subtree of another place). An input that went wrong is written to the
working folder as fuzz-N.odcs.yaml.
"""

from __future__ import annotations

import copy
import random
import sys
import time
import traceback
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import yaml
from _contracts import text
from _hostile import large
from _report import arguments, finish

from dq.contracts.source import MAX_BYTES
from dq.validators.lint import lint, rules_of

TODAY = date(2026, 11, 21)
RULES = rules_of()
TREE = Path(__file__).parent.parent
SEEDS = [
    *(path.read_bytes() for path in sorted((TREE / "examples").rglob("*.odcs.yaml"))),
    *(path.read_bytes() for path in sorted((TREE / "tests" / "contracts" / "odcs").glob("*.odcs.yaml"))),
    text(3, columns=12).encode(),
]
DOCUMENTS = [yaml.safe_load(seed) for seed in SEEDS]
HOSTILE: tuple[Any, ...] = (
    "", " ", "\t", "\ufeff", "\u2028", "\ud7ff", "a" * 5_000, "9" * 5_000, "decimal(" + "9" * 5_000 + ")",
    "array<" * 200, "((((((((((a+)+)+)+)+)+)+)+)+)+$", "a{" + "9" * 5_000 + "}", "* * * * *",
    "0 6 * * " + ",".join(["1-5"] * 500), "*/" + "9" * 5_000 + " * * * *", "P" + "9" * 5_000 + "D",
    "9" * 5_000 + "d", "${A:-${B:-${C}}}", "{" * 500, "{due - 99999999d:%Y}", "%" * 500, "Europe/../../etc",
    "select " + "(" * 2_000, "'" * 999, "/*" * 999, "v3.2.0", "99999999999999999999.0.0", "s3://" + "/" * 999,
    -1, 0, 2**63, -(2**70), 1e308, float("inf"), float("nan"), True, None, [], {}, [[]], [None], {"a": {}},
    date(2026, 1, 1),
)  # fmt: skip


SIGNS = (b"{", b"[", b"&a ", b"*a", b"!!python/x ", b"- ", b": ", b"|", b"<<: ")


def mutants(draw: random.Random) -> Iterator[bytes]:
    """Inputs without end."""
    while True:
        kind = draw.choice((_bytes, _lines, _values, _values, _values))
        yield kind(draw)


def _bytes(draw: random.Random) -> bytes:
    data = bytearray(draw.choice(SEEDS))
    for _ in range(draw.randint(1, 8)):
        at = draw.randrange(len(data) + 1)
        match draw.randrange(4):
            case 0:
                data[at : at + draw.randint(0, 20)] = b""
            case 1:
                data[at:at] = bytes(draw.randrange(256) for _ in range(draw.randint(1, 4)))
            case 2:
                data[at:at] = draw.choice(
                    (b"{", b"[", b"&a ", b"*a", b"!!python/x ", b"- ", b": ", b"|", b"<<: ")
                )
            case 3:
                data[at:at] = data[at // 2 : at // 2 + draw.randint(1, 300)]
    return bytes(data)


def _lines(draw: random.Random) -> bytes:
    lines = draw.choice(SEEDS).splitlines(keepends=True)
    for _ in range(draw.randint(1, 5)):
        at = draw.randrange(len(lines))
        match draw.randrange(4):
            case 0:
                del lines[at : at + draw.randint(1, 3)]
            case 1:
                lines[at:at] = lines[at : at + draw.randint(1, 10)]
            case 2:
                lines[at] = b" " * draw.randint(1, 4) + lines[at]
            case 3:
                lines[at] = lines[draw.randrange(len(lines))]
        lines = lines or [b"\n"]
    return b"".join(lines)


def _values(draw: random.Random) -> bytes:
    document = copy.deepcopy(draw.choice(DOCUMENTS))
    for _ in range(draw.randint(1, 4)):
        places = list(_places(document))
        holder, key = draw.choice(places)
        match draw.randrange(5):
            case 0:
                del holder[key]
                if not document:
                    break
            case 1 if isinstance(holder, dict):
                holder[draw.choice((f"{key}s", str(key).upper(), "x" * 300, str(key)[1:] or "a"))] = holder[
                    key
                ]
            case 2:
                other, theirs = draw.choice(places)
                holder[key] = copy.deepcopy(other[theirs]) if theirs in _keys(other) else None
            case _:
                holder[key] = copy.deepcopy(draw.choice(HOSTILE))
        if not list(_places(document)):
            break
    return yaml.dump(document, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True).encode()


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    for key in _keys(value):
        yield value, key
        yield from _places(value[key])


def _keys(value: Any) -> list[Any]:
    return (
        list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
    )


def judged(data: bytes) -> tuple[float, str]:
    """Seconds, and what went wrong: a traceback, or a finding that stands nowhere."""
    before = time.perf_counter()
    try:
        findings = lint(data, "fuzz.odcs.yaml", rules=RULES, today=TODAY)
    except Exception:  # noqa: BLE001  # what this program looks for
        return time.perf_counter() - before, traceback.format_exc()
    seconds = time.perf_counter() - before
    lines = max(1, len(data.decode("utf-8", "replace").splitlines()) + 1, data.count(b"\n") + 1)
    for one in findings:
        if not (1 <= one.at.line <= lines and one.at.column >= 1 and one.at.file == "fuzz.odcs.yaml"):
            return seconds, f"a finding outside of the file: {one} (of {lines} lines)"
    return seconds, ""


def main() -> int:
    args = arguments(__doc__ or "")
    count = 2_000 if args.quick else 20_000
    draw = random.Random(20_261_121)
    wrong: list[str] = []
    worst, total = 0.0, 0.0
    for data, _ in zip(mutants(draw), range(count), strict=False):
        seconds, what = judged(data)
        worst, total = max(worst, seconds), total + seconds
        if what:
            wrong.append(what)
            Path(f"fuzz-{len(wrong)}.odcs.yaml").write_bytes(data)
    slowest = ("", 0.0)
    for name, made in large().items():
        data = made().encode()
        assert len(data) <= MAX_BYTES, (name, len(data))
        seconds, what = judged(data)
        print(f"{name:<44}{len(data) / 1e6:>8.2f} MB{seconds:>10.2f} s")
        slowest = max(slowest, (name, seconds), key=lambda one: one[1])
        if what:
            wrong.append(f"{name}: {what}")
    for what in wrong[:5]:
        print(what)
    metrics = {
        "mutated_inputs": float(count),
        "tracebacks": float(len(wrong)),
        "mean_milliseconds": total / count * 1e3,
        "worst_mutated_seconds": worst,
        "worst_at_the_limits_seconds": slowest[1],
    }
    goals = {
        "tracebacks": ("<", 1.0),
        "worst_mutated_seconds": ("<", 2.0),
    }
    return finish(metrics, goals, args)


if __name__ == "__main__":
    sys.exit(main())
