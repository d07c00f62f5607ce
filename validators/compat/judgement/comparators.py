"""The comparators: few ways in which two values of an attribute can relate, each made for many rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dq.contracts.diff.element import Change, Motion
from dq.contracts.diff.schedule_compare import Fires
from dq.contracts.diff.threshold import RuleThreshold
from dq.validators.compat.judgement.setting import Setting
from dq.validators.compat.judgement.words import (
    Bump,
    Judgement,
    Level,
    neutral,
    policy,
    replace,
    strengthen,
    weaken,
)

Comparator = Callable[[Change, Setting], Judgement]


@dataclass(frozen=True, slots=True)
class Same:
    """Whatever happens to the attribute, it means this."""

    always: Judgement

    def __call__(self, _change: Change, _: Setting) -> Judgement:
        return self.always


@dataclass(frozen=True, slots=True)
class Presence:
    """It matters whether the attribute is there. A flag is there when it is true."""

    added: Judgement
    removed: Judgement
    changed: Judgement

    def __call__(self, change: Change, _: Setting) -> Judgement:
        by_action = {Motion.ADDED: self.added, Motion.REMOVED: self.removed}
        return by_action.get(change.action, self.changed)


def flag(on: Judgement, off: Judgement) -> Presence:
    """An attribute that is true or absent."""
    return Presence(on, off, on)


@dataclass(frozen=True, slots=True)
class Bound:
    """A limit of values; an upper one is relaxed when it grows, a lower one when it falls."""

    upper: bool

    def __call__(self, change: Change, _: Setting) -> Judgement:
        if change.action is Motion.ADDED:
            return strengthen("bound-added")
        if change.action is Motion.REMOVED:
            return weaken("bound-removed")
        before, after = _limit(change.before), _limit(change.after)
        if before is None or after is None or isinstance(before[0], str) != isinstance(after[0], str):
            return replace("bound-relaxed", note="The two bounds cannot be compared.")
        if before[0] == after[0]:
            return strengthen("bound-tightened") if after[1] else weaken("bound-relaxed")
        relaxed = (after[0] > before[0]) == self.upper  # type: ignore[operator]  # both text, or both numbers
        return weaken("bound-relaxed") if relaxed else strengthen("bound-tightened")


def _limit(value: object) -> tuple[str | float, bool] | None:
    """A limit and whether it is itself left out."""
    limit, exclusive = value if isinstance(value, tuple) and len(value) == 2 else (value, False)
    return (limit, bool(exclusive)) if isinstance(limit, (str, int, float)) else None


def multiple(change: Change, setting: Setting) -> Judgement:
    """`multipleOf`: the multiples of 10 are among those of 5."""
    if change.action is not Motion.CHANGED:
        return Bound(upper=True)(change, setting)
    before, after = change.before, change.after
    if isinstance(before, (int, float)) and isinstance(after, (int, float)) and before and after:
        if before % after == 0:
            return weaken("bound-relaxed")
        if after % before == 0:
            return strengthen("bound-tightened")
    return replace("bound-relaxed", note="Neither is a multiple of the other.")


def allowed_values(change: Change, _: Setting) -> Judgement:
    """Which values a column may have, as a set."""
    if change.action is Motion.ADDED:
        return strengthen("allowed-values-added")
    if change.action is Motion.REMOVED:
        return weaken("allowed-values-removed")
    before, after = _sets(change)
    if before < after:
        return weaken("allowed-values-widened", Level.WARN)
    if after < before:
        return strengthen("allowed-values-narrowed")
    return replace("allowed-values-changed")


def primary_key(change: Change, _: Setting) -> Judgement:
    """The columns of a primary key, in order."""
    if change.action is Motion.ADDED:
        return strengthen("primary-key-added", Level.WARN)
    if change.action is Motion.REMOVED:
        return weaken("primary-key-changed", note="No key is promised any more.")
    before, after = _sets(change)
    return neutral("primary-key-reordered", Bump.PATCH) if before == after else replace("primary-key-changed")


def _sets(change: Change) -> tuple[set[object], set[object]]:
    before, after = (set(one) if isinstance(one, tuple) else set() for one in (change.before, change.after))
    return before, after


@dataclass(frozen=True, slots=True)
class Ranked:
    """Words in an order, lowest first; a word that is not among them stands above all."""

    words: Sequence[str]
    raised: Judgement
    lowered: Judgement
    absent: str = ""

    def __call__(self, change: Change, _: Setting) -> Judgement:
        return self.raised if self._rank(change.after) >= self._rank(change.before) else self.lowered

    def _rank(self, value: object) -> int:
        word = self.absent if value is None else str(value).lower()
        return self.words.index(word) if word in self.words else len(self.words) if word else -1


@dataclass(frozen=True, slots=True)
class Measured:
    """A level that is better when it is smaller, or larger; `order` was found by the diff."""

    smaller_is_better: bool = True

    def __call__(self, change: Change, _: Setting) -> Judgement:
        if change.action is Motion.ADDED:
            return strengthen("sla-tightened", Level.WARN)
        if change.action is Motion.REMOVED:
            return weaken("sla-relaxed")
        order = change.facts.get("order")
        if order is None:
            return replace("sla-changed", Level.WARN)
        if (order == -1) == self.smaller_is_better:
            return weaken("sla-relaxed")
        return strengthen("sla-tightened", Level.WARN)


def schedule(change: Change, _: Setting) -> Judgement:
    """When a delivery is due, by the instants of a year."""
    if change.action is Motion.ADDED:
        return strengthen("sla-tightened", Level.WARN)
    if change.action is Motion.REMOVED:
        return weaken("sla-relaxed")
    by_fires = {
        Fires.LATER: weaken("sla-relaxed"),
        Fires.EARLIER: strengthen("sla-tightened", Level.WARN),
    }
    fires = change.facts.get("fires")
    other = replace("sla-changed", Level.WARN, "Neither schedule is at least as early on every day.")
    return by_fires.get(fires, other) if isinstance(fires, Fires) else other


# Metrics that promise what a column's own keys could promise: dropping one is like dropping `required`.
SCHEMA_LIKE = frozenset({"nullValues", "missingValues", "invalidValues", "duplicateValues"})


def quality_level(change: Change) -> Level:
    """How much a quality rule matters to consumers."""
    element = change.old or change.new
    name = element.normal("metric") if element else None
    return Level.ERROR if name in SCHEMA_LIKE else Level.WARN


def quality_presence(change: Change, _: Setting) -> Judgement:
    """A quality rule that came or went."""
    if change.action is Motion.ADDED:
        return strengthen("quality-added", Level.WARN)
    return weaken("quality-removed", quality_level(change))


def quality_subject(change: Change, _: Setting) -> Judgement:
    """Return the judgement of a rule that measures something else under its old id or name."""
    if quality_level(change) is Level.ERROR:
        return weaken("quality-removed", Level.ERROR, "Another rule has its id or name.")
    return replace("quality-changed", Level.WARN)


def threshold(change: Change, _: Setting) -> Judgement:
    """What a quality rule's metric may be, as an interval."""
    if change.action is Motion.ADDED:
        return strengthen("quality-tightened", Level.WARN)
    if change.action is Motion.REMOVED:
        return weaken("quality-relaxed", quality_level(change))
    before, after = change.before, change.after
    if isinstance(before, RuleThreshold) and isinstance(after, RuleThreshold) and before.unit == after.unit:
        if before.interval and after.interval and before.interval.within(after.interval):
            return weaken("quality-relaxed", quality_level(change))
        if before.interval and after.interval and after.interval.within(before.interval):
            return strengthen("quality-tightened", Level.WARN)
    return replace("quality-changed", Level.WARN)


def price(change: Change, _: Setting) -> Judgement:
    """The amount that consumers pay."""
    before, after = change.before, change.after
    fell = isinstance(before, (int, float)) and (
        after is None or (isinstance(after, (int, float)) and after < before)
    )
    if fell:
        return neutral("description-changed", Bump.PATCH, "It costs less.")
    return weaken("price-raised", Level.WARN)


_CONFIDENTIAL = (
    "", "public", "open", "internal", "private", "confidential", "sensitive", "pii", "restricted", "secret",
)  # fmt: skip
_confidentiality = Ranked(
    _CONFIDENTIAL,
    weaken("classification-raised", Level.WARN),
    policy("classification-lowered", Level.WARN, Bump.MINOR),
)


def classification(change: Change, setting: Setting) -> Judgement:
    """How confidential a column is: raised may close access, lowered may leak.

    The first declaration raises nothing: the data is what it was.
    """
    if change.action is Motion.ADDED:
        return neutral("description-changed", Bump.PATCH, "It had no classification before.")
    return _confidentiality(change, setting)
