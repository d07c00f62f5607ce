"""What a check would do: the passes over the data, what each answers, and what is not tested, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from dq.contracts.model import Contract, SchemaObject
from dq.dataquality.clauses.clause import Clause, Rows
from dq.dataquality.clauses.coverage import Account, JsonObject, State, accounts
from dq.dataquality.clauses.kind import Shelf, built_in, clauses_of
from dq.dataquality.clauses.selection import refuse_unknown, testable, wanted, without
from dq.dataquality.model.metric import SCHEMA, Failure, Kind, Metric
from dq.dataquality.model.run_context import Earlier, Occasion
from dq.dataquality.object_check import on, opened, pick
from dq.dataquality.report import Partition
from dq.dataquality.spark.dataset import Dataset, only
from dq.dataquality.spark.measure import schema_of
from dq.dataquality.spark.plan import plan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# What a pass of this kind is, for a reader.
_SAID = {
    Kind.SCHEMA: "the columns and types, without reading",
    Kind.ROWS: "one scan that counts",
    Kind.INTERPRETED: "one scan that looks inside of arrays and maps",
    Kind.DISTINCT: "different keys",
    Kind.DUPLICATES: "repeated keys, a shuffle",
    Kind.SQL: "a query of the contract",
    Kind.UNMATCHED: "keys looked up in another object, a join",
}


@dataclass(frozen=True, slots=True)
class Step:
    """One pass: over which rows, of what kind, how many questions it answers, and for which clauses."""

    rows: Rows
    kind: Kind
    questions: int
    clauses: tuple[str, ...]

    @property
    def says(self) -> str:
        """What the pass is, for a reader."""
        return _SAID.get(self.kind, str(self.kind))


@dataclass(frozen=True, slots=True)
class Outline:
    """What a check of one scope would do.

    `passes` are at most those that run: what statistics of the files prove is not scanned. `errors` are
    clauses, by path, whose result will be an error, with its reason. `untested` are those without a result.
    """

    contract: str
    version: str
    object: str
    partitions: tuple[Partition, ...]
    passes: tuple[Step, ...]
    errors: tuple[tuple[str, str], ...]
    untested: tuple[Account, ...]
    rules: tuple[str, ...] = ()

    def as_dict(self) -> JsonObject:
        """The outline as JSON values."""
        return {
            "contract": self.contract,
            "version": self.version,
            "object": self.object,
            "partitions": [dict(one) for one in self.partitions],
            "rules": list(self.rules),
            "passes": [
                {
                    "rows": one.rows.value,
                    "kind": one.kind.value,
                    "says": one.says,
                    "questions": one.questions,
                    "clauses": list(one.clauses),
                }
                for one in self.passes
            ],
            "errors": [{"clause": path, "reason": reason} for path, reason in self.errors],
            "untested": [account.as_dict() for account in self.untested],
        }


def outline(
    contract: Contract,
    data: DataFrame | Dataset,
    object_name: str | None = None,
    *,
    spark: SparkSession | None = None,
    partitions: Sequence[Mapping[str, str]] | None = None,
    now: datetime | None = None,
    kinds: Shelf | None = None,
    history: Sequence[Earlier] | None = None,
    rules: Sequence[str] = (),
) -> Outline:
    """What `check` with these arguments would do; only the schema of the data is read.

    Raises what `check` raises.
    """
    one = pick(contract, object_name)
    asked = tuple(tuple(sorted(each.items())) for each in partitions or ())
    shelf = built_in() if kinds is None else kinds
    found = clauses_of(contract, one, shelf)
    refuse_unknown([(contract, one, found)], rules)
    chosen = wanted(one, found, rules)
    occasion = Occasion(now, asked, None if history is None else tuple(history))
    table = opened(data, spark)
    clauses = [on(clause, occasion, schema_of(table)) for clause in testable(chosen)]
    if partitions:
        # Says now what is wrong with a partition, and not in the run.
        only(table, partitions)
    passes: list[Step] = []
    errors = {clause.path: clause.refused for clause in clauses if clause.refused}
    for rows in Rows:
        asking = _asking([clause for clause in clauses if clause.rows is rows], shelf)
        made = plan(asking, schema_of(table))
        by_schema = tuple(dict.fromkeys(asking.get(SCHEMA, ())))
        if by_schema:
            passes.append(Step(rows, Kind.SCHEMA, 1, by_schema))
        for each in made.passes:
            paths = dict.fromkeys(path for metric in each.metrics for path in asking[metric])
            passes.append(Step(rows, each.kind, len(each.metrics), tuple(paths)))
        errors |= dict(_unmet(made.failures, asking))
    return Outline(
        contract=contract.id,
        version=contract.version,
        object=one.name,
        partitions=asked,
        passes=tuple(passes),
        errors=tuple(errors.items()),
        untested=_untested(contract, one, found, chosen),
        rules=tuple(rules),
    )


def _asking(clauses: Sequence[Clause], kinds: Shelf) -> dict[Metric, list[str]]:
    """The clauses that ask for each metric, by path."""
    asking: dict[Metric, list[str]] = {}
    for clause in clauses:
        for metric in () if clause.refused else kinds[clause.check].metrics(clause):
            asking.setdefault(metric, []).append(clause.path)
    return asking


def _unmet(
    failures: Sequence[tuple[Metric, Failure]], asking: Mapping[Metric, Sequence[str]]
) -> Iterator[tuple[str, str]]:
    for metric, failure in failures:
        for path in asking[metric]:
            yield path, failure.message


def _untested(
    contract: Contract, one: SchemaObject, found: Sequence[Clause], chosen: Sequence[Clause]
) -> tuple[Account, ...]:
    accounted = without(accounts(contract, one, found), found, chosen)
    refused = {clause.path for clause in chosen if clause.refused}
    return tuple(
        account
        for account in accounted
        if account.state is not State.ENFORCED and account.path not in refused
    )
