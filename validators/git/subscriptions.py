"""The subscriptions of a registry at the base of a pull request, and which of them a branch changes."""

from __future__ import annotations

from collections.abc import Mapping

from dq.contracts.access.discovery import SUBSCRIPTIONS, called_contract
from dq.contracts.subscriptions.subscription import Subscription, read
from dq.validators.git import tree, work_tree
from dq.validators.git.base import Base
from dq.validators.git.tree import TreeEntry
from dq.validators.git.work_tree import Content


def at_base(found: Base) -> tuple[list[Subscription], list[str]]:
    """Who consumes what, as the base says, and the files there that do not tell.

    The latter stop nobody: a change is judged alike whoever subscribed.
    """
    every: list[Subscription] = []
    unclear: list[str] = []
    for file, data in tree.contents(found.repo, _files(found)):
        made, wrong = read(data or b"", file)
        if made is None or any(one.severity.blocks for one in wrong):
            unclear.append(file)
        else:
            every.append(made)
    return every, unclear


def changed(found: Base, present: Mapping[str, Content]) -> frozenset[str]:
    """Which of these files of the work tree are not as they were at the base."""
    then = _files(found)
    return frozenset(file for file, data in present.items() if not work_tree.same(data, then.get(file)))


def _files(found: Base) -> dict[str, TreeEntry]:
    return {file: one for file, one in found.below(SUBSCRIPTIONS).items() if not called_contract(file)}
