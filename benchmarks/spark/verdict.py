"""Metrics, goals and tables of the stored results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from spark import data, terms
from spark.parts import PARTS, Effort, Line, Part

Stored = Mapping[str, Mapping[str, Line]]
Goals = dict[str, tuple[str, float]]


def found_clauses(lines: Mapping[str, Line]) -> list[str] | None:
    """The clauses that an engine covers and found broken where they are, or None if it did not run there."""
    dirty, retyped = (lines.get(name, {"reason": ""}) for name in data.BROKEN)
    if "reason" in dirty or "reason" in retyped:
        return None
    wrong = {name for line in lines.values() for name in line.get("broken", ()) if line["table"][:2] == "sf"}
    schema = {"schema"} & set(retyped["broken"])
    return sorted((set(dirty["broken"]) | schema) & set(dirty["covers"]) - wrong)


def is_complete(lines: Mapping[str, Line]) -> bool:
    """Return True if an engine covers all forty clauses and judges each as it should."""
    return found_clauses(lines) == sorted(terms.ALL)


def metrics_of(stored: Stored, effort: Effort) -> tuple[dict[str, float], Goals]:
    """Every number by name, and the goals for those that have one; what was not measured is not there."""
    metrics: dict[str, float] = {}
    for part in PARTS:
        for name, line in stored.get(part.name, {}).items():
            if "wall" in line and name not in data.BROKEN:
                metrics[f"{part.name} {name} wall seconds"] = line["wall"][1]
                metrics[f"{part.name} {name} CPU seconds"] = line["cpu"][1]
    goals: Goals = {}
    for name, value, goal in _judged(stored, effort):
        metrics[name] = value
        if goal:
            goals[name] = goal
    return metrics, goals


def _judged(stored: Stored, effort: Effort) -> Iterator[tuple[str, float, tuple[str, float] | None]]:
    for name in ("dq-none", "dq-all"):
        clauses = found_clauses(stored.get(name, {}))
        if clauses is not None:
            yield f"{name} clauses found broken", float(len(clauses)), (">", len(terms.ALL) - 0.5)
    scale = effort.scales[-1]
    table = data.scaled(scale)
    # Of a small table the seconds are those of starting jobs.
    timed = scale >= 1
    for scaled in map(data.scaled, effort.scales):
        none, bound = (_line(stored, name, scaled) for name in ("dq-none", "bound"))
        if none and bound:
            over = none["cpu"][1] / bound["cpu"][1]
            yield f"dq-none over the bound, CPU, {scaled}", over, ("<", 1.05) if timed else None
    yield from _peers(stored, table, 6.0 if timed else None)
    if effort.largest is not None:
        yield from _peers(stored, data.scaled(effort.largest), 5.0)
        every, hand = (_line(stored, name, data.scaled(effort.largest)) for name in ("dq-all", "duckdb"))
        if every and hand:
            over = every["cpu"][1] / hand["cpu"][1]
            yield f"dq-all over DuckDB by hand, CPU, {data.scaled(effort.largest)}", over, ("<", 1.2)
    yield from _counts(stored, data.months(scale), timed)
    yield from _metrics(stored, table)
    yield from _growth(stored, effort)


def _peers(
    stored: Stored, table: str, limit: float | None
) -> Iterator[tuple[str, float, tuple[str, float] | None]]:
    """Ratio of the fastest peer that covers all clauses to all optimizations."""
    every = _line(stored, "dq-all", table)
    for measure in ("wall", "cpu"):
        peers = {
            part.name: line[measure][1]
            for part in PARTS
            if part.peer
            and is_complete(stored.get(part.name, {}))
            and (line := _line(stored, part.name, table))
        }
        if every and peers:
            peer = min(peers, key=lambda name: peers[name])
            times = peers[peer] / every[measure][1]
            shown = "CPU" if measure == "cpu" else measure
            yield f"dq-all faster than {peer}, {shown}, {table}", times, (">", limit) if limit else None


def _counts(stored: Stored, table: str, timed: bool) -> Iterator[tuple[str, float, tuple[str, float] | None]]:
    scan, from_statistics = (_line(stored, f"counts-{source}", table) for source in ("scan", "statistics"))
    if scan and from_statistics:
        if scan["details"]["answer"] != from_statistics["details"]["answer"]:
            raise SystemExit("the counts by month of the statistics are not those of the scan")
        yield (
            "counts by month faster than a scan",
            scan["wall"][1] / from_statistics["wall"][1],
            (">", 30.0) if timed else None,
        )


def _metrics(stored: Stored, table: str) -> Iterator[tuple[str, float, None]]:
    """Cost of ten metrics of the contract against the same by hand, which must give the same numbers."""
    hand, by_dq = (_line(stored, f"metrics-{source}", table) for source in ("hand", "dq"))
    if not hand or not by_dq:
        return
    numbers = by_dq["details"]["numbers"]
    for name, number in hand["details"]["numbers"].items():
        if abs(numbers[name] - number) > 1e-6 * max(abs(number), 1):
            raise SystemExit(f"{name}: {numbers[name]} by the contract, {number} by hand")
    for measure in ("wall", "cpu"):
        shown = "CPU" if measure == "cpu" else measure
        yield f"ten metrics over by hand, {shown}, {table}", by_dq[measure][1] / hand[measure][1], None


def _growth(stored: Stored, effort: Effort) -> Iterator[tuple[str, float, tuple[str, float] | None]]:
    if effort.largest is None:
        return
    first, last = data.scaled(effort.scales[0]), data.scaled(effort.largest)
    rows = effort.largest / effort.scales[0]
    for name in ("dq-none", "dq-all"):
        small, many = _line(stored, name, first), _line(stored, name, last)
        if small and many:
            # Without optimizations Spark sorts, by hand as by dq, and goes to disk when memory is short.
            limits = (("<", 1.1), ("<", 1.5)) if name == "dq-all" else (None, None)
            growth = many["cpu"][1] / small["cpu"][1] / rows
            yield f"{name} growth of CPU over growth of rows", growth, limits[0]
            memory = many["peak_megabytes"] / small["peak_megabytes"]
            yield f"{name} growth of peak memory", memory, limits[1]


def _line(stored: Stored, part: str, table: str) -> Line | None:
    line = stored.get(part, {}).get(table)
    return line if line and "wall" in line else None


def tables(stored: Stored, effort: Effort) -> list[str]:
    """The results as Markdown, the engines in the order of PARTS, and why the missing ones are missing."""
    shown = [data.scaled(scale) for scale in (*effort.scales, *([effort.largest] if effort.largest else []))]
    lines: list[str] = []
    for table in shown:
        rows = [part for part in PARTS if _line(stored, part.name, table)]
        if rows:
            lines += ["", f"**{table}**, least / median / greatest", "", *_table(stored, rows, table)]
    for part in (part for part in PARTS if part.by_month):
        lines += [
            f"- {part.title}: {_seconds(line)}"
            for line in stored.get(part.name, {}).values()
            if "wall" in line
        ]
    reasons: dict[str, list[str]] = {}
    for part in PARTS:
        for name, line in stored.get(part.name, {}).items():
            if "reason" in line:
                reasons.setdefault(f"{part.title}, not measured: {line['reason']}", []).append(name)
    notes = [f"- {reason} ({', '.join(names)})" for reason, names in reasons.items()]
    return [*lines, "", *notes] if notes else lines


_HEADS = (
    "engine",
    "clauses",
    "wall s",
    "CPU s",
    "× bound, wall",
    "× bound, CPU",
    "× all optimizations, wall",
    "× all optimizations, CPU",
    "jobs",
    "peak MB",
    "runs",
)


def _table(stored: Stored, rows: Sequence[Part], table: str) -> list[str]:
    lines = [f"|{'|'.join(_HEADS)}|", "|" + "---|" * len(_HEADS)]
    bound, every = _line(stored, "bound", table), _line(stored, "dq-all", table)
    for part in rows:
        line = stored[part.name][table]
        clauses = found_clauses(stored[part.name])
        # Others used the machine for more than a fifth of the time: the wall time tells little.
        busy = " ~" if line["others_cpu"][1] > 0.2 * line["wall"][1] else ""
        cells = [
            part.title,
            "?" if clauses is None else f"{len(clauses)}",
            _three(line["wall"]) + busy,
            _three(line["cpu"]),
            *(_times(line, other, measure) for other in (bound, every) for measure in ("wall", "cpu")),
            str(line["jobs"]) if part.spark else "",
            f"{line['peak_megabytes']:,.0f}",
            str(line["runs"]),
        ]
        lines.append(f"|{'|'.join(cells)}|")
    return lines


def _times(line: Line, other: Line | None, measure: str) -> str:
    return f"{line[measure][1] / other[measure][1]:.2f}" if other else ""


def _three(values: Sequence[float]) -> str:
    return " / ".join(f"{value:.2f}" for value in values)


def _seconds(line: Mapping[str, Any]) -> str:
    details = line["details"]
    return (
        f"{details['partitions']} partitions, {details['rows']:,} rows: wall {_three(line['wall'])} s,"
        f" CPU {_three(line['cpu'])} s"
    )
