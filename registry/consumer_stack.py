"""CloudFormation stack of a consumer: a function that links shared tables, with its role and alarms."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from dq.contracts.outcome import UsageError
from dq.registry.landing_zone import CONSUMER, Places, ResourceScope, duty_policy, glue_arns
from dq.registry.stack import (
    ALARM_PARAMETERS,
    Node,
    alarm_conditions,
    allow_statement,
    failure_destination,
    function_alarm,
    iam_role,
    image_function,
    image_parameter,
    log_group,
    log_group_name,
    own_arn,
    queue_alarm,
    stack_output,
    stack_resource,
)

HANDLER = "dq.aws.consumer_handler.handler"
_RETENTION_SECONDS = 14 * 24 * 3600
_TIMEOUT_SECONDS = 300
_MEMORY_MEGABYTES = 512
_RATE = "rate(1 hour)"
# Without a run in three hours, changes are not followed.
_SILENT_SECONDS = 3 * 3600
_PRINCIPAL = re.compile(r"arn:aws[a-z-]*:iam::[0-9]{12}:(role|user)/[\w+=,.@/-]+", re.ASCII)
# The database is part of the names of a role and a function, which have at most 64 characters.
_DATABASE = re.compile(r"[a-z0-9_][a-z0-9_-]{0,49}", re.ASCII)
_TABLE = re.compile(r"[a-z0-9_-]+\.[a-z0-9_-]+", re.ASCII)
_REGION = re.compile(r"([a-z]{2}(-[a-z]+)+-[0-9])?", re.ASCII)
_PREFIX = "DQ_LINK_"


@dataclass(frozen=True, slots=True)
class LinkScope:
    """Tables of `owner` to link for the reader `principal`; without `tables`, all that it shares.

    `database` and `name` are those of the resource link, None for the same as in the owner's account.
    `tables` are `database.table`. `region` is the owner's, "" if the same.
    """

    owner: str
    principal: str
    database: str | None = None
    tables: tuple[str, ...] = ()
    name: str | None = None
    region: str = ""

    def as_environment(self) -> dict[str, str]:
        """Return the environment variables of the function; values that are not set are left out."""
        values = {
            "OWNER": self.owner,
            "PRINCIPAL": self.principal,
            "DATABASE": self.database,
            "TABLES": ",".join(self.tables),
            "NAME": self.name,
            "REGION": self.region,
        }
        return {_PREFIX + key: value for key, value in values.items() if value}


def scope_from_environment(environment: Mapping[str, str]) -> LinkScope:
    """Return the scope of a function; UsageError if its environment has none."""
    values = {
        key.removeprefix(_PREFIX): value for key, value in environment.items() if key.startswith(_PREFIX)
    }
    try:
        return LinkScope(
            values["OWNER"],
            values["PRINCIPAL"],
            values["DATABASE"],
            tuple(filter(None, values.get("TABLES", "").split(","))),
            values.get("NAME") or None,
            values.get("REGION", ""),
        )
    except KeyError as error:
        raise UsageError(
            f"the environment variable {_PREFIX}{error.args[0]} is not set.",
            "Create the function with the stack of 'dq link --emit-stack'.",
        ) from error


def template(scope: LinkScope) -> Node:
    """Return the template; deterministic. Raises UsageError for values that a stack cannot have."""
    if scope.database is None:
        raise UsageError("--database is required with --emit-stack.", "Name the database of the links.")
    _check(scope)
    name = f"dq-link-{scope.database}"
    resources: Node = {
        "Role": {
            **iam_role(name, {"Service": "lambda.amazonaws.com"}, _policy(scope, name)),
            # Only an administrator may grant what another account shares; a stack that set the
            # administrators would replace those of the account.
            "Metadata": {"DataLakeAdministrator": True},
        },
        "DeadLetters": stack_resource(
            "AWS::SQS::Queue",
            {
                "QueueName": f"{name}-dead-letters",
                "MessageRetentionPeriod": _RETENTION_SECONDS,
                "SqsManagedSseEnabled": True,
            },
            retain=True,
        ),
        "Logs": log_group(name, retain=True),
        "Function": _function(scope, name),
        "Failures": failure_destination("Function", "DeadLetters"),
        **_rule("Schedule", f"{name}-schedule", {"ScheduleExpression": _RATE}),
        # RAM sends its events at best effort: the schedule is what counts.
        **_rule(
            "Shares",
            f"{name}-shares",
            {"EventPattern": {"source": ["aws.ram"], "detail-type": ["Resource Sharing State Change"]}},
        ),
        **_alarms(),
    }
    return {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Description": f"Links the tables that {scope.owner} shares into the database {scope.database}.",
        "Parameters": {
            "Image": image_parameter(
                "URI in Amazon ECR of an image for AWS Lambda with dq and its extra aws."
            ),
            **ALARM_PARAMETERS,
        },
        "Conditions": alarm_conditions(),
        "Resources": resources,
        "Outputs": {
            key: stack_output(key, resources[key]) for key in ("Role", "DeadLetters", "Logs", "Function")
        },
    }


def _check(scope: LinkScope) -> None:
    checks = (
        ("--principal", scope.principal, _PRINCIPAL, "Use arn:aws:iam::210987654321:role/billing."),
        (
            "--database",
            scope.database or "",
            _DATABASE,
            "Use up to 50 letters, digits, hyphens and underscores.",
        ),
        ("--name", scope.name or "x", _DATABASE, "Use up to 50 letters, digits, hyphens and underscores."),
        ("--region", scope.region, _REGION, "Use e.g. eu-central-1."),
        *(("table", table, _TABLE, "Use e.g. sales.orders.") for table in scope.tables),
    )
    for what, value, pattern, hint in checks:
        if not pattern.fullmatch(value):
            raise UsageError(f"invalid {what} {value!r}.", hint)


def _policy(scope: LinkScope, name: str) -> Node:
    places: Places = {
        ResourceScope.LINKS: glue_arns([scope.database or ""]),
        ResourceScope.SHARED: _shared_arns(scope),
        ResourceScope.EVERYTHING: ["*"],
    }
    policy = duty_policy(CONSUMER, places)
    policy["Statement"] += [
        allow_statement("sqs:SendMessage", [{"Fn::GetAtt": ["DeadLetters", "Arn"]}]),
        {
            "Effect": "Allow",
            "Action": ["logs:CreateLogStream", "logs:PutLogEvents"],
            "Resource": [own_arn("logs", f"log-group:{log_group_name(name)}:*")],
        },
    ]
    return policy


def _shared_arns(scope: LinkScope) -> list[Node]:
    """Return the ARNs of the owner's catalog, and of the named tables or all of them."""
    region = scope.region or "${AWS::Region}"
    names = [table.replace(".", "/") for table in scope.tables] or ["*/*"]
    databases = sorted({name.partition("/")[0] for name in names})
    parts = ["catalog", *(f"database/{name}" for name in databases), *(f"table/{name}" for name in names)]
    return [{"Fn::Sub": f"arn:${{AWS::Partition}}:glue:{region}:{scope.owner}:{part}"} for part in parts]


def _function(scope: LinkScope, name: str) -> Node:
    return image_function(
        name,
        HANDLER,
        scope.as_environment(),
        ids=("Image", "Role", "Logs"),
        seconds=_TIMEOUT_SECONDS,
        megabytes=_MEMORY_MEGABYTES,
        # The records in the database are read, changed and written: two runs at a time could lose one.
        ReservedConcurrentExecutions=1,
    )


def _rule(key: str, name: str, trigger: Node) -> Node:
    """Return a rule of EventBridge that starts the function, and its permission to do so."""
    arn = {"Fn::GetAtt": ["Function", "Arn"]}
    return {
        key: stack_resource(
            "AWS::Events::Rule", {"Name": name, **trigger, "Targets": [{"Id": "function", "Arn": arn}]}
        ),
        f"{key}Permission": stack_resource(
            "AWS::Lambda::Permission",
            {
                "FunctionName": arn,
                "Action": "lambda:InvokeFunction",
                "Principal": "events.amazonaws.com",
                "SourceArn": {"Fn::GetAtt": [key, "Arn"]},
            },
        ),
    }


def _alarms() -> Node:
    return {
        "FailedAlarm": function_alarm("A run of dq link failed.", "Function", "Errors"),
        "DeadLettersAlarm": queue_alarm(
            "A run of dq link failed for good; its event is in the queue.",
            *("DeadLetters", "ApproximateNumberOfMessagesVisible"),
        ),
        "SilentAlarm": function_alarm(
            "dq link was not started for hours.", "Function", "Invocations", silent_seconds=_SILENT_SECONDS
        ),
    }
