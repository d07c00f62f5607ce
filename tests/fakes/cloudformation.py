"""Stacks created by moto's CloudFormation over HTTP, as far as moto knows their resources."""

from __future__ import annotations

import ast
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.request import Request, urlopen

from fakes.glue import REGION
from fakes.quiet_server import Loopback
from moto.cloudformation.parsing import get_model_map
from moto.server import ThreadedMotoServer

from dq.registry.aws.client import new_session


@contextmanager
def serving() -> Iterator[dict[str, str]]:
    """An account that is empty, as the environment that points boto3 there."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    environment = {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.get_host_and_port()[1]}",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": REGION,
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    # All of moto's servers in a process have one account.
    reset(environment)
    yield environment
    server.stop()


def unsupported(template: Mapping[str, Any]) -> set[str]:
    """The types of resources that moto's CloudFormation leaves out of a stack."""
    return {resource["Type"] for resource in template["Resources"].values()} - set(get_model_map())


def create(template: Mapping[str, Any], name: str = "dq", **parameters: str) -> dict[str, str]:
    """Creates the stack in the environment's account, and gives its outputs.

    What moto's CloudFormation leaves out is left out before, and what refers to it gets an ARN.
    """
    missing = unsupported(template)
    kept = {key: part for key, part in template["Resources"].items() if part["Type"] not in missing}
    outputs = {key: value for key, value in template["Outputs"].items() if key in kept}
    client = new_session(region=REGION).client("cloudformation")
    client.create_stack(
        StackName=name,
        TemplateBody=json.dumps({**template, "Resources": _resolved(kept, set(kept)), "Outputs": outputs}),
        Parameters=[{"ParameterKey": key, "ParameterValue": value} for key, value in parameters.items()],
        Capabilities=["CAPABILITY_NAMED_IAM"],
    )
    (stack,) = client.describe_stacks(StackName=name)["Stacks"]
    assert stack["StackStatus"] == "CREATE_COMPLETE", stack
    _put_policies(kept)
    return {output["OutputKey"]: output["OutputValue"] for output in stack.get("Outputs", ())}


def _put_policies(resources: Mapping[str, Any]) -> None:
    """moto's CloudFormation stores an inline policy as Python writes it, not as JSON."""
    iam = new_session(region=REGION).client("iam")
    for part in resources.values():
        if part["Type"] != "AWS::IAM::Role" or "Condition" in part:
            continue
        on = {"RoleName": part["Properties"]["RoleName"], "PolicyName": "dq"}
        document = ast.literal_eval(iam.get_role_policy(**on)["PolicyDocument"])
        iam.put_role_policy(**on, PolicyDocument=json.dumps(document))


def _resolved(node: Any, kept: set[str]) -> Any:
    if isinstance(node, dict):
        attribute = node.get("Fn::GetAtt")
        if attribute is not None and attribute[0] not in kept:
            return f"arn:aws:unknown:{REGION}:123456789012:{attribute[0]}"
        return {key: _resolved(value, kept) for key, value in node.items()}
    return [_resolved(value, kept) for value in node] if isinstance(node, list) else node


def create_alarms(template: Mapping[str, Any], topic: str) -> None:
    """Creates the alarms of a stack, which moto's CloudFormation leaves out, by their own API."""
    resources = template["Resources"]
    names = {"FunctionName": "FunctionName", "QueueName": "QueueName"}
    client = new_session(region=REGION).client("cloudwatch")
    for alarm, part in resources.items():
        if part["Type"] != "AWS::CloudWatch::Alarm":
            continue
        dimensions = []
        for dimension in part["Properties"]["Dimensions"]:
            value = dimension["Value"]
            key = value.get("Ref") or value["Fn::GetAtt"][0]
            name = resources[key]["Properties"][names[dimension["Name"]]]
            dimensions.append({"Name": dimension["Name"], "Value": name})
        properties = {**part["Properties"], "Dimensions": dimensions, "AlarmActions": [topic]}
        client.put_metric_alarm(AlarmName=alarm, **properties)


def reset(environment: Mapping[str, str]) -> None:
    """Empties the account."""
    request = Request(f"{environment['AWS_ENDPOINT_URL']}/moto-api/reset", method="POST")
    with urlopen(request):
        pass


@contextmanager
def refusing(service: str) -> Iterator[str]:
    """A service that allows nothing, as its URL."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

        def do_GET(self) -> None:
            body = json.dumps({"Message": f"not authorized to perform: {service}"}).encode()
            self.send_response(403)
            self.send_header("x-amzn-ErrorType", "AccessDeniedException")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    with Loopback(Handler) as loopback:
        yield loopback.origin
