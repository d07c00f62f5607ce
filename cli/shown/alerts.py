"""Alerts on the terminal: in colours, and what could not be sent."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dq.alerts.incident import Incident
from dq.alerts.message import COMMAND
from dq.alerts.outbox.drain import Drained
from dq.cli.context import note
from dq.cli.terminal import output
from dq.operations.alerting import send
from dq.operations.incidents import SHOWN

# By the signs that a block begins with; see alerts/channels/console.py.
_COLOURS: Mapping[str, str] = {"[!]": "red", "[~]": "yellow", "[ok]": "green", "[-]": "blue"}


def painted(write: Callable[[str], object]) -> Callable[[str], object]:
    """Writes the blocks of the console's channel, in colours where the terminal shows them.

    Raises OSError for one that could not be written: nobody has read it.
    """

    def paint(text: str) -> None:
        head, *rest = text.split("\n")
        colour = _COLOURS.get(head.partition(" ")[0], "")
        lost = write("\n".join([output.styled(head, colour, bold=True), *map(_line, rest)]))
        if isinstance(lost, OSError):
            raise lost

    return paint


def _line(line: str) -> str:
    label = f"    {COMMAND}  "
    return f"{label}{output.styled(line.removeprefix(label), bold=True)}" if line.startswith(label) else line


def report(drained: Drained) -> int:
    """Says what could not be sent; the exit code that follows: 4 when somebody has to mend it, else 0."""
    for text in send.undelivered(drained):
        note(text)
    return send.exit_code(drained)


def short(incident: Incident) -> str:
    """The beginning of an incident's id, as commands take it."""
    return incident.id[:SHOWN]
