"""What consumers were not told yet, sent now."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from dq.cli.publishing.places import senders
from dq.cli.world.environment import World
from dq.registry.publishing import notices
from dq.registry.publishing.notices import LEASE, WaitingNotices, tell

_MOST = 100_000


_TAKEN = (
    "Another process took it; if that was killed, it goes out with what is published or sent after "
    f"{LEASE.seconds} seconds."
)
_FOREIGN = "Nobody here sends it: publish where it was published, or set the topic."


def send_pending(world: World) -> tuple[int, list[WaitingNotices]]:
    """Sends what waits and is sent from here; how many were taken, and what waits still, each with why."""
    store = world.store()
    with store.read() as tx:
        waiting = [one.target for one in notices.waiting(tx)]
    places = senders(world, waiting)
    sent = tell(store, places, lambda: datetime.now(UTC), most=_MOST)
    with store.read() as tx:
        left = notices.waiting(tx)
    return sent, [
        replace(one, problem=one.problem or (_TAKEN if one.target in places else _FOREIGN)) for one in left
    ]


def as_row(one: WaitingNotices) -> dict[str, object]:
    """What waits for a place, as JSON values."""
    return {
        "target": one.target,
        "events": one.number,
        "since": one.since.isoformat(),
        "problem": one.problem,
    }
