"""Two judgements of one branch, by the base's policy and by its own: the stricter of both, place by place."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from operator import attrgetter
from typing import TypeVar

from dq.contracts.shared.outcome import Finding
from dq.validators.compat import Comparison
from dq.validators.compat.judged import comparison
from dq.validators.compat.version import read_version
from dq.validators.policy.waivers import EXPIRED, UNUSED

T = TypeVar("T")


def stricter_findings(base: Iterable[Finding], branch: Iterable[Finding]) -> list[Finding]:
    """What either finds, at the higher severity: what only one of the two waives stays.

    What is wrong with the waivers of the base is left out: the branch may be there to mend that.
    """
    kept = [one for one in base if one.rule not in (EXPIRED, UNUSED)]
    place = attrgetter("rule", "at", "path", "contract")
    return _union(kept, list(branch), place, lambda one: one.severity.rank)


def stricter_changes(base: Comparison, branch: Comparison) -> Comparison:
    """What either judges, at the worse verdict, and the higher of the two versions that are asked for."""
    change = attrgetter("fingerprint", "against", "at")
    both = _union(base.changes, branch.changes, change, lambda one: one.verdict.rank)
    asked = [one for one in (base.required_version, branch.required_version) if one is not None]
    return comparison(both, max(asked, key=lambda one: read_version(one) or (0, 0, 0), default=None))


def _union(
    first: Sequence[T], second: Sequence[T], key: Callable[[T], Hashable], harm: Callable[[T], int]
) -> list[T]:
    groups: dict[Hashable, tuple[list[T], list[T]]] = defaultdict(lambda: ([], []))
    for index, items in enumerate((first, second)):
        for one in items:
            groups[key(one)][index].append(one)
    return [
        one
        for pair in groups.values()
        for one in max(pair, key=lambda ones: max(map(harm, ones), default=-1))
    ]
