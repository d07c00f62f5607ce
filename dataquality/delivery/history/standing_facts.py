"""What is said of a promise's standing: figures in words, and all of it as JSON values.

Commands and pages take it from here, so that they say the same.
"""

from __future__ import annotations

from datetime import datetime
from fractions import Fraction

from dq.dataquality.delivery.cycle import Kept
from dq.dataquality.delivery.history.standing import GroupStanding, Standing
from dq.dataquality.delivery.sources.evidence import disagreeing
from dq.dataquality.delivery.wording import span

JsonObject = dict[str, object]


def percent(share: Fraction | None) -> str:
    """A share as text; never rounded up to a whole that it is not."""
    if share is None:
        return "-"
    return f"{int(share * 1000) / 10:.1f}%"


def beside(one: Standing) -> str:
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


def promise_as_dict(one: Standing) -> JsonObject:
    """A promise for machines, without its cycles."""
    return {
        "contract": one.slo.contract.key,
        "object": one.slo.object.name,
        "slo": one.slo.id,
        "objective": float(one.slo.objective),
        "attainment": float(one.budget.attainment) if one.budget.attainment is not None else None,
        "good": one.budget.good,
        "bad": one.budget.bad,
        "allowed": one.budget.allowed,
        "budget": one.budget.line(),
        "streak": {"length": one.streak.length, "good": one.streak.good} if one.streak else None,
        "trend": float(one.trend) if one.trend is not None else None,
        "usual_minutes": one.usual.total_seconds() / 60 if one.usual is not None else None,
        "present": float(one.present) if one.present is not None else None,
        "burning": list(one.budget.burning),
    }


def group_as_dict(one: GroupStanding) -> JsonObject:
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


def cycle_as_dict(kept: Kept) -> JsonObject:
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


def _iso(instant: datetime | None) -> str | None:
    return instant.isoformat() if instant else None
