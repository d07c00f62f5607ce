"""What the gate commands share: the rules on the shelf and the policy at the registry's root."""

from __future__ import annotations

from pathlib import Path

from dq.cli.world import POLICY_FILE, World, processors, registry_root
from dq.contracts.errors import Unreadable, UsageError
from dq.contracts.outcome import Finding
from dq.validators.lint import Linted, Rules, lint_paths, rules_of
from dq.validators.policy import DEFAULT, Policy


def policy_of(root: Path, file: Path | None, rules: Rules) -> tuple[Policy, list[Finding]]:
    """The policy in `file`, else the one at the root, else the built-in one; and what is wrong with it."""
    path = file or root / POLICY_FILE
    if file is None and not path.is_file():
        return DEFAULT, []
    # Imported here: many registries have no policy, and its forms take time to make.
    from dq.validators.policy_file import read

    try:
        return read(
            path.read_bytes(), str(path.relative_to(root) if path.is_relative_to(root) else path), rules
        )
    except OSError as error:
        raise Unreadable(
            f"{path} cannot be read: {error.strerror}.", "Check the path given as --policy."
        ) from error


def judge(world: World, paths: list[Path], policy_file: Path | None = None) -> Linted:
    """Everything that is wrong with the contracts at these paths.

    A policy that cannot be understood is a mistake of configuration: what a gate without its policy says
    is worth nothing. Raises UsageError for it, with every finding.
    """
    rules = rules_of()
    root = registry_root(paths[0])
    policy, wrong = policy_of(root, policy_file, rules)
    if wrong:
        raise UsageError("the policy cannot be understood:\n" + "\n".join(f"    {one}" for one in wrong))
    return lint_paths(
        paths, root=root, rules=rules, policy=policy, today=world.now().date(), processes=processors()
    )
