"""dq incidents"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import typer

from dq.alerts import suppression
from dq.alerts.incident import SHORT_ID, Incident, is_notice, key_label, notice_lines, notice_terms
from dq.alerts.incident_store import PastStep
from dq.alerts.suppression import AlertSilence
from dq.cli import output
from dq.cli.context import instant_or_none
from dq.operations.incidents import NEWEST, incidents


def command(
    incident: str = typer.Argument(None, help="Incident id or its beginning; or a contract, file or folder."),
    all_: bool = typer.Option(False, "--all", help=f"Include resolved incidents: the newest {NEWEST}."),
    contract: str = typer.Option(None, "--contract", help="Only this contract, or contract/object."),
    as_of: str = output.AS_OF,
    format: output.PageFormat = output.PAGE_FORMAT,
) -> None:
    """List open incidents and active silences, or show the history of one incident.

    Exit codes: 0 listed, 2 no such incident.

    Example: dq incidents 3f2a91c0
    """
    outcome = incidents(incident, ended=all_, contract=contract, now=instant_or_none(as_of))
    if format is output.PageFormat.JSON:
        output.as_json(outcome.as_dict())
    elif outcome.history is not None:
        _show_incident(outcome.incidents[0], outcome.history, outcome.at, format)
    elif format is output.PageFormat.MARKDOWN:
        output.block(_as_markdown(outcome.incidents, outcome.silences, outcome.at))
    else:
        _show(outcome.incidents, outcome.silences, outcome.at)


def _show(open_incidents: Sequence[Incident], silences: Sequence[AlertSilence], now: datetime) -> None:
    if open_incidents:
        output.table(_HEADER, (_cells(incident, now) for incident in open_incidents))
    else:
        output.line("No open incidents.")
    for silence in silences:
        output.line(
            f"Silenced until {silence.until:%Y-%m-%d %H:%M}Z: {silence.pattern}, by {silence.description}"
        )


_HEADER = ("id", "state", "severity", "since", "promise", "what")


def _cells(incident: Incident, now: datetime) -> tuple[str, ...]:
    count = len(incident.open_subjects)
    title = incident.title
    if is_notice(incident.key):
        title = ", ".join(text for _, text in notice_lines(incident)[:2])
    what = f"{title} ({count} open)" if count > 1 else title
    return (
        incident.short_id,
        _state(incident, now),
        incident.severity,
        _instant(incident.opened_at),
        key_label(incident.key),
        what,
    )


def _state(incident: Incident, now: datetime) -> str:
    """Return the state of an incident with its other conditions, as text."""
    words = [incident.state.replace("_", " ")]
    if incident.silenced_until is not None and incident.silenced_until > now:
        words.append("silenced")
    if incident.root_id and not incident.state.is_closed:
        words.append(f"inhibited by {incident.root_id[:SHORT_ID]}")
    if incident.inhibits and not incident.state.is_closed:
        words.append(f"inhibits {len(incident.inhibits)}")
    if incident.flapping_since:
        words.append("flapping")
    return ", ".join(words)


def _show_incident(
    incident: Incident, steps: Sequence[PastStep], now: datetime, form: output.PageFormat
) -> None:
    facts = [
        ("id", incident.id),
        ("slo" if not is_notice(incident.key) else "key", str(incident.key)),
        *(notice_terms(incident).items() if is_notice(incident.key) else ()),
        ("state", _state(incident, now)),
        ("severity", str(incident.severity)),
        ("since", _instant(incident.opened_at)),
        *([("until", _instant(incident.resolved_at))] if incident.resolved_at else []),
        *(
            [("acked by", f"{incident.acked_by}, since {_instant(incident.acked_at)}")]
            if incident.acked_at
            else []
        ),
        *([("silenced", suppression.silence_text(incident))] if incident.silenced_until else []),
        ("broken", f"{len(incident.subjects)}; open: {', '.join(incident.open_subjects) or 'none'}"),
    ]
    if form is output.PageFormat.MARKDOWN:
        output.block(_incident_as_markdown(incident, facts, steps))
        return
    output.line(output.styled(incident.title, bold=True))
    width = max(len(label) for label, _ in facts)
    for label, value in facts:
        output.line(f"  {label.ljust(width)}  {value}")
    for step in steps:
        output.line(f"  {_instant(step.at)}  {step.kind.ljust(10)}  {step.subject} {step.detail}".rstrip())


def _incident_as_markdown(
    incident: Incident, facts: Sequence[tuple[str, str]], steps: Sequence[PastStep]
) -> str:
    from dq.contracts.escaping import markdown_text
    from dq.validators.reports.markdown import table

    facts_table = table(["", ""], [[label, markdown_text(value)] for label, value in facts])
    history_table = table(
        ["at", "what", "delivery", "details"],
        [
            [_instant(step.at), step.kind, markdown_text(step.subject), markdown_text(step.detail)]
            for step in steps
        ],
    )
    return f"## {markdown_text(incident.title)}\n\n{facts_table}\n\n{history_table}\n"


def _as_markdown(open_incidents: Sequence[Incident], silences: Sequence[AlertSilence], now: datetime) -> str:
    from dq.contracts.escaping import markdown_text
    from dq.validators.reports.markdown import table

    rows = [[markdown_text(cell) for cell in _cells(incident, now)] for incident in open_incidents]
    silence_lines = [
        f"Silenced until {silence.until:%Y-%m-%d %H:%M}Z: "
        f"{markdown_text(f'{silence.pattern}, by {silence.description}')}"
        for silence in silences
    ]
    return (
        "\n\n".join(["## Incidents", table(_HEADER, rows) if rows else "No open incidents.", *silence_lines])
        + "\n"
    )


def _instant(moment: datetime | None) -> str:
    return f"{moment:%Y-%m-%d %H:%M}Z" if moment else ""
