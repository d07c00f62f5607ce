"""Leaves a contract out whose id and major are those of another file, which was there first."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import cache
from pathlib import Path

from dq.cli.loading.contracts import Loaded, load
from dq.cli.world.environment import World, outermost_root
from dq.contracts.access.files import FileRefused
from dq.contracts.model import Contract
from dq.contracts.shared.errors import Unreadable
from dq.contracts.shared.outcome import Finding, Severity
from dq.dataquality.delivery.holder import Claim, KeyHolder, decide, holders, note, remember, remembered
from dq.store.engine import Store

GONE_FOR = timedelta(minutes=10)
"""How long a contract's file must have been gone before its promises are withdrawn."""


def settled(
    world: World, store: Store, loaded: Loaded, paths: Sequence[Path] = (), *, keep: bool = False
) -> Loaded:
    """The contracts that hold their identity, with a finding for each that another file has.

    `keep`: files that are new or have moved are remembered, and what is gone from the `paths` is told, which
    the watcher does. A file that was named twice counts once.
    """
    home = cache(_home)
    files = {_resolved(one.file): one for one in reversed(loaded.contracts)}
    names = {path: home(path.parent)[1] + path.name for path in files}
    common = Counter(names.values())
    contracts = {
        # Two registries in one run may have a file of one name each; neither may pass for the other.
        Claim(one.key, names[path] if common[names[path]] == 1 else str(path)): one
        for path, one in reversed(files.items())
    }
    roots = {one.key: home(path.parent)[0] for path, one in files.items()}
    may_hold = cache(lambda key, file: _may_hold(roots[key] / file, key))
    with store.read() as tx:
        decision = decide(contracts, remembered(tx), may_hold)
    if keep and decision.new:
        with store.write() as tx:
            # Decided again, because another watcher may have been here meanwhile.
            decision = decide(contracts, remembered(tx), may_hold)
            remember(tx, decision.new, world.now())
    refused = [
        Finding("duplicate-contract", Severity.ERROR, reason, _MEND, one.at("id"), "id", one.id)
        for claim, reason in decision.refused.items()
        for one in (contracts[claim],)
    ]
    held = [one for claim, one in contracts.items() if claim not in decision.refused]
    gone = _gone(world, store, paths, contracts, decision.refused, loaded, roots) if keep else {}
    return replace(loaded, contracts=held, findings=[*loaded.findings, *refused], gone=gone)


def _gone(
    world: World,
    store: Store,
    paths: Sequence[Path],
    contracts: Mapping[Claim, Contract],
    refused: Collection[Claim],
    loaded: Loaded,
    roots: Mapping[str, Path],
) -> dict[str, str]:
    """Why contracts are no more that were in a file at or below the paths, once that has lasted.

    A file that is being replaced is gone for a moment. Where a file could not be read, it may be the one that
    a contract has moved to.
    """
    here, now = {claim.key: claim for claim in contracts}, world.now()
    scope = [Path(os.path.realpath(path)) for path in paths]
    names = {claim.file: one for claim, one in contracts.items()}
    with store.read() as tx:
        known = holders(tx)
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
            called = f"{holder.file} is the contract {heir.key!r} now" if heir else f"{holder.file} is gone"
            reasons[key] = f"The contract was removed: {called}."
    moved = {key: holder for key, holder in seen.items() if holder != known[key]}
    if moved:
        with store.write() as tx:
            note(tx, moved)
    return reasons


_MEND = "Remove one of them, or give it an id of its own."


def _resolved(file: str) -> Path:
    # pathlib raises for links that lead to each other.
    return Path(os.path.realpath(Path(file).parent)) / Path(file).name


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
        found = load([file])
    except FileRefused:
        return True
    except Unreadable:
        return False
    return bool(found.findings) or any(one.key == key for one in found.contracts)
