"""What consumers were not told yet, sent now."""

from __future__ import annotations

from datetime import UTC, datetime

from dq.cli.publishing.places import senders
from dq.cli.world.environment import World
from dq.registry.publishing import notices
from dq.registry.publishing.notices import WaitingNotices
from dq.registry.publishing.tell import tell

_MOST = 100_000


def send_pending(world: World) -> tuple[int, list[WaitingNotices]]:
    """Sends what waits and is sent from here; how many were taken, and what waits still."""
    store = world.store()
    with store.read() as tx:
        waiting = [one.target for one in notices.waiting(tx)]
    sent = tell(store, senders(world, waiting), lambda: datetime.now(UTC), most=_MOST)
    with store.read() as tx:
        return sent, notices.waiting(tx)


def as_row(one: WaitingNotices) -> dict[str, object]:
    """What waits for a place, as JSON values."""
    return {
        "target": one.target,
        "events": one.number,
        "since": one.since.isoformat(),
        "problem": one.problem,
    }
