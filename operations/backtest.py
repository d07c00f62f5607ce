"""`dq.backtest_contracts`: evaluate rules of contracts on past partitions, optionally only new rules of a
branch.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from dq.contracts.model import Contract, Property, SchemaObject
from dq.contracts.outcome import DqError, Finding, ReadError
from dq.dataquality.backtest import LAST, Backtest, Outcome, TablePartition, backtest
from dq.dataquality.checks import built_in
from dq.dataquality.clauses.clause import CheckParameters, Clause
from dq.dataquality.clauses.coverage import JsonObject, filter_by_words, testable
from dq.dataquality.clauses.foreign_key import ContractSet
from dq.dataquality.clauses.kind import clauses_of
from dq.dataquality.request import Request
from dq.operations.check import (
    Pair,
    formats,
    load_arrivals,
    published_counts,
    referenced_data,
    select_objects,
    select_with_rules,
)
from dq.operations.data_places import located_data
from dq.operations.delivered_rows import with_delivered_rows_by_partition
from dq.operations.registry_files import load, with_registry
from dq.operations.runtime.context import RuntimeContext, call_context, processors
from dq.operations.runtime.spark import default_parallelism, run_concurrently, session
from dq.operations.runtime.spark import label as labelled
from dq.validators.git.base import BaseCommit, open_base, registry_root

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# Results of rules on the existing partitions.


@dataclass(frozen=True, slots=True)
class UntestedPast:
    """An object without any testable partition, and the reason."""

    contract: str
    object: str
    error: DqError

    @property
    def exit_code(self) -> int:
        """Exit code: the result is unknown, whatever the reason."""
        return ReadError.exit_code

    def as_dict(self) -> JsonObject:
        """As JSON values."""
        return {"contract": self.contract, "object": self.object, "error": str(self.error)}


Tested = tuple[Pair, Backtest | UntestedPast]
"""An object with its contract, and its back-test."""


@dataclass(frozen=True, slots=True)
class BacktestRequest:
    """Rules and history to test; see `backtest_contracts` for the fields."""

    paths: tuple[Path, ...]
    last: int = LAST
    base: str | None = None
    object: str | None = None
    rules: tuple[str, ...] = ()
    server: str | None = None
    parallel: int | None = None


@dataclass(frozen=True, slots=True)
class BacktestOutcome:
    """Back-tests of the objects, in the order of their contracts; `findings` are contracts with errors.

    With a base, objects without a new or changed rule are left out.
    """

    tested: tuple[Tested, ...]
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def results(self) -> tuple[Backtest | UntestedPast, ...]:
        """The back-tests without their contracts."""
        return tuple(past for _, past in self.tested)

    @property
    def exit_code(self) -> int:
        """Exit code of `dq backtest`: 3 something could not be tested, 1 an error-level rule would have
        failed.
        """
        codes = {past.exit_code for past in self.results}
        codes |= {ReadError.exit_code} if self.findings else set()
        return next((code for code in (3, 1) if code in codes), 0)

    def as_list(self) -> list[JsonObject]:
        """Return the output of `dq backtest --format json` as JSON values."""
        unread: list[JsonObject] = [
            {"contract": None, "object": None, "error": str(finding)} for finding in self.findings
        ]
        return [*unread, *({"error": None, **past.as_dict()} for past in self.results)]


def backtest_contracts(
    paths: Path | str | Sequence[Path | str] = ".",
    *,
    last: int = LAST,
    base: str | None = None,
    object: str | None = None,
    rules: Sequence[str] = (),
    server: str | None = None,
    parallel: int | None = None,
    folder: Path | str | None = None,
    now: datetime | None = None,
) -> BacktestOutcome:
    """Test the rules of contracts on the `last` partitions of their data, as `dq backtest` does.

    `dq.backtest` tests one object. `paths` are contract files and folders. `base` is a Git reference: only
    rules that are new or changed against it are tested. `object` and `rules` select objects and clauses,
    `server` is required if a contract has several. `parallel` partitions are tested concurrently. `folder`
    replaces the working folder, `now` is an aware instant. Nothing is stored, and no alert is sent.

    Raises UsageError for invalid arguments, ReadError for a path or a base that cannot be read, and
    MissingTool without Spark or Java. An object that could not be tested is an `UntestedPast` of the outcome.
    """
    context, places = call_context(paths, folder, now)
    request = BacktestRequest(places, last, base, object, tuple(rules), server, parallel)
    return replace(run(context, request), notes=tuple(context.messages.notes))


def run(context: RuntimeContext, request: BacktestRequest) -> BacktestOutcome:
    """Run the operation. Raises as `backtest_contracts`."""
    loaded = load(request.paths, context.note)
    for finding in loaded.findings:
        context.messages.finding(finding)
    neighbours, rules = with_registry(loaded.contracts, context.folder), request.rules
    pairs = select_with_rules(select_objects(loaded, request.object), rules, neighbours)
    selection = [(pair, rules) for pair in pairs]
    if request.base:
        selection = new_rules(request.paths, request.base, pairs, rules, neighbours)
    tested: list[Tested] = []
    if selection:
        threads = request.parallel or default_parallelism(processors())
        spark = session(context, formats=formats(context, [pair for pair, _ in selection], request.server))
        history = PastRequest(context, spark, neighbours, request.last, threads, request.server)
        tested = [(pair, test(replace(history, rules=paths), pair)) for pair, paths in selection]
    return BacktestOutcome(tuple(tested), tuple(loaded.findings))


@dataclass(frozen=True, slots=True)
class PastRequest:
    """Shared inputs of the back-tests of a run."""

    context: RuntimeContext
    spark: SparkSession
    neighbours: ContractSet
    last: int
    threads: int
    server: str | None = None
    rules: tuple[str, ...] = ()


def test(history: PastRequest, pair: Pair) -> Backtest | UntestedPast:
    """Back-test one object. An error is returned as a value, so that the other objects go on."""
    contract, schema_object = pair
    context, description = history.context, f"dq backtest {contract.id}/{schema_object.name}"
    labelled(history.spark, description, description)
    try:
        request = Request(
            contract,
            located_data(context, contract, schema_object, history.server),
            schema_object.name,
            spark=history.spark,
            now=context.now(),
            other_objects=referenced_data(
                context, contract, schema_object, history.server, history.neighbours
            ),
            rules=history.rules,
            limit_seconds=context.settings.rule_seconds,
            neighbours=history.neighbours,
        )
        if context.has_store():
            with closing(context.store()) as store:
                arrivals = load_arrivals(store, contract, schema_object, context.now())
            request = replace(request, arrivals=arrivals)
        with context.messages.step(f"{contract.id}/{schema_object.name}"):
            past = backtest(request, history.last, partial(_run_in_parallel, history))
            if request.rules or not context.has_store():
                return past
            with closing(context.store()) as store:
                claims = published_counts(store, contract, schema_object, history.server, context.now())
            return with_delivered_rows_by_partition(past, request, claims)
    except DqError as error:
        return UntestedPast(contract.id, schema_object.name, error)


def _run_in_parallel(
    history: PastRequest, work: Callable[[TablePartition], Outcome], partitions: Sequence[TablePartition]
) -> list[Outcome]:
    outcomes = run_concurrently(lambda: history.spark, partitions, work, history.threads)
    for outcome in outcomes:
        # A DqError is an outcome; any other exception is a bug.
        if isinstance(outcome, Exception) and not isinstance(outcome, DqError):
            raise outcome
    return outcomes  # type: ignore[return-value]


# Clauses that a branch adds or changes compared with its base.

RuleNames = Sequence[str]


def new_rules(
    paths: Sequence[Path], ref: str, pairs: Sequence[Pair], rule_names: RuleNames, neighbours: ContractSet
) -> list[tuple[Pair, tuple[str, ...]]]:
    """Return the objects with new or changed clauses, each with the paths of these clauses.

    The base is the merge base with `ref`; `rule_names` select clauses as `--rule` does. A rule that only
    moved, or has another id or line, is unchanged. Raises ReadError for a base that cannot be read.
    """
    contract_at_base = _base_lookup(paths, ref)
    changed = []
    for contract, schema_object in pairs:
        before = contract_at_base(contract)
        if before is contract:
            continue
        clauses = testable(
            filter_by_words(
                schema_object, clauses_of(contract, schema_object, built_in(), neighbours), rule_names
            )
        )
        new = tuple(
            clause.path
            for clause in _changed_clauses(clauses, list(_base_clauses(before, schema_object, neighbours)))
        )
        if new:
            changed.append(((contract, schema_object), new))
    return changed


def _base_lookup(paths: Sequence[Path], ref: str) -> Callable[[Contract], Contract | None]:
    """Return a lookup of contracts at the base: the contract itself if untouched, None if it is new."""
    bases: dict[Path, BaseCommit] = {}
    for path in paths:
        root = registry_root(path, ref)
        bases.setdefault(root.folder, open_base(root.folder, ref, root.tip))
    changes = [base.changed_contracts() for base in bases.values()]
    touched = {
        os.path.normpath(base.root / file)
        for base, changed in zip(bases.values(), changes, strict=True)
        for file in changed.contents
    }
    before = [contract for changed in changes for contract in changed.before]

    def contract_at_base(contract: Contract) -> Contract | None:
        if os.path.normpath(Path(contract.file).absolute()) not in touched:
            return contract
        versions = [version for version in before if version.id == contract.id]
        return next(
            (version for version in versions if version.key == contract.key),
            versions[-1] if versions else None,
        )

    return contract_at_base


def _base_clauses(
    before: Contract | None, schema_object: SchemaObject, neighbours: ContractSet
) -> Iterator[Clause]:
    base_object = before.object(schema_object.name) if before is not None else None
    if before is not None and base_object is not None:
        yield from clauses_of(before, base_object, built_in(), neighbours)


def _changed_clauses(clauses: Iterable[Clause], earlier: Sequence[Clause]) -> Iterator[Clause]:
    base_contents = [_content(clause) for clause in earlier]
    return (clause for clause in clauses if _content(clause) not in base_contents)


def _content(clause: Clause) -> tuple[object, ...]:
    """Return the content of a clause, without its position."""
    expectation = clause.test.value if isinstance(clause.test, CheckParameters) else clause.test
    return (
        clause.check,
        clause.property,
        clause.severity,
        clause.allowed,
        _comparable(expectation),
        clause.row_filter,
        clause.limit,
    )


def _comparable(value: object) -> object:
    """Return a comparable form of a value, with properties reduced to their names."""
    if isinstance(value, Property):
        children = (*value.properties, *([value.items] if value.items else []))
        return value.column.lower(), _comparable((*children, *([value.map.value] if value.map else [])))
    return tuple(map(_comparable, value)) if isinstance(value, tuple) else value
