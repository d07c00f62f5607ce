"""What EventBridge Scheduler refuses beside its own model: looked at before a request leaves.

Source: the API reference, and "Schedule types in EventBridge Scheduler" of its guide.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from dq.contracts.schedule import Dialect, TextFault, parse, zone
from dq.contracts.shared.errors import UsageError
from dq.registry.glue.model_limits import Raw, refusals

_WRITES = ("CreateSchedule", "UpdateSchedule")
_QUEUE = re.compile(r"arn:aws[a-z-]*:sqs:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]{1,80}", re.ASCII)
# What an update that does not say it sets back to AWS's default.
_WHOLE = ("State", "Description", "ScheduleExpressionTimezone", "ActionAfterCompletion", "GroupName")
_LONGEST_WINDOW = 1440


def refuse(operation: Any, params: Raw) -> None:
    """Raises UsageError, with all that is wrong, for a request that EventBridge Scheduler would refuse.

    `operation` is botocore's model of the operation.
    """
    wrong = refusals(operation, params, dict.fromkeys(_WRITES, _schedule))
    if wrong:
        raise UsageError(
            f"{params.get('Name', 'EventBridge Scheduler')}: EventBridge Scheduler would not take this "
            f"{operation.name}: {'; '.join(wrong)}.",
            "Nothing was sent; mend the contract or the setting.",
        )


def _schedule(params: Raw) -> Iterator[str]:
    yield from (f"{name}: missing; it would be set back" for name in _WHOLE if name not in params)
    timezone = params.get("ScheduleExpressionTimezone", "")
    known = zone(timezone)
    if isinstance(known, TextFault):
        yield f"ScheduleExpressionTimezone: {known.message}"
    text = params.get("ScheduleExpression", "")
    read = parse(text, timezone="UTC", dialect=Dialect.EVENTBRIDGE)
    if isinstance(read, TextFault):
        yield f"ScheduleExpression: {read.message}"
    yield from _window(params.get("FlexibleTimeWindow") or {})
    yield from _target(params.get("Target") or {})


def _window(window: Raw) -> Iterator[str]:
    minutes = window.get("MaximumWindowInMinutes")
    if window.get("Mode") == "OFF" and minutes is not None:
        yield "FlexibleTimeWindow: minutes, and it is off"
    if window.get("Mode") == "FLEXIBLE" and not 1 <= (minutes or 0) <= _LONGEST_WINDOW:
        yield f"FlexibleTimeWindow: {minutes} is not within 1 and {_LONGEST_WINDOW} minutes"


def _target(target: Raw) -> Iterator[str]:
    try:
        json.loads(target.get("Input", ""))
    except ValueError:
        yield "Target.Input: no JSON"
    queue = (target.get("DeadLetterConfig") or {}).get("Arn", "")
    if "DeadLetterConfig" in target and not _QUEUE.fullmatch(queue):
        yield f"Target.DeadLetterConfig: {queue!r} is no standard queue"
    if "RetryPolicy" not in target:
        yield "Target.RetryPolicy: missing; AWS would try for a day"
