"""The tables of results, on the store's shared MetaData."""

from __future__ import annotations

from sqlalchemy import Column, Float, ForeignKey, Index, Integer, String, Table, Text

from dq.store.schema import Json, UtcDateTime, metadata

check_run = Table(
    "check_run",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("contract", Text, nullable=False),
    Column("object", Text, nullable=False),
    Column("contract_version", Text, nullable=False),
    # The partitions that were read, as `dt=2026-01-01, dt=2026-01-02`, or `table`.
    Column("scope", Text, nullable=False),
    Column("at", UtcDateTime, nullable=False),
    Column("jobs", Integer, nullable=False),
    # The words that chose its clauses; NULL when it asked for all of them.
    Column("rules", Json),
    # Of an audit, where the data was staged, and `kept`, `broken` or `could not tell`; else NULL.
    Column("staged", Text),
    Column("verdict", String(16)),
    Index("ix_check_run_what", "contract", "object", "at"),
)

# What came of statistics that a run put on trial.
statistics_trial = Table(
    "statistics_trial",
    metadata,
    Column("run_id", ForeignKey("check_run.id"), primary_key=True),
    Column("proofs", Integer, nullable=False),
    Column("scans", Integer, nullable=False),
    Column("disagreements", Integer, nullable=False),
)

check_result = Table(
    "check_result",
    metadata,
    Column("run_id", ForeignKey("check_run.id"), primary_key=True),
    # Its path, which is by positions and so means something in one version of the contract.
    Column("clause", Text, primary_key=True),
    Column("check", Text, primary_key=True),
    Column("property", Text, nullable=False),
    Column("status", String(8), nullable=False),
    Column("severity", String(8), nullable=False),
    Column("observed", Text, nullable=False),
    Column("allowed", Text, nullable=False),
    Column("message", Text, nullable=False),
    Column("value", Float),
    Column("samples", Json, nullable=False),
    # What was measured, and the numbers of its groups: {"of": …, "groups": [[[values], number], …]}; NULL for
    # a clause that later runs do not compare with.
    Column("measured", Json),
    # The clause by ids and names, by which later versions find it; NULL in results of before 0034.
    Column("name", Text),
    # Where the answer was found; NULL where there is none, and in results of before 0036.
    Column("answered_by", String(10)),
)
