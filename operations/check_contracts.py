"""`dq.check_contracts`: the objects of contracts tested where their data is, kept, and told of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from dq.alerts.drain import Drained
from dq.contracts.model import Contract
from dq.contracts.outcome import Finding, Unreadable
from dq.dataquality.answers.sources import ALL, NONE
from dq.dataquality.check import Outline
from dq.dataquality.clauses.coverage import JsonObject
from dq.dataquality.clauses.foreign_key import Neighbours
from dq.dataquality.report import Report
from dq.dataquality.results import append, broken, is_path, lines, place, untested
from dq.operations import alerting, check
from dq.operations.check import AskedRows, Failed, Setup, Task, Work
from dq.operations.key_ownership import settled
from dq.operations.openlineage import recording
from dq.operations.registry_files import load
from dq.operations.runtime.context import World, aware, called, processors
from dq.operations.runtime.spark import at_need, at_once, session, together
from dq.store.engine import Store

Result = Report | Outline | Failed
"""What was found of one object and scope, an outline in a dry run."""


@dataclass(frozen=True, slots=True)
class CheckRequest:
    """What is tested, how, and who is told; `check_contracts` says what each field means."""

    paths: tuple[Path, ...]
    rows: AskedRows
    object: str | None = None
    rules: tuple[str, ...] = ()
    server: str | None = None
    parallel: int | None = None
    results_table: str | None = None
    dry_run: bool = False
    scan: bool = False
    verify_statistics: float = 0.0
    channel: str = alerting.FROM_CONTRACT
    quarantine: str | None = None
    quarantine_unmasked: bool = False

    @property
    def needs_hive(self) -> bool:
        """Without a metastore, Spark would forget a table's name with the end of this process."""
        target = self.results_table
        return bool(target) and not is_path(place(target or ""))


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    """What was found, as of `at`: a report for each object and scope, an outline in a dry run.

    What could not be tested is a `Failed`. `findings` are contracts that could not be read, `unheard` places
    of contracts that alerts will not go to, `bugs` what no run may raise, `drained` what was sent and waits.
    """

    at: datetime
    contracts: tuple[Contract, ...]
    results: tuple[Result, ...]
    findings: tuple[Finding, ...] = ()
    unheard: tuple[Finding, ...] = ()
    bugs: tuple[Exception, ...] = ()
    drained: Drained | None = None
    alerts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """As `dq check` ends: 4 an alert was not delivered, 2 Spark or Java is missing, 3, or 1."""
        codes = {_code(result) for result in self.results}
        # In a dry run nobody is told, so that it does not matter who cannot be.
        is_foreseen = self.drained is None
        codes |= {Unreadable.exit_code} if self.findings or (self.unheard and not is_foreseen) else set()
        codes |= {alerting.exit_code(self.drained)} if self.drained is not None else set()
        return next((code for code in (4, 2, 3, 1) if code in codes), 0)

    def as_list(self) -> list[JsonObject]:
        """What `dq check --format json` prints."""
        return as_list(self.results, self.findings)

    def raise_bugs(self) -> None:
        """Raise what is no fault of data or contract, if there is any."""
        if self.bugs:
            raise (
                self.bugs[0]
                if len(self.bugs) == 1
                else ExceptionGroup("bugs in the runs of several objects", list(self.bugs))
            )


def _code(result: Result) -> int:
    if isinstance(result, Outline):
        return 0
    # Whoever publishes what the quarantine left over must learn that there is none.
    unwritten = isinstance(result, Report) and result.quarantine is not None and result.quarantine.problem
    return Unreadable.exit_code if unwritten else result.exit_code


def as_list(results: Sequence[Result], findings: Sequence[Finding]) -> list[JsonObject]:
    """Results as JSON values; what could not be tested has an entry with its `error` and no results."""
    unread = [_untested(None, None, [], str(finding)) for finding in findings]
    return [*unread, *map(_entry, results)]


def _entry(result: Result) -> JsonObject:
    if not isinstance(result, Failed):
        return {**result.as_dict(), "error": None}
    contract, partitions = result.contract, [dict(result.scope)] if result.scope else []
    return _untested(contract.id, result.object.name, partitions, str(result.error), contract.version)


def _untested(
    contract: str | None,
    name: str | None,
    partitions: list[dict[str, str]],
    error: str,
    version: str | None = None,
) -> JsonObject:
    return {
        "contract": contract,
        "version": version,
        "object": name,
        "partitions": partitions,
        "results": [],
        "error": error,
    }


def check_contracts(
    paths: Path | str | Sequence[Path | str] = ".",
    *,
    partitions: Sequence[Mapping[str, str]] = (),
    cycles: Sequence[datetime] = (),
    since: datetime | None = None,
    everything: bool = False,
    object: str | None = None,
    rules: Sequence[str] = (),
    server: str | None = None,
    parallel: int | None = None,
    results_table: str | None = None,
    dry_run: bool = False,
    scan: bool = False,
    verify_statistics: float = 0.0,
    channel: str = alerting.FROM_CONTRACT,
    quarantine: str | None = None,
    quarantine_unmasked: bool = False,
    folder: Path | str | None = None,
    now: datetime | None = None,
) -> CheckOutcome:
    """Test the data of contracts where it is, keep the results, and tell of them, as `dq check` does.

    `dq.check` tests one object, and keeps and tells nothing. `paths` are contract files and folders. Tested
    is what was delivered and not tested yet, or one of these: `partitions`, the deliveries that were due at
    `cycles`, all that was delivered `since`, or `everything`. `object` and `rules` choose objects and
    clauses, `server` where a contract has several. `parallel` objects are tested at once. `results_table` is
    a table or folder that results are appended to, `quarantine` a path for the rows that break a clause,
    masked unless `quarantine_unmasked`. A `dry_run` reads only schemas, and keeps and tells nothing. `scan`
    reads everything with Spark, and `verify_statistics` is the share of what statistics prove that is
    counted all the same. `channel` is `contract` for the channels that contracts name, else one such as
    `console`. `folder` stands for the working folder, `now` is an aware instant.

    Raises UsageError for what does not fit, Unreadable for a path or a store that cannot be read, and
    MissingTool where Spark is needed in the end and missing. What is wrong with data or contracts is in the
    outcome.
    """
    world, places = called(paths, folder, now)
    instants = [instant for cycle in cycles if (instant := aware("cycles", cycle)) is not None]
    request = CheckRequest(
        places,
        check.asked(partitions, instants, aware("since", since), everything),
        object,
        tuple(rules),
        server,
        parallel,
        world.below(results_table) if results_table and is_path(results_table) else results_table,
        dry_run,
        scan,
        verify_statistics,
        channel,
        world.below(quarantine) if quarantine else quarantine,
        quarantine_unmasked,
    )
    with closing(world.store()) as store:
        outcome = finish(world, store, request, run_checks(world, store, request))
    outcome.raise_bugs()
    return replace(outcome, alerts=tuple(world.messages.alerts), notes=tuple(world.messages.notes))


def run_checks(world: World, store: Store, request: CheckRequest) -> CheckOutcome:
    """Test the objects and keep what was found; nothing is sent yet. Raises as `check_contracts`."""
    loaded = settled(world, store, load(request.paths, world.note))
    unheard = alerting.refused(loaded.contracts, request.channel, world.settings)
    for finding in (*loaded.findings, *unheard):
        world.messages.finding(finding)
    neighbours = Neighbours.of(loaded.contracts)
    pairs = check.with_rules(check.objects(loaded, request.object), request.rules, neighbours)
    todo = check.with_places(world, check.tasks(store, pairs, request.rows, request.server), request.server)
    tell = alerting.teller(world, loaded.contracts, request.channel, request.server)
    results: Sequence[Result] = [failed for task in todo for failed in check.refused(task)]
    bugs: Sequence[Exception] = ()
    if request.dry_run or any(task.scopes for task in todo):
        spark = at_need(
            world,
            hive=request.needs_hive and not request.dry_run,
            formats=check.formats(world, pairs, request.server),
        )
        if request.results_table and not request.dry_run:
            # What cannot be appended in the end is said before anything is done.
            spark()
        setup = Setup(
            world,
            store,
            spark,
            tell,
            request.server,
            request.rules,
            request.quarantine,
            request.quarantine_unmasked,
            NONE if request.scan else ALL,
            neighbours,
            request.verify_statistics,
        )
        results, bugs = _each(setup, todo, request, loaded.contracts)
    return CheckOutcome(
        world.now(),
        tuple(loaded.contracts),
        tuple(results),
        tuple(loaded.findings),
        tuple(unheard),
        tuple(bugs),
    )


def finish(world: World, store: Store, request: CheckRequest, outcome: CheckOutcome) -> CheckOutcome:
    """Send what was found to those who are told, and append it to the results table. Raises MissingTool."""
    if request.dry_run:
        return outcome
    drained = alerting.send(world, store, request.channel)
    outcome = replace(outcome, drained=drained)
    for text in alerting.undelivered(drained):
        world.note(text)
    if request.results_table:
        rows = [broken(finding, world.now()) for finding in outcome.findings]
        for result in outcome.results:
            if isinstance(result, Report):
                rows += lines(result, world.now())
            elif isinstance(result, Failed):
                about = (result.contract, result.object.name, check.name_of(result.scope))
                rows.append(untested(*about, world.now(), str(result.error)))
        spark = session(world, hive=request.needs_hive)
        if rows:
            with world.messages.step(f"appending {len(rows)} results to {request.results_table}"):
                append(spark, rows, request.results_table)
    return outcome


def _each(
    setup: Setup, todo: Sequence[Task], request: CheckRequest, contracts: Sequence[Contract]
) -> tuple[list[Result], list[Exception]]:
    """What was found of all scopes, in the order of the contracts, and what no run may raise: bugs."""
    progress = setup.world.messages.progress(sum(len(task.scopes) for task in todo))
    threads = request.parallel or at_once(processors())
    lineage = nullcontext() if request.dry_run else recording(setup.world, contracts, request.server)
    with lineage as events:
        run_scope: Work[Report] = events.around(check.run) if events else check.run
        work: Work[Any] = check.foresee if request.dry_run else run_scope
        answers = together(
            lambda: setup.spark.begun,
            todo,
            lambda task: check.run_all(setup, task, work, progress),
            threads,
        )
        progress.close()
    done = [result for answer in answers if not isinstance(answer, Exception) for result in answer]
    return done, [answer for answer in answers if isinstance(answer, Exception)]
