"""Selection of an object's clauses for a run, and coverage of all clauses, so that none is skipped
silently.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache

from dq.contracts.access.data_location import data_formats
from dq.contracts.agreement import is_agreement
from dq.contracts.check_result import CheckResult, Status
from dq.contracts.extension import delivery
from dq.contracts.metrics import implementation, is_unusual_rule, named_metric
from dq.contracts.model import Contract, Element, Node, Property, Quality, SchemaObject, SlaProperty
from dq.contracts.odcs import time_unit
from dq.contracts.outcome import (
    MONTHS,
    SECONDS,
    Duration,
    Location,
    Severity,
    UsageError,
    ValueProblem,
    nearest,
    parse_duration,
)
from dq.contracts.service_levels import service_level_name
from dq.contracts.slo import is_arrival_schedule, unwatched_schedules
from dq.contracts.types import DataType, physical_type
from dq.dataquality.clauses.clause import (
    CheckParameters,
    Clause,
    NoResult,
    RowFilter,
    RowScope,
    TimeColumn,
    Untestable,
    before,
    find_time_column,
    in_words,
    micros_of,
    not_evaluated,
    parameters_of,
    refuse,
    time_type_of,
    with_test,
    zone_of,
)
from dq.dataquality.clauses.foreign_key import NO_NEIGHBOURS, ContractSet
from dq.dataquality.clauses.kind import BY_PLACE, CheckKinds, clauses_of, ending, metrics_for, result, subject
from dq.dataquality.clauses.quality_rule import metric
from dq.dataquality.model.column import columns, resolve, single_columns
from dq.dataquality.model.metric import Aggregate, DistinctKeys, Metric, Query, reads
from dq.dataquality.model.predicate import all_of
from dq.dataquality.model.run_context import Partition, RunContext, Unusable
from dq.dataquality.sql_values import logical_type_of

# TABLE: the keys of ODCS that no check enforces, with state and reason.
#
# States are values of `EnforcementState`. A key that is neither here nor in a clause is "not evaluated", so
# that keys of later versions of the standard are not missed.

KeyState = tuple[str, str]
DOCUMENTED, NOT_EVALUATED = "documented only", "not evaluated"

# Keys without statements about the data, and keys whose parts have their own entries.
SILENT: Mapping[str, str] = {
    **dict.fromkeys(
        ("description", "businessName", "tags", "authoritativeDefinitions", "synonyms", "context"),
        "it is informational",
    ),
    "id": "it is an identifier within the contract",
    "name": "it is a name; the column of a property must exist, which is tested",
    "customProperties": "they are user-defined; dq reads its own extensions from them",
    "deprecated": "it is informational",
    "examples": "they are sample values; 'dq validate' compares them with the type",
    "dataGranularityDescription": "it is informational",
    **dict.fromkeys(
        ("properties", "items", "map", "quality", "relationships", "logicalTypeOptions"),
        "its parts are listed separately",
    ),
}
REASONS: Mapping[str, KeyState] = {
    "physicalName": (DOCUMENTED, "it locates the data"),
    "physicalType": (
        NOT_EVALUATED,
        "it is not a Spark type, so columns cannot be compared with it; logicalType is tested",
    ),
    "logicalType": (DOCUMENTED, "it describes the kind of object"),
    "classification": (DOCUMENTED, "it masks samples; sensitivity cannot be seen in the data"),
    "encryptedName": (DOCUMENTED, "it names another column; encryption cannot be seen in the data"),
    "criticalDataElement": (DOCUMENTED, "it is an informational mark"),
    "semanticType": (DOCUMENTED, "it is an informational mark"),
    "transformSourceObjects": (DOCUMENTED, "it documents the source of the values"),
    "transformLogic": (DOCUMENTED, "it documents how the values are computed"),
    "transformDescription": (DOCUMENTED, "it documents how the values are computed"),
    "partitioned": (
        DOCUMENTED,
        "it is compared with the catalog by 'dq register', and used to read partitions",
    ),
    "partitionKeyPosition": (DOCUMENTED, "it is compared with the catalog by 'dq register'"),
    "primaryKeyPosition": (DOCUMENTED, "it is the order of the key columns"),
    "defaultTimezone": (DOCUMENTED, "it sets the zone for bounds, ages and local times"),
    "distanceMetric": (DOCUMENTED, "it documents how vectors are compared"),
    "embeddingModel": (DOCUMENTED, "it documents how vectors are computed"),
    "embeddingModelVersion": (DOCUMENTED, "it documents how vectors are computed"),
}
# Keys with another meaning on an object.
OBJECT_REASONS: Mapping[str, KeyState] = {
    "physicalType": (DOCUMENTED, "it is the kind of object: table, view or topic"),
}

_HUMAN = (DOCUMENTED, "it is about people and processes and cannot be seen in the data")
_WATCHED = "add a schedule to have 'dq watch' enforce it"
# Keyed by the spelling of ODCS.
SERVICE_LEVEL_REASONS: Mapping[str, KeyState] = {
    **dict.fromkeys(
        ("generalAvailability", "endOfSupport", "endOfLife", "timeToDetect", "timeToNotify", "timeToRepair"),
        _HUMAN,
    ),
    **dict.fromkeys(
        ("availability", "throughput", "errorRate"),
        (DOCUMENTED, "it is about the service that serves the data and cannot be seen in the data"),
    ),
    "frequency": (NOT_EVALUATED, f"rows do not show their arrival time; {_WATCHED}"),
    "timeOfAvailability": (NOT_EVALUATED, f"rows do not show their arrival time; {_WATCHED}"),
}


# Service levels about the age of data: time column and allowed age.

_CENTURY_OF_SECONDS = 100 * 366 * 86_400


@dataclass(frozen=True, slots=True)
class Promise:
    """Parameters of an age clause: time column and allowed age, the largest or (`at_least`) the smallest."""

    time: TimeColumn
    length: Duration
    at_least: bool = False


def age_clauses(
    level: str, allowed: str, contract: Contract, schema_object: SchemaObject
) -> Iterator[Clause]:
    """Yield the clauses of an object for service levels of this name, in any spelling.

    Testable clauses have a Promise as parameters and apply to the whole table. `allowed` is the format of
    their allowed age.
    """
    for sla in contract.sla_properties:
        if service_level_name(sla.property) == level:
            yield from age_clauses_of(sla, level, allowed, contract, schema_object)


def age_clauses_of(
    sla: SlaProperty,
    level: str,
    allowed: str,
    contract: Contract,
    schema_object: SchemaObject,
    *,
    at_least: bool = False,
) -> Iterator[Clause]:
    """Yield the clauses of an object for one service level; see `age_clauses`."""
    for clause, part in level_clauses(sla, level, contract, schema_object):
        yield (
            _clause(clause, schema_object, sla, part, allowed, at_least)
            if part
            else not_evaluated(clause, _unnamed(contract, schema_object, sla))
        )


def level_clauses(
    sla: SlaProperty, level: str, contract: Contract, schema_object: SchemaObject
) -> Iterator[tuple[Clause, str]]:
    """Yield a clause without a test, and the column path, for each element of a service level."""
    parts = elements(contract, schema_object, sla)
    for number, part in enumerate(parts):
        several = len(parts) > 1
        path = f"{sla.path('element')}[{number}]" if several else sla.path()
        clause = Clause(
            level,
            path,
            schema_object.name,
            "",
            sla.locate(),
            Severity.ERROR,
            "",
            row_filter=RowFilter(RowScope.TABLE),
        )
        yield replace(clause, covers=(sla.path(),) if several else ()), part


def elements(contract: Contract, schema_object: SchemaObject, sla: SlaProperty) -> list[str]:
    """Return the column paths of an object that a service level names, "" for the object itself.

    According to ODCS, the object's name is optional if the contract has one object. Without an element, the
    service level applies to every object.
    """
    element_text = sla.element or contract.sla_default_element
    names = {schema_object.name, schema_object.column, schema_object.id or schema_object.name}
    column_paths = []
    for part in (text.strip() for text in element_text.split(",")) if element_text else (schema_object.name,):
        holder, _, column_path = part.partition(".")
        if holder in names:
            column_paths.append(column_path)
        elif len(contract.objects) == 1 and part:
            column_paths.append(part)
    return column_paths


def _unnamed(contract: Contract, schema_object: SchemaObject, sla: SlaProperty) -> str:
    """Return the reason why an object's age cannot be tested without a column: a date may be e.g. a
    birthday.
    """
    if not (sla.element or contract.sla_default_element):
        return "it does not name a column to measure the age; write element: object.column"
    time_columns = [
        str(column)
        for properties, column in single_columns(schema_object.properties)
        if time_type_of(properties[-1])
    ]
    if not time_columns:
        return f"{schema_object.name} has no date or timestamp column to measure the age"
    available = f"{schema_object.name} has {', '.join(time_columns)}"
    return (
        f"it does not name a column to measure the age; {available}; write element: "
        f"{schema_object.name}.<column>"
    )


def _clause(
    clause: Clause, schema_object: SchemaObject, sla: SlaProperty, part: str, allowed: str, at_least: bool
) -> Clause:
    time_column = find_time_column(schema_object, part)
    if isinstance(time_column, str):
        return not_evaluated(clause, time_column)
    prop, column = time_column
    clause = replace(clause, property=str(column))
    kind = time_type_of(prop)
    if kind is None:
        type_text = physical_type(prop) or logical_type_of(prop) or "of an unknown type"
        reason = f"{column} is {type_text}; the age is measured on a date or timestamp"
        return not_evaluated(clause, reason)
    try:
        length = promised(sla)
        time = TimeColumn(column, kind, zone_of(prop))
    except Unusable as error:
        return refuse(clause, str(error))
    return with_test(
        replace(clause, allowed=allowed.format(length)), CheckParameters(Promise(time, length, at_least))
    )


def promised(sla: SlaProperty) -> Duration:
    """Return the duration of a service level. Raises Unusable, with the reason."""
    value, unit = sla.value, (sla.unit or "").strip()
    if isinstance(value, str) and not unit:
        duration = parse_duration(value)
        if isinstance(duration, ValueProblem):
            raise Unusable(f"its value: {duration.message}")
        return duration
    number = isinstance(value, int | float) and not isinstance(value, bool)
    # Also excludes NaN; durations over a century are rejected below.
    if not number or not 0 <= value <= 1e12:
        raise Unusable(f"its value {value!r} is not a valid number for a duration")
    word = time_unit(unit)
    if word is None:
        ambiguity = f"{value:g} minutes to some tools and {value:g} months to others; write min or mo"
        units_hint = "write s, min, h, d, w, mo or y"
        reason = ambiguity if unit.lower() == "m" else f"not a unit of time; {units_hint}"
        raise Unusable(f"its unit {unit!r} is {reason}" if unit else f"it has no unit; {units_hint}")
    text = f"{value:g} {unit}"
    if word in MONTHS:
        months = value * MONTHS[word]
        if months != int(months) or months > 1_200:
            raise Unusable(f"{text} is not a whole number of months up to a century")
        return Duration(int(months), dt.timedelta(), text)
    seconds = value * SECONDS["m" if word == "min" else word]
    if seconds > _CENTURY_OF_SECONDS:
        raise Unusable(f"{text} is longer than a century")
    return Duration(0, dt.timedelta(seconds=seconds), text)


def evaluate_age(clause: Clause, which: str, value: int, now: dt.datetime, extra: str = "") -> CheckResult:
    """Return the result by the `newest` or `oldest` value of a column; `extra` is appended to the message."""
    promise = parameters_of(clause, Promise)
    end = promise.time.ends(value)
    age = max(micros_of(now) - end, 0)
    allowed_end = micros_of(before(now, promise.length, promise.time.zone))
    passes = end <= allowed_end if promise.at_least else end >= allowed_end
    message = (
        f"{subject(clause)}: the {which} value is {promise.time.format_value(value)}, {in_words(age)} "
        f"old{extra}"
    )
    message += ending(clause, passes)
    observed = f"{in_words(age)} old" if which == "newest" else f"oldest {in_words(age)}"
    return result(clause, Status.PASS if passes else Status.FAIL, observed, message, age / 1_000_000)


def untimed(clause: Clause) -> CheckResult:
    """Return the result of a run without a time."""
    message = f"{subject(clause)}: the age of the data cannot be computed without the time; pass now=…"
    return result(clause, Status.ERROR, "not tested", message)


JsonObject = dict[str, object]


class EnforcementState(StrEnum):
    ENFORCED = "enforced"
    DOCUMENTED = "documented only"
    NOT_EVALUATED = "not evaluated"


@dataclass(frozen=True, slots=True)
class ClauseCoverage:
    """Coverage of one clause. `reason` is the check that enforces it, or the reason why none does."""

    path: str
    object: str
    property: str
    clause: str
    state: EnforcementState
    reason: str
    at: Location

    def as_dict(self) -> JsonObject:
        """Return the coverage entry as JSON values."""
        return {
            "clause": self.path,
            "object": self.object,
            "property": self.property or None,
            "description": self.clause,
            "state": self.state.value,
            "reason": self.reason,
            "at": str(self.at),
        }


_D, _N = EnforcementState.DOCUMENTED, EnforcementState.NOT_EVALUATED
_UNKNOWN = (_N, "no check of this version supports it")


def clause_coverage(
    contract: Contract, schema_object: SchemaObject, clauses: Sequence[Clause]
) -> tuple[ClauseCoverage, ...]:
    """Return the coverage of every clause of an object, in file order.

    `clauses` are the clauses found by the check kinds (`kind.clauses_of`).
    """
    enforced = _first_by_path(clauses)
    entries = [
        ClauseCoverage(clause.path, clause.object, "", "additionalColumns", *_state(clause), clause.at)
        for clause in clauses
        if clause.path == schema_object.path("additionalColumns")
    ]
    entries += _element(schema_object, schema_object.name, "", enforced)
    for prop, column in columns(schema_object):
        entries += _element(prop, schema_object.name, str(column), enforced)
    entries += _service_levels(contract, schema_object, enforced)
    return tuple(sorted(entries, key=BY_PLACE))


def _first_by_path(clauses: Sequence[Clause]) -> dict[str, Clause]:
    """Return the first clause of each path."""
    return {path: clause for clause in reversed(clauses) for path in clause.paths}


def _state(clause: Clause) -> tuple[EnforcementState, str]:
    if isinstance(clause.test, NoResult):
        return _D if clause.test.proven else _N, clause.test.reason
    if isinstance(clause.test, Untestable):
        return _N, clause.test.reason
    return EnforcementState.ENFORCED, clause.check


def _element(
    element: Element, name: str, column_name: str, enforced: dict[str, Clause]
) -> Iterator[ClauseCoverage]:
    yield from _keys(element, name, column_name, enforced)
    if isinstance(element, Property) and element.logical_type_options is not None:
        yield from _keys(element.logical_type_options, name, column_name, enforced)
    for relation in element.relationships:
        state, reason = _state(enforced[relation.path()]) if relation.path() in enforced else _UNKNOWN
        to = relation.to if isinstance(relation.to, str) else ", ".join(relation.to or ())
        yield ClauseCoverage(
            relation.path(), name, column_name, f"relationship: {to}", state, reason, relation.locate()
        )
    for quality in element.quality:
        state, reason = _rule(quality, enforced.get(quality.path()))
        is_named = named_metric(quality) is not None or is_agreement(quality) or is_unusual_rule(quality)
        fallback = str(implementation(quality)["check"]) if is_named else quality.type
        title = quality.name or metric(quality) or fallback
        yield ClauseCoverage(
            quality.path(), name, column_name, f"quality: {title}", state, reason, quality.locate()
        )


def _keys(node: Node, name: str, column_name: str, enforced: dict[str, Clause]) -> Iterator[ClauseCoverage]:
    reasons = {**REASONS, **OBJECT_REASONS} if isinstance(node, SchemaObject) else REASONS
    attributes = _attributes(type(node))
    for key in node.place.keys:
        value = getattr(node, attributes.get(key, key), None)
        if key in SILENT or value is None:
            continue
        path = node.path(key)
        clause = enforced.get(path)
        # `required: false` states nothing about the data, but `timezone: false` does.
        if clause is None and (value is False or value == []):
            continue
        state, reason = _state(clause) if clause else _reason_for_key(reasons, key)
        yield ClauseCoverage(path, name, column_name, key, state, reason, node.locate(key))


def _reason_for_key(reasons: Mapping[str, tuple[str, str]], key: str) -> tuple[EnforcementState, str]:
    state, reason = reasons.get(key, _UNKNOWN)
    return EnforcementState(state), reason


@cache
def _attributes(kind: type[Node]) -> dict[str, str]:
    """Return a map from contract keys to attribute names, where they differ."""
    return {info.alias: name for name, info in kind.model_fields.items() if info.alias}


def _rule(quality: Quality, clause: Clause | None) -> tuple[EnforcementState, str]:
    if clause is not None:
        return _state(clause)
    if quality.type == "text":
        return _D, "it is free text"
    if quality.type == "custom":
        return _N, f"rules of the engine {quality.engine!r} are not run"
    metric_name = metric(quality)
    return _N, f"unknown metric {metric_name!r}" if metric_name else "it does not name a metric"


def service_levels(
    contract: Contract, schema_object: SchemaObject, clauses: Sequence[Clause]
) -> tuple[ClauseCoverage, ...]:
    """Return the coverage of the service levels that apply to the object or its properties."""
    return tuple(_service_levels(contract, schema_object, _first_by_path(clauses)))


def _service_levels(
    contract: Contract, schema_object: SchemaObject, enforced: dict[str, Clause]
) -> Iterator[ClauseCoverage]:
    """Yield the coverage of service levels of the object, its properties, and the whole contract."""
    for sla in contract.sla_properties:
        clause = enforced.get(sla.path())
        if clause is None and not elements(contract, schema_object, sla):
            continue
        state, reason = _service_level(contract, sla, clause)
        column_name = clause.property if clause else ""
        yield ClauseCoverage(
            sla.path(),
            schema_object.name,
            column_name,
            f"service level: {sla.property}",
            state,
            reason,
            sla.locate(),
        )


def _service_level(
    contract: Contract, sla: SlaProperty, clause: Clause | None
) -> tuple[EnforcementState, str]:
    terms, findings = delivery(contract, sla)
    if findings:
        return _N, f"its delivery terms: {findings[0].message}"
    tested = _state(clause) if clause is not None else None
    if terms is not None:
        is_tested = tested is not None and tested[0] is EnforcementState.ENFORCED
        return EnforcementState.ENFORCED, f"dq watch, {clause.check}" if is_tested and clause else "dq watch"
    if is_arrival_schedule(sla):
        reasons = {finding.path: finding.message for finding in unwatched_schedules(contract)}
        reason = next((reasons[path] for path in reasons if path.startswith(f"{sla.path()}.")), None)
        if reason is not None:
            return _N, reason.partition(": ")[2].removesuffix(".")
        return EnforcementState.ENFORCED, "dq watch, by the default delivery terms"
    if tested is not None:
        return tested
    name = service_level_name(sla.property)
    return _reason_for_key(SERVICE_LEVEL_REASONS, name)


# Selection of clauses by check, path, or a rule's id or name.


def filter_by_words(
    schema_object: SchemaObject, clauses: Sequence[Clause], words: Sequence[str]
) -> list[Clause]:
    """Return the clauses of an object that match any of the words, or all clauses without words."""
    if not words:
        return list(clauses)
    titles = _titles(schema_object)
    requested = set(words)
    return [clause for clause in clauses if requested & _names_of_clause(clause, titles)]


def testable(clauses: Sequence[Clause]) -> list[Clause]:
    """Return the clauses that have a result."""
    return [clause for clause in clauses if not isinstance(clause.test, NoResult)]


def coverage_of_run(
    coverage: Sequence[ClauseCoverage], clauses: Sequence[Clause], selected_clauses: Sequence[Clause]
) -> tuple[ClauseCoverage, ...]:
    """Return the coverage for a run of some clauses; the others are not evaluated."""
    not_selected = {path for clause in clauses for path in clause.paths}
    not_selected -= {path for clause in selected_clauses for path in clause.paths}
    return tuple(
        replace(entry, state=EnforcementState.NOT_EVALUATED, reason="not selected in this run")
        if entry.path in not_selected and entry.state is EnforcementState.ENFORCED
        else entry
        for entry in coverage
    )


ObjectClauses = tuple[Contract, SchemaObject, Sequence[Clause]]


def refuse_unknown(objects: Sequence[ObjectClauses], words: Sequence[str]) -> None:
    """Raise UsageError for a word that matches no testable clause of any of these objects.

    The error has the reason if a contract has such a rule, or else the nearest known name.
    """
    tested_by_name: dict[str, bool] = {}
    for _, schema_object, clauses in objects:
        titles = _titles(schema_object)
        for clause in clauses:
            tested = not isinstance(clause.test, NoResult)
            for name in _names_of_clause(clause, titles):
                tested_by_name[name] = tested_by_name.get(name, False) or tested
    for word in words:
        if tested_by_name.get(word):
            continue
        reason = next(_reasons(objects, word), None)
        if reason is not None:
            raise UsageError(
                f"--rule {word!r} is not tested: {reason}.", "'dq explain' shows how each clause is enforced."
            )
        near = nearest(word, [name for name, tested in tested_by_name.items() if tested])
        hint = f"Did you mean {near!r}?" if near else "'dq explain' lists the clauses of a contract."
        raise UsageError(
            f"--rule {word!r} is not a check, a clause path, or the id or name of a quality rule.", hint
        )


def _names_of_clause(clause: Clause, titles: Mapping[str, tuple[str, ...]]) -> set[str]:
    return {clause.check, *clause.paths, *titles.get(clause.path, ())}


def _titles(schema_object: SchemaObject) -> dict[str, tuple[str, ...]]:
    """Return the id and name of each quality rule by its path."""
    rules = [rule for element in (schema_object, *schema_object.walk()) for rule in element.quality]
    return {rule.path(): tuple(text for text in (rule.id, rule.name) if text) for rule in rules}


def _reasons(objects: Sequence[ObjectClauses], word: str) -> Iterator[str]:
    for contract, schema_object, clauses in objects:
        titles = _titles(schema_object)
        for entry in clause_coverage(contract, schema_object, clauses):
            if word == entry.path or word in titles.get(entry.path, ()):
                yield entry.reason


# From an object of a contract to the clauses of a run.
#
# All callers (check, quarantine, export, dry run) first select the clauses (`select`), and then bind them to
# the data and the run (`bind_clauses`): window, scope and partitions.


@dataclass(frozen=True, slots=True)
class SelectedClauses:
    """Clauses of an object selected for a run: those with a result, those without, and the coverage of
    all.
    """

    clauses: tuple[Clause, ...]
    untested: tuple[Clause, ...]
    coverage: tuple[ClauseCoverage, ...]


def select(
    contract: Contract,
    schema_object: SchemaObject,
    kinds: CheckKinds,
    rules: Sequence[str] = (),
    exclusion_reason: Callable[[Clause], str | None] = lambda _clause: None,
    neighbours: ContractSet = NO_NEIGHBOURS,
) -> SelectedClauses:
    """Select the clauses of an object.

    Args:
        rules: Words that select clauses, e.g. checks, paths, ids or names; empty for all.
        exclusion_reason: Returns the reason why this run excludes a clause, or None.

    Raises:
        UsageError: A word matches no testable clause.
    """
    all_clauses = [
        _exclude(clause, exclusion_reason)
        for clause in clauses_of(contract, schema_object, kinds, neighbours)
    ]
    refuse_unknown([(contract, schema_object, all_clauses)], rules)
    requested = filter_by_words(schema_object, all_clauses, rules)
    tested = testable(requested)
    untested = tuple(clause for clause in requested if clause not in tested)
    return SelectedClauses(
        tuple(tested),
        untested,
        coverage_of_run(clause_coverage(contract, schema_object, all_clauses), all_clauses, requested),
    )


# Formats whose columns only have types if the contract declares them.
_UNTYPED = {"csv": "CSV holds texts alone", "json": "what nobody declares is read from JSON as texts"}
# Checks whose SQL may read any column; others only read their property's columns and those of the scope.
_SQL_CHECKS = ("sql_rule",)


def as_typed(
    schema_object: SchemaObject, clauses: Iterable[Clause], kinds: CheckKinds, file_format: str
) -> tuple[Clause, ...]:
    """Refuse SQL clauses that read columns without a type in data of this format.

    In CSV and JSON, columns that the contract does not declare are strings, which SQL would compare as
    strings and cast implicitly.
    """
    untyped_reason = _UNTYPED.get(file_format)
    if untyped_reason is None:
        return tuple(clauses)
    declared = {prop.column.lower() for prop in schema_object.properties}
    nested_names = {
        name.lower() for prop in schema_object.walk() for name in (prop.column, *_names(physical_type(prop)))
    }
    return tuple(_typed(clause, kinds, declared, nested_names, untyped_reason) for clause in clauses)


def _typed(
    clause: Clause, kinds: CheckKinds, declared: Set[str], nested_names: Set[str], untyped_reason: str
) -> Clause:
    if clause.refusal_reason or isinstance(clause.test, NoResult):
        return clause
    metrics = metrics_for(clause, kinds) if clause.check in _SQL_CHECKS else ()
    read_columns = [
        *clause.row_filter.columns,
        *(need.column for metric in metrics for need in reads(metric)),
    ]
    unknown = {name for column in read_columns if (name := str(column.steps[0])).lower() not in declared}
    # A name after a dot is a struct field, or a column after its table, so any depth is accepted.
    unknown |= {
        *clause.row_filter.fields,
        *(name for metric in metrics for name in _fields(metric)),
    } - nested_names
    if not unknown:
        return clause
    reason = (
        f"it reads {', '.join(sorted(unknown))}, which the contract does not declare, and {untyped_reason}"
    )
    return refuse(clause, f"{reason}; add it to the properties with its logicalType")


def _fields(metric: Metric) -> tuple[str, ...]:
    """Return the names after a dot in a user's query, in lower case."""
    match metric:
        case Query():
            return metric.fields
        case Aggregate(instead=Query() as query) | DistinctKeys(instead=Query() as query):
            return query.fields
        case _:
            return ()


def _names(kind: DataType | None) -> Iterator[str]:
    """Yield the names of a type's fields, at any depth."""
    if kind is not None:
        yield from kind.names
        for part in kind.parts:
            yield from _names(part)


def expected_clauses(
    contract: Contract,
    schema_object: SchemaObject,
    kinds: CheckKinds,
    neighbours: ContractSet = NO_NEIGHBOURS,
) -> list[Clause]:
    """Return every clause of an object as in a run, as far as the contract alone determines it.

    If servers have different formats, clauses that only one format refuses are not refused here.
    """
    return list(
        as_typed(
            schema_object,
            clauses_of(contract, schema_object, kinds, neighbours),
            kinds,
            untyped_format(contract, schema_object),
        )
    )


def untyped_format(contract: Contract, schema_object: SchemaObject) -> str:
    """Return the object's format if its columns only have the contract's types, or "" if it may be
    another.
    """
    forms = data_formats(contract, schema_object)
    return min(forms) if forms and forms <= _UNTYPED.keys() else ""


def _exclude(clause: Clause, exclusion_reason: Callable[[Clause], str | None]) -> Clause:
    reason = None if isinstance(clause.test, NoResult) else exclusion_reason(clause)
    return clause if reason is None else replace(clause, test=NoResult(reason, proven=False))


def bind_clauses(schema: DataType, clauses: Iterable[Clause], context: RunContext) -> tuple[Clause, ...]:
    """Bind clauses to a schema and a run: window, required rows, and refusal if the scope has unknown
    columns.
    """
    return tuple(_bind_clause(clause, context, schema) for clause in clauses)


def _bind_clause(clause: Clause, context: RunContext, schema: DataType) -> Clause:
    # Spark would resolve an unknown column as a session variable.
    missing_columns = [
        reason for column in clause.row_filter.columns if isinstance(reason := resolve(schema, column), str)
    ]
    if missing_columns and not clause.refusal_reason:
        clause = refuse(clause, f"its scope: {missing_columns[0]}")
    return in_scope(_apply_window(replace(clause, context=context)), context.partitions)


def _apply_window(clause: Clause) -> Clause:
    """Return the clause restricted to its window, counted back from the time of the run."""
    window = clause.row_filter.window
    if window is None or clause.refusal_reason:
        return clause
    now, length, time = clause.context.now, window.length, window.time
    if now is None:
        return refuse(clause, f"the window of {length} ends at the time of the run; pass now=…")
    recent = time.since(before(now, length, time.zone))
    extent = replace(clause.row_filter, where=all_of(recent, clause.row_filter.where))
    return replace(clause, row_filter=extent, note=f"{time.column} within {length}")


def in_scope(clause: Clause, partitions: tuple[Partition, ...]) -> Clause:
    """Return the clause with the rows that it needs if these partitions are checked."""
    in_partition = replace(clause, row_filter=replace(clause.row_filter, rows=RowScope.PARTITION))
    if not partitions:
        return in_partition
    if clause.row_filter.rows is not RowScope.TABLE or clause.row_filter.window is not None:
        return clause
    key = {str(column).lower() for column in clause.keys}
    parts = {column.lower() for partition in partitions for column, _ in partition}
    if clause.keys and parts <= key:
        # The key includes the partition columns, so rows with the same key are in the same partition.
        return replace(in_partition, note="the key includes the partition columns")
    return replace(clause, note="tested on the whole table")
