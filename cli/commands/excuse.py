"""dq excuse"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path

import typer

from dq.cli.context import here
from dq.cli.options import CHANNEL
from dq.cli.shown import alerts
from dq.cli.terminal import output
from dq.contracts.shared.outcome import UsageError
from dq.contracts.slo import Slo
from dq.dataquality.delivery import cycle_store, replay
from dq.dataquality.delivery import cycle_store as excuses
from dq.dataquality.delivery.cycle_store import Excuse
from dq.operations.alerting import send
from dq.operations.key_ownership import settled
from dq.operations.registry_files import load, slos
from dq.operations.runtime.context import instant

_MOST = 10_000
_MOMENT = timedelta(microseconds=1)


def command(
    # Named, so that nobody excuses a whole registry from within it.
    paths: list[Path] = typer.Argument(help="Contract files or folders."),
    due: list[str] = typer.Option([], "--due", help="The due instant of a delivery; again for more."),
    since: str = typer.Option(None, "--from", help="All that are due from this instant on …"),
    until: str = typer.Option(None, "--to", help="… up to this one."),
    slo: str = typer.Option(None, "--slo", help="Only this service level, by its id."),
    by: str = typer.Option(..., "--by", help="Who excuses them."),
    reason: str = typer.Option(..., "--reason", help="Why."),
    undo: bool = typer.Option(False, "--undo", help="They count after all."),
    channel: str = CHANNEL,
    format: output.Format = output.FORMAT,
) -> None:
    """Take deliveries of the contracts at the paths out of the count, before or after they were due.

    Who did it and why is kept for good; --undo adds a word, and takes none away. An open incident ends as
    excused.

    Exit codes: 0 done, 2 nothing is due then, or nothing of it is excused (--undo), 3 a contract could not
    be read, 4 an alert could not be delivered.

    Example: dq excuse orders.odcs.yaml --due 2026-05-01T06:00:00Z --by ann --reason 'planned outage'
    """
    world = here(paths=paths)
    store = world.store()
    loaded = settled(world, store, load(paths, world.note))
    promises, wrong = slos(loaded, world.note)
    if not by.strip() or not reason.strip():
        raise UsageError("an excuse needs who and why.", "Write --by and --reason.")
    wanted = {one.key: one for one in promises if slo in (None, one.id)}
    now = world.now()
    tell = send.teller(world, loaded.contracts, channel)
    asked = _asked(due, since, until)
    with store.write() as tx:
        named = [
            Excuse(key, at, now, by.strip(), reason.strip(), undo)
            for key, one in wanted.items()
            for at in asked(one, [kept.cycle.due_at for kept in cycle_store.all_cycles(tx, key)])
        ]
        # Only an excuse can be undone.
        words = excuses.excused_only(tx, named) if undo else named
        turns = replay.excuse(tx, wanted, words, now, tell)
    if named and not words:
        raise UsageError(
            "no delivery due then is excused: nothing to undo.",
            "See 'dq status --format json' for what is excused.",
        )
    if not words:
        raise UsageError(
            "no delivery is due then.",
            "See 'dq schedule explain', and 'dq status --format json' for the past.",
        )
    drained = send.send(world, store, alerts.painted(output.aside), channel)
    output.notes([*loaded.findings, *wrong])
    if format is output.Format.JSON:
        output.as_json(
            [{"contract": one.key[0], "object": one.key[1], "slo": one.key[2],
              "due_at": one.due_at.isoformat(), "undone": undo} for one in words]
        )  # fmt: skip
    else:
        output.line(
            f"{'counted again' if undo else 'excused'}: {len(words)}, of them judged before: {len(turns)}"
        )
    raise typer.Exit(alerts.report(drained) or (3 if loaded.findings or wrong else 0))


def _asked(
    due: Iterable[str], since: str | None, until: str | None
) -> Callable[[Slo, Iterable[datetime]], list[datetime]]:
    """Gives the due instants of a promise that were asked for: of its schedule, and of its past."""
    if (since is None) != (until is None):
        raise UsageError("--from and --to go together.", "Write both.")
    named = {instant(text) for text in due}
    first, last = (instant(since), instant(until)) if since and until else (None, None)

    def dues(one: Slo, past: Iterable[datetime]) -> list[datetime]:
        found = {at.at for moment in named for at in one.schedule.between(moment - _MOMENT, moment)}
        if first and last:
            found |= {at.at for at in islice(one.schedule.between(first - _MOMENT, last), _MOST + 1)}
        if len(found) > _MOST:
            raise UsageError(
                f"{one.id} has more than {_MOST:,} deliveries in that time.", "Excuse a shorter time."
            )
        found |= {at for at in past if at in named or (first and last and first <= at <= last)}
        return sorted(found)

    return dues
