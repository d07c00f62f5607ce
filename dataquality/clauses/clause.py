"""A clause: one promise of a contract about the data, made testable but not yet tested."""

from __future__ import annotations

import builtins
from dataclasses import dataclass, replace
from enum import StrEnum

from dq.contracts.extension import Scope
from dq.contracts.extension import scope as scope_of
from dq.contracts.model import Property, Quality, SchemaObject
from dq.contracts.shared.fault import Fault
from dq.contracts.shared.outcome import Location, Severity
from dq.contracts.shared.units import Duration, parse_duration
from dq.dataquality.clauses.time_column import TimeColumn, find, held_as, zone_of
from dq.dataquality.model.column import Column
from dq.dataquality.model.needs import Need
from dq.dataquality.model.needs import needs as needs_of
from dq.dataquality.model.predicate import Predicate
from dq.dataquality.model.run_context import NOWHEN, Occasion
from dq.dataquality.model.target import Target
from dq.dataquality.model.term import Opaque
from dq.dataquality.model.threshold import Threshold, Unusable, threshold

# What a kind hands from finding a clause to judging it.
Terms = object


class Rows(StrEnum):
    """Which rows a clause speaks about: those of the partitions that are asked for, or all of the table.

    A clause with a window speaks of those of the table that are not older than it.
    """

    PARTITION = "partition"
    TABLE = "table"


class Unit(StrEnum):
    ROWS = "rows"
    PERCENT = "percent"


@dataclass(frozen=True, slots=True)
class Window:
    """The rows of the last so many days, by a column that tells when they are of."""

    time: TimeColumn
    length: Duration


@dataclass(frozen=True, slots=True)
class Clause:
    """What a check promises, and all that is needed to ask for it and to judge the answer.

    `path` is its identity inside the contract. `breaks` is true for a row that breaks the clause; `keys` are
    columns whose values may not repeat or, with a `target`, must stand there; with neither, all rows are
    counted. `where` is true for the rows that it speaks about. `threshold` bounds that count; without one, no
    row may break the clause.
    `narrows` are the columns that `where` of its scope names.
    `complaint` says what such a row does: "3 of 100 rows <complaint>". `covers` are further paths that
    this clause enforces. `refused` says why it cannot be tested, which is an error. Two reasons make no
    result and stand in the account alone: `documented`, why no data can break the clause, and `left_out`,
    why it is not evaluated. `terms` is for a kind's own judge, and `occasion` is what the run was told.
    """

    check: str
    path: str
    object: str
    property: str
    at: Location
    severity: Severity
    allowed: str
    complaint: str = ""
    breaks: Predicate | None = None
    keys: tuple[Column, ...] = ()
    target: Target | None = None
    where: Predicate | None = None
    narrows: tuple[Column, ...] = ()
    rows: Rows = Rows.PARTITION
    window: Window | None = None
    threshold: Threshold | None = None
    unit: Unit = Unit.ROWS
    covers: tuple[str, ...] = ()
    refused: str = ""
    documented: str = ""
    left_out: str = ""
    note: str = ""
    terms: Terms = None
    occasion: Occasion = NOWHEN

    @builtins.property
    def needs(self) -> tuple[Need, ...]:
        """The columns that say whether a row breaks it, and what they must be for that."""
        if self.keys or self.breaks is None:
            return tuple(Need(key) for key in self.keys)
        return needs_of(self.breaks)


def of_property(
    check: str, one: SchemaObject, prop: Property, column: Column, key: str, allowed: str
) -> Clause:
    """The clause that a key of a property makes, still without a question."""
    return Clause(
        check,
        prop.path(key),
        one.name,
        str(column),
        prop.at(key),
        Severity.ERROR,
        allowed,
    )


def of_option(
    check: str, one: SchemaObject, prop: Property, column: Column, key: str, allowed: str
) -> Clause:
    """The clause that a key of a property's `logicalTypeOptions` makes."""
    options = prop.logical_type_options
    assert options is not None
    at, path = options.at(key), options.path(key)
    return Clause(check, path, one.name, str(column), at, Severity.ERROR, allowed)


# Free text in ODCS. What is not listed is an error: a rule that nobody graded must not pass in silence.
_SEVERITIES = {
    **dict.fromkeys(("info", "information", "trivial", "none"), Severity.INFO),
    **dict.fromkeys(("warning", "warn", "low", "minor"), Severity.WARNING),
    **dict.fromkeys(("critical", "blocker", "fatal"), Severity.CRITICAL),
}


def severity(quality: Quality) -> Severity:
    """The severity that a quality rule's free text stands for."""
    return _SEVERITIES.get((quality.severity or "").strip().lower(), Severity.ERROR)


_UNITS = {"": Unit.ROWS, "rows": Unit.ROWS, "percent": Unit.PERCENT, "%": Unit.PERCENT}


@dataclass(frozen=True, slots=True)
class Told:
    """What a rule is measured by."""

    threshold: Threshold
    unit: str | None = None


def of_quality(
    check: str, one: SchemaObject, quality: Quality, name: str, told: Told | None = None
) -> Clause:
    """The clause of a library rule: its threshold, unit, scope and severity, still without a question.

    `told` are threshold and unit that stand in another place than the rule's own keys. Where one of them
    cannot be used, the clause says so in `refused`.
    """
    grade = severity(quality)
    made = Clause(check, quality.path(), one.name, name, quality.at(), grade, "")
    try:
        said = told.unit if told else quality.unit
        unit = _UNITS.get((said or "").strip().lower())
        if unit is None:
            raise Unusable(f"unit {said!r} is neither rows nor percent")
        limit = told.threshold if told else threshold(quality)
        made = scoped(made, one, quality)
    except Unusable as error:
        return refuse(made, str(error))
    percent = " percent of the rows" if unit is Unit.PERCENT else " rows"
    return replace(made, allowed=f"{limit}{percent}", threshold=limit, unit=unit)


def scoped(made: Clause, one: SchemaObject, quality: Quality) -> Clause:
    """The clause on the rows that its rule means. Raises Unusable, with the reason."""
    terms, findings = scope_of(quality)
    if findings:
        raise Unusable(f"its scope: {findings[0].message}")
    made, where = _narrowed(made, terms.where) if terms.where is not None else (made, None)
    if terms.rows == "window" or terms.window:
        return replace(made, where=where, window=_window(one, terms), rows=Rows.TABLE)
    rows = Rows.TABLE if terms.rows == "table" else Rows.PARTITION
    return replace(made, where=where, rows=rows)


def _narrowed(made: Clause, text: str) -> tuple[Clause, Predicate]:
    # Only who has a predicate pays for the parser.
    from dq.contracts.sql.guard import Refused
    from dq.contracts.sql.rule import where

    found = where(text)
    if isinstance(found, Refused):
        raise Unusable(f"its scope: where is refused: {found.reason}. {found.instead.rstrip('.')}")
    return replace(made, narrows=tuple(Column((name,)) for name in found.columns)), Opaque(found.sql)


def _window(one: SchemaObject, terms: Scope) -> Window:
    if terms.rows != "window" or not terms.window:
        raise Unusable("its scope: rows: window and a window such as 7d go together")
    length = parse_duration(terms.window)
    if isinstance(length, Fault):
        raise Unusable(f"its scope: {length.message}")
    keys = [(key, Column((key.column,))) for key in one.partition_keys() if held_as(key)]
    # Of a partition column only the partitions within the window need be read.
    found = keys[0] if len(keys) == 1 else find(one, "")
    if isinstance(found, str):
        raise Unusable(f"its scope: a window needs a column that tells when a row is of; {found}")
    prop, column = found
    kind = held_as(prop)
    assert kind is not None
    return Window(TimeColumn(column, kind, zone_of(prop)), length)


def refuse(clause: Clause, reason: str) -> Clause:
    """The clause as one that cannot be tested."""
    return replace(clause, refused=reason)
