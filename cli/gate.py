"""What the gate commands share: the rules on the shelf, the policy, and the base to compare with."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from dq.cli.world import POLICY_FILE, World, processors, registry_root
from dq.contracts.errors import Unreadable, UsageError
from dq.contracts.files import Absent, Refused, exists, read
from dq.validators.lint import Linted, Rules, lint_files, lint_paths, rules_of
from dq.validators.policy import DEFAULT, Policy

if TYPE_CHECKING:
    from dq.validators.base import Base
    from dq.validators.compat import Comparison, Mode


@dataclass(frozen=True, slots=True)
class Gated:
    """The findings of a run, and with a base the judged changes, which are among the findings too."""

    linted: Linted
    comparison: Comparison | None = None


def judge(world: World, paths: list[Path], policy_file: Path | None = None) -> Linted:
    """Everything that is wrong with the contracts at these paths.

    A policy that cannot be understood is a mistake of configuration: what a gate without its policy says
    is worth nothing. Raises UsageError for it, with every finding.
    """
    rules = rules_of()
    root = registry_root(paths[0])
    policy = _policy(_written(root, policy_file), rules)
    return lint_paths(
        paths, root=root, rules=rules, policy=policy, today=world.now().date(), processes=processors()
    )


def compared(
    world: World, paths: list[Path], ref: str, mode: Mode | None = None, policy_file: Path | None = None
) -> Gated:
    """Everything that is wrong with the contracts that differ from the base, and whom the changes break.

    Only those contracts are read. Policy, waivers and subscriptions are the base's, so that a branch
    cannot weaken its own gate; the branch's policy must be understandable all the same. Raises Unreadable
    for a base that cannot be read, with the command that mends it.
    """
    from dq.validators.base import base, compare_with
    from dq.validators.compat import Terms, Waiver, findings

    rules, today = rules_of(), world.now().date()
    root = registry_root(paths[0])
    _policy(_written(root, policy_file), rules)
    found = base(root, ref)
    policy = _policy(_written(root, policy_file) if policy_file else _at(found), rules)
    comparison = compare_with(
        found,
        Terms(
            today,
            mode=mode,
            waivers=tuple(
                Waiver(one.rule, one.contract, one.path, one.reason, one.by, one.expires)
                for one in policy.waivers
            ),
            subscriptions=tuple(found.subscriptions()),
        ),
    )
    files = {file: _content(file, root) for file in found.changed().files}
    linted = lint_files(files.items(), rules=rules, policy=policy, today=today)
    both = sorted(
        [*linted.findings, *findings(comparison, today)], key=lambda one: (one.at, one.rule, one.path)
    )
    sources = {file: data for file, data in files.items() if isinstance(data, bytes)}
    return Gated(replace(linted, findings=tuple(both), sources=sources), comparison)


def _content(file: str, root: Path) -> bytes | Refused:
    try:
        return read(file, root=root)
    except Refused as refused:
        return refused


def _written(root: Path, file: Path | None) -> tuple[str, bytes] | None:
    """The policy as it stands on disk, with the name that messages give it; None when there is none."""
    if file is None:
        return (POLICY_FILE, read(POLICY_FILE, root=root)) if exists(POLICY_FILE, root) else None
    name = str(file.relative_to(root) if file.is_relative_to(root) else file)
    try:
        return name, read(file)
    except Absent as error:
        raise Unreadable(f"{file} does not exist.", "Check the path given as --policy.") from error


def _at(found: Base) -> tuple[str, bytes] | None:
    """The policy as it stands at the base."""
    data = found.read(POLICY_FILE)
    return None if data is None else (f"{POLICY_FILE} at the base", data)


def _policy(written: tuple[str, bytes] | None, rules: Rules) -> Policy:
    if written is None:
        return DEFAULT
    # Imported here: many registries have no policy, and its forms take time to make.
    from dq.validators.policy_file import read

    name, data = written
    policy, wrong = read(data, name, rules, _rules_of_changes() if b"waivers" in data else ())
    if wrong:
        raise UsageError("the policy cannot be understood:", details=[str(one) for one in wrong])
    return policy


def _rules_of_changes() -> Collection[str]:
    """The rules of compatibility, which only a waiver can name; all that judges changes comes with them."""
    from dq.validators.compat.rules import RULES

    return RULES
