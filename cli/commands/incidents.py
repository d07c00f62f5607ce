"""dq incidents"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import typer

from dq.alerts import suppression
from dq.alerts.incident import SHORT_ID, Incident
from dq.alerts.incident_store import PastStep
from dq.alerts.suppression import AlertSilence
from dq.cli import output
from dq.cli.context import at
from dq.operations.incidents import NEWEST, incidents


def command(
    incident: str = typer.Argument(None, help="Show this incident, by its id or the beginning of it."),
    all_: bool = typer.Option(False, "--all", help=f"Include resolved incidents: the newest {NEWEST}."),
    contract: str = typer.Option(None, "--contract", help="Only this contract, or contract/object."),
    as_of: str = output.AS_OF,
    format: output.PageFormat = output.PAGE_FORMAT,
) -> None:
    """List open incidents and active silences, or show the history of one incident.

    Exit codes: 0 listed, 2 no such incident.

    Example: dq incidents 3f2a91c0
    """
    outcome = incidents(incident, ended=all_, contract=contract, now=at(as_of))
    if format is output.PageFormat.JSON:
        output.as_json(outcome.as_dict())
    elif outcome.history is not None:
        _show_one(outcome.incidents[0], outcome.history, outcome.at, format)
    elif format is output.PageFormat.MARKDOWN:
        output.block(_as_markdown(outcome.incidents, outcome.silences, outcome.at))
    else:
        _show(outcome.incidents, outcome.silences, outcome.at)


def _show(found: Sequence[Incident], holding: Sequence[AlertSilence], now: datetime) -> None:
    if found:
        output.table(_HEADER, (_cells(one, now) for one in found))
    else:
        output.line("No incident is open.")
    for one in holding:
        output.line(f"Silenced until {one.until:%Y-%m-%d %H:%M}Z: {one.pattern}, by {one.why}")


_HEADER = ("id", "state", "severity", "since", "promise", "what")


def _cells(one: Incident, now: datetime) -> tuple[str, ...]:
    count = len(one.open_subjects)
    what = f"{one.title} ({count} open)" if count > 1 else one.title
    return (one.short_id, _state(one, now), one.severity, _instant(one.opened_at), str(one.key), what)


def _state(incident: Incident, now: datetime) -> str:
    """The state of an incident and what else holds of it, in words."""
    words = [incident.state.replace("_", " ")]
    if incident.silenced_until is not None and incident.silenced_until > now:
        words.append("silenced")
    if incident.root_id and not incident.state.closed:
        words.append(f"waits for {incident.root_id[:SHORT_ID]}")
    if incident.holds_up and not incident.state.closed:
        words.append(f"holds up {len(incident.holds_up)}")
    if incident.flapping_since:
        words.append("flapping")
    return ", ".join(words)


def _show_one(one: Incident, steps: Sequence[PastStep], now: datetime, form: output.PageFormat) -> None:
    facts = [
        ("id", one.id),
        ("promise", str(one.key)),
        ("state", _state(one, now)),
        ("severity", str(one.severity)),
        ("since", _instant(one.opened_at)),
        *([("until", _instant(one.resolved_at))] if one.resolved_at else []),
        *([("on it", f"{one.acked_by}, since {_instant(one.acked_at)}")] if one.acked_at else []),
        *([("silenced", suppression.said(one))] if one.silenced_until else []),
        ("broken", f"{len(one.subjects)}, of them open: {', '.join(one.open_subjects) or 'none'}"),
    ]
    if form is output.PageFormat.MARKDOWN:
        output.block(_one_as_markdown(one, facts, steps))
        return
    output.line(output.styled(one.title, bold=True))
    for label, value in facts:
        output.line(f"  {label.ljust(8)}  {value}")
    for step in steps:
        output.line(f"  {_instant(step.at)}  {step.kind.ljust(10)}  {step.subject} {step.detail}".rstrip())


def _one_as_markdown(one: Incident, facts: Sequence[tuple[str, str]], steps: Sequence[PastStep]) -> str:
    from dq.contracts.escaping import markdown_text
    from dq.validators.reports.markdown import table

    known = table(["", ""], [[label, markdown_text(value)] for label, value in facts])
    past = table(
        ["at", "what", "delivery", "more"],
        [
            [_instant(step.at), step.kind, markdown_text(step.subject), markdown_text(step.detail)]
            for step in steps
        ],
    )
    return f"## {markdown_text(one.title)}\n\n{known}\n\n{past}\n"


def _as_markdown(found: Sequence[Incident], holding: Sequence[AlertSilence], now: datetime) -> str:
    from dq.contracts.escaping import markdown_text
    from dq.validators.reports.markdown import table

    rows = [[markdown_text(cell) for cell in _cells(one, now)] for one in found]
    silent = [
        f"Silenced until {one.until:%Y-%m-%d %H:%M}Z: {markdown_text(f'{one.pattern}, by {one.why}')}"
        for one in holding
    ]
    return (
        "\n\n".join(["## Incidents", table(_HEADER, rows) if rows else "No incident is open.", *silent])
        + "\n"
    )


def _instant(at: datetime | None) -> str:
    return f"{at:%Y-%m-%d %H:%M}Z" if at else ""
