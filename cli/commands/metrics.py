"""dq metrics"""

from __future__ import annotations

from pathlib import Path

import typer

from dq.cli import output
from dq.cli.context import instant_or_none, note
from dq.contracts.access import files
from dq.contracts.outcome import UsageError
from dq.operations.metrics import MetricsServer, metrics, metrics_server


def command(
    file: Path = typer.Option(
        None, "--output", help="Write atomically to this file, for node_exporter's textfile collector."
    ),
    listen: str = typer.Option(
        None, "--listen", help="Serve http://ADDRESS/metrics until interrupted, e.g. 127.0.0.1:9464."
    ),
    any_address: bool = typer.Option(
        False, "--any-address", help="Allow --listen on an address that other machines can reach."
    ),
    as_of: str = output.AS_OF,
) -> None:
    """Export Prometheus metrics: SLOs, error budgets, incidents, watcher, outbox.

    Reads the state store only, neither contracts nor data. Prints the Prometheus text format; --listen
    also serves OpenMetrics on request. --listen has no authentication and accepts only loopback addresses
    unless --any-address is set. If the store cannot be read, it serves dq_store_up 0 and continues.

    Exit codes: 0 written, 2 the address is reachable from other machines, 3 the store could not be read,
    or the file could not be written.

    Example: dq metrics --output /var/lib/node_exporter/textfile/dq.prom
    """
    if listen is not None:
        if file is not None:
            raise UsageError("--output and --listen exclude each other.", "Pass one of them.")
        _serve(metrics_server(listen, output.problem, anywhere=any_address, now=instant_or_none(as_of)))
        return
    text = metrics(now=instant_or_none(as_of))
    if file is None:
        output.block(text.rstrip("\n"))
    else:
        files.publish(file, text.encode())


def _serve(server: MetricsServer) -> None:
    with server:
        host, port = server.server_address[:2]
        host_text = f"[{host!s}]" if ":" in str(host) else str(host)
        note(f"serving http://{host_text}:{port}/metrics")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            note("stopped.")
