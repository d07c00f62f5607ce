"""Waivers: findings that someone has accepted, by name, with a reason and until a date."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import date

from dq.contracts.shared.outcome import Finding, Location, Severity

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
