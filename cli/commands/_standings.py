"""How promises stand, as `dq status` shows it: one line or one table for many, and all of it for machines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from fractions import Fraction

from dq.alerts.incident import Incident
from dq.cli.terminal import output
from dq.contracts.slo import Slo
from dq.dataquality.delivery.history.standing import GroupStanding, Standing
from dq.dataquality.delivery.ledger import Kept
from dq.dataquality.delivery.sources.evidence import disagreeing
from dq.dataquality.delivery.wording import span
from dq.dataquality.results import check_runs
from dq.dataquality.results.audits import StagedRun


class StatusFormat(StrEnum):
    """How `dq status` prints."""

    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"


class Grouping(StrEnum):
    """What `dq status` shows one line for."""

    PROMISE = "promise"
    PRODUCT = "product"
    DOMAIN = "domain"
    ALL = "all"


NAMED: dict[Grouping, Callable[[Slo], str]] = {
    Grouping.PRODUCT: lambda slo: slo.contract.data_product or slo.contract.key,
    Grouping.DOMAIN: lambda slo: slo.contract.domain or "(none)",
    Grouping.ALL: lambda _: "all",
}


def percent(share: Fraction | None) -> str:
    """A share as text; never rounded up to a whole that it is not."""
    if share is None:
        return "-"
    return f"{int(share * 1000) / 10:.1f}%"


def more(one: Standing) -> str:
    """What else is known of a promise in one line; the empty text for nothing."""
    said = []
    if one.streak is not None and one.streak.length > 1:
        said.append(f"the last {one.streak.length} {'in time' if one.streak.good else 'missed'}")
    if one.trend is not None:
        points = float(one.trend) * 100
        said.append("as in the window before" if not points else f"{points:+.1f} points on the window before")
    if one.usual is not None:
        said.append(f"usually {span(one.usual)} {'before' if one.usual.total_seconds() < 0 else 'after'} due")
    if one.present is not None:
        said.append(f"there {percent(one.present)} of the time")
    said += [f"burns too fast ({rule})" for rule in one.budget.burning]
    return ", ".join(said)


def describe(groups: Sequence[GroupStanding]) -> None:
    """A line for each group."""
    header = ("", "products", "promises", "in time", "cycles", "budgets exhausted")
    output.table(header, [_cells(one) for one in groups])


def _cells(one: GroupStanding) -> list[str]:
    counted = f"{one.good} of {one.good + one.bad}"
    return [one.name, str(one.products), str(one.promises), percent(one.attainment), counted, str(one.burnt)]


def as_markdown(standings: Iterable[Standing], groups: Sequence[GroupStanding], incidents: int) -> str:
    """The same as a table of Markdown; of groups where there are any."""
    from dq.validators.reports.markdown import escaped, table

    if groups:
        header = ["", "products", "promises", "in time", "cycles", "budgets exhausted"]
        rows = [[escaped(cell) for cell in _cells(one)] for one in groups]
    else:
        header = ["promise", "in time", "promised", "budget", "more"]
        rows = [
            [
                escaped(f"{one.slo.contract.key}/{one.slo.id}"),
                percent(one.budget.attainment),
                escaped(one.slo.delivery.objective),
                escaped(one.budget.line()),
                escaped(more(one)),
            ]
            for one in standings
        ]
    return f"## Deliveries\n\n{table(header, rows)}\n\nOpen incidents: {incidents}\n"


def _known_of(one: Standing) -> dict[str, object]:
    return {
        "streak": {"length": one.streak.length, "good": one.streak.good} if one.streak else None,
        "trend": float(one.trend) if one.trend is not None else None,
        "usual_minutes": one.usual.total_seconds() / 60 if one.usual is not None else None,
        "present": float(one.present) if one.present is not None else None,
        "burning": list(one.budget.burning),
    }


def group_as_dict(one: GroupStanding) -> dict[str, object]:
    """A group for machines."""
    return {
        "name": one.name,
        "products": one.products,
        "promises": one.promises,
        "good": one.good,
        "bad": one.bad,
        "attainment": float(one.attainment) if one.attainment is not None else None,
        "exhausted": one.burnt,
    }


def cycle_as_dict(kept: Kept) -> dict[str, object]:
    """A cycle for machines, with what each source said of it."""
    return {
        "due_at": kept.cycle.due_at.isoformat(),
        "breach_at": kept.cycle.breach_at.isoformat(),
        "status": kept.status,
        "delivered_at": _iso(kept.delivered_at),
        "source": kept.source,
        "first_seen_at": _iso(kept.first_seen_at),
        "arriving_since": _iso(kept.arriving_since),
        "gone_since": _iso(kept.gone_since),
        "delivered_anew_at": _iso(kept.anew_at),
        "evidence": [
            {"source": one.source, "delivered_at": _iso(one.delivered_at), "rows": one.rows}
            for one in kept.claims
        ],
        "disagreeing": [one.source for one in disagreeing(kept.claims, kept.source)],
    }


def audit_as_dict(one: StagedRun) -> dict[str, object]:
    """An audit for machines, with what kept it back."""
    return {
        "contract": one.contract,
        "version": one.version,
        "object": one.object,
        "scope": one.scope,
        "staged": one.staged,
        "verdict": one.verdict,
        "at": one.at.isoformat(),
        "counts": {str(status): number for status, number in one.counts.items()},
        "broken": [{"what": what, "message": message} for what, message in one.broken],
    }


def _iso(instant: datetime | None) -> str | None:
    return instant.isoformat() if instant else None


def as_dict(
    standings: list[Standing],
    quality: Mapping[tuple[str, str], list[check_runs.Line]],
    incidents: list[Incident],
) -> dict[str, object]:
    """Everything for machines."""
    return {
        "deliveries": [
            {
                "contract": one.slo.contract.key,
                "object": one.slo.object.name,
                "slo": one.slo.id,
                "objective": float(one.slo.objective),
                "attainment": float(one.budget.attainment) if one.budget.attainment is not None else None,
                "good": one.budget.good,
                "bad": one.budget.bad,
                "allowed": one.budget.allowed,
                "budget": one.budget.line(),
                **_known_of(one),
                "cycles": [cycle_as_dict(kept) for kept in one.cycles],
            }
            for one in standings
        ],
        "checks": [
            {
                "contract": line.contract,
                "object": line.object,
                "scope": line.scope,
                "check": line.check,
                "property": line.property,
                "clause": line.clause,
                "status": line.status,
                "severity": line.severity,
                "observed": line.observed,
                "allowed": line.allowed,
                "samples": line.samples,
            }
            for lines in quality.values()
            for line in lines
        ],
        "incidents": [
            {
                "id": one.id,
                "key": str(one.key),
                "severity": one.severity,
                "title": one.title,
                "opened_at": one.opened_at.isoformat(),
                "subjects": list(one.open_subjects),
            }
            for one in incidents
        ],
    }
