"""What the rules about deliveries share: the promises of a contract, read through the watcher's own door."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, time
from functools import lru_cache

from dq.contracts import promise
from dq.contracts.model import Contract
from dq.validators.context import Context
from dq.validators.rule import Check, Fault

# Ten rules ask the same of one contract after the other.
_read = lru_cache(1)(promise.read)


def of_promise(rule: str) -> Check:
    """The check of a rule whose fault is found while a promise is read: what cannot be watched."""

    def check(contract: Contract, _context: Context) -> Iterator[Fault]:
        for finding in _read(contract)[1]:
            if finding.rule == rule:
                yield Fault(finding.at, finding.message, finding.mend, finding.path)

    return check


def of_each(judge: Callable[[promise.Slo, datetime], Iterator[Fault]]) -> Check:
    """The check of a rule that asks every promise that can be read, as of the beginning of the day."""

    def check(contract: Contract, context: Context) -> Iterator[Fault]:
        if not contract.sla_properties:
            return
        now = datetime.combine(context.today, time(), UTC)
        for slo in _read(contract)[0]:
            yield from judge(slo, now)

    return check
