"""dq cycles"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path

import typer

from dq.cli.alerting import sending
from dq.cli.alerting.sending import CHANNEL
from dq.cli.loading.contracts import PATHS, load, slos
from dq.cli.loading.holding import settled
from dq.cli.loading.promises import promises_of_all_times
from dq.cli.terminal import output
from dq.cli.world.environment import here, instant
from dq.contracts.shared.errors import UsageError
from dq.contracts.slo import Slo
from dq.dataquality.delivery import ledger
from dq.dataquality.delivery.history import audit, excusing, replay
from dq.dataquality.delivery.history.changes import keys
from dq.dataquality.delivery.history.replay import Replayed
from dq.dataquality.delivery.state.excuses import Excuse

app = typer.Typer(no_args_is_help=True)
_DRAWN = 50
_MOST = 10_000
_MOMENT = timedelta(microseconds=1)


@app.callback()
def _group() -> None:
    """Look into the history of deliveries: judge it again, compare it with the contracts, excuse a cycle."""


@app.command("replay")
def replayed(
    as_of: str = typer.Option(
        None, "--as-of", help="How it stood at this instant, such as 2026-05-01T06:00:00Z."
    ),
    contract: str = typer.Option(
        None, "--contract", help="Only the deliveries of this contract, by its key."
    ),
    format: output.Format = output.FORMAT,
) -> None:
    """Judge all deliveries again from the stored evidence, and compare with what is stored.

    Every change of a delivery's status was kept with what it rested on, so the verdicts can be derived again
    by the same function. With --as-of, as it stood at an instant, which nothing is compared with.

    Exit codes: 0 the store says the same, 1 it does not, 3 some of it has no proof (of an older dq).

    Example: dq cycles replay --as-of 2026-05-01T06:00:00Z
    """
    world = here()
    at = instant(as_of) if as_of else None
    with world.store().read() as tx:
        wanted = [key for key in keys(tx) if contract in (None, key[0])]
        if contract is not None and not wanted:
            raise UsageError(
                f"no delivery of {contract!r} is stored.", "Name a contract as 'dq status' does."
            )
        found = list(replay.replay(tx, wanted, at))
    wrong = [one for one in found if one.differences]
    unproven = sum(not one.proven for one in found)
    if format is output.Format.JSON:
        shown = found if at is not None else wrong
        output.as_json(
            {
                "cycles": len(found),
                "unproven": unproven,
                "different": len(wrong),
                "shown": [*map(_row, shown)],
            }
        )
    else:
        for one in wrong[:_DRAWN]:
            output.line(f"  {output.mark(False)} {_name(one)}: {'; '.join(one.differences)}")
        if at is not None:
            _describe(found, at)
        else:
            said = f"deliveries judged again: {len(found)}, different: {len(wrong)}"
            output.line(f"{said}, of an older dq without proof: {unproven}")
    # What nobody could derive is not fine.
    raise typer.Exit(1 if wrong else 3 if unproven else 0)


def _describe(found: Iterable[Replayed], at: datetime) -> None:
    by_slo: dict[str, Counter[str]] = {}
    for one in found:
        cycle = one.kept.cycle
        by_slo.setdefault(f"{cycle.contract}/{cycle.slo}", Counter())[one.status] += 1
    output.line(f"As of {at:%Y-%m-%d %H:%M}Z")
    for name, numbers in by_slo.items():
        output.line(
            f"  {name}: {', '.join(f'{count} {status}' for status, count in sorted(numbers.items()))}"
        )
    if not by_slo:
        output.line("  nothing was due")


def _name(one: Replayed) -> str:
    return f"{one.kept.cycle.contract}/{one.kept.cycle.slo} due {one.kept.cycle.due_at:%Y-%m-%d %H:%M}Z"


def _row(one: Replayed) -> dict[str, object]:
    cycle = one.kept.cycle
    return {
        "contract": cycle.contract,
        "object": cycle.object,
        "slo": cycle.slo,
        "due_at": cycle.due_at.isoformat(),
        "status": one.status,
        "delivered_at": one.delivered_at.isoformat() if one.delivered_at else None,
        "reason": one.reason,
        "proven": one.proven,
        "differences": list(one.differences),
    }


@app.command("audit")
def audited(paths: list[Path] = PATHS, format: output.Format = output.FORMAT) -> None:
    """Compute all deliveries again from the contracts, as they are and as Git knows they were, and compare.

    Each row names the contract's text that promised it by its hash. What that text gives (due, breach,
    partitions) must be what the row says, and no delivery that it gives may lack a row.

    Exit codes: 0 the rows agree, 1 they do not, 3 something could not be read, or some rows not be compared.

    Example: dq cycles audit registry
    """
    places = paths or [Path()]
    world = here(paths=places)
    loaded = load(places)
    for finding in loaded.findings:
        output.note(str(finding))
    promises = promises_of_all_times(loaded.contracts)
    here_now = {contract.key for contract in loaded.contracts} | {key[0] for _, key in promises}
    with world.store().read() as tx:
        found = audit.audit(tx, [key for key in keys(tx) if key[0] in here_now], promises)
    if format is output.Format.JSON:
        wrong = [
            {"contract": one.key[0], "object": one.key[1], "slo": one.key[2],
             "due_at": one.due_at.isoformat(), "what": one.what}
            for one in found.wrong
        ]  # fmt: skip
        output.as_json({"agreeing": found.agreeing, "unproven": len(found.unproven), "wrong": wrong})
    else:
        for one in found.wrong[:_DRAWN]:
            due = f"{one.due_at:%Y-%m-%d %H:%M}Z"
            output.line(f"  {output.mark(False)} {one.key[0]}/{one.key[2]} due {due}: {one.what}")
        for (contract, hashed), times in Counter(
            (one.cycle.contract, one.contract_hash[:12]) for one in found.unproven
        ).items():
            why = f"no text of hash {hashed}… is here or in Git" if hashed else "an older dq kept no hash"
            output.line(f"  {output.mark(None)} {contract}: {times} not compared: {why}")
        output.line(
            f"deliveries that agree: {found.agreeing}, wrong: {len(found.wrong)}, "
            f"not compared: {len(found.unproven)}"
        )
    # What nobody could compare is not fine.
    raise typer.Exit(1 if found.wrong else 3 if found.unproven or loaded.findings else 0)


@app.command("excuse")
def excused(
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

    Exit codes: 0 done, 2 nothing is due then, 3 a contract could not be read, 4 an alert could not be
    delivered.

    Example: dq cycles excuse orders.odcs.yaml --due 2026-05-01T06:00:00Z --by ann --reason 'planned outage'
    """
    world = here(paths=paths)
    store = world.store()
    loaded = settled(world, store, load(paths))
    promises, wrong = slos(loaded)
    if not by.strip() or not reason.strip():
        raise UsageError("an excuse needs who and why.", "Write --by and --reason.")
    wanted = {one.key: one for one in promises if slo in (None, one.id)}
    now = world.now()
    tell = sending.teller(world, loaded.contracts, channel)
    asked = _asked(due, since, until)
    with store.write() as tx:
        words = [
            Excuse(key, at, now, by.strip(), reason.strip(), undo)
            for key, one in wanted.items()
            for at in asked(one, [kept.cycle.due_at for kept in ledger.history(tx, key)])
        ]
        turns = excusing.excuse(tx, wanted, words, now, tell)
    if not words:
        raise UsageError(
            "no delivery is due then.",
            "See 'dq schedule explain', and 'dq status --format json' for the past.",
        )
    drained = sending.send(world, store, output.aside, channel)
    for finding in (*loaded.findings, *wrong):
        output.note(str(finding))
    if format is output.Format.JSON:
        output.as_json(
            [{"contract": one.key[0], "object": one.key[1], "slo": one.key[2],
              "due_at": one.due_at.isoformat(), "undone": undo} for one in words]
        )  # fmt: skip
    else:
        output.line(
            f"{'counted again' if undo else 'excused'}: {len(words)}, of them judged before: {len(turns)}"
        )
    raise typer.Exit(sending.report(drained) or (3 if loaded.findings or wrong else 0))


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
