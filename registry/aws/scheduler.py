"""Client of EventBridge Scheduler: reads, writes and deletes schedules, and checks requests."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from botocore import exceptions as aws

from dq.contracts.outcome import UsageError, ValueProblem
from dq.contracts.schedule.calendar import parse_zone
from dq.contracts.schedule.clock import parse
from dq.contracts.schedule.cron import Dialect
from dq.registry.aws.client import (
    Rate,
    aws_session,
    call_ignoring,
    error_code,
    explained,
    opening,
    rate_limited_client,
)
from dq.registry.aws.glue_requests import Raw, request_problems

# Constraints of EventBridge Scheduler outside of AWS's model, checked before a request is sent.
#
# Source: the API reference, and "Schedule types in EventBridge Scheduler" of its guide.

_WRITES = ("CreateSchedule", "UpdateSchedule")
_QUEUE = re.compile(r"arn:aws[a-z-]*:sqs:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]{1,80}", re.ASCII)
# Keys that an update resets to AWS's default if they are missing.
_REQUIRED_KEYS = ("State", "Description", "ScheduleExpressionTimezone", "ActionAfterCompletion", "GroupName")
_LONGEST_WINDOW = 1440


def refuse(operation: Any, params: Raw) -> None:
    """Raise UsageError, with all problems, for a request that EventBridge Scheduler would reject.

    `operation` is botocore's model of the operation.
    """
    problems = request_problems(operation, params, dict.fromkeys(_WRITES, _schedule))
    if problems:
        raise UsageError(
            f"{params.get('Name', 'EventBridge Scheduler')}: EventBridge Scheduler would reject this "
            f"{operation.name}: {'; '.join(problems)}.",
            "Nothing was sent; fix the contract or the setting.",
        )


def _schedule(params: Raw) -> Iterator[str]:
    yield from (f"{name}: missing; it would be reset" for name in _REQUIRED_KEYS if name not in params)
    timezone = params.get("ScheduleExpressionTimezone", "")
    parsed_zone = parse_zone(timezone)
    if isinstance(parsed_zone, ValueProblem):
        yield f"ScheduleExpressionTimezone: {parsed_zone.message}"
    text = params.get("ScheduleExpression", "")
    parsed = parse(text, timezone="UTC", dialect=Dialect.EVENTBRIDGE)
    if isinstance(parsed, ValueProblem):
        yield f"ScheduleExpression: {parsed.message}"
    yield from _window(params.get("FlexibleTimeWindow") or {})
    yield from _target(params.get("Target") or {})


def _window(window: Raw) -> Iterator[str]:
    minutes = window.get("MaximumWindowInMinutes")
    if window.get("Mode") == "OFF" and minutes is not None:
        yield "FlexibleTimeWindow: has minutes, but is off"
    if window.get("Mode") == "FLEXIBLE" and not 1 <= (minutes or 0) <= _LONGEST_WINDOW:
        yield f"FlexibleTimeWindow: {minutes} is not between 1 and {_LONGEST_WINDOW} minutes"


def _target(target: Raw) -> Iterator[str]:
    try:
        json.loads(target.get("Input", ""))
    except ValueError:
        yield "Target.Input: not JSON"
    queue = (target.get("DeadLetterConfig") or {}).get("Arn", "")
    if "DeadLetterConfig" in target and not _QUEUE.fullmatch(queue):
        yield f"Target.DeadLetterConfig: {queue!r} is not a standard queue"
    if "RetryPolicy" not in target:
        yield "Target.RetryPolicy: missing; AWS would retry for a day"


# The client: lists the schedules of a group; reads, writes and deletes each.

RATES = {"read": Rate(50, 200), "write": Rate(50, 100)}
_NOT_FOUND = "ResourceNotFoundException"
_ALREADY_EXISTS = "ConflictException"
# Read-only keys of GetSchedule.
_READ_ONLY_KEYS = ("Arn", "CreationDate", "LastModificationDate", "ResponseMetadata")


@dataclass(frozen=True, slots=True)
class LiveSchedule:
    """A schedule in AWS. `definition` has the keys of a write request; `modified` is its last
    modification.
    """

    definition: Mapping[str, Any]
    modified: str


@dataclass(frozen=True, slots=True)
class Scheduler:
    """One account's schedules in one region.

    Every method raises ReadError when AWS does not answer or rejects a request, UsageError for an invalid
    request.
    """

    client: Any

    def names(self, group: str) -> dict[str, str]:
        """Return the last modification of each schedule of a group, by name.

        Raises UsageError if the group does not exist.
        """
        names: dict[str, str] = {}
        with explained(f"list the schedules of {group}"):
            try:
                # Listing an unknown group returns an empty list.
                self.client.get_schedule_group(Name=group)
                pages = self.client.get_paginator("list_schedules")
                for page in pages.paginate(GroupName=group, PaginationConfig={"PageSize": 100}):
                    names |= {
                        schedule["Name"]: _text(schedule["LastModificationDate"])
                        for schedule in page["Schedules"]
                    }
            except aws.ClientError as error:
                if error_code(error) != _NOT_FOUND:
                    raise
                raise UsageError(
                    f"EventBridge Scheduler has no group {group!r}.",
                    "Create it, or set schedule_group to an existing one.",
                ) from error
        return names

    def read(self, group: str, name: str) -> LiveSchedule | None:
        """Return the schedule, or None if it does not exist."""
        with explained(f"read the schedule {name}"):
            answer = call_ignoring(_NOT_FOUND, self.client.get_schedule, GroupName=group, Name=name)
        if answer is None:
            return None
        definition = {key: value for key, value in answer.items() if key not in _READ_ONLY_KEYS}
        return LiveSchedule(definition, _text(answer["LastModificationDate"]))

    def create(self, request: Mapping[str, Any]) -> bool:
        """Create a schedule. Return False if one of this name exists."""
        with explained(f"create the schedule {request['Name']}"):
            return call_ignoring(_ALREADY_EXISTS, self.client.create_schedule, **request) is not None

    def update(self, request: Mapping[str, Any]) -> None:
        """Replace a schedule completely."""
        with explained(f"change the schedule {request['Name']}"):
            self.client.update_schedule(**request)

    def delete(self, group: str, name: str) -> None:
        """Delete a schedule. Succeeds if it does not exist."""
        with explained(f"remove the schedule {name}"):
            call_ignoring(_NOT_FOUND, self.client.delete_schedule, GroupName=group, Name=name)


def _text(moment: datetime) -> str:
    return f"{moment.timestamp():.3f}"


def connect_scheduler(role_arn: str = "", *, rates: Mapping[str, Rate] = RATES) -> Scheduler:
    """Open EventBridge Scheduler, as `role_arn` if set.

    Raises UsageError without a region or credentials, ReadError when AWS does not answer.
    """
    with opening("EventBridge Scheduler"):
        session = aws_session(role_arn, {"scheduler": refuse})
        return Scheduler(rate_limited_client(session, "scheduler", rates))
