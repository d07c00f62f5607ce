"""The earlier versions of a contract: which of them still count, and since when parts are deprecated."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from dq.contracts.diff.element import ElementKind
from dq.contracts.diff.normalize import normalise
from dq.contracts.model import Contract
from dq.validators.compat.version import Version, read_version

Dated = Sequence[tuple[Contract, date]]


def has_deprecated(contract: Contract) -> bool:
    """Whether any object or property is deprecated."""
    return any(element.deprecated for one in contract.objects for element in (one, *one.walk()))


def newest_first(past: Dated, contract: Contract) -> list[Contract]:
    """One contract for each earlier version of the same major, as it was last; newest version first."""
    latest: dict[Version, Contract] = {}
    own = read_version(contract.version)
    for old, _ in past:
        read = read_version(old.version)
        if read is not None and read != own and old.identity == contract.identity:
            latest[read] = old
    return [latest[key] for key in sorted(latest, reverse=True)]


def deprecated_since(past: Dated) -> dict[str, date]:
    """For each part that the last version deprecates, the day of the first version that did, without a gap.

    `past` is in order of time. Parts are named by their paths, such as `orders.amount`.
    """
    since: dict[str, date] = {}
    for contract, day in past:
        marked = {
            element.path
            for one in normalise(contract).of(ElementKind.OBJECT)
            for element in one.walk()
            if element.normal("deprecated") is not None
        }
        since = {path: since.get(path, day) for path in sorted(marked)}
    return since
