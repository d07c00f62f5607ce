"""What came of statistics on trial, as rows, and what all runs together come to."""

from __future__ import annotations

from dataclasses import asdict

from sqlalchemy import Connection, func, insert, select

from dq.dataquality.model.verification import Tally
from dq.dataquality.results.tables import statistics_trial


def save(tx: Connection, run: int, tally: Tally) -> None:
    """Keeps what came of the trial of a run, by the run's id."""
    tx.execute(insert(statistics_trial).values(run_id=run, **asdict(tally)))


def ever(tx: Connection) -> Tally:
    """The sums over all runs of all contracts; zeros where there was none."""
    columns = statistics_trial.c
    sums = select(
        *(func.coalesce(func.sum(one), 0) for one in (columns.proofs, columns.scans, columns.disagreements))
    )
    return Tally(*map(int, tx.execute(sums).one()))
