"""A case through both doors: what dq answers on real files, and what plain Python says."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from fakes.reach import anywhere
from oracle.evaluate import Expected, evaluate
from oracle.tables import Case
from oracle.writers import NO_VALUE, Writer

from dq.contracts.check_result import CheckResult
from dq.contracts.yaml.parse import parse
from dq.dataquality.answers.sources import NONE, Optimization
from dq.dataquality.check import check
from dq.dataquality.request import Request
from dq.dataquality.spark.dataset import locate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def session_with(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """The settings, and afterwards those from before."""
    before = {name: spark.conf.get(name) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, str(value))


Said = dict[str, CheckResult]


def answers(
    spark: SparkSession, case: Case, writer: Writer, folder: Path, optimizations: Sequence[Set[Optimization]]
) -> list[Said]:
    """The result of each clause, by its path, once per set of optimizations.

    The tables are written into the folder. Python tasks are used however few rows there are.
    """
    root = writer.root(spark, folder)
    place = {"server": "s", "type": "local", "path": f"{root}/{{object}}", "format": writer.format}
    text = f"servers: [{place}]\n{case.yaml()}"
    parsed = parse(text.encode(), "random.odcs.yaml")
    assert parsed.contract is not None, (parsed.findings, text)
    assert not parsed.findings, (parsed.findings, text)
    contract = parsed.contract
    for name, table in case.tables.items():
        writer(spark, table, case.layout, root / name)
    located = {one.name: locate(contract, one, None, anywhere()) for one in contract.objects}
    partitions = [{"part": NO_VALUE if value is None else str(value)} for value in case.asked]
    with session_with(spark, case.session):
        reports = [
            # Alone, it is what `dq check` asks first; what that cannot tell, Spark scans.
            check(
                Request(
                    contract,
                    located["t"],
                    "t",
                    spark=spark,
                    partitions=partitions or None,
                    other_objects={name: where for name, where in located.items() if name != "t"},
                    optimizations=some,
                    tasks_from=0,
                    start_session=(lambda: spark) if some == {Optimization.SMALL_TABLES} else None,
                )
            )
            for some in optimizations
        ]
    return [{one.clause: one for one in report.results} for report in reports]


# Checks that count no broken rows have no samples.
_WITHOUT_SAMPLES = ("row_count", "additional_columns", "columns")


def _said(result: CheckResult, expected: Expected | None) -> tuple[Expected, str]:
    failed = result.status == "fail" and result.value and result.check not in _WITHOUT_SAMPLES
    needed = failed and (expected is None or expected.fewer)
    if bool(result.samples) != bool(needed):
        return Expected("samples", result.value), f"{result.message} with samples {result.samples}"
    return Expected(result.status.value, result.value), result.message


def differences(spark: SparkSession, case: Case, writer: Writer) -> str:
    """Where the two differ, as lines for a reader; empty where they agree."""
    expected = evaluate(case.document, case.data())
    lines = []
    optimizations = (frozenset(case.optimizations), NONE)
    with tempfile.TemporaryDirectory() as folder:
        found = answers(spark, case, writer, Path(folder), optimizations)
    for some, said in zip(optimizations, found, strict=True):
        how = ", ".join(sorted(some)) or "a scan"
        for path in sorted(expected.keys() | said.keys()):
            here, result = expected.get(path), said.get(path)
            there, message = (None, "") if result is None else _said(result, here)
            if here != there:
                lines.append(f"  {path}\n    rows say {here}\n    dq says   {there} by {how}: {message}")
    return "\n".join(lines)


def agree(spark: SparkSession, case: Case, writer: Writer) -> None:
    """Fails with the contract, the rows and the clauses that differ."""
    different = differences(spark, case, writer)
    assert not different, f"\n{case!r}\n{different}"
