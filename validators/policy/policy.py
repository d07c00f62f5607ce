"""Policy of a registry, its changes by a branch, and the stricter of two results."""

from __future__ import annotations

import json
import os
import posixpath
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from fractions import Fraction
from operator import attrgetter
from pathlib import Path, PurePosixPath
from typing import Any, Literal, TypeVar

from dq.contracts.access.discovery import matches_path
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


# Waivers: findings that were accepted by a person, with a reason and an expiry date.

EXPIRED = "waiver-expired"
UNUSED = "waiver-unused"


@dataclass(frozen=True, slots=True)
class PolicyWaiver:
    """Accepted finding of a rule in a contract, at exactly this path. `location` is in the policy."""

    rule: str
    contract: str
    path: str
    reason: str
    approved_by: str
    expires: date
    location: Location

    @property
    def key(self) -> tuple[str, str, str]:
        return (self.rule, self.contract, self.path)


def apply_waivers(
    findings: Iterable[Finding],
    waivers: Iterable[PolicyWaiver],
    *,
    rules: Collection[str],
    contracts: Collection[str],
    today: date,
) -> list[Finding]:
    """Return the findings that are not waived, and findings about the waivers.

    Only waivers of `rules` count, i.e. the rules whose findings are given. An expired waiver has no effect
    and is an error; its last valid day is `expires`. An unused waiver is a warning if its contract is in
    `contracts`.
    """
    relevant = [waiver for waiver in waivers if waiver.rule in rules]
    valid = {waiver.key for waiver in relevant if waiver.expires >= today}
    used_keys: set[tuple[str, str, str]] = set()
    remaining: list[Finding] = []
    for finding in findings:
        key = (finding.rule, finding.contract, finding.path)
        if key in valid:
            used_keys.add(key)
        else:
            remaining.append(finding)
    return [*remaining, *_waiver_findings(relevant, used_keys, contracts, today)]


def _waiver_findings(
    waivers: list[PolicyWaiver], used_keys: set[tuple[str, str, str]], contracts: Collection[str], today: date
) -> Iterator[Finding]:
    for waiver in waivers:
        what = f"the waiver of {waiver.rule} for {waiver.contract!r}"
        if waiver.expires < today:
            message = (
                f"{what} expired on {waiver.expires}. It was granted by {waiver.approved_by}: {waiver.reason}"
            )
            hint = "Fix the contract and remove the waiver, or have it renewed."
            yield Finding(EXPIRED, Severity.ERROR, message, hint, waiver.location, contract=waiver.contract)
        elif waiver.key not in used_keys and waiver.contract in contracts:
            message = f"{what} is unused: no such finding at {waiver.path or 'the root'!r}."
            yield Finding(
                UNUSED, Severity.WARNING, message, "Remove it.", waiver.location, contract=waiver.contract
            )


# Policy of a registry: enabled rules, severities and arguments per contract.
#
# It is read from `dq-policy.yaml` (see `file.py`); docs/reference/policy.md is the user's page.

Profile = Literal["default", "strict"]

# Profile -> mapping of a rule's default severity. Severities not listed are unchanged.
PROFILES: dict[Profile, dict[Severity, Severity]] = {
    "default": {},
    "strict": {Severity.INFO: Severity.WARNING, Severity.WARNING: Severity.ERROR},
}

# Violations in doubt about the standard are warnings at most.
_DOUBT_SEVERITY = {Severity.ERROR: Severity.WARNING, Severity.CRITICAL: Severity.WARNING}


@dataclass(frozen=True, slots=True)
class RuleSetting:
    """Settings of a rule in a policy. Without `own_severity` the profile's severity applies."""

    severity: Severity | None
    arguments: Mapping[str, object] = field(default_factory=dict)
    own_severity: bool = True

    def merge_onto(self, base: RuleSetting | None) -> RuleSetting:
        """Return this setting, with missing values taken from `base`."""
        if base is None:
            return self
        arguments = {**base.arguments, **self.arguments}
        if self.own_severity:
            return RuleSetting(self.severity, arguments)
        return RuleSetting(base.severity, arguments, base.own_severity)


@dataclass(frozen=True, slots=True)
class EnabledRule:
    """Enabled rule with the policy's severities of its violations and its doubts, and its arguments."""

    rule: Rule
    severity: Severity
    doubt_severity: Severity
    arguments: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Section:
    """Settings for some contracts: those below a path, of a domain, or both."""

    path: str | None
    domain: str | None
    profile: Profile | None
    settings: Mapping[str, RuleSetting]

    def covers(self, file: str, domain: str | None) -> bool:
        """Return True if the section applies to this file, named relative to the registry's root."""
        if self.domain is not None and self.domain != domain:
            return False
        return self.path is None or matches_path(self.path, file)


@dataclass(frozen=True, slots=True)
class CoverageGoal:
    """Minimum share (0 to 1) of a domain's tables with a contract in force, as `dq discover` counts them.

    `minimum` is that of domains that are not in `domains`, or None. `of_read`: only tables that are read.
    """

    minimum: Fraction | None
    of_read: bool
    domains: Mapping[str, Fraction]

    def minimum_of(self, domain: str) -> Fraction | None:
        """Return the minimum of a domain, or None."""
        return self.domains.get(domain, self.minimum)


@dataclass(frozen=True, slots=True)
class Policy:
    """Profile, deviations from it by rule id, sections for some contracts, custom rules and waivers.

    `schemas` are JSON Schemas of custom properties by level, see `custom_rules.py`. `registry` is the name of
    the registry in catalogs, or "" if the policy has none. `servers` are names of servers by environment and
    contract. `unusable_schemas` are findings about ignored schemas; the rest of the policy still applies.
    `unneeded_changes` is the severity of changes that would break consumers, but affect no subscription.
    """

    profile: Profile = "default"
    settings: Mapping[str, RuleSetting] = field(default_factory=dict)
    sections: tuple[Section, ...] = ()
    own_rules: Mapping[str, Rule] = field(default_factory=dict)
    waivers: tuple[PolicyWaiver, ...] = ()
    schemas: Mapping[str, object] = field(default_factory=dict)
    registry: str = ""
    servers: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    unusable_schemas: tuple[Finding, ...] = ()
    unneeded_changes: Severity = Severity.ERROR
    coverage: CoverageGoal | None = None

    def severity(self, rule: Rule, *, doubt: bool = False) -> Severity | None:
        """Return the severity of the rule's violations, or doubts, in this policy; None if the rule is
        off.
        """
        setting = self.settings.get(rule.id)
        if setting is not None and setting.own_severity:
            return setting.severity
        if rule.opt_in and setting is None and self.profile == "default":
            return None
        default = _DOUBT_SEVERITY.get(rule.severity, rule.severity) if doubt else rule.severity
        return PROFILES[self.profile].get(default, default)

    def enabled(self, rules: Iterable[Rule]) -> list[EnabledRule]:
        """Return the rules that are enabled, in the given order."""
        return [
            EnabledRule(
                rule,
                severity,
                self.severity(rule, doubt=True) or severity,
                self.settings[rule.id].arguments if rule.id in self.settings else {},
            )
            for rule in rules
            if (severity := self.severity(rule)) is not None
        ]

    def matching_sections(self, file: str, domain: str | None) -> tuple[int, ...]:
        """Return the indexes of the sections that apply to a contract, in order."""
        return tuple(index for index, section in enumerate(self.sections) if section.covers(file, domain))

    def for_sections(self, sections: tuple[int, ...]) -> Policy:
        """Return the policy with these sections applied; later sections override earlier ones."""
        profile, settings = self.profile, dict(self.settings)
        for section in (self.sections[index] for index in sections):
            profile = section.profile or profile
            for id_, setting in section.settings.items():
                settings[id_] = setting.merge_onto(settings.get(id_))
        return Policy(profile, settings)


DEFAULT = Policy()
