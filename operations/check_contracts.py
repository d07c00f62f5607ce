"""`dq.check_contracts`: check the objects of contracts, store the results, and send alerts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from dq.alerts.drain import DrainResult
from dq.contracts.model import Contract
from dq.contracts.outcome import Finding, ReadError, UsageError
from dq.dataquality.answers.sources import ALL, NONE
from dq.dataquality.check import Outline
from dq.dataquality.clauses.coverage import JsonObject
from dq.dataquality.deduplication import Precedence
from dq.dataquality.report import Report
from dq.dataquality.results import append, broken_contract_row, is_path, lines, quoted_target, untested_row
from dq.operations import alerting, check
from dq.operations.check import CheckSetup, CheckTask, FailedScope, RowSelection, Work
from dq.operations.key_ownership import resolve_key_owners
from dq.operations.notices import RegistrySubscriptions
from dq.operations.openlineage import recording
from dq.operations.registry_files import load, with_registry
from dq.operations.runtime.context import RuntimeContext, call_context, processors, to_utc
from dq.operations.runtime.spark import default_parallelism, lazy_session, run_concurrently, session
from dq.store.engine import Store

Result = Report | Outline | FailedScope
"""Result of one object and scope; an outline in a dry run."""


@dataclass(frozen=True, slots=True)
class CheckRequest:
    """Arguments of a check; see `check_contracts` for the fields."""

    paths: tuple[Path, ...]
    rows: RowSelection
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
    precedence: Precedence | None = None
    clean: str | None = None

    @property
    def needs_hive(self) -> bool:
        """True if results go to a named table, which only persists in a metastore."""
        target = self.results_table
        return bool(target) and not is_path(quoted_target(target or ""))


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    """Results as of `at`: a report for each object and scope, or an outline in a dry run.

    What could not be checked is a `FailedScope`. `findings` are contracts that could not be read, `unheard`
    support entries that are not allowed to receive alerts, `bugs` unexpected exceptions, `drained` the sent
    and waiting alerts.
    """

    at: datetime
    contracts: tuple[Contract, ...]
    results: tuple[Result, ...]
    findings: tuple[Finding, ...] = ()
    unheard: tuple[Finding, ...] = ()
    bugs: tuple[Exception, ...] = ()
    drained: DrainResult | None = None
    alerts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """Exit code of `dq check`: 4 an alert was not delivered, 2 Spark or Java is missing, 3, or 1."""
        codes = {_code(result) for result in self.results}
        # A dry run sends no alerts, so unusable routes do not matter.
        is_dry_run = self.drained is None
        codes |= {ReadError.exit_code} if self.findings or (self.unheard and not is_dry_run) else set()
        codes |= {alerting.exit_code(self.drained)} if self.drained is not None else set()
        return next((code for code in (4, 2, 3, 1) if code in codes), 0)

    def as_list(self) -> list[JsonObject]:
        """Return the output of `dq check --format json` as JSON values."""
        return as_list(self.results, self.findings)

    def raise_bugs(self) -> None:
        """Raise the unexpected exceptions, if there are any."""
        if self.bugs:
            raise (
                self.bugs[0]
                if len(self.bugs) == 1
                else ExceptionGroup("bugs in the runs of several objects", list(self.bugs))
            )


def _code(result: Result) -> int:
    if isinstance(result, Outline):
        return 0
    # Rows that were not written must fail the command, since callers publish the others.
    outputs = (result.quarantine, result.cleaned) if isinstance(result, Report) else ()
    unwritten = any(output is not None and output.problem for output in outputs)
    return ReadError.exit_code if unwritten else result.exit_code


def as_list(results: Sequence[Result], findings: Sequence[Finding]) -> list[JsonObject]:
    """Return results as JSON values; what could not be checked has an `error` and no results."""
    unread = [_untested(None, None, [], str(finding)) for finding in findings]
    return [*unread, *map(_entry, results)]


def _entry(result: Result) -> JsonObject:
    if not isinstance(result, FailedScope):
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
    keep: str | None = None,
    clean: str | None = None,
    folder: Path | str | None = None,
    now: datetime | None = None,
) -> CheckOutcome:
    """Check the data of contracts, store the results, and send alerts, as `dq check` does.

    `dq.check` checks one object without storing or alerting. `paths` are contract files and folders. Checked
    are deliveries not checked yet, or one of: `partitions`, the deliveries due at `cycles`, all delivered
    `since`, or `everything`. `object` and `rules` select objects and clauses; `server` is required if a
    contract has several. `parallel` objects are checked concurrently. `results_table` is a table or folder
    that results are appended to, `quarantine` a path for bad rows, masked unless `quarantine_unmasked`.
    `clean` is a path for good rows, with all their values; `keep`, e.g. `newest by updated_at`, is the row of
    a repeated key that is good. A `dry_run` only reads schemas, and stores and sends nothing. `scan` reads
    everything with Spark; `verify_statistics` is the share of answers from statistics that is verified by
    counting. `channel` is `contract` for the channels of the contracts, or one channel, e.g. `console`.
    `folder` replaces the working folder, `now` is an aware instant.

    Raises UsageError for invalid arguments, ReadError for a path or a store that cannot be read, and
    MissingTool if Spark is needed and missing. Problems of data or contracts are in the outcome.
    """
    context, places = call_context(paths, folder, now)
    instants = [instant for cycle in cycles if (instant := to_utc("cycles", cycle)) is not None]
    request = CheckRequest(
        places,
        check.select_rows(partitions, instants, to_utc("since", since), everything),
        object,
        tuple(rules),
        server,
        parallel,
        context.resolve_path(results_table) if results_table and is_path(results_table) else results_table,
        dry_run,
        scan,
        verify_statistics,
        channel,
        context.resolve_path(quarantine) if quarantine else quarantine,
        quarantine_unmasked,
        None if keep is None else Precedence.parse(keep),
        clean,
    )
    with closing(context.store()) as store:
        outcome = finish(context, store, request, run_checks(context, store, request))
    outcome.raise_bugs()
    return replace(outcome, alerts=tuple(context.messages.alerts), notes=tuple(context.messages.notes))


def run_checks(context: RuntimeContext, store: Store, request: CheckRequest) -> CheckOutcome:
    """Check the objects and store the results; nothing is sent yet. Raises as `check_contracts`."""
    loaded = resolve_key_owners(context, store, load(request.paths, context.note))
    unheard = alerting.refused(loaded.contracts, request.channel, context.settings)
    for finding in (*loaded.findings, *unheard):
        context.messages.finding(finding)
    neighbours = with_registry(loaded.contracts, context.folder)
    pairs = check.select_with_rules(check.select_objects(loaded, request.object), request.rules, neighbours)
    if request.precedence is not None:
        if request.quarantine is None and request.clean is None:
            raise UsageError(
                f"'{request.precedence}' has no effect without --quarantine or --clean.",
                "Pass a folder for the bad or the good rows.",
            )
        check.refuse_unusable_precedence(pairs, request.precedence, request.rules, neighbours)
    if request.clean is not None:
        check.refuse_unusable_folder(
            context, pairs, loaded.contracts, request.server, request.clean, request.quarantine
        )
    tasks = check.with_location_errors(
        context, check.plan_tasks(store, pairs, request.rows, request.server), request.server
    )
    subscriptions = RegistrySubscriptions(context)
    notify = alerting.make_notifier(
        context, loaded.contracts, request.channel, request.server, subscriptions=subscriptions
    )
    results: Sequence[Result] = [failed for task in tasks for failed in check.untestable_scopes(task)]
    bugs: Sequence[Exception] = ()
    if request.dry_run or any(task.scopes for task in tasks):
        spark = lazy_session(
            context,
            hive=request.needs_hive and not request.dry_run,
            formats=check.formats(context, pairs, request.server),
        )
        if request.results_table and not request.dry_run:
            # Fail early if the results table cannot be written.
            spark()
        setup = CheckSetup(
            context,
            store,
            spark,
            notify,
            subscriptions.read,
            request.server,
            request.rules,
            request.quarantine,
            request.quarantine_unmasked,
            NONE if request.scan else ALL,
            neighbours,
            request.verify_statistics,
            request.precedence,
            request.clean,
        )
        results, bugs = _run_tasks(setup, tasks, request, loaded.contracts)
    return CheckOutcome(
        context.now(),
        tuple(loaded.contracts),
        tuple(results),
        tuple(loaded.findings),
        tuple(unheard),
        tuple(bugs),
    )


def finish(
    context: RuntimeContext, store: Store, request: CheckRequest, outcome: CheckOutcome
) -> CheckOutcome:
    """Send alerts and append the results to the results table. Raises MissingTool."""
    if request.dry_run:
        return outcome
    drained = alerting.send(context, store, request.channel)
    outcome = replace(outcome, drained=drained)
    for text in alerting.undelivered(drained):
        context.note(text)
    if request.results_table:
        rows = [broken_contract_row(finding, context.now()) for finding in outcome.findings]
        for result in outcome.results:
            if isinstance(result, Report):
                rows += lines(result, context.now())
            elif isinstance(result, FailedScope):
                about = (result.contract, result.object.name, check.scope_name(result.scope))
                rows.append(untested_row(*about, context.now(), str(result.error)))
        spark = session(context, hive=request.needs_hive)
        if rows:
            with context.messages.step(f"appending {len(rows)} results to {request.results_table}"):
                append(spark, rows, request.results_table)
    return outcome


def _run_tasks(
    setup: CheckSetup, tasks: Sequence[CheckTask], request: CheckRequest, contracts: Sequence[Contract]
) -> tuple[list[Result], list[Exception]]:
    """Return the results of all scopes, in the order of the contracts, and unexpected exceptions."""
    progress = setup.context.messages.progress(sum(len(task.scopes) for task in tasks), "checking")
    threads = request.parallel or default_parallelism(processors())
    lineage = nullcontext() if request.dry_run else recording(setup.context, contracts, request.server)
    with lineage as events:
        run_scope: Work[Report] = events.with_events(check.run) if events else check.run
        work: Work[Any] = check.dry_run if request.dry_run else run_scope
        answers = run_concurrently(
            lambda: setup.spark.current,
            tasks,
            lambda task: check.run_all(setup, task, work, progress),
            threads,
        )
        progress.close()
    done = [result for answer in answers if not isinstance(answer, Exception) for result in answer]
    return done, [answer for answer in answers if isinstance(answer, Exception)]
