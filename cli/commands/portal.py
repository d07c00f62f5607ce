"""dq portal"""

from __future__ import annotations

from pathlib import Path

import typer

from dq.cli import output
from dq.contracts.outcome import pluralize
from dq.operations.portal import PortalOutcome, run
from dq.operations.runtime.context import parse_interval, runtime_context
from dq.portal.output import PortalSummary

app = typer.Typer(no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Build or preview the status portal, a static site with a page for every product."""


@app.command("build")
def build(
    out: Path = typer.Argument(help="Output folder: new, empty or an existing portal."),
    paths: list[Path] = typer.Argument(None, help="Contract files or folders (default: the working folder)."),
    tick: str = typer.Option("15m", "--tick", help="How often dq watch runs; pages warn if it stops."),
    as_of: str = output.AS_OF,
    format: output.Format = output.FORMAT,
) -> None:
    """Build the status portal as a static site.

    One page per product: status, promises, owners and history. Only files whose content changed are
    written. The pages work from a folder, from S3 and without JavaScript, and load nothing from
    elsewhere.

    Exit codes: 0 built, 2 the folder contains other files, 3 a contract could not be read (its page says
    why).

    Example: dq portal build site registry
    """
    places = paths or [Path()]
    context = runtime_context(as_of, places)
    pause, progress = parse_interval(tick, "--tick"), Progress()
    try:
        done = run(context, context.store(), out, places, pause, progress)
    finally:
        progress.close()
    show_problems(done)
    if format is output.Format.JSON:
        output.as_json(done.as_dict())
    else:
        describe(done.summary)
    raise typer.Exit(done.exit_code)


@app.command("serve")
def serve(
    folder: Path = typer.Argument(help="Portal folder."),
    port: int = typer.Option(0, "--port", help="Port on 127.0.0.1 (default: a free one)."),
) -> None:
    """Preview a portal on 127.0.0.1 until interrupted.

    Exit codes: 0 stopped, 2 the folder is not a portal, or the port is in use.

    Example: dq portal serve site --port 8000
    """
    from dq.portal.preview import PortalServer

    with PortalServer(folder, port) as server:
        output.line(f"http://127.0.0.1:{server.server_address[1]}/")
        output.note("dq: press Ctrl-C to stop.")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            output.note("dq: stopped.")


def show_problems(outcome: PortalOutcome) -> None:
    """Print invalid subscriptions and policies on stderr."""
    output.notes(outcome.findings)
    for root, error in outcome.policies:
        output.problem(error, f"{root}: ")


class Progress:
    """Progress of the build on a terminal."""

    def __init__(self) -> None:
        self.live = output.is_live()

    def __call__(self, what: str, done: int, total: int) -> None:
        text = f"  … {what}: {done:,} of {total:,}"
        if self.live and (done == total or done % 50 == 0):
            output.live(text)

    def close(self) -> None:
        """Clear the status line."""
        if self.live:
            output.live("")


def describe(done: PortalSummary) -> None:
    """Print a summary of the build."""
    states = ", ".join(f"{number:,} {state}" for state, number in sorted(done.states.items()))
    output.line(f"{pluralize(done.products, 'product')}{': ' + states if states else ''}.")
    files = f"{done.written:,} written, {done.same:,} unchanged, {done.removed:,} removed"
    output.line(f"Rendered {pluralize(done.rendered, 'product')}. Files: {files}.")
    for problem in done.problems:
        output.note(f"{problem.at}: {problem.rule}: {problem.message} {problem.hint}")
    for reason in done.unjudged:
        output.note(f"dq: effect of version changes unknown: {reason}")
    if done.stale:
        output.note(
            "dq: the watcher is not running, and the pages say so. Run dq watch, or set its "
            "interval with --tick."
        )
    output.line(f"Open {done.out / 'index.html'}")
