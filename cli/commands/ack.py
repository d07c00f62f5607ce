"""dq ack"""

from __future__ import annotations

import typer

from dq.alerts.incident import IncidentState
from dq.alerts.record import acknowledge
from dq.cli.context import here
from dq.cli.options import CHANNEL
from dq.cli.shown import alerts
from dq.cli.terminal import output
from dq.operations.alerting import send
from dq.operations.alerting import send as sending
from dq.operations.alerting.send import short


def command(
    incident: str = typer.Argument(
        help="The beginning of an incident's id, or a contract's key: all that is open of it."
    ),
    by: str = typer.Option(None, "--by", help="Who is on it; the user of this machine by default."),
    channel: str = CHANNEL,
    as_of: str = output.AS_OF,
    format: output.Format = output.FORMAT,
) -> None:
    """Say that somebody is on an incident: its channels hear who, and nobody else is called or reminded.

    What is acknowledged stays so until it ends; when it breaks again after that, it is open again.

    Exit codes: 0 it is acknowledged, 2 there is no such open incident, 4 an alert could not be delivered.

    Example: dq ack 3f2a91c0 --by ana
    """
    world, who = here(as_of), send.person(by)
    store = world.store()
    with store.write() as tx:
        asked = send.named(tx, incident)
        done = {one.id: acknowledge(tx, one.id, who, world.now()) is not None for one in asked}
    drained = sending.send(world, store, alerts.painted(output.aside), channel)
    if format is output.Format.JSON:
        output.as_json(
            [{"id": one.id, "key": str(one.key), "acknowledged": done[one.id],
              "by": who if done[one.id] else one.acked_by, "state": "acked" if done[one.id] else one.state}
             for one in asked]
        )  # fmt: skip
    else:
        for one in asked:
            if done[one.id]:
                output.line(f"{short(one)} {one.key}: {who} is on it.")
            elif one.state is IncidentState.ACKED:
                output.line(f"{short(one)} {one.key}: {one.acked_by} is on it already.")
            else:
                output.line(f"{short(one)} {one.key}: it is over ({one.state.replace('_', ' ')}).")
    over = [one for one in asked if not done[one.id] and one.state is not IncidentState.ACKED]
    raise typer.Exit(alerts.report(drained) or (2 if over else 0))
