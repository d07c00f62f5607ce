"""What the kept results come to: metrics, goals, and tables to read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from spark import data, terms
from spark.parts import PARTS, Effort, Line, Part

Found = Mapping[str, Mapping[str, Line]]
Goals = dict[str, tuple[str, float]]


def found_clauses(lines: Mapping[str, Line]) -> list[str] | None:
    """The clauses that an engine covers and found broken where they are; None when it did not run there."""
    dirty, retyped = (lines.get(name, {"reason": ""}) for name in data.BROKEN)
    if "reason" in dirty or "reason" in retyped:
        return None
    wrong = {name for line in lines.values() for name in line.get("broken", ()) if line["table"][:2] == "sf"}
    schema = {"schema"} & set(retyped["broken"])
    return sorted((set(dirty["broken"]) | schema) & set(dirty["covers"]) - wrong)


def whole(lines: Mapping[str, Line]) -> bool:
    """Whether an engine covers all forty clauses and judges each as it should."""
    return found_clauses(lines) == sorted(terms.ALL)


def metrics_of(found: Found, effort: Effort) -> tuple[dict[str, float], Goals]:
    """Every number by name, and the goals for those that have one; what was not measured is not there."""
    metrics: dict[str, float] = {}
    for part in PARTS:
        for name, line in found.get(part.name, {}).items():
            if "wall" in line and name not in data.BROKEN:
                metrics[f"{part.name} {name} wall seconds"] = line["wall"][1]
                metrics[f"{part.name} {name} CPU seconds"] = line["cpu"][1]
    goals: Goals = {}
    for name, value, goal in _judged(found, effort):
        metrics[name] = value
        if goal:
            goals[name] = goal
    return metrics, goals


def _judged(found: Found, effort: Effort) -> Iterator[tuple[str, float, tuple[str, float] | None]]:
    for name in ("dq-none", "dq-all"):
        clauses = found_clauses(found.get(name, {}))
        if clauses is not None:
            yield f"{name} clauses found broken", float(len(clauses)), (">", len(terms.ALL) - 0.5)
    scale = effort.scales[-1]
    table = data.scaled(scale)
    # Of a small table the seconds are those of starting jobs.
    timed = scale >= 1
    for each in map(data.scaled, effort.scales):
        none, bound = (_line(found, name, each) for name in ("dq-none", "bound"))
        if none and bound:
            over = none["cpu"][1] / bound["cpu"][1]
            yield f"dq-none over the bound, CPU, {each}", over, ("<", 1.05) if timed else None
    yield from _peers(found, table, 6.0 if timed else None)
    if effort.largest is not None:
        yield from _peers(found, data.scaled(effort.largest), 5.0)
        every, hand = (_line(found, name, data.scaled(effort.largest)) for name in ("dq-all", "duckdb"))
        if every and hand:
            over = every["cpu"][1] / hand["cpu"][1]
            yield f"dq-all over DuckDB by hand, CPU, {data.scaled(effort.largest)}", over, ("<", 1.2)
    yield from _counts(found, data.months(scale), timed)
    yield from _metrics(found, table)
    yield from _growth(found, effort)


def _peers(
    found: Found, table: str, limit: float | None
) -> Iterator[tuple[str, float, tuple[str, float] | None]]:
    """How much faster all levers are than the fastest peer that covers all clauses."""
    every = _line(found, "dq-all", table)
    for measure in ("wall", "cpu"):
        peers = {
            part.name: line[measure][1]
            for part in PARTS
            if part.peer and whole(found.get(part.name, {})) and (line := _line(found, part.name, table))
        }
        if every and peers:
            peer = min(peers, key=lambda name: peers[name])
            times = peers[peer] / every[measure][1]
            shown = "CPU" if measure == "cpu" else measure
            yield f"dq-all faster than {peer}, {shown}, {table}", times, (">", limit) if limit else None


def _counts(found: Found, table: str, timed: bool) -> Iterator[tuple[str, float, tuple[str, float] | None]]:
    scan, told = (_line(found, f"counts-{way}", table) for way in ("scan", "statistics"))
    if scan and told:
        if scan["details"]["answer"] != told["details"]["answer"]:
            raise SystemExit("the counts by month of the statistics are not those of the scan")
        yield (
            "counts by month faster than a scan",
            scan["wall"][1] / told["wall"][1],
            (">", 30.0) if timed else None,
        )


def _metrics(found: Found, table: str) -> Iterator[tuple[str, float, None]]:
    """What ten metrics of the contract cost against the same by hand, which must give the same numbers."""
    hand, told = (_line(found, f"metrics-{way}", table) for way in ("hand", "dq"))
    if not hand or not told:
        return
    numbers = told["details"]["numbers"]
    for name, number in hand["details"]["numbers"].items():
        if abs(numbers[name] - number) > 1e-6 * max(abs(number), 1):
            raise SystemExit(f"{name}: {numbers[name]} by the contract, {number} by hand")
    for measure in ("wall", "cpu"):
        shown = "CPU" if measure == "cpu" else measure
        yield f"ten metrics over by hand, {shown}, {table}", told[measure][1] / hand[measure][1], None


def _growth(found: Found, effort: Effort) -> Iterator[tuple[str, float, tuple[str, float] | None]]:
    if effort.largest is None:
        return
    first, last = data.scaled(effort.scales[0]), data.scaled(effort.largest)
    rows = effort.largest / effort.scales[0]
    for name in ("dq-none", "dq-all"):
        few, many = _line(found, name, first), _line(found, name, last)
        if few and many:
            # Without levers it is Spark that sorts, by hand as by dq, and goes to disk when memory is short.
            limits = (("<", 1.1), ("<", 1.5)) if name == "dq-all" else (None, None)
            growth = many["cpu"][1] / few["cpu"][1] / rows
            yield f"{name} growth of CPU over growth of rows", growth, limits[0]
            memory = many["peak_megabytes"] / few["peak_megabytes"]
            yield f"{name} growth of peak memory", memory, limits[1]


def _line(found: Found, part: str, table: str) -> Line | None:
    line = found.get(part, {}).get(table)
    return line if line and "wall" in line else None


def tables(found: Found, effort: Effort) -> list[str]:
    """The results as Markdown, the engines in the order of PARTS, and why the missing ones are missing."""
    shown = [data.scaled(scale) for scale in (*effort.scales, *([effort.largest] if effort.largest else []))]
    lines: list[str] = []
    for table in shown:
        rows = [part for part in PARTS if _line(found, part.name, table)]
        if rows:
            lines += ["", f"**{table}**, least / median / greatest", "", *_table(found, rows, table)]
    for part in (one for one in PARTS if one.by_month):
        lines += [
            f"- {part.title}: {_seconds(line)}"
            for line in found.get(part.name, {}).values()
            if "wall" in line
        ]
    reasons: dict[str, list[str]] = {}
    for part in PARTS:
        for name, line in found.get(part.name, {}).items():
            if "reason" in line:
                reasons.setdefault(f"{part.title}, not measured: {line['reason']}", []).append(name)
    told = [f"- {reason} ({', '.join(names)})" for reason, names in reasons.items()]
    return [*lines, "", *told] if told else lines


_HEADS = (
    "engine",
    "clauses",
    "wall s",
    "CPU s",
    "× bound, wall",
    "× bound, CPU",
    "× all levers, wall",
    "× all levers, CPU",
    "jobs",
    "peak MB",
    "runs",
)


def _table(found: Found, rows: Sequence[Part], table: str) -> list[str]:
    lines = [f"|{'|'.join(_HEADS)}|", "|" + "---|" * len(_HEADS)]
    bound, every = _line(found, "bound", table), _line(found, "dq-all", table)
    for part in rows:
        line = found[part.name][table]
        clauses = found_clauses(found[part.name])
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
