"""Which subscriptions a run of the gate judges, with the contracts that they name."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from dq.cli.loading.subscriptions import (
    Content,
    contents,
    ids_in,
    named_contracts,
)
from dq.contracts.access.discovery import SUBSCRIPTIONS, called_contract
from dq.contracts.access.files import POLICY_FILE
from dq.validators.lint.run import Gather, SubscriptionFiles

if TYPE_CHECKING:
    from dq.validators.git.base import Base


def split(paths: list[Path], root: Path) -> tuple[list[Path], list[Path]]:
    """The named paths that are of contracts, and those that are subscriptions, or folders of them.

    The registry's policy is neither: a shell names it with the contracts beside it, and it is read anyway.
    """
    top = Path(os.path.realpath(root))
    below = top / SUBSCRIPTIONS
    ours = [path for path in paths if _whole(path).is_relative_to(below) and not called_contract(path.name)]
    return [path for path in paths if path not in ours and _whole(path) != top / POLICY_FILE], ours


def gathered(root: Path, paths: list[Path]) -> Gather:
    """The subscriptions of the registry at or below the paths, and those of the contracts that were read."""

    def gather(ids: Collection[str]) -> SubscriptionFiles:
        files = contents(root)
        if not files:
            return SubscriptionFiles()
        top = Path(os.path.realpath(root))
        named = [_whole(path) for path in paths]
        told = {name for name in files if any((top / name).is_relative_to(path) for path in named)}
        told |= {name for name, data in files.items() if name not in told and _names_one(name, data, ids)}
        return _judged(root, files, told)

    return gather


def changed(root: Path, found: Base) -> Gather:
    """The subscriptions that the branch adds or changes."""

    from dq.validators.git.base_registry import changed as by_branch
    from dq.validators.git.base_registry import contracts_at_base

    def gather(_: Collection[str]) -> SubscriptionFiles:
        files = contents(root)
        told = by_branch(found, files)
        return replace(
            _judged(root, files, told), base_contracts=contracts_at_base(found, ids_in(files, told))
        )

    return gather


def _judged(root: Path, files: Mapping[str, Content], told: Collection[str]) -> SubscriptionFiles:
    """These files, of which some are told of, with the contracts that those name."""
    if not told:
        return SubscriptionFiles()
    named = named_contracts(root, ids_in(files, told))
    return SubscriptionFiles(files, frozenset(told), named.contracts, named.unclear)


def _names_one(name: str, data: Content, ids: Collection[str]) -> bool:
    if not isinstance(data, bytes) or not any(
        one.encode("utf-8", "surrogatepass") in data for one in ids if one
    ):
        return False
    return not ids_in({name: data}, [name]).isdisjoint(ids)


def _whole(path: Path) -> Path:
    """A path without links, but for its own name."""
    return Path(os.path.realpath(path.parent)) / path.name if path.name else Path(os.path.realpath(path))
