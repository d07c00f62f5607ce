"""dq schema"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import typer

from dq.cli.terminal import output
from dq.contracts.shared.outcome import UsageError, suggestion
from dq.operations.output_schemas import OUTPUTS, json_schema

Schema = dict[str, object]


def _contract() -> Schema:
    from dq.contracts.extension import editor_schema

    return editor_schema()


def _extension() -> Schema:
    from dq.contracts.extension import json_schema

    return json_schema()


def _findings() -> Schema:
    from dq.validators.reports.json import findings_schema

    return findings_schema()


def _policy() -> Schema:
    from dq.validators.lint import rules_of
    from dq.validators.policy.file import json_schema

    return json_schema(rules_of())


def _subscription() -> Schema:
    from dq.contracts.subscriptions import json_schema

    return json_schema()


# What the schema is of -> what gives it, importing nothing that the others need.
SCHEMAS: dict[str, Callable[[], Schema]] = {
    "contract": _contract,
    "extension": _extension,
    "findings": _findings,
    "policy": _policy,
    "subscription": _subscription,
    **{name: partial(json_schema, name) for name in OUTPUTS},
}


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
    if of not in SCHEMAS:
        mend = suggestion(of, SCHEMAS, f"Choose one of {', '.join(SCHEMAS)}.")
        raise UsageError(f"there is no schema of {of!r}.", mend)
    output.as_json(SCHEMAS[of]())
