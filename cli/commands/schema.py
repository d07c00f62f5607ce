"""dq schema"""

from __future__ import annotations

from dq.cli import show


def command() -> None:
    """Print the JSON Schema of dq's extension values, for editors.

    The schema describes the custom properties delivery, dataset, scope and route. In VS Code, put it
    beside the official ODCS schema (see docs/how-to/editor.md).

    Example: dq schema > dq-extension.schema.json
    """
    from dq.contracts.extension import json_schema

    show.as_json(json_schema())
