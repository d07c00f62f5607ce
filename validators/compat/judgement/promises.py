"""What changes of service levels, servers and written formats mean: rows that need more than a comparator."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta

from dq.contracts.diff.element import Change, Motion
from dq.contracts.diff.level import date_of
from dq.validators.compat.judgement import partitions, types
from dq.validators.compat.judgement.comparators import Measured
from dq.validators.compat.judgement.setting import Setting
from dq.validators.compat.judgement.words import Judgement, Level, neutral, replace, strengthen, weaken


def text_format(change: Change, setting: Setting) -> Judgement:
    """The format of a text, or how a date is written; the grain of a partition."""
    if types.is_partition_key(change, setting):
        return partitions.grain(change, setting)
    logical = change.new.normal("logicalType") if change.new else None
    text = logical in ("string", None)
    if change.action is Motion.ADDED:
        return strengthen("pattern-added") if text else strengthen("type-declared", Level.INFO)
    if change.action is Motion.REMOVED:
        return weaken("pattern-removed") if text else weaken("type-undeclared", Level.WARN)
    return replace("pattern-changed", Level.WARN) if logical == "string" else replace("type-format-changed")


_SMALLER = Measured(smaller_is_better=True)
_LARGER = Measured(smaller_is_better=False)
_DIRECTIONS: Mapping[str, Measured] = {
    "latency": _SMALLER,
    "frequency": _SMALLER,
    "errorRate": _SMALLER,
    "timeToDetect": _SMALLER,
    "timeToNotify": _SMALLER,
    "timeToRepair": _SMALLER,
    "timeOfAvailability": _SMALLER,
    "generalAvailability": _SMALLER,
    "availability": _LARGER,
    "throughput": _LARGER,
    "retention": _LARGER,
}
END_DATES = ("endOfSupport", "endOfLife")


def sla_level(change: Change, setting: Setting) -> Judgement:
    """The level of a service level, better when smaller or larger by its property."""
    name = change.new.column if change.new else ""
    if name in END_DATES:
        order = change.facts.get("order")
        if change.action is not Motion.CHANGED or order is None:
            return replace("sla-changed", Level.WARN)
        return weaken("end-date-earlier") if order == 1 else neutral("status-reactivated")
    direction = _DIRECTIONS.get(name)
    return direction(change, setting) if direction else replace("sla-changed", Level.WARN)


def sla_presence(change: Change, setting: Setting) -> Judgement:
    """A service level that came or went; an end date is a limit, so its coming is the loss."""
    element = change.new or change.old
    ends = element is not None and element.column in END_DATES
    if change.action is Motion.ADDED and ends and element is not None:
        return _announced(date_of(str(element.shown("level"))), setting)
    if change.action is Motion.ADDED:
        return _PROMISED
    return neutral("status-reactivated", note="There is no end any more.") if ends else weaken("sla-removed")


def _announced(end: date | None, setting: Setting) -> Judgement:
    """An end where there was none: fine when it is told early enough."""
    if end is not None and end >= setting.today + timedelta(days=setting.notice_days):
        return neutral("status-deprecated", note=f"Its end is announced for {end}.")
    return weaken("end-date-earlier", note="There was no end before, and it is near.")


_PROMISED = strengthen("sla-added", Level.WARN)
_OTHER_PLACES = frozenset(
    {"dev", "development", "test", "testing", "int", "integration", "qa", "uat", "ci", "demo", "local"}
    | {"staging", "stage", "preprod", "pre-prod", "sandbox"}
)


def server_presence(change: Change, _: Setting) -> Judgement:
    """A server that came or went; one that is not for production is missed less."""
    if change.action is Motion.ADDED:
        return neutral("server-added")
    assert change.old is not None
    place = str(change.old.normal("environment") or change.old.column).lower()
    return weaken("server-removed", Level.WARN if place in _OTHER_PLACES else Level.ERROR)
