"""dq demo"""

from __future__ import annotations

import shutil
import tempfile
from contextlib import chdir
from dataclasses import replace
from datetime import datetime, timedelta
from importlib.resources import as_file, files
from pathlib import Path

import typer

from dq.cli import output
from dq.cli.check_output import describe
from dq.cli.commands import portal, status, watch
from dq.cli.context import alerts_are_results, note, undelivered
from dq.cli.plan_output import describe as describe_plan
from dq.contracts.outcome import MissingTool, UsageError
from dq.dataquality import results
from dq.dataquality.delivery import compliance, heartbeat
from dq.dataquality.delivery.tick import tick
from dq.lake.storage import Storages
from dq.operations import alerting, demo, register
from dq.operations import demo as lake_tables
from dq.operations import demo as scenario
from dq.operations.check import Setup, run
from dq.operations.gate import judge
from dq.operations.registry_files import Loaded, load, slos, watched
from dq.operations.runtime.context import World, here, processors, written_instant
from dq.operations.runtime.settings import Settings
from dq.operations.runtime.spark import SparkAtNeed, session
from dq.registry.catalog import CatalogSettings as CatalogSettings
from dq.store.engine import Store
from dq.validators.reports import reports_of

CHANNEL = "console"
SIGN = ".dq-demo"
SITE = "site"


def command(
    folder: Path = typer.Option(
        Path("dq-demo"), "--folder", help="Working folder of the demo; replaced on every run."
    ),
    tables: Path = typer.Option(
        None, "--tables", help="Only write the sample tables to this folder, as Parquet; needs no Spark."
    ),
) -> None:
    """Run the end-to-end demo on real data.

    Delivers flights and weather of New York day by day as in November 2013: one day late, one missing and
    delivered afterwards, and the defects of the real data. Needs Java 17 and the extras spark and demo;
    no network and no account. Takes about two minutes.

    Example: dq demo
    """
    if tables is not None:
        _tables(tables)
        return
    alerts_are_results()
    world = _world(folder)
    # Relative paths of the contracts are the same here as for the commands that are printed at the end.
    with chdir(world.folder):
        after = _all_steps(world, folder)
    _goodbye(folder, after)


def _all_steps(world: World, shown: Path) -> World:
    """Play the whole loop in the working folder, named `shown`; return the world as of its end."""
    sources = demo.producer_sources(world.state() / "cache", "spark", "demo")
    with output.step("starting Spark"):
        spark = session(world)
    _title("1. The gate: a pull request proposes a contract")
    _gate(world.folder / "proposals")
    _title("2. The gate: the registry as it is")
    _gate(world.folder / "registry")
    loaded = load([world.folder / "registry"], world.note)
    store = world.store()
    _title("3. Register: the catalog is made to match")
    registered = register.run(
        world, store, register.RegisterRequest((world.folder / "registry",), apply=True)
    )
    describe_plan(registered.plan, registered.results, applied=True)
    _title(f"4. Ten days around {scenario.FIRST:%-d %B} 2013: deliver, watch, check")
    made = demo.Producer(spark, world.folder / "lake", sources)
    _play(world, loaded, store, made)
    _title("5. How the promises stand")
    last = list(scenario.scenario_events())[-1].at
    after = replace(world, as_of=scenario.instant(last))
    status.show_all(after, [world.folder / "registry"], output.PageFormat.TEXT)
    _title("6. The portal: a page for everybody who reads the data")
    _portal(after, shown)
    return after


def _portal(world: World, shown: Path) -> None:
    """Build the site of the folder named `shown`, or print how to install what the portal needs."""
    try:
        with output.step("writing the pages"):
            built = portal.build_site(
                world, world.folder / SITE, [world.folder / "registry"], timedelta(hours=12)
            )
    except MissingTool as error:
        output.problem(error)
        return
    output.line(f"  {built.summary.products} products: open {shown / SITE / 'index.html'}")


def _tables(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as name:
        _copy("registry", Path(name))
        loaded = load([Path(name)], note)
    objects = [one for contract in loaded.contracts for one in contract.objects]
    for place, count, rows in lake_tables.write(folder, objects):
        output.line(f"Wrote {place}: {count} {'file' if count == 1 else 'files'}, {rows:,} rows.")


def _world(folder: Path) -> World:
    """A new folder with the example registry; an old one is replaced only if a demonstration made it."""
    if folder.exists() and not (folder / SIGN).exists():
        raise UsageError(f"{folder} is there already and not a demonstration's.", "Choose another --folder.")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / SIGN).touch()
    for name in ("registry", "proposals"):
        _copy(name, folder)
    world = here()
    # The printed commands are run in that folder with default settings, so the demonstration is as well.
    environment = {name: value for name, value in world.environment.items() if name != "DQ_LAKE"}
    return replace(world, environment=environment, folder=folder.resolve(), settings=Settings())


def _copy(name: str, folder: Path) -> None:
    with as_file(files("dq.examples") / name) as example:
        shutil.copytree(example, folder / name)


def _gate(path: Path) -> None:
    linted = judge([path], None, here().now().date(), processors())
    output.block(reports_of()["text"].render(linted, output.screen()).rstrip("\n"))


def _play(world: World, loaded: Loaded, store: Store, made: demo.Producer) -> None:
    promises, _ = slos(loaded, world.note)
    watching = [watched(slo, None, world.reach, Storages(world.reach).of) for slo in promises]
    with store.write() as tx:
        compliance.write_terms(tx, compliance.terms_of(promises))
    looked_at: datetime | None = None
    objects = {one.name: (contract, one) for contract in loaded.contracts for one in contract.objects}
    with output.step("reading the source data"):
        frames = {name: made.read(one) for name, (_, one) in objects.items()}
        rows = {name: frame.count() for name, frame in frames.items()}
    output.line("  " + ", ".join(f"{count:,} {name}" for name, count in rows.items()))
    for event in scenario.scenario_events():
        at = scenario.instant(event.at)
        now = replace(world, as_of=at)
        if event.object:
            contract, one = objects[event.object]
            day = event.day.isoformat() if event.day else None
            count = made.deliver(frames[event.object], one, day, at)
            word = f"  ← {event.word}" if event.word else ""
            output.line(f"{event.at:%a %d %b %H:%M}  {one.name} {day or ''} delivered, {count:,} rows{word}")
        heard = alerting.teller(now, loaded.contracts, CHANNEL)
        done, looked_at = tick(store, watching, now.now(), heard, looked_at=looked_at), now.now()
        with store.write() as tx:
            heartbeat.beat(tx, at)
        if event.object:
            partition = {one.partition_keys()[0].column: day} if day else None
            tell = alerting.teller(now, [contract], CHANNEL)
            with output.step(f"checking {one.name} {day or results.TABLE}"):
                report = run(
                    Setup(now, store, SparkAtNeed(lambda: made.spark), tell), contract, one, partition
                )
            describe(report, quiet=True)
        watch.describe(done, quiet=True)
        undelivered(alerting.send(now, store))


def _title(text: str) -> None:
    output.line()
    output.line(output.styled(text, bold=True))


def _goodbye(folder: Path, world: World) -> None:
    output.line()
    output.line(output.styled(f"All of it is in {folder}. Look around:", bold=True))
    for text in (
        f"cd {folder}",
        "dq validate registry",
        f"dq status registry --as-of {written_instant(world.now())}",
        "dq check registry/weather.odcs.yaml --partition obs_date=2013-11-03",
        "dq register registry",
        f"dq portal serve {SITE}",
        "dq explain decimal-without-precision",
    ):
        output.line(f"  {text}")
