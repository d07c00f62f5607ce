"""Sends what consumers are to be told, and keeps waiting what a place does not take."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

from dq.contracts.shared.errors import DqError
from dq.registry.publishing import notices
from dq.registry.publishing.notices import ConsumerNotice
from dq.store.engine import Store

Notifier = Callable[[ConsumerNotice], None]
"""Hands a notice to a place. Raises PlaceDown when it takes none now, another DqError for this one alone."""

# Longer than one attempt can take with all its time limits.
LEASE = timedelta(seconds=30)
# Of others' notices: who publishes does not wait for a whole backlog.
_BESIDE = 20
_PAUSE_SECONDS = 0.1


class PlaceDown(DqError):
    """A place takes no notices at all now: it cannot be reached, or refuses whoever asks."""

    exit_code = 4


def tell(
    store: Store,
    notifiers: Mapping[str, Notifier],
    clock: Callable[[], datetime],
    *,
    event_id: str = "",
    most: int = _BESIDE,
    lease: timedelta = LEASE,
    pause: Callable[[float], None] = time.sleep,
) -> int:
    """Sends to each of these places what waits for it, and gives how many notices were taken.

    First goes the notice of this event, then up to `most`. Where another process is sending the event's, that
    is waited for: until it is sent, or has taken longer than the lease, when it is sent again with the same
    id. What was not taken waits with the reason; a place that is down is left at once.
    """
    sent = 0
    for target, notifier in notifiers.items():
        desk = _Desk(store, notifier, clock, lease)
        up = True
        while up and event_id and (found := notices.numbers(store, target, 1, event_id)):
            ended = desk.send(found[0])
            sent += ended is _Ended.SENT
            up = ended is not _Ended.DOWN
            if ended is not _Ended.TAKEN:
                break
            pause(_PAUSE_SECONDS)
        for number in notices.numbers(store, target, most) if up and most else ():
            ended = desk.send(number)
            sent += ended is _Ended.SENT
            if ended is _Ended.DOWN:
                break
    return sent


class _Ended(Enum):
    SENT = "sent"
    TAKEN = "taken"  # by another process
    REFUSED = "refused"
    DOWN = "down"


@dataclass(frozen=True, slots=True)
class _Desk:
    store: Store
    notifier: Notifier
    clock: Callable[[], datetime]
    lease: timedelta

    def send(self, number: int) -> _Ended:
        found = notices.take(self.store, number, self.clock(), self.lease)
        if found is None:
            return _Ended.TAKEN
        try:
            self.notifier(found)
        except DqError as error:
            notices.failed(self.store, number, error.message)
            return _Ended.DOWN if isinstance(error, PlaceDown) else _Ended.REFUSED
        notices.sent(self.store, number, self.clock())
        return _Ended.SENT
