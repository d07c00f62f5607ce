"""Events that AWS Lambda passes to the handler: schedules, object events of S3, and ticks."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote_plus

from dq.contracts.model import contract_key
from dq.contracts.outcome import UsageError
from dq.operations.object_events import ObjectEvent
from dq.operations.runtime.context import parse_instant

_HINT = (
    'Send {"tick": true}, the payload of a schedule, or an object event of S3 or EventBridge, also through '
    "SQS or SNS."
)
# Messages in messages: EventBridge in SNS in SQS.
_DEEPEST = 4
_CREATED, _REMOVED = ("ObjectCreated:",), ("ObjectRemoved:", "LifecycleExpiration:")


@dataclass(frozen=True, slots=True)
class Tick:
    """Evaluate all contracts."""


@dataclass(frozen=True, slots=True)
class Promise:
    """Evaluate one contract, by its key, for one of its SLOs."""

    contract: str
    object: str
    slo: str


Request = Tick | Promise | ObjectEvent


@dataclass(frozen=True, slots=True)
class Message:
    """Requests of one message. `id` is that of SQS, or "". `error` is why it was not understood, or None."""

    requests: tuple[Request, ...] = ()
    id: str = ""
    error: UsageError | None = None


def read_event(event: object) -> list[Message]:
    """Return the messages of an event of Lambda. Raises UsageError if it is not understood.

    Messages of SQS are independent: each has its own error.
    """
    records = event.get("Records") if isinstance(event, Mapping) else None
    if isinstance(records, list) and records and all(_is_from(record, "aws:sqs") for record in records):
        return [_message(record) for record in records]
    return [Message(tuple(_requests(event)))]


def _message(record: Mapping[str, Any]) -> Message:
    id_ = str(record.get("messageId", ""))
    try:
        return Message(tuple(_requests(_parse(record.get("body")))), id_)
    except UsageError as error:
        return Message((), id_, error)


def _requests(event: object, depth: int = 0) -> Iterator[Request]:
    if not isinstance(event, Mapping) or depth > _DEEPEST:
        raise _unknown(event)
    records = event.get("Records")
    if isinstance(records, list):
        for record in records:
            yield from _record(record, depth)
    elif event.get("tick") is True:
        yield Tick()
    elif all(isinstance(event.get(name), str) for name in ("contract", "version", "object", "slo")):
        yield Promise(contract_key(event["contract"], event["version"]), event["object"], event["slo"])
    elif event.get("Type") == "Notification":
        yield from _requests(_parse(event.get("Message")), depth + 1)
    elif event.get("source") == "aws.s3" and isinstance(event.get("detail"), Mapping):
        yield from _eventbridge(event)
    elif isinstance(event.get("detail"), Mapping):
        # A schedule whose target is an event bus.
        yield from _requests(event["detail"], depth + 1)
    elif event.get("Event") != "s3:TestEvent":
        raise _unknown(event)


def _record(record: Any, depth: int) -> Iterator[Request]:
    if _is_from(record, "aws:s3"):
        yield from _notification(record)
    elif _is_from(record, "aws:sqs"):
        yield from _requests(_parse(record.get("body")), depth + 1)
    elif _is_from(record, "aws:sns"):
        yield from _requests(_parse(_get(record, "Sns", "Message")), depth + 1)
    else:
        raise _unknown(record)


def _notification(record: Any) -> Iterator[Request]:
    """Yield the object event of a notification by S3, whose keys are encoded as in a form."""
    name = str(record.get("eventName", ""))
    if name.startswith(_CREATED + _REMOVED):
        yield _object_event(
            _get(record, "s3", "bucket", "name"),
            unquote_plus(str(_get(record, "s3", "object", "key"))),
            _get(record, "eventTime"),
            record["s3"]["object"].get("size"),
            is_removal=name.startswith(_REMOVED),
        )


def _eventbridge(event: Mapping[str, Any]) -> Iterator[Request]:
    kind = event.get("detail-type")
    if kind in ("Object Created", "Object Deleted"):
        yield _object_event(
            _get(event, "detail", "bucket", "name"),
            str(_get(event, "detail", "object", "key")),
            _get(event, "time"),
            event["detail"]["object"].get("size"),
            is_removal=kind == "Object Deleted",
        )


def _object_event(bucket: Any, key: str, time: Any, size: Any, *, is_removal: bool) -> ObjectEvent:
    return ObjectEvent(
        str(bucket), key, parse_instant(str(time)), size if isinstance(size, int) else None, is_removal
    )


def _is_from(record: object, source: str) -> bool:
    # SNS alone writes the name in upper case.
    return isinstance(record, Mapping) and source in (record.get("eventSource"), record.get("EventSource"))


def _get(node: Any, *names: str) -> Any:
    for name in names:
        if not isinstance(node, Mapping) or name not in node:
            raise UsageError(f"the object event has no {'.'.join(names)}.", _HINT)
        node = node[name]
    return node


def _parse(text: object) -> object:
    try:
        return json.loads(text) if isinstance(text, str) else None
    except ValueError:
        raise UsageError("the message is not JSON.", _HINT) from None


def _unknown(event: object) -> UsageError:
    keys = ", ".join(sorted(map(str, event))[:8]) if isinstance(event, Mapping) else type(event).__name__
    return UsageError(f"unknown event ({keys or 'empty'}).", _HINT)
