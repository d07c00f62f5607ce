"""dq schema"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

import typer

from dq.cli import show
from dq.contracts.errors import UsageError
from dq.contracts.form import nearest

# What the schema is of -> the module and function that give it. Only the wanted one is imported.
SCHEMAS = {
    "contract": ("dq.contracts.editor_schema", "editor_schema"),
    "extension": ("dq.contracts.extension", "json_schema"),
    "findings": ("dq.validators.reports._findings_schema", "findings_schema"),
}


def command(
    of: str = typer.Argument("extension", help=f"Of what: {', '.join(SCHEMAS)}."),
) -> None:
    """Print a JSON Schema, for editors and for programs that read what dq prints.

    contract: what dq adds to a contract, each value in its place; for editors, beside the official schema
    of ODCS (see docs/how-to/editor.md).
    extension: one custom property of dq: delivery, dataset, scope or route.
    findings: what 'dq validate --format json' prints.

    Example: dq schema contract > .vscode/dq.schema.json
    """
    if of not in SCHEMAS:
        hint = nearest(of, SCHEMAS)
        raise UsageError(
            f"there is no schema of {of!r}.",
            f"Did you mean {hint!r}?" if hint else f"Choose one of {', '.join(SCHEMAS)}.",
        )
    module, function = SCHEMAS[of]
    made: Callable[[], dict[str, object]] = getattr(import_module(module), function)
    show.as_json(made())
