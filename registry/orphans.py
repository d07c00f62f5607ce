"""Tables of ours that no contract wants: which of them may go, and which stay whatever is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field

from dq.registry.action import Action, ActionKind, LiveTable
from dq.registry.table import CONTRACT, MANAGED_BY, REGISTRY, Key, TableSpec

# So many tables go without a word: one always, then up to a tenth of ours, and never more than five.
_MOST, _SHARE = 5, 10


@dataclass(frozen=True, slots=True)
class WholeRegistry:
    """What a run knows that has read and understood every contract of a registry.

    Tables of `held` and of the contracts (by id) in `held_contracts` stay though nobody wants them now,
    each for the reason that stands there.
    """

    registry: str
    held: Mapping[Key, str] = field(default_factory=dict)
    held_contracts: Mapping[str, str] = field(default_factory=dict)


def limit(ours: int) -> int:
    """How many of `ours` tables a run may remove when nobody says."""
    return min(_MOST, max(1, ours // _SHARE))


def is_ours(spec: TableSpec, registry: str) -> bool:
    """Whether the table carries the mark of this registry."""
    return bool(spec.parameter(MANAGED_BY)) and spec.parameter(REGISTRY) == registry


def orphans(
    live: Mapping[Key, LiveTable], wanted: Set[Key], applied: Mapping[Key, TableSpec], whole: WholeRegistry
) -> Iterator[Action]:
    """One action for each table of this registry that is not wanted: an orphan, or held with the reason.

    An orphan is one that this store remembers to have made for the same contract. A mark alone is no proof:
    copies of a table carry it, and a registry without policy and remote is told apart by its folder only.
    """
    for key, table in live.items():
        if key in wanted or not is_ours(table.spec, whole.registry):
            continue
        contract = table.spec.parameter(CONTRACT)
        reason = whole.held.get(key) or whole.held_contracts.get(contract)
        made = applied.get(key)
        if reason is None and (made is None or not _same(made, table.spec)):
            reason = "This store does not remember that dq made it; if it is not needed, drop it by hand."
        if reason is not None:
            yield Action(ActionKind.HELD, key, before=table, note=reason)
            continue
        note = f"Contract {contract!r} does not want it any more. Remove it from the catalog with --prune."
        yield Action(ActionKind.ORPHAN, key, before=table, note=note)


def _same(made: TableSpec, live: TableSpec) -> bool:
    return all(made.parameter(name) == live.parameter(name) for name in (REGISTRY, CONTRACT))
