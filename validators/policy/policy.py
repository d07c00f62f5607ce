"""The policy of a registry: rules with severity and arguments, for which contracts; and waivers."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import lru_cache
from typing import Literal

from dq.contracts.shared.outcome import Finding, Location, Severity
from dq.validators.rule import Rule

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
