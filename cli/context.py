"""Arguments, options and messages that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

import typer

from dq.cli import output
from dq.contracts.outcome import UsageError
from dq.operations.runtime.messages import MESSAGES, Messages

if TYPE_CHECKING:
    from dq.alerts.drain import DrainResult


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


KEEP = typer.Option(
    None,
    "--keep",
    metavar="newest|first by COLUMN",
    help="Which row of a repeated key is good, e.g. 'newest by updated_at' (default: none).",
)
CLEAN = typer.Option(None, "--clean", help="Write good rows below this path as Parquet, with all values.")


class TerminalMessages(Messages):
    """Prints notes, alerts and progress immediately, on stderr; alerts with `show`."""

    def __init__(self, show: Callable[[str], object] = output.write_stderr) -> None:
        super().__init__()
        self._show = show

    def note(self, text: str) -> None:
        super().note(text)
        note(text)

    def finding(self, finding: object) -> None:
        output.note(str(finding))

    def alert(self, text: str) -> None:
        super().alert(text)
        colorize(self._show)(text)

    def step(self, activity: str) -> AbstractContextManager[None]:
        return output.step(activity)

    def progress(self, total: int, activity: str) -> output.Progress:
        return output.Progress(total, activity)

    def program_output(self) -> AbstractContextManager[None]:
        return output.child_output()


def alerts_are_results() -> None:
    """Print alerts on stdout for the rest of this command."""
    MESSAGES.set(partial(TerminalMessages, output.block))


# Colour by the sign at the beginning of an alert; see alerts/channels/console.py.
_COLOURS: Mapping[str, str] = {"[!]": "red", "[~]": "yellow", "[ok]": "green", "[-]": "blue"}


def colorize(write: Callable[[str], object]) -> Callable[[str], object]:
    """Return a writer that colours alerts of the console channel.

    It raises OSError if an alert could not be written, so that it does not count as delivered.
    """

    def write_colored(text: str) -> None:
        head, *alert_lines = text.split("\n")
        colour = _COLOURS.get(head.partition(" ")[0], "")
        write_error = write(
            "\n".join([output.styled(head, colour, bold=True), *map(_alert_line, alert_lines)])
        )
        if isinstance(write_error, OSError):
            raise write_error

    return write_colored


def _alert_line(line: str) -> str:
    # Imported here: most commands send no alert.
    from dq.alerts.message import COMMAND

    label = f"    {COMMAND}  "
    if not line.startswith(label):
        return line
    command = line.removeprefix(label).lstrip()
    return f"{line.removesuffix(command)}{output.styled(command, bold=True)}"


def note(text: str) -> None:
    """Print a note of an operation on stderr."""
    output.note(f"dq: {text}")


def undelivered(drained: DrainResult) -> int:
    """Print undelivered alerts and return the exit code: 4 if someone has to act, else 0."""
    # Imported here: most commands send no alert.
    from dq.operations import alerting

    for text in alerting.undelivered(drained):
        note(text)
    return alerting.exit_code(drained)


def instant_or_none(as_of: str | None) -> datetime | None:
    """Return the instant of an option, or None if it is not set. Raises UsageError if it is invalid."""
    # Imported here: `dq --help` needs no runtime.
    from dq.operations.runtime.context import parse_instant

    return parse_instant(as_of) if as_of else None


def key_value(text: str, option: str, example: str) -> tuple[str, str]:
    """Split the value of an option at its first equals sign. Raises UsageError if a part is missing."""
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise UsageError(f"invalid {option} {text!r}: expected KEY=VALUE", f"Use e.g. {example}.")
    return key, value
