"""Needs of a consumer: deliveries by a time, and clauses; and the breaches that affect it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from dq.contracts.incident import FailedClause
from dq.contracts.model import Contract, Property, Quality, SchemaObject
from dq.contracts.normalize import is_allowed_values_rule, metric_name
from dq.contracts.outcome import ValueProblem, nearest
from dq.contracts.schedule.calendar import load_zone, parse_zone
from dq.contracts.slo import Slo, read_slos
from dq.contracts.subscriptions import (
    CoveredObject,
    Needs,
    Subscription,
    column_paths,
    covered_objects,
    overlaps,
)

# Latest time by which a consumer needs a delivery.

_BY = re.compile(r"([01]\d|2[0-3]):([0-5]\d)(?:\+([1-7])d)?", re.ASCII)
_DAY = timedelta(days=1)


def parse_by(text: str) -> tuple[time, timedelta] | ValueProblem:
    """Parse the `by` of a subscription: a time of the day, and the days after the day of the delivery."""
    match = _BY.fullmatch(text.strip())
    if match is None:
        hint = "Write e.g. '07:30', in quotes, or '07:30+1d' for the day after the delivery is due."
        return ValueProblem("NEED_BY", f"{text!r} is not a time of the day.", hint)
    return time(int(match[1]), int(match[2])), int(match[3] or 0) * _DAY


def needs_problem(needs: Needs) -> tuple[str, ValueProblem] | None:
    """Return the key of the needs that is invalid, with its problem, or None."""
    zone = parse_zone(needs.timezone)
    if isinstance(zone, ValueProblem):
        return "timezone", zone
    by = parse_by(needs.by) if needs.by is not None else None
    return ("by", by) if isinstance(by, ValueProblem) else None


def needed_at(needs: Needs | None, due_at: datetime) -> datetime | None:
    """Return when a consumer needs the delivery due at an instant, in its zone, or None if it does not say.

    The day is that of the due instant in the consumer's zone.
    """
    if needs is None or needs.by is None or needs_problem(needs) is not None:
        return None
    by = parse_by(needs.by)
    assert not isinstance(by, ValueProblem)
    zone = load_zone(needs.timezone)
    return datetime.combine(due_at.astimezone(zone).date() + by[1], by[0], zone)


def first_late_promise(needs: Needs, slo: Slo, today: date) -> datetime | None:
    """Return the due instant of the first promise of a year that is too late for a consumer, or None.

    Only the first delivery of a day counts, in the consumer's zone, and its grace does too.
    """
    if needs.by is None or needs_problem(needs) is not None:
        return None
    zone, day = load_zone(needs.timezone), today
    while day < today + 366 * _DAY:
        midnight = datetime.combine(day, time(), zone).astimezone(UTC)
        due = next(iter(slo.schedule.after(midnight - timedelta(seconds=1))), None)
        if due is None:
            return None
        needed = needed_at(needs, due.at)
        if needed is not None and due.at + slo.grace > needed and not slo.schedule.excuse(due):
            return due.at
        day = max(due.at.astimezone(zone).date(), day) + _DAY
    return None


def first_lost_day(needs: Needs, before: Slo, after: Slo, today: date) -> date | None:
    """Return the first day of a year on which only `before` has a delivery, or None. Days are those of the
    consumer's zone.
    """
    if needs_problem(needs) is not None:
        return None
    zone = load_zone(needs.timezone)
    missing_days = _delivery_days(before, zone, today) - _delivery_days(after, zone, today)
    return min(missing_days, default=None)


def _delivery_days(slo: Slo, zone: ZoneInfo, today: date) -> set[date]:
    days: set[date] = set()
    day = today
    while day < today + 366 * _DAY:
        midnight = datetime.combine(day, time(), zone).astimezone(UTC)
        due = next(iter(slo.schedule.after(midnight - timedelta(seconds=1))), None)
        if due is None:
            break
        day = max(due.at.astimezone(zone).date(), day)
        days.add(day)
        day += _DAY
    return {day for day in days if day < today + 366 * _DAY}


@dataclass(frozen=True, slots=True)
class LatePromise:
    """An object that is promised too late for a consumer: the SLO and its first due instant, or no SLO."""

    object_name: str
    slo: Slo | None = None
    due_at: datetime | None = None

    def describe(self, needs: Needs) -> str:
        """Return what is promised, in the consumer's zone."""
        if self.slo is None or self.due_at is None:
            return f"{self.object_name!r} has no delivery SLO"
        local = self.due_at.astimezone(load_zone(needs.timezone))
        grace = f" with {self.slo.delivery.grace} grace" if self.slo.grace else ""
        return f"{self.slo.id!r} promises {local:%Y-%m-%d %H:%M %Z}{grace}"


def late_promises(subscription: Subscription, contract: Contract, today: date) -> list[LatePromise]:
    """Return the objects that a subscription uses and that no SLO promises by the time it needs."""
    needs = subscription.needs
    if needs is None or needs.by is None or needs_problem(needs) is not None:
        return []
    late = []
    slos, _ = read_slos(contract)
    for part in covered_objects(subscription, contract):
        own_slos = [slo for slo in slos if slo.object.name == part.object.name]
        first_late = [first_late_promise(needs, slo, today) for slo in own_slos]
        if all(due_at is not None for due_at in first_late):
            slo, due_at = (own_slos[0], first_late[0]) if own_slos else (None, None)
            late.append(LatePromise(part.object.name, slo, due_at))
    return late


def lost_need(subscription: Subscription, before: Contract, after: Contract, today: date) -> str:
    """Return the delivery that a subscription needs and that a new version promises too late or not on all
    days, e.g. `orders by 07:30 Europe/Berlin`, or "".
    """
    needs = subscription.needs
    if needs is None or needs.by is None:
        return ""
    late = late_promises(subscription, after, today)
    if late:
        return f"{late[0].object_name} by {needs.by} {needs.timezone}"
    new_slos = {slo.key: slo for slo in read_slos(after)[0]}
    used = {part.object.name for part in covered_objects(subscription, before)}
    for slo in read_slos(before)[0]:
        new = new_slos.get(slo.key)
        day = first_lost_day(needs, slo, new, today) if new and slo.object.name in used else None
        if day is not None:
            return f"{slo.object.name} by {needs.by} {needs.timezone}, also on {day}"
    return ""


# Clauses that a consumer needs, by the names that it may use: `orders.amount.required`, `orders.rowCount`.

_CONSTRAINTS = ("required", "unique", "primaryKey", "enum", "logicalType", "physicalType")
_OPTIONS = "logicalTypeOptions"
# Attribute of a change, if it is not called as in the contract.
_ATTRIBUTES = {"enum": "allowedValues", "exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"}


@dataclass(frozen=True, slots=True)
class ClauseName:
    """A clause: its position in the contract, and the path and attribute of its changes.

    An empty `attribute` stands for every change at the path.
    """

    pointer: str
    path: str
    attribute: str = ""

    def is_changed_by(self, path: str, attribute: str) -> bool:
        """Return True if a change is one of this clause, or of everything that contains it."""
        if self.path.startswith((f"{path}.", f"{path}[", f"{path}{{")):
            return not attribute
        return path == self.path and attribute in ("", self.attribute or attribute)


@dataclass(frozen=True, slots=True)
class NeededClause:
    """An entry of `needs.quality` with its index and the clauses of this name; none if it is unknown."""

    index: int
    text: str
    clauses: tuple[ClauseName, ...]


def needed_clauses(subscription: Subscription, contract: Contract) -> list[NeededClause]:
    """Return the clauses that a subscription needs by name, in order."""
    texts = subscription.needs.quality if subscription.needs is not None else []
    if not texts:
        return []
    named: dict[str, list[ClauseName]] = {}
    for name, clause in _named_clauses(contract):
        named.setdefault(name, []).append(clause)
    return [NeededClause(index, text, tuple(named.get(text, ()))) for index, text in enumerate(texts)]


def similar_clause(text: str, contract: Contract) -> str | None:
    """Return the closest name of a clause of the contract, or None."""
    return nearest(text, sorted({name for name, _ in _named_clauses(contract)}))


def _named_clauses(contract: Contract) -> Iterator[tuple[str, ClauseName]]:
    for schema_object in contract.objects:
        prefixes = {name for name in (schema_object.name, schema_object.physical_name) if name}
        clauses = [*_quality_clauses(schema_object, schema_object.column)]
        for column_path in column_paths(schema_object):
            for word, clause in _property_clauses(column_path.property, column_path.path):
                clauses += [(f"{spelling}.{word}", clause) for spelling in sorted(column_path.spellings)]
        yield from ((f"{prefix}.{word}", clause) for prefix in sorted(prefixes) for word, clause in clauses)


def _property_clauses(prop: Property, path: str) -> Iterator[tuple[str, ClauseName]]:
    for key in _CONSTRAINTS:
        if prop.has(key):
            yield key, ClauseName(prop.path(key), path, _ATTRIBUTES.get(key, key))
    options = prop.logical_type_options
    for key in options.place.keys if options is not None else ():
        if options is not None:
            yield key, ClauseName(options.path(key), path, f"{_OPTIONS}.{_ATTRIBUTES.get(key, key)}")
    yield from _quality_clauses(prop, path)


def _quality_clauses(element: SchemaObject | Property, path: str) -> Iterator[tuple[str, ClauseName]]:
    for rule in element.quality:
        label = rule.id or rule.name or metric_name(rule) or rule.type
        clause = ClauseName(rule.path(), f"{path}.quality.{label}")
        if is_allowed_values_rule(rule):
            clause = ClauseName(rule.path(), path, "allowedValues")
        yield from ((name, clause) for name in _rule_names(rule))


def _rule_names(rule: Quality) -> list[str]:
    return list(dict.fromkeys(name for name in (rule.id, rule.name, metric_name(rule)) if name))


# Breaches that affect a subscription.


def affected_clauses(
    subscription: Subscription, contract: Contract, object_name: str, failed: Sequence[FailedClause]
) -> tuple[FailedClause, ...] | None:
    """Return the failed clauses of an object that affect a subscription, or None if the breach does not.

    A breach without failed clauses, i.e. of a delivery, affects every subscription that uses the object.
    What a clause says about columns that the subscription does not use is left out.
    """
    part = next(
        (part for part in covered_objects(subscription, contract) if part.object.name == object_name), None
    )
    if part is None:
        return None
    if not failed:
        return ()
    needed = needed_clauses(subscription, contract)
    pointers = tuple(clause.pointer for entry in needed for clause in entry.clauses)
    affecting = [
        clause
        for clause in failed
        if _uses(part, clause) and (not needed or any(_is_at(clause.path, pointer) for pointer in pointers))
    ]
    unused = _unused_names(part)
    return tuple(_without_names(clause, part, unused) for clause in affecting) or None


def _uses(part: CoveredObject, clause: FailedClause) -> bool:
    if part.all_columns or not clause.property:
        return True
    path = f"{part.object.column}.{clause.property}"
    return any(overlaps(path, own_path) for own_path in part.paths)


def _is_at(path: str, pointer: str) -> bool:
    return path == pointer or path.startswith((f"{pointer}.", f"{pointer}["))


def _unused_names(part: CoveredObject) -> re.Pattern[str] | None:
    """Return a pattern of the names of the object's columns that are not used, or None if all are."""
    if part.all_columns:
        return None
    used = {name for prop in part.walk_properties() for name in (prop.name, prop.physical_name)}
    used |= {name for path in part.paths for name in path.split(".")}
    names = {name for prop in part.object.walk() for name in (prop.name, prop.physical_name) if name}
    unused = sorted(names - used, key=len, reverse=True)
    return (
        re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, unused))})(?!\w)", re.IGNORECASE) if unused else None
    )


def _without_names(clause: FailedClause, part: CoveredObject, unused: re.Pattern[str] | None) -> FailedClause:
    """Return the clause without its column and texts, as far as they are about columns that are not used."""
    if part.all_columns:
        return clause
    path = f"{part.object.column}.{clause.property}"
    is_own = not clause.property or any(
        path == own_path or path.startswith(f"{own_path}.") for own_path in part.paths
    )
    texts = (clause.property, clause.check, clause.observed, clause.allowed)
    if is_own and not (unused and any(unused.search(text) for text in texts)):
        return clause
    return FailedClause(clause.path, clause.check, clause.property if is_own else "", clause.severity, "", "")
