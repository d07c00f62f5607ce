"""Which contract has a key, and which promises are no more."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import cache
from os.path import split
from pathlib import Path

from dq.alerts import incident_store as incidents
from dq.alerts.record import record
from dq.contracts.access.files import FileRefused
from dq.contracts.model import Contract
from dq.contracts.outcome import End, Finding, Location, Recovery, Severity, Unreadable
from dq.contracts.slo import NOT_IN_FORCE, Slo
from dq.dataquality.delivery import skip_cache
from dq.dataquality.delivery.skip_cache import Claim, KeyHolder, decide, holders, note, remember, remembered
from dq.operations.registry_files import Loaded, load
from dq.operations.runtime.context import World, outermost_root
from dq.store.engine import Store

# Leaves a contract out whose id and major are those of another file, which was there first.

GONE_FOR = timedelta(minutes=10)
"""How long a contract's file must have been gone before its promises are withdrawn."""


def settled(
    world: World, store: Store, loaded: Loaded, paths: Sequence[Path] = (), *, keep: bool = False
) -> Loaded:
    """The contracts that hold their identity, with a finding for each that another file has.

    `keep`: files that are new or have moved are remembered, and what is gone from the `paths` is told, which
    the watcher does. A file that was named twice counts once.
    """
    home, resolved = cache(_home), cache(_resolved_folder)
    read: dict[str, Contract] = {one.file: one for one in loaded.contracts}
    keys = {**loaded.resting, **{file: one.key for file, one in read.items()}}
    files = {(resolved(folder), name): file for file in reversed(keys) for folder, name in (split(file),)}
    names = {place: home(place[0])[1] + place[1] for place in files}
    common = Counter(names.values())
    claims = {
        # Two registries in one run may have a file of one name each; neither may pass for the other.
        Claim(keys[file], names[place] if common[names[place]] == 1 else str(place[0] / place[1])): file
        for place, file in reversed(files.items())
    }
    roots = {keys[file]: home(folder)[0] for (folder, _), file in files.items()}
    may_hold = cache(lambda key, file: _may_hold(roots[key] / file, key))
    with store.read() as tx:
        known = holders(tx)
    first = {key: holder.file for key, holder in known.items()}
    decision = decide(claims, first, may_hold)
    if keep and decision.new:
        with store.write() as tx:
            # Decided again, because another watcher may have been here meanwhile.
            decision = decide(claims, remembered(tx), may_hold)
            remember(tx, decision.new, world.now())
            known = holders(tx)
    refused = [
        Finding("duplicate-contract", Severity.ERROR, reason, _MEND, _place(read, file), "id", claim.key)
        for claim, reason in decision.refused.items()
        for file in (claims[claim],)
    ]
    held = [read[file] for claim, file in claims.items() if claim not in decision.refused and file in read]
    gone = _gone(world, store, paths, claims, decision.refused, loaded, roots, known) if keep else {}
    return replace(loaded, contracts=held, findings=[*loaded.findings, *refused], gone=gone)


def _place(read: Mapping[str, Contract], file: str) -> Location:
    return read[file].at("id") if file in read else Location(file)


def _gone(
    world: World,
    store: Store,
    paths: Sequence[Path],
    claims: Mapping[Claim, str],
    refused: Collection[Claim],
    loaded: Loaded,
    roots: Mapping[str, Path],
    known: Mapping[str, KeyHolder],
) -> dict[str, str]:
    """Why contracts are no more that were in a file at or below the paths, once that has lasted.

    A file that is being replaced is gone for a moment. Where a file could not be read, it may be the one that
    a contract has moved to.
    """
    here, now = {claim.key: claim for claim in claims}, world.now()
    scope = [Path(os.path.realpath(path)) for path in paths]
    names = {claim.file: claim.key for claim in claims}
    seen: dict[str, KeyHolder] = {}
    reasons: dict[str, str] = {}
    for key, holder in known.items():
        if key in here:
            if here[key] not in refused:
                seen[key] = KeyHolder(holder.file, str(roots[key]))
            continue
        file = Path(holder.registry or "/") / holder.file
        if holder.registry is None or not any(file.is_relative_to(one) for one in scope):
            continue
        heir = names.get(holder.file)
        if heir is None and (loaded.findings or _may_hold(file, key)):
            continue
        seen[key] = replace(holder, gone_since=holder.gone_since or now)
        if now - (holder.gone_since or now) >= GONE_FOR:
            called = f"{holder.file} is the contract {heir!r} now" if heir else f"{holder.file} is gone"
            reasons[key] = f"The contract was removed: {called}."
    moved = {key: holder for key, holder in seen.items() if holder != known[key]}
    if moved:
        with store.write() as tx:
            note(tx, moved)
    return reasons


_MEND = "Remove one of them, or give it an id of its own."


def _resolved_folder(folder: str) -> Path:
    # pathlib raises for links that lead to each other.
    return Path(os.path.realpath(folder))


def _home(folder: Path) -> tuple[Path, str]:
    """The registry's root around a folder, and what stands before the name of a file in it.

    It is the outermost one: a policy that is added in a folder below must not give its files other names.
    Without any root a file's name is its whole path.
    """
    root = outermost_root(folder)
    if root is None:
        return folder, f"{folder}/"
    within = folder.relative_to(root).as_posix()
    return root, "" if within == "." else f"{within}/"


def _may_hold(file: Path, key: str) -> bool:
    try:
        found = load([file], lambda _: None)
    except FileRefused:
        return True
    except Unreadable:
        return False
    return bool(found.findings) or any(one.key == key for one in found.contracts)


# Which promises are no more: their contract was removed or retired, or says something else now.

Key = tuple[str, str, str]


def withdrawals(
    loaded: Loaded, promises: Sequence[Slo], wrong: Sequence[Finding]
) -> Callable[[Key], str | None]:
    """From an SLO's key to why it is promised no more; None where it is, or where nobody can tell."""
    promised = {slo.key: slo for slo in promises}
    contracts = {contract.key: contract for contract in loaded.contracts}
    broken = {finding.at.file for finding in wrong}

    def reason(key: Key) -> str | None:
        contract = contracts.get(key[0])
        if contract is None or key in promised:
            return loaded.gone.get(key[0])
        if contract.status in NOT_IN_FORCE:
            return f"The contract is {contract.status} now."
        if contract.file in broken:
            return None
        others = [slo.id for slo in promises if slo.key[:2] == key[:2]]
        instead = f" It promises {', '.join(map(repr, others))}." if others else ""
        return f"The contract promises no delivery {key[2]!r} of {key[1]!r} any more.{instead}"

    return reason


def close_withdrawn(world: World, store: Store, loaded: Loaded) -> None:
    """Ends what is still open of contracts that are no more, and leaves their names to others."""
    reasons = dict(loaded.gone)
    for contract in loaded.contracts:
        if contract.status in NOT_IN_FORCE:
            reasons[contract.key] = f"The contract is {contract.status} now."
    if not reasons:
        return
    with store.read() as tx:
        left = incidents.unresolved(tx, list(reasons))
    if not left and not loaded.gone:
        return
    with store.write() as tx:
        for incident in left:
            facts = (("withdrawn", reasons[incident.key.contract]),)
            for subject in incident.open_subjects:
                record(
                    tx, Recovery(incident.key, subject, world.now(), facts, End.WITHDRAWN), (), world.now()
                )
        skip_cache.forget(tx, list(loaded.gone))
