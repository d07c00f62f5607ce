"""Buttons below alerts: `dq watch --every` listens while it waits, where a channel is set up for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import NoReturn

from dq.alerts import channels
from dq.alerts.channel import Press
from dq.alerts.interactions import press
from dq.cli.alerting.channel_settings import settings_of
from dq.cli.world.environment import World
from dq.contracts.shared.outcome import DqError


def listen(world: Callable[[], World], pressed: threading.Event, note: Callable[[str], None]) -> None:
    """Listens in the background through each channel that can be pressed; each press sets `pressed`.

    A channel that cannot be heard is said, and stops nothing.
    """

    def write_down(one: Press) -> str:
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
