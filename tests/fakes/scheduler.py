"""moto's EventBridge Scheduler behind the shim of Glue: it refuses what AWS refuses and moto lets through."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, quote, urlsplit
from zoneinfo import available_timezones

from fakes.aws_cron import AwsCron, CronRefused

if TYPE_CHECKING:
    from fakes.glue import Answer, GlueShim

# Method and first step of a path -> the operation, of one thing and of the list.
_OPERATIONS = {
    ("POST", "schedules"): ("CreateSchedule", ""),
    ("PUT", "schedules"): ("UpdateSchedule", ""),
    ("GET", "schedules"): ("GetSchedule", "ListSchedules"),
    ("DELETE", "schedules"): ("DeleteSchedule", ""),
    ("POST", "schedule-groups"): ("CreateScheduleGroup", ""),
    ("GET", "schedule-groups"): ("GetScheduleGroup", "ListScheduleGroups"),
}
OPERATIONS = frozenset(one for both in _OPERATIONS.values() for one in both if one)
_NAME = re.compile(r"[0-9a-zA-Z._-]{1,64}")
_ARN = re.compile(r"arn:aws:[a-z]+:[a-z0-9-]*:[0-9]{12}:\S+")
_ROLE = re.compile(r"arn:aws:iam::[0-9]{12}:role/\S+")
_QUEUE = re.compile(r"arn:aws:sqs:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]{1,80}")
_PAGE = 2
_CONTRACT = """\
apiVersion: v3.2.0
kind: DataContract
id: {name}
version: 1.0.0
status: active
servers:
  - {{server: lake, type: s3, location: s3://lake/sales/{name}, format: parquet}}
schema:
  - name: {name}
    properties:
      - {{name: Id, logicalType: integer, physicalType: bigint}}
slaProperties:
  - id: daily
    property: frequency
    value: 1
    unit: d
    element: {name}
    schedule: "{cron}"
    customProperties:
      - {{property: delivery, vendor: dq, value: {{timezone: Europe/Berlin, grace: 30m, objective: 90%}}}}
"""
TARGET = "arn:aws:states:eu-central-1:123456789012:stateMachine:check"


def operation_of(method: str, path: str) -> str:
    """The operation of a request; "" for one of another service."""
    steps = urlsplit(path).path.strip("/").split("/")
    one, every = _OPERATIONS.get((method, steps[0]), ("", ""))
    return one if len(steps) == 2 else every if len(steps) == 1 else ""


def answer(
    shim: GlueShim, operation: str, body: dict[str, Any], path: str, forward: Callable[[], Answer]
) -> Answer:
    """What AWS would answer to the request that `forward` hands to moto."""
    if operation in ("CreateSchedule", "UpdateSchedule"):
        body = {"Name": urlsplit(path).path.split("/")[-1], **body}
        wrong = list(_faults(body))
        if wrong:
            return _refused(400, "ValidationException", "; ".join(wrong))
    if operation == "ListSchedules":
        return _paged(shim, parse_qs(urlsplit(path).query))
    made = forward()
    # moto answers an unknown group with an error of its own.
    if made.status >= 500:
        return _refused(404, "ResourceNotFoundException", "Schedule group does not exist.")
    return made


def _faults(body: dict[str, Any]) -> list[str]:
    found = []
    if not _NAME.fullmatch(body["Name"]):
        found.append(f"Name {body['Name']!r}")
    if len(body.get("Description", "")) > 512:
        found.append("Description is too long")
    if body.get("ScheduleExpressionTimezone", "UTC") not in available_timezones():
        found.append(f"Invalid ScheduleExpressionTimezone {body['ScheduleExpressionTimezone']}")
    try:
        AwsCron(body["ScheduleExpression"])
    except CronRefused as refused:
        found.append(f"Invalid ScheduleExpression: {refused}")
    window = body["FlexibleTimeWindow"]
    minutes = window.get("MaximumWindowInMinutes")
    if window["Mode"] not in ("OFF", "FLEXIBLE") or (window["Mode"] == "OFF") != (minutes is None):
        found.append("FlexibleTimeWindow")
    if minutes is not None and not 1 <= minutes <= 1440:
        found.append("MaximumWindowInMinutes")
    target = body["Target"]
    if not _ARN.fullmatch(target["Arn"]) or not _ROLE.fullmatch(target["RoleArn"]):
        found.append("Target is no ARN, or its role is none")
    if ":events:" in target["Arn"] and "EventBridgeParameters" not in target:
        found.append("EventBridgeParameters are missing")
    retry = target.get("RetryPolicy", {})
    if not 60 <= retry.get("MaximumEventAgeInSeconds", 60) <= 86_400:
        found.append("MaximumEventAgeInSeconds")
    if not 0 <= retry.get("MaximumRetryAttempts", 0) <= 185:
        found.append("MaximumRetryAttempts")
    if "DeadLetterConfig" in target and not _QUEUE.fullmatch(target["DeadLetterConfig"]["Arn"]):
        found.append("DeadLetterConfig")
    try:
        json.loads(target.get("Input", "{}"))
    except ValueError:
        found.append("Input is no JSON")
    return found


def _paged(shim: GlueShim, query: dict[str, list[str]]) -> Answer:
    from fakes.glue import Answer

    every = sorted(_rows(shim, query["ScheduleGroup"][0]), key=lambda one: str(one["Name"]))
    start = int(query.get("NextToken", ["0"])[0])
    page: dict[str, Any] = {"Schedules": every[start : start + _PAGE]}
    if start + _PAGE < len(every):
        page["NextToken"] = str(start + _PAGE)
    return Answer(200, json.dumps(page).encode())


def _refused(status: int, code: str, message: str) -> Answer:
    from fakes.glue import Answer

    return Answer(status, json.dumps({"Message": message}).encode(), code)


def _asked(shim: GlueShim, method: str, path: str, body: dict[str, Any]) -> Any:
    scope = "test/20260101/eu-central-1/scheduler/aws4_request"
    headers = {
        "Authorization": f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature=0",
        "Content-Type": "application/json",
    }
    made = shim.forward(method, path, json.dumps(body).encode(), headers)
    assert made.status < 300, made.body
    return json.loads(made.body or b"{}")


def _rows(shim: GlueShim, group: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    token = ""
    while True:
        page = _asked(shim, "GET", f"/schedules?ScheduleGroup={group}{token}", {})
        found += page["Schedules"]
        if not page.get("NextToken"):
            return found
        token = f"&NextToken={quote(page['NextToken'])}"


def make_group(shim: GlueShim, name: str = "dq") -> None:
    """The group that the landing zone would make."""
    _asked(shim, "POST", f"/schedule-groups/{name}", {})


def make_foreign(shim: GlueShim, name: str, group: str = "dq", description: str = "Payroll.") -> None:
    """A schedule of somebody else."""
    body = {
        "Description": description,
        "GroupName": group,
        "ScheduleExpression": "cron(0 1 * * ? *)",
        "FlexibleTimeWindow": {"Mode": "OFF"},
        "Target": {
            "Arn": "arn:aws:lambda:eu-central-1:123456789012:function:theirs",
            "RoleArn": "arn:aws:iam::123456789012:role/theirs",
        },
    }
    _asked(shim, "POST", f"/schedules/{quote(name)}", body)


def schedules(shim: GlueShim, group: str = "dq") -> dict[str, dict[str, Any]]:
    """Every schedule that moto has in a group, by name."""
    names = [one["Name"] for one in _rows(shim, group)]
    return {name: _asked(shim, "GET", f"/schedules/{quote(name)}?groupName={group}", {}) for name in names}


def alter(shim: GlueShim, name: str, group: str = "dq", **changes: Any) -> None:
    """Somebody changes a schedule in the console."""
    live = _asked(shim, "GET", f"/schedules/{quote(name)}?groupName={group}", {})
    body = {key: value for key, value in live.items() if value is not None and key not in ("Arn", "Name")}
    _asked(shim, "PUT", f"/schedules/{quote(name)}", {**body, **changes})


def drop(shim: GlueShim, name: str, group: str = "dq") -> None:
    """Somebody removes a schedule."""
    _asked(shim, "DELETE", f"/schedules/{quote(name)}?groupName={group}", {})


def promising(name: str = "orders", cron: str = "0 6 * * *") -> str:
    """A contract of one table in S3 with one delivery promise in the zone of Berlin."""
    return _CONTRACT.format(name=name, cron=cron)
