"""Early warnings of simulated products: how many late deliveries they announce, how many are false.

A product has 180 days of history and is then watched for 180 days; a weekly one has 26 cycles of each at
least. Each cycle's warning is decided by the function of the watcher, `plan_warning`, from the cycles before
it. It is sent if the data is not there at that time, unless the budget of false warnings is used up.

Products are steady, slow on Mondays or at the end of the month, run by the clock of another zone, slower from
week to week, of two modes, heavy-tailed, or weekly; a fifth has another of these habits too. Of their
deliveries, 1 to 6 % are hit by an outage of hours. The generator knows nothing of the decision.

A warning is right if the delivery is late in the end, and false otherwise. `--by-bound-alone` leaves out the
limit by the budget, so that only the bound keeps it. `--picture FILE` draws the result as SVG.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from math import ceil
from pathlib import Path
from statistics import fmean, median, quantiles
from zoneinfo import ZoneInfo

from _report import arguments, finish

from dq.contracts.slo import FalseWarnings, parse_false_warnings
from dq.dataquality.delivery.early_warning import PastCycle, plan_warning

SEED = 20_261_129
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Sydney")
KINDS = ("steady", "mondays", "month end", "other zone", "trend", "two modes", "heavy tail", "weekly")
DAY, MINUTE = timedelta(days=1), timedelta(minutes=1)
BUDGET = parse_false_warnings("1/quarter")
assert isinstance(BUDGET, FalseWarnings)
MINIMUM_CYCLES = 26


@dataclass
class Product:
    """Due times of a product, and the behaviour of its job in minutes after the usual start."""

    kind: str
    zone: ZoneInfo
    grace: float
    usual: float
    spread: float
    outages: float
    draw: random.Random
    quirks: set[str] = field(default_factory=set)

    def lateness(self, day: date, number: int, due_at: datetime) -> float:
        """Minutes from the due time to the arrival."""
        draw = self.draw
        minutes = self.usual + self.spread * draw.gauss(0, 1)
        if "mondays" in self.quirks and day.weekday() == 0:
            minutes += 25
        if "month end" in self.quirks and ((day + DAY).month != day.month or day.day == 1):
            minutes += 30
        if "other zone" in self.quirks:
            offset = due_at.astimezone(self.zone).utcoffset()
            assert offset is not None
            minutes -= 60 - (offset.total_seconds() / 60) % 120
        if "trend" in self.quirks:
            minutes += 0.15 * number
        if "two modes" in self.quirks and draw.random() < 0.25:
            minutes += 35
        if "heavy tail" in self.quirks:
            minutes += draw.paretovariate(1.6) * 3
        if draw.random() < self.outages:
            minutes += draw.lognormvariate(5.0, 0.6)
        return minutes


@dataclass
class Result:
    """Results of the warnings of one product."""

    kind: str
    # Quarters begun while it was watched.
    quarters: int
    late: int = 0
    announced: int = 0
    false: int = 0
    most_in_a_quarter: int = 0
    # Minutes from the warning to the breach of late deliveries.
    leads: list[float] = field(default_factory=list)
    # Cycles without a time to warn, by the reason without its numbers.
    silent: Counter[str] = field(default_factory=Counter)
    cycles: int = 0


def product(seed: int) -> Product:
    draw = random.Random(seed)
    kind = KINDS[seed % len(KINDS)]
    quirks = {kind} | ({draw.choice(KINDS[1:7])} if draw.random() < 0.2 else set())
    return Product(
        kind,
        ZoneInfo(draw.choice(ZONES[1:] if kind == "other zone" else ZONES)),
        draw.choice([30.0, 60.0, 120.0]),
        -draw.uniform(20, 90),
        draw.choice([2.0, 5.0, 10.0]),
        draw.uniform(0.01, 0.06),
        draw,
        quirks,
    )


def dues(product_: Product, days: int) -> list[tuple[date, datetime]]:
    step = 7 if product_.kind == "weekly" else 1
    count = max(2 * days // step, 2 * MINIMUM_CYCLES)
    first = date(2025, 9, 1)
    every = [first + number * step * DAY for number in range(count)]
    return [(day, datetime.combine(day, time(6), product_.zone).astimezone(UTC)) for day in every]


def watch(seed: int, days: int, limited: bool) -> Result:
    """Decide on each cycle of the second half from all before it."""
    simulated = product(seed)
    cycles = dues(simulated, days)
    history: list[PastCycle] = []
    begin = len(cycles) // 2
    span = cycles[-1][1] - cycles[begin][1]
    result = Result(simulated.kind, ceil(span / BUDGET.period))
    # The false warnings, which count against the budget for a period.
    spent: list[datetime] = []
    for number, (day, due_at) in enumerate(cycles):
        lateness = simulated.lateness(day, number if simulated.kind != "weekly" else 7 * number, due_at)
        breach_at = due_at + simulated.grace * MINUTE
        arrived_at = due_at + lateness * MINUTE
        if number >= begin:
            result.cycles += 1
            is_late = arrived_at > breach_at
            result.late += is_late
            plan = plan_warning(history, due_at, breach_at, BUDGET, simulated.zone.key)
            if plan.warn_at is None:
                result.silent[reason_without_numbers(plan.reason)] += 1
            elif arrived_at > plan.warn_at:
                recent = [at for at in spent if at > plan.warn_at - BUDGET.period]
                if limited and len(recent) >= BUDGET.number:
                    result.silent["budget of false warnings used up"] += 1
                elif is_late:
                    result.announced += 1
                    result.leads.append((breach_at - plan.warn_at) / MINUTE)
                else:
                    result.false += 1
                    spent.append(plan.warn_at)
                    result.most_in_a_quarter = max(result.most_in_a_quarter, len(recent) + 1)
        history.append(PastCycle(due_at, arrived_at - due_at))
    return result


def reason_without_numbers(reason: str) -> str:
    if reason.startswith("no time"):
        return "no time before the breach keeps the budget"
    return "too little history for the budget"


def share(part: float, total: float) -> float:
    return part / total if total else 0.0


def figures(results: Sequence[Result]) -> dict[str, float]:
    """The metrics over all products."""
    late, announced = sum(r.late for r in results), sum(r.announced for r in results)
    leads = [lead for r in results for lead in r.leads]
    rates = sorted(r.false / r.quarters for r in results)
    deciles = [rates[len(rates) * n // 10 : len(rates) * (n + 1) // 10] for n in range(10)]
    silences: Counter[str] = sum((r.silent for r in results), Counter())
    cycles = sum(r.cycles for r in results)
    silent = [r for r in results if sum(r.silent.values()) == r.cycles]
    metrics: dict[str, float] = {
        "products": len(results),
        "cycles": cycles,
        "late deliveries": late,
        "late deliveries announced, %": 100 * share(announced, late),
        "minutes before the breach, median": median(leads) if leads else 0.0,
        "minutes before the breach, lowest decile": quantiles(leads, n=10)[0] if len(leads) > 1 else 0.0,
        "right warnings, % of all": 100 * share(announced, announced + sum(r.false for r in results)),
        "false warnings a product and quarter": fmean(rates),
        "the same in the worst decile of products": max(map(fmean, deciles)),
        "the same of the worst product": rates[-1],
        "most false warnings of a product in any quarter": max(r.most_in_a_quarter for r in results),
        "products always silent": len(silent),
    }
    metrics |= {f"silent cycles, %: {why}": 100 * n / cycles for why, n in sorted(silences.items())}
    for kind in KINDS:
        own = [r for r in results if r.kind == kind]
        metrics[f"{kind}: late announced, %"] = 100 * share(
            sum(r.announced for r in own), sum(r.late for r in own)
        )
        metrics[f"{kind}: false a quarter"] = fmean([r.false / r.quarters for r in own]) if own else 0.0
    return metrics


# The picture: of each kind of product, what became of its warnings and its late deliveries.

_WIDTH, _ROW, _LEFT, _BAR = 760, 30, 100, 470
_PARTS = (
    ("warned and then late", "#2f7d4f"),
    ("warned and then on time", "#d9a441"),
    ("late without a warning", "#b5443c"),
)


def picture(results: Sequence[Result]) -> str:
    """Return the shares of the three outcomes by kind of product, as SVG."""
    rows = []
    for place, kind in enumerate((*KINDS, "all")):
        own = [r for r in results if kind in (r.kind, "all")]
        announced, late = sum(r.announced for r in own), sum(r.late for r in own)
        numbers = (announced, sum(r.false for r in own), late - announced)
        rows.append(_bar(kind, 58 + place * _ROW, numbers))
    legend, left = [], _LEFT
    for name, colour in _PARTS:
        legend.append(f'<rect x="{left}" y="30" width="12" height="12" fill="{colour}"/>')
        legend.append(f'<text x="{left + 17}" y="40">{name}</text>')
        left += 180
    height = 58 + _ROW * (len(KINDS) + 1) + 8
    title = f"Early warnings of {len(results):,} simulated products, 180 days, at most 1 false a quarter"
    style = "font: 13px 'DejaVu Sans', sans-serif; background: #fff"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" style="{style}">'
    ground = f'<rect width="{_WIDTH}" height="{height}" fill="#fff"/>'
    heading = f'<text x="8" y="18" font-weight="bold">{title}</text>'
    return "\n".join([head, ground, heading, *legend, *rows, "</svg>", ""])


def _bar(kind: str, top: int, numbers: Sequence[int]) -> str:
    left, parts = float(_LEFT), [f'<text x="8" y="{top + 15}">{kind}</text>']
    for number, (_, colour) in zip(numbers, _PARTS, strict=True):
        width = _BAR * share(number, sum(numbers))
        parts.append(f'<rect x="{left:.1f}" y="{top}" width="{width:.1f}" height="20" fill="{colour}"/>')
        left += width
    text = " / ".join(f"{number:,}" for number in numbers)
    return "\n".join([*parts, f'<text x="{_LEFT + _BAR + 10}" y="{top + 15}">{text}</text>'])


def main() -> int:
    no_budget = {"action": "store_true", "help": "leave out the limit by the budget"}
    args = arguments(
        __doc__ or "",
        products="number of products",
        days="days that are watched",
        by_bound_alone=no_budget,
        picture={"type": Path, "help": "draw the result as SVG into this file"},
    )
    products, days = args.products or (200 if args.quick else 2_000), args.days or 180
    with ProcessPoolExecutor(2) as pool:
        numbers = range(SEED, SEED + products)
        settings = ([days] * products, [not args.by_bound_alone] * products)
        results = list(pool.map(watch, numbers, *settings, chunksize=10))
    metrics = figures(results)
    if args.picture:
        args.picture.write_text(picture(results), "utf-8")
    goals = {
        "late deliveries announced, %": (">", 50.0),
        "the same in the worst decile of products": ("<", 1.001),
        "most false warnings of a product in any quarter": ("<", 1.001),
    }
    if args.by_bound_alone:
        goals = {"false warnings a product and quarter": ("<", 1.0)}
    return finish(metrics, goals, args)


if __name__ == "__main__":
    sys.exit(main())
