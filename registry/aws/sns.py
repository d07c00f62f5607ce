"""Consumers told by a topic of Amazon SNS, and what SNS would refuse."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache, partial
from typing import Any

from botocore import exceptions as aws
from botocore.config import Config

from dq.contracts.outcome import DqError, UsageError
from dq.registry.aws.client import code_of, explained, guarded, new_session, opening, refuse_pages
from dq.registry.aws.glue_requests import faults
from dq.registry.publications import ConsumerNotice, PlaceDown

# Looks at every message before it leaves: AWS's model first, then what SNS keeps to itself.
#
# Source: the API reference of SNS (Publish, MessageAttributeValue), and its guide on filter policies.

Raw = Mapping[str, Any]


class MessageRefused(UsageError):
    """This message alone cannot be sent."""


MOST_BYTES = 256 * 1024
# With raw delivery, a queue takes no more.
_MOST_ATTRIBUTES = 10
_NAME = re.compile(r"(?!(?:AWS|Amazon)\.)[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*", re.IGNORECASE)


def refuse(operation: Any, params: Raw) -> None:
    """Raises MessageRefused, with all that is wrong, for a message that SNS or a filter would not take.

    `operation` is botocore's model of the operation.
    """
    wrong = [*faults(operation.input_shape, params), *_own(params)]
    if wrong:
        raise MessageRefused(
            f"{params.get('TopicArn', 'SNS')}: SNS would not take this message: "
            f"{'; '.join(dict.fromkeys(wrong))}.",
            "Nothing was sent; mend the contract.",
        )


def _own(params: Raw) -> Iterator[str]:
    attributes = params.get("MessageAttributes") or {}
    if not params.get("Message"):
        yield "Message: empty"
    if len(attributes) > _MOST_ATTRIBUTES:
        yield f"MessageAttributes: {len(attributes)}, and a queue with raw delivery takes {_MOST_ATTRIBUTES}"
    size = len(params.get("Message", "").encode())
    for name, value in attributes.items():
        text = value.get("StringValue", "")
        size += len(name.encode()) + len(value.get("DataType", "")) + len(text.encode())
        if not _NAME.fullmatch(name) or len(name) > MOST_BYTES // 1024:
            yield f"MessageAttributes: {name!r} is no name of an attribute"
        if value.get("DataType") != "String":
            yield f"MessageAttributes.{name}: no String, and filters compare texts"
        if not text:
            yield f"MessageAttributes.{name}: empty"
    if size > MOST_BYTES:
        yield f"Message: {size} bytes with its attributes, at most {MOST_BYTES}"


# Tells consumers by a topic of SNS: the CloudEvent as the message, and five texts that they filter by.
#
# SNS delivers at least once. A message that was sent and whose answer was lost is sent again, with the same
# id.

# Both attempts end within the lease of a notice (`tell.LEASE`).
_CONNECT_SECONDS = 3
_READ_SECONDS = 6
_ATTEMPTS = 2
# What is wrong with this one message; anything else would befall the next one too.
_OWN_FAULTS = frozenset({"InvalidParameter", "InvalidParameterValue", "ParameterValueInvalid"})


def tell_topic(notice: ConsumerNotice) -> None:
    """Publishes to the topic that the notice is for.

    Raises PlaceDown when the topic takes nothing now, MessageRefused for a message that SNS would not take.
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
                if code_of(error) not in _OWN_FAULTS:
                    raise
                raise MessageRefused(f"SNS does not take the message: {error}") from error
    except MessageRefused:
        raise
    except DqError as error:
        raise PlaceDown(f"Consumers could not be told: {error.message}", error.mend) from error


@lru_cache(maxsize=8)
def _client(region: str) -> Any:
    session = new_session()
    session.events.register("provide-client-params.sns.Publish", partial(guarded, refuse))
    session.events.register("before-parse", refuse_pages)
    config = Config(
        retries={"mode": "standard", "total_max_attempts": _ATTEMPTS},
        connect_timeout=_CONNECT_SECONDS,
        read_timeout=_READ_SECONDS,
        user_agent_extra="dq-publish",
    )
    return session.client("sns", region_name=region, config=config)
