"""dq rules"""

from __future__ import annotations

from dq.cli import output
from dq.operations.explain import rules


def command(format: output.Format = output.FORMAT) -> None:
    """List validation rules, compatibility rules and custom checks.

    Example: dq rules
    """
    outcome = rules()
    if format is output.Format.JSON:
        output.as_json(outcome.as_list())
        return
    output.table(("rule", "severity", "finding"), outcome.rules)
    output.line()
    output.table(("change", "meaning"), outcome.changes)
    output.line()
    output.table(("custom check", "package"), outcome.checks)
