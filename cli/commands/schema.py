"""dq schema"""

from __future__ import annotations

import typer

from dq.cli import output
from dq.operations.output_schemas import json_schema


def command(
    of: str = typer.Argument("extension", help="contract, policy, …, or a command, e.g. 'status'."),
) -> None:
    """Print a JSON Schema, for editors and for programs that read dq's output.

    contract: what dq adds to a contract, each value in its place; for editors, next to the official ODCS
    schema (see docs/how-to/editor.md).

    extension: one custom property of dq: delivery, dataset, scope or route.

    findings: the output of 'dq validate --format json'.

    policy: the registry's dq-policy.yaml.

    subscription: a file in the registry's folder subscriptions.

    Any other command with --format json: its output, e.g. 'dq schema status'. Later versions may add keys;
    removals and changes need a new major version.

    Example: dq schema contract > .vscode/dq.schema.json
    """
    output.as_json(json_schema(of))
