"""Statistics and kept answers on trial: a share of them is counted from the rows, and one lie costs all."""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from dq.contracts.shared.outcome import CheckResult, Severity, Status
from dq.dataquality.answers.sources import Shortcut
from dq.dataquality.answers.statistics.facts import File
from dq.dataquality.clauses.clause import Clause
from dq.dataquality.clauses.kind import Shelf, asked_by, result, subject
from dq.dataquality.model.metric import (
    Aggregate,
    Answer,
    Disagreement,
    Failure,
    Metric,
    Proof,
    SuspectFile,
    Tally,
    Verification,
)
from dq.dataquality.request import Request
from dq.dataquality.spark.measure import measure, schema_of
from dq.dataquality.spark.plan import plan
from dq.dataquality.spark.readers.open import Dataset
from dq.dataquality.spark.session import attempt, time_limit
from dq.dataquality.sql.spark_predicate import question

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


# A share of what statistics proved, counted from the rows file by file: statistics on trial.

MOST_FILES = 20
Wrong = tuple[Metric, Disagreement]


@dataclass(frozen=True, slots=True)
class Trial:
    """What the rows say of some proven answers.

    `answers` are those that the rows give, `wrong` what they contradict: a metric, and how, still without the
    clauses that ask it. What could not be counted is in neither.
    """

    answers: Mapping[Metric, Answer] = field(default_factory=dict)
    wrong: tuple[Wrong, ...] = ()
    passes: int = 0


def drawn(proven: Iterable[Metric], frame: DataFrame, share: float, seed: str) -> list[Metric]:
    """This share of the metrics, by chance, and the same for the same seed; all of them for 1."""
    schema = schema_of(frame)

    def number(metric: Metric) -> float:
        asked = question(metric, schema) if isinstance(metric, Aggregate) else repr(metric)
        digest = hashlib.sha256(f"{seed}\n{asked}".encode()).digest()
        return int.from_bytes(digest[:7]) / 2**56

    return [metric for metric in proven if number(metric) < share]


def tried(frame: DataFrame, metrics: Sequence[Metric], known: Shortcut, limit_seconds: float | None) -> Trial:
    """These proven metrics, counted on the rows that they are about.

    The rows are grouped by file, so that neither Spark nor a table's format can take an answer from the same
    statistics, and each file's answer stands beside its facts.
    """
    from pyspark.sql.functions import expr

    schema = schema_of(frame)
    answers: dict[Metric, Answer] = {}
    wrong: list[Wrong] = []
    passes = 0
    for each in plan(metrics, schema).passes:
        asked = [metric for metric in each.metrics if isinstance(metric, Aggregate)]
        columns = [expr(question(metric, schema)).alias(f"_dq_{at}") for at, metric in enumerate(asked)]
        grouped = frame.groupBy(expr("input_file_name()").alias("_dq_file")).agg(*columns)
        with time_limit(frame.sparkSession, limit_seconds):
            rows = attempt(grouped.collect)
        if rows is None or isinstance(rows, Failure):
            continue
        passes += 1
        for at, metric in enumerate(asked):
            by_file = {str(row[0]): row[at + 1] for row in rows}
            answers[metric] = _merged(metric, by_file.values())
            if not _same(answers[metric], known.answers[metric]):
                wrong.append(_wrong(metric, known, answers[metric], by_file))
    return Trial(answers, tuple(wrong), passes)


def measured_again(
    frame: DataFrame, metrics: Sequence[Metric], known: Shortcut, limit_seconds: float | None
) -> Trial:
    """These metrics, told with kept answers, measured on all rows that they are about."""
    made = plan(metrics, schema_of(frame))
    found = measure(frame, made, limit_seconds=limit_seconds)
    answers = {one: found[one] for one in metrics if not isinstance(found[one], Failure)}
    wrong = [one for one, answer in answers.items() if not _same(answer, known.answers[one])]
    told = tuple(
        (one, Disagreement((), *_shown(one, known.answers[one], answers[one]), (), 0, kept=True))
        for one in wrong
    )
    return Trial(answers, told, len(made.passes))


def _shown(metric: Metric, proven: Answer, found: Answer) -> tuple[str, str]:
    """Both answers, where they are no values of the data."""
    counted = not isinstance(metric, Aggregate) or metric.name == "count"
    name = "" if counted else metric.name  # type: ignore[union-attr]  # an aggregate
    return (str(proven), str(found)) if counted else (f"a {name}", "another one")


_MERGES: dict[str, Callable[[list[Any]], Any]] = {"count": sum, "min": min, "max": max}


def _merged(metric: Aggregate, values: Iterable[Any]) -> Any:
    present = [value for value in values if value is not None]
    return _MERGES[metric.name](present) if present or metric.name == "count" else None


def _same(found: Any, proven: Any) -> bool:
    return bool(_instant(found) == _instant(proven))


def _instant(value: Any) -> Any:
    """Spark gives instants in the zone of this process, statistics in UTC."""
    return value.astimezone(dt.UTC) if isinstance(value, dt.datetime) else value


def _wrong(metric: Aggregate, known: Shortcut, found: Any, by_file: Mapping[str, Any]) -> Wrong:
    proven = known.answers[metric]
    named = _by_path(known.files, by_file)
    suspects = [
        SuspectFile(path, ", ".join(name for name in file.writers if name) if file is not None else "")
        for path, file in named.items()
        if _contradicts(metric, proven, file, by_file.get(path))
    ]
    shown = _shown(metric, proven, found)
    return metric, Disagreement((), *shown, tuple(suspects[:MOST_FILES]), len(suspects))


def _contradicts(metric: Aggregate, proven: Any, file: File | None, found: Any) -> bool:
    """Whether a file's rows say something else than what its facts or the proof allow."""
    if metric.name != "count":
        beaten = found is not None and (
            proven is None or (found < proven if metric.name == "min" else found > proven)
        )
        return bool(beaten)
    counted = found or 0
    if metric.where is None:
        return file is None or counted != file.rows
    if metric.proof is Proof.NULLS and metric.proven_by is not None and file is not None:
        return bool(counted != file.of(metric.proven_by).nulls)
    return bool(counted)


def _by_path(files: Sequence[File], by_file: Mapping[str, Any]) -> dict[str, File | None]:
    """The files by the paths that Spark has for them; those that Spark saw no row of by their own."""
    listed = {_plain(file.path): file for file in files}
    named = {path: listed.get(_plain(path)) for path in by_file}
    seen = set(map(_plain, by_file))
    return named | {file.path: file for path, file in listed.items() if path not in seen}


def _plain(path: str) -> str:
    parts = urlsplit(path)
    return unquote(parts.path) if parts.scheme else unquote(path)


# Statistics on trial: a share of what they prove is counted from the rows, and one lie costs all of it.

# The check that statistics are put to; no contract can ask for it.
CHECK = "statistics"


@dataclass(frozen=True, slots=True)
class Hearing:
    """What came of the proofs about some rows: what is known now, and an error for each lie."""

    known: Shortcut
    proofs: int = 0
    scans: int = 0
    disagreements: tuple[Disagreement, ...] = ()
    errors: tuple[CheckResult, ...] = ()


def heard(
    known: Shortcut, frame: DataFrame, clauses: Sequence[Clause], kinds: Shelf, request: Request
) -> Hearing:
    """A share of what is proven about the rows of this frame, counted where a share is asked for."""
    if not request.verify_statistics:
        return Hearing(known)
    seed = f"{request.contract.id} {request.object} {request.now}"
    picked = drawn(sorted(known.proven, key=repr), frame, request.verify_statistics, seed)
    trial = tried(frame, picked, known, request.limit_seconds) if picked else Trial()
    held = drawn(sorted(known.kept, key=repr), frame, request.verify_statistics, seed)
    again = measured_again(frame, held, known, request.limit_seconds) if held else Trial()
    if again.wrong and request.memory is not None and isinstance(request.data, Dataset):
        request.memory.forget(str(request.data.path))
    trial = Trial({**trial.answers, **again.answers}, trial.wrong + again.wrong, trial.passes + again.passes)
    wrong = _disagreements(trial, clauses, kinds)
    return Hearing(
        _believed(known, trial),
        len(known.proven) + len(known.kept),
        len(trial.answers),
        tuple(one for one, _ in wrong),
        tuple(_error(one, clause) for one, clause in wrong),
    )


def verification(share: float, hearings: Sequence[Hearing]) -> Verification | None:
    """What all hearings of a run come to; None where no share was asked for."""
    if not share:
        return None
    disagreements = tuple(one for each in hearings for one in each.disagreements)
    proofs, scans = sum(each.proofs for each in hearings), sum(each.scans for each in hearings)
    return Verification(share, Tally(proofs, scans, len(disagreements)), disagreements)


def _believed(known: Shortcut, trial: Trial) -> Shortcut:
    """What is known after the trial: after one lie, nothing proven or kept, but what the rows gave."""
    passes = known.passes + trial.passes
    if not trial.wrong:
        return replace(known, passes=passes)
    doubted = known.proven | known.kept
    others = {metric: answer for metric, answer in known.answers.items() if metric not in doubted}
    answers = {**others, **trial.answers}
    return replace(known, answers=answers, proven=frozenset(), kept=frozenset(), passes=passes)


def _disagreements(
    trial: Trial, clauses: Sequence[Clause], kinds: Shelf
) -> list[tuple[Disagreement, Clause]]:
    """Each wrong proof with the first clause that asks it; one for each clause."""
    found: dict[str, tuple[Disagreement, Clause]] = {}
    for metric, wrong in trial.wrong:
        asking = [clause for clause in clauses if metric in asked_by(clause, kinds)]
        clause = next((one for one in asking if one.path not in found), None)
        if clause is not None:
            paths = (clause.path, *(one.path for one in asking if one is not clause))
            found[clause.path] = (replace(wrong, clauses=paths), clause)
    return list(found.values())


def _error(one: Disagreement, clause: Clause) -> CheckResult:
    made = result(clause, Status.ERROR, one.found, f"{subject(clause)}: {one.said}")
    return replace(made, check=CHECK, severity=Severity.ERROR, allowed=one.proven)
