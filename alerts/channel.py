"""What every channel offers: its description, its sender, and its answers, which are values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from dq.alerts.message import Message


@dataclass(frozen=True, slots=True)
class MessagePlace:
    """Where a channel keeps a message: for Slack the channel's id and the message's ts.

    `thread` is the reference of the message below which it stands; empty for one that stands by itself.
    """

    place: str
    reference: str
    thread: str = ""

    @property
    def root(self) -> str:
        """The reference of the message below which replies to this one belong."""
        return self.thread or self.reference


class Blockage(StrEnum):
    """How much is broken when a channel refuses."""

    MESSAGE = "message"  # it takes others, but not this one
    ROUTE = "route"  # this target is wrong or closed
    CHANNEL = "channel"  # nothing can be sent, to any target


@dataclass(frozen=True, slots=True)
class Sent:
    """It is there. `note` tells of a blemish, such as a fall-back to plain text."""

    receipt: MessagePlace
    note: str = ""


@dataclass(frozen=True, slots=True)
class NotSent:
    """It is certainly not there; try again, after `retry_after_seconds` if the channel says so.

    `concerns` says who has to wait: this message alone, all that goes to its target, or the whole channel.
    """

    reason: str
    retry_after_seconds: float | None = None
    concerns: Blockage = Blockage.CHANNEL


@dataclass(frozen=True, slots=True)
class Ambiguous:
    """It may be there."""

    reason: str


@dataclass(frozen=True, slots=True)
class Rejected:
    """It is certainly not there, and trying again as it is will not help."""

    reason: str
    scope: Blockage


@dataclass(frozen=True, slots=True)
class Gone:
    """The message to update is there no more."""

    reason: str


@dataclass(frozen=True, slots=True)
class Frozen:
    """The message to update is there and may no longer be changed."""

    reason: str


@dataclass(frozen=True, slots=True)
class NotHeld:
    """The channel was searched and does not hold it."""


Answer = Sent | NotSent | Ambiguous | Rejected | Gone | Frozen
Look = Sent | NotHeld | NotSent | Ambiguous | Rejected


class Sender(Protocol):
    """An open channel. Answers are values; whatever is raised counts as Ambiguous.

    `key` names one message of one step for ever: a channel that can, keeps it with the message.
    """

    def create(self, target: str, message: Message, key: str, below: MessagePlace | None = None) -> Answer:
        """Say it for the first time; `below` is the digest in whose thread it belongs, if any."""
        ...

    def reply(self, receipt: MessagePlace, message: Message, key: str) -> Answer:
        """Say `message.note` below the message that is there."""
        ...


class UpdatingSender(Sender, Protocol):
    """A sender of a channel with the capability `update`."""

    def update(self, receipt: MessagePlace, message: Message) -> Answer:
        """Make the message that is there say this; may be repeated at will."""
        ...


class FindingSender(Sender, Protocol):
    """A sender of a channel with the capability `reconcile`."""

    def find(self, target: str, key: str, since: datetime, root: MessagePlace | None) -> Look:
        """Whether the message of `key` is there, below `root` if given; Refused when nobody can look."""
        ...

    def retract(self, receipt: MessagePlace) -> None:
        """Take a second copy away, as far as that can be done; whatever fails is let be."""
        ...


class PressedButton(StrEnum):
    """What people can press below a message."""

    ACK = "ack"
    SILENCE = "silence"


@dataclass(frozen=True, slots=True)
class Press:
    """Somebody pressed a button below an incident's message; `at` is an instant of the channel's clock."""

    incident: str
    button: PressedButton
    who: str
    at: datetime


Listen = Callable[
    [Mapping[str, str], Callable[[Press], str], Callable[[str], object]], Callable[[], None] | None
]
"""Hears presses in the background, and gives what ends that; None where the settings do not want it.

It takes the settings, what writes a press down and gives what whoever pressed is told ('' where the message
shows it), and what tells the operator.
"""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a channel can do: replies below a message, changing a message, finding one by its key.

    A channel without threads says a reply as a message of its own. `folds`: people read it, so that many
    new incidents for one target become one digest. `pace_seconds` is the least time between two messages
    to one target; 0 where the channel does not mind. `whole_replies`: a reply carries the whole state as an
    update does, so that only the later of both is sent.
    """

    thread: bool
    update: bool
    reconcile: bool
    folds: bool = False
    pace_seconds: float = 0.0
    whole_replies: bool = False


@dataclass(frozen=True, slots=True)
class ChannelSetting:
    """A value that a channel takes from its user: the command line reads it from the environment.

    `each`: one for every target. Its variable is the beginning of theirs, `DQ_TEAMS_URL_` of
    `DQ_TEAMS_URL_SALES_DATA`, and the channel gets it as `url:sales-data`.
    """

    name: str
    variable: str
    help: str
    secret: bool = False
    each: bool = False

    def of(self, target: str) -> str:
        """The variable that holds the value for a target."""
        return self.variable + target.upper().replace("-", "_") if self.each else self.variable


@dataclass(frozen=True, slots=True)
class Inspection:
    """What a look at a channel saw without sending anything; `good` is None where nothing could be tried."""

    good: bool | None
    seen: str
    mend: str = ""


@dataclass(frozen=True, slots=True)
class Open:
    """A channel that is ready to send: its sender, and what it can do."""

    sender: Sender
    can: Capabilities


@dataclass(frozen=True, slots=True)
class Channel:
    """A file on the shelf of channels.

    `make` takes the settings by name and a function that writes text to the terminal. It raises UsageError
    for settings that are missing or wrong, and MissingTool for a library that is not installed. `inspect`
    asks whoever is there whether it would take a message, and sends none; it raises as `make` does.
    `listen`, where there are buttons below its messages, hears them.
    """

    id: str
    summary: str
    can: Capabilities
    make: Callable[[Mapping[str, str], Callable[[str], object]], Sender]
    settings: tuple[ChannelSetting, ...] = ()
    inspect: Callable[[Mapping[str, str]], Sequence[Inspection]] | None = None
    listen: Listen | None = None

    def open(self, settings: Mapping[str, str], write: Callable[[str], object]) -> Open:
        """The channel, ready to send; raises what `make` raises."""
        return Open(self.make(settings, write), self.can)
