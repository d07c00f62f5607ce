"""A blind watcher tells the platform team: one event for each cause, and one when sight returns.

Which deliveries are unknown stands in the store; what is told follows from it alone, so that a kill loses and
doubles nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from dq.contracts.shared.counts import first_of
from dq.contracts.shared.outcome import Breach, CycleStatus, End, IncidentKey, Recovery, Severity

if TYPE_CHECKING:
    from dq.dataquality.delivery.cycle import CycleJudgement, Kept, Watched

# No contract is called so: an id has no brackets.
PLATFORM = "(platform)"
GROUP = "sight"
_SUBJECT = "blind"
_NAMED = 5


@dataclass(slots=True)
class _Cause:
    """What is behind one place that cannot be seen, or can be seen again."""

    blind: list[Kept] = field(default_factory=list)
    problem: str = ""


def events(judged: Iterable[CycleJudgement], now: datetime, settle: timedelta) -> Iterator[Breach]:
    """What of this tick the platform team has to know.

    A delivery is told as blind when it is unknown `settle` after its breach.
    """
    causes: dict[str, _Cause] = defaultdict(_Cause)
    for one in judged:
        name = cause_of(one)
        if name is None or one.evidence is None or now < one.kept.cycle.breach_at + settle:
            continue
        cause = causes[name]
        cause.blind.append(one.kept)
        cause.problem = cause.problem or one.evidence.problem
    for name, cause in sorted(causes.items()):
        yield _breach(IncidentKey(PLATFORM, name, GROUP), cause, now)


# How a delivery ends without a look at it.
_UNSEEN_ENDS = {CycleStatus.EXCUSED: End.EXCUSED, CycleStatus.WITHDRAWN: End.WITHDRAWN}


def cause_of(judged: CycleJudgement) -> str | None:
    """What keeps a delivery from being seen: the root that its data lies under, or the format whose commits
    cannot be read. None for one that is known, and for one that never will be.
    """
    evidence, one = judged.evidence, judged.one
    if evidence is None or evidence.readable or evidence.settled:
        return None
    if judged.result.status is not CycleStatus.UNKNOWN:
        return None
    return f"commits of {one.place.format}" if evidence.source == "commit" else root_of(one)


def returned(cause: str, after: Collection[CycleStatus], now: datetime) -> Recovery:
    """Return the end of an incident behind which no delivery is unknown any more.

    Args:
        cause: What could not be read.
        after: The statuses of the last deliveries that were unknown for it. Only what was seen shows that
            the cause is gone.
        now: When it ended.
    """
    key = IncidentKey(PLATFORM, cause, GROUP)
    if after and all(status in _UNSEEN_ENDS for status in after):
        end = _UNSEEN_ENDS[max(after, key=list(_UNSEEN_ENDS).index)]
        reason = f"no delivery that still counts needs {cause}, which was not read again"
        return Recovery(
            key, _SUBJECT, now, ((end.value, reason),), end, f"deliveries under {cause} do not count"
        )
    facts = (("seen", "no delivery is unknown for it any more"),)
    return Recovery(key, _SUBJECT, now, facts, title=f"deliveries under {cause} can be seen again")


def _breach(key: IncidentKey, cause: _Cause, now: datetime) -> Breach:
    named = first_of(sorted({kept.cycle.contract for kept in cause.blind}), _NAMED)
    oldest = min(kept.cycle.due_at for kept in cause.blind)
    number = len(cause.blind)
    return Breach(
        key=key,
        severity=Severity.ERROR,
        subject=_SUBJECT,
        title=f"deliveries under {key.object} cannot be seen",
        at=now,
        facts=(
            ("problem", cause.problem or "no reason given"),
            ("unknown", f"{number} deliver{'y' if number == 1 else 'ies'} of {named}"),
            ("since", f"{oldest:%Y-%m-%d %H:%M} UTC, when the oldest was due"),
        ),
    )


def root_of(one: Watched) -> str:
    """The lake root or bucket that an SLO's data lies under."""
    if one.root:
        return one.root
    try:
        return one.files.root(one.place.path.rstrip("/"))
    except Exception:  # noqa: BLE001  # as with every probe: no storage may end a tick
        return one.place.path
