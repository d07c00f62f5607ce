"""dq incidents"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import typer

from dq.alerts import incident_store, silences
from dq.alerts.incident import Incident
from dq.alerts.incident_store import PastStep, rewound, standing_at, steps_until
from dq.alerts.silences import AlertSilence
from dq.cli.commands.silence import as_dict as silence_as_dict
from dq.cli.context import here
from dq.cli.terminal import output
from dq.contracts.shared.units import iso
from dq.operations.alerting import send
from dq.operations.alerting.send import short

_MOST = 200


def command(
    incident: str = typer.Argument(None, help="One incident by the beginning of its id: all that is known."),
    all_: bool = typer.Option(False, "--all", help=f"The ended ones too: the newest {_MOST}."),
    contract: str = typer.Option(None, "--contract", help="Only of this contract, or contract/object."),
    as_of: str = output.AS_OF,
    format: output.PageFormat = output.PAGE_FORMAT,
) -> None:
    """Show the incidents that are open, what is silenced, and the whole history of one.

    Exit codes: 0 shown, 2 there is no such incident.

    Example: dq incidents 3f2a91c0
    """
    world = here(as_of)
    now, at = world.now(), world.as_of
    with world.store().read() as tx:
        if incident is not None:
            found = rewound(tx, send.named(tx, incident), at)
            if len(found) == 1:
                steps = steps_until(incident_store.history(tx, found[0].id), at)
                _show_one(found[0], steps, now, format)
                return
        else:
            newest = rewound(tx, incident_store.newest_of_all(tx, _MOST, contract), at) if all_ else []
            found = newest if all_ else standing_at(tx, at)
        holding = silences.active(tx, now)
    found = [one for one in found if contract is None or send.is_of(one, contract)]
    if format is output.PageFormat.JSON:
        output.as_json(
            {
                "incidents": [_as_dict(one, now) for one in found],
                "silences": [silence_as_dict(one) for one in holding],
            }
        )
    elif format is output.PageFormat.MARKDOWN:
        output.block(_as_markdown(found, holding, now))
    else:
        _show(found, holding, now)


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
    return (short(one), _state(one, now), one.severity, _instant(one.opened_at), str(one.key), what)


def _state(one: Incident, now: datetime) -> str:
    hushed = one.silenced_until is not None and one.silenced_until > now
    return ", ".join(send.flags(one, hushed))


def _show_one(one: Incident, steps: Sequence[PastStep], now: datetime, form: output.PageFormat) -> None:
    if form is output.PageFormat.JSON:
        history = [_step(step) for step in steps]
        output.as_json({**_as_dict(one, now), "history": history})
        return
    facts = [
        ("id", one.id),
        ("promise", str(one.key)),
        ("state", _state(one, now)),
        ("severity", str(one.severity)),
        ("since", _instant(one.opened_at)),
        *([("until", _instant(one.resolved_at))] if one.resolved_at else []),
        *([("on it", f"{one.acked_by}, since {_instant(one.acked_at)}")] if one.acked_at else []),
        *([("silenced", silences.said(one))] if one.silenced_until else []),
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


def _step(step: PastStep) -> dict[str, object]:
    return {
        "at": step.at.isoformat(),
        "kind": step.kind,
        "revision": step.revision,
        "subject": step.subject,
        "detail": step.detail,
    }


def _as_dict(one: Incident, now: datetime) -> dict[str, object]:
    hushed = one.silenced_until if one.silenced_until and one.silenced_until > now else None
    return {
        "id": one.id,
        "contract": one.key.contract,
        "object": one.key.object,
        "group": one.key.group,
        "state": one.state,
        "severity": one.severity,
        "title": one.title,
        "opened_at": one.opened_at.isoformat(),
        "resolved_at": iso(one.resolved_at),
        "acked_at": iso(one.acked_at),
        "acked_by": one.acked_by,
        "silenced_until": iso(hushed),
        "silenced_why": one.silenced_why if hushed else None,
        "root": one.root_id,
        "holds_up": list(one.holds_up),
        "flapping_since": iso(one.flapping_since),
        "breaches": one.breaches,
        "open": list(one.open_subjects),
    }


def _instant(at: datetime | None) -> str:
    return f"{at:%Y-%m-%d %H:%M}Z" if at else ""
