"""Looks at every message before it leaves: AWS's model first, then what SNS keeps to itself.

Source: the API reference of SNS (Publish, MessageAttributeValue), and its guide on filter policies.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from dq.contracts.shared.errors import UsageError
from dq.registry.glue.model_limits import faults

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
