"""The landing zone as a user prints it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cfnlint import lint
from fakes import cloudformation
from fakes.glue import GlueShim
from fakes.scheduler import promising

from dq.cli.main import run
from dq.contracts.outcome import UsageError
from dq.registry.aws.client import new_session
from dq.registry.landing_zone import (
    PUBLISHER,
    REGISTRAR,
    WATCHER,
    Domain,
    LandingZone,
    actions_of,
    template,
)

TARGET = "arn:aws:lambda:eu-central-1:123456789012:function:check"

SUBSCRIPTION = """\
contract: orders
major: 1
consumer: {team: billing, account: '210987654321'}
purpose: Invoices.
columns: [orders.Id]
startDate: 2020-01-01
"""


@pytest.fixture
def landing(glue: GlueShim, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "contracts"
    folder.mkdir()
    (folder / "dq-policy.yaml").write_text(
        "registry: air\nrules: {subscription-without-approver: {proof: names, other_accounts: false}}\n"
    )
    for name, domain in (("orders", "sales"), ("lines", "sales"), ("fares", "air-fares")):
        text = promising(name).replace("status: active", f"status: active\ndomain: {domain}")
        (folder / f"{name}.odcs.yaml").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DQ_LAKE_ROOTS", "s3://lake")
    monkeypatch.setenv("DQ_SCHEDULE_TARGET", TARGET)
    monkeypatch.setenv("DQ_LAKE_FORMATION", "locations")
    monkeypatch.setenv("DQ_LAKE_FORMATION_LOCATIONS", "s3://lake/sales")
    return folder


def emitted(capsys: pytest.CaptureFixture[str], *more: str) -> str:
    capsys.readouterr()
    assert run(["register", "contracts", "--emit-landing-zone", *more]) == 0
    return capsys.readouterr().out


def statements(stack: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for one in stack["Resources"].values():
        for policy in one["Properties"].get("Policies", ()):
            yield from policy["PolicyDocument"]["Statement"]


def test_the_same_contracts_give_the_same_bytes_and_aws_is_not_asked(
    glue: GlueShim, landing: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = emitted(capsys)
    files = {file: file.read_bytes() for file in landing.glob("*.odcs.yaml")}
    for file, text in files.items():
        file.rename(file.with_name(f"{'z' if file.name < 'm' else 'a'}-{file.name}"))
        assert text
    second = emitted(capsys)

    assert (first == second, glue.calls) == (True, [])


def test_no_role_reaches_more_than_is_named(landing: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stack = json.loads(emitted(capsys))

    made = list(statements(stack))
    everywhere = {action for one in made if "*" in one["Resource"] for action in one["Action"]}
    named = json.dumps([one["Resource"] for one in made if "*" not in one["Resource"]])
    assert everywhere
    assert {action.split(":")[0] for action in everywhere} == {"lakeformation", "scheduler"}
    assert {action for action in everywhere if action.startswith("scheduler:")} == {"scheduler:ListSchedules"}
    assert not [action for one in made for action in one["Action"] if "*" in action]
    assert "database/*" not in named
    assert sorted(set(re.findall('database/([^"]+)', named))) == ["air_fares", "sales"]
    passed = [one for one in made if one["Action"] == ["iam:PassRole"]]
    assert sorted(one["Condition"]["StringEquals"]["iam:PassedToService"] for one in passed) == [
        "lakeformation.amazonaws.com",
        "scheduler.amazonaws.com",
    ]


def test_every_reference_leads_to_something_of_the_stack(
    landing: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stack = json.loads(emitted(capsys))

    def references(node: Any) -> Iterator[str]:
        if isinstance(node, dict):
            if "Ref" in node:
                yield node["Ref"]
            if "Fn::GetAtt" in node:
                yield node["Fn::GetAtt"][0]
            yield from (one for value in node.values() for one in references(value))
        elif isinstance(node, list):
            yield from (one for value in node for one in references(value))

    known = {*stack["Resources"], *stack["Parameters"], "AWS::AccountId", "AWS::NoValue"}
    assert set(references(stack)) <= known
    assert set(references(stack)) >= {"ScheduleGroup", "DeadLetters", "SchedulerRole", "LakeReader"}


def test_aws_own_linter_finds_nothing(
    landing: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (landing / "subscriptions").mkdir()
    (landing / "subscriptions" / "billing.yaml").write_text(SUBSCRIPTION)
    whole = emitted(capsys)
    assert "210987654321" in whole
    for name in ("DQ_SCHEDULE_TARGET", "DQ_LAKE_FORMATION", "DQ_LAKE_FORMATION_LOCATIONS"):
        monkeypatch.delenv(name)
    least = emitted(capsys)

    told = {text: [str(one) for one in lint(text, regions=["eu-central-1"])] for text in (whole, least)}
    assert told == {whole: [], least: []}
    # What is wrong is found.
    wrong = whole.replace('"TopicName"', '"TopicNames"')
    assert any("TopicNames" in str(one) for one in lint(wrong, regions=["eu-central-1"]))


def test_the_watcher_is_added_and_aws_own_linter_finds_nothing(
    landing: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    without = json.loads(emitted(capsys))
    whole = emitted(capsys, "--watcher")
    for name in ("DQ_SCHEDULE_TARGET", "DQ_LAKE_FORMATION", "DQ_LAKE_FORMATION_LOCATIONS"):
        monkeypatch.delenv(name)
    least = emitted(capsys, "--watcher")

    told = {text: [str(one) for one in lint(text, regions=["eu-central-1"])] for text in (whole, least)}
    assert told == {whole: [], least: []}
    stack = json.loads(whole)
    kinds = {one["Type"] for name, one in stack["Resources"].items() if name not in without["Resources"]}
    assert kinds == {
        *("AWS::Lambda::Function", "AWS::Lambda::EventInvokeConfig", "AWS::Lambda::EventSourceMapping"),
        *("AWS::IAM::Role", "AWS::Logs::LogGroup", "AWS::Scheduler::Schedule", "AWS::Events::Rule"),
        *("AWS::SQS::Queue", "AWS::SQS::QueuePolicy", "AWS::CloudWatch::Alarm"),
    }
    # Nothing else changes but what the scheduler may start.
    changed = [name for name, one in without["Resources"].items() if stack["Resources"][name] != one]
    assert changed == ["SchedulerRole"]


def test_the_watcher_gets_the_events_of_the_tables_and_reaches_nothing_else(
    landing: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = json.loads(emitted(capsys, "--watcher"))["Resources"]

    prefixes = [{"prefix": f"sales/{name}/"} for name in ("fares", "lines", "orders")]
    pattern = made["ObjectEventslake"]["Properties"]["EventPattern"]
    assert pattern["detail"] == {"bucket": {"name": ["lake"]}, "object": {"key": prefixes}}
    variables = made["Watcher"]["Properties"]["Environment"]["Variables"]
    assert variables["DQ_LAKE_ROOTS"] == "s3://lake"
    assert variables["DQ_STORE_URL"] == {"Fn::Sub": "{{resolve:secretsmanager:${StoreSecret}}}"}
    (policy,) = made["WatcherRole"]["Properties"]["Policies"]
    plain = [one for one in policy["PolicyDocument"]["Statement"] if "Fn::If" not in one]
    (network,) = [one["Fn::If"][1] for one in policy["PolicyDocument"]["Statement"] if "Fn::If" in one]
    allowed = {action for one in (*plain, network) for action in one["Action"]}
    # The catalog is the setting `watch_catalog`'s.
    assert allowed == {action for action in actions_of(WATCHER) if not action.startswith("glue:")}
    assert not [one for one in plain if "*" in one["Resource"]]
    assert "s3:::lake/*" not in json.dumps(plain)
    started = made["SchedulerRole"]["Properties"]["Policies"][0]["PolicyDocument"]["Statement"]
    assert [one["Resource"] for one in started if one["Action"] == ["lambda:InvokeFunction"]] == [
        [{"Fn::GetAtt": ["Watcher", "Arn"]}],
        [TARGET, f"{TARGET}:*"],
    ]


def test_a_watcher_without_a_stack_is_a_mistake(landing: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["register", "contracts", "--watcher"]) == 2
    assert "--watcher is for --emit-landing-zone" in capsys.readouterr().err


def test_the_stack_has_what_the_settings_and_domains_name(
    landing: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = json.loads(emitted(capsys))["Resources"].values()
    names = {key: value for one in made for key, value in one["Properties"].items() if key.endswith("Name")}
    topics = [one["Properties"]["TopicName"] for one in made if one["Type"] == "AWS::SNS::Topic"]
    roles = {one["Properties"]["RoleName"] for one in made if one["Type"] == "AWS::IAM::Role"}
    assert (sorted(topics), names["QueueName"]) == (["dq-air-fares", "dq-sales"], "dq-dead-letters")
    assert roles == {
        *("dq-registrar", "dq-planner", "dq-scheduler", "dq-lake-reader"),
        *("dq-publisher-sales", "dq-publisher-air-fares"),
    }


def test_without_a_refused_contract_nothing_is_printed(
    landing: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (landing / "broken.odcs.yaml").write_text("kind: [")

    assert run(["register", "contracts", "--emit-landing-zone"]) == 3

    told = capsys.readouterr()
    assert (told.out, "broken.odcs.yaml" in told.err) == ("", True)


def test_a_publisher_reaches_its_own_domain_and_no_other(
    landing: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = json.loads(emitted(capsys))["Resources"]["Publisherdqx2dsales"]

    (policy,) = made["Properties"]["Policies"]
    found = policy["PolicyDocument"]["Statement"]
    assert {action for one in found for action in one["Action"]} == actions_of(PUBLISHER)
    by_action = {action: one for one in found for action in one["Action"]}
    below = "arn:${AWS::Partition}:s3:::lake/sales"
    assert by_action["s3:PutObject"]["Resource"] == [
        {"Fn::Sub": f"{below}/{name}/{marker}"}
        for marker in ("_SUCCESS", "*/_SUCCESS")
        for name in ("lines", "orders")
    ]
    prefixes = by_action["s3:ListBucket"]["Condition"]["StringLike"]["s3:prefix"]
    assert prefixes == ["sales/lines", "sales/lines/*", "sales/orders", "sales/orders/*"]
    assert by_action["sns:Publish"]["Resource"] == [{"Ref": "Topicdqx2dsales"}]
    assert "air_fares" not in json.dumps(found)
    (trust,) = made["Properties"]["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Condition"] == {"StringEquals": {"aws:PrincipalTag/dq-domain": "sales"}}


def subscribers(stack: dict[str, Any], topic: str) -> list[str]:
    statements = stack["Resources"][f"Heard{topic}"]["Properties"]["PolicyDocument"]["Statement"]
    found = [one for one in statements if one.get("Sid") == "Subscribers"]
    return [account for one in found for account in one["Principal"]["AWS"]]


def test_who_has_a_subscription_that_is_not_over_may_subscribe_to_its_topic(
    landing: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = landing / "subscriptions"
    folder.mkdir()
    (folder / "billing.yaml").write_text(SUBSCRIPTION)
    role = SUBSCRIPTION.replace("account: '210987654321'", "principal: 'arn:aws:iam::345678901234:role/r'")
    (folder / "role.yaml").write_text(role.replace("billing", "roles"))
    over = SUBSCRIPTION.replace("210987654321", "456789012345").replace("billing", "over")
    (folder / "over.yaml").write_text(over + "endDate: 2020-12-31\n")

    stack = json.loads(emitted(capsys))

    assert subscribers(stack, "dqx2dsales") == ["210987654321", "345678901234"]
    assert subscribers(stack, "dqx2dairx2dfares") == []


def test_where_a_subscription_is_refused_nothing_is_printed(
    landing: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (landing / "subscriptions").mkdir()
    (landing / "subscriptions" / "billing.yaml").write_text(SUBSCRIPTION.replace("orders.Id", "orders.gone"))

    assert run(["register", "contracts", "--emit-landing-zone"]) == 3

    told = capsys.readouterr()
    assert (told.out, "subscription-column-unknown" in told.err) == ("", True)


def test_a_name_in_a_contract_widens_no_role() -> None:
    folder = "s3://lake/sales/*/${aws:username}/a?"
    stack = template(LandingZone([Domain("sales", "dq-sales", ["sales"], [folder])], ["sales"]))

    text = json.dumps(stack["Resources"]["Publisherdqx2dsales"])
    # As Fn::Sub writes them, and as IAM reads them then: themselves.
    assert "lake/sales/${!*}/${!$}{aws:username}/a${!?}/*" in text
    assert '"sales/${*}/${$}{aws:username}/a${?}/*"' in text


def deployed(document: Any) -> int:
    """The characters of a policy as AWS counts them, without spaces, where everything has its name."""
    text = json.dumps(document, separators=(",", ":"))
    for name, value in (("Partition", "aws-us-gov"), ("Region", "us-gov-west-1"), ("AccountId", "1" * 12)):
        text = text.replace(f"${{AWS::{name}}}", value)
    return len(re.sub(r'\{"Fn::Sub":("[^"]*")\}', r"\1", text))


@pytest.mark.parametrize(("count", "length", "more"), [(20, 40, 0), (300, 40, 11), (60, 255, 7)])
def test_many_databases_fit_into_what_a_role_may_hold(count: int, length: int, more: int) -> None:
    names = [f"{at:03}".rjust(length, "d") for at in range(count)]
    if more > 10:
        with pytest.raises(UsageError, match="300 databases"):
            template(LandingZone([], names))
        return
    made = template(LandingZone([], names, governed=True, target=TARGET, locations=["s3://lake"]))[
        "Resources"
    ]

    policies = [one for one in made.values() if one["Type"] == "AWS::IAM::ManagedPolicy"]
    assert len(policies) == 2 * more
    assert all(deployed(one["Properties"]["PolicyDocument"]) <= 6_144 for one in policies)
    assert deployed(made["Registrar"]["Properties"]["Policies"][0]["PolicyDocument"]) <= 10_240
    text = json.dumps(made)
    assert all(f"table/{name}/*" in text for name in names)


@pytest.mark.parametrize(
    ("zone", "said"),
    [
        (LandingZone([Domain(f"d{at}", f"dq-d{at}") for at in range(200)], []), "500 resources"),
    ],
)
def test_what_no_stack_can_hold_is_said(zone: LandingZone, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        template(zone)


def test_moto_creates_the_stack_as_far_as_it_knows_its_resources(
    landing: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    stack = json.loads(emitted(capsys))
    with cloudformation.serving() as environment:
        for name, text in environment.items():
            monkeypatch.setenv(name, text)
        outputs = cloudformation.create(
            stack,
            RegistrarPrincipal="arn:aws:iam::123456789012:role/ci",
            PublisherPrincipals="arn:aws:iam::123456789012:role/orders,arn:aws:iam::123456789012:role/fares",
        )
        client = new_session().client("iam")
        role = client.get_role(RoleName="dq-publisher-sales")["Role"]
        policy = client.get_role_policy(RoleName="dq-registrar", PolicyName="dq")["PolicyDocument"]

    assert cloudformation.unsupported(stack) == {"AWS::Scheduler::ScheduleGroup", "AWS::SNS::TopicPolicy"}
    account = "arn:aws:iam::123456789012:role"
    assert outputs["Topicdqx2dsales"] == "arn:aws:sns:eu-central-1:123456789012:dq-sales"
    assert outputs["DeadLetters"] == "arn:aws:sqs:eu-central-1:123456789012:dq-dead-letters"
    assert outputs["SchedulerRole"] == f"{account}/dq-scheduler"
    # No principal plans.
    assert "Planner" not in outputs
    (trust,) = role["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Principal"] == {"AWS": [f"{account}/orders", f"{account}/fares"]}
    assert {action for one in policy["Statement"] for action in one["Action"]} == actions_of(REGISTRAR)
