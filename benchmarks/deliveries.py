"""Delivery terms proposed from simulated histories of arrivals whose truth is known: are they right?

A history is what a job left behind: its start times on the clock of some zone, what it takes (eight families
of distributions), slow Mondays, outliers, deliveries that never came, outages, holidays, a schedule that was
moved, a job that gets slower. The generator knows nothing of the search. Terms are right if their zone and
each of their due times of the next year are right, and if the share of would-be misses is that of the
objective within a point: at most, and at least, unless a grace one step shorter would exceed it. Without a
pattern, a proposal of any terms is wrong.
"""

from __future__ import annotations

import random
import sys
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from fractions import Fraction
from zoneinfo import ZoneInfo

import holidays
from _report import arguments, finish

from dq.dataquality.delivery.pattern import Arrival, DeliveryPattern, find_pattern

SEED = 20_260_301
ZONES = (
    "UTC",
    "America/New_York",
    "Europe/Berlin",
    "Asia/Kolkata",
    "America/Los_Angeles",
    "Australia/Sydney",
)
COUNTRIES = ("DE", "US", "FR", "GB")
OBJECTIVE = Fraction(95, 100)
DAY = timedelta(days=1)
Days = Callable[[date], bool]


def last_of_month(day: date) -> bool:
    return (day + DAY).month != day.month


def last_workday(day: date) -> bool:
    following = [day + DAY * n for n in range(1, 4)]
    return day.weekday() < 5 and not any(
        other.month == day.month and other.weekday() < 5 for other in following
    )


@dataclass
class Job:
    """The truth: when a job starts, what it takes in minutes, and what went wrong."""

    zone: str
    days: Days
    starts: list[int]
    takes: Callable[[random.Random], float]
    first: date
    length: int
    stamped: str = ""
    lag: int = 0
    weekend_on_monday: bool = False
    slow_weekday: int | None = None
    slow_by: float = 0.0
    outlier: float = 0.0
    absent: float = 0.0
    outages: list[tuple[date, int]] = field(default_factory=list)
    country: str = ""
    moved_at: date | None = None
    moved_by: int = 0
    slower_by: float = 0.0
    kind: str = ""
    sample: list[float] = field(default_factory=list)

    def holidays(self) -> set[date]:
        if not self.country:
            return set()
        years = range(self.first.year - 1, self.first.year + 4)
        return set(holidays.country_holidays(self.country, years=years))

    def runs(self, first: date, length: int) -> list[datetime]:
        """The starts of the job, as instants."""
        free, zone = self.holidays(), ZoneInfo(self.zone)
        starts = []
        for number in range(length):
            day = first + DAY * number
            if not self.days(day) or day in free:
                continue
            for minutes in self.starts:
                at = minutes + (self.moved_by if self.moved_at and day >= self.moved_at else 0)
                civil = datetime.combine(day, time(0)) + timedelta(minutes=at)
                starts.append(civil.replace(tzinfo=zone).astimezone(UTC))
        return starts

    def taken(self, run: datetime, draw: random.Random, progress: float = 0.0) -> float:
        local = run.astimezone(ZoneInfo(self.zone))
        minutes = self.takes(draw) + self.slower_by * progress
        if self.slow_weekday == local.weekday():
            minutes += self.slow_by
        if draw.random() < self.outlier:
            minutes += draw.uniform(120, 600)
        return minutes

    def is_out(self, day: date) -> bool:
        return any(begin <= day < begin + DAY * length for begin, length in self.outages)

    def history(self, draw: random.Random) -> list[tuple[datetime, datetime | None]]:
        """Each start with its arrival, None if it never came; without the outages."""
        runs = self.runs(self.first, self.length)
        zone = ZoneInfo(self.zone)
        result: list[tuple[datetime, datetime | None]] = []
        for number, run in enumerate(runs):
            if self.is_out(run.astimezone(zone).date()):
                continue
            came = draw.random() >= self.absent
            minutes = self.taken(run, draw, number / len(runs))
            result.append((run, run + timedelta(minutes=minutes) if came else None))
        return result

    def earliest(self, run: datetime) -> tuple[float, float]:
        """Bounds of the earliest usual arrival in minutes after a start: of any day, and of this one."""
        if not self.sample:
            draw = random.Random(5)
            self.sample = sorted(self.takes(draw) for _ in range(400))
        minutes = self.sample
        slow = self.slow_by if self.slow_weekday == run.astimezone(ZoneInfo(self.zone)).weekday() else 0.0
        return minutes[8], minutes[40] + slow + self.slower_by


def takes(draw: random.Random) -> Callable[[random.Random], float]:
    """A distribution of what a job takes, in minutes."""
    base, scale = draw.uniform(1, 60), draw.choice([1.5, 3, 6, 12, 25, 40])
    families: list[Callable[[random.Random], float]] = [
        lambda d: base + abs(d.gauss(0, scale)),
        lambda d: base + max(-base, d.gauss(0, scale)),
        lambda d: base + d.expovariate(1 / scale),
        lambda d: base + d.lognormvariate(0, 0.7) * scale,
        lambda d: base + d.gammavariate(2, scale / 2),
        lambda d: base + d.uniform(0, 3 * scale),
        lambda d: base + scale * 0.5 * (d.paretovariate(2.5) - 1),
        lambda d: base + abs(d.gauss(0, scale)) + (3 * scale + 20 if d.random() < 0.3 else 0),
    ]
    return draw.choice(families)


def patterned(draw: random.Random) -> Job:
    """A job with a pattern."""
    zone = draw.choice(ZONES)
    kind = draw.choices(
        [
            "daily",
            "weekdays",
            "tue-sat",
            "some days",
            "weekly",
            "monthly",
            "month end",
            "runs",
            "hourly",
            "frequent",
        ],
        [24, 18, 6, 6, 8, 5, 6, 12, 4, 3],
    )[0]
    length = draw.choice([120, 180, 270, 365, 500])
    weekdays = set(draw.sample(range(7), draw.choice([2, 3, 4])))
    weekly, monthly = draw.randrange(7), draw.randint(1, 25)
    nth = draw.randint(1, 4)
    choices: dict[str, Days] = {
        "daily": lambda _: True,
        "weekdays": lambda day: day.weekday() < 5,
        "tue-sat": lambda day: day.weekday() in (1, 2, 3, 4, 5),
        "some days": lambda day: day.weekday() in weekdays,
        "weekly": lambda day: day.weekday() == weekly,
        "monthly": draw.choice(
            [
                lambda day: day.day == monthly,
                lambda day: day.day in (1, 15),
                lambda day: day.weekday() == weekly and (day.day + 6) // 7 == nth,
            ]
        ),
        "month end": draw.choice([last_of_month, last_workday, lambda day: day.day == 1]),
    }
    days = choices.get(kind, choices[draw.choice(["daily", "weekdays"])])
    starts = [draw.choice([0, 15, 30, 45, 5, 10, 20]) + 60 * draw.randrange(24)]
    job = Job(
        zone, days, starts, takes(draw), date(2024, 1, 1) + DAY * draw.randrange(700), length, kind=kind
    )
    if kind in ("monthly", "month end"):
        per_year = sum(days(date(2025, 1, 1) + DAY * number) for number in range(365))
        job.stamped = draw.choice(["", "month"]) if per_year == 12 else ""
        job.lag = draw.choice([0, 1])
        job.length = draw.choice([400, 550, 730])
    if kind == "weekly":
        job.length = draw.choice([180, 365, 500])
    if kind == "runs":
        count = draw.choice([2, 2, 3, 4, 6])
        first, gap = draw.randrange(0, 1440 // count), 1440 // count
        minute = draw.choice([0, 15, 30])
        exact = draw.random() < 0.6
        job.starts = sorted(
            ((first + gap * n) // 60 * 60 + (minute if exact else draw.choice([0, 15, 30]))) % 1440
            for n in range(count)
        )
        scale = draw.choice([2, 5, 10])
        job.takes = lambda d: 3 + d.gammavariate(2, scale)
    if kind == "hourly":
        minute, scale = draw.choice([0, 5, 20, 30]), draw.choice([1, 2, 4])
        job.starts, job.length = [60 * hour + minute for hour in range(24)], draw.choice([20, 40, 60])
        job.takes = lambda d: 2 + d.gammavariate(2, scale)
        job.stamped, job.lag = draw.choice(["", "hour"]), draw.choice([0, 1, 3])
        job.days, job.zone = choices["daily"], "UTC"
    if kind == "frequent":
        every = draw.choice([15, 20, 30])
        job.starts, job.length = list(range(0, 1440, every)), draw.choice([15, 25])
        job.takes = lambda d: 1 + d.gammavariate(2, 0.7)
        job.days, job.zone = choices["daily"], "UTC"
    if kind in ("daily", "weekdays", "tue-sat", "some days", "runs"):
        job.outlier = draw.choice([0, 0, 0.005, 0.01, 0.02])
        job.absent = draw.choice([0, 0, 0.005, 0.01, 0.03])
        for _ in range(draw.choice([0, 0, 0, 1, 2])):
            job.outages.append((job.first + DAY * draw.randrange(20, job.length - 30), draw.randint(8, 25)))
    if kind in ("daily", "weekdays", "tue-sat") and len(job.starts) == 1:
        job.stamped = draw.choice(["", "day"])
        job.lag = draw.choice([0, 1, 1, 2]) if job.stamped else 0
        special = draw.choices(["", "slow", "moved", "slower"], [6, 1, 1, 1])[0]
        if special == "slow":
            job.slow_weekday, job.slow_by = draw.choice([1, 2, 3]), draw.uniform(60, 240)
        if special == "moved" and job.length >= 180:
            job.moved_at = job.first + DAY * draw.randint(60, job.length - 60)
            job.moved_by = draw.choice([-180, -90, 60, 120, 240])
            job.starts = [max(200, min(1100, job.starts[0]))]
        if special == "slower":
            job.slower_by = draw.uniform(30, 90)
        job.kind += f" {special}".rstrip()
    if kind == "weekdays" and job.stamped and draw.random() < 0.25:
        job.weekend_on_monday, job.lag = True, 1
        job.kind += " with weekends"
    elif kind == "weekdays" and draw.random() < 0.4:
        job.country, job.length = draw.choice(COUNTRIES), draw.choice([365, 500])
        job.kind += " holidays"
    return job


def without_pattern(draw: random.Random) -> tuple[str, list[Arrival]]:
    """Arrivals that keep to no cron."""
    kind = draw.choice(
        ["poisson", "any time of the day", "every 25 hours", "random days", "fortnightly", "walk", "sparse"]
    )
    start = datetime(2025, 1, 1, tzinfo=UTC) + timedelta(minutes=draw.randrange(500_000))
    count = draw.choice([40, 90, 180, 365])
    at = start
    arrivals = []
    if kind == "poisson":
        mean = draw.choice([3, 8, 24, 60])
        for _ in range(count):
            at += timedelta(hours=draw.expovariate(1 / mean))
            arrivals.append(Arrival(at))
    elif kind == "any time of the day":
        for number in range(count):
            day = datetime(start.year, start.month, start.day, tzinfo=UTC) + DAY * number
            stamp = (day - DAY).replace(tzinfo=None)
            arrivals.append(Arrival(day + timedelta(minutes=draw.uniform(0, 1440)), stamp))
    elif kind == "every 25 hours":
        every = draw.choice([10.7, 23.2, 25, 31, 50.3])
        for number in range(count):
            arrivals.append(Arrival(start + timedelta(hours=every * number, minutes=draw.uniform(0, 20))))
    elif kind == "random days":
        for number in range(count):
            if draw.random() < 0.4:
                arrivals.append(Arrival(start + DAY * number + timedelta(minutes=draw.gauss(0, 10))))
    elif kind == "fortnightly":
        for number in range(0, count * 2, 14):
            arrivals.append(Arrival(start + DAY * number + timedelta(minutes=draw.gauss(0, 10))))
    elif kind == "walk":
        minute = 0.0
        for number in range(count):
            minute += draw.gauss(0, 150)
            arrivals.append(Arrival(start + DAY * number + timedelta(minutes=minute)))
    else:
        for _ in range(draw.randint(8, 30)):
            arrivals.append(Arrival(start + timedelta(minutes=draw.uniform(0, 500_000))))
    return kind, arrivals


def arrivals_of(job: Job, history: Sequence[tuple[datetime, datetime | None]]) -> list[Arrival]:
    zone = ZoneInfo(job.zone)
    result = []
    for run, at in history:
        if at is not None:
            civil = run.astimezone(zone).replace(tzinfo=None)
            result += [Arrival(at, stamp) for stamp in stamps(job, civil)]
    return result


def stamps(job: Job, civil: datetime) -> list[datetime | None]:
    """The date that the partitions of a run are named after."""
    day = civil.replace(hour=0, minute=0)
    if job.stamped == "month":
        month = civil.year * 12 + civil.month - 1 - job.lag
        return [datetime.combine(date(month // 12, month % 12 + 1, 1), time(0))]
    if job.stamped == "hour":
        return [civil.replace(minute=0) - timedelta(hours=job.lag)]
    if job.stamped == "day":
        lags = (1, 2, 3) if job.weekend_on_monday and day.weekday() == 0 else (job.lag,)
        return [day - DAY * lag for lag in lags]
    return [None]


def problem_of(job: Job, history: list[tuple[datetime, datetime | None]], pattern: DeliveryPattern) -> str:
    """The error of a proposal, or ""."""
    if not pattern.deliveries:
        return f"no terms: {pattern.reason}"
    first, last = history[0][0], history[-1][0]
    found_zone = pattern.deliveries[0].schedule.timezone
    if not have_same_clock(job.zone, found_zone, first, (last - first).days):
        return f"zone {found_zone}"
    # Due times of the next year, or of the history if it does not show the zone.
    is_right = have_same_clock(job.zone, found_zone, first, job.length + 365)
    begin, length = (last.date() + DAY * 2, 365) if is_right else (first.date(), job.length)
    if job.moved_at and begin < job.moved_at:
        begin, length = job.moved_at + DAY * 3, (last.date() - job.moved_at).days
    if len(job.starts) > 12:
        length = 40
    problem = due_problem(job, job.runs(begin, length), pattern)
    return problem or miss_problem(job, history, pattern)


def have_same_clock(zone: str, other_zone: str, first: datetime, days: int) -> bool:
    """Return True if two zones differ on a few days only, so that no history can tell them apart."""
    offsets = Counter(
        (first + DAY * number).astimezone(ZoneInfo(zone)).utcoffset()
        - (first + DAY * number).astimezone(ZoneInfo(other_zone)).utcoffset()
        for number in range(days)
    )
    return max(offsets.values()) >= 0.97 * days


def due_problem(job: Job, runs: list[datetime], pattern: DeliveryPattern) -> str:
    usual = {weekday: job.earliest(runs[0] + DAY * weekday) for weekday in range(7)}
    start, end = runs[0] - DAY, runs[-1] + DAY
    dues = sorted(
        due.at for delivery in pattern.deliveries for due in delivery.schedule.between(start - DAY, end + DAY)
    )
    wrong, used = 0, set[datetime]()
    zone = ZoneInfo(job.zone)
    for run in runs:
        low, high = usual[(run.astimezone(zone).weekday() - runs[0].astimezone(zone).weekday()) % 7]
        # One cron has one minute for all hours: of several runs, some are due up to an hour before they end.
        slack = 40 if len({start % 60 for start in job.starts}) == 1 else 70
        lower, upper = run + timedelta(minutes=low - slack), run + timedelta(minutes=high + 15)
        near = dues[bisect_left(dues, lower) : bisect_right(dues, upper)]
        match = next((due for due in near if due not in used), None)
        if match is None:
            wrong += 1
        else:
            used.add(match)
    extra = sum(runs[0] - timedelta(hours=1) <= due <= runs[-1] and due not in used for due in dues)
    if wrong > 0.02 * len(runs) or extra > 0.02 * len(runs):
        crons = [
            (delivery.schedule.expression, delivery.schedule.timezone) for delivery in pattern.deliveries
        ]
        return f"due: {wrong} of {len(runs)} starts without, {extra} too many: {crons}"
    return ""


def misses_of(
    job: Job, history: Sequence[tuple[datetime, datetime | None]], pattern: DeliveryPattern, shorter: bool
) -> tuple[int, int]:
    """Would-be misses and deliveries, by the due times nearest to the starts."""
    spans = []
    for delivery in pattern.deliveries:
        minutes = delivery.grace.total_seconds() / 60
        step = 5 if minutes <= 60 else 15 if minutes <= 240 else 30 if minutes <= 720 else 60
        grace = delivery.grace - (timedelta(minutes=step) if shorter else timedelta(0))
        begin, end = history[0][0] - 2 * DAY, history[-1][0] + 2 * DAY
        spans += [(due.at, due.at + grace) for due in delivery.schedule.between(begin, end)]
    spans.sort()
    dues, misses = [due for due, _ in spans], 0
    for run, at in history:
        low, _ = job.earliest(run)
        middle = run + timedelta(minutes=low)
        after = bisect_left(dues, middle)
        near = spans[max(0, after - 1) : after + 1]
        _, breach = min(near, key=lambda span: abs(span[0] - middle))
        misses += at is None or at > breach
    return misses, len(history)


def miss_problem(job: Job, history: list[tuple[datetime, datetime | None]], pattern: DeliveryPattern) -> str:
    counted = history
    if job.moved_at:
        counted = [pair for pair in history if pair[0].date() > job.moved_at + DAY]
    if job.slower_by:
        counted = history[-len(history) // 3 :]
    objective = float(pattern.deliveries[0].objective)
    absent = sum(at is None for _, at in counted) / len(counted)
    if objective < float(OBJECTIVE) and absent <= 0.05:
        return f"objective {objective:.0%} although {1 - absent:.1%} came"
    misses, count = misses_of(job, counted, pattern, shorter=False)
    budget = 1 - objective
    if misses / count > budget + 0.01:
        return f"misses {misses / count:.1%} of {count}"
    if misses / count < budget - 0.01:
        fewer, _ = misses_of(job, counted, pattern, shorter=True)
        if fewer <= int(budget * count + 1e-9):
            graces = [delivery.grace for delivery in pattern.deliveries]
            return f"too loose: {misses} of {count} missed, {fewer} with a step less than {graces}"
    return ""


def fresh_misses(job: Job, draw: random.Random, pattern: DeliveryPattern, last: date) -> float:
    """Share of late deliveries among those of the next year, without outages and absences."""
    runs = job.runs(last + DAY * 2, 365)
    fresh = [(run, run + timedelta(minutes=job.taken(run, draw, 1.0))) for run in runs]
    misses, count = misses_of(job, fresh[:2000], pattern, shorter=False)
    return misses / count


def main() -> int:
    args = arguments(__doc__, histories="number of histories", seed="the seed of the first one")
    count = args.histories or (120 if args.quick else 300)
    seed = args.seed or SEED
    nothing = max(1, count // 5)
    problems, fresh = list[str](), list[float]()
    print(f"seeds {seed} to {seed + count - 1}")
    for number in range(count - nothing):
        draw = random.Random(seed + number)
        job = patterned(draw)
        history = job.history(draw)
        named = {job.zone, draw.choice([zone for zone in ZONES if zone != job.zone])} - {"UTC"}
        zones = ["UTC", *draw.sample(sorted(named), len(named))]
        countries = sorted({job.country, draw.choice(COUNTRIES)} - {""})
        pattern = find_pattern(
            arrivals_of(job, history), zones, OBJECTIVE, holidays=countries, unit=job.stamped or "day"
        )
        problem = problem_of(job, history, pattern)
        if problem:
            problems.append(problem)
            print(f"{seed + number} {job.kind}, {job.zone}, {job.stamped}: {problem}")
        if pattern.deliveries and not job.slower_by:
            fresh.append(fresh_misses(job, draw, pattern, history[-1][0].date()))
    promised = 0
    for number in range(count - nothing, count):
        kind, arrivals = without_pattern(random.Random(seed + number))
        pattern = find_pattern(arrivals, ["UTC", "America/New_York", "Europe/Berlin"], OBJECTIVE)
        if pattern.deliveries:
            promised += 1
            terms = [(delivery.schedule.expression, str(delivery.grace)) for delivery in pattern.deliveries]
            print(f"{seed + number} {kind}: {terms}")
    metrics = {
        "histories": float(count),
        "share right": 1 - len(problems) / (count - nothing),
        "share without terms where there is no pattern": 1 - promised / nothing,
        "share of late deliveries in the next year": sum(fresh) / len(fresh),
        "share with at most 10 % late in the next year": sum(share <= 0.10 for share in fresh) / len(fresh),
    }
    goals = {
        "share right": (">", 0.8999),
        "share without terms where there is no pattern": (">", 0.9499),
    }
    return finish(metrics, goals, args)


if __name__ == "__main__":
    sys.exit(main())
