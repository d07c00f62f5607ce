"""History judged again from what is stored: each verdict from its grounds, each row from its verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from dq.contracts.shared.outcome import CycleStatus
from dq.dataquality.delivery.cycle import Kept
from dq.dataquality.delivery.history import changes
from dq.dataquality.delivery.history.changes import StatusChange
from dq.dataquality.delivery.state.keys import Key
from dq.dataquality.delivery.status import judge_on


@dataclass(frozen=True, slots=True)
class Replayed:
    """A cycle as it is derived from its changes. `differences` are what the store says otherwise, in words.

    `proven` is whether every change of it carries its grounds; what was withdrawn, or taken back by somebody,
    is no verdict and needs none.
    """

    kept: Kept
    status: CycleStatus
    delivered_at: datetime | None
    reason: str
    proven: bool
    differences: tuple[str, ...] = ()


def replay(tx: Connection, keys: Iterable[Key], as_of: datetime | None = None) -> Iterator[Replayed]:
    """The cycles of these SLOs, judged again from their grounds; oldest first for each.

    As of an instant: what was due by then, as what was known by then makes it. A verdict of then is asked
    again at that instant, so that a watcher which was down at the time makes no difference but in what it had
    seen. Without one, the rows as they stand are compared too.
    """
    for key in keys:
        for kept, done in changes.with_changes(tx, key):
            if as_of is None:
                yield _replayed(kept, done)
            elif kept.cycle.due_at <= as_of:
                yield _as_of(kept, [one for one in done if one.at <= as_of], as_of)


def _replayed(kept: Kept, done: Sequence[StatusChange]) -> Replayed:
    status, wrong = CycleStatus.PENDING, list[str]()
    delivered, reason = None, ""
    for one in done:
        at = f"at {one.at.isoformat()}"
        if one.before is not status:
            wrong.append(f"{at} it was {status}, and the change says {one.before}")
        status, delivered, reason = one.after, None, one.reason
        if one.grounds is None:
            continue
        verdict = judge_on(kept.cycle, one.grounds, one.at)
        if verdict.status is not one.after:
            wrong.append(f"{at} its grounds make it {verdict.status}, stored is {one.after}")
        elif verdict.reason != one.reason:
            wrong.append(f"{at} its grounds say {verdict.reason!r}, stored is {one.reason!r}")
        delivered = verdict.delivered_at(kept.cycle)
    if kept.status is not status:
        wrong.append(f"its changes make it {status}, its row says {kept.status}")
    if kept.delivered_at != delivered and _proven(done):
        wrong.append(f"its changes make it delivered {delivered}, its row says {kept.delivered_at}")
    return Replayed(kept, status, delivered, reason, _proven(done), tuple(wrong))


def _as_of(kept: Kept, done: Sequence[StatusChange], at: datetime) -> Replayed:
    if not done:
        return Replayed(kept, CycleStatus.PENDING, None, "Nobody had looked by then.", proven=True)
    last = done[-1]
    if last.grounds is None:
        return Replayed(kept, last.after, None, last.reason, _proven(done))
    verdict = judge_on(kept.cycle, last.grounds, at)
    return Replayed(kept, verdict.status, verdict.delivered_at(kept.cycle), verdict.reason, _proven(done))


def _proven(done: Iterable[StatusChange]) -> bool:
    free = (CycleStatus.WITHDRAWN, CycleStatus.PENDING)
    return all(one.grounds is not None or one.after in free for one in done)
