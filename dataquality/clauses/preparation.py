"""From an object of a contract to the clauses that are asked of its data: the one way of every run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from dq.contracts.access.data_location import formats
from dq.contracts.model import Contract, SchemaObject
from dq.contracts.shared.outcome import UsageError, nearest
from dq.contracts.types import DataType, physical_type
from dq.dataquality.clauses.clause import Clause, NoResult, RowScope, before, refuse
from dq.dataquality.clauses.coverage import Account, State, accounts
from dq.dataquality.clauses.foreign_key import ALONE, Neighbours
from dq.dataquality.clauses.kind import Shelf, asked_by, clauses_of
from dq.dataquality.model.column import resolve
from dq.dataquality.model.metric import Aggregate, DistinctKeys, Metric, Query, reads
from dq.dataquality.model.predicate import all_of
from dq.dataquality.model.run_context import Occasion, Partition

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
