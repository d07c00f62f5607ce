"""dq test-alert"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast
from uuid import uuid4

import typer

from dq.alerts import channels
from dq.alerts.channel import Ambiguous, Answer, MessagePlace, Rejected, Sent, UpdatingSender
from dq.alerts.incident import step
from dq.alerts.message import Message, render
from dq.alerts.route import CONSOLE, AlertRoute
from dq.cli.context import here
from dq.cli.terminal import output
from dq.contracts.shared.outcome import Breach, DqError, IncidentKey, Recovery, Severity, UsageError
from dq.operations.alerting import routes
from dq.operations.alerting.routes import settings_of
from dq.operations.registry_files import load
from dq.operations.runtime.context import World

TITLE = "This is a test of dq: nothing is broken"


@dataclass(frozen=True, slots=True)
class Tested:
    """One route and what became of its message. `good` is None where nobody knows whether it arrived."""

    channel: str
    target: str
    good: bool | None
    said: str
    mend: str = ""


def command(
    contract: Path = typer.Argument(None, help="A contract or a folder; its routes are tested."),
    channel: str = typer.Option(None, "--channel", help="One route instead, such as slack:#sales-data."),
    format: output.Format = output.FORMAT,
) -> None:
    """Send one message, marked as a test, through each route of a contract, or through one channel.

    Where a channel can change its message, the test is ended at once. No incident is opened, and the store is
    not touched.

    Exit codes: 0 all arrived, 2 there is no such channel, 3 a contract cannot be read, 4 something did not
    arrive.

    Example: dq test-alert orders.odcs.yaml
    """
    if (contract is None) == (channel is None):
        raise UsageError(
            "test-alert needs a contract or a channel.",
            "Write dq test-alert orders.odcs.yaml, or dq test-alert --channel slack:#sales-data.",
        )
    world = here(paths=[contract] if contract else [])
    write = output.aside if format is output.Format.JSON else output.block
    unread = False
    if channel is not None:
        tested = [_test(world, _named(channel), write)]
    else:
        loaded = load([contract], world.note)
        unread = bool(loaded.findings)
        output.notes(loaded.findings)
        refused = routes.refused(loaded.contracts, routes.FROM_CONTRACT, world.settings)
        tested = [Tested("", "", False, f"{one.contract}: {one.message}", one.mend) for one in refused]
        made = (
            route
            for each in loaded.contracts
            for route in routes.routes(each, routes.FROM_CONTRACT, world.settings) or [CONSOLE]
        )
        places = {(route.channel, route.target): route for route in made}
        tested += [_test(world, route, write) for route in places.values()]
    _say(tested, format)
    arrived = all(one.good for one in tested)
    raise typer.Exit(4 if not arrived else 3 if unread else 0)


def _named(channel: str) -> AlertRoute:
    name, _, target = channel.partition(":")
    known = channels.load()
    if name not in known:
        raise UsageError(f"there is no channel {channel!r}.", f"Choose one of {', '.join(known)}.")
    return AlertRoute(name, target)


def _say(tested: list[Tested], format: output.Format) -> None:
    if format is output.Format.JSON:
        output.as_json(
            [
                {"channel": one.channel, "target": one.target, "arrived": one.good, "said": one.said}
                | ({"mend": one.mend} if one.mend else {})
                for one in tested
            ]
        )
        return
    for one in tested:
        place = f"{one.channel} {one.target}".strip()
        output.line(f"  {output.mark(one.good)} {f'{place}: ' if place else ''}{one.said}")
        if one.mend:
            output.line(f"      {one.mend}")


def _test(world: World, route: AlertRoute, write: Callable[[str], object]) -> Tested:
    name, target = route.channel, route.target
    made = channels.load()[name]
    try:
        opened = made.open(settings_of(world, made), write)
    except DqError as error:
        return Tested(name, target, False, error.message, error.mend)
    first, over = _messages(world)
    answer = opened.sender.create(target, first, first.incident)
    if isinstance(answer, Sent) and opened.can.update:
        ended = cast(UpdatingSender, opened.sender).update(answer.receipt, over)
        if not isinstance(ended, Sent):
            return Tested(name, target, False, f"arrived, but could not be ended: {ended.reason}")
    return Tested(name, target, *_outcome(answer))


def _outcome(answer: Answer) -> tuple[bool | None, str, str]:
    if isinstance(answer, Sent):
        note = f"; {answer.note}" if answer.note else ""
        return True, f"arrived ({_receipt(answer.receipt)}){note}", ""
    if isinstance(answer, Ambiguous):
        return None, f"unclear: {answer.reason}", "Look there whether it arrived."
    if isinstance(answer, Rejected):
        return False, f"refused: {answer.reason}", "dq doctor looks at the channel's settings."
    return False, f"not sent: {answer.reason}", "Try again; an alert would be tried again by itself."


def _receipt(place: MessagePlace) -> str:
    return " ".join(part for part in (place.place, place.reference) if part)


def _messages(world: World) -> Iterator[Message]:
    """The test, and its end."""
    now, key = world.now(), IncidentKey("(test)", "(test)", "test")
    # Each test is an incident of its own, which nothing keeps.
    breach = Breach(key, Severity.INFO, str(uuid4()), TITLE, now, (("what to do", "nothing"),))
    opened = step(None, breach, now)
    assert opened is not None
    ended = step(opened.incident, Recovery(key, breach.subject, now), now)
    assert ended is not None
    sent = f"Sent by dq test-alert at {now:%Y-%m-%d %H:%M} UTC."
    yield replace(render(opened.incident, "create"), steps=(sent,))
    yield replace(render(ended.incident, "update"), steps=(sent, "The test is over."))
