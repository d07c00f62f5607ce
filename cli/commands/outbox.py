"""dq outbox"""

from __future__ import annotations

import typer

from dq.alerts.outbox import drain
from dq.cli.context import here
from dq.cli.terminal import output
from dq.contracts.shared.outcome import UsageError
from dq.operations.alerting.send import outstanding_as_dict, told


def command(
    dismiss: str = typer.Option(None, "--dismiss", help="Let go of what this place refused: slack:#sales."),
    by: str = typer.Option(None, "--by", help="Who lets go of it."),
    format: output.Format = output.FORMAT,
) -> None:
    """Show the alerts that people should have and have not: what waits, and what a place refuses.

    What is refused is told to somebody else, and tried again every hour and whenever a contract names
    another place. --dismiss lets go of it; the incidents' histories keep by whom.

    Exit codes: 0 all is well, 2 that place refused nothing, 4 something is refused, or was tried in vain
    for a quarter of an hour.

    Example: dq outbox
    """
    world = here()
    store = world.store()
    if dismiss is not None:
        channel, _, target = dismiss.partition(":")
        if not (by or "").strip():
            raise UsageError("a dismissal needs who.", "Write --by.")
        with store.write() as tx:
            gone = drain.dismiss(tx, channel, target, by.strip(), world.now())
        if not gone:
            raise UsageError(f"{dismiss!r} has refused nothing.", "See 'dq outbox'.")
        output.note(f"let go of: {gone}")
    with store.read() as tx:
        left = drain.all_of(tx, world.now())
    if format is output.Format.JSON:
        output.as_json([outstanding_as_dict(one) for one in left])
    else:
        for one in left:
            output.line(told(one))
        if not left:
            output.line("Nothing waits, and nothing was refused.")
    raise typer.Exit(4 if any(one.stuck for one in left) else 0)
