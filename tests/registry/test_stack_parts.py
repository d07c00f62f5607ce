"""`dq doctor --aws`: the parts of emitted stacks against an account, created by moto's CloudFormation."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fakes import cloudformation
from fakes.glue import REGION
from fakes.scheduler import promising

import dq
from dq.cli.main import run
from dq.operations.doctor import HealthCheck
from dq.operations.link import link_stack
from dq.operations.register import RegisterRequest, emit_landing_zone
from dq.operations.runtime.context import runtime_context
from dq.registry.aws.client import new_session
from dq.registry.aws.stack_parts import CHECKS

ACCOUNT, OWNER = "123456789012", "999999999999"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/dq-link-shared"
DEAD_LETTERS = f"arn:aws:sqs:{REGION}:{ACCOUNT}:dq-link-shared-dead-letters"
IMAGE = f"{ACCOUNT}.dkr.ecr.{REGION}.amazonaws.com/dq:1"
CONSUMER = link_stack(owner=OWNER, principal=f"arn:aws:iam::{ACCOUNT}:role/billing", database="shared")


@pytest.fixture(scope="module")
def server() -> Iterator[dict[str, str]]:
    with cloudformation.serving() as environment:
        yield environment


@pytest.fixture
def account(server: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty account, and a folder with a registry and the consumer's template."""
    cloudformation.reset(server)
    for name, text in server.items():
        monkeypatch.setenv(name, text)
    for name in ("AWS_PROFILE", "AWS_REGION", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    registry = tmp_path / "registry"
    registry.mkdir()
    (registry / "dq-policy.yaml").write_text("registry: air\n")
    (registry / "orders.odcs.yaml").write_text(
        promising("orders").replace("status: active", "status: active\ndomain: sales")
    )
    monkeypatch.chdir(registry)
    monkeypatch.setenv("DQ_LAKE_ROOTS", "s3://lake")
    monkeypatch.setenv("DQ_SCHEDULE_TARGET", f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:check")
    (registry / "link.json").write_text(json.dumps(CONSUMER))
    return registry


def landing_zone() -> dict[str, Any]:
    context = runtime_context(paths=(Path(),))
    stack = emit_landing_zone(context, context.store(), RegisterRequest((Path(),))).stack
    assert stack is not None
    return json.loads(json.dumps(stack))


def parts(**options: Any) -> list[HealthCheck]:
    """The rows about the stacks: those after the row of the account."""
    looks = list(dq.doctor(**options).looks)
    start = next(at for at, look in enumerate(looks) if look.name in ("account", "aws"))
    return looks[start:]


def broken(**options: Any) -> dict[str, str]:
    return {f"{look.name} {look.detail}": look.hint for look in parts(**options) if look.ok is False}


def create_consumer() -> None:
    cloudformation.create(CONSUMER, Image=IMAGE)
    cloudformation.create_alarms(CONSUMER, topic=f"arn:aws:sns:{REGION}:{ACCOUNT}:platform")
    new_session().client("lambda").put_function_event_invoke_config(
        FunctionName="dq-link-shared", DestinationConfig={"OnFailure": {"Destination": DEAD_LETTERS}}
    )
    new_session().client("lakeformation").put_data_lake_settings(
        DataLakeSettings={"DataLakeAdmins": [{"DataLakePrincipalIdentifier": ROLE}]}
    )


def test_an_empty_account_lacks_every_part_and_each_says_what_to_do(account: Path) -> None:
    rows = parts(aws=True, templates=["link.json"])

    assert (rows[0].name, rows[0].ok, rows[0].detail) == ("account", True, f"{ACCOUNT} in {REGION}")
    assert len(rows[1:]) == len(CONSUMER["Resources"])  # type: ignore[arg-type]
    assert all((row.ok, f"does not exist in {ACCOUNT}" in row.detail) == (False, True) for row in rows[1:])
    assert all("aws cloudformation deploy" in row.hint for row in rows[1:])


def test_a_complete_stack_lacks_nothing(account: Path) -> None:
    create_consumer()

    assert broken(aws=True, templates=["link.json"]) == {}
    assert {row.ok for row in parts(aws=True, templates=["link.json"])} == {True}


def test_each_part_that_is_wrong_says_what_it_lacks(account: Path) -> None:
    create_consumer()
    session = new_session()
    iam = session.client("iam")
    on = {"RoleName": "dq-link-shared", "PolicyName": "dq"}
    document = iam.get_role_policy(**on)["PolicyDocument"]
    for statement in document["Statement"]:
        statement["Action"] = [
            action for action in statement["Action"] if action != "glue:DeleteTable"
        ] or "a:B"
    iam.put_role_policy(**on, PolicyDocument=json.dumps(document))
    session.client("lakeformation").put_data_lake_settings(DataLakeSettings={"DataLakeAdmins": []})
    url = session.client("sqs").get_queue_url(QueueName="dq-link-shared-dead-letters")["QueueUrl"]
    session.client("sqs").send_message(QueueUrl=url, MessageBody="{}")
    session.client("events").disable_rule(Name="dq-link-shared-schedule")
    cloudwatch = session.client("cloudwatch")
    cloudwatch.delete_alarms(AlarmNames=["SilentAlarm"])
    cloudwatch.set_alarm_state(AlarmName="FailedAlarm", StateValue="ALARM", StateReason="x")
    session.client("logs").delete_log_group(logGroupName="/aws/lambda/dq-link-shared")

    assert list(broken(templates=["link.json"])) == [
        "IAM::Role dq-link-shared lacks the permissions glue:DeleteTable",
        "IAM::Role dq-link-shared is not a data lake administrator",
        "SQS::Queue dq-link-shared-dead-letters has 1 message of failed starts",
        f"Logs::LogGroup /aws/lambda/dq-link-shared does not exist in {ACCOUNT}",
        "Events::Rule dq-link-shared-schedule is disabled",
        "CloudWatch::Alarm FailedAlarm is in alarm: A run of dq link failed.",
        f"CloudWatch::Alarm SilentAlarm does not exist in {ACCOUNT}",
    ]


def test_a_function_without_its_destination_role_or_variables_says_so(account: Path) -> None:
    create_consumer()
    client = new_session().client("lambda")
    client.update_function_configuration(
        FunctionName="dq-link-shared",
        Role=f"arn:aws:iam::{ACCOUNT}:role/other",
        Environment={"Variables": {"DQ_LINK_OWNER": OWNER}},
    )
    client.delete_function_event_invoke_config(FunctionName="dq-link-shared")

    role, variables, destination = broken(templates=["link.json"])
    assert role.endswith(f"runs as arn:aws:iam::{ACCOUNT}:role/other, not as {ROLE}")
    assert variables.endswith("lacks the variables DQ_LINK_DATABASE, DQ_LINK_PRINCIPAL")
    assert destination == f"Lambda::EventInvokeConfig Failures does not exist in {ACCOUNT}"


def test_without_a_template_the_landing_zone_of_the_registry_is_checked(account: Path) -> None:
    before = sorted(path.name for path in account.rglob("*") if path.name != ".gitignore")
    assert f"Scheduler::ScheduleGroup dq does not exist in {ACCOUNT}" in broken(aws=True)
    # Nothing is created by looking, not even the state store.
    assert sorted(path.name for path in account.rglob("*") if path.name != ".gitignore") == before

    stack = landing_zone()
    cloudformation.create(stack, RegistrarPrincipal=f"arn:aws:iam::{ACCOUNT}:role/ci")
    session = new_session()
    session.client("scheduler").create_schedule_group(Name="dq")
    topic = f"arn:aws:sns:{REGION}:{ACCOUNT}:dq-sales"
    rows = {row.detail: row.ok for row in parts(aws=True)}

    # moto gives a topic AWS's own policy; the planner and the publisher are optional.
    assert [detail for detail, ok in rows.items() if ok is False] == [
        "Hearddqx2dsales lacks the statements Encrypted"
    ]
    assert [detail for detail, ok in rows.items() if ok is None] == [
        f"dq-planner does not exist in {ACCOUNT}",
        f"dq-publisher-sales does not exist in {ACCOUNT}",
    ]
    policy = {"Statement": [{"Sid": "Encrypted"}]}
    session.client("sns").set_topic_attributes(
        TopicArn=topic, AttributeName="Policy", AttributeValue=json.dumps(policy)
    )
    assert broken(aws=True) == {}


def test_the_watcher_is_checked_with_the_landing_zone_if_it_is_deployed(
    account: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_consumer()
    without = [row.detail for row in parts(aws=True)]
    client = new_session().client("lambda")
    client.create_function(
        FunctionName="dq-watcher", Role=ROLE, Code={"ImageUri": IMAGE}, PackageType="Image"
    )

    assert not any("dq-watcher" in detail for detail in without)
    rows = broken(aws=True)
    assert f"IAM::Role dq-watcher does not exist in {ACCOUNT}" in rows
    assert f"SQS::Queue dq-object-events does not exist in {ACCOUNT}" in rows
    with cloudformation.refusing("lambda") as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL_LAMBDA", url)
        (unknown,) = [row for row in parts(aws=True) if row.name == "watcher"]
    assert (unknown.ok, "AWS refused to read Lambda::Function dq-watcher" in unknown.detail) == (None, True)


def test_every_type_of_both_stacks_has_a_check(account: Path) -> None:
    stacks: list[Any] = [CONSUMER, landing_zone()]

    assert {part["Type"] for stack in stacks for part in stack["Resources"].values()} <= set(CHECKS)


def test_without_credentials_or_an_answer_there_is_one_row_and_no_traceback(
    account: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)

    assert run(["doctor", "--aws"]) == 3

    captured = capsys.readouterr()
    assert ("Unable to locate credentials" in captured.out, "Traceback" in captured.err) == (True, False)


def test_a_refused_call_is_no_part_that_is_there(account: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    create_consumer()
    with cloudformation.refusing("lambda") as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL_LAMBDA", url)
        rows = broken(templates=["link.json"])

    kinds = ("Function", "EventInvokeConfig", "Permission", "Permission")
    assert [row.split()[0] for row in rows] == [f"Lambda::{kind}" for kind in kinds]
    assert all("AWS refused to read" in row and "AccessDeniedException" in row for row in rows)
    assert all("privileges.md" in hint for hint in rows.values())


@pytest.mark.parametrize("text", ["", "[]", '{"Resources": []}', '{"Resources": {"A": 1}}', "Resources:\n"])
def test_a_file_that_is_no_template_is_refused(account: Path, text: str) -> None:
    (account / "other.json").write_text(text)

    assert list(broken(templates=["other.json"])) == [
        "aws other.json is not a CloudFormation template in JSON."
    ]
    assert "gone.json does not exist" in next(iter(broken(templates=["gone.json"])))
