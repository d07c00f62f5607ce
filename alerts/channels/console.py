"""Alerts on the terminal: what the embedded default uses, and where everything goes that has no other way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dq.alerts.channel import Answer, Capabilities, Channel, MessagePlace, Sent
from dq.alerts.incident import IncidentState
from dq.alerts.message import Message, folded, headline, lines, repeat_note

_MARKS: Mapping[IncidentState, str] = {
    IncidentState.OPEN: "[!]",
    IncidentState.ACKED: "[~]",
    IncidentState.RESOLVED: "[ok]",
}
_ENDED = "[-]"
_HERE = MessagePlace("console", "")


@dataclass(frozen=True, slots=True)
class Console:
    """Writes one block of text per message through `write`."""

    write: Callable[[str], object]

    def create(self, target: str, message: Message, key: str, below: MessagePlace | None = None) -> Answer:
        self.write("\n".join([_head(message), *(f"    {line}" for line in lines(message))]) + "\n")
        return Sent(_HERE)

    def reply(self, receipt: MessagePlace, message: Message, key: str) -> Answer:
        said = [message.note, message.budget, *repeat_note(message)]
        lines = [line for text in said if text for line in folded(text)]
        self.write("\n".join([_head(message), *(f"    {line}" for line in lines)]) + "\n")
        return Sent(_HERE)


def _head(message: Message) -> str:
    return f"{_MARKS.get(message.state, _ENDED)} {headline(message)}"


CHANNEL = Channel(
    id="console",
    summary="Blocks of text on the terminal.",
    can=Capabilities(thread=False, update=False, reconcile=False),
    make=lambda settings, write: Console(write),
)
