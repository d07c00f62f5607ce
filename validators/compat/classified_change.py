"""A classified change: its rule, who is affected, the version it requires, and its finding."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import date, timedelta
from enum import StrEnum
from fnmatch import fnmatchcase
from hashlib import sha256
from typing import NamedTuple

from dq.contracts.diff import Change
from dq.contracts.model import Contract
from dq.contracts.outcome import Finding, Location, Severity
from dq.contracts.subscriptions import Subscription
from dq.validators.compat.classification import (
    Bump,
    ChangeClassification,
    Effect,
    Level,
    Mode,
    Verdict,
    required_bump,
    verdict,
)

# TABLE: every rule of the comparison with its message and the simplest non-breaking alternative.
#
# Rule ids are API and never renamed. `classification_table` maps attributes to rules and severities.


class ChangeRule(NamedTuple):
    """Message of a rule about a change, and what to do instead."""

    problem: str
    instead: str


_ADD_COLUMN = "Add a new column, fill both, deprecate the old one, and remove it in the next major version."
_NEXT_MAJOR = (
    "Publish it as the next major version, and keep this one as deprecated until its end of support."
)
_NO_ACTION = "No action required; for information only."
_NOTIFY = "Notify the consumers before the release."
_WRITERS = "Prepare the writers and check the existing data first, then change the contract."
_BUMP = "Use the required version."

# Rules about how a change is announced, not about who is affected.
VERSION_POLICY = frozenset(
    (
        "deprecation-end-missing",
        "deprecation-too-short",
        "version-bump-ok",
        "version-bump-too-small",
        "version-decreased",
        "version-not-bumped",
        "version-not-semver",
    )
)

_ROWS: Mapping[str, tuple[str, str]] = {
    "accept-expired": ("the waiver for this change has expired", "Fix the change, or agree on a new date."),
    "allowed-values-added": ("allowed values added", _WRITERS),
    "allowed-values-changed": ("allowed values replaced", _ADD_COLUMN),
    "allowed-values-narrowed": ("allowed values reduced", _WRITERS),
    "allowed-values-removed": ("allowed values removed", "Keep the list, and add the missing values."),
    "allowed-values-widened": ("allowed values extended with values that consumers do not know", _NOTIFY),
    "base-invalid": (
        "the old contract is unreadable, so this one is treated as new",
        "No action required; it has been fixed.",
    ),
    "base-ref-invalid": ("the base is not a valid commit name", "Use e.g. --base origin/main."),
    "base-unavailable": ("the base cannot be read, so nothing was compared", "Fetch it and run again."),
    "bound-added": ("limit of values added", _WRITERS),
    "bound-relaxed": ("limit of values relaxed", "Keep the limit."),
    "bound-removed": ("limit of values removed", "Keep a limit that is wide enough for new values."),
    "bound-tightened": ("limit of values tightened", _WRITERS),
    "classification-lowered": ("classification lowered", "Have the data owner confirm it."),
    "classification-raised": ("classification raised, so access may be lost", _NOTIFY),
    "column-added-defaulted": ("required column with a default added", _NO_ACTION),
    "column-added-middle": ("column added between others", "Add it at the end."),
    "column-added-optional": ("optional column added", _NO_ACTION),
    "column-added-required": (
        "required column added; existing rows have no value",
        "Add it as optional first.",
    ),
    "column-case-changed": (
        "only the case of the name changed",
        "Keep the name: some readers are case-sensitive.",
    ),
    "column-deprecated": ("column deprecation changed", _NO_ACTION),
    "column-label-changed": ("label changed, but not the name in the data", _NO_ACTION),
    "column-moved": ("column moved to another level", _ADD_COLUMN),
    "column-name-reused": (
        "column name was used for another column before",
        "Give the new column a new name.",
    ),
    "column-removed": (
        "column removed",
        "Keep it with 'deprecated: true', and remove it in the next major version.",
    ),
    "column-removed-deprecated": (
        "column removed after its notice period",
        "Publish the next major version.",
    ),
    "column-renamed": ("column renamed", _ADD_COLUMN),
    "column-reordered": ("columns reordered", "Keep the order; add columns at the end."),
    "contract-added": ("contract added", _NO_ACTION),
    "contract-id-changed": ("id changed, so the old contract is removed", "Keep the id."),
    "contract-id-duplicate": ("two files have this id and major version", "Remove one of the two."),
    "contract-major-added": ("new major version added next to the old one", _NO_ACTION),
    "contract-moved": ("file moved", _NO_ACTION),
    "contract-moved-referenced": (
        "file moved, but another contract refers to its old path",
        "Update the reference.",
    ),
    "contract-name-changed": ("contract renamed", _NO_ACTION),
    "contract-removed": (
        "active contract removed",
        "Keep it as deprecated until its end of support.",
    ),
    "contract-removed-early": (
        "contract removed before its end of support",
        "Keep it until its end of support.",
    ),
    "contract-removed-retired": ("contract removed after its end of support", _NO_ACTION),
    "custom-property-changed": ("custom property changed", _NO_ACTION),
    "deprecation-end-missing": (
        "deprecated without an end of support",
        "Add the service level 'endOfSupport'.",
    ),
    "deprecation-too-short": ("end of support is too near", "Set a later end of support."),
    "description-changed": ("documentation changed", _NO_ACTION),
    "end-date-earlier": ("end date moved earlier", "Keep the date."),
    "no-change": ("nothing changed", _NO_ACTION),
    "owner-changed": ("owners or contacts changed", _NO_ACTION),
    "owner-removed": ("owner removed", "Name the new owner."),
    "partition-added": ("partition key added", _NEXT_MAJOR),
    "partition-granularity-changed": ("partition granularity changed", _NEXT_MAJOR),
    "partition-removed": ("partition key removed", _NEXT_MAJOR),
    "partition-reordered": ("partition keys reordered", _NEXT_MAJOR),
    "partition-type-changed": ("type of a partition key changed", _NEXT_MAJOR),
    "pattern-added": ("pattern added", _WRITERS),
    "pattern-changed": ("pattern changed", "Keep the pattern; dq cannot tell which one is wider."),
    "pattern-removed": ("pattern removed", "Keep the pattern."),
    "price-raised": ("price raised", _NOTIFY),
    "primary-key-added": ("primary key added", _WRITERS),
    "primary-key-changed": ("primary key changed", _NEXT_MAJOR),
    "primary-key-reordered": ("columns of the primary key reordered", _NO_ACTION),
    "quality-added": ("quality rule added", _WRITERS),
    "quality-changed": ("quality rule changed", "Add a second rule, and remove the first one later."),
    "quality-label-changed": ("description of a quality rule changed", _NO_ACTION),
    "quality-relaxed": ("quality rule relaxed", "Keep the threshold."),
    "quality-removed": ("quality rule removed", "Keep the rule."),
    "quality-tightened": ("quality rule tightened", _WRITERS),
    "relationship-added": ("relationship added", _WRITERS),
    "relationship-removed": ("relationship removed", _NOTIFY),
    "required-added": ("column is now required", _WRITERS),
    "required-removed": ("column is no longer required", "Keep 'required: true' and write a default value."),
    "role-removed": ("role removed or changed", "Move its members first."),
    "server-added": ("server added", _NO_ACTION),
    "server-format-changed": ("data format changed", _NEXT_MAJOR),
    "server-label-changed": ("description of the server changed", _NO_ACTION),
    "server-location-changed": (
        "data location changed",
        "Serve both locations until all consumers have moved.",
    ),
    "server-removed": ("server removed", "Keep it until all consumers have moved."),
    "sla-added": ("service level added", _WRITERS),
    "sla-changed": ("service level changed", _NOTIFY),
    "sla-relaxed": ("service level relaxed", "Keep the level."),
    "sla-removed": ("service level removed", "Keep the level."),
    "sla-tightened": ("service level tightened", _WRITERS),
    "status-demoted": (
        "active contract is a draft again",
        "Keep the status, and draft the change as a new major version.",
    ),
    "status-deprecated": ("end of support announced", _NO_ACTION),
    "status-promoted": ("lifecycle status advanced", _NO_ACTION),
    "status-reactivated": ("contract is supported longer than announced", _NO_ACTION),
    "status-retired": ("retired after its end of support", _NO_ACTION),
    "status-retired-early": (
        "retired before its end of support",
        "Deprecate it first, with an end of support.",
    ),
    "table-added": ("table added", _NO_ACTION),
    "table-kind-changed": ("kind of table changed", "Keep the kind, or add the other as a second table."),
    "table-label-changed": ("label changed, but not the name in the catalog", _NO_ACTION),
    "table-removed": ("table removed", "Keep it as deprecated, and remove it in the next major version."),
    "table-renamed": ("table renamed", "Keep the name, or create a view with the old one."),
    "tags-changed": ("tags changed", _NO_ACTION),
    "type-alias": ("type spelled differently, but unchanged", _NO_ACTION),
    "type-changed": ("type changed", _ADD_COLUMN),
    "type-declared": ("type declared", _NO_ACTION),
    "type-format-changed": ("format or meaning of the values changed", _ADD_COLUMN),
    "type-generalized": ("type generalized: new values do not fit the old type", _ADD_COLUMN),
    "type-length-decreased": ("maximum length decreased", _WRITERS),
    "type-length-increased": ("maximum length increased", _NOTIFY),
    "type-narrowed": ("type narrowed: old values do not fit the new type", _ADD_COLUMN),
    "type-specialized": ("type specialized: some old values are no longer valid", _WRITERS),
    "type-timezone-changed": ("time zone of the values changed", _ADD_COLUMN),
    "type-undeclared": ("type no longer declared", "Keep the type."),
    "type-widened": ("type widened: new values may not fit the old type", _NOTIFY),
    "unclassified-change": ("unknown key, so the change cannot be classified", "Review it manually."),
    "unique-added": ("values must now be unique", _WRITERS),
    "unique-removed": ("values may now repeat, and joins may fan out", "Keep 'unique: true'."),
    "version-bump-ok": ("the version announces the change", _NO_ACTION),
    "version-bump-too-small": ("the version does not announce the change", _BUMP),
    "version-decreased": ("version decreased", "Use a higher version."),
    "version-not-bumped": ("contract changed without a new version", _BUMP),
    "version-not-semver": ("version is not of the form 1.2.3", "Write three numbers, e.g. 1.2.3."),
}
RULES: Mapping[str, ChangeRule] = {id_: ChangeRule(*row) for id_, row in _ROWS.items()}


# Subscribers affected by a change, and their contacts.

_MAX_LISTED = 5


@dataclass(frozen=True, slots=True)
class AffectedConsumer:
    """Subscription affected by a change. `contact` and `approvers` may be empty.

    `line` is that of what it uses, or needs. `need` is the clause or time under `needs` that the change takes
    away, or "" if the subscription does not state it.
    """

    team: str
    purpose: str
    contact: str = ""
    approvers: tuple[str, ...] = ()
    file: str = ""
    line: int = 0
    need: str = ""

    @property
    def sentence(self) -> str:
        """Short description: `billing (The invoices; subscriptions/billing.yaml:7; ask #billing)`."""
        ask = ", ".join(dict.fromkeys(filter(None, (self.contact, *self.approvers))))
        need = f"needs {self.need}" if self.need else ""
        parts = (self.purpose.strip().rstrip("."), need, self.at, f"ask {ask}" if ask else "")
        return f"{self.team} ({'; '.join(filter(None, parts))})"

    @property
    def at(self) -> str:
        """File and line of what it uses, or needs."""
        return f"{self.file}:{self.line}"

    def as_dict(self) -> dict[str, object]:
        """Return the consumer as plain values."""
        return {
            "team": self.team,
            "purpose": self.purpose,
            "contact": self.contact or None,
            "approvers": list(self.approvers),
            "subscription": self.file,
            "at": self.at,
            "need": self.need or None,
        }


UseLookup = Callable[[Subscription], tuple[Location, str] | None]
"""Returns the place where a subscription uses the subject of a change, and the lost need; or None."""


def affected_consumers(
    subscriptions: Iterable[Subscription], contract: Contract, use: UseLookup, today: date
) -> tuple[AffectedConsumer, ...]:
    """Return the consumers affected by a change, sorted by team and purpose.

    Only subscriptions to the contract's major version that are active on `today` count.
    """
    consumers = {
        AffectedConsumer(
            subscription.consumer.team,
            subscription.purpose,
            subscription.consumer.contact or "",
            tuple(subscription.approvers),
            subscription.file,
            used[0].line,
            used[1],
        )
        for subscription in subscriptions
        if subscription.identity == contract.identity
        and subscription.is_active(today)
        and (used := use(subscription)) is not None
    }
    return tuple(sorted(consumers, key=lambda consumer: (consumer.team, consumer.purpose, consumer.file)))


def subscribers_sentence(consumers: tuple[AffectedConsumer, ...], *, has_subscriptions: bool) -> str:
    """Return a sentence about the subscribers, with a leading space.

    The sentence that there are none is only returned if `has_subscriptions`, since it is unknown otherwise.
    """
    if not consumers:
        return " No subscription uses it." if has_subscriptions else ""
    names = "; ".join(consumer.sentence for consumer in consumers[:_MAX_LISTED])
    suffix = f"; and {len(consumers) - _MAX_LISTED} more" if len(consumers) > _MAX_LISTED else ""
    return f" Subscribed: {names}{suffix}."


# A classified change: who is affected, the version it requires, and what to do instead.

_WAIVER_DAYS = 30
_AFFECTED = {
    Effect.NEUTRAL: (),
    Effect.WEAKEN: ("consumers",),
    Effect.STRENGTHEN: ("writers", "history"),
    Effect.REPLACE: ("consumers", "writers", "history"),
    Effect.POLICY: ("registry",),
}


class Concern(StrEnum):
    """Concern of a change: compatibility, or whether its version announces it."""

    COMPATIBILITY = "compatibility"
    VERSION_POLICY = "version policy"


@dataclass(frozen=True, slots=True)
class ChangePlace:
    """Subject of a classification: a change of the diff, or a fact about the whole contract."""

    contract: str
    path: str
    attribute: str
    before: object
    after: object
    at: Location
    at_before: Location
    pointer: str = ""

    @staticmethod
    def from_change(change: Change, contract: str) -> ChangePlace:
        """Return the place of a change."""
        before, after = change.source_values()
        locations = (change.location_after, change.location_before, change.pointer)
        return ChangePlace(contract, change.path, change.attribute, before, after, *locations)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassifiedChange(ChangePlace):
    """One change with its classification, for a reviewer.

    `before` and `after` are as written in the files. `at` is the location in the new file, or that of the
    nearest surviving parent of a removed part; `at_before` is the location in the old file. `affected` lists
    the affected parties, the engine that fails and the subscribed teams; `consumers` has the details of the
    latter. If `has_subscriptions`, empty `consumers` means that no team subscribed. `against` is the earlier
    version that a transitive mode compared with. `waived` is the reason given in the waiver.
    `required_version` announces all changes of this contract, if its old version is a semantic version, and
    `own_version` this change alone.
    """

    rule: str
    effect: Effect
    level: Level
    mode: Mode
    verdict: Verdict
    bump: Bump
    note: str
    affected: tuple[str, ...]
    against: str = ""
    waived: str = ""
    required_version: str = ""
    own_version: str = ""
    consumers: tuple[AffectedConsumer, ...] = ()
    has_subscriptions: bool = False

    @property
    def subscribers_text(self) -> str:
        """Sentence about the affected subscribers, with a leading space.

        Empty if consumers are not affected, or if the registry has no subscriptions.
        """
        return subscribers_sentence(self.consumers, has_subscriptions=self.has_subscriptions)

    @property
    def concern(self) -> Concern:
        """Concern of the change: compatibility, or version policy."""
        return Concern.VERSION_POLICY if self.rule in VERSION_POLICY else Concern.COMPATIBILITY

    @property
    def problem(self) -> str:
        """Description of the change, in a sentence."""
        values = _values(self.before, self.after)
        suffix = f" ({values})" if self.attribute and values else ""
        text = f"{self.path or self.contract}: {RULES[self.rule].problem}{suffix}."
        earlier = f" Compared with version {self.against}." if self.against else ""
        return f"{text} {self.note}".strip() + earlier

    @property
    def instead(self) -> str:
        """The simplest non-breaking alternative."""
        return RULES[self.rule].instead

    @property
    def fingerprint(self) -> str:
        """Stable id of the change, independent of the wording: 12 hex digits."""
        parts = (self.rule, self.contract, self.path, self.attribute, repr(self.before), repr(self.after))
        return sha256("\0".join(parts).encode()).hexdigest()[:12]

    def waiver(self, today: date) -> str:
        """Return a waiver for exactly this change, ready to paste into the policy; it expires after 30
        days.
        """
        # Paths may contain brackets and braces, which are YAML syntax.
        scope = f"contract: {json.dumps(self.contract)}, path: {json.dumps(self.path or self.contract)}"
        fields = f"rule: {self.rule}, {scope}"
        until = today + timedelta(days=_WAIVER_DAYS)
        return f'waivers:\n  - {{{fields}, reason: "…", by: "…", expires: {until}}}'

    def as_dict(self) -> dict[str, object]:
        """Return the change as plain values."""
        return {
            "rule": self.rule,
            "contract": self.contract,
            "path": self.path,
            "attribute": self.attribute,
            "before": self.before,
            "after": self.after,
            "effect": self.effect.value,
            "severity": self.level.value,
            "mode": self.mode.value,
            "verdict": self.verdict.value,
            "concern": self.concern.value,
            "affected": list(self.affected),
            "consumers": [consumer.as_dict() for consumer in self.consumers],
            "bump": self.bump.value,
            "message": self.problem,
            "alternative": self.instead,
            "required_version": self.required_version or None,
            "against": self.against,
            "waived": self.waived,
            "at": str(self.at),
            "at_before": str(self.at_before),
            "fingerprint": self.fingerprint,
        }


def _values(before: object, after: object) -> str:
    if after is None:
        return "" if before is None else f"removed: {_short(before)}"
    if before is None:
        return f"added: {_short(after)}"
    return f"{_short(before)} → {_short(after)}"


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 60 else text[:57] + "…"


def classify_change(
    classification: ChangeClassification,
    place: ChangePlace,
    mode: Mode,
    consumers: tuple[AffectedConsumer, ...] = (),
    *,
    has_subscriptions: bool = False,
) -> ClassifiedChange:
    """Return the classified change for a mode. `consumers` are dropped if the effect does not affect them.

    `has_subscriptions`: the registry has subscriptions, so no consumers means that no team subscribed.
    """
    affected = _AFFECTED[classification.effect]
    consumers = consumers if "consumers" in affected else ()
    teams = list(dict.fromkeys(f"consumer {consumer.team}" for consumer in consumers))
    engine = [f"engine {classification.engine}"] if classification.engine else []
    return ClassifiedChange(
        *(getattr(place, field.name) for field in fields(ChangePlace)),
        rule=classification.rule,
        effect=classification.effect,
        level=classification.level,
        mode=mode,
        verdict=verdict(classification.effect, classification.level, mode),
        bump=required_bump(classification, mode),
        note=classification.note,
        affected=(*affected, *engine, *teams),
        consumers=consumers,
        has_subscriptions="consumers" in affected and has_subscriptions,
    )


def downgrade(
    change: ClassifiedChange, bump: Bump, *, waived: str = "", reason: str = ""
) -> ClassifiedChange:
    """Return the change lowered to level info; its effect stays.

    `reason` is added to the note if the verdict would have been worse than ok.
    """
    note = f"{change.note} {reason}".strip() if change.verdict is not Verdict.OK else change.note
    return replace(change, level=Level.INFO, verdict=Verdict.OK, bump=bump, waived=waived, note=note)


@dataclass(frozen=True, slots=True)
class Comparison:
    """All classified changes, worst first, then by path.

    `required_version` is None without a base version.
    """

    changes: tuple[ClassifiedChange, ...]
    required_version: str | None = None

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of all changes; ok if nothing changed."""
        return _worst(self.changes)

    @property
    def verdicts(self) -> dict[Concern, Verdict]:
        """The worst verdict of each concern."""
        return {concern: _worst(self.for_concern(concern)) for concern in Concern}

    def for_concern(self, concern: Concern) -> tuple[ClassifiedChange, ...]:
        """Return the changes of one concern, in order."""
        return tuple(change for change in self.changes if change.concern is concern)

    def as_dict(self) -> dict[str, object]:
        """Return the comparison as plain values."""
        verdicts = {concern.value.replace(" ", "_"): worst.value for concern, worst in self.verdicts.items()}
        return {
            "changes": [change.as_dict() for change in self.changes],
            "verdict": self.verdict.value,
            **verdicts,
            "required_version": self.required_version,
        }


def _worst(changes: Sequence[ClassifiedChange]) -> Verdict:
    return max(
        (change.verdict for change in changes), key=lambda candidate: candidate.rank, default=Verdict.OK
    )


def build_comparison(changes: Sequence[ClassifiedChange], required: str | None) -> Comparison:
    """Return a comparison of the changes in reviewing order: worst first, then by contract and path."""
    ordered = sorted(
        changes, key=lambda change: (-change.verdict.rank, change.contract, change.path, change.rule)
    )
    return Comparison(tuple(ordered), required)


# Waivers: changes that were accepted explicitly, for a limited time.

_WILDCARD_DAYS = timedelta(days=90)


@dataclass(frozen=True, slots=True)
class Waiver:
    """Accepted change. An empty `contract` or `path` means any; a path with `*` must expire within 90
    days.
    """

    rule: str
    contract: str = ""
    path: str = ""
    reason: str = ""
    by: str = ""
    expires: date | None = None

    def covers(self, change: ClassifiedChange, today: date) -> bool:
        """Return True if the waiver matches this change, expired or not."""
        if self.rule != change.rule or self.contract not in ("", change.contract):
            return False
        path = change.path or change.contract
        if self.path in ("", path, f"{path}.{change.attribute}"):
            return True
        near = self.expires is not None and self.expires <= today + _WILDCARD_DAYS
        return "*" in self.path and near and fnmatchcase(path, self.path)


def apply_waivers(
    changes: Iterable[ClassifiedChange], waivers: Iterable[Waiver], today: date
) -> list[ClassifiedChange]:
    """Return the changes with waived ones lowered to info, and an error for each expired waiver in use."""
    all_waivers = list(waivers)
    result: list[ClassifiedChange] = []
    for change in changes:
        waiver = next((candidate for candidate in all_waivers if candidate.covers(change, today)), None)
        if waiver is None or change.level is Level.INFO:
            result.append(change)
        elif waiver.expires is not None and waiver.expires < today:
            expired = replace(
                change,
                rule="accept-expired",
                effect=Effect.POLICY,
                level=Level.ERROR,
                verdict=Verdict.BREAK,
                affected=("registry",),
                note=f"The waiver of {waiver.rule} expired on {waiver.expires}.",
            )
            result += [change, expired]
        else:
            reason = " ".join(part for part in (waiver.reason, f"({waiver.by})" if waiver.by else "") if part)
            result.append(downgrade(change, Bump.MINOR, waived=reason or "waived"))
    return result


# Classified changes as findings, reported with all others at their lines.

_SEVERITY = {Verdict.BREAK: Severity.ERROR, Verdict.WARN: Severity.WARNING, Verdict.OK: Severity.INFO}
# It breaks no reader but may expose confidential data, so the data owner must accept it in a waiver.
_SEVERITY_OVERRIDES = {"classification-lowered": Severity.ERROR}


def findings(comparison: Comparison, today: date) -> list[Finding]:
    """Return one finding per change, in the new file; a removed part is reported at its surviving parent.

    Breaks and lowered classifications are errors, warnings are warnings, everything else is info. The hint of
    errors and warnings ends with a waiver to paste.
    """
    return [_finding(change, today) for change in comparison.changes]


def _finding(change: ClassifiedChange, today: date) -> Finding:
    message = change.problem
    if change.concern is Concern.VERSION_POLICY:
        message = f"Version policy: {message}"
    elif change.verdict is not Verdict.OK:
        message += (
            f" Affected: {', '.join(change.affected)}.{change.subscribers_text}{version_sentence(change)}"
        )
    if change.waived:
        message += f" Waived: {change.waived}."
    hint = change.instead
    if change.verdict is not Verdict.OK:
        item = " ".join(change.waiver(today).split()).removeprefix("waivers: ")
        hint += f" To accept it, add to 'waivers' in dq-policy.yaml: {item}"
    severity = _SEVERITY[change.verdict]
    if change.verdict is not Verdict.OK:
        severity = _SEVERITY_OVERRIDES.get(change.rule, severity)
    return Finding(change.rule, severity, message, hint, change.at, change.pointer, change.contract)


def version_sentence(change: ClassifiedChange) -> str:
    """Return a sentence about the version that announces a change, or "" if none is required."""
    if change.bump is Bump.NONE:
        return ""
    if not change.own_version:
        return f" It needs a {change.bump} version."
    if change.own_version == change.required_version:
        return f" It needs a {change.bump} version: {change.own_version}."
    return (
        f" It needs a {change.bump} version, {change.own_version}; "
        f"all changes together need {change.required_version}."
    )


def summary(comparison: Comparison, concern: Concern) -> str:
    """Return a short summary of one concern: the number of changes, or the required version."""
    changes = comparison.for_concern(concern)
    if concern is Concern.VERSION_POLICY:
        rules = [change.rule for change in changes if change.verdict is not Verdict.OK]
        needed = comparison.required_version is not None and any(
            change.bump is not Bump.NONE for change in comparison.changes
        )
        requirement = f"version {comparison.required_version} or higher is required" if needed else ""
        return ": ".join(text for text in (requirement, ", ".join(rules)) if text)
    if not changes:
        return "nothing changed"
    modes = ", ".join(sorted({change.mode.value for change in changes}))
    counts = Counter(change.verdict for change in changes)
    return f"{modes}: " + ", ".join(
        f"{counts[level]} {level}" for level in reversed(Verdict) if counts[level]
    )
