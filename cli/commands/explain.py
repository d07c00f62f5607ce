"""dq explain"""

from __future__ import annotations

import shutil

import typer

from dq.cli import show
from dq.validators.explain import explain
from dq.validators.lint import rules_of


def command(rule: str = typer.Argument(help="The id of a rule, such as cron-invalid.")) -> None:
    """Print the page of a rule: why it is there, a bad and a good example, the mend.

    Example: dq explain duplicate-property
    """
    show.line(explain(rules_of(), rule, min(shutil.get_terminal_size((88, 24)).columns, 88)).rstrip("\n"))
