"""One object's contract against its data: clauses, plan, measurement, judgement, report."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from dq.contracts.model import Contract, SchemaObject
from dq.contracts.shared.errors import DqError, UsageError
from dq.contracts.shared.outcome import CheckResult, Status
from dq.contracts.types import DataType
from dq.dataquality.clauses.clause import Clause, Rows, refuse
from dq.dataquality.clauses.coverage import accounts
from dq.dataquality.clauses.judge import result
from dq.dataquality.clauses.kind import Shelf, built_in, clauses_of
from dq.dataquality.clauses.selection import refuse_unknown, testable, wanted, without
from dq.dataquality.clauses.time_column import before
from dq.dataquality.model.column import resolve
from dq.dataquality.model.metric import Answers, Failure, Metric
from dq.dataquality.model.predicate import all_of
from dq.dataquality.model.run_context import Earlier, Occasion
from dq.dataquality.report import Partition, Report
from dq.dataquality.shortcuts.folder_counts import Memory, recalled
from dq.dataquality.shortcuts.kernels.run import WORTH_ROWS
from dq.dataquality.shortcuts.levers import ALL, Lever
from dq.dataquality.shortcuts.shortcut import Shortcut, shortcut
from dq.dataquality.shortcuts.statistics.facts import Partitions
from dq.dataquality.spark.dataset import Dataset, in_one_task, only, open_frame
from dq.dataquality.spark.failing_rows import samples
from dq.dataquality.spark.measure import Others, implied, measure, schema_of
from dq.dataquality.spark.plan import plan
from dq.dataquality.spark.time_limit import time_limit

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def check(
    contract: Contract,
    data: DataFrame | Dataset,
    object_name: str | None = None,
    *,
    spark: SparkSession | None = None,
    partitions: Sequence[Mapping[str, str]] | None = None,
    now: datetime | None = None,
    kinds: Shelf | None = None,
    others: Mapping[str, DataFrame | Dataset] | None = None,
    history: Sequence[Earlier] | None = None,
    levers: Set[Lever] = ALL,
    tasks_from: int = WORTH_ROWS,
    rules: Sequence[str] = (),
    memory: Memory | None = None,
    limit_seconds: float | None = None,
) -> Report:
    """Every clause of one object of the contract, tested on its data.

    `data` is a DataFrame, or a Dataset (see `dataset.locate`), for which `spark` is needed. `object_name`
    may be left out when the contract has one object. `partitions` are column-to-value texts as they stand
    in the path: only these are read, together they are one scope, and what is promised of the table is
    tested on the table all the same. `now` is the aware time of the run, from which the age of data is
    counted. `others` are the whole data of the objects that relationships refer to, by name; the object
    itself need not be among them. A relationship to one that is not given is an error. `history` is what
    earlier runs counted (`history.counts`), for rules that compare with it. `levers` are the ways to read
    less; no verdict depends on them. Those that run Python tasks are used from `tasks_from` rows on.
    `rules` limits the test to the clauses of these checks, paths, or ids or names of quality rules; the
    report's account says which ones it left out. With a `memory`, what is promised of the table is told
    from kept counts of its folders and new ones of those that changed; `now` must then be the real time.
    SQL, patterns and functions of the contract's author that take longer than the limit are stopped, which
    is an error of their clauses alone (see `measure.measure`).

    Raises UsageError for an unknown object, partition column or rule and a `now` without zone, and
    Unreadable when the data cannot be opened. What is wrong inside the data is in the report.
    """
    if now is not None and now.utcoffset() is None:
        raise UsageError(f"now={now} names no instant.", "Give it a zone: datetime.now(timezone.utc).")
    one = pick(contract, object_name)
    asked = tuple(tuple(sorted(each.items())) for each in partitions or ())
    shelf = built_in() if kinds is None else kinds
    found = clauses_of(contract, one, shelf)
    refuse_unknown([(contract, one, found)], rules)
    chosen = wanted(one, found, rules)
    occasion = Occasion(now, asked, None if history is None else tuple(history))
    table = opened(data, spark)
    clauses = [on(clause, occasion, schema_of(table)) for clause in testable(chosen)]
    scoped = only(table, partitions) if partitions else table
    given = others_of(one, table, others or {}, spark)
    results: dict[str, CheckResult] = {}
    passes = proven = 0
    for rows, frame, parts in ((Rows.PARTITION, scoped, partitions or ()), (Rows.TABLE, table, ())):
        mine = [clause for clause in clauses if clause.rows is rows]
        source = data if isinstance(data, Dataset) else None
        keeper = memory if rows is Rows.TABLE else None
        known = _shortcut(
            _asked(mine, shelf), table, source, parts, levers, tasks_from, keeper, now, limit_seconds
        )
        answers, ran = _measured(frame, mine, shelf, given, known.answers, limit_seconds)
        judged = {clause.path: answered(clause, answers, shelf) for clause in mine}
        results |= _sampled(frame, one, mine, judged, given, limit_seconds)
        passes += ran + known.passes
        proven += sum(_by_statistics(clause, known.proven, shelf) for clause in mine)
    ordered = tuple(results[clause.path] for clause in clauses)
    return Report(
        contract=contract.id,
        version=contract.version,
        object=one.name,
        partitions=asked,
        results=ordered,
        accounts=without(accounts(contract, one, found), found, chosen),
        passes=passes,
        proven=proven,
        at=now,
        rules=tuple(rules),
    )


def pick(contract: Contract, name: str | None) -> SchemaObject:
    """The object of this name, or the only one. Raises UsageError, with the names there are."""
    names = ", ".join(one.name for one in contract.objects) or "none"
    if name is None and len(contract.objects) == 1:
        return contract.objects[0]
    found = contract.object(name) if name is not None else None
    if found is None:
        said = f"has no object {name!r}" if name is not None else "has not one object"
        raise UsageError(f"contract {contract.id} {said}; it has: {names}.", "Name one of them.")
    return found


def opened(data: DataFrame | Dataset, spark: SparkSession | None) -> DataFrame:
    """The data as a DataFrame; of a Dataset as `open_frame` gives it. Raises UsageError without a session."""
    if not isinstance(data, Dataset):
        return data
    if spark is None:
        raise UsageError("a Dataset needs a Spark session to be opened.", "Give spark=….")
    return open_frame(spark, data)


def others_of(
    one: SchemaObject, table: DataFrame, given: Mapping[str, DataFrame | Dataset], spark: SparkSession | None
) -> Others:
    """Opens the other objects when they are asked for, each once."""

    @functools.cache
    def found(name: str) -> DataFrame | Failure:
        data = table if name == one.name and name not in given else given.get(name)
        if data is None:
            return Failure(f"no data of {name!r} was given; hand it in: others={{{name!r}: …}}")
        try:
            return opened(data, spark)
        except DqError as error:
            return Failure(error.message)

    return found


def on(clause: Clause, occasion: Occasion, schema: DataType) -> Clause:
    """The clause as it is asked of data on an occasion: with its window, and the rows that it must see."""
    # Spark would look for what is no column among the variables of the session.
    absent = [why for one in clause.narrows if isinstance(why := resolve(schema, one), str)]
    if absent and not clause.refused:
        clause = refuse(clause, f"its scope: {absent[0]}")
    return in_scope(_windowed(replace(clause, occasion=occasion)), occasion.partitions)


def _windowed(clause: Clause) -> Clause:
    """The clause on the rows that its window leaves, counted back from the time of the run."""
    if clause.window is None or clause.refused:
        return clause
    now, length, time = clause.occasion.now, clause.window.length, clause.window.time
    if now is None:
        return refuse(clause, f"the window of {length} ends with the time of the run; hand it in: now=…")
    recent = time.since(before(now, length, time.zone))
    return replace(clause, where=all_of(recent, clause.where), note=f"{time.column} within {length}")


def in_scope(clause: Clause, asked: tuple[Partition, ...]) -> Clause:
    """The clause with the rows that it must see when these partitions are asked for."""
    if not asked:
        return replace(clause, rows=Rows.PARTITION)
    if clause.rows is not Rows.TABLE or clause.window is not None:
        return clause
    key = {str(column).lower() for column in clause.keys}
    parts = {column.lower() for partition in asked for column, _ in partition}
    if clause.keys and parts <= key:
        # Rows with the same key lie in the same partition.
        return replace(clause, rows=Rows.PARTITION, note="the key holds the partition, which suffices")
    return replace(clause, note="tested on the whole table")


def _asked(clauses: Sequence[Clause], kinds: Shelf) -> dict[Metric, None]:
    sound = (clause for clause in clauses if not clause.refused)
    return dict.fromkeys(metric for clause in sound for metric in kinds[clause.check].metrics(clause))


def _shortcut(
    metrics: Mapping[Metric, None],
    table: DataFrame,
    source: Dataset | None,
    parts: Partitions,
    levers: Set[Lever],
    tasks_from: int,
    memory: Memory | None,
    now: datetime | None,
    limit_seconds: float | None,
) -> Shortcut:
    """What is known without a scan of the rows: by statistics, by kept counts, and by Python tasks."""
    if memory is None or now is None:
        return shortcut(metrics, table, source, parts, levers, tasks_from, limit_seconds)
    told = shortcut(metrics, table, source, parts, levers & {Lever.STATISTICS}, tasks_from, limit_seconds)
    kept = recalled([one for one in metrics if one not in told.answers], table, source, memory, now)
    known = {**told.answers, **kept.answers}
    rest = [one for one in metrics if one not in known]
    last = (
        shortcut(rest, table, source, parts, levers - {Lever.STATISTICS}, tasks_from, limit_seconds)
        if rest
        else Shortcut()
    )
    return Shortcut({**known, **last.answers}, told.proven, told.passes + kept.passes + last.passes)


def _by_statistics(clause: Clause, proven: frozenset[Metric], kinds: Shelf) -> bool:
    asked = () if clause.refused else kinds[clause.check].metrics(clause)
    return bool(asked) and proven.issuperset(asked)


def _measured(
    frame: DataFrame,
    clauses: Sequence[Clause],
    kinds: Shelf,
    others: Others,
    known: Answers,
    limit_seconds: float | None,
) -> tuple[Answers, int]:
    """The answers to every question of these clauses, and the number of passes that they took.

    `known` are those that need no pass any more.
    """
    if not clauses:
        return {}, 0
    schema = schema_of(frame)
    made = plan((one for one in _asked(clauses, kinds) if one not in known), schema)
    small = in_one_task(frame) if made.passes else frame
    answers = measure(small, made, others, known, limit_seconds)
    passes = sum(not implied(one, answers) for one in made.passes)
    more = [one for clause in clauses if not clause.refused for one in _further(clause, answers, kinds)]
    second = plan((one for one in more if one not in answers), schema)
    if second.passes or second.failures:
        answers = {**answers, **measure(small, second, others, limit_seconds=limit_seconds)}
    return answers, passes + len(second.passes)


def _further(clause: Clause, answers: Answers, kinds: Shelf) -> tuple[Metric, ...]:
    """What the first answers to a clause call for; nothing where one of them failed."""
    kind = kinds[clause.check]
    first = {metric: answers[metric] for metric in kind.metrics(clause)}
    values = {metric: answer for metric, answer in first.items() if not isinstance(answer, Failure)}
    return kind.then(clause, values) if len(values) == len(first) else ()


def answered(clause: Clause, answers: Answers, kinds: Shelf) -> CheckResult:
    """The result of a clause from the answers to its questions; an error where one of them has none."""
    subject = f"{clause.object}.{clause.property}" if clause.property else clause.object
    if clause.refused:
        return result(clause, Status.ERROR, "not tested", f"{subject}: {clause.refused}")
    kind = kinds[clause.check]
    metrics = (*kind.metrics(clause), *_further(clause, answers, kinds))
    asked = {metric: answers[metric] for metric in metrics}
    values = {metric: answer for metric, answer in asked.items() if not isinstance(answer, Failure)}
    failures = [answer for answer in asked.values() if isinstance(answer, Failure)]
    if failures:
        return result(clause, Status.ERROR, "not measured", f"{subject}: {failures[0].message}")
    return kind.judge(clause, values)


def _sampled(
    frame: DataFrame,
    one: SchemaObject,
    clauses: Sequence[Clause],
    results: Mapping[str, CheckResult],
    others: Others,
    limit_seconds: float | None,
) -> dict[str, CheckResult]:
    """The results with samples where rows or keys break a failed clause."""
    broken = [
        clause
        for clause in clauses
        if results[clause.path].status is Status.FAIL
        and results[clause.path].value
        and (clause.breaks is not None or clause.keys)
    ]
    if not broken:
        return dict(results)
    with time_limit(frame.sparkSession, limit_seconds):
        found = samples(frame, schema_of(frame), one, broken, others)
    return {path: replace(each, samples=found.get(path, ())) for path, each in results.items()}
