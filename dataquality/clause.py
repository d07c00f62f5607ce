"""A clause: one promise of a contract about the data, made testable but not yet tested."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from dq.contracts.extension import scope as scope_of
from dq.contracts.model import Property, Quality, SchemaObject
from dq.contracts.outcome import Location, Severity
from dq.dataquality.column import Column
from dq.dataquality.metric import Need, Proof
from dq.dataquality.occasion import NOWHEN, Occasion
from dq.dataquality.operators import Threshold, Unusable, threshold
from dq.dataquality.predicate import guarded
from dq.dataquality.reference import Target

# What a kind hands from finding a clause to judging it.
Terms = object


class Rows(StrEnum):
    """Which rows a clause speaks about: those of the partitions that are asked for, or all of the table."""

    PARTITION = "partition"
    TABLE = "table"


class Unit(StrEnum):
    ROWS = "rows"
    PERCENT = "percent"


@dataclass(frozen=True, slots=True)
class Clause:
    """What a check promises, and all that is needed to ask for it and to judge the answer.

    `path` is its identity inside the contract. `breaks` is a predicate that is true for a row that breaks
    the clause (false and NULL do not), and `proof` what of its column would show that none does; `keys` are
    columns whose values may not repeat or, with a `target`, must stand there; with neither, all rows are
    counted. `threshold` bounds that count; without one, no
    row may break the clause.
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
    breaks: str = ""
    proof: Proof = Proof.NONE
    keys: tuple[Column, ...] = ()
    target: Target | None = None
    needs: tuple[Need, ...] = ()
    where: str = ""
    rows: Rows = Rows.PARTITION
    threshold: Threshold | None = None
    unit: Unit = Unit.ROWS
    covers: tuple[str, ...] = ()
    refused: str = ""
    documented: str = ""
    left_out: str = ""
    note: str = ""
    terms: Terms = None
    occasion: Occasion = NOWHEN


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
        needs=(Need(column),),
    )


def of_option(
    check: str, one: SchemaObject, prop: Property, column: Column, key: str, allowed: str
) -> Clause:
    """The clause that a key of a property's `logicalTypeOptions` makes."""
    options = prop.logical_type_options
    assert options is not None
    at, path = options.at(key), options.path(key)
    return Clause(check, path, one.name, str(column), at, Severity.ERROR, allowed, needs=(Need(column),))


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
        terms, findings = scope_of(quality)
        if findings:
            raise Unusable(f"its scope: {findings[0].message}")
        if terms.rows == "window" or terms.window:
            raise Unusable("a scope of rows: window is not evaluated; use partition or table")
        where = guarded(terms.where) if terms.where is not None else ""
    except Unusable as error:
        return refuse(made, str(error))
    percent = " percent of the rows" if unit is Unit.PERCENT else " rows"
    rows = Rows.TABLE if terms.rows == "table" else Rows.PARTITION
    return replace(made, allowed=f"{limit}{percent}", threshold=limit, unit=unit, where=where, rows=rows)


def refuse(clause: Clause, reason: str) -> Clause:
    """The clause as one that cannot be tested."""
    return replace(clause, refused=reason)
