"""dq silence"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

import typer
from sqlalchemy import Connection

from dq.alerts import silences
from dq.alerts.incident import Incident
from dq.alerts.silences import AlertSilence, KeyPattern
from dq.cli.context import here
from dq.cli.options import CHANNEL
from dq.cli.shown import alerts
from dq.cli.terminal import output
from dq.contracts.shared.outcome import UsageError
from dq.operations.alerting import send
from dq.operations.alerting import send as sending
from dq.operations.alerting.send import short
from dq.operations.runtime.context import elapsed

_LONGEST = timedelta(days=90)


def command(
    what: str = typer.Argument(
        None, help="Pattern over contract/object/promise, such as 'orders' or 'sales-*/*/daily', or an id."
    ),
    length: str = typer.Option(None, "--for", help="For how long, such as 2h or 3d."),
    reason: str = typer.Option(None, "--reason", help="Why."),
    by: str = typer.Option(None, "--by", help="Who wants it; the user of this machine by default."),
    end: bool = typer.Option(False, "--end", help="End the silences of this pattern, or over this incident."),
    channel: str = CHANNEL,
    as_of: str = output.AS_OF,
    format: output.Format = output.FORMAT,
) -> None:
    """Let nobody be told of new incidents for a while; without arguments, show what is silenced now.

    Everything is judged and kept as ever. What is still open when the silence ends is told then. The end of
    what was told before is told at once. Of '(platform)', where dq tells what it cannot see itself, only a
    pattern that names it is silent.

    Exit codes: 0 done, 2 a mistake, or there is nothing to end, 4 an alert could not be delivered.

    Example: dq silence 'sales-*' --for 2h --reason 'the lake moves' --by ana
    """
    world = here(as_of)
    store, now = world.store(), world.now()
    if what is None:
        if end or length or reason:
            raise UsageError("it is not said what.", "Write a pattern or an id: dq silence orders --for 2h …")
        with store.read() as tx:
            _show(silences.active(tx, now), format)
        return
    who, until = send.person(by), now + _length(length, end)
    why = "" if end else send.words(reason or "", "--reason", "the lake moves")
    with store.write() as tx:
        if end:
            ended = _of(tx, what, now)
            silences.end(tx, [one.id for one in ended], who, now)
        else:
            concerned = silences.begin(tx, _pattern(tx, what), why, who, now, until)
    drained = sending.send(world, store, alerts.painted(output.aside), channel)
    if end:
        _list(ended, format, lambda one: f"No longer silenced: {one.pattern} (by {one.why})")
    else:
        _say_begun(concerned, until, format)
    raise typer.Exit(alerts.report(drained))


def _length(text: str | None, end: bool) -> timedelta:
    if end:
        return timedelta()
    if not text:
        raise UsageError("it is not said for how long.", "Write --for 2h.")
    length = elapsed(text, "--for")
    if not timedelta() < length <= _LONGEST:
        raise UsageError(f"--for {text!r} is no length for a silence.", "Write something up to 90d.")
    return length


def _pattern(tx: Connection, text: str) -> KeyPattern:
    incident = send.by_id(tx, text)
    if incident is not None:
        return KeyPattern.only(incident.key)
    parts = [part.strip() for part in text.split("/")]
    if len(parts) > 3 or not all(parts):
        raise UsageError(
            f"{text!r} is no pattern.", "Write contract, contract/object or contract/object/promise."
        )
    return KeyPattern(*parts)


def _of(tx: Connection, text: str, now: datetime) -> list[AlertSilence]:
    """The silences that hold now and were made with this pattern, or lie over this incident."""
    incident, holding = send.by_id(tx, text), silences.active(tx, now)
    if incident is not None:
        found = [one for one in holding if one.pattern.matches(incident.key)]
    else:
        found = [one for one in holding if one.pattern == _pattern(tx, text)]
    if not found:
        said = ", ".join(repr(str(one.pattern)) for one in holding) or "nothing"
        raise UsageError(f"{text!r} is not silenced.", f"Silenced now: {said}.")
    return found


def _show(holding: Sequence[AlertSilence], form: output.Format) -> None:
    _list(holding, form, lambda one: f"{one.pattern}  until {one.until:%Y-%m-%d %H:%M}Z, by {one.why}")
    if form is output.Format.TEXT and not holding:
        output.line("Nothing is silenced.")


def _say_begun(concerned: Sequence[Incident], until: datetime, form: output.Format) -> None:
    if form is output.Format.JSON:
        output.as_json({"until": until.isoformat(), "incidents": [one.id for one in concerned]})
        return
    output.line(f"Silenced until {until:%Y-%m-%d %H:%M}Z; open incidents that it concerns: {len(concerned)}")
    for one in concerned:
        output.line(f"  {short(one)} {one.key}: {one.title}")


def _list(some: Sequence[AlertSilence], form: output.Format, said: Callable[[AlertSilence], str]) -> None:
    if form is output.Format.JSON:
        output.as_json([as_dict(one) for one in some])
        return
    for one in some:
        output.line(said(one))


def as_dict(one: AlertSilence) -> dict[str, object]:
    """A silence for machines."""
    return {
        "pattern": str(one.pattern),
        "reason": one.reason,
        "by": one.who,
        "at": one.at.isoformat(),
        "until": one.until.isoformat(),
    }
