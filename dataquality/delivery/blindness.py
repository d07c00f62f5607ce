"""A blind watcher tells the platform team: one event for each cause, and one when sight returns.

Which deliveries are unknown stands in the store; what is told follows from it alone, so that a kill loses and
doubles nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from dq.contracts.shared.data_formats import LAKEHOUSE
from dq.contracts.shared.outcome import Breach, CycleStatus, IncidentKey, Recovery, Severity
from dq.dataquality.delivery.evidence import Evidence

if TYPE_CHECKING:
    from dq.dataquality.delivery.ledger import Kept
    from dq.dataquality.delivery.status import CycleVerdict
    from dq.dataquality.delivery.watch import Watched

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
    returned: bool = False


def events(
    judged: Iterable[tuple[Watched, Kept, CycleVerdict, Evidence | None]], now: datetime, settle: timedelta
) -> Iterator[Breach | Recovery]:
    """What the platform team has to know of this tick.

    A delivery is blind when it is unknown `settle` after its breach. A cause is the root that its data lies
    under, or the format whose commits cannot be read. Sight has returned where a delivery that was unknown
    is known, and none of the same cause is blind.
    """
    causes: dict[str, _Cause] = defaultdict(_Cause)
    for one, kept, result, evidence in judged:
        if result.status is CycleStatus.UNKNOWN:
            if (
                evidence is None
                or evidence.readable
                or evidence.settled
                or now < kept.cycle.breach_at + settle
            ):
                continue
            cause = causes[_of_format(one) if evidence.source == "commit" else _root(one)]
            cause.blind.append(kept)
            cause.problem = cause.problem or evidence.problem
        elif kept.status is CycleStatus.UNKNOWN:
            causes[_root(one)].returned = True
            if one.place.format in LAKEHOUSE:
                causes[_of_format(one)].returned = True
    for name, cause in sorted(causes.items()):
        key = IncidentKey(PLATFORM, name, GROUP)
        if cause.blind:
            yield _breach(key, cause, now)
        elif cause.returned:
            yield Recovery(key, _SUBJECT, now, (("seen", "deliveries can be judged again"),))


def _breach(key: IncidentKey, cause: _Cause, now: datetime) -> Breach:
    contracts = sorted({kept.cycle.contract for kept in cause.blind})
    named = ", ".join(contracts[:_NAMED])
    more = f" and {len(contracts) - _NAMED} more" if len(contracts) > _NAMED else ""
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
            ("unknown", f"{number} deliver{'y' if number == 1 else 'ies'} of {named}{more}"),
            ("since", f"due {oldest:%Y-%m-%d %H:%M}Z"),
        ),
    )


def _root(one: Watched) -> str:
    try:
        return one.files.root(one.place.path.rstrip("/"))
    except Exception:  # noqa: BLE001  # as with every probe: no storage may end a tick
        return one.place.path


def _of_format(one: Watched) -> str:
    return f"commits of {one.place.format}"
