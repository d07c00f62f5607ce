"""What a back-test found: of each rule, in which partitions it would have failed."""

from __future__ import annotations

import builtins
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from dq.contracts.shared.outcome import CheckResult, Location, Severity, Status, Unreadable
from dq.dataquality.clauses.coverage import JsonObject
from dq.dataquality.model.run_context import Partition


@dataclass(frozen=True, slots=True)
class UnreadPartition:
    """A partition that could not be tested at all, and why: there every rule could not tell."""

    partition: Partition
    reason: str


@dataclass(frozen=True, slots=True)
class Untold:
    """A rule that history says nothing about, and why."""

    check: str
    clause: str
    property: str
    at: Location
    reason: str


@dataclass(frozen=True, slots=True)
class RuleHistory:
    """What one rule would have said of each partition, the oldest first. `name` is it by ids and names.

    In so many partitions it was tested by one pass over all, `together`; in the others one by one.
    """

    check: str
    clause: str
    name: str
    property: str
    severity: Severity
    allowed: str
    at: Location
    results: tuple[tuple[Partition, CheckResult], ...]
    together: int = 0

    def of(self, status: Status) -> list[tuple[Partition, CheckResult]]:
        """The partitions where it ended so."""
        return [(partition, result) for partition, result in self.results if result.status is status]

    @builtins.property
    def counts(self) -> dict[str, int]:
        """How many partitions ended how."""
        counted = Counter(result.status for _, result in self.results)
        return {status.value: counted[status] for status in Status}

    def as_dict(self) -> JsonObject:
        """As JSON values: all partitions that it would not have kept, with what was found there."""
        failed = self.of(Status.FAIL)
        return {
            "check": self.check,
            "clause": self.clause,
            "name": self.name,
            "property": self.property or None,
            "severity": self.severity.value,
            "threshold": self.allowed,
            "at": str(self.at),
            "total": len(self.results),
            "counts": self.counts,
            "together": self.together,
            "first": dict(failed[0][0]) if failed else None,
            "last": dict(failed[-1][0]) if failed else None,
            "failed": [_entry(*one) for one in failed],
            "untold": [_entry(*one) for one in self.of(Status.ERROR)],
            "skipped": [_entry(*one) for one in self.of(Status.SKIPPED)],
        }


def _entry(partition: Partition, result: CheckResult) -> JsonObject:
    return {
        "partition": dict(partition),
        "value": result.value,
        "observed": result.observed,
        "message": result.message,
    }


@dataclass(frozen=True, slots=True)
class Backtest:
    """What the rules of an object would have said of its partitions, the oldest first.

    `present` is how many partitions the table has, of which `partitions` are the last. `untold` are rules
    that were not tested, and `unread` are partitions that could not be.
    """

    contract: str
    version: str
    object: str
    partitions: tuple[Partition, ...]
    present: int
    rules: tuple[RuleHistory, ...]
    untold: tuple[Untold, ...]
    unread: tuple[UnreadPartition, ...]
    at: datetime | None = None

    def of(self, status: Status) -> tuple[RuleHistory, ...]:
        """The rules that ended so in some partition."""
        return tuple(rule for rule in self.rules if rule.of(status))

    @property
    def exit_code(self) -> int:
        """1 where a rule that is more than a warning would have failed, 3 where one could not tell, else 0.

        Failed goes before what could not be told. Rules that history says nothing about change nothing,
        unless they are all that was asked.
        """
        if _grave(self.of(Status.FAIL)):
            return 1
        if _grave(self.of(Status.ERROR)) or (self.untold and not self.rules):
            return Unreadable.exit_code
        return 0

    def as_dict(self) -> JsonObject:
        """As JSON values. No row of the data is in it."""
        return {
            "contract": self.contract,
            "version": self.version,
            "object": self.object,
            "at": self.at.isoformat() if self.at else None,
            "partitions": [dict(one) for one in self.partitions],
            "present": self.present,
            "rules": [rule.as_dict() for rule in self.rules],
            "not_tested": [
                {
                    "check": one.check,
                    "clause": one.clause,
                    "property": one.property or None,
                    "at": str(one.at),
                    "reason": one.reason,
                }
                for one in self.untold
            ],
            "unread": [{"partition": dict(one.partition), "reason": one.reason} for one in self.unread],
        }


def _grave(rules: Iterable[RuleHistory]) -> bool:
    return any(rule.severity.blocks for rule in rules)
