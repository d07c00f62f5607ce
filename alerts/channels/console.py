"""Alerts on the terminal: what the embedded default uses, and where everything goes that has no other way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from dq.alerts.channel import Answer, Capabilities, Channel, Look, Receipt, Refused, Scope, Sent
from dq.alerts.incident import State
from dq.alerts.message import Message, headline, lines, repeat_note

_MARKS: Mapping[State, str] = {State.OPEN: "[!]", State.ACKED: "[~]", State.RESOLVED: "[ok]"}
_ENDED = "[-]"
_HERE = Receipt("console", "")


@dataclass(frozen=True, slots=True)
class Console:
    """Writes one block of text per message through `write`."""

    write: Callable[[str], object]

    def create(self, target: str, message: Message, key: str) -> Answer:
        self.write("\n".join([_head(message), *(f"    {line}" for line in lines(message))]) + "\n")
        return Sent(_HERE)

    def update(self, receipt: Receipt, message: Message) -> Answer:
        return Refused("a line on a terminal cannot be changed", Scope.MESSAGE)

    def reply(self, receipt: Receipt, message: Message, key: str) -> Answer:
        said = [message.note, message.budget, *repeat_note(message)]
        self.write("\n".join([_head(message), *(f"    {line}" for line in said if line)]) + "\n")
        return Sent(_HERE)

    def find(self, target: str, key: str, since: datetime, root: Receipt | None) -> Look:
        return Refused("nobody can read a terminal back", Scope.CHANNEL)


def _head(message: Message) -> str:
    return f"{_MARKS.get(message.state, _ENDED)} {headline(message)}"


CHANNEL = Channel(
    id="console",
    summary="Blocks of text on the terminal.",
    can=Capabilities(thread=False, update=False, reconcile=False),
    make=lambda settings, write: Console(write),
)
