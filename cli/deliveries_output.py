"""Text output of proposed delivery terms and of their back-tests."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from dq.cli import output
from dq.contracts.outcome import join_limited, pluralize
from dq.contracts.yaml.portable import commented
from dq.dataquality.delivery.compliance import percent
from dq.dataquality.delivery.notify import local_time
from dq.dataquality.delivery.pattern import duration_text, percent_text
from dq.operations.deliveries import Counted, DeliveryBacktest, ObjectDeliveries, PastDelivery

_MAX_MISSES = 10


def describe_proposal(proposal: ObjectDeliveries) -> None:
    """Print on stderr what the arrivals of an object show, and what was not added and why."""
    head = output.styled(f"{proposal.contract}/{commented(proposal.object)}", bold=True)
    past, pattern = proposal.past, proposal.pattern
    source = f" by {past.source}" if past.source else ""
    output.note(f"{head}: {pluralize(len(past.arrivals), 'arrival')}{source}.")
    for delivery in pattern.deliveries:
        schedule = delivery.schedule
        terms = f"{schedule.expression} {schedule.timezone}, grace {duration_text(delivery.grace)}"
        output.note(f"  {terms}, objective {percent_text(delivery.objective)}: {delivery.evidence}.")
    if pattern.reason:
        output.note(f"  No delivery proposed: {pattern.reason}")
    for text in pattern.notes:
        output.note(f"  {text}")
    if past.unreadable:
        count = pluralize(past.unreadable, "partition")
        output.note(f"  {count} without a known arrival: {commented(past.problem)}.")
    if proposal.existing:
        names = join_limited([commented(name) for name in proposal.existing], 3)
        output.note(
            f"  Not added: the contract has the delivery {names}. Test it with 'dq backtest --deliveries'."
        )
    elif pattern.deliveries and not proposal.is_added:
        output.note("  Not added: the file cannot be extended at 'slaProperties'. Add the entry by hand.")


def describe_results(results: Sequence[DeliveryBacktest]) -> None:
    """Print the back-tests: attainment, error budget by month, and the newest misses."""
    if not results:
        output.line("No deliveries in these contracts.")
    for result in results:
        _describe_result(result)


def _describe_result(result: DeliveryBacktest) -> None:
    slo = result.slo
    head = f"{slo.contract.id}/{commented(slo.object.name)} {commented(slo.id)}"
    terms = f"{slo.schedule.expression} {slo.schedule.timezone}, grace {duration_text(slo.grace)}"
    output.line(output.styled(f"{head}: {terms}, objective {percent_text(slo.objective)}", bold=True))
    if result.error is not None:
        # The command prints the error itself.
        return
    counted = result.counted
    if not result.deliveries or counted.attainment is None:
        output.line(f"  {output.mark(None)} no delivery of the past could be evaluated.")
        _describe_rest(counted, result)
        return
    within = counted.bad <= result.allowed(counted)
    total = pluralize(counted.good + counted.bad, "delivery", "deliveries")
    output.line(
        f"  {output.mark(within)} {counted.good} of {total} on time ({percent(counted.attainment)}), "
        f"{pluralize(counted.bad, 'miss', 'misses')}, {result.allowed(counted)} allowed"
        + (f": {counted.late} late, {counted.missing} missing" if counted.bad else "")
    )
    for month, of_month in result.months.items():
        allowed = result.allowed(of_month)
        mark = "" if of_month.bad <= allowed else ", over budget"
        output.line(
            f"      {month}  {of_month.good:>4} on time  {of_month.bad:>3} missed  ({allowed} allowed{mark})"
        )
    for miss in result.misses[-_MAX_MISSES:]:
        output.line(f"      {_miss_text(result, miss)}")
    if len(result.misses) > _MAX_MISSES:
        output.line(f"      and {len(result.misses) - _MAX_MISSES} earlier")
    _describe_rest(counted, result)


def _miss_text(result: DeliveryBacktest, miss: PastDelivery) -> str:
    text = f"due {local_time(result.slo, miss.due_at)}: {miss.status}"
    if miss.delivered_at is None:
        return text
    minutes = (miss.delivered_at - miss.due_at) // timedelta(minutes=1)
    return f"{text}, came {local_time(result.slo, miss.delivered_at)} ({minutes:,} min after due)"


def _describe_rest(counted: Counted, result: DeliveryBacktest) -> None:
    if counted.unknown:
        example = next(past for past in reversed(result.deliveries) if past.status == "unknown")
        output.line(f"  {counted.unknown} unknown, not counted: {commented(example.reason)}")
    if counted.excused:
        output.line(f"  {counted.excused} excused, not counted.")
    if result.skipped:
        count = pluralize(result.skipped, "delivery", "deliveries")
        output.line(f"  {count} due before the first arrival, not counted.")
