"""Notification of consumers through an Amazon SNS topic, and checks of messages that SNS would reject."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache, partial
from typing import Any

from botocore import exceptions as aws
from botocore.config import Config

from dq.contracts.outcome import DqError, UsageError
from dq.registry.aws.client import error_code, explained, guarded, new_session, opening, reject_html
from dq.registry.aws.glue_requests import shape_problems
from dq.registry.publications import ConsumerNotice, TargetUnavailable

# Checks every message before it is sent: by AWS's model first, then by further constraints of SNS.
#
# Source: the API reference of SNS (Publish, MessageAttributeValue), and its guide on filter policies.

Raw = Mapping[str, Any]


class MessageRefused(UsageError):
    """This message cannot be sent; others can."""


MAX_BYTES = 256 * 1024
# Limit of a queue with raw delivery.
_MAX_ATTRIBUTES = 10
_NAME = re.compile(r"(?!(?:AWS|Amazon)\.)[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*", re.IGNORECASE)


def refuse(operation: Any, params: Raw) -> None:
    """Raise MessageRefused, with all problems, for a message that SNS or a filter would not accept.

    `operation` is botocore's model of the operation.
    """
    problems = [*shape_problems(operation.input_shape, params), *_message_problems(params)]
    if problems:
        raise MessageRefused(
            f"{params.get('TopicArn', 'SNS')}: SNS would reject this message: "
            f"{'; '.join(dict.fromkeys(problems))}.",
            "Nothing was sent; fix the contract.",
        )


def _message_problems(params: Raw) -> Iterator[str]:
    attributes = params.get("MessageAttributes") or {}
    if not params.get("Message"):
        yield "Message: empty"
    if len(attributes) > _MAX_ATTRIBUTES:
        yield f"MessageAttributes: {len(attributes)}, but a queue with raw delivery allows {_MAX_ATTRIBUTES}"
    size = len(params.get("Message", "").encode())
    for name, value in attributes.items():
        text = value.get("StringValue", "")
        size += len(name.encode()) + len(value.get("DataType", "")) + len(text.encode())
        if not _NAME.fullmatch(name) or len(name) > MAX_BYTES // 1024:
            yield f"MessageAttributes: {name!r} is not a valid attribute name"
        if value.get("DataType") != "String":
            yield f"MessageAttributes.{name}: not a String; filters compare strings"
        if not text:
            yield f"MessageAttributes.{name}: empty"
    if size > MAX_BYTES:
        yield f"Message: {size} bytes with its attributes, at most {MAX_BYTES}"


# Publishes notices to an SNS topic: the CloudEvent as message, and five attributes to filter by.
#
# SNS delivers at least once. A message whose response was lost is sent again, with the same id.

# Both attempts end within the lease of a notice (`publications.LEASE`).
_CONNECT_SECONDS = 3
_READ_SECONDS = 6
_ATTEMPTS = 2
# Errors of this message only; any other error would affect the next one too.
_MESSAGE_ERRORS = frozenset({"InvalidParameter", "InvalidParameterValue", "ParameterValueInvalid"})


def publish_to_topic(notice: ConsumerNotice) -> None:
    """Publish the notice to its topic.

    Raises TargetUnavailable when the topic accepts nothing now, MessageRefused for a message that SNS would
    not accept.
    """
    arn = notice.target
    attributes = {name: {"DataType": "String", "StringValue": text} for name, text in notice.attributes}
    try:
        with explained(f"publish to {arn}"):
            with opening("SNS"):
                client = _client(arn.split(":")[3])
            try:
                client.publish(TopicArn=arn, Message=notice.body, MessageAttributes=attributes)
            except aws.ClientError as error:
                if error_code(error) not in _MESSAGE_ERRORS:
                    raise
                raise MessageRefused(f"SNS rejected the message: {error}") from error
    except MessageRefused:
        raise
    except DqError as error:
        raise TargetUnavailable(f"Consumers could not be notified: {error.message}", error.hint) from error


@lru_cache(maxsize=8)
def _client(region: str) -> Any:
    session = new_session()
    session.events.register("provide-client-params.sns.Publish", partial(guarded, refuse))
    session.events.register("before-parse", reject_html)
    config = Config(
        retries={"mode": "standard", "total_max_attempts": _ATTEMPTS},
        connect_timeout=_CONNECT_SECONDS,
        read_timeout=_READ_SECONDS,
        user_agent_extra="dq-publish",
    )
    return session.client("sns", region_name=region, config=config)
