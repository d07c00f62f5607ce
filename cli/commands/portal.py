"""dq portal"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import typer

from dq.cli import output
from dq.contracts.outcome import counted
from dq.operations.portal import PortalOutcome, run
from dq.operations.runtime.context import World, here, pace
from dq.portal.output import PortalSummary

app = typer.Typer(no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Build and look at the portal: a static site with a page for every product."""


@app.command("build")
def build(
    out: Path = typer.Argument(help="The folder of the site; a new, an empty, or a portal's own."),
    paths: list[Path] = typer.Argument(
        None, help="Contract files or folders; the working folder by default."
    ),
    tick: str = typer.Option("15m", "--tick", help="How often dq watch runs; pages say when it is silent."),
    as_of: str = output.AS_OF,
    format: output.Format = output.FORMAT,
) -> None:
    """Write the portal: how every product stands, what it promises, whom to ask, and what happened.

    Only what has changed since the last build is written again. The pages work from a folder, from S3 and
    without JavaScript; nothing is loaded from elsewhere.

    Exit codes: 0 built, 2 the folder holds other files, 3 a contract could not be read (its page says why).

    Example: dq portal build site registry
    """
    places = paths or [Path()]
    world = here(as_of, places)
    done = build_site(world, out, places, pace(tick, "--tick"))
    if format is output.Format.JSON:
        output.as_json(done.as_dict())
    else:
        describe(done.summary)
    raise typer.Exit(done.exit_code)


@app.command("serve")
def serve(
    folder: Path = typer.Argument(help="The folder of a portal."),
    port: int = typer.Option(0, "--port", help="The port on 127.0.0.1; any free one by default."),
) -> None:
    """Serve a portal on 127.0.0.1 for a look, until it is stopped.

    Exit codes: 0 stopped, 2 no portal there, or the port is taken.

    Example: dq portal serve site --port 8000
    """
    from dq.portal.build import PortalServer

    with PortalServer(folder, port) as server:
        output.line(f"http://127.0.0.1:{server.server_address[1]}/")
        output.note("dq: press Ctrl-C to stop.")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            output.note("dq: stopped.")


def build_site(world: World, out: Path, places: list[Path], tick: timedelta) -> PortalOutcome:
    """Writes the portal of these contracts, and says how far it is and what could not be used."""
    shown = _Progress()
    try:
        outcome = run(world, world.store(), out, places, tick, shown)
    finally:
        shown.close()
    output.notes(outcome.findings)
    for root, error in outcome.policies:
        output.problem(error, f"{root}: ")
    return outcome


class _Progress:
    """How far the build is, on a terminal."""

    def __init__(self) -> None:
        self.live = output.is_live()

    def __call__(self, what: str, done: int, of: int) -> None:
        said = f"  … {what}: {done:,} of {of:,}"
        if self.live and (done == of or done % 50 == 0):
            output.live(said)

    def close(self) -> None:
        """Wipes the line."""
        if self.live:
            output.live("")


def describe(done: PortalSummary) -> None:
    """What was built, and where it is."""
    said = ", ".join(f"{number:,} {state}" for state, number in sorted(done.states.items()))
    output.line(f"{counted(done.products, 'product')}{': ' + said if said else ''}.")
    files = f"{done.written:,} files written, {done.same:,} as they were, {done.removed:,} removed"
    output.line(f"{done.rendered:,} made anew; {files}.")
    for problem in done.problems:
        output.note(f"{problem.at}: {problem.rule}: {problem.message} {problem.mend}")
    for said in done.unjudged:
        output.note(f"dq: what versions broke is not known: {said}")
    if done.stale:
        output.note(
            "dq: the watcher is silent, and the pages say so. Run dq watch, or name its pace with --tick."
        )
    output.line(f"Open {done.out / 'index.html'}")
