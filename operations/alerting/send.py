"""Alerts recorded, sent, chosen, and pressed."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import copy_context
from dataclasses import replace
from datetime import datetime, timedelta
from typing import NoReturn

from sqlalchemy import Connection

from dq.alerts import channels
from dq.alerts import drain as outstanding
from dq.alerts.channel import Open, Press
from dq.alerts.drain import Drained, Outstanding, drain
from dq.alerts.record import PAST, press, record, record_past, tell_mornings
from dq.alerts.route import CONSOLE, AlertRoute, matching
from dq.contracts.access.alert_target import FILES
from dq.contracts.escaping import shell_word
from dq.contracts.model import Contract
from dq.contracts.shared.outcome import Breach, DqError, IncidentKey, Recovery, Severity, UsageError
from dq.dataquality.delivery.cycle import PastMiss
from dq.dataquality.delivery.notify import PLATFORM, misses_digest, misses_summary
from dq.operations.alerting import downstream, enrichment
from dq.operations.alerting.routes import FROM_CONTRACT, platform_route, routes, settings_of
from dq.operations.runtime.context import World
from dq.store.engine import Store

# Alerts as commands send them: events recorded, channels opened, the outbox emptied.


def teller(
    world: World,
    contracts: Sequence[Contract],
    channel: str,
    server: str | None = None,
    resting: Mapping[str, str] | None = None,
) -> Callable[[Connection, Breach | Recovery], None]:
    """What the watcher calls inside its transaction: adds who to ask and where to look, and records it."""
    known, name = channels.load(), channel.partition(":")[0]
    # Now, and not in the night when the first alert has to go there.
    if name in known:
        known[name].open(settings_of(world, known[name]), lambda _: None)
    elif name != FROM_CONTRACT:
        choice = ", ".join((FROM_CONTRACT, *known))
        raise UsageError(f"there is no channel {channel!r}.", f"Choose one of {choice}.")
    platform = platform_route(channel, world.settings)
    help_of = enrichment.helper(world, contracts, server, resting)
    by_key = {contract.key: contract for contract in contracts}

    def tell(tx: Connection, event: Breach | Recovery) -> None:
        if event.key.contract == PLATFORM:
            record(tx, enrichment.of_platform(world, event), [platform], world.now())
            return
        contract = by_key.get(event.key.contract)
        if contract is None or isinstance(event, Recovery):
            # It goes to whoever heard of the breach; the contract itself may be no more.
            record(tx, event, (), world.now())
            return
        record(tx, help_of(contract, event), routes(contract, channel, world.settings), world.now())

    return tell


def teller_of_past(world: World, channel: str) -> Callable[[Connection, Sequence[PastMiss]], None]:
    """What the watcher calls for what broke and ended between two ticks: one message for each channel."""

    def tell(tx: Connection, misses: Sequence[PastMiss]) -> None:
        places: dict[tuple[str, str], list[PastMiss]] = {}
        for one in downstream.with_own_cause(tx, misses, world.now()):
            for route in matching(routes(one.slo.contract, channel, world.settings), one.slo.severity):
                # Whoever hears of what stays open for long hears nothing of what is over.
                if not route.after:
                    places.setdefault((route.channel, route.target), []).append(one)
        for (name, target), told in places.items():
            route, key = AlertRoute(name, target), IncidentKey(PAST, f"{name}:{target}", "past")
            severity = max((one.slo.severity for one in told), key=lambda one: one.rank)
            record_past(tx, key, severity, misses_summary(told), misses_digest(told), route, world.now())

    return tell


def reroute(world: World, store: Store, contracts: Iterable[Contract], channel: str) -> None:
    """Tells of what a place refused where the contract names another place by now."""
    by_key = {contract.key: contract for contract in contracts}
    platform = platform_route(channel, world.settings)

    def places(key: IncidentKey, severity: Severity) -> list[AlertRoute] | None:
        contract = by_key.get(key.contract)
        if contract is None:
            return None
        return [*matching(routes(contract, channel, world.settings), severity), platform, CONSOLE]

    with store.read() as tx:
        if not outstanding.refused(tx):
            return
    with store.write() as tx:
        outstanding.reroute(tx, places, world.now())


def send(
    world: World,
    store: Store,
    channel: str = FROM_CONTRACT,
    patience: timedelta | None = None,
) -> Drained:
    """Send what the outbox holds through every channel that is set up; the console is `world.messages`.

    What has to wait is waited for as long as `patience`, by default as the settings say. Files are written
    only where the operator names them, by a setting or as the `channel` of all alerts.
    """
    opened: dict[str, Open] = {}
    unset: dict[str, str] = {}
    mistakes: list[UsageError] = []
    for name, one in channels.load().items():
        if name in FILES and not world.settings.file_channels and channel.partition(":")[0] != name:
            unset[name] = "it is off. Allow a folder for it: DQ_FILE_CHANNELS=FOLDER."
            continue
        try:
            settings = settings_of(world, one)
        except UsageError as error:
            mistakes.append(error)
            unset[name] = str(error)
            continue
        try:
            opened[name] = one.open(settings, world.messages.alert)
        except DqError as error:
            # One that is not set up matters only when something waits for it.
            unset[name] = str(error)
    tell_mornings(store, world.now())
    drained = drain(
        store,
        opened,
        _running(world),
        sleep=time.sleep,
        patience=timedelta(seconds=world.settings.send_seconds) if patience is None else patience,
        jitter=random.random,
        fallbacks=list(dict.fromkeys([platform_route(channel, world.settings), CONSOLE])),
    )
    broken = {name: unset.get(name, reason) for name, reason in drained.broken.items()}
    drained = replace(drained, broken=broken)
    if mistakes:
        # A secret that cannot be read: after all others have been told.
        for text in undelivered(drained):
            world.note(text)
        raise mistakes[0]
    return drained


def _running(world: World) -> Callable[[], datetime]:
    """A clock that goes on from the world's own, which stands still in a replay."""
    began, start = time.monotonic(), world.now()
    return lambda: start + timedelta(seconds=time.monotonic() - began)


def exit_code(drained: Drained) -> int:
    """4 when somebody has to do something so that alerts arrive, else 0."""
    return 4 if drained.broken or any(one.stuck for one in drained.outstanding) else 0


def undelivered(drained: Drained) -> list[str]:
    """What could not be sent, a sentence for each."""
    lines = [f"nothing can be sent through {name}: {reason}" for name, reason in drained.broken.items()]
    # What waits for a channel that is broken is said already.
    return lines + [
        told(one) for one in drained.outstanding if one.refused or one.channel not in drained.broken
    ]


def told(one: Outstanding) -> str:
    """What is outstanding for a place, in a sentence."""
    messages = f"{one.count} message{'s' * (one.count > 1)} for {one.place}"
    if not one.refused:
        return f"{messages} wait{'s' * (one.count == 1)} since {_at(one.since)}: {one.reason or 'its turn'}."
    return (
        f"{messages} could not be delivered since {_at(one.since)}: {one.reason}. "
        "It is tried again every hour. Mend the place, or let go of it: "
        f"dq outbox --dismiss {shell_word(one.place)}"
    )


def outstanding_as_dict(one: Outstanding) -> dict[str, object]:
    """What is outstanding for a place, for machines."""
    return {
        "channel": one.channel,
        "target": one.target,
        "messages": one.count,
        "since": one.since.isoformat(),
        "reason": one.reason,
        "refused": one.refused,
    }


def _at(instant: datetime) -> str:
    return f"{instant:%Y-%m-%d %H:%M}Z"


# Buttons below alerts: `dq watch --every` listens while it waits, where a channel is set up for it.


def listen(world: Callable[[], World], pressed: threading.Event, note: Callable[[str], None]) -> None:
    """Listens in the background through each channel that can be pressed; each press sets `pressed`.

    A channel that cannot be heard is said, and stops nothing.
    """
    # Threads of a channel begin without the context variables of this one, e.g. the file of `--config`.
    variables = copy_context()

    def write_down(one: Press) -> str:
        # A copy for each press: two threads cannot be in one context at a time.
        return variables.copy().run(record_press, one)

    def record_press(one: Press) -> str:
        here = world()
        store = here.store()
        try:
            with store.write() as tx:
                said = press(tx, one, here.now())
        finally:
            store.close()
        pressed.set()
        return said

    for channel in channels.load().values():
        if channel.listen is None:
            continue
        try:
            channel.listen(settings_of(world(), channel), write_down, note)
        except DqError as error:
            note(f"buttons of {channel.id} do not answer: {error}")


def go_on(once: Callable[[], object], pause: timedelta, began: float, pressed: threading.Event) -> NoReturn:
    """Tick after tick for ever. `began` is when the last one did, on the monotonic clock; a press ends the
    pause early, so that the message shows it at once."""
    while True:
        pressed.wait(max(pause.total_seconds() - (time.monotonic() - began), 0))
        pressed.clear()
        began = time.monotonic()
        once()
