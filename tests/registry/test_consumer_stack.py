"""The consumer's stack as a user prints it, and as CloudFormation creates it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from cfnlint import lint
from fakes import cloudformation

from dq.aws.consumer_handler import handler
from dq.cli.main import run
from dq.registry.aws.client import new_session
from dq.registry.consumer_stack import LinkScope, scope_from_environment
from dq.registry.landing_zone import CONSUMER, actions_of

OWNER = "123456789012"
READER = "arn:aws:iam::210987654321:role/billing"
IMAGE = "210987654321.dkr.ecr.eu-central-1.amazonaws.com/dq:1"
# What the role does besides linking: Lambda's log, and its dead letters.
OWN_ACTIONS = {"logs:CreateLogStream", "logs:PutLogEvents", "sqs:SendMessage"}


def emitted(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    capsys.readouterr()
    options = ("--owner", OWNER, "--principal", READER, "--database", "shared", "--emit-stack")
    assert run(["link", *words, *options]) == 0
    return capsys.readouterr().out


def statements(stack: dict[str, Any]) -> list[dict[str, Any]]:
    (policy,) = stack["Resources"]["Role"]["Properties"]["Policies"]
    found: list[dict[str, Any]] = policy["PolicyDocument"]["Statement"]
    return found


@pytest.mark.parametrize(
    "words",
    [(), ("sales.orders", "sales.lines"), ("sales.orders", "--name", "theirs", "--region", "eu-west-1")],
)
def test_aws_own_linter_finds_nothing(capsys: pytest.CaptureFixture[str], words: tuple[str, ...]) -> None:
    text = emitted(capsys, *words)

    assert [str(match) for match in lint(text, regions=["eu-central-1"])] == []
    # What is wrong is found.
    wrong = text.replace('"QueueName"', '"QueueNames"', 1)
    assert any("QueueNames" in str(match) for match in lint(wrong, regions=["eu-central-1"]))


def test_the_role_reaches_the_links_and_the_shared_tables_that_are_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = statements(json.loads(emitted(capsys, "sales.orders", "--region", "eu-west-1")))

    assert {action for one in found for action in one["Action"]} == actions_of(CONSUMER) | OWN_ACTIONS
    everywhere = {action for one in found if "*" in one["Resource"] for action in one["Action"]}
    # RAM and Lake Formation limit by their own grants, a search by what it lists.
    assert {action.split(":")[0] for action in everywhere} == {"ram", "lakeformation", "glue"}
    assert {action for action in everywhere if action.startswith("glue:")} == {"glue:SearchTables"}
    writable = [one for one in found if "glue:DeleteTable" in one["Action"]]
    own = "arn:${AWS::Partition}:glue:${AWS::Region}:${AWS::AccountId}"
    assert [one["Resource"] for one in writable] == [
        [{"Fn::Sub": f"{own}:{part}"} for part in ("catalog", "database/shared", "table/shared/*")]
    ]
    theirs = [one for one in found if OWNER in json.dumps(one)]
    assert [(one["Action"], one["Resource"]) for one in theirs] == [
        (
            ["glue:GetDatabase", "glue:GetTable"],
            [
                {"Fn::Sub": f"arn:${{AWS::Partition}}:glue:eu-west-1:{OWNER}:{part}"}
                for part in ("catalog", "database/sales", "table/sales/orders")
            ],
        )
    ]


def test_moto_creates_the_stack_as_far_as_it_knows_its_resources(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    stack = json.loads(emitted(capsys, "sales.orders"))
    with cloudformation.serving() as environment:
        for name, text in environment.items():
            monkeypatch.setenv(name, text)
        outputs = cloudformation.create(stack, Image=IMAGE)
        session = new_session()
        function = session.client("lambda").get_function(FunctionName="dq-link-shared")["Configuration"]
        events = session.client("events")
        targets = [
            target["Arn"]
            for rule in ("dq-link-shared-schedule", "dq-link-shared-shares")
            for target in events.list_targets_by_rule(Rule=rule)["Targets"]
        ]
        permissions = json.loads(session.client("lambda").get_policy(FunctionName="dq-link-shared")["Policy"])

    assert cloudformation.unsupported(stack) == {
        "AWS::CloudWatch::Alarm",
        "AWS::Lambda::EventInvokeConfig",
    }
    assert outputs["Role"] == f"arn:aws:iam::{OWNER}:role/dq-link-shared"
    assert function["Role"] == outputs["Role"]
    assert targets == [outputs["Function"]] * 2
    assert len(permissions["Statement"]) == 2
    # The function does what the options say.
    assert scope_from_environment(function["Environment"]["Variables"]) == LinkScope(
        OWNER, READER, "shared", ("sales.orders",)
    )
    command = stack["Resources"]["Function"]["Properties"]["ImageConfig"]["Command"]
    assert command == [f"{handler.__module__}.{handler.__qualname__}"]


def references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if "Ref" in node:
            yield node["Ref"]
        if "Fn::GetAtt" in node:
            yield node["Fn::GetAtt"][0]
        yield from (name for value in node.values() for name in references(value))
    elif isinstance(node, list):
        yield from (name for value in node for name in references(value))


def test_every_alarm_watches_a_part_of_the_stack(capsys: pytest.CaptureFixture[str]) -> None:
    stack = json.loads(emitted(capsys))

    alarms = {
        name: resource["Properties"]
        for name, resource in stack["Resources"].items()
        if resource["Type"] == "AWS::CloudWatch::Alarm"
    }
    watched = {name: set(references(alarm["Dimensions"])) for name, alarm in alarms.items()}
    assert watched == {
        "FailedAlarm": {"Function"},
        "DeadLettersAlarm": {"DeadLetters"},
        "SilentAlarm": {"Function"},
    }
    assert set(references(stack)) <= {*stack["Resources"], *stack["Parameters"], "AWS::NoValue"}


def test_a_scope_survives_the_environment() -> None:
    scopes = [
        LinkScope(OWNER, READER, "shared"),
        LinkScope(OWNER, READER, "shared", ("a.b", "a.c"), None, "eu-west-1"),
        LinkScope(OWNER, READER, "shared", ("a.b",), "theirs"),
    ]

    assert [scope_from_environment(scope.as_environment()) for scope in scopes] == scopes
