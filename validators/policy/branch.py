"""Policy changes of a branch, and the stricter of two results: by the base's policy and by the branch's."""

from __future__ import annotations

import json
import os
import posixpath
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from dq.contracts.access.files import POLICY_FILE, FileRef
from dq.contracts.model import strip_source_maps
from dq.contracts.outcome import Finding, Location, Severity
from dq.contracts.yaml import source
from dq.validators.compat.classified_change import Comparison, build_comparison
from dq.validators.compat.comparison import read_version
from dq.validators.git.base import (
    BaseCommit,
    Content,
    checked_out_content,
    is_same_content,
    path_below,
    policy_files,
)
from dq.validators.git.repository import EntryKind, TreeEntry, entry_content
from dq.validators.policy.policy import EXPIRED, UNUSED, Policy
from dq.validators.rule import Rule

# Findings about policy changes of a branch, for its reviewers.

_MAX_DIFFERENCES = 10
_MAX_TEXT = 80

ID = "policy-changed"
_CHANGE_HINT = (
    "Ask the policy owners for approval. Until it is merged, the stricter of this and the base's "
    "policy applies."
)


@dataclass(frozen=True, slots=True)
class ChangedPolicy:
    """Policy that differs between the base and the work tree; None if it does not exist on one side."""

    file: str
    before: bytes | None
    after: Content | None


def changed_policies(base: BaseCommit) -> list[ChangedPolicy]:
    """Return the policies that the work tree adds, changes or removes, below and above the registry's root.

    Content that the tip of the reference already has is not a change by the branch.
    """
    prefix = path_below(base.root, base.repo.top) or "."
    base_policies, tip_policies = _policies(base.base_files, prefix), _policies(base.tip_files, prefix)
    submodules = tuple(
        f"{name}/" for name, entry in base.head_files.items() if entry.kind is EntryKind.SUBMODULE
    )
    names = policy_files(base.root)
    current = {name for name in names if not posixpath.normpath(f"{prefix}/{name}").startswith(submodules)}
    above = ["../" * steps + POLICY_FILE for steps in range(len(PurePosixPath(prefix).parts) + 1)]
    current |= {name for name in above if os.path.lexists(base.root / name)}
    changed: list[ChangedPolicy] = []
    for name in sorted(base_policies.keys() | current):
        new = checked_out_content(_file(base.root, name)) if name in current else None
        entries = [policies.get(name) for policies in (base_policies, tip_policies)]
        if not any(is_same_content(new, entry) if new is not None else entry is None for entry in entries):
            changed.append(ChangedPolicy(name, entry_content(base.repo, base_policies.get(name)), new))
    return changed


def _file(root: Path, name: str) -> FileRef:
    """Return a policy file below the root or in a folder above it; file access only allows paths below a
    root.
    """
    steps = name.count("../")
    return FileRef(root, name) if not steps else FileRef(root.parents[steps - 1], POLICY_FILE)


def _policies(files: Mapping[str, TreeEntry], prefix: str) -> dict[str, TreeEntry]:
    return {posixpath.relpath(name, prefix): entry for name, entry in files.items() if _is_policy(name)}


def _is_policy(name: str) -> bool:
    path = PurePosixPath(name)
    return path.name == POLICY_FILE and not any(part.startswith(".") and part != ".." for part in path.parts)


def change_severity(rule: Rule, policies: Iterable[Policy]) -> Severity | None:
    """Return the severity of a policy change: the highest of the policies, or None if all turn it off.

    Profiles do not raise it, so that a strict policy can be changed without being turned off first.
    """
    own = [policy.settings.get(rule.id) for policy in policies]
    severities = [
        setting.severity if setting is not None and setting.own_severity else rule.severity for setting in own
    ]
    return max(
        (severity for severity in severities if severity is not None),
        key=lambda severity: severity.rank,
        default=None,
    )


def policy_findings(changes: Iterable[ChangedPolicy], severity: Severity) -> list[Finding]:
    """Return one finding per policy that is added, changed, moved or removed; text-only edits give none."""
    all_changes = list(changes)
    removed = {other.before: other.file for other in all_changes if other.after is None}
    added = {other.after for other in all_changes if other.before is None}
    findings: list[Finding] = []
    for change in all_changes:
        line = 1
        if change.after is None:
            if change.before in added:
                continue
            what = f"the branch removes the policy of {_folder(change.file)}."
        elif not isinstance(change.after, bytes):
            what = f"the branch replaces the policy of {_folder(change.file)}: {change.after.message}"
        elif change.before is None and change.after in removed:
            what = f"the branch moves the policy from {removed[change.after]} to {change.file}."
        else:
            differences = list(_differences(_read(change.before or b""), _read(change.after)))
            if change.before is not None and not differences:
                continue
            does = "adds a policy for" if change.before is None else "changes the policy of"
            suffix = (
                [f"and {len(differences) - _MAX_DIFFERENCES} more"]
                if len(differences) > _MAX_DIFFERENCES
                else []
            )
            details = "; ".join([*differences[:_MAX_DIFFERENCES], *suffix]) or "it equals the defaults"
            what = f"the branch {does} {_folder(change.file)}: {details}."
            line = _first_difference(change.before or b"", change.after)
        findings.append(Finding(ID, severity, what, _CHANGE_HINT, Location(change.file, line)))
    return findings


def _folder(file: str) -> str:
    return posixpath.dirname(file) or "the registry"


def _first_difference(before: bytes, after: bytes) -> int:
    old, new = before.splitlines(), after.splitlines()
    same = (index for index, line in enumerate(new) if index >= len(old) or line != old[index])
    return next(same, max(len(new) - 1, 0)) + 1


def _read(data: bytes) -> Mapping[str, Any]:
    """Return the content of a policy as plain values, or its text if it cannot be parsed."""
    top, wrong = source.read(data, "")
    if top is not None:
        values = strip_source_maps(top)
        return values if isinstance(values, dict) else {}
    return {"text": data.decode("utf-8", "replace")} if wrong and data.strip() else {}


def _differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    for key in sorted({*before, *after}, key=str):
        old, new = before.get(key), after.get(key)
        if old == new:
            continue
        if isinstance(old or {}, dict) and isinstance(new or {}, dict):
            yield from _of_mapping(str(key), old or {}, new or {})
        elif isinstance(old or [], list) and isinstance(new or [], list):
            yield from (f"{key} without {_short(item)}" for item in old or [] if item not in (new or []))
            yield from (f"{key} with {_short(item)}" for item in new or [] if item not in (old or []))
        else:
            yield f"{key} {_motion(old, new)}"


def _of_mapping(key: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    for name in sorted({*old, *new}, key=str):
        if old.get(name) != new.get(name):
            yield f"{key}.{name} {_motion(old.get(name), new.get(name))}"


def _motion(old: object, new: object) -> str:
    if old is None or new is None:
        return f"removed: {_short(old)}" if new is None else f"added: {_short(new)}"
    return f"{_short(old)} → {_short(new)}"


def _short(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}…"


# Results of a branch by the base's policy and by its own: the stricter one per location.

T = TypeVar("T")


def stricter_findings(base: Iterable[Finding], branch: Iterable[Finding]) -> list[Finding]:
    """Return the findings of either, at the higher severity; a finding stays if only one policy waives it.

    Findings about waivers of the base are left out, because the branch may fix them.
    """
    base_findings = [finding for finding in base if finding.rule not in (EXPIRED, UNUSED)]
    place = attrgetter("rule", "at", "path", "contract")
    return _union(base_findings, list(branch), place, lambda finding: finding.severity.rank)


def stricter_changes(base: Comparison, branch: Comparison) -> Comparison:
    """Return the changes of either, at the worse verdict, with the higher of the required versions."""
    key = attrgetter("fingerprint", "against", "at")
    changes = _union(base.changes, branch.changes, key, lambda item: item.verdict.rank)
    versions = [
        version for version in (base.required_version, branch.required_version) if version is not None
    ]
    return build_comparison(
        changes, max(versions, key=lambda version: read_version(version) or (0, 0, 0), default=None)
    )


def _union(
    first: Sequence[T], second: Sequence[T], key: Callable[[T], Hashable], harm: Callable[[T], int]
) -> list[T]:
    groups: dict[Hashable, tuple[list[T], list[T]]] = defaultdict(lambda: ([], []))
    for index, items in enumerate((first, second)):
        for item in items:
            groups[key(item)][index].append(item)
    return [
        entry
        for pair in groups.values()
        for entry in max(pair, key=lambda group: max(map(harm, group), default=-1))
    ]
