"""Tells consumers by a topic of SNS: the CloudEvent as the message, and five texts that they filter by.

SNS delivers at least once. A message that was sent and whose answer was lost is sent again, with the same id.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from botocore import exceptions as aws
from botocore.config import Config

from dq.contracts.shared.errors import DqError
from dq.registry.glue.client import new_session
from dq.registry.glue.errors import code_of, explained, opening, refuse_pages
from dq.registry.publishing.notices import ConsumerNotice
from dq.registry.publishing.tell import PlaceDown
from dq.registry.sns.validation import MessageRefused, refuse

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
    session.events.register("provide-client-params.sns.Publish", _refuse)
    session.events.register("before-parse", refuse_pages)
    config = Config(
        retries={"mode": "standard", "total_max_attempts": _ATTEMPTS},
        connect_timeout=_CONNECT_SECONDS,
        read_timeout=_READ_SECONDS,
        user_agent_extra="dq-publish",
    )
    return session.client("sns", region_name=region, config=config)


def _refuse(params: Mapping[str, Any], model: Any, **_: Any) -> None:
    refuse(model, params)
