"""What a check would do: the passes over the data, what each answers, and what is not tested, and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from dq.dataquality.clauses.clause import Clause, RowScope
from dq.dataquality.clauses.coverage import Account, JsonObject, State
from dq.dataquality.clauses.kind import Shelf, asked_by
from dq.dataquality.clauses.metric_rule import measured_by
from dq.dataquality.model.metric import SCHEMA, Failure, Kind, Metric
from dq.dataquality.model.run_context import Partition
from dq.dataquality.request import OpenedData, Request, choose, occasion_of
from dq.dataquality.spark.plan import plan

# What a pass of this kind is, for a reader.
_SAID = {
    Kind.SCHEMA: "the columns and types, without reading",
    Kind.ROWS: "one scan that counts",
    Kind.INTERPRETED: "one scan that looks inside of arrays and maps",
    Kind.DISTINCT: "different keys",
    Kind.DUPLICATES: "repeated keys, a shuffle",
    Kind.SINGLE: "keys that stand once, a shuffle",
    Kind.RANKED: "one scan that sorts values",
    Kind.GROUPED: "groups of rows, a small shuffle",
    Kind.SQL: "a query of the contract",
    Kind.UNMATCHED: "keys looked up in another object, a join",
}


@dataclass(frozen=True, slots=True)
class Step:
    """One pass: over which rows, of what kind, how many questions it answers, and for which clauses."""

    rows: RowScope
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


def outline(request: Request) -> Outline:
    """What `check` would do for this request; only the schema of the data is read.

    Raises what `check` raises.
    """
    chosen, occasion, data = choose(request), occasion_of(request), OpenedData(request)
    schema = data.schema
    if data.small is None:
        # Says now what is wrong with a partition, and not in the run.
        data.rows(RowScope.PARTITION)
    clauses = chosen.on(request, schema, occasion)
    passes: list[Step] = []
    errors = {clause.path: clause.refused for clause in clauses if clause.refused}
    for rows in RowScope:
        asking = _asking([clause for clause in clauses if clause.extent.rows is rows], chosen.kinds)
        made = plan(asking, schema)
        by_schema = tuple(dict.fromkeys(asking.get(SCHEMA, ())))
        if by_schema:
            passes.append(Step(rows, Kind.SCHEMA, 1, by_schema))
        for each in made.passes:
            paths = dict.fromkeys(path for metric in each.metrics for path in asking[metric])
            passes.append(Step(rows, each.kind, len(each.metrics), tuple(paths)))
        missing = dict(_unmet(made.failures, asking))
        passes += _sorting(one for one in clauses if one.extent.rows is rows and one.path not in missing)
        errors |= missing
    return Outline(
        contract=request.contract.id,
        version=request.contract.version,
        object=chosen.one.name,
        partitions=occasion.partitions,
        passes=tuple(passes),
        errors=tuple(errors.items()),
        untested=_untested(clauses, chosen.accounts),
        rules=tuple(request.rules),
    )


def _sorting(clauses: Iterable[Clause]) -> Iterator[Step]:
    """The passes of quantiles, which are asked when it is known how many values there are."""
    found: dict[tuple[bool, object], list[Clause]] = {}
    for clause in clauses:
        asked = measured_by(clause)
        if asked is not None and asked.terms.kind.name == "quantile":
            shared = (asked.by, clause.extent.where) if asked.by else None
            found.setdefault((bool(asked.by), shared), []).append(clause)
    for (grouped, _), sorting in found.items():
        kind = Kind.GROUPED if grouped else Kind.RANKED
        paths = tuple(clause.path for clause in sorting)
        yield Step(sorting[0].extent.rows, kind, 2 * len(sorting), paths)


def _asking(clauses: Sequence[Clause], kinds: Shelf) -> dict[Metric, list[str]]:
    """The clauses that ask for each metric, by path."""
    asking: dict[Metric, list[str]] = {}
    for clause in clauses:
        for metric in asked_by(clause, kinds):
            asking.setdefault(metric, []).append(clause.path)
    return asking


def _unmet(
    failures: Sequence[tuple[Metric, Failure]], asking: Mapping[Metric, Sequence[str]]
) -> Iterator[tuple[str, str]]:
    for metric, failure in failures:
        for path in asking[metric]:
            yield path, failure.message


def _untested(clauses: Sequence[Clause], accounts: Sequence[Account]) -> tuple[Account, ...]:
    refused = {clause.path for clause in clauses if clause.refused}
    return tuple(
        account for account in accounts if account.state is not State.ENFORCED and account.path not in refused
    )
