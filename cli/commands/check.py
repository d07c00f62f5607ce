"""dq check"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import typer

from dq.cli import alerting, show
from dq.cli.alerting import CHANNEL
from dq.cli.loading import Loaded, load
from dq.cli.quarantining import QUARANTINE, UNMASKED, set_apart
from dq.cli.spark import session
from dq.cli.world import World, here
from dq.contracts.errors import DqError, UsageError
from dq.contracts.model import Contract, SchemaObject
from dq.contracts.outcome import CheckResult, CycleStatus, Status
from dq.dataquality import Report, history
from dq.dataquality import check as measure
from dq.dataquality.accounting import State
from dq.dataquality.dataset import Dataset, locate
from dq.dataquality.delivery import ledger
from dq.dataquality.delivery.probe import label
from dq.dataquality.reference import has_relationships
from dq.store.engine import Store

Partition = Mapping[str, str]
_ARRIVED = (CycleStatus.ON_TIME, CycleStatus.ON_TIME_IN_GRACE, CycleStatus.LATE)
# What is shown for a person; JSON has everything.
_SAMPLES = 3


def command(
    paths: list[Path] = typer.Argument(
        None, help="Contract files or folders; by default the working folder."
    ),
    partition: list[str] = typer.Option(
        [], "--partition", help="Only this one, such as day=2026-11-20/region=eu."
    ),
    everything: bool = typer.Option(False, "--all", help="The whole table."),
    object: str = typer.Option(None, "--object", help="Only this object."),
    server: str = typer.Option(None, "--server", help="The server, where a contract has several."),
    channel: str = CHANNEL,
    quarantine: str = QUARANTINE,
    quarantine_unmasked: bool = UNMASKED,
    as_of: str = show.AS_OF,
    format: show.Format = show.FORMAT,
) -> None:
    """Test the data against its contracts, on Spark.

    By default each partition that was delivered and not tested yet, and the whole table where no delivery
    is promised. Results are kept in the store; a broken promise opens an incident, and a later run that
    finds it kept resolves it.

    Exit codes: 0 kept, 1 an error-level check failed, 3 something could not be measured, 4 an alert could
    not be delivered.

    Example: dq check flights.odcs.yaml --partition flight_date=2013-11-03
    """
    world = here(as_of)
    loaded = load(paths or [Path()])
    for finding in loaded.findings:
        show.note(str(finding))
    store = world.store()
    asked = [_partition(text) for text in partition]
    reports, failed = [], bool(loaded.findings)
    pairs = _objects(loaded, object)
    formats = _formats(world, pairs, server)
    for contract, one in pairs:
        for scope in _scopes(store, contract, one, asked, everything):
            try:
                reports.append(run(world, store, contract, one, scope, channel, server, formats))
                if quarantine:
                    reports[-1] = set_apart(
                        world,
                        contract,
                        one,
                        scope,
                        server,
                        _others(world, contract, one, server),
                        reports[-1],
                        quarantine,
                        quarantine_unmasked,
                    )
            except DqError as error:
                show.note(f"dq: {contract.id} {one.name}: {error.message}\n    {error.mend}")
                failed = True
    if format is show.Format.JSON:
        show.as_json([report.as_dict() for report in reports])
    else:
        for report in reports:
            describe(report)
        if not reports and not failed:
            show.line("Nothing new was delivered. Name a --partition, or say --all.")
    write = show.note if format is show.Format.JSON else show.line
    undelivered = alerting.report(alerting.send(world, store, write))
    codes = [undelivered, *(report.exit_code for report in reports), 3 if failed else 0]
    raise typer.Exit(next((code for code in (4, 3, 1) if code in codes), 0))


def run(
    world: World,
    store: Store,
    contract: Contract,
    one: SchemaObject,
    partition: Partition | None,
    channel: str,
    server: str | None = None,
    formats: Collection[str] = (),
) -> Report:
    """Tests one partition (None: the whole table), keeps the results, and records what they mean.

    `formats` are those of all data that this process will read; without, that of this object alone.
    Results and incident are written in one transaction. Raises DqError when the data cannot be opened.
    """
    data = locate(contract, one, server, world.environment)
    spark = session(world, formats=formats or _formats(world, [(contract, one)], server))
    scope = label(tuple(partition.items())) if partition else history.TABLE
    with store.read() as tx:
        earlier = history.counts(tx, contract.id, one.name)
    with show.step(f"checking {one.name} {scope}"):
        report = measure(
            contract,
            data,
            one.name,
            spark=spark,
            partitions=[partition] if partition else None,
            now=world.now(),
            others=_others(world, contract, one, server),
            history=earlier,
        )
    tell = alerting.teller(world, [contract], channel)
    with store.write() as tx:
        history.save(
            tx,
            contract=contract.id,
            object=one.name,
            version=contract.version,
            scope=scope,
            results=report.results,
            jobs=report.passes,
            now=world.now(),
        )
        tell(tx, history.verdict(contract.id, one.name, scope, report.results, world.now()))
    return report


def _others(world: World, contract: Contract, one: SchemaObject, server: str | None) -> dict[str, Dataset]:
    """The contract's other objects, where their data can be found, for relationships."""
    found = {}
    for other in contract.objects if has_relationships(one) else ():
        try:
            found[other.name] = locate(contract, other, server, world.environment)
        except UsageError as error:
            show.note(f"dq: {error.message} {error.mend}")
    return found


def _objects(loaded: Loaded, name: str | None) -> list[tuple[Contract, SchemaObject]]:
    pairs = [
        (contract, one)
        for contract in loaded.contracts
        for one in contract.objects
        if name is None or name in (one.name, one.id)
    ]
    if not pairs and name is not None:
        raise UsageError(f"no contract here has an object {name!r}.", "Check --object.")
    return pairs


def _formats(world: World, pairs: Sequence[tuple[Contract, SchemaObject]], server: str | None) -> set[str]:
    """The formats of all data that will be read: a session has the jars that it was started with."""
    found = set()
    for contract in {id(contract): contract for contract, _ in pairs}.values():
        for one in contract.objects:
            # What cannot be located is said where it is tested.
            with suppress(UsageError):
                found.add(locate(contract, one, server, world.environment).format or "")
    return found


def _scopes(
    store: Store, contract: Contract, one: SchemaObject, asked: Sequence[Partition], everything: bool
) -> list[Partition | None]:
    """The scopes to test, each with a run of its own; None is the whole table."""
    if asked:
        return list(asked)
    promised = any(kept for kept in contract.sla_properties if kept.schedule)
    if everything or not one.partition_keys() or not promised:
        return [None]
    with store.read() as tx:
        tested = history.checked(tx, contract.id, one.name)
        arrived = {
            label(partition): dict(partition)
            for kept in ledger.of_object(tx, contract.id, one.name)
            if kept.status in _ARRIVED
            for partition in kept.cycle.partitions
        }
    return [partition for name, partition in arrived.items() if name not in tested]


def _partition(text: str) -> Partition:
    pairs = {}
    for part in text.split("/"):
        key, equals, value = part.partition("=")
        if not equals or not key:
            raise UsageError(f"--partition {text!r} is not of the form key=value.", "Write day=2026-11-20.")
        pairs[key] = value
    return pairs


def describe(report: Report, *, quiet: bool = False) -> None:
    """The report for a reader; `quiet` shows only what is not as promised."""
    scope = ", ".join(label(partition) for partition in report.partitions) or "whole table"
    counts = report.counts()
    if not quiet:
        show.line(typer.style(f"{report.contract}/{report.object} {scope}", bold=True))
    for result in report.results:
        if result.status is not Status.PASS:
            _result(result, quiet=quiet)
    if quiet:
        return
    said = ", ".join(f"{number} {status}" for status, number in counts.items() if number) or "no checks"
    if report.quarantine is not None:
        rows, path = report.quarantine.rows, report.quarantine.path
        show.line(f"  Quarantine: {rows:,} row(s) in {path}." if path else "  Quarantine: nothing to write.")
    states = Counter(account.state for account in report.accounts)
    clauses = ", ".join(f"{states[state]} {state.value}" for state in State if states[state])
    show.line(f"  {said}, in {report.passes} passes. Clauses: {clauses}.")


def _result(result: CheckResult, *, quiet: bool) -> None:
    good = {Status.FAIL: False, Status.ERROR: None}.get(result.status)
    if result.status is Status.SKIPPED:
        if not quiet:
            show.line(f"  - {result.property} {result.check}: {result.observed}")
        return
    what = " ".join(part for part in (result.property, result.check) if part)
    show.line(f"  {show.mark(good)} {result.severity} {what}: {result.message}")
    for sample in result.samples[:_SAMPLES]:
        show.line("      " + ", ".join(f"{key}={value}" for key, value in sample.items()))
    if len(result.samples) > _SAMPLES:
        show.line(f"      … {len(result.samples) - _SAMPLES} more in --format json")
