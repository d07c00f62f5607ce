"""Deliveries of yesterday and today that were not on time, and what is known of their causes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial

from dq.contracts.check_result import Status
from dq.contracts.incident import CycleStatus
from dq.contracts.outcome import pluralize
from dq.contracts.slo import Slo
from dq.dataquality.delivery.cycle import CycleRecord, label
from dq.dataquality.delivery.notify import format_duration, local_time
from dq.portal.contracts import Edge
from dq.portal.daily import day_start, is_miss
from dq.portal.formatting import Values, cut
from dq.portal.product import ProductFacts

INPUT_PERIOD = timedelta(days=10)
"""How long ago inputs may have been due: a weekly input counts for every day since yesterday."""
_MAX_MISSES, _MAX_INPUTS = 6, 5
_DAY = timedelta(days=1)
PageLookup = Callable[[str], str | None]
"""Returns the page of a contract by its key, or None if it is not in the registry."""


def misses(facts: ProductFacts, page_of: PageLookup) -> tuple[list[Values], int]:
    """Return the values of the deliveries since yesterday that were not on time, newest first.

    Also how many were left out. Yesterday is that of the time zone of each SLO.
    """
    recent = [
        (record.cycle.due_at, promise.slo, record)
        for promise in facts.promises
        for today in [day_start(promise.slo, facts.now)]
        for record in promise.cycles
        if is_miss(record) and today - _DAY <= record.cycle.due_at
    ]
    recent.sort(key=lambda entry: entry[0], reverse=True)
    return [_miss(facts, slo, record, page_of) for _, slo, record in recent[:_MAX_MISSES]], max(
        len(recent) - _MAX_MISSES, 0
    )


def _miss(facts: ProductFacts, slo: Slo, record: CycleRecord, page_of: PageLookup) -> Values:
    day = "Today" if record.cycle.due_at >= day_start(slo, facts.now) else "Yesterday"
    partitions = {label(partition) for partition in record.cycle.partitions}
    failed = sum(
        line.status is Status.FAIL and line.scope in partitions
        for object_facts in facts.objects
        if object_facts.object.name == record.cycle.object
        for line in object_facts.quality.lines
    )
    subject = record.cycle.due_at.isoformat()
    incidents = (
        item.incident.id
        for item in facts.incidents
        if subject in item.incident.subjects
        and (item.incident.key.contract, item.incident.key.object, item.incident.key.group) == slo.key
    )
    return {
        "day": day,
        "kind": "unknown" if record.status is CycleStatus.UNKNOWN else "late",
        "text": _text(slo, record),
        "inputs": list(_inputs(facts, slo, record, page_of)),
        "no_late_input": _no_late_input(facts, record),
        "failed": pluralize(failed, "check") if failed else "",
        "incident": next(incidents, ""),
    }


def _text(slo: Slo, record: CycleRecord) -> str:
    """Return what became of a delivery, as a sentence without its end."""
    due = f"the delivery of {cut(slo.id, 80)} due {local_time(slo, record.cycle.due_at)}"
    if record.status is CycleStatus.UNKNOWN:
        return f"it is not known whether {due} arrived: {_reason(record)}"
    if record.delivered_at is None or not record.status.delivered:
        return f"{due} is missing: {_reason(record)}"
    due_at = local_time(slo, record.cycle.due_at)
    arrived = local_time(slo, record.delivered_at)
    # On the same day, its time says enough.
    arrived = arrived[11:] if arrived[:10] == due_at[:10] else arrived
    return f"{due} arrived at {arrived}, {format_duration(record.delivered_at - record.cycle.due_at)} late"


def _reason(record: CycleRecord) -> str:
    return cut(record.reason, 300).rstrip(".") or "no reason was recorded"


def _relevant(facts: ProductFacts, edge: Edge, due_at: datetime) -> Iterator[CycleRecord]:
    """Yield the newest cycle of each SLO of an input that was due by then."""
    newest: dict[str, CycleRecord] = {}
    for record in facts.upstream.get(edge[1:], ()):
        if record.cycle.due_at <= due_at:
            newest[record.cycle.slo] = record
    yield from newest.values()


def _was_late(record: CycleRecord, due_at: datetime) -> bool:
    """Return True if an input was not there when the delivery made from it was due."""
    return is_miss(record) or (record.delivered_at is not None and record.delivered_at > due_at)


def _edges(facts: ProductFacts, record: CycleRecord) -> Sequence[Edge]:
    return [edge for edge in facts.made_from if edge[0] == record.cycle.object]


def _inputs(facts: ProductFacts, slo: Slo, record: CycleRecord, page_of: PageLookup) -> Iterator[Values]:
    """Yield the inputs that were not there when the delivery was due."""
    due_at, shown = record.cycle.due_at, partial(local_time, slo)
    late = [
        (edge, own)
        for edge in _edges(facts, record)
        for own in _relevant(facts, edge, due_at)
        if _was_late(own, due_at)
    ]
    for (_, contract, _), own in late[:_MAX_INPUTS]:
        due = f"due {shown(own.cycle.due_at)}"
        if own.delivered_at is not None and own.status.delivered:
            text = f"arrived at {shown(own.delivered_at)} ({due})"
        elif own.status is CycleStatus.UNKNOWN:
            text = f"is not known to have arrived ({due})"
        else:
            text = f"is missing ({due})"
        yield {"contract": contract, "page": page_of(contract), "text": text}


def _no_late_input(facts: ProductFacts, record: CycleRecord) -> str:
    """Return why no input explains a miss, or "" if one does."""
    edges = _edges(facts, record)
    if not edges:
        return "The contract declares no input."
    watched = [own for edge in edges for own in _relevant(facts, edge, record.cycle.due_at)]
    if not watched:
        return "None of its inputs has a monitored delivery."
    if any(_was_late(own, record.cycle.due_at) for own in watched):
        return ""
    return "Its inputs with a monitored delivery were there in time."
