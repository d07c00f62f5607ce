"""Which clauses a run asks of an object, and what becomes of every other one: no silent skip."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache

from dq.contracts.access.data_location import formats
from dq.contracts.diff import name_of
from dq.contracts.extension import delivery
from dq.contracts.metrics import measure_named
from dq.contracts.model import Contract, Element, Node, Property, Quality, SchemaObject, SlaProperty
from dq.contracts.odcs import time_unit
from dq.contracts.outcome import (
    MONTHS,
    SECONDS,
    CheckResult,
    Duration,
    Location,
    Severity,
    Status,
    TextFault,
    UsageError,
    nearest,
    parse_duration,
)
from dq.contracts.types import DataType, physical_type
from dq.dataquality.clauses.clause import (
    Clause,
    Extent,
    KindTerms,
    NoResult,
    RowScope,
    TimeColumn,
    Untestable,
    asking,
    before,
    find_time_column,
    held_as,
    in_words,
    left_out,
    micros_of,
    refuse,
    terms_of,
    zone_of,
)
from dq.dataquality.clauses.foreign_key import ALONE, Neighbours
from dq.dataquality.clauses.kind import BY_PLACE, Shelf, asked_by, clauses_of, ending, result, subject
from dq.dataquality.clauses.quality_rule import metric
from dq.dataquality.model.column import columns, resolve, single_columns
from dq.dataquality.model.metric import Aggregate, DistinctKeys, Metric, Query, reads
from dq.dataquality.model.predicate import all_of
from dq.dataquality.model.run_context import Occasion, Partition, Unusable
from dq.dataquality.sql_values import logical

# TABLE: the keys of ODCS that no check enforces, each with what becomes of it and why.
#
# States are those of `accounting.State`. A key that stands neither here nor in a clause of a check is "not
# evaluated": a later version of the standard cannot slip through.

Told = tuple[str, str]
DOCUMENTED, NOT_EVALUATED = "documented only", "not evaluated"

# Keys that describe and promise nothing about the data, and those whose parts are accounted by themselves.
SILENT: Mapping[str, str] = {
    **dict.fromkeys(
        ("description", "businessName", "tags", "authoritativeDefinitions", "synonyms", "context"),
        "it is for readers",
    ),
    "id": "it names this place of the contract",
    "name": "it names the object; that a property's column is there is tested",
    "customProperties": "they are the organisation's own; what dq adds to ODCS stands in them",
    "deprecated": "it is for readers",
    "examples": "they show values; the gate holds them against the type",
    "dataGranularityDescription": "it is for readers",
    **dict.fromkeys(
        ("properties", "items", "map", "quality", "relationships", "logicalTypeOptions"),
        "its parts are listed by themselves",
    ),
}
REASONS: Mapping[str, Told] = {
    "physicalName": (DOCUMENTED, "it says where the data is, and is used to find it"),
    "physicalType": (
        NOT_EVALUATED,
        "it is no type of Spark, so that no column can be compared with it; logicalType is tested",
    ),
    "logicalType": (DOCUMENTED, "it says what kind of thing this is"),
    "classification": (DOCUMENTED, "it masks samples; data does not show how sensitive it is"),
    "encryptedName": (DOCUMENTED, "it names another column; whether that one is encrypted cannot be seen"),
    "criticalDataElement": (DOCUMENTED, "it is a mark for readers"),
    "semanticType": (DOCUMENTED, "it is a mark for readers"),
    "transformSourceObjects": (DOCUMENTED, "it tells where the values come from"),
    "transformLogic": (DOCUMENTED, "it tells how the values are made"),
    "transformDescription": (DOCUMENTED, "it tells how the values are made"),
    "partitioned": (
        DOCUMENTED,
        "it is compared with the catalog by 'dq register', and used to read partitions",
    ),
    "partitionKeyPosition": (DOCUMENTED, "it is compared with the catalog by 'dq register'"),
    "primaryKeyPosition": (DOCUMENTED, "it orders the columns of the key"),
    "defaultTimezone": (DOCUMENTED, "it tells how bounds, ages and civil times are read"),
    "distanceMetric": (DOCUMENTED, "it tells how vectors are compared"),
    "embeddingModel": (DOCUMENTED, "it tells how vectors are made"),
    "embeddingModelVersion": (DOCUMENTED, "it tells how vectors are made"),
}
# The same key means something else on an object.
OF_OBJECTS: Mapping[str, Told] = {
    "physicalType": (DOCUMENTED, "it says whether this is a table, a view or a topic"),
}

_HUMAN = (DOCUMENTED, "it is about people and plans; the data does not show it")
_WATCHED = "say when in a schedule with delivery terms, and 'dq watch' holds it to that"
# By the name as ODCS writes it.
LEVELS: Mapping[str, Told] = {
    **dict.fromkeys(
        ("generalAvailability", "endOfSupport", "endOfLife", "timeToDetect", "timeToNotify", "timeToRepair"),
        _HUMAN,
    ),
    **dict.fromkeys(
        ("availability", "throughput", "errorRate"),
        (DOCUMENTED, "it is about the service that hands the data out; the data does not show it"),
    ),
    "frequency": (NOT_EVALUATED, f"rows do not show when they came: {_WATCHED}"),
    "timeOfAvailability": (NOT_EVALUATED, f"rows do not show when they came: {_WATCHED}"),
}


# Service levels about the age of data: which column shows it, and how long is allowed.

_CENTURY_OF_SECONDS = 100 * 366 * 86_400


@dataclass(frozen=True, slots=True)
class Promise:
    """What an age clause hands to its judge."""

    time: TimeColumn
    length: Duration


def promises(level: str, allowed: str, contract: Contract, one: SchemaObject) -> Iterator[Clause]:
    """The clauses of an object that a service level of this name makes, whatever its spelling.

    Its terms are a Promise where it can be tested; `allowed` is how the length is said then. It speaks of the
    whole table.
    """
    for sla in contract.sla_properties:
        if name_of(sla.property) != level:
            continue
        parts = elements(contract, one, sla)
        for number, part in enumerate(parts):
            several = len(parts) > 1
            path = f"{sla.path('element')}[{number}]" if several else sla.path()
            made = Clause(
                level, path, one.name, "", sla.at(), Severity.ERROR, "", extent=Extent(RowScope.TABLE)
            )
            made = replace(made, covers=(sla.path(),) if several else ())
            yield (
                _clause(made, one, sla, part, allowed)
                if part
                else left_out(made, _unnamed(contract, one, sla))
            )


def elements(contract: Contract, one: SchemaObject, sla: SlaProperty) -> list[str]:
    """What a service level names inside of an object: paths of columns, or the empty text for the object.

    As ODCS says, the object's name may be left out where the contract has one object. Without an element
    the service level speaks of every object.
    """
    written = sla.element or contract.sla_default_element
    names = {one.name, one.column, one.id or one.name}
    found = []
    for part in (text.strip() for text in written.split(",")) if written else (one.name,):
        holder, _, rest = part.partition(".")
        if holder in names:
            found.append(rest)
        elif len(contract.objects) == 1 and part:
            found.append(part)
    return found


def _unnamed(contract: Contract, one: SchemaObject, sla: SlaProperty) -> str:
    """Why the age of an object by itself is not told: a column of dates may be anybody's birthday."""
    if not (sla.element or contract.sla_default_element):
        return "it names no column whose values tell the age; write element: object.column"
    dated = [str(column) for way, column in single_columns(one.properties) if held_as(way[-1])]
    if not dated:
        return f"{one.name} has no column of dates or timestamps that could show the age"
    known = f"{one.name} has {', '.join(dated)}"
    return f"it names no column whose values tell the age; {known}; write element: {one.name}.<column>"


def _clause(made: Clause, one: SchemaObject, sla: SlaProperty, part: str, allowed: str) -> Clause:
    found = find_time_column(one, part)
    if isinstance(found, str):
        return left_out(made, found)
    prop, column = found
    made = replace(made, property=str(column))
    kind = held_as(prop)
    if kind is None:
        shown = physical_type(prop) or logical(prop) or "of an unknown type"
        reason = f"{column} is {shown}; the age of data is seen on a date or timestamp"
        return left_out(made, reason)
    try:
        length = promised(sla)
        time = TimeColumn(column, kind, zone_of(prop))
    except Unusable as error:
        return refuse(made, str(error))
    return asking(replace(made, allowed=allowed.format(length)), KindTerms(Promise(time, length)))


def promised(sla: SlaProperty) -> Duration:
    """The length of time that a service level promises. Raises Unusable, with the reason."""
    value, unit = sla.value, (sla.unit or "").strip()
    if isinstance(value, str) and not unit:
        found = parse_duration(value)
        if isinstance(found, TextFault):
            raise Unusable(f"its value: {found.message}")
        return found
    number = isinstance(value, int | float) and not isinstance(value, bool)
    # Not NaN either; what is longer than a century is told below.
    if not number or not 0 <= value <= 1e12:
        raise Unusable(f"its value {value!r} is not a number of a unit of time")
    word = time_unit(unit)
    if word is None:
        both = f"{value:g} minutes to some tools and {value:g} months to others; write min or mo"
        known = "write s, min, h, d, w, mo or y"
        reason = both if unit.lower() == "m" else f"no unit of time; {known}"
        raise Unusable(f"its unit {unit!r} is {reason}" if unit else f"it has no unit; {known}")
    text = f"{value:g} {unit}"
    if word in MONTHS:
        months = value * MONTHS[word]
        if months != int(months) or months > 1_200:
            raise Unusable(f"{text} is no whole number of months up to a century")
        return Duration(int(months), dt.timedelta(), text)
    seconds = value * SECONDS["m" if word == "min" else word]
    if seconds > _CENTURY_OF_SECONDS:
        raise Unusable(f"{text} is longer than a century")
    return Duration(0, dt.timedelta(seconds=seconds), text)


def judged(clause: Clause, which: str, value: int, now: dt.datetime, more: str = "") -> CheckResult:
    """The result by the `newest` or the `oldest` value of a column; `more` is said of other values."""
    promise = terms_of(clause, Promise)
    end = promise.time.ends(value)
    age = max(micros_of(now) - end, 0)
    kept = end >= micros_of(before(now, promise.length, promise.time.zone))
    message = (
        f"{subject(clause)}: the {which} value is {promise.time.shown(value)}, {in_words(age)} old{more}"
    )
    message += ending(clause, kept)
    observed = f"{in_words(age)} old" if which == "newest" else f"oldest {in_words(age)}"
    return result(clause, Status.PASS if kept else Status.FAIL, observed, message, age / 1_000_000)


def untimed(clause: Clause) -> CheckResult:
    """The result of a run that was not told the time."""
    said = f"{subject(clause)}: how old the data is cannot be told without the time; hand it in: now=…"
    return result(clause, Status.ERROR, "not tested", said)


JsonObject = dict[str, object]


class State(StrEnum):
    ENFORCED = "enforced"
    DOCUMENTED = "documented only"
    NOT_EVALUATED = "not evaluated"


@dataclass(frozen=True, slots=True)
class Account:
    """What becomes of one clause. `reason` names the check that enforces it, or says why none does."""

    path: str
    object: str
    property: str
    clause: str
    state: State
    reason: str
    at: Location

    def as_dict(self) -> JsonObject:
        """As JSON values."""
        return {
            "clause": self.path,
            "object": self.object,
            "property": self.property or None,
            "says": self.clause,
            "state": self.state.value,
            "reason": self.reason,
            "at": str(self.at),
        }


_D, _N = State.DOCUMENTED, State.NOT_EVALUATED
_UNKNOWN = (_N, "no check of this version knows it")


def accounts(contract: Contract, one: SchemaObject, clauses: Sequence[Clause]) -> tuple[Account, ...]:
    """The account of every clause of an object, in the order of the file.

    `clauses` are those that the shelf found there (`kind.clauses_of`).
    """
    enforced = _by_path(clauses)
    listed = [
        Account(clause.path, clause.object, "", "additionalColumns", *_state(clause), clause.at)
        for clause in clauses
        if clause.path == one.path("additionalColumns")
    ]
    listed += _element(one, one.name, "", enforced)
    for prop, column in columns(one):
        listed += _element(prop, one.name, str(column), enforced)
    listed += _service_levels(contract, one, enforced)
    return tuple(sorted(listed, key=BY_PLACE))


def _by_path(clauses: Sequence[Clause]) -> dict[str, Clause]:
    """Of several clauses with one path, the first."""
    return {path: clause for clause in reversed(clauses) for path in clause.paths}


def _state(clause: Clause) -> tuple[State, str]:
    if isinstance(clause.ask, NoResult):
        return _D if clause.ask.proven else _N, clause.ask.reason
    if isinstance(clause.ask, Untestable):
        return _N, clause.ask.reason
    return State.ENFORCED, clause.check


def _element(element: Element, name: str, shown: str, enforced: dict[str, Clause]) -> Iterator[Account]:
    yield from _keys(element, name, shown, enforced)
    if isinstance(element, Property) and element.logical_type_options is not None:
        yield from _keys(element.logical_type_options, name, shown, enforced)
    for relation in element.relationships:
        state, reason = _state(enforced[relation.path()]) if relation.path() in enforced else _UNKNOWN
        to = relation.to if isinstance(relation.to, str) else ", ".join(relation.to or ())
        yield Account(relation.path(), name, shown, f"relationship: {to}", state, reason, relation.at())
    for quality in element.quality:
        state, reason = _rule(quality, enforced.get(quality.path()))
        measured = measure_named(quality)
        own = measured.name if measured else quality.type
        said = quality.name or metric(quality) or own
        yield Account(quality.path(), name, shown, f"quality: {said}", state, reason, quality.at())


def _keys(node: Node, name: str, shown: str, enforced: dict[str, Clause]) -> Iterator[Account]:
    reasons = {**REASONS, **OF_OBJECTS} if isinstance(node, SchemaObject) else REASONS
    attributes = _attributes(type(node))
    for key in node.place.keys:
        value = getattr(node, attributes.get(key, key), None)
        if key in SILENT or value is None:
            continue
        path = node.path(key)
        clause = enforced.get(path)
        # `required: false` promises nothing, `timezone: false` does.
        if clause is None and (value is False or value == []):
            continue
        state, reason = _state(clause) if clause else _told(reasons, key)
        yield Account(path, name, shown, key, state, reason, node.at(key))


def _told(reasons: Mapping[str, tuple[str, str]], key: str) -> tuple[State, str]:
    state, reason = reasons.get(key, _UNKNOWN)
    return State(state), reason


@cache
def _attributes(kind: type[Node]) -> dict[str, str]:
    """The key of a contract -> the attribute that holds it, where they differ."""
    return {info.alias: name for name, info in kind.model_fields.items() if info.alias}


def _rule(quality: Quality, clause: Clause | None) -> tuple[State, str]:
    if clause is not None:
        return _state(clause)
    if quality.type == "text":
        return _D, "it is prose"
    if quality.type == "custom":
        return _N, f"rules of the engine {quality.engine!r} are not run"
    named = metric(quality)
    return _N, f"the metric {named!r} is not one that is known here" if named else "it names no metric"


def service_levels(contract: Contract, one: SchemaObject, clauses: Sequence[Clause]) -> tuple[Account, ...]:
    """The accounts of the service levels that name the object or a property of it alone."""
    return tuple(_service_levels(contract, one, _by_path(clauses)))


def _service_levels(contract: Contract, one: SchemaObject, enforced: dict[str, Clause]) -> Iterator[Account]:
    """Service levels that name the object or a property of it, and those of the whole contract."""
    for sla in contract.sla_properties:
        clause = enforced.get(sla.path())
        if clause is None and not elements(contract, one, sla):
            continue
        state, reason = _service_level(contract, sla, clause)
        shown = clause.property if clause else ""
        yield Account(sla.path(), one.name, shown, f"service level: {sla.property}", state, reason, sla.at())


def _service_level(contract: Contract, sla: SlaProperty, clause: Clause | None) -> tuple[State, str]:
    terms, findings = delivery(contract, sla)
    if findings:
        return _N, f"its delivery terms: {findings[0].message}"
    tested = _state(clause) if clause is not None else None
    if terms is not None:
        both = tested is not None and tested[0] is State.ENFORCED
        return State.ENFORCED, f"dq watch, {clause.check}" if both and clause else "dq watch"
    if tested is not None:
        return tested
    name = name_of(sla.property)
    return _told(LEVELS, name)


# Which clauses a run asks for when it does not ask for all: by check, path, or a rule's id or name.


def selected(one: SchemaObject, clauses: Sequence[Clause], words: Sequence[str]) -> list[Clause]:
    """The clauses of an object that one of the words stands for; no words at all stand for every clause."""
    if not words:
        return list(clauses)
    titles = _titles(one)
    asked = set(words)
    return [clause for clause in clauses if asked & _names_of_clause(clause, titles)]


def testable(clauses: Sequence[Clause]) -> list[Clause]:
    """Those that end as a result: not those that no data can break, or that nothing evaluates."""
    return [clause for clause in clauses if not isinstance(clause.ask, NoResult)]


def without(
    accounted: Sequence[Account], clauses: Sequence[Clause], asked: Sequence[Clause]
) -> tuple[Account, ...]:
    """The account of a run of some clauses: what it did not ask for is not evaluated."""
    left = {path for clause in clauses for path in clause.paths}
    left -= {path for clause in asked for path in clause.paths}
    return tuple(
        replace(one, state=State.NOT_EVALUATED, reason="this run did not ask for it")
        if one.path in left and one.state is State.ENFORCED
        else one
        for one in accounted
    )


Found = tuple[Contract, SchemaObject, Sequence[Clause]]


def refuse_unknown(found: Sequence[Found], words: Sequence[str]) -> None:
    """Raises UsageError for a word that stands for no clause that can be tested in any of these objects.

    The error says why nothing tests it, where a contract has such a rule, and else the nearest known name.
    """
    known: dict[str, bool] = {}
    for _, one, clauses in found:
        titles = _titles(one)
        for clause in clauses:
            tested = not isinstance(clause.ask, NoResult)
            for name in _names_of_clause(clause, titles):
                known[name] = known.get(name, False) or tested
    for word in words:
        if known.get(word):
            continue
        reason = next(_reasons(found, word), None)
        if reason is not None:
            raise UsageError(
                f"--rule {word!r} is not tested: {reason}.", "'dq explain' accounts for each clause."
            )
        near = nearest(word, [name for name, tested in known.items() if tested])
        mend = f"Did you mean {near!r}?" if near else "'dq explain' lists the clauses of a contract."
        raise UsageError(
            f"--rule {word!r} is no check, clause path, or id or name of a quality rule here.", mend
        )


def _names_of_clause(clause: Clause, titles: Mapping[str, tuple[str, ...]]) -> set[str]:
    return {clause.check, *clause.paths, *titles.get(clause.path, ())}


def _titles(one: SchemaObject) -> dict[str, tuple[str, ...]]:
    """The id and the name of each quality rule, by its path."""
    rules = [rule for element in (one, *one.walk()) for rule in element.quality]
    return {rule.path(): tuple(text for text in (rule.id, rule.name) if text) for rule in rules}


def _reasons(found: Sequence[Found], word: str) -> Iterator[str]:
    for contract, one, clauses in found:
        titles = _titles(one)
        for account in accounts(contract, one, clauses):
            if word == account.path or word in titles.get(account.path, ()):
                yield account.reason


# From an object of a contract to the clauses that are asked of its data: the one way that every run goes.
#
# First it is selected what is asked (`select`), then the selected is put on the data and the run
# (`asked_of`):
# its window, its scope, and the partitions. Who tests, writes apart, exports or foresees takes both steps.


@dataclass(frozen=True, slots=True)
class Selected:
    """What a run asks of an object: clauses that end as a result, those that do not, all accounts."""

    clauses: tuple[Clause, ...]
    untested: tuple[Clause, ...]
    accounts: tuple[Account, ...]


def select(
    contract: Contract,
    one: SchemaObject,
    kinds: Shelf,
    rules: Sequence[str] = (),
    why_not: Callable[[Clause], str | None] = lambda _clause: None,
    neighbours: Neighbours = ALONE,
) -> Selected:
    """The clauses of an object that these words stand for; `why_not` says of one why this run leaves it out.

    No words stand for all. Raises UsageError for a word that stands for no clause that can be tested.
    """
    found = [_left_out(clause, why_not) for clause in clauses_of(contract, one, kinds, neighbours)]
    refuse_unknown([(contract, one, found)], rules)
    chosen = selected(one, found, rules)
    tested = testable(chosen)
    untested = tuple(clause for clause in chosen if clause not in tested)
    return Selected(tuple(tested), untested, without(accounts(contract, one, found), found, chosen))


# Formats whose values have the types that a contract declares for them, and none without it.
_UNTYPED = {"csv": "CSV holds texts alone", "json": "what nobody declares is read from JSON as texts"}
# Other kinds read the columns of properties alone, but for the scope of a rule.
_OF_SQL = ("sql_rule",)


def as_typed(one: SchemaObject, clauses: Iterable[Clause], kinds: Shelf, form: str) -> tuple[Clause, ...]:
    """The clauses as data of this format can be asked them.

    Refused is a rule of SQL that reads a column which has no type, because the contract does not declare it:
    SQL orders its values as texts and casts them as it likes. The smallest of -5 and 9 is no number then, and
    10.5 is not more than 10.
    """
    why = _UNTYPED.get(form)
    if why is None:
        return tuple(clauses)
    known = {prop.column.lower() for prop in one.properties}
    below = {name.lower() for prop in one.walk() for name in (prop.column, *_names(physical_type(prop)))}
    return tuple(_typed(clause, kinds, known, below, why) for clause in clauses)


def _typed(clause: Clause, kinds: Shelf, known: Set[str], below: Set[str], why: str) -> Clause:
    if clause.refused or isinstance(clause.ask, NoResult):
        return clause
    asked = asked_by(clause, kinds) if clause.check in _OF_SQL else ()
    read = [*clause.extent.narrows, *(need.column for metric in asked for need in reads(metric))]
    unknown = {name for column in read if (name := str(column.steps[0])).lower() not in known}
    # Behind a dot stands a field of a struct, or a column after its table: then any depth may be meant.
    unknown |= {*clause.extent.fields, *(name for metric in asked for name in _fields(metric))} - below
    if not unknown:
        return clause
    reason = f"it reads {', '.join(sorted(unknown))}, which the contract does not declare, and {why}"
    return refuse(clause, f"{reason}; add it to the properties with its logicalType")


def _fields(metric: Metric) -> tuple[str, ...]:
    """The names that a user's query has behind a dot, in lower case, however it is asked."""
    match metric:
        case Query():
            return metric.fields
        case Aggregate(instead=Query() as asked) | DistinctKeys(instead=Query() as asked):
            return asked.fields
        case _:
            return ()


def _names(kind: DataType | None) -> Iterator[str]:
    """The names of a type's fields, at any depth."""
    if kind is not None:
        yield from kind.names
        for part in kind.parts:
            yield from _names(part)


def foreseen(
    contract: Contract, one: SchemaObject, kinds: Shelf, neighbours: Neighbours = ALONE
) -> list[Clause]:
    """Every clause of an object as a run will find it, as far as the contract alone tells.

    Where it names several servers, what only one of their formats refuses is left to the run.
    """
    return list(as_typed(one, clauses_of(contract, one, kinds, neighbours), kinds, untyped(contract, one)))


def untyped(contract: Contract, one: SchemaObject) -> str:
    """The format of an object whose columns have no type but for the contract, "" where another may be."""
    forms = formats(contract, one)
    return min(forms) if forms and forms <= _UNTYPED.keys() else ""


def _left_out(clause: Clause, why_not: Callable[[Clause], str | None]) -> Clause:
    reason = None if isinstance(clause.ask, NoResult) else why_not(clause)
    return clause if reason is None else replace(clause, ask=NoResult(reason, proven=False))


def asked_of(schema: DataType, clauses: Iterable[Clause], occasion: Occasion) -> tuple[Clause, ...]:
    """The clauses as they are asked of data of this schema on an occasion.

    Each with its window, with the rows that it must see, and refused where its scope names no column.
    """
    return tuple(_on(clause, occasion, schema) for clause in clauses)


def _on(clause: Clause, occasion: Occasion, schema: DataType) -> Clause:
    # Spark would look for what is no column among the variables of the session.
    absent = [why for one in clause.extent.narrows if isinstance(why := resolve(schema, one), str)]
    if absent and not clause.refused:
        clause = refuse(clause, f"its scope: {absent[0]}")
    return in_scope(_windowed(replace(clause, occasion=occasion)), occasion.partitions)


def _windowed(clause: Clause) -> Clause:
    """The clause on the rows that its window leaves, counted back from the time of the run."""
    window = clause.extent.window
    if window is None or clause.refused:
        return clause
    now, length, time = clause.occasion.now, window.length, window.time
    if now is None:
        return refuse(clause, f"the window of {length} ends with the time of the run; hand it in: now=…")
    recent = time.since(before(now, length, time.zone))
    extent = replace(clause.extent, where=all_of(recent, clause.extent.where))
    return replace(clause, extent=extent, note=f"{time.column} within {length}")


def in_scope(clause: Clause, partitions: tuple[Partition, ...]) -> Clause:
    """The clause with the rows that it must see when these partitions are asked for."""
    within = replace(clause, extent=replace(clause.extent, rows=RowScope.PARTITION))
    if not partitions:
        return within
    if clause.extent.rows is not RowScope.TABLE or clause.extent.window is not None:
        return clause
    key = {str(column).lower() for column in clause.keys}
    parts = {column.lower() for partition in partitions for column, _ in partition}
    if clause.keys and parts <= key:
        # Rows with the same key lie in the same partition.
        return replace(within, note="the key holds the partition, which suffices")
    return replace(clause, note="tested on the whole table")
