"""Building blocks of CloudFormation templates: resources, roles, functions and alarms.

Source of the shapes: the template reference of CloudFormation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

Node = dict[str, Any]
VERSION = "2012-10-17"
NO_VALUE = {"Ref": "AWS::NoValue"}
_LOG_DAYS = 90
_ALARMED = "HasAlarmTopic"

ALARM_PARAMETERS: Node = {
    "AlarmTopic": {
        "Type": "String",
        "Default": "",
        "AllowedPattern": "(arn:aws[a-z-]*:sns:.+)?",
        "Description": "ARN of the topic that alarms notify; empty for none.",
    }
}


def own_arn(service: str, suffix: str) -> Node:
    """Return an ARN in the stack's own account and region."""
    return {"Fn::Sub": f"arn:${{AWS::Partition}}:{service}:${{AWS::Region}}:${{AWS::AccountId}}:{suffix}"}


def logical_id(name: str) -> str:
    """Return a unique logical id of letters and digits for each name."""
    return re.sub("[^A-Za-z0-9]", lambda match: f"x{ord(match[0]):02x}", name)


def stack_resource(kind: str, properties: Node, *, retain: bool = False) -> Node:
    """Return a resource of a stack; with `retain`, it outlives the stack."""
    resource: Node = {"Type": kind, "Properties": properties}
    if retain:
        # Messages and subscriptions would be lost with it.
        resource |= {"DeletionPolicy": "Retain", "UpdateReplacePolicy": "Retain"}
    return resource


def stack_output(name: str, resource: Node) -> Node:
    """Return the output of a stack with the ARN of a resource, under the resource's condition."""
    arn = {"Ref": name} if resource["Type"] == "AWS::SNS::Topic" else {"Fn::GetAtt": [name, "Arn"]}
    return {"Value": arn} | ({"Condition": resource["Condition"]} if "Condition" in resource else {})


def iam_role(name: str, principal: Node, document: Node, condition: Node | None = None) -> Node:
    """Return a role with one policy. `name` "" lets CloudFormation name it; `condition` limits its trust."""
    trust: Node = {"Effect": "Allow", "Principal": principal, "Action": "sts:AssumeRole"}
    if condition is not None:
        trust["Condition"] = condition
    role_name = {"RoleName": name} if name else {}
    return stack_resource(
        "AWS::IAM::Role",
        {
            **role_name,
            "AssumeRolePolicyDocument": {"Version": VERSION, "Statement": [trust]},
            "Policies": [{"PolicyName": "dq", "PolicyDocument": document}],
        },
    )


def allow_statement(action: str, resources: Sequence[Any]) -> Node:
    """Return a policy statement that allows an action on resources."""
    return {"Effect": "Allow", "Action": [action], "Resource": list(resources)}


def image_parameter(description: str) -> Node:
    """Return a parameter for the URI of an image in ECR, with a tag or a digest."""
    pattern = r"[0-9]{12}\.dkr\.ecr\.[a-z0-9-]+\.amazonaws\.com(\.cn)?/[^@:]+[:@].+"
    return {"Type": "String", "AllowedPattern": pattern, "Description": description}


def is_set(value: Any) -> Node:
    """Return the condition that a text is not empty."""
    return {"Fn::Not": [{"Fn::Equals": [value, ""]}]}


def alarm_conditions() -> Node:
    """Return the conditions of alarms, whose topic is optional."""
    return {_ALARMED: is_set({"Ref": "AlarmTopic"})}


def log_group_name(function: str) -> str:
    """Return the name of a function's log group."""
    return f"/aws/lambda/{function}"


def log_group(function: str, *, retain: bool = False) -> Node:
    """Return the log group of a function. Otherwise the function would create one that never expires."""
    properties = {"LogGroupName": log_group_name(function), "RetentionInDays": _LOG_DAYS}
    return stack_resource("AWS::Logs::LogGroup", properties, retain=retain)


def image_function(
    name: str,
    handler: str,
    variables: Mapping[str, Any],
    *,
    ids: tuple[str, str, str],
    seconds: int,
    megabytes: int,
    **properties: Any,
) -> Node:
    """Return a function that runs a handler in an image.

    `ids` are the logical ids of the image's parameter, of the role and of the log group; `seconds` is the
    timeout, `megabytes` the memory.
    """
    image, role, logs = ids
    return {
        **stack_resource(
            "AWS::Lambda::Function",
            {
                "FunctionName": name,
                "PackageType": "Image",
                "Code": {"ImageUri": {"Ref": image}},
                "ImageConfig": {"Command": [handler]},
                "Role": {"Fn::GetAtt": [role, "Arn"]},
                "Timeout": seconds,
                "MemorySize": megabytes,
                "Environment": {"Variables": dict(variables)},
                **properties,
            },
        ),
        "DependsOn": [logs],
    }


def failure_destination(function: str, queue: str) -> Node:
    """Return the rule that events which a function fails go to a queue; both are logical ids."""
    return stack_resource(
        "AWS::Lambda::EventInvokeConfig",
        {
            "FunctionName": {"Ref": function},
            "Qualifier": "$LATEST",
            "MaximumRetryAttempts": 2,
            "DestinationConfig": {"OnFailure": {"Destination": {"Fn::GetAtt": [queue, "Arn"]}}},
        },
    )


def function_alarm(description: str, function: str, metric: str, **terms: Any) -> Node:
    """Return an alarm on a metric of a function, by its logical id."""
    return _alarm(description, "AWS/Lambda", metric, "FunctionName", {"Ref": function}, **terms)


def queue_alarm(description: str, queue: str, metric: str, **terms: Any) -> Node:
    """Return an alarm on a metric of a queue, by its logical id."""
    return _alarm(description, "AWS/SQS", metric, "QueueName", {"Fn::GetAtt": [queue, "QueueName"]}, **terms)


def _alarm(
    description: str,
    namespace: str,
    metric: str,
    dimension: str,
    value: Node,
    *,
    at_least: int = 1,
    silent_seconds: int | None = None,
) -> Node:
    """Return an alarm for a maximum of `at_least`, or for a sum of 0 within `silent_seconds`."""
    is_silence = silent_seconds is not None
    return stack_resource(
        "AWS::CloudWatch::Alarm",
        {
            "AlarmDescription": description,
            "Namespace": namespace,
            "MetricName": metric,
            "Dimensions": [{"Name": dimension, "Value": value}],
            "Statistic": "Sum" if is_silence else "Maximum",
            "ComparisonOperator": "LessThanThreshold" if is_silence else "GreaterThanOrEqualToThreshold",
            "Threshold": at_least,
            "Period": silent_seconds or 300,
            "EvaluationPeriods": 1,
            "TreatMissingData": "breaching" if is_silence else "notBreaching",
            "AlarmActions": {"Fn::If": [_ALARMED, [{"Ref": "AlarmTopic"}], NO_VALUE]},
        },
    )
