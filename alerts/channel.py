"""Interface of channels: description, sender and send results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from dq.alerts.message import Message


@dataclass(frozen=True, slots=True)
class MessageRef:
    """Reference to a message posted at a channel, e.g. Slack's channel id and the message's ts.

    `thread` is the reference of the thread's root message, "" if the message is not in a thread.
    """

    place: str
    reference: str
    thread: str = ""

    @property
    def root(self) -> str:
        """Reference of the root message of the thread for replies to this message."""
        return self.thread or self.reference


class FailureScope(StrEnum):
    """Scope of a send failure."""

    MESSAGE = "message"  # only this message is rejected
    ROUTE = "route"  # the target is wrong or closed
    CHANNEL = "channel"  # nothing can be sent, to any target


@dataclass(frozen=True, slots=True)
class Sent:
    """The message was delivered. `note` mentions a degradation, e.g. a fall-back to plain text."""

    receipt: MessageRef
    note: str = ""


@dataclass(frozen=True, slots=True)
class RetryableFailure:
    """The message was not delivered and may be retried, after `retry_after_seconds` if set.

    `scope` is what has to wait: this message, all messages to its target, or the whole channel.
    """

    reason: str
    retry_after_seconds: float | None = None
    scope: FailureScope = FailureScope.CHANNEL


@dataclass(frozen=True, slots=True)
class UnconfirmedSend:
    """The message may have been delivered, e.g. because the connection dropped."""

    reason: str


@dataclass(frozen=True, slots=True)
class PermanentFailure:
    """The message was not delivered, and a retry would fail again."""

    reason: str
    scope: FailureScope


@dataclass(frozen=True, slots=True)
class MessageNotFound:
    """The message to update does not exist any longer."""

    reason: str


@dataclass(frozen=True, slots=True)
class MessageNotEditable:
    """The message to update exists, but cannot be edited any longer."""

    reason: str


@dataclass(frozen=True, slots=True)
class LookupMiss:
    """The channel was searched and does not contain the message."""


SendResult = (
    Sent | RetryableFailure | UnconfirmedSend | PermanentFailure | MessageNotFound | MessageNotEditable
)
LookupResult = Sent | LookupMiss | RetryableFailure | UnconfirmedSend | PermanentFailure


class Sender(Protocol):
    """An open channel. Results are values; any exception counts as UnconfirmedSend.

    `key` is the permanent idempotency key of one message of one step; stored with the message if the channel
    supports it.
    """

    def create(self, target: str, message: Message, key: str, parent: MessageRef | None = None) -> SendResult:
        """Post the first message of an incident, in the thread of the digest `parent` if given."""
        ...

    def reply(self, receipt: MessageRef, message: Message, key: str) -> SendResult:
        """Post `message.note` as a reply to the posted message."""
        ...


class UpdatingSender(Sender, Protocol):
    """A sender of a channel with the capability `update`."""

    def update(self, receipt: MessageRef, message: Message) -> SendResult:
        """Replace the posted message. Idempotent."""
        ...


class ReconcilingSender(Sender, Protocol):
    """A sender of a channel with the capability `reconcile`."""

    def find(self, target: str, key: str, since: datetime, root: MessageRef | None) -> LookupResult:
        """Search the message of `key`, in the thread of `root` if given; PermanentFailure if it cannot be
        searched.
        """
        ...

    def retract(self, receipt: MessageRef) -> None:
        """Delete a duplicate, best effort: failures are ignored."""
        ...


class ButtonAction(StrEnum):
    """Buttons below a message."""

    ACK = "ack"
    SILENCE = "silence"
    REAL = "real"
    NOT_REAL = "not_real"


ANSWERS = {ButtonAction.REAL: True, ButtonAction.NOT_REAL: False}
"""Buttons that answer whether unusual numbers are a real problem; they acknowledge as well."""


@dataclass(frozen=True, slots=True)
class Interaction:
    """A user pressed a button below an incident's message; `pressed_at` is by the channel's clock."""

    incident: str
    button: ButtonAction
    user: str
    pressed_at: datetime


Listen = Callable[
    [Mapping[str, str], Callable[[Interaction], str], Callable[[str], object]], Callable[[], None] | None
]
"""Listens for interactions in the background. Returns a function that stops it, or None if it is not
configured.

Arguments are the settings, a function that handles an interaction and returns the response to the user ('' if
the message shows it), and a function that logs for the operator.
"""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Capabilities of a channel: replies in threads, updates of messages, lookups by key.

    A channel without threads posts replies as separate messages. `uses_digests`: many new incidents for one
    target are grouped into one digest, because people read the channel. `pace_seconds` is the minimum time
    between two messages to one target, 0 for no limit. `full_state_replies`: a reply contains the full state
    like an update, so that only the later of both is sent.
    """

    thread: bool
    update: bool
    reconcile: bool
    uses_digests: bool = False
    pace_seconds: float = 0.0
    full_state_replies: bool = False


@dataclass(frozen=True, slots=True)
class ChannelSetting:
    """A setting of a channel, read from the environment by the command line.

    `per_target`: each target has a value. `variable` is then the prefix of the variables, e.g.
    `DQ_TEAMS_URL_` of `DQ_TEAMS_URL_SALES_DATA`, and the channel receives the value as `url:sales-data`.
    """

    name: str
    variable: str
    help: str
    secret: bool = False
    per_target: bool = False

    def variable_for(self, target: str) -> str:
        """Return the name of the environment variable for a target."""
        return self.variable + target.upper().replace("-", "_") if self.per_target else self.variable


@dataclass(frozen=True, slots=True)
class ChannelHealth:
    """Result of a health check without sending a message; `is_healthy` is None if nothing could be tried."""

    is_healthy: bool | None
    detail: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class OpenChannel:
    """A channel that is ready to send: its sender and capabilities."""

    sender: Sender
    can: Capabilities


@dataclass(frozen=True, slots=True)
class Channel:
    """A channel plug-in.

    `make` takes the settings by name and a function that writes text to the terminal. It raises UsageError
    for missing or invalid settings, and MissingTool for a library that is not installed. `inspect` checks the
    channel without sending a message; it raises as `make` does. `listen` handles the buttons below its
    messages, if it has any.
    """

    id: str
    summary: str
    can: Capabilities
    make: Callable[[Mapping[str, str], Callable[[str], object]], Sender]
    settings: tuple[ChannelSetting, ...] = ()
    inspect: Callable[[Mapping[str, str]], Sequence[ChannelHealth]] | None = None
    listen: Listen | None = None

    def open(self, settings: Mapping[str, str], write: Callable[[str], object]) -> OpenChannel:
        """Open the channel for sending. Raises as `make`."""
        return OpenChannel(self.make(settings, write), self.can)
