"""Values of reports over many products: deliveries by day, incidents over time, domains, coverage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from statistics import fmean, median
from typing import Any

from dq.contracts.outcome import format_bytes, pluralize
from dq.dataquality.alarms import NO_ALARMS, AlarmCounts
from dq.dataquality.delivery.early_warning import WarningCounts
from dq.dataquality.results import GROUP
from dq.portal.charts import CountRow, HeatCell, ShareRow, Stack, Svg, counts, heat_strip, shares, stacks
from dq.portal.contracts import domain_page
from dq.portal.daily import DAYS, DayCounts, days_of, total
from dq.portal.formatting import Values, cut, duration, instant
from dq.portal.lists import PER_PAGE, ProductRow, by_domain
from dq.portal.product import ProductState
from dq.portal.product_page import incident_row
from dq.portal.store_queries import IncidentFacts, Watcher
from dq.registry.table_coverage import Coverage, CoverageShortfall, DiscoveryRun

# Deliveries by day as a heat strip.

_MAX_COUNT = 99
# Shares on time from which a day with misses is `some` or `many`.
_FEW_MISSES_SHARE, _MANY_MISSES_SHARE = 0.9, 0.5


@dataclass(frozen=True, slots=True)
class DeliveryHeat:
    """Deliveries on time by day, with a row for each group. It is drawn only for a page that is rendered.

    The last day is `today`, in UTC; `subject` names what a group is.
    """

    groups: Sequence[tuple[str, Sequence[DayCounts]]]
    today: date
    subject: str

    @property
    def chart(self) -> Svg:
        """The heat strip."""
        dates = self._dates()
        rows = [
            (name, [_cell(name, day, counted) for day, counted in zip(dates, days, strict=True)])
            for name, days in self.groups
        ]
        label = (
            f"Deliveries on time in the last {DAYS} days, by {self.subject}: "
            f"{total(self.groups[0][1]).as_text()}. {pluralize(len(self.groups), 'row')}, listed below."
        )
        return heat_strip(rows, [f"{day:%Y-%m-%d}" for day in dates], label)

    @property
    def heads(self) -> list[str]:
        """The heads of the table."""
        return ["Day", *(name for name, _ in self.groups)]

    @property
    def rows(self) -> list[list[str]]:
        """The rows of the table, newest day first."""
        return [
            [f"{day:%Y-%m-%d}", *(days[number].as_text() for _, days in self.groups)]
            for number, day in reversed(list(enumerate(self._dates())))
        ]

    def _dates(self) -> list[date]:
        return [self.today - timedelta(days=ago) for ago in range(DAYS - 1, -1, -1)]


def delivery_heat(
    groups: Sequence[tuple[str, Sequence[DayCounts]]], now: datetime, subject: str
) -> DeliveryHeat | None:
    """Return the deliveries of groups by day, or None without any delivery."""
    if all(total(days) == DayCounts() for _, days in groups):
        return None
    named = [(cut(name, 80), days) for name, days in groups]
    return DeliveryHeat(named, now.astimezone(UTC).date(), subject)


def _cell(name: str, day: date, counted: DayCounts) -> HeatCell:
    title = f"{name}, {day:%Y-%m-%d}: on time {counted.as_text()}"
    if counted.bad:
        share = counted.share or 0.0
        kind = "some" if share >= _FEW_MISSES_SHARE else "many" if share >= _MANY_MISSES_SHARE else "most"
        return HeatCell(kind, str(counted.bad) if counted.bad <= _MAX_COUNT else f"{_MAX_COUNT}+", title)
    if counted.unknown:
        return HeatCell("unknown", "?", title)
    return HeatCell("full" if counted.good else "empty")


# Incidents over time by kind.

_WEEKS = 12
_WEEK = timedelta(days=7)
_MONTH = timedelta(days=30)
_BUDGET_SUFFIX = ":budget"
# Kinds of incidents: label, and class of the bars.
_DELIVERY, _DATA = ("Deliveries", "late"), ("Data checks", "broken")
_BUDGET, _MONITORING = ("Error budgets", "bar"), ("Monitoring", "dim")
_KINDS = (_DELIVERY, _DATA, _BUDGET, _MONITORING)


def _kind(facts: IncidentFacts) -> tuple[str, str]:
    if facts.about_the_platform:
        return _MONITORING
    group = facts.incident.key.group
    return _DATA if group == GROUP else _BUDGET if group.endswith(_BUDGET_SUFFIX) else _DELIVERY


def incidents_over_time(incidents: Sequence[IncidentFacts], now: datetime) -> Values | None:
    """Return a chart of the incidents that opened in the last twelve weeks by kind, or None without any."""
    numbers: dict[tuple[str, str], list[int]] = {kind: [0] * _WEEKS for kind in _KINDS}
    for facts in incidents:
        ago = (now - facts.incident.opened_at) // _WEEK
        if 0 <= ago < _WEEKS:
            numbers[_kind(facts)][_WEEKS - 1 - ago] += 1
    rows = [CountRow(*kind, numbers[kind]) for kind in _KINDS if any(numbers[kind])]
    if not rows:
        return None
    begins = [f"{now.astimezone(UTC) - _WEEK * ago:%Y-%m-%d}" for ago in range(_WEEKS, 0, -1)]
    sums = ", ".join(f"{sum(row.counts):,} {row.label.lower()}" for row in rows)
    return {
        "chart": counts(rows, begins, f"Incidents opened in each of the last {_WEEKS} weeks: {sums}"),
        "heads": ["7 days from", *(row.label for row in rows)],
        "rows": [
            [begins[week], *(f"{row.counts[week]:,}" for row in rows)] for week in reversed(range(_WEEKS))
        ],
    }


def _times(incidents: Sequence[IncidentFacts]) -> list[tuple[str, str, str]]:
    """Return figures of how long it took to acknowledge and to resolve these incidents."""
    listed = [facts.incident for facts in incidents]
    acknowledged = [
        incident.acked_at - incident.opened_at for incident in listed if incident.acked_at is not None
    ]
    resolved = [
        incident.resolved_at - incident.opened_at for incident in listed if incident.resolved_at is not None
    ]
    return [
        ("Time to acknowledge", *_typical(acknowledged, "acknowledged")),
        ("Time to resolve", *_typical(resolved, "resolved")),
    ]


def _typical(lengths: Sequence[timedelta], done: str) -> tuple[str, str]:
    if not lengths:
        return "-", f"no incidents {done}"
    minutes = [length.total_seconds() / 60 for length in lengths]
    mean = f"median of {pluralize(len(minutes), 'incident')}, mean {duration(fmean(minutes))}"
    return duration(median(minutes)), mean


@dataclass(frozen=True, slots=True)
class RecentAlarms:
    """Alarms of unusual numbers in all tables, and those of the last 30 days.

    `accepted` are the false alarms a day that the operator accepts for all tables, 0 without a limit.
    """

    total: AlarmCounts = NO_ALARMS
    recent: AlarmCounts = NO_ALARMS
    accepted: float = 0.0


def incidents_page(
    incidents: Sequence[IncidentFacts], domains: Mapping[str, str], watcher: Watcher, alarms: RecentAlarms
) -> Values:
    """Return the page of all incidents, newest first. `domains` are those of contracts by key."""
    now = watcher.now
    open_ = [facts for facts in incidents if not facts.incident.state.is_closed]
    closed = [facts for facts in incidents if facts.incident.state.is_closed]
    recent, before = (
        sum(begin < now - facts.incident.opened_at <= begin + _MONTH for facts in incidents)
        for begin in (timedelta(-1), _MONTH)
    )
    waiting = sum(facts.incident.acked_at is None for facts in open_)
    by_domain_ = Counter(domains.get(facts.incident.key.contract) or "(none)" for facts in incidents)
    return {
        "as_of": instant(now),
        "figures": [
            ("Open", f"{len(open_):,}", f"{waiting:,} not acknowledged"),
            ("Opened in the last 30 days", f"{recent:,}", f"{before:,} in the 30 days before"),
            *_times(incidents),
            *_alarm_figures(alarms),
        ],
        "over_time": incidents_over_time(incidents, now),
        "domains": [(cut(name, 80), f"{number:,}") for name, number in by_domain_.most_common(_MAX_WORST)],
        "open": [incident_row(facts) for facts in open_[:PER_PAGE]],
        "open_count": len(open_),
        "closed": [incident_row(facts) for facts in closed[: PER_PAGE // 2]],
        "closed_count": len(closed),
    }


def _alarm_figures(alarms: RecentAlarms) -> list[tuple[str, str, str]]:
    """Return how often alarms were real, by people's answers, and how many a day were not.

    Nothing without an alarm and without a limit of the operator.
    """
    figures, total, recent = [], alarms.total, alarms.recent
    if total.total:
        answers = f"{total.real:,} real, {total.not_real:,} not real, {total.unanswered:,} without an answer"
        how_many = pluralize(total.total, "alarm")
        real = (how_many, answers)
        if total.precision is not None:
            real = (f"{total.precision:.0%} real", f"{how_many}: {answers}")
        figures.append(("Alarms of unusual numbers", *real))
    if total.total or alarms.accepted:
        limit = (
            f"at most {alarms.accepted:g} a day accepted" if alarms.accepted else "no limit for all tables"
        )
        days = _MONTH.days
        figures.append(
            (
                "False alarms a day",
                f"{recent.not_real / days:.2g}",
                f"{limit}; last {days} days: {recent.not_real:,} not real, {recent.real:,} real, "
                f"{recent.unanswered:,} without an answer",
            )
        )
    return figures


# Overview: figures with their change since yesterday, and deliveries by day and domain.

_DAY = timedelta(days=1)
_MAX_STRIPS = 10


def today_report(rows: Sequence[ProductRow], incidents: Sequence[IncidentFacts], watcher: Watcher) -> Values:
    """Return the figures and the heat strip of the overview page."""
    now = watcher.now
    days = {
        name or "(none)": days_of((product_row.summary.days for product_row in domain_rows), now)
        for name, domain_rows in by_domain(rows).items()
    }
    every = tuple(total(counts_) for counts_ in zip(*days.values(), strict=True)) or (DayCounts(),) * DAYS
    groups = [("All", every), *_worst(days)]
    month, today, yesterday = total(every), every[-1], every[-2]
    open_, before = (_open_at(incidents, moment) for moment in (now, now - _DAY))
    waiting = sum(facts.incident.acked_at is None for facts in open_)
    return {
        "figures": [
            ("On time today", _day_share(today), f"{today.as_text()}; yesterday {_day_share(yesterday)}"),
            (f"On time, last {DAYS} days", _day_share(month), month.as_text(" deliveries")),
            (
                "Open incidents",
                f"{len(open_):,}",
                f"{len(open_) - len(before):+,} since yesterday; {waiting:,} not acknowledged",
            ),
        ],
        "heat": delivery_heat(groups[: _MAX_STRIPS + 1], now, "domain"),
        "heat_more": max(len(groups) - 1 - _MAX_STRIPS, 0),
    }


def _day_share(counts_: DayCounts) -> str:
    return _share(counts_.good, counts_.good + counts_.bad)


def _open_at(incidents: Sequence[IncidentFacts], moment: datetime) -> list[IncidentFacts]:
    return [
        facts
        for facts in incidents
        if facts.incident.opened_at <= moment
        and (facts.incident.resolved_at is None or facts.incident.resolved_at > moment)
    ]


def _worst(days: Mapping[str, Sequence[DayCounts]]) -> list[tuple[str, Sequence[DayCounts]]]:
    """Return groups that have deliveries, those with the lowest share on time first."""
    sums = {name: total(counts_) for name, counts_ in days.items()}
    names = [name for name, counts_ in sums.items() if counts_ != DayCounts()]

    return [(name, days[name]) for name in sorted(names, key=lambda name: (*_on_time_key(sums[name]), name))]


def _on_time_key(sum_: DayCounts) -> tuple[float, int]:
    """Return the sort key of deliveries, the lowest share on time first, then the most unknown ones."""
    return (1.0 if sum_.share is None else sum_.share, -sum_.unknown)


# The report of a domain: objectives, deliveries by day and product, incidents, coverage.

_MAX_WORST = 12


def domain_report(
    name: str,
    rows: Sequence[ProductRow],
    incidents: Sequence[IncidentFacts],
    watcher: Watcher,
    discoveries: Sequence[DiscoveryRun],
) -> Values:
    """Return the report of a domain. `incidents` are those of its products."""
    summaries = [product_row.summary for product_row in rows]
    good, bad = sum(summary.good for summary in summaries), sum(summary.bad for summary in summaries)
    clauses, enforced = (
        sum(summary.clauses for summary in summaries),
        sum(summary.enforced for summary in summaries),
    )
    counts_ = [summary.warnings for summary in summaries if summary.warnings]
    warnings = [sum(numbers) for numbers in zip(*counts_, strict=True)]
    covered = f"{enforced:,} of {pluralize(clauses, 'clause')} on schema and data"
    exhausted = sum(summary.exhausted for summary in summaries)
    spent = sum(len(summary.spent) for summary in summaries)
    return {
        "title": name or "Products without a domain",
        "as_of": instant(watcher.now),
        "figures": [
            ("On time", _share(good, good + bad), f"{good:,} of {good + bad:,} deliveries in the windows"),
            ("Budgets exhausted", f"{exhausted:,}", f"{spent - exhausted:,} more nearly exhausted"),
            *_times(incidents),
            ("Enforced", _share(enforced, clauses), covered),
            ("Tables with a contract", *_domain_coverage(name, discoveries, watcher.now)),
            *_warning_figure(*warnings),
        ],
        "objectives": _objectives(rows),
        "heat": _domain_heat(rows, watcher.now),
        "over_time": incidents_over_time(incidents, watcher.now),
        "coverage": coverage_over_time(discoveries, name),
    }


def _domain_heat(rows: Sequence[ProductRow], now: datetime) -> DeliveryHeat | None:
    """Return the deliveries of the domain and of its worst products by day."""
    # Most products of a domain have the same days.
    days = {text: days_of([text], now) for text in {product_row.summary.days for product_row in rows}}
    sums = {text: total(counts_) for text, counts_ in days.items()}
    missed = [
        product_row
        for product_row in rows
        if sums[product_row.summary.days].bad or sums[product_row.summary.days].unknown
    ]
    missed.sort(
        key=lambda product_row: (*_on_time_key(sums[product_row.summary.days]), product_row.card.file)
    )
    groups = [(product_row.card.title, days[product_row.summary.days]) for product_row in missed[:_MAX_WORST]]
    every = days_of((product_row.summary.days for product_row in rows), now)
    return delivery_heat(groups if len(rows) == 1 and groups else [("All", every), *groups], now, "product")


def _objectives(rows: Sequence[ProductRow]) -> Values | None:
    """Return the SLOs of the domain that are furthest below their objective, or nearest to it."""
    slos = sorted(
        (good / (good + bad) - objective, _slo_label(product_row, slo), objective, good, good + bad)
        for product_row in rows
        for slo, objective, good, bad in product_row.summary.slos
    )
    if not slos:
        return None
    shown = [
        ShareRow(label, good / counted, objective, f"{_share(good, counted)} of {100 * objective:.4g}%")
        for _, label, objective, good, counted in slos[:_MAX_WORST]
    ]
    met = sum(margin >= 0 for margin, *_ in slos)
    summary = f"{met:,} of {pluralize(len(slos), 'SLO')} met"
    return {
        "summary": summary,
        "chart": shares(shown, f"Deliveries on time against the objective: {summary}; listed below"),
        "rows": [
            [label, f"{100 * objective:.4g}%", _share(good, counted), f"{good:,} of {counted:,}",
             "met" if margin >= 0 else "missed"]
            for margin, label, objective, good, counted in slos[:_MAX_WORST]
        ],
        "more": max(len(slos) - _MAX_WORST, 0),
    }  # fmt: skip


def _slo_label(product_row: ProductRow, slo: str) -> str:
    title = cut(product_row.card.title, 80)
    return title if len(product_row.summary.slos) == 1 else f"{title}: {cut(slo, 40)}"


def coverage_over_time(discoveries: Sequence[DiscoveryRun], name: str | None) -> Values | None:
    """Return the tables of a domain, or of all for None, by contract in each run of `dq discover`.

    None for fewer than two runs with tables: a single one is a figure.
    """
    counted = [
        (
            run.at,
            next((domain for domain in run.domains if domain.name == name), None)
            if name is not None
            else run.total,
        )
        for run in discoveries
    ]
    runs = [(at, coverage) for at, coverage in counted if coverage is not None and coverage.tables]
    if len(runs) < 2:
        return None
    rows = [
        [f"{at:%Y-%m-%d}", f"{coverage.covered:,}", f"{coverage.drafts:,}", f"{coverage.uncovered:,}",
         _share(coverage.covered, coverage.tables)]
        for at, coverage in runs
    ]  # fmt: skip
    columns = [
        Stack(
            (coverage.covered, coverage.drafts, coverage.uncovered),
            row_[0],
            f"{row_[0]}: {row_[1]} with a contract in force, {row_[2]} with a draft, {row_[3]} without",
        )
        for (_, coverage), row_ in zip(runs, rows, strict=True)
    ]
    label = (
        f"Tables by contract in {len(runs)} runs of dq discover: {rows[0][4]} with one in force at first, "
        f"{rows[-1][4]} at last"
    )
    return {"chart": stacks(columns, label), "rows": rows[::-1]}


def _domain_coverage(name: str, discoveries: Sequence[DiscoveryRun], now: datetime) -> tuple[str, str]:
    """Return the share of the domain's tables with a contract in force, and a note on its evidence."""
    if not discoveries:
        return "not known", "dq discover has not run"
    discovery = discoveries[-1]
    as_of = f"as of {instant(discovery.at).text}"
    coverage = next((domain for domain in discovery.domains if domain.name == name), None)
    if coverage is None or discovery.is_stale(now):
        return "not known", f"no tables in the last dq discover, {as_of}" if coverage is None else as_of
    shortfall = next((short for short in discovery.shortfalls if short.coverage.name == name), None)
    goal = f", {_required(shortfall, coverage)} required" if shortfall is not None else ""
    share = _share(coverage.covered, coverage.tables)
    return share, f"{coverage.covered:,} of {pluralize(coverage.tables, 'table')}{goal}, {as_of}"


def coverage_section(discoveries: Sequence[DiscoveryRun], now: datetime) -> Values | None:
    """Return the coverage by domain and the first tables without a contract, or None if it was never counted.

    Counts of a stale run are left out.
    """
    if not discoveries:
        return None
    discovery = discoveries[-1]
    values = {
        "as_of": instant(discovery.at),
        "stale": discovery.is_stale(now),
        "sources": cut(", ".join(discovery.sources), 240),
        "errors": discovery.errors,
    }
    if values["stale"]:
        return values
    shortfalls = {shortfall.coverage.name: shortfall for shortfall in discovery.shortfalls}
    uncovered = discovery.uncovered or ()
    return {
        **values,
        "domains": [
            _coverage_row(coverage, shortfalls) for coverage in discovery.domains[:_MAX_COVERED_DOMAINS]
        ],
        "more": max(len(discovery.domains) - _MAX_COVERED_DOMAINS, 0),
        "total": _coverage_row(discovery.total, {}),
        "over_time": coverage_over_time(discoveries, None),
        "has_reads": any(table.reads is not None for table in uncovered),
        "uncovered": [
            {
                "title": cut(table.title, 240),
                "domain": cut(table.domain, 80),
                "owner": cut(table.owner, 80),
                "bytes": format_bytes(table.bytes),
                "reads": "-" if table.reads is None else f"{table.reads:,}",
            }
            for table in uncovered[:_MAX_UNCOVERED]
        ],
    }


_MAX_COVERED_DOMAINS = 200
_MAX_UNCOVERED = 10


def _coverage_row(coverage: Coverage, shortfalls: Mapping[str, CoverageShortfall]) -> Values:
    shortfall = shortfalls.get(coverage.name)
    return {
        "name": cut(coverage.name, 80) or "(none)",
        "tables": f"{coverage.tables:,}",
        "covered": f"{coverage.covered:,}",
        "drafts": f"{coverage.drafts:,}",
        "uncovered": f"{coverage.uncovered:,}",
        "share": _share(coverage.covered, coverage.tables),
        "required": None if shortfall is None else _required(shortfall, coverage),
    }


def _required(shortfall: CoverageShortfall, coverage: Coverage) -> str:
    """Return the minimum of the policy, which may count only the tables that are read."""
    minimum = f"{float(100 * shortfall.minimum):g}%"
    counted = shortfall.coverage.tables
    return minimum if counted == coverage.tables else f"{minimum} of the {counted:,} that are read"


def _warning_figure(true: int = 0, false: int = 0, missed: int = 0) -> list[tuple[str, str, str]]:
    """Return how right the early warnings of a domain were, or nothing without any."""
    counts = WarningCounts(true, false, missed)
    if not counts.as_text():
        return []
    return [("Early warnings", f"{true} of {true + false} right", counts.as_text())]


def _share(part: int, total: int) -> str:
    """Return a share in percent, rounded down so that a single miss never shows as 100%."""
    return f"{int(1000 * part / total) / 10:.1f}%" if total else "-"


_STATE_RANKS = {state.value: rank for rank, state in enumerate(ProductState)}


def badness(product_row: ProductRow) -> tuple[Any, ...]:
    """Return the sort key of a product, worst first."""
    counted_cycles = product_row.summary.good + product_row.summary.bad
    return (
        _STATE_RANKS[product_row.summary.state],
        -(product_row.summary.bad / counted_cycles if counted_cycles else 0),
        product_row.card.title,
    )


def domain_line(name: str, rows: Sequence[ProductRow]) -> Values:
    """Return the values of a domain in the list of all domains."""
    good, bad = (
        sum(product_row.summary.good for product_row in rows),
        sum(product_row.summary.bad for product_row in rows),
    )
    matters = (ProductState.BROKEN, ProductState.LATE)
    unknown = (ProductState.UNKNOWN, ProductState.UNREADABLE)
    return {
        "name": name or "(none)",
        "page": domain_page(name),
        "products": len(rows),
        "in_time": _share(good, good + bad),
        "bad": sum(product_row.state in matters for product_row in rows),
        "unknown": sum(product_row.state in unknown for product_row in rows),
    }
