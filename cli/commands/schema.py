"""dq schema"""

from __future__ import annotations

import typer

from dq.cli import output
from dq.operations.output_schemas import json_schema


def command(
    of: str = typer.Argument(
        "extension", help="Of what: contract, policy, …, or a command such as 'status'."
    ),
) -> None:
    """Print a JSON Schema, for editors and for programs that read what dq prints.

    contract: what dq adds to a contract, each value in its place; for editors, beside the official schema
    of ODCS (see docs/how-to/editor.md).
    extension: one custom property of dq: delivery, dataset, scope or route.
    findings: what 'dq validate --format json' prints.
    policy: the registry's dq-policy.yaml.
    subscription: a file below the registry's folder subscriptions.
    Any other command that has --format json: what it prints then, such as 'dq schema status'. Further keys
    may come with a later version; none goes or changes its meaning but with a new major one.

    Example: dq schema contract > .vscode/dq.schema.json
    """
    output.as_json(json_schema(of))
