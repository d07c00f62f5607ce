"""Alerts on the terminal; the default channel, and the fallback of all others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dq.alerts.channel import Capabilities, Channel, MessageRef, SendResult, Sent
from dq.alerts.incident import IncidentState
from dq.alerts.message import Message, headline, repeat_lines, text_lines, wrap_lines

_MARKS: Mapping[IncidentState, str] = {
    IncidentState.OPEN: "[!]",
    IncidentState.ACKED: "[~]",
    IncidentState.RESOLVED: "[ok]",
}
_ENDED = "[-]"
_MESSAGE_REF = MessageRef("console", "")


@dataclass(frozen=True, slots=True)
class Console:
    """Writes a block of text per message through `write`."""

    write: Callable[[str], object]

    def create(self, target: str, message: Message, key: str, parent: MessageRef | None = None) -> SendResult:
        self.write("\n".join([_head(message), *(f"    {line}" for line in text_lines(message))]) + "\n")
        return Sent(_MESSAGE_REF)

    def reply(self, receipt: MessageRef, message: Message, key: str) -> SendResult:
        texts = [message.note, message.budget, *repeat_lines(message)]
        lines = [line for text in texts if text for line in wrap_lines(text)]
        self.write("\n".join([_head(message), *(f"    {line}" for line in lines)]) + "\n")
        return Sent(_MESSAGE_REF)


def _head(message: Message) -> str:
    return f"{_MARKS.get(message.state, _ENDED)} {headline(message)}"


CHANNEL = Channel(
    id="console",
    summary="Text on the terminal.",
    can=Capabilities(thread=False, update=False, reconcile=False),
    make=lambda settings, write: Console(write),
)
