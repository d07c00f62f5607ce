"""One schedule of EventBridge: when it fires, what it starts there, and how AWS has it written down."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dq.contracts.shared.errors import UsageError

# The rest is a dash and the digest, which alone tells two schedules apart.
_SLUG = 47
_DIGEST = 12
_DESCRIPTION = 512
_OWN_NAME = re.compile(rf"[0-9a-zA-Z._-]+-[0-9a-f]{{{_DIGEST}}}")
# A start that comes later than the next tick of a watcher is of no use, and a queue keeps what failed.
_RETRY = {"MaximumEventAgeInSeconds": 3600, "MaximumRetryAttempts": 10}

# Service in the target's ARN -> the action of IAM that starts it, and what AWS wants to know beside the ARN.
TARGETS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "events": (
        "events:PutEvents",
        {"EventBridgeParameters": {"DetailType": "Delivery due", "Source": "dq"}},
    ),
    "lambda": ("lambda:InvokeFunction", {}),
    "sns": ("sns:Publish", {}),
    "sqs": ("sqs:SendMessage", {}),
    "states": ("states:StartExecution", {}),
}


@dataclass(frozen=True, slots=True)
class ScheduleTerms:
    """What an operator decides for all schedules.

    `target` is the ARN of what is started, `role` of the role that starts it, `dead_letters` of the queue
    that keeps what could not be started, or "". A start comes up to `window_minutes` after its time.
    """

    registry: str
    target: str
    role: str
    group: str
    dead_letters: str = ""
    window_minutes: int = 0

    @property
    def mark(self) -> str:
        """With what the description of each of this registry's schedules begins."""
        return f"Kept by dq for the registry {json.dumps(self.registry)}: "


@dataclass(frozen=True, slots=True)
class ScheduleEntry:
    """One schedule that a promise asks for. `promise` names it for people: contract, object and SLO.

    `contract` is the contract's key, `payload` what the target is told, as JSON.
    """

    name: str
    contract: str
    promise: str
    expression: str
    timezone: str
    payload: str
    enabled: bool = True

    def request(self, terms: ScheduleTerms) -> dict[str, Any]:
        """The whole of it as CreateSchedule and UpdateSchedule take it; what an update omits AWS resets."""
        window: dict[str, Any] = {"Mode": "OFF"}
        if terms.window_minutes:
            window = {"Mode": "FLEXIBLE", "MaximumWindowInMinutes": terms.window_minutes}
        target = {
            "Arn": terms.target,
            "RoleArn": terms.role,
            "Input": self.payload,
            "RetryPolicy": dict(_RETRY),
            **TARGETS[service_of(terms.target)][1],
        }
        if terms.dead_letters:
            target["DeadLetterConfig"] = {"Arn": terms.dead_letters}
        return {
            "Name": self.name,
            "GroupName": terms.group,
            "Description": f"{terms.mark}{self.promise}"[:_DESCRIPTION],
            "ScheduleExpression": self.expression,
            "ScheduleExpressionTimezone": self.timezone,
            "FlexibleTimeWindow": window,
            "State": "ENABLED" if self.enabled else "DISABLED",
            "ActionAfterCompletion": "NONE",
            "Target": target,
        }

    def digest(self, terms: ScheduleTerms) -> str:
        """The same for entries that AWS would have written down alike: 32 hexadecimal digits."""
        told = json.dumps(self.request(terms), sort_keys=True)
        return hashlib.sha256(told.encode()).hexdigest()[:32]


def entry_name(promise: str, *identity: str) -> str:
    """A name that AWS takes and that stays: of what it is about, and 12 digits of all that identifies it."""
    slug = re.sub(r"[^0-9a-zA-Z._-]+", "-", promise)[:_SLUG].strip("-") or "schedule"
    told = hashlib.sha256("\0".join(identity).encode()).hexdigest()[:_DIGEST]
    return f"{slug}-{told}"


def may_be_ours(name: str) -> bool:
    """Whether a name has the form of `entry_name`; its description alone tells whose it is."""
    return bool(_OWN_NAME.fullmatch(name))


def service_of(target: str) -> str:
    """The service of a target's ARN. Raises UsageError for one that dq cannot have started."""
    parts = target.split(":")
    service = parts[2] if len(parts) > 5 and parts[0] == "arn" else ""
    if service not in TARGETS or (service == "sqs" and target.endswith(".fifo")):
        raise UsageError(
            f"schedule_target {target!r} is nothing that dq can have started.",
            "Write the ARN of a Lambda function, a state machine, a topic, an event bus or a standard queue.",
        )
    return service
