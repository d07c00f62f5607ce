"""What is next in a lane, which is one incident in one place: a pure decision that keeps the order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from dq.alerts.channel import Capabilities, MessagePlace
from dq.alerts.incident import CREATE, UPDATE, Incident, IncidentState
from dq.alerts.noise.timing import Wait


@dataclass(frozen=True, slots=True)
class Lane:
    """One incident in one place: what is said there stays in order."""

    incident: str
    channel: str
    target: str

    def __str__(self) -> str:
        return f"{self.channel} {self.target}".strip()


# What is said below a digest of one of its members, besides the change of the member's own message.
_OF_A_MEMBER = ("reply:worse", "reply:reopened")


@dataclass(frozen=True, slots=True)
class LaneEntry:
    """A ready outbox row, as far as the order is concerned."""

    id: int
    operation: str
    revision: int
    not_before: datetime
    repeat: bool = False
    wait: str = ""


@dataclass(frozen=True, slots=True)
class Held:
    """The message that the place holds: the revisions it was created with and shows now."""

    receipt: MessagePlace
    created_revision: int
    revision: int


@dataclass(frozen=True, slots=True)
class Next:
    """The row to send, if any, and the rows that need not be sent, each with its reason."""

    head: LaneEntry | None
    drop: tuple[tuple[LaneEntry, str], ...] = ()
    suppressed: bool = False


def next_up(ready: Sequence[LaneEntry], incident: Incident, held: Held | None, can: Capabilities) -> Next:
    """First the message, then its newest change, then its newest step.

    Whatever is sent shows the incident as it is now, so all older rows of the same kind are moot. An
    incident that resolved before anyone heard of it stays unheard of.
    """
    creates = [entry for entry in ready if entry.operation == CREATE]
    if held is not None:
        updates = [entry for entry in ready if entry.operation == UPDATE]
        replies = [entry for entry in ready if entry.operation not in (CREATE, UPDATE)]
        return _below(creates, updates, replies, incident, held, can)
    if not creates:
        return Next(None, _all(ready, "there is no message to change"))
    # One that may have arrived must not stay there unresolved.
    if incident.state is IncidentState.RESOLVED and not creates[-1].repeat:
        return Next(None, _all(ready, "resolved before it was sent"), suppressed=True)
    return Next(creates[-1], _all(creates[:-1], "superseded"))


def _below(
    creates: Sequence[LaneEntry],
    updates: Sequence[LaneEntry],
    replies: Sequence[LaneEntry],
    incident: Incident,
    held: Held,
    can: Capabilities,
) -> Next:
    moot: list[tuple[LaneEntry, str]] = [*_all(creates, "it is there already")]
    if not can.update:
        moot += _all(updates, "the channel cannot change a message")
        updates = ()
    elif held.revision >= incident.revision:
        moot += _all(updates, "the message shows it already")
        updates = ()
    # A reminder says no news, and is wanted all the same.
    told = [
        entry for entry in replies if entry.revision <= held.created_revision and entry.wait != Wait.REMINDER
    ]
    moot += _all(told, "the message said so itself")
    replies = [entry for entry in replies if entry not in told]
    if not can.thread:
        reminders = [entry for entry in replies if entry.wait == Wait.REMINDER]
        moot += _all(reminders, "there is no thread to remind in")
        replies = [entry for entry in replies if entry not in reminders]
    if held.receipt.thread and can.update:
        # Its message is itself in the thread of a digest, and shows most steps there.
        shown = [entry for entry in replies if entry.operation not in _OF_A_MEMBER]
        moot += _all(shown, "the message shows it in the digest's thread")
        replies = [entry for entry in replies if entry not in shown]
    if can.whole_replies:
        shown = [
            entry for entry in replies if entry.revision <= held.revision and entry.wait != Wait.REMINDER
        ]
        moot += _all(shown, "an update showed it already")
        replies = [entry for entry in replies if entry not in shown]
        if replies:
            moot += _all(updates, "the reply shows it")
            updates = ()
    moot += _all([*updates[:-1], *replies[:-1]], "superseded")
    head = next(iter([*updates[-1:], *replies[-1:]]), None)
    return Next(head, tuple(moot))


def _all(entries: Sequence[LaneEntry], why: str) -> tuple[tuple[LaneEntry, str], ...]:
    return tuple((entry, why) for entry in entries)
