"""Arguments and options that several commands have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

import typer

from dq.cli import output
from dq.operations.runtime.context import MESSAGES, Messages, instant

if TYPE_CHECKING:
    from dq.alerts.drain import Drained


PATHS = typer.Argument(None, help="Contract files or folders (default: the working folder).")
CATALOG: str = typer.Option(
    "local", "--catalog", help="Catalog: local (in the state store), hive, glue or iceberg."
)
ROLE: str = typer.Option("", "--role-arn", help="AWS role to assume, for a catalog in another account.")
ACCOUNT: str = typer.Option("", "--catalog-id", help="AWS account ID of the catalog (default: the caller's).")
CHANNEL = typer.Option(
    "contract",
    "--channel",
    help="Where alerts go: contract (its support channels), console, or a target, e.g. slack:#sales-data.",
)
QUARANTINE = typer.Option(None, "--quarantine", help="Write failing rows to this path as Parquet, masked.")
UNMASKED = typer.Option(
    False,
    "--quarantine-unmasked",
    help="Include classified columns and columns that the contract does not declare.",
)


class TerminalMessages(Messages):
    """Notes, alerts and progress as they come: on stderr, or alerts where `show` writes."""

    def __init__(self, show: Callable[[str], object] = output.aside) -> None:
        super().__init__()
        self._show = show

    def note(self, text: str) -> None:
        super().note(text)
        note(text)

    def finding(self, finding: object) -> None:
        output.note(str(finding))

    def alert(self, text: str) -> None:
        super().alert(text)
        painted(self._show)(text)

    def step(self, what: str) -> AbstractContextManager[None]:
        return output.step(what)

    def progress(self, total: int) -> output.Progress:
        return output.Progress(total)

    def program_output(self) -> AbstractContextManager[None]:
        return output.others()


def alerts_are_results() -> None:
    """From now on, this command line shows alerts on stdout."""
    MESSAGES.set(partial(TerminalMessages, output.block))


# By the signs that a block begins with; see alerts/channels/console.py.
_COLOURS: Mapping[str, str] = {"[!]": "red", "[~]": "yellow", "[ok]": "green", "[-]": "blue"}


def painted(write: Callable[[str], object]) -> Callable[[str], object]:
    """Writes the blocks of the console's channel, in colours where the terminal shows them.

    Raises OSError for one that could not be written: nobody has read it.
    """

    def paint(text: str) -> None:
        head, *rest = text.split("\n")
        colour = _COLOURS.get(head.partition(" ")[0], "")
        lost = write("\n".join([output.styled(head, colour, bold=True), *map(_alert_line, rest)]))
        if isinstance(lost, OSError):
            raise lost

    return paint


def _alert_line(line: str) -> str:
    # Imported here: most commands send no alert.
    from dq.alerts.message import COMMAND

    label = f"    {COMMAND}  "
    return f"{label}{output.styled(line.removeprefix(label), bold=True)}" if line.startswith(label) else line


def note(text: str) -> None:
    """A note of an operation, on stderr."""
    output.note(f"dq: {text}")


def undelivered(drained: Drained) -> int:
    """Say what could not be sent; give the exit code: 4 when somebody has to fix something, else 0."""
    # Imported here: most commands send no alert.
    from dq.operations import alerting

    for text in alerting.undelivered(drained):
        note(text)
    return alerting.exit_code(drained)


def at(as_of: str | None) -> datetime | None:
    """The instant of `--as-of`, None without it. Raises UsageError for what is none."""
    return instant(as_of) if as_of else None
