"""A judged change: its rule, whom it breaks, what it asks of the version, and its finding."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import date, timedelta
from enum import StrEnum
from fnmatch import fnmatchcase
from hashlib import sha256
from typing import NamedTuple

from dq.contracts.diff import Change
from dq.contracts.model import Contract
from dq.contracts.outcome import Finding, Location, Severity
from dq.contracts.subscriptions import Subscription, reaches
from dq.validators.compat.classification import (
    Bump,
    Effect,
    Judgement,
    Level,
    Mode,
    Verdict,
    required_bump,
    verdict,
)

# TABLE: every rule of the comparison: what it says, and the shortest way that breaks nobody.
#
# Ids are API: never renamed. Which attribute leads to which rule is in `table`, how bad it is in the
# judgement.


class ChangeRule(NamedTuple):
    """What a rule says of a change, and what to do instead."""

    problem: str
    instead: str


_ADD_BESIDE = "Add a new column beside it, fill both, deprecate the old one, and remove it in the next major."
_NEXT_MAJOR = "Publish it as the next major beside this one, which stays as deprecated until its end."
_SHOW = "Nothing to do: it is told so that nobody wonders."
_TELL = "Tell the consumers before it ships."
_WRITERS = "Make the writers ready first, check the data that is there, then promise it."
_BUMP = "Write the version that is asked for."

# What these say is how a change is announced, not whom it breaks.
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
    "accept-expired": ("the waiver for this change has expired", "Mend the change, or agree on a new date."),
    "allowed-values-added": ("only listed values are allowed now", _WRITERS),
    "allowed-values-changed": ("allowed values were exchanged", _ADD_BESIDE),
    "allowed-values-narrowed": ("values are not allowed any more", _WRITERS),
    "allowed-values-removed": ("any value may come now", "Keep the list, and add to it what is missing."),
    "allowed-values-widened": ("values may come that consumers do not know", _TELL),
    "base-invalid": (
        "the old contract cannot be read, so it is judged as new",
        "Nothing to do: it is mended.",
    ),
    "base-ref-invalid": ("the base is no name of a commit", "Write --base origin/main."),
    "base-unavailable": ("the base cannot be read, so nothing can be compared", "Fetch it and run again."),
    "bound-added": ("values are limited now", _WRITERS),
    "bound-relaxed": ("values may go beyond the limit that was promised", "Keep the limit."),
    "bound-removed": ("the limit of the values is gone", "Keep the limit, wide enough for what is coming."),
    "bound-tightened": ("the limit of the values is tighter", _WRITERS),
    "classification-lowered": ("data is said to be less confidential", "Let its owner confirm it."),
    "classification-raised": ("data is more confidential, and access may close", _TELL),
    "column-added-defaulted": ("a required column with a default came", _SHOW),
    "column-added-middle": ("a column came between others", "Add it at the end."),
    "column-added-optional": ("an optional column came", _SHOW),
    "column-added-required": ("a required column came that old rows lack", "Add it as optional first."),
    "column-case-changed": (
        "only the case of the name changed",
        "Keep the name: some readers are case sensitive.",
    ),
    "column-deprecated": ("the column is marked as deprecated, or no more", _SHOW),
    "column-label-changed": ("the label changed; the name in the data did not", _SHOW),
    "column-moved": ("the column moved to another level", _ADD_BESIDE),
    "column-name-reused": (
        "the name stood for another column before",
        "Give the new column a name of its own.",
    ),
    "column-removed": (
        "the column is gone",
        "Keep it and mark it 'deprecated: true'; remove it in the next major.",
    ),
    "column-removed-deprecated": ("the column is gone after its notice", "Publish it as the next major."),
    "column-renamed": ("the column has another name", _ADD_BESIDE),
    "column-reordered": ("the columns stand in another order", "Keep the order; add at the end."),
    "contract-added": ("the contract is new", _SHOW),
    "contract-id-changed": ("the id changed, so the old contract is gone", "Keep the id."),
    "contract-id-duplicate": ("two files have this id and major version", "Remove one of the two."),
    "contract-major-added": ("a new major came beside the old one", _SHOW),
    "contract-moved": ("the file moved", _SHOW),
    "contract-moved-referenced": (
        "the file moved, and another contract names its old path",
        "Mend the reference.",
    ),
    "contract-name-changed": ("the contract is called otherwise", _SHOW),
    "contract-removed": (
        "the contract is gone while it was in force",
        "Keep it as deprecated until its end.",
    ),
    "contract-removed-early": ("the contract is gone before its end", "Keep it until its end of support."),
    "contract-removed-retired": ("the contract is gone after its end", _SHOW),
    "custom-property-changed": ("a custom property changed", _SHOW),
    "deprecation-end-missing": ("it is deprecated without an end", "Add the service level 'endOfSupport'."),
    "deprecation-too-short": ("its end of support is too near", "Set a later end of support."),
    "description-changed": ("the documentation changed", _SHOW),
    "end-date-earlier": ("it ends earlier than was promised", "Keep the date."),
    "no-change": ("nothing changed", _SHOW),
    "owner-changed": ("its people changed", _SHOW),
    "owner-removed": ("nobody is named to ask", "Name who takes over."),
    "partition-added": ("a partition key came", _NEXT_MAJOR),
    "partition-granularity-changed": ("the partitions have another grain", _NEXT_MAJOR),
    "partition-removed": ("a partition key is gone", _NEXT_MAJOR),
    "partition-reordered": ("the partition keys stand in another order", _NEXT_MAJOR),
    "partition-type-changed": ("a partition key has another type", _NEXT_MAJOR),
    "pattern-added": ("texts must match a pattern now", _WRITERS),
    "pattern-changed": ("texts match another pattern", "Keep the pattern; dq cannot tell which is wider."),
    "pattern-removed": ("texts need not match the pattern any more", "Keep the pattern."),
    "price-raised": ("it costs more", _TELL),
    "primary-key-added": ("a primary key is promised now", _WRITERS),
    "primary-key-changed": ("the primary key is another one", _NEXT_MAJOR),
    "primary-key-reordered": ("the primary key names its columns in another order", _SHOW),
    "quality-added": ("a quality rule came", _WRITERS),
    "quality-changed": ("a quality rule asks something else", "Add a second rule, and drop the first later."),
    "quality-label-changed": ("a quality rule is described otherwise", _SHOW),
    "quality-relaxed": ("a quality rule allows more", "Keep the threshold."),
    "quality-removed": ("a quality rule is gone", "Keep the rule."),
    "quality-tightened": ("a quality rule allows less", _WRITERS),
    "relationship-added": ("a relationship is promised now", _WRITERS),
    "relationship-removed": ("a relationship is not promised any more", _TELL),
    "required-added": ("the column is required now", _WRITERS),
    "required-removed": ("the column may hold nulls now", "Keep 'required: true' and write a default value."),
    "role-removed": ("a role is gone or gives other access", "Move its members first."),
    "server-added": ("the data is served at another place too", _SHOW),
    "server-format-changed": ("the data has another format", _NEXT_MAJOR),
    "server-label-changed": ("the server is described otherwise", _SHOW),
    "server-location-changed": ("the data lies at another place", "Serve both places until all have moved."),
    "server-removed": ("the data is not served at this place any more", "Serve it until all have moved."),
    "sla-added": ("a service level is promised now", _WRITERS),
    "sla-changed": ("a service level says something else", _TELL),
    "sla-relaxed": ("data may come later, or less of it", "Keep the level."),
    "sla-removed": ("a service level is not promised any more", "Keep the level."),
    "sla-tightened": ("data must come earlier, or more of it", _WRITERS),
    "status-demoted": (
        "it was in force and is a draft again",
        "Keep the status; draft the change as a new major.",
    ),
    "status-deprecated": ("its end is announced", _SHOW),
    "status-promoted": ("it is one step further", _SHOW),
    "status-reactivated": ("it stays longer than was announced", _SHOW),
    "status-retired": ("it is retired after its end", _SHOW),
    "status-retired-early": ("it is retired before its end", "Deprecate it first, with an end of support."),
    "table-added": ("a table came", _SHOW),
    "table-kind-changed": ("it is another kind of table", "Keep the kind, or offer the other beside it."),
    "table-label-changed": ("the label changed; the name in the catalog did not", _SHOW),
    "table-removed": ("the table is gone", "Keep it and mark it deprecated; remove it in the next major."),
    "table-renamed": ("the table has another name", "Keep the name, or leave a view under the old one."),
    "tags-changed": ("tags changed", _SHOW),
    "type-alias": ("the type is spelt otherwise and is the same", _SHOW),
    "type-changed": ("the type is another one", _ADD_BESIDE),
    "type-declared": ("the type is declared now", _SHOW),
    "type-format-changed": ("the values are written or meant otherwise", _ADD_BESIDE),
    "type-generalized": ("values may come that the old type did not have", _ADD_BESIDE),
    "type-length-decreased": ("texts must be shorter", _WRITERS),
    "type-length-increased": ("texts may be longer than consumers have room for", _TELL),
    "type-narrowed": ("old values do not fit into the new type", _ADD_BESIDE),
    "type-specialized": ("values that the old type had are not allowed any more", _WRITERS),
    "type-timezone-changed": ("the same text means another instant", _ADD_BESIDE),
    "type-undeclared": ("the type is not declared any more", "Keep the type."),
    "type-widened": ("values may come that do not fit into the old type", _TELL),
    "unclassified-change": ("dq does not know this key and cannot judge it", "Have someone look at it."),
    "unique-added": ("values must be unique now", _WRITERS),
    "unique-removed": ("values may repeat, and joins may fan out", "Keep 'unique: true'."),
    "version-bump-ok": ("the version announces the change", _SHOW),
    "version-bump-too-small": ("the version does not announce the change", _BUMP),
    "version-decreased": ("the version went backwards", "Write a higher version."),
    "version-not-bumped": ("the contract changed under the same version", _BUMP),
    "version-not-semver": ("the version is not of the form 1.2.3", "Write three numbers, such as 1.2.3."),
}
RULES: Mapping[str, ChangeRule] = {id_: ChangeRule(*row) for id_, row in _ROWS.items()}


# A judged change: whom it breaks and hits, what it asks of the version, and waivers.

# Whom a change hits among those who subscribed, and whom to ask about it.

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class AffectedConsumer:
    """One subscription that a change reaches. `contact` may be empty, and so may `approvers`."""

    team: str
    purpose: str
    contact: str = ""
    approvers: tuple[str, ...] = ()
    file: str = ""

    @property
    def sentence(self) -> str:
        """The consumer in a few words: `billing (The invoices; ask #billing, ana@example.com)`."""
        ask = ", ".join(dict.fromkeys(filter(None, (self.contact, *self.approvers))))
        return f"{self.team} ({self.purpose.strip().rstrip('.')}{f'; ask {ask}' if ask else ''})"

    def as_dict(self) -> dict[str, object]:
        """The consumer as plain values."""
        return {
            "team": self.team,
            "purpose": self.purpose,
            "contact": self.contact or None,
            "approvers": list(self.approvers),
            "subscription": self.file,
        }


def affected_consumers(
    subscriptions: Iterable[Subscription], contract: Contract, path: str, today: date
) -> tuple[AffectedConsumer, ...]:
    """The consumers that a change at this path of the contract reaches, by team and purpose.

    Only subscriptions to the contract's major that hold on the day count.
    """
    found = {
        AffectedConsumer(
            one.consumer.team, one.purpose, one.consumer.contact or "", tuple(one.approvers), one.file
        )
        for one in subscriptions
        if one.identity == contract.identity and one.active(today) and reaches(one, contract, path)
    }
    return tuple(sorted(found, key=lambda one: (one.team, one.purpose, one.file)))


def subscribers_sentence(consumers: tuple[AffectedConsumer, ...], *, asked: bool) -> str:
    """Who subscribed, as a sentence with a space before it.

    That nobody did is only said where it can be known: `asked`.
    """
    if not consumers:
        return " No subscription names it." if asked else ""
    named = "; ".join(one.sentence for one in consumers[:_SHOWN])
    more = f"; and {len(consumers) - _SHOWN} more" if len(consumers) > _SHOWN else ""
    return f" Subscribed: {named}{more}."


# A judged change: for whom it breaks what, what it asks of the version, and what to do instead.

_WAIVER_DAYS = 30
_HIT = {
    Effect.NEUTRAL: (),
    Effect.WEAKEN: ("consumers",),
    Effect.STRENGTHEN: ("writers", "history"),
    Effect.REPLACE: ("consumers", "writers", "history"),
    Effect.POLICY: ("registry",),
}


class Aspect(StrEnum):
    """The two questions about a change: whom it breaks, and whether its version announces it."""

    COMPATIBILITY = "compatibility"
    VERSION_POLICY = "version policy"


@dataclass(frozen=True, slots=True)
class ChangePlace:
    """What a judgement is about: a change of the diff, or a fact about the whole contract."""

    contract: str
    path: str
    attribute: str
    before: object
    after: object
    at: Location
    at_before: Location
    pointer: str = ""

    @staticmethod
    def of(change: Change, contract: str) -> ChangePlace:
        """The place of a change."""
        before, after = change.shown()
        spots = (change.at_after, change.at_before, change.pointer)
        return ChangePlace(contract, change.path, change.attribute, before, after, *spots)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged(ChangePlace):
    """One change and all that a reviewer asks about it.

    `before` and `after` are as the files have them. `at` is in the new file, or where the removed part's
    nearest surviving parent stands there; `at_before` in the old one. `who` are those that are hit, with
    the engine that fails and the teams that subscribed, of whom `consumers` tells more; with `asked`, an
    empty one says that nobody did. `against` is the earlier version that a
    transitive mode found it against. `waived` is the reason of the waiver that let it pass.
    `required_version` announces all changes of this contract, where its old version is one, and
    `own_version` this change alone.
    """

    rule: str
    effect: Effect
    level: Level
    mode: Mode
    verdict: Verdict
    bump: Bump
    note: str
    who: tuple[str, ...]
    against: str = ""
    waived: str = ""
    required_version: str = ""
    own_version: str = ""
    consumers: tuple[AffectedConsumer, ...] = ()
    asked: bool = False

    @property
    def subscribed(self) -> str:
        """Who subscribed to what is hit, or that nobody did, as a sentence with a space before it.

        Empty where consumers are not hit, and in a registry without subscriptions.
        """
        return subscribers_sentence(self.consumers, asked=self.asked)

    @property
    def part(self) -> Aspect:
        """Whether it is about what the data may be, or about how the change is announced."""
        return Aspect.VERSION_POLICY if self.rule in VERSION_POLICY else Aspect.COMPATIBILITY

    @property
    def problem(self) -> str:
        """What happened, in a sentence."""
        values = _values(self.before, self.after)
        shown = f" ({values})" if self.attribute and values else ""
        said = f"{self.path or self.contract}: {RULES[self.rule].problem}{shown}."
        earlier = f" Version {self.against} promised otherwise." if self.against else ""
        return f"{said} {self.note}".strip() + earlier

    @property
    def instead(self) -> str:
        """The shortest way that breaks nobody."""
        return RULES[self.rule].instead

    @property
    def fingerprint(self) -> str:
        """The same for the same change, whatever the wording: 12 hex digits."""
        parts = (self.rule, self.contract, self.path, self.attribute, repr(self.before), repr(self.after))
        return sha256("\0".join(parts).encode()).hexdigest()[:12]

    def waiver(self, today: date) -> str:
        """A waiver for exactly this change, ready to paste into the policy; it ends after 30 days."""
        # Paths may hold brackets and braces, which YAML would read as its own.
        where = f"contract: {json.dumps(self.contract)}, path: {json.dumps(self.path or self.contract)}"
        fields = f"rule: {self.rule}, {where}"
        until = today + timedelta(days=_WAIVER_DAYS)
        return f'waivers:\n  - {{{fields}, reason: "…", by: "…", expires: {until}}}'

    def as_dict(self) -> dict[str, object]:
        """The change as plain values."""
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
            "part": self.part.value,
            "who": list(self.who),
            "consumers": [one.as_dict() for one in self.consumers],
            "bump": self.bump.value,
            "message": self.problem,
            "instead": self.instead,
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


def judged(
    judgement: Judgement,
    place: ChangePlace,
    mode: Mode,
    consumers: tuple[AffectedConsumer, ...] = (),
    *,
    asked: bool = False,
) -> Judged:
    """A judgement of something, in a mode. Consumers are named where consumers are hit.

    `asked`: there are subscriptions, so that it means something when none names it.
    """
    hit = _HIT[judgement.effect]
    consumers = consumers if "consumers" in hit else ()
    named = list(dict.fromkeys(f"consumer {one.team}" for one in consumers))
    engine = [f"engine {judgement.engine}"] if judgement.engine else []
    return Judged(
        *(getattr(place, field.name) for field in fields(ChangePlace)),
        rule=judgement.rule,
        effect=judgement.effect,
        level=judgement.level,
        mode=mode,
        verdict=verdict(judgement.effect, judgement.level, mode),
        bump=required_bump(judgement, mode),
        note=judgement.note,
        who=(*hit, *engine, *named),
        consumers=consumers,
        asked="consumers" in hit and asked,
    )


def lowered(change: Judged, bump: Bump, *, waived: str = "", why: str = "") -> Judged:
    """The same change where it does not matter: its effect stays, its level is info.

    `why` is values of what would matter otherwise.
    """
    note = f"{change.note} {why}".strip() if change.verdict is not Verdict.OK else change.note
    return replace(change, level=Level.INFO, verdict=Verdict.OK, bump=bump, waived=waived, note=note)


@dataclass(frozen=True, slots=True)
class Comparison:
    """All judged changes, worst first, then by path. `required_version` is None without a base version."""

    changes: tuple[Judged, ...]
    required_version: str | None = None

    @property
    def verdict(self) -> Verdict:
        """The worst of all; ok when nothing changed."""
        return _worst(self.changes)

    @property
    def verdicts(self) -> dict[Aspect, Verdict]:
        """The worst of each part: what breaks, and what is not announced, are two questions."""
        return {part: _worst(self.of(part)) for part in Aspect}

    def of(self, part: Aspect) -> tuple[Judged, ...]:
        """The changes that one question is about, in order."""
        return tuple(change for change in self.changes if change.part is part)

    def as_dict(self) -> dict[str, object]:
        """The comparison as plain values."""
        verdicts = {part.value.replace(" ", "_"): one.value for part, one in self.verdicts.items()}
        return {
            "changes": [change.as_dict() for change in self.changes],
            "verdict": self.verdict.value,
            **verdicts,
            "required_version": self.required_version,
        }


def _worst(changes: Sequence[Judged]) -> Verdict:
    return max((change.verdict for change in changes), key=lambda one: one.rank, default=Verdict.OK)


def comparison(changes: Sequence[Judged], required: str | None) -> Comparison:
    """The changes in the order in which a reviewer wants them."""
    ordered = sorted(changes, key=lambda one: (-one.verdict.rank, one.contract, one.path, one.rule))
    return Comparison(tuple(ordered), required)


# Waivers: changes that someone has agreed to, exactly, for a time.

_WILDCARD_DAYS = timedelta(days=90)


@dataclass(frozen=True, slots=True)
class Waiver:
    """One agreement. An empty `contract` or `path` means any; `*` in a path needs an end within 90 days."""

    rule: str
    contract: str = ""
    path: str = ""
    reason: str = ""
    by: str = ""
    expires: date | None = None

    def covers(self, change: Judged, today: date) -> bool:
        """Whether it speaks about this change, whatever its date."""
        if self.rule != change.rule or self.contract not in ("", change.contract):
            return False
        path = change.path or change.contract
        if self.path in ("", path, f"{path}.{change.attribute}"):
            return True
        near = self.expires is not None and self.expires <= today + _WILDCARD_DAYS
        return "*" in self.path and near and fnmatchcase(path, self.path)


def apply_waivers(changes: Iterable[Judged], waivers: Iterable[Waiver], today: date) -> list[Judged]:
    """The changes, waived ones lowered to info, and an error for each expired waiver that is in use."""
    listed = list(waivers)
    found: list[Judged] = []
    for change in changes:
        waiver = next((one for one in listed if one.covers(change, today)), None)
        if waiver is None or change.level is Level.INFO:
            found.append(change)
        elif waiver.expires is not None and waiver.expires < today:
            expired = replace(
                change,
                rule="accept-expired",
                effect=Effect.POLICY,
                level=Level.ERROR,
                verdict=Verdict.BREAK,
                who=("registry",),
                note=f"The waiver of {waiver.rule} ended on {waiver.expires}.",
            )
            found += [change, expired]
        else:
            reason = " ".join(part for part in (waiver.reason, f"({waiver.by})" if waiver.by else "") if part)
            found.append(lowered(change, Bump.MINOR, waived=reason or "waived"))
    return found


# Judged changes as findings, so that they stand beside what else is wrong, each on its line.

_SEVERITY = {Verdict.BREAK: Severity.ERROR, Verdict.WARN: Severity.WARNING, Verdict.OK: Severity.INFO}
# It breaks no reader, and shows to all what was hidden: whoever owns the data has to say so in a waiver.
_GRAVER = {"classification-lowered": Severity.ERROR}


def findings(found: Comparison, today: date) -> list[Finding]:
    """One finding for each change, in the new file; what was removed stands at its surviving parent.

    A break is an error, and so is a lowered classification, a warning a warning, the rest is information.
    The mend of what matters ends with a waiver to paste.
    """
    return [_finding(change, today) for change in found.changes]


def _finding(change: Judged, today: date) -> Finding:
    message = change.problem
    if change.part is Aspect.VERSION_POLICY:
        message = f"Version policy: {message}"
    elif change.verdict is not Verdict.OK:
        message += f" It hits {', '.join(change.who)}.{change.subscribed}{asked(change)}"
    if change.waived:
        message += f" Waived: {change.waived}."
    mend = change.instead
    if change.verdict is not Verdict.OK:
        item = " ".join(change.waiver(today).split()).removeprefix("waivers: ")
        mend += f" To accept it, add to 'waivers' in dq-policy.yaml: {item}"
    severity = _SEVERITY[change.verdict]
    if change.verdict is not Verdict.OK:
        severity = _GRAVER.get(change.rule, severity)
    return Finding(change.rule, severity, message, mend, change.at, change.pointer, change.contract)


def asked(change: Judged) -> str:
    """Which version announces a change, as a sentence; empty where none is asked for."""
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


def summary(found: Comparison, part: Aspect) -> str:
    """One question's answer in a few words: how many changes, or the version that is needed."""
    changes = found.of(part)
    if part is Aspect.VERSION_POLICY:
        wrong = [one.rule for one in changes if one.verdict is not Verdict.OK]
        needed = found.required_version is not None and any(
            one.bump is not Bump.NONE for one in found.changes
        )
        said = f"version {found.required_version} or higher is needed" if needed else ""
        return ": ".join(text for text in (said, ", ".join(wrong)) if text)
    if not changes:
        return "nothing changed"
    modes = ", ".join(sorted({one.mode.value for one in changes}))
    counts = Counter(one.verdict for one in changes)
    return f"{modes}: " + ", ".join(f"{counts[one]} {one}" for one in reversed(Verdict) if counts[one])
