"""Policy of a registry: rules, severities and arguments per contract, and waivers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from fractions import Fraction
from typing import Literal

from dq.contracts.access.discovery import matches_path
from dq.contracts.outcome import Finding, Location, Severity
from dq.validators.rule import Rule

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
    """Yield a finding for each expired waiver, and for each that no finding of the contracts needed."""
    for waiver in waivers:
        subject = f"the waiver of {waiver.rule} for {waiver.contract!r}"
        if waiver.expires < today:
            granted_by = f"It was granted by {waiver.approved_by}: {waiver.reason}"
            message = f"{subject} expired on {waiver.expires}. {granted_by}"
            hint = "Fix the contract and remove the waiver, or have it renewed."
            yield Finding(EXPIRED, Severity.ERROR, message, hint, waiver.location, contract=waiver.contract)
        elif waiver.key not in used_keys and waiver.contract in contracts:
            message = f"{subject} is unused: no such finding at {waiver.path or 'the root'!r}."
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
