"""Statistics on trial: a share of what they prove is counted from the rows, and one lie costs all of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dq.contracts.shared.outcome import CheckResult, Severity, Status
from dq.dataquality.clauses.clause import Clause
from dq.dataquality.clauses.kind import Shelf, asked_by, result, subject
from dq.dataquality.model.verification import Disagreement, Tally, Verification
from dq.dataquality.request import Request
from dq.dataquality.shortcuts.shortcut import Shortcut
from dq.dataquality.shortcuts.verification import Trial, drawn, measured_again, tried
from dq.dataquality.spark.readers.open import Dataset

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

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
