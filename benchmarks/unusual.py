"""Unusual numbers: planted faults that are found, false alarms that were promised not to be, and the cost.

Histories of tables are simulated in families: flat, weekly, trend, month end, heavy tails, counts near zero,
missing cycles, growth, level shifts. False alarms are counted in histories without faults, once for each
series of days. A fault is found if its own day is unusual. With `--nab DIR`, the series of the Numenta
Anomaly Benchmark in this folder are judged by the hour, next to a z-score, Holt-Winters, and quantiles of the
season. The cost of a fleet is a ratio to sorting its numbers.
"""

from __future__ import annotations

import csv
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import NormalDist

import numpy as np
from _report import arguments, finish

from dq.dataquality.unusual import YEAR, Scale, judge

HISTORIES, QUICK_HISTORIES = 504, 90
DAYS = 730
FAMILIES = (
    "flat", "weekly", "trend", "month end", "heavy tails", "near zero", "missing cycles", "growth",
    "level shifts",
)  # fmt: skip
NUMBERS = {
    "rowCount": Scale.ROWS,
    "nullShare": Scale.SHARE,
    "distinct states": Scale.COUNT,
    "distinct customers": Scale.COUNT,
    "mean": Scale.NUMBER,
    "stddev": Scale.NUMBER,
    "p99": Scale.NUMBER,
    "arrival": Scale.MINUTES,
}
PLACE = {name: place for place, name in enumerate(NUMBERS)}
START = np.datetime64("2024-01-01")
Table = np.ndarray


def simulated(family: str, days: int, draw: np.random.Generator) -> tuple[Table, np.ndarray]:
    """Return numbers × days of a table without faults, and the days of real changes."""
    day = np.arange(days)
    dates = START + day
    noise = draw.uniform(0.02, 0.08)
    rows = draw.uniform(3, 6.5) * np.ones(days)
    base = 10 ** rows[0]
    factor = np.exp(noise * draw.standard_normal(days))
    mean = 10 ** draw.uniform(-1, 4) * np.exp(draw.uniform(0.005, 0.03) * draw.standard_normal(days))
    weekly = np.ones(7)
    changes = np.zeros(days, bool)
    missing = np.zeros(days, bool)
    if family in ("weekly", "month end", "missing cycles", "growth"):
        weekly = np.exp(draw.normal(0, 0.15, 7))
        weekly[5:] *= draw.uniform(0.1, 0.9)
    if family == "trend":
        factor *= 1 + draw.uniform(-0.9, 4) * day / days
        mean *= 1 + draw.uniform(-0.5, 1) * day / days
    if family == "growth":
        factor *= np.exp(draw.uniform(0.001, 0.006) * day)
    if family == "month end":
        month = dates.astype("datetime64[M]")
        last = (month + 1).astype("datetime64[D]") - 1
        if draw.random() < 0.5:  # the last working day
            weekday = (last.astype(int) + 3) % 7
            last = last - np.maximum(weekday - 4, 0)
        factor *= np.where(dates == last, draw.uniform(1.5, 5), 1.0)
        if draw.random() < 0.3:
            factor *= np.where(dates == month.astype("datetime64[D]"), draw.uniform(1.5, 3), 1.0)
    if family == "heavy tails":
        factor = np.exp(noise * draw.standard_t(3, days))
        mean = mean[0] * np.exp(0.02 * draw.standard_t(3, days))
    if family == "near zero":
        base = draw.uniform(0.2, 12)
    if family == "missing cycles":
        missing = draw.random(days) < draw.uniform(0.03, 0.2)
        if draw.random() < 0.5:
            missing |= (day + 3) % 7 >= 5
        gap = draw.integers(100, days - 30)
        missing[gap : gap + draw.integers(2, 15)] = True
    if family == "level shifts":
        for change in draw.choice(np.arange(60, days - 30), 2, replace=False):
            factor[change:] *= draw.choice((0.4, 0.6, 1.7, 2.5))
            changes[change : change + 3] = True
            mean[change:] *= draw.choice((1.0, 1.5))
    expected = base * factor * weekly[(dates.astype(int) + 3) % 7]
    rows = draw.poisson(expected) if base < 1e4 else np.round(expected)
    some = np.maximum(rows, 1)
    share = draw.choice((0.0, 0.001, 0.02, 0.3))
    nulls = draw.binomial(np.minimum(some, 10**9).astype(int), share) / some
    share_noise = np.exp(0.1 * draw.standard_normal(days)) if share else 1.0
    customers = np.round(draw.uniform(0.3, 0.9) * rows * np.exp(0.01 * draw.standard_normal(days)))
    sampling = 1 + draw.standard_normal((3, days)) * np.array([[1.0], [0.7], [2.5]]) / np.sqrt(some) * 0.6
    mean = mean * sampling[0]
    deviation = draw.uniform(0.2, 0.8) * mean * np.abs(sampling[1])
    table = np.array(
        [
            rows,
            np.clip(nulls * share_noise, 0, 1),
            np.minimum(np.full(days, draw.integers(3, 12)), some),
            np.minimum(customers, some),
            mean,
            deviation,
            (mean + 2.5 * deviation) * np.abs(sampling[2]),
            draw.uniform(-60, 60) + draw.gamma(2, draw.uniform(200, 1_500) / 60, days),
        ],
        float,
    )
    table[4:7, rows == 0] = np.nan
    table[1, rows == 0] = np.nan
    table[:, missing] = np.nan
    return table, changes


def _half(table: Table, day: int) -> None:
    table[PLACE["rowCount"], day] = np.floor(table[PLACE["rowCount"], day] / 2)
    table[PLACE["distinct customers"], day] = np.floor(table[PLACE["distinct customers"], day] * 0.55)


def _null(table: Table, day: int) -> None:
    table[PLACE["nullShare"], day] = 1
    table[[PLACE["mean"], PLACE["stddev"], PLACE["p99"]], day] = np.nan


def _hundredfold(table: Table, day: int) -> None:
    table[[PLACE["mean"], PLACE["stddev"], PLACE["p99"]], day] *= 100


def _renamed(table: Table, day: int) -> None:
    table[PLACE["distinct states"], day] += 1


def _fan_out(table: Table, day: int) -> None:
    table[PLACE["rowCount"], day] *= 3


def _stuck(table: Table, day: int) -> None:
    table[PLACE["stddev"], day] = 0
    table[PLACE["p99"], day] = table[PLACE["mean"], day]


def _late(table: Table, day: int) -> None:
    table[PLACE["arrival"], day] += 360


FAULTS: dict[str, Callable[[Table, int], None]] = {
    "half a load": _half,
    "column NULL": _null,
    "times 100": _hundredfold,
    "enum renamed": _renamed,
    "join fan-out": _fan_out,
    "stuck value": _stuck,
    "late arrival": _late,
}

# Of a few rows, half is no fault.
FOUND_IN_FEW_ROWS = ("times 100", "late arrival")


def judged_tables(tables: list[Table], level: float) -> tuple[np.ndarray, np.ndarray]:
    """Return for tables × days if a number is unusual, and if one is judged."""
    numbers = len(tables[0])
    days = tables[0].shape[1]
    times = (START + np.arange(days)).astype("datetime64[s]")
    result = judge(
        times,
        np.concatenate(tables),
        [*NUMBERS.values()] * len(tables),
        level / numbers,
        tables=np.repeat(np.arange(len(tables)), numbers),
    )
    shape = (len(tables), numbers, days)
    return result.unusual.reshape(shape).any(axis=1), (~np.isnan(result.p)).reshape(shape).any(axis=1)


def episodes(unusual: np.ndarray) -> np.ndarray:
    """Return the beginnings of incidents: unusual days that do not follow another within three days."""
    begins = unusual.copy()
    for back in range(1, 4):
        begins[..., back:] &= ~unusual[..., :-back]
    return begins


def simulate(histories: int, seed: int) -> dict[str, float]:
    draw = np.random.default_rng(seed)
    families = [FAMILIES[number % len(FAMILIES)] for number in range(histories)]
    drawn = [simulated(family, DAYS, draw) for family in families]
    level = 1 / YEAR
    unusual, judged = judged_tables([table for table, _ in drawn], level)
    # A level that really changes is reported once; that is no false alarm.
    alarms = episodes(unusual) & ~np.array([changes for _, changes in drawn])
    metrics = {"histories": float(histories)}
    rates = {}
    for family in FAMILIES:
        rows = [number for number, name in enumerate(families) if name == family]
        years = judged[rows].sum() / YEAR
        rates[family] = alarms[rows].sum() / years
        metrics[f"false alarms a year: {family}"] = rates[family]
    metrics["false alarms a table and year, worst family"] = max(rates.values())
    found: dict[tuple[str, str], list[bool]] = {}
    for fault, plant in FAULTS.items():
        days = []
        for table, changes in drawn:
            usable = np.flatnonzero(
                ~np.isnan(table[0]) & ~np.convolve(changes, np.ones(60), "full")[:DAYS].astype(bool)
            )
            day = int(draw.choice(usable[usable > 60]))
            days.append(day)
        planted = []
        for (table, _), day in zip(drawn, days, strict=True):
            planted.append(table.copy())
            plant(planted[-1], day)
        unusual, _ = judged_tables(planted, level)
        for number, day in enumerate(days):
            if families[number] != "near zero" or fault in FOUND_IN_FEW_ROWS:
                found.setdefault((fault, families[number]), []).append(bool(unusual[number, day]))
    for fault in FAULTS:
        results = [hit for (name, _), hits in found.items() if name == fault for hit in hits]
        metrics[f"found: {fault}"] = float(np.mean(results))
    for family in FAMILIES:
        results = [hit for (_, name), hits in found.items() if name == family for hit in hits]
        metrics[f"found in: {family}"] = float(np.mean(results))
    metrics["planted faults found"] = float(np.mean([hit for hits in found.values() for hit in hits]))
    return metrics


def fleet(tables: int, numbers: int, days: int, seed: int) -> dict[str, float]:
    """Return the cost of judging every day of a fleet, as a ratio to sorting its numbers by series."""
    draw = np.random.default_rng(seed)
    values = 1e5 * np.exp(0.05 * draw.standard_normal((tables * numbers, days)))
    times = (START + np.arange(days)).astype("datetime64[s]")
    began = time.process_time()
    for _ in range(3):
        np.sort(values, axis=1)
    yardstick = (time.process_time() - began) / 3
    began = time.process_time()
    judge(times, values, [Scale.NUMBER] * len(values), 1 / YEAR / numbers)
    spent = time.process_time() - began
    judged = values.size / 1e6
    return {
        "numbers of the fleet, millions": judged,
        "fleet, CPU s": spent,
        "CPU s for 2,000 tables x 20 numbers x 365 days": spent / judged * 14.6,
        "fleet / sorting its numbers": spent / yardstick,
    }


# Numenta Anomaly Benchmark.

# Judged by the hour, with an alarm a month: the series are weeks long, not years.
_NAB_ALARMS = 12.0
_NAB_MIN_HOURS = 24 * 15


def hourly(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return the hours of a series and their means, NaN without a value."""
    sums: dict[np.datetime64, list[float]] = {}
    with path.open() as file:
        for row in csv.DictReader(file):
            sums.setdefault(np.datetime64(row["timestamp"], "h"), []).append(float(row["value"]))
    hours = np.arange(min(sums), max(sums) + 1)
    means = [float(np.mean(sums[hour])) if hour in sums else np.nan for hour in hours]
    return hours.astype("datetime64[s]"), np.array(means)


def z_score(values: np.ndarray, level: float) -> np.ndarray:
    """Unusual: further from the mean of all earlier values than a normal distribution allows."""
    unusual = np.zeros(len(values), bool)
    reach = NormalDist().inv_cdf(1 - level / 2)
    for place in range(_NAB_MIN_HOURS, len(values)):
        past = values[:place][~np.isnan(values[:place])]
        unusual[place] = abs(values[place] - past.mean()) > reach * past.std()
    return unusual


def holt_winters(values: np.ndarray, level: float, season: int = 168) -> np.ndarray:
    """Unusual: an additive Holt-Winters forecast (0.2, 0.01, 0.2) is off by more than a normal error."""
    unusual = np.zeros(len(values), bool)
    reach = NormalDist().inv_cdf(1 - level / 2)
    first = values[:season]
    base, trend = float(np.nanmean(first)), 0.0
    seasons = np.nan_to_num(first - base)
    errors: list[float] = []
    for place in range(season, len(values)):
        if np.isnan(values[place]):
            continue
        error = values[place] - (base + trend + seasons[place % season])
        if place >= _NAB_MIN_HOURS:
            unusual[place] = abs(error) > reach * np.std(errors)
        errors.append(error)
        base, trend = base + trend + 0.2 * error, trend + 0.01 * error
        seasons[place % season] += 0.2 * error
    return unusual


def seasonal_quantiles(values: np.ndarray, _level: float, season: int = 24) -> np.ndarray:
    """Unusual: outside of all earlier values of the same hour, by half of their range."""
    unusual = np.zeros(len(values), bool)
    for place in range(_NAB_MIN_HOURS, len(values)):
        past = values[place % season : place : season]
        low, high = np.nanmin(past), np.nanmax(past)
        margin = (high - low) / 2
        unusual[place] = not low - margin <= values[place] <= high + margin
    return unusual


def by_dq(times: np.ndarray, values: np.ndarray, level: float) -> np.ndarray:
    return judge(times, values[None], [Scale.NUMBER], level).unusual[0]


def nab(folder: Path) -> dict[str, float]:
    """Print detections, delays and false alarms of each series."""
    windows = json.loads((folder / "windows.json").read_text())
    totals: dict[str, list[float]] = {}
    for name in sorted(windows):
        times, values = hourly(folder / name)
        level = _NAB_ALARMS / (24 * YEAR)
        spans = [
            tuple(np.datetime64(moment.split(".")[0], "s") for moment in window) for window in windows[name]
        ]
        methods = {
            "dq": by_dq(times, values, level),
            "z-score": z_score(values, level),
            "Holt-Winters": holt_winters(values, level),
            "seasonal quantiles": seasonal_quantiles(values, level),
        }
        judged = len(times) - _NAB_MIN_HOURS
        print(f"{name}: {len(spans)} windows, {max(judged, 0) / 24:.0f} days judged")
        for method, unusual in methods.items():
            inside = np.zeros(len(times), bool)
            delays = []
            for begin, end in spans:
                within = (times >= begin) & (times <= end)
                inside |= within
                hits = times[within & unusual]
                if len(hits):
                    delays.append(float((hits[0] - begin) / np.timedelta64(1, "h")))
            alarms = int((episodes(unusual) & ~inside).sum())
            delay = f", delays in h {', '.join(f'{delay:.0f}' for delay in delays)}" if delays else ""
            print(f"  {method:<20}{len(delays)} found, {alarms} false alarms{delay}")
            total = totals.setdefault(method, [0.0, 0.0, 0.0])
            total[0] += len(delays)
            total[1] += len(spans)
            total[2] += alarms
    return {
        f"NAB, {method}: {name}": number
        for method, (found, planted, alarms) in totals.items()
        for name, number in (("share found", found / planted), ("false alarms", alarms))
    }


def main() -> int:
    args = arguments(
        __doc__ or "",
        seed="seed of the histories (default: 1)",
        nab={"type": Path, "help": "folder with series of the Numenta Anomaly Benchmark and windows.json"},
    )
    seed = args.seed or 1
    metrics = simulate(QUICK_HISTORIES if args.quick else HISTORIES, seed)
    metrics |= fleet(200 if args.quick else 2_000, 20, 365, seed)
    if args.nab:
        metrics |= nab(args.nab)
    else:
        print("Numenta Anomaly Benchmark: skipped; pass its folder with --nab")
    goals = {
        "planted faults found": (">", 0.9),
        "false alarms a table and year, worst family": ("<", 1.0),
        "fleet / sorting its numbers": ("<", 150.0),
    }
    return finish(metrics, goals, args)


if __name__ == "__main__":
    sys.exit(main())
