"""Who may publish to a domain's topic, and who may subscribe: the policy of the topic itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dq.registry.landing.privileges import VERSION

Node = dict[str, Any]

# What may be told by a topic; a mail or a phone is no consumer.
_PROTOCOLS = ["firehose", "https", "lambda", "sqs"]


def policy(topic: str, publisher: str, readers: Sequence[str], condition: str) -> Node:
    """The policy of a topic of the stack: its publisher, where the stack has that one, and its readers.

    `readers` are accounts, each of which gives on what it may as its own administrators say. Nobody speaks
    without encryption.
    """
    here = [{"Ref": topic}]
    statements: list[Node] = [
        {
            "Sid": "Encrypted",
            "Effect": "Deny",
            "Principal": "*",
            "Action": ["sns:Publish", "sns:Subscribe"],
            "Resource": here,
            "Condition": {"Bool": {"aws:SecureTransport": "false"}},
        },
        {
            "Fn::If": [
                condition,
                {
                    "Sid": "Publisher",
                    "Effect": "Allow",
                    "Principal": {"AWS": {"Fn::GetAtt": [publisher, "Arn"]}},
                    "Action": "sns:Publish",
                    "Resource": here,
                },
                {"Ref": "AWS::NoValue"},
            ]
        },
    ]
    if readers:
        statements.append(
            {
                "Sid": "Subscribers",
                "Effect": "Allow",
                "Principal": {"AWS": sorted(readers)},
                "Action": "sns:Subscribe",
                "Resource": here,
                "Condition": {"StringEquals": {"sns:Protocol": _PROTOCOLS}},
            }
        )
    return {"Version": VERSION, "Statement": statements}
