"""dq metrics"""

from __future__ import annotations

from pathlib import Path

import typer

from dq.cli import output
from dq.cli.context import at, note
from dq.contracts.access import files
from dq.contracts.outcome import UsageError
from dq.operations.metrics import MetricsServer, metrics, metrics_server


def command(
    file: Path = typer.Option(
        None, "--output", help="Write to this file, all at once, for node_exporter's textfile collector."
    ),
    listen: str = typer.Option(
        None, "--listen", help="Serve http://ADDRESS/metrics until it is stopped, such as 127.0.0.1:9464."
    ),
    any_address: bool = typer.Option(
        False, "--any-address", help="Let --listen name an address that other machines can reach."
    ),
    as_of: str = output.AS_OF,
) -> None:
    """Give the figures that Prometheus watches: promises, budgets, incidents, the watcher, the outbox.

    They come from the state store alone, which is only read: neither contracts nor data are looked at.
    Printed in the text format of Prometheus; --listen serves OpenMetrics to those who ask for it, needs no
    password, and takes only addresses of the loopback unless --any-address is said.

    When the store cannot be read, --listen says so as dq_store_up 0, and goes on.

    Exit codes: 0 written, 2 an address that others could reach, 3 the store cannot be read, or the file
    cannot be written.

    Example: dq metrics --output /var/lib/node_exporter/textfile/dq.prom
    """
    if listen is not None:
        if file is not None:
            raise UsageError("--output and --listen are two ways.", "Choose one of them.")
        _serve(metrics_server(listen, output.problem, anywhere=any_address, now=at(as_of)))
        return
    text = metrics(now=at(as_of))
    if file is None:
        output.block(text.rstrip("\n"))
    else:
        files.publish(file, text.encode())


def _serve(server: MetricsServer) -> None:
    with server:
        host, port = server.server_address[:2]
        shown = f"[{host!s}]" if ":" in str(host) else str(host)
        note(f"serving http://{shown}:{port}/metrics")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            note("stopped.")
