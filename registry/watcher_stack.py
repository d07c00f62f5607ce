"""The watcher of a CloudFormation stack: `dq.aws.handler` as a function, its events, and alarms.

Source of the shapes: the template reference of CloudFormation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dq.registry.landing_zone import (
    IN_VPC,
    WATCHER,
    WATCHER_FUNCTION,
    Places,
    ResourceScope,
    bucket_resources,
    duty_policy,
    file_arns,
    glue_arns,
    key_prefixes,
)
from dq.registry.stack import (
    ALARM_PARAMETERS,
    NO_VALUE,
    VERSION,
    Node,
    alarm_conditions,
    failure_destination,
    function_alarm,
    iam_role,
    image_function,
    image_parameter,
    is_set,
    log_group,
    log_group_name,
    logical_id,
    own_arn,
    queue_alarm,
    stack_output,
    stack_resource,
)

HANDLER = "dq.aws.handler"
QUEUE = "dq-object-events"
_IN_VPC, _HAS_SLACK = "HasSubnets", "HasSlackSecret"
# Two evaluations, the wait for the alert of a breach in between, and time to send.
_TIMEOUT_SECONDS, _MEMORY_MB = 180, 1024
# As AWS advises for a queue that starts a function.
_VISIBILITY_SECONDS = 6 * _TIMEOUT_SECONDS
_BATCH, _BATCH_SECONDS = 100, 20
_WITHOUT_OUTPUT = frozenset(
    {
        "AWS::CloudWatch::Alarm", "AWS::Lambda::EventInvokeConfig", "AWS::Lambda::EventSourceMapping",
        "AWS::SQS::QueuePolicy",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class WatcherStack:
    """Contents of the watcher's part. `folders` are those of the tables, `s3://bucket/path`.

    `databases` are those whose tables the watcher updates. `variables` are those of the function, besides its
    secrets.
    """

    folders: Sequence[str]
    variables: Mapping[str, str]
    databases: Sequence[str] = ()


def add_watcher(stack: Node, watcher: WatcherStack) -> Node:
    """Return the stack of a landing zone with the watcher added."""
    resources = dict(_resources(watcher))
    outputs = {
        name: stack_output(name, resource)
        for name, resource in resources.items()
        if resource["Type"] not in _WITHOUT_OUTPUT
    }
    return {
        **stack,
        "Parameters": stack["Parameters"] | _parameters(),
        "Conditions": stack["Conditions"] | _conditions(),
        "Resources": stack["Resources"] | resources,
        "Outputs": stack["Outputs"] | outputs,
    }


def _parameters() -> Node:
    arn = r"arn:aws[a-z-]*"
    return {
        "WatcherImage": image_parameter(
            "The image of the function in ECR, with a tag or a digest: dq, its registry, and "
            f"the command {HANDLER}."
        ),
        "StoreSecret": {
            "Type": "String",
            "AllowedPattern": f"{arn}:secretsmanager:.+",
            "Description": "ARN of the secret whose text is the URL of the PostgreSQL store.",
        },
        "SlackSecret": {
            "Type": "String",
            "Default": "",
            "AllowedPattern": f"({arn}:secretsmanager:.+)?",
            "Description": "ARN of the secret whose text is Slack's bot token; empty for none.",
        },
        "WatcherSubnets": {
            "Type": "CommaDelimitedList",
            "Default": "",
            "Description": "Subnets of the store; empty for a function outside of a VPC.",
        },
        "WatcherSecurityGroups": {
            "Type": "CommaDelimitedList",
            "Default": "",
            "Description": "Security groups of the function in its subnets.",
        },
        **ALARM_PARAMETERS,
    }


def _conditions() -> Node:
    return {
        _IN_VPC: is_set({"Fn::Join": ["", {"Ref": "WatcherSubnets"}]}),
        **alarm_conditions(),
        _HAS_SLACK: is_set({"Ref": "SlackSecret"}),
    }


def _resources(watcher: WatcherStack) -> Iterator[tuple[str, Node]]:
    dead_letters = {"Fn::GetAtt": ["DeadLetters", "Arn"]}
    name = {"Ref": "Watcher"}
    yield "WatcherLogs", log_group(WATCHER_FUNCTION)
    yield "WatcherRole", _role(watcher)
    yield "Watcher", _function(watcher)
    yield "WatcherFailures", failure_destination("Watcher", "DeadLetters")
    yield (
        "WatcherTick",
        stack_resource(
            "AWS::Scheduler::Schedule",
            {
                "Name": f"{WATCHER_FUNCTION}-tick",
                "Description": "Sends what waits, and evaluates what schedules and object events do not.",
                "GroupName": {"Ref": "ScheduleGroup"},
                "ScheduleExpression": "rate(5 minutes)",
                "FlexibleTimeWindow": {"Mode": "OFF"},
                "Target": {
                    "Arn": {"Fn::GetAtt": ["Watcher", "Arn"]},
                    "RoleArn": {"Fn::GetAtt": ["SchedulerRole", "Arn"]},
                    "Input": '{"tick": true}',
                    "DeadLetterConfig": {"Arn": dead_letters},
                    "RetryPolicy": {"MaximumEventAgeInSeconds": 300, "MaximumRetryAttempts": 1},
                },
            },
        ),
    )
    yield from _object_events(watcher, name, dead_letters)
    yield from _alarms()


def _role(watcher: WatcherStack) -> Node:
    places: Places = {
        ResourceScope.FILES: file_arns(watcher.folders, "*"),
        ResourceScope.BUCKETS: bucket_resources(watcher.folders),
        ResourceScope.EVENT_QUEUE: [{"Fn::GetAtt": ["ObjectEvents", "Arn"]}],
        ResourceScope.DEAD_LETTERS: [{"Fn::GetAtt": ["DeadLetters", "Arn"]}],
        ResourceScope.LOGS: [own_arn("logs", f"log-group:{log_group_name(WATCHER_FUNCTION)}:*")],
    }
    if watcher.databases:
        places = {**places, ResourceScope.TABLES: glue_arns(watcher.databases)}
    document = duty_policy(WATCHER, places)
    network = [privilege for privilege in WATCHER.privileges if privilege.condition == IN_VPC]
    actions = sorted(action for privilege in network for action in privilege.actions)
    statement = {"Effect": "Allow", "Action": actions, "Resource": ["*"]}
    statements = [*document["Statement"], {"Fn::If": [_IN_VPC, statement, NO_VALUE]}]
    return iam_role(
        WATCHER_FUNCTION,
        {"Service": "lambda.amazonaws.com"},
        {"Version": VERSION, "Statement": statements},
    )


def _function(watcher: WatcherStack) -> Node:
    def secret(parameter: str) -> Node:
        return {"Fn::Sub": f"{{{{resolve:secretsmanager:${{{parameter}}}}}}}"}

    variables = {
        **watcher.variables,
        "DQ_STORE_URL": secret("StoreSecret"),
        "SLACK_BOT_TOKEN": {"Fn::If": [_HAS_SLACK, secret("SlackSecret"), NO_VALUE]},
    }
    network = {
        "SubnetIds": {"Ref": "WatcherSubnets"},
        "SecurityGroupIds": {"Ref": "WatcherSecurityGroups"},
    }
    return image_function(
        WATCHER_FUNCTION,
        HANDLER,
        variables,
        ids=("WatcherImage", "WatcherRole", "WatcherLogs"),
        seconds=_TIMEOUT_SECONDS,
        megabytes=_MEMORY_MB,
        Description="dq watch for schedules and object events.",
        VpcConfig={"Fn::If": [_IN_VPC, network, NO_VALUE]},
    )


def _object_events(watcher: WatcherStack, name: Node, dead_letters: Node) -> Iterator[tuple[str, Node]]:
    """Yield the way of object events to the function: a rule per bucket, and a queue that batches them."""
    queue = {"Fn::GetAtt": ["ObjectEvents", "Arn"]}
    yield (
        "ObjectEvents",
        stack_resource(
            "AWS::SQS::Queue",
            {
                "QueueName": QUEUE,
                "VisibilityTimeout": _VISIBILITY_SECONDS,
                "SqsManagedSseEnabled": True,
                "RedrivePolicy": {"deadLetterTargetArn": dead_letters, "maxReceiveCount": 5},
            },
        ),
    )
    rules = []
    for bucket, prefixes in key_prefixes(watcher.folders).items():
        rule = f"ObjectEvents{logical_id(bucket)}"
        rules.append(rule)
        keys = {"object": {"key": [{"prefix": prefix} for prefix in prefixes]}} if all(prefixes) else {}
        pattern = {
            "source": ["aws.s3"],
            "detail-type": ["Object Created", "Object Deleted"],
            "detail": {"bucket": {"name": [bucket]}, **keys},
        }
        target = {"Id": "watcher", "Arn": queue, "DeadLetterConfig": {"Arn": dead_letters}}
        yield rule, stack_resource("AWS::Events::Rule", {"EventPattern": pattern, "Targets": [target]})
    for policy, resource in (("ObjectEventsPolicy", "ObjectEvents"), ("DeadLettersPolicy", "DeadLetters")):
        if rules:
            yield (
                policy,
                stack_resource(
                    "AWS::SQS::QueuePolicy",
                    {
                        "Queues": [{"Ref": resource}],
                        "PolicyDocument": {
                            "Version": VERSION,
                            "Statement": [
                                {
                                    "Effect": "Allow",
                                    "Principal": {"Service": "events.amazonaws.com"},
                                    "Action": "sqs:SendMessage",
                                    "Resource": {"Fn::GetAtt": [resource, "Arn"]},
                                    "Condition": {
                                        "ArnEquals": {
                                            "aws:SourceArn": [{"Fn::GetAtt": [rule, "Arn"]} for rule in rules]
                                        }
                                    },
                                }
                            ],
                        },
                    },
                ),
            )
    yield (
        "ObjectEventsToWatcher",
        stack_resource(
            "AWS::Lambda::EventSourceMapping",
            {
                "FunctionName": name,
                "EventSourceArn": queue,
                "BatchSize": _BATCH,
                "MaximumBatchingWindowInSeconds": _BATCH_SECONDS,
                "FunctionResponseTypes": ["ReportBatchItemFailures"],
                # Writers of the store take turns anyway.
                "ScalingConfig": {"MaximumConcurrency": 2},
            },
        ),
    )


def _alarms() -> Iterator[tuple[str, Node]]:
    yield "WatcherFails", function_alarm("The watcher fails.", "Watcher", "Errors")
    yield (
        "WatcherIsSilent",
        function_alarm(
            "The watcher has not run for 15 minutes.", "Watcher", "Invocations", silent_seconds=900
        ),
    )
    yield (
        "StartsFailed",
        queue_alarm(
            "Starts of the watcher or object events are in the dead-letter queue.",
            *("DeadLetters", "ApproximateNumberOfMessagesVisible"),
        ),
    )
    yield (
        "ObjectEventsWait",
        queue_alarm(
            "Object events have waited for 15 minutes.",
            *("ObjectEvents", "ApproximateAgeOfOldestMessage"),
            at_least=900,
        ),
    )
