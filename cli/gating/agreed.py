"""The subscriptions that may be acted on, for commands that give access by them."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from dq.cli.gating.gate import policy_of, written
from dq.cli.gating.subscriptions import gathered
from dq.cli.loading.subscriptions import AgreedSubscriptions
from dq.cli.world.environment import World
from dq.contracts.access.files import FileRefused
from dq.contracts.subscriptions import Subscription, read
from dq.validators.lint import rules_of
from dq.validators.lint.linter import Gate
from dq.validators.lint.run import judge_subscriptions

EXPIRED = "subscription-expired"


def agreed(world: World, root: Path, ids: Collection[str]) -> AgreedSubscriptions:
    """The subscriptions of a registry as the gate sees them now; `ids` are those of its contracts."""
    rules, today = rules_of(), world.now().date()
    given = gathered(root, [root])(ids)
    judged = judge_subscriptions(Gate(rules, policy_of(written(root, None), rules), today), given, ids)
    # A policy may make an error of it; it is acted on all the same.
    findings = tuple(one for one in judged if one.severity.blocks and one.rule != EXPIRED)
    wrong = {one.at.file for one in findings}
    found: list[Subscription] = []
    unclear: set[str] = set()
    for file, data in given.files.items():
        made, form = (None, []) if isinstance(data, FileRefused) else read(data, file)
        typed = made is not None and not any(one.severity.blocks for one in form)
        # One that is over is over, whatever else is wrong with it.
        if made is not None and typed and (file not in wrong or made.over(today)):
            found.append(made)
        else:
            unclear.add(file)
    return AgreedSubscriptions(tuple(found), findings, frozenset(unclear))
