"""Alerts on the terminal in colours: what they are about in one, the command to look closer in another."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dq.alerts.message import COMMAND
from dq.cli.terminal import output

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
