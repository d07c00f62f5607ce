"""The gate of a registry: the rules, the policy, and the contracts judged by them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from dq.contracts.access.files import POLICY_FILE, Absent, exists
from dq.contracts.access.files import read as read_file
from dq.contracts.shared.outcome import Unreadable, UsageError
from dq.operations.runtime.context import registry_root
from dq.operations.subscriptions import gathered, split
from dq.operations.unenforced import unenforced
from dq.validators.lint import Linted, Rules, lint_paths, rules_of
from dq.validators.policy.policy import DEFAULT, Policy

if TYPE_CHECKING:
    from dq.validators.compat.classified_change import Comparison
    from dq.validators.context import OfficialSchema


# What the gate commands share: the rules on the shelf, the policy, and the base to compare with.


@dataclass(frozen=True, slots=True)
class GateOutcome:
    """The findings of a run, and with a base the judged changes, which are among the findings too.

    `root` is the registry's folder, from which the findings name files.
    """

    linted: Linted
    root: Path
    comparison: Comparison | None = None


def judge(
    paths: list[Path], policy_file: Path | None, today: date, processes: int, *, official: bool = False
) -> Linted:
    """Everything that is wrong with the contracts at these paths, and with who consumes them.

    A policy that cannot be understood is a mistake of configuration: what a gate without its policy says
    is worth nothing. Raises UsageError for it, with every finding. With `official`, the standard's own schema
    judges too; MissingTool is raised where that of a contract's version is not installed.
    """
    rules = rules_of()
    root = registry_root(paths[0])
    policy = policy_of(written(root, policy_file), rules)
    contracts, _ = split(paths, root)
    return lint_paths(
        contracts,
        root=root,
        rules=rules,
        policy=policy,
        today=today,
        processes=processes,
        unenforced=unenforced,
        subscriptions=gathered(root, paths),
        official=official_schema(official),
    )


def official_schema(wanted: bool) -> OfficialSchema | None:
    """The standard's own schema, from its package, where its opinion is wanted."""
    if not wanted:
        return None
    # Imported here: jsonschema takes time to start.
    from dq.validators.official import installed_schema

    return installed_schema()


def written(root: Path, file: Path | None) -> tuple[str, bytes] | None:
    """The policy as it stands on disk, with the name that messages give it; None when there is none."""
    if file is None:
        return (POLICY_FILE, read_file(POLICY_FILE, root=root)) if exists(POLICY_FILE, root) else None
    name = str(file.relative_to(root) if file.is_relative_to(root) else file)
    try:
        return name, read_file(file)
    except Absent as error:
        raise Unreadable(f"{file} does not exist.", "Check the path given as --policy.") from error


def policy_of(written: tuple[str, bytes] | None, rules: Rules) -> Policy:
    """The policy in a named text; the default where there is none. Raises UsageError for its mistakes.

    A schema of custom properties that cannot be used is left out: its finding is one of every run.
    """
    if written is None:
        return DEFAULT
    # Imported here: many registries have no policy, and its forms take time to make.
    from dq.validators.policy.file import read

    name, data = written
    policy, wrong = read(data, name, rules, _rules_of_changes() if b"waivers" in data else ())
    schemas = tuple(one for one in wrong if one.path.startswith("customProperties."))
    others = [one for one in wrong if one not in schemas]
    if others:
        raise UsageError("the policy cannot be understood:", details=[str(one) for one in others])
    return replace(policy, unusable_schemas=schemas) if schemas else policy


def _rules_of_changes() -> Collection[str]:
    """The rules of compatibility, which only a waiver can name; all that judges changes comes with them."""
    from dq.validators.compat.classified_change import RULES

    return RULES
