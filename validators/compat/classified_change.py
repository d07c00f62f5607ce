"""A judged change: whom it breaks and hits, what it asks of the version, and waivers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from enum import StrEnum
from fnmatch import fnmatchcase
from hashlib import sha256

from dq.contracts.diff.element import Change
from dq.contracts.model import Contract
from dq.contracts.shared.outcome import Location
from dq.contracts.subscriptions import Subscription, reaches
from dq.validators.compat.classification.model import (
    Bump,
    Effect,
    Judgement,
    Level,
    Mode,
    Verdict,
    required_bump,
    verdict,
)
from dq.validators.compat.rules import RULES, VERSION_POLICY

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
class Judged:
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
    contract: str
    path: str
    attribute: str
    before: object
    after: object
    effect: Effect
    level: Level
    mode: Mode
    verdict: Verdict
    bump: Bump
    note: str
    who: tuple[str, ...]
    at: Location
    at_before: Location
    pointer: str = ""
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
        rule=judgement.rule,
        contract=place.contract,
        path=place.path,
        attribute=place.attribute,
        before=place.before,
        after=place.after,
        effect=judgement.effect,
        level=judgement.level,
        mode=mode,
        verdict=verdict(judgement.effect, judgement.level, mode),
        bump=required_bump(judgement, mode),
        note=judgement.note,
        who=(*hit, *engine, *named),
        consumers=consumers,
        asked="consumers" in hit and asked,
        at=place.at,
        at_before=place.at_before,
        pointer=place.pointer,
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
            found += [change, _expired(change, waiver)]
        else:
            reason = " ".join(part for part in (waiver.reason, f"({waiver.by})" if waiver.by else "") if part)
            found.append(lowered(change, Bump.MINOR, waived=reason or "waived"))
    return found


def _expired(change: Judged, waiver: Waiver) -> Judged:
    return replace(
        change,
        rule="accept-expired",
        effect=Effect.POLICY,
        level=Level.ERROR,
        verdict=Verdict.BREAK,
        who=("registry",),
        note=f"The waiver of {waiver.rule} ended on {waiver.expires}.",
    )
