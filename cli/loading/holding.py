"""Leaves a contract out whose id and major are those of another file, which was there first."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path

from dq.cli.loading.contracts import Loaded, load
from dq.cli.world.environment import World, outermost_root
from dq.contracts.access.files import FileRefused
from dq.contracts.shared.errors import Unreadable
from dq.contracts.shared.outcome import Finding, Severity
from dq.dataquality.delivery.holder import Claim, decide, remember, remembered
from dq.store.engine import Store


def settled(world: World, store: Store, loaded: Loaded, *, keep: bool = False) -> Loaded:
    """The contracts that hold their identity, with a finding for each that another file has.

    `keep`: files that are new or have moved are remembered, which the watcher does. A file that was named
    twice counts once.
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
    return replace(loaded, contracts=held, findings=[*loaded.findings, *refused])


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
