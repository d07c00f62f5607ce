"""What a branch does to the policies of a registry, and the stricter of two judgements of it."""

from __future__ import annotations

import json
import os
import posixpath
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import lru_cache
from operator import attrgetter
from pathlib import Path, PurePosixPath
from typing import Any, Literal, TypeVar

from dq.contracts.access.files import POLICY_FILE, Found
from dq.contracts.model import plain
from dq.contracts.outcome import Finding, Location, Severity
from dq.contracts.yaml import source
from dq.validators.compat.classified_change import Comparison, comparison
from dq.validators.compat.comparison import read_version
from dq.validators.git.base import (
    Base,
    Content,
    checked_out_content,
    is_same_content,
    path_below,
    policy_files,
)
from dq.validators.git.repository import EntryKind, TreeEntry, entry_content
from dq.validators.rule import Rule

# What a branch does to the policies of a registry, as findings: whoever merges it should know.

_MOST = 10
_LONGEST = 80

ID = "policy-changed"
_MEND = "Let those who own the policy agree: until it is merged, the stricter of this and the base's judges."


@dataclass(frozen=True, slots=True)
class ChangedPolicy:
    """A policy that differs between the base and the work tree; None where there is none on one side."""

    file: str
    before: bytes | None
    after: Content | None


def changed_policies(found: Base) -> list[ChangedPolicy]:
    """The policies that the work tree adds, changes or removes: below the registry's root, and above it.

    What the tip of the reference has too is nothing that the branch does.
    """
    way = path_below(found.root, found.repo.top) or "."
    then, last = _policies(found.then, way), _policies(found.last, way)
    theirs = tuple(f"{name}/" for name, one in found.head.items() if one.kind is EntryKind.SUBMODULE)
    names = policy_files(found.root)
    now = {name for name in names if not posixpath.normpath(f"{way}/{name}").startswith(theirs)}
    above = ["../" * steps + POLICY_FILE for steps in range(len(PurePosixPath(way).parts) + 1)]
    now |= {name for name in above if os.path.lexists(found.root / name)}
    made: list[ChangedPolicy] = []
    for name in sorted(then.keys() | now):
        new = checked_out_content(_file(found.root, name)) if name in now else None
        known = [one.get(name) for one in (then, last)]
        if not any(is_same_content(new, one) if new is not None else one is None for one in known):
            made.append(ChangedPolicy(name, entry_content(found.repo, then.get(name)), new))
    return made


def _file(root: Path, name: str) -> Found:
    """A policy below the root, or in a folder above it: the door leads only down."""
    steps = name.count("../")
    return Found(root, name) if not steps else Found(root.parents[steps - 1], POLICY_FILE)


def _policies(files: Mapping[str, TreeEntry], way: str) -> dict[str, TreeEntry]:
    return {posixpath.relpath(name, way): one for name, one in files.items() if _is_policy(name)}


def _is_policy(name: str) -> bool:
    path = PurePosixPath(name)
    return path.name == POLICY_FILE and not any(part.startswith(".") and part != ".." for part in path.parts)


def change_severity(rule: Rule, policies: Iterable[Policy]) -> Severity | None:
    """How much the change matters: the most that any of the policies says.

    No profile lifts it: a strict policy must be able to change without being turned off first.
    """
    own = [policy.settings.get(rule.id) for policy in policies]
    said = [one.severity if one is not None and one.own_severity else rule.severity for one in own]
    return max((one for one in said if one is not None), key=lambda one: one.rank, default=None)


def policy_findings(changes: Iterable[ChangedPolicy], severity: Severity) -> list[Finding]:
    """One finding for each policy that is added, changed, moved or removed; none where only its text is."""
    listed = list(changes)
    gone = {one.before: one.file for one in listed if one.after is None}
    came = {one.after for one in listed if one.before is None}
    found: list[Finding] = []
    for one in listed:
        line = 1
        if one.after is None:
            if one.before in came:
                continue
            what = f"the branch removes the policy of {_folder(one.file)}."
        elif not isinstance(one.after, bytes):
            what = f"the branch exchanges the policy of {_folder(one.file)}: {one.after.message}"
        elif one.before is None and one.after in gone:
            what = f"the branch moves the policy from {gone[one.after]} to {one.file}."
        else:
            differences = list(_differences(_read(one.before or b""), _read(one.after)))
            if one.before is not None and not differences:
                continue
            does = "adds a policy for" if one.before is None else "changes the policy of"
            more = [f"and {len(differences) - _MOST} more"] if len(differences) > _MOST else []
            said = "; ".join([*differences[:_MOST], *more]) or "it says what holds without one"
            what = f"the branch {does} {_folder(one.file)}: {said}."
            line = _first_difference(one.before or b"", one.after)
        found.append(Finding(ID, severity, what, _MEND, Location(one.file, line)))
    return found


def _folder(file: str) -> str:
    return posixpath.dirname(file) or "the registry"


def _first_difference(before: bytes, after: bytes) -> int:
    old, new = before.splitlines(), after.splitlines()
    same = (index for index, line in enumerate(new) if index >= len(old) or line != old[index])
    return next(same, max(len(new) - 1, 0)) + 1


def _read(data: bytes) -> Mapping[str, Any]:
    """What a policy says, as plain values; its text where it cannot be understood."""
    top, wrong = source.read(data, "")
    if top is not None:
        made = plain(top)
        return made if isinstance(made, dict) else {}
    return {"text": data.decode("utf-8", "replace")} if wrong and data.strip() else {}


def _differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    for key in sorted({*before, *after}, key=str):
        old, new = before.get(key), after.get(key)
        if old == new:
            continue
        if isinstance(old or {}, dict) and isinstance(new or {}, dict):
            yield from _of_mapping(str(key), old or {}, new or {})
        elif isinstance(old or [], list) and isinstance(new or [], list):
            yield from (f"{key} without {_short(one)}" for one in old or [] if one not in (new or []))
            yield from (f"{key} with {_short(one)}" for one in new or [] if one not in (old or []))
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
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


# Two judgements of one branch, by the base's policy and by its own: the stricter of both, place by place.

T = TypeVar("T")


def stricter_findings(base: Iterable[Finding], branch: Iterable[Finding]) -> list[Finding]:
    """What either finds, at the higher severity: what only one of the two waives stays.

    What is wrong with the waivers of the base is left out: the branch may be there to mend that.
    """
    kept = [one for one in base if one.rule not in (EXPIRED, UNUSED)]
    place = attrgetter("rule", "at", "path", "contract")
    return _union(kept, list(branch), place, lambda one: one.severity.rank)


def stricter_changes(base: Comparison, branch: Comparison) -> Comparison:
    """What either judges, at the worse verdict, and the higher of the two versions that are asked for."""
    change = attrgetter("fingerprint", "against", "at")
    both = _union(base.changes, branch.changes, change, lambda one: one.verdict.rank)
    asked = [one for one in (base.required_version, branch.required_version) if one is not None]
    return comparison(both, max(asked, key=lambda one: read_version(one) or (0, 0, 0), default=None))


def _union(
    first: Sequence[T], second: Sequence[T], key: Callable[[T], Hashable], harm: Callable[[T], int]
) -> list[T]:
    groups: dict[Hashable, tuple[list[T], list[T]]] = defaultdict(lambda: ([], []))
    for index, items in enumerate((first, second)):
        for one in items:
            groups[key(one)][index].append(one)
    return [
        one
        for pair in groups.values()
        for one in max(pair, key=lambda ones: max(map(harm, ones), default=-1))
    ]


# Waivers: findings that someone has accepted, by name, with a reason and until a date.

EXPIRED = "waiver-expired"
UNUSED = "waiver-unused"


@dataclass(frozen=True, slots=True)
class PolicyWaiver:
    """One accepted finding: of this rule, in this contract, at exactly this path. `at` is in the policy."""

    rule: str
    contract: str
    path: str
    reason: str
    by: str
    expires: date
    at: Location

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
    """The findings that nobody has waived, and what is wrong with the waivers.

    Only waivers of `rules` are looked at: those whose findings are handed in. An expired waiver waives
    nothing and is an error of its own; its last day is `expires`. One that waives nothing is a warning,
    when its contract is among the ids of the contracts that were read.
    """
    asked = [one for one in waivers if one.rule in rules]
    valid = {one.key for one in asked if one.expires >= today}
    used: set[tuple[str, str, str]] = set()
    left: list[Finding] = []
    for finding in findings:
        key = (finding.rule, finding.contract, finding.path)
        if key in valid:
            used.add(key)
        else:
            left.append(finding)
    return [*left, *_wrong(asked, used, contracts, today)]


def _wrong(
    waivers: list[PolicyWaiver], used: set[tuple[str, str, str]], contracts: Collection[str], today: date
) -> Iterator[Finding]:
    for one in waivers:
        what = f"the waiver of {one.rule} for {one.contract!r}"
        if one.expires < today:
            message = f"{what} ended on {one.expires}. It was given by {one.by}: {one.reason}"
            mend = "Mend the contract and remove the waiver, or have it given again."
            yield Finding(EXPIRED, Severity.ERROR, message, mend, one.at, contract=one.contract)
        elif one.key not in used and one.contract in contracts:
            message = f"{what} waives nothing: no such finding at {one.path or 'the root'!r}."
            yield Finding(UNUSED, Severity.WARNING, message, "Remove it.", one.at, contract=one.contract)


# The policy of a registry: which rules hold, at which severity, with which arguments, for which contracts.
#
# It is read from `dq-policy.yaml` (see `file.py`); docs/reference/policy.md is the user's page.

Profile = Literal["default", "strict"]

# Profile -> what it makes of a rule's own severity. What is absent stays.
PROFILES: dict[Profile, dict[Severity, Severity]] = {
    "default": {},
    "strict": {Severity.INFO: Severity.WARNING, Severity.WARNING: Severity.ERROR},
}

# What is about the standard, and not sure, is a warning at most.
_OF_DOUBT = {Severity.ERROR: Severity.WARNING, Severity.CRITICAL: Severity.WARNING}


@dataclass(frozen=True, slots=True)
class RuleSetting:
    """What a policy says about one rule. Without `own_severity` the profile's stays."""

    severity: Severity | None
    arguments: Mapping[str, object] = field(default_factory=dict)
    own_severity: bool = True

    def over(self, below: RuleSetting | None) -> RuleSetting:
        """This setting, and the other one's where this one says nothing."""
        if below is None:
            return self
        arguments = {**below.arguments, **self.arguments}
        if self.own_severity:
            return RuleSetting(self.severity, arguments)
        return RuleSetting(below.severity, arguments, below.own_severity)


@dataclass(frozen=True, slots=True)
class EnabledRule:
    """A rule that is on, with the policy's severity of its faults and of its doubts, and its arguments."""

    rule: Rule
    severity: Severity
    doubt: Severity
    arguments: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Section:
    """What holds for some contracts: those below a path, of a domain, or both."""

    path: str | None
    domain: str | None
    profile: Profile | None
    settings: Mapping[str, RuleSetting]

    def covers(self, file: str, domain: str | None) -> bool:
        """Whether it speaks about the contract in this file, named relative to the registry's root."""
        if self.domain is not None and self.domain != domain:
            return False
        return self.path is None or fits(self.path, file)


@dataclass(frozen=True, slots=True)
class Policy:
    """A profile, what differs from it by rule id, sections for some contracts, own rules and waivers.

    `schemas` are JSON Schemas of custom properties by level, see `custom_schemas.py`. `registry` is what the
    registry is called in catalogs, "" where the policy does not say. `servers` are names of servers by
    environment and contract. `unusable_schemas` are findings about schemas that are not used: the contracts
    are judged by the rest of the policy.
    """

    profile: Profile = "default"
    settings: Mapping[str, RuleSetting] = field(default_factory=dict)
    sections: tuple[Section, ...] = ()
    own: Mapping[str, Rule] = field(default_factory=dict)
    waivers: tuple[PolicyWaiver, ...] = ()
    schemas: Mapping[str, object] = field(default_factory=dict)
    registry: str = ""
    servers: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    unusable_schemas: tuple[Finding, ...] = ()

    def severity(self, rule: Rule, *, doubt: bool = False) -> Severity | None:
        """How much the rule's fault, or a doubt of it, matters here; None when the rule is off."""
        own = self.settings.get(rule.id)
        if own is not None and own.own_severity:
            return own.severity
        if rule.wish and own is None and self.profile == "default":
            return None
        by_itself = _OF_DOUBT.get(rule.severity, rule.severity) if doubt else rule.severity
        return PROFILES[self.profile].get(by_itself, by_itself)

    def enabled(self, rules: Iterable[Rule]) -> list[EnabledRule]:
        """Those of the rules that are on, in their order."""
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

    def covering(self, file: str, domain: str | None) -> tuple[int, ...]:
        """Which sections speak about a contract, in their order."""
        return tuple(index for index, section in enumerate(self.sections) if section.covers(file, domain))

    def narrowed(self, sections: tuple[int, ...]) -> Policy:
        """What holds where these sections do: a later one wins over those before it."""
        profile, settings = self.profile, dict(self.settings)
        for section in (self.sections[index] for index in sections):
            profile = section.profile or profile
            for id_, setting in section.settings.items():
                settings[id_] = setting.over(settings.get(id_))
        return Policy(profile, settings)


DEFAULT = Policy()


def fits(pattern: str, file: str) -> bool:
    """Whether a path with `*`, `?` and `**` names a file; every other sign stands for itself.

    In time of length times length: as a regular expression, twenty stars could hold up the gate for ever.
    """
    ends = {0}
    for part in _parts(pattern):
        ends = {end for start in ends for end in _ends(part, file, start)}
    return len(file) in ends


@lru_cache(256)
def _parts(pattern: str) -> tuple[str, ...]:
    return tuple(part for part in re.split(r"(\*\*/|\*\*|\*|\?)", pattern) if part)


def _ends(part: str, file: str, start: int) -> Iterable[int]:
    """Where one part of a pattern may end that begins there."""
    slash = file.find("/", start)
    if part == "**":
        return range(start, len(file) + 1)
    if part == "**/":
        return [start, *(index + 1 for index in range(start, len(file)) if file[index] == "/")]
    if part == "*":
        return range(start, (len(file) if slash < 0 else slash) + 1)
    if part == "?":
        return [start + 1] if start < len(file) and start != slash else []
    return [start + len(part)] if file.startswith(part, start) else []
