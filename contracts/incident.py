"""States of deliveries, and breaches and recoveries, which open and close incidents."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from dq.contracts.outcome import Severity


class CycleStatus(StrEnum):
    """The status of one promised delivery; see docs/explanation/delivery.md."""

    SCHEDULED = "scheduled"
    PENDING = "pending"
    ON_TIME = "on_time"
    ON_TIME_IN_GRACE = "on_time_in_grace"
    MISSING = "missing"
    LATE = "late"
    NEVER = "never"
    EXCUSED = "excused"
    UNKNOWN = "unknown"
    WITHDRAWN = "withdrawn"

    @property
    def good(self) -> bool:
        """Counts for the service level."""
        return self in (CycleStatus.ON_TIME, CycleStatus.ON_TIME_IN_GRACE)

    @property
    def bad(self) -> bool:
        """Counts against the service level."""
        return self in (CycleStatus.MISSING, CycleStatus.LATE, CycleStatus.NEVER)

    @property
    def delivered(self) -> bool:
        """The data has arrived, on time or late."""
        return self.good or self is CycleStatus.LATE


class DeliveryState(StrEnum):
    """State of an object's deliveries: `complete`, or the reason of its first hole.

    `pending`: no delivery was evaluated yet. `unwatched`: no SLO of it is watched any longer.
    """

    COMPLETE = "complete"
    INCOMPLETE = "incomplete"
    FAILED = "failed"
    UNKNOWN = "unknown"
    PENDING = "pending"
    UNWATCHED = "unwatched"


@dataclass(frozen=True, slots=True)
class IncidentKey:
    """Identity of an incident: at most one incident per key is open at any time.

    `contract` is the contract's key: its id, with the major version unless that is 1. `group` is the SLO's id
    for deliveries and `quality` for failed checks.
    """

    contract: str
    object: str
    group: str

    def __str__(self) -> str:
        return f"{self.contract}/{self.object}/{self.group}"


@dataclass(frozen=True, slots=True)
class FailedClause:
    """A clause that fails in a breach of data checks, without rows of the data.

    `path` is its position in the contract. `property` is its column, or "" for a clause of the whole object.
    """

    path: str
    check: str
    property: str
    severity: Severity
    observed: str
    allowed: str


AT_RISK = "at risk"
"""Label of the fact that makes an event an early warning: its subject is at risk, not in breach yet."""


@dataclass(frozen=True, slots=True)
class Breach:
    """A breach as of `occurred_at`: opens an incident, or joins the open one.

    Attributes:
        subject: The cycle or run (a due instant in UTC, a partition).
        facts: Lines of (label, value) for people: what was promised, what was observed, what to do.
        period: Interval of the schedule, or None without one.
        failed: Clauses that fail, for a breach of data checks.
    """

    key: IncidentKey
    severity: Severity
    subject: str
    title: str
    occurred_at: datetime
    facts: tuple[tuple[str, str], ...] = ()
    period: timedelta | None = None
    failed: tuple[FailedClause, ...] = ()

    @property
    def is_warning(self) -> bool:
        """True if the subject is only at risk. The breach of the same subject takes its place."""
        return any(label == AT_RISK for label, _ in self.facts)


# The number of rows that fail, e.g. `1 of 973 rows`, as against a measured number of rows.
_FAILING_ROWS = re.compile(r"[\d,]+ of [\d,]+ rows?")


def observed_and_expected(observed: str, allowed: str) -> str:
    """Return the observed and allowed values of a failed clause, e.g. `68 rows, expected 69 to 75 rows`."""
    if _FAILING_ROWS.fullmatch(observed) and not allowed.endswith(("row", "rows")):
        observed += " fail"
    return f"{observed}, expected {allowed}" if allowed else observed


class Resolution(StrEnum):
    """Resolution of a breach. Only RECOVERED is good news.

    `HANDED_OVER`: the breach continues and is tracked by separate incidents.
    """

    RECOVERED = "recovered"
    GIVEN_UP = "given_up"
    WITHDRAWN = "withdrawn"
    EXCUSED = "excused"
    HANDED_OVER = "handed_over"


@dataclass(frozen=True, slots=True)
class Recovery:
    """The end of a breach for one subject; the incident closes with its last subject.

    Attributes:
        title: New title, or "" to keep the title of the breach.
        severity: Severity of what is still breached, or None if unchanged.
    """

    key: IncidentKey
    subject: str
    occurred_at: datetime
    facts: tuple[tuple[str, str], ...] = field(default=())
    end: Resolution = Resolution.RECOVERED
    title: str = ""
    severity: Severity | None = None
