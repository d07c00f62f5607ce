"""EventBridge Scheduler itself: each schedule read, written and removed, and what it refuses."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from botocore import exceptions as aws

from dq.contracts.outcome import TextFault, UsageError
from dq.contracts.schedule.calendar import zone
from dq.contracts.schedule.clock import parse
from dq.contracts.schedule.cron import Dialect
from dq.registry.aws.client import Rate, aws_session, code_of, explained, opening, polite, unless
from dq.registry.aws.glue_requests import Raw, refusals

# What EventBridge Scheduler refuses beside its own model: looked at before a request leaves.
#
# Source: the API reference, and "Schedule types in EventBridge Scheduler" of its guide.

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


# EventBridge Scheduler itself: which schedules a group has, and each one read, written and removed.

RATES = {"read": Rate(50, 200), "write": Rate(50, 100)}
_ABSENT = "ResourceNotFoundException"
_THERE = "ConflictException"
# What GetSchedule tells and nobody writes.
_NOT_WRITTEN = ("Arn", "CreationDate", "LastModificationDate", "ResponseMetadata")


@dataclass(frozen=True, slots=True)
class LiveSchedule:
    """A schedule as AWS has it, in the form in which it is written; `modified` is when it last was."""

    written: Mapping[str, Any]
    modified: str


@dataclass(frozen=True, slots=True)
class Scheduler:
    """One account's schedules in one region.

    Every method raises Unreadable when AWS does not answer or refuses, UsageError for what may not be sent.
    """

    client: Any

    def names(self, group: str) -> dict[str, str]:
        """When each schedule of a group was last written, by name. Raises UsageError without the group."""
        found: dict[str, str] = {}
        with explained(f"list the schedules of {group}"):
            try:
                # An empty list is no proof that there is a group.
                self.client.get_schedule_group(Name=group)
                pages = self.client.get_paginator("list_schedules")
                for page in pages.paginate(GroupName=group, PaginationConfig={"PageSize": 100}):
                    found |= {one["Name"]: _text(one["LastModificationDate"]) for one in page["Schedules"]}
            except aws.ClientError as error:
                if code_of(error) != _ABSENT:
                    raise
                raise UsageError(
                    f"EventBridge Scheduler has no group {group!r}.",
                    "Make it, or set schedule_group to one that is there.",
                ) from error
        return found

    def read(self, group: str, name: str) -> LiveSchedule | None:
        """A schedule; None where there is none of this name."""
        with explained(f"read the schedule {name}"):
            answer = unless(_ABSENT, self.client.get_schedule, GroupName=group, Name=name)
        if answer is None:
            return None
        written = {key: value for key, value in answer.items() if key not in _NOT_WRITTEN}
        return LiveSchedule(written, _text(answer["LastModificationDate"]))

    def create(self, request: Mapping[str, Any]) -> bool:
        """Makes a schedule; False where one of this name stands there already."""
        with explained(f"create the schedule {request['Name']}"):
            return unless(_THERE, self.client.create_schedule, **request) is not None

    def update(self, request: Mapping[str, Any]) -> None:
        """Writes a schedule anew, as a whole."""
        with explained(f"change the schedule {request['Name']}"):
            self.client.update_schedule(**request)

    def delete(self, group: str, name: str) -> None:
        """Removes a schedule; one that is gone is no error."""
        with explained(f"remove the schedule {name}"):
            unless(_ABSENT, self.client.delete_schedule, GroupName=group, Name=name)


def _text(moment: datetime) -> str:
    return f"{moment.timestamp():.3f}"


def connect_scheduler(role_arn: str = "", *, rates: Mapping[str, Rate] = RATES) -> Scheduler:
    """Opens EventBridge Scheduler as the role, if one is named.

    Raises UsageError without a region or credentials, Unreadable when AWS does not answer.
    """
    with opening("EventBridge Scheduler"):
        session = aws_session(role_arn, {"scheduler": refuse})
        return Scheduler(polite(session, "scheduler", rates))
