"""Loads the contracts of a watcher, of which some, or all, may have been removed since the last tick."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from dq.cli.loading.contracts import Loaded, load
from dq.cli.world.environment import is_root
from dq.contracts.shared.outcome import Unreadable
from dq.dataquality.delivery.key_ownership import KeyHolder, holders
from dq.store.engine import Store


def load_watched(
    store: Store,
    paths: Sequence[Path],
    rests: Callable[[Path, bytes], str | None],
    note: Callable[[str], None],
) -> Loaded:
    """The contracts at or below the paths; a path whose contracts were watched may hold none any more.

    Raises Unreadable as `load` does, also where the registry itself is gone: a mount that is lost removes
    nothing.
    """
    try:
        return load(paths, note, rests)
    except Unreadable:
        with store.read() as tx:
            known = holders(tx)
        emptied = [path for path in paths if _was_emptied(path, known)]
        if not emptied:
            raise
    for path in emptied:
        note(f"{path} holds no contract any more.")
    left = [path for path in paths if path not in emptied]
    return load(left, note, rests) if left else Loaded([], [])


def _was_emptied(path: Path, known: Mapping[str, KeyHolder]) -> bool:
    real = Path(os.path.realpath(path))
    registries = [
        Path(one.registry)
        for one in known.values()
        if one.registry is not None and (Path(one.registry) / one.file).is_relative_to(real)
    ]
    if not registries or not all(is_root(one) for one in registries):
        return False
    try:
        load([path], lambda _: None)
    except Unreadable:
        # One that is there and cannot be read may hold anything.
        return not os.path.lexists(path) or os.access(path, os.R_OK | os.X_OK)
    return False
