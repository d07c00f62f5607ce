"""The landing zone as a user prints it, and the actions of IAM against the calls that dq makes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore import xform_name
from botocore.loaders import Loader
from botocore.model import ServiceModel
from cfnlint import lint
from fakes.glue import GlueShim
from fakes.scheduler import promising

from dq.cli.main import run
from dq.registry.landing import privileges

ROOT = Path(__file__).parents[2]
TARGET = "arn:aws:lambda:eu-central-1:123456789012:function:check"


@pytest.fixture
def landing(glue: GlueShim, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "contracts"
    folder.mkdir()
    (folder / "dq-policy.yaml").write_text("registry: air\n")
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
    assert everywhere == {*privileges.LAKE_FORMATION, *privileges.SCHEDULE_LISTS}
    assert not [action for one in made for action in one["Action"] if "*" in action]
    assert "database/*" not in named
    assert sorted(set(re.findall('database/([^"]+)', named))) == ["air_fares", "sales"]
    passed = [one for one in made if one["Action"] == ["iam:PassRole"]]
    assert [one["Condition"]["StringEquals"]["iam:PassedToService"] for one in passed] == [
        "scheduler.amazonaws.com",
        "lakeformation.amazonaws.com",
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

    known = {*stack["Resources"], *stack["Parameters"], "AWS::AccountId"}
    assert set(references(stack)) <= known
    assert set(references(stack)) >= {"ScheduleGroup", "DeadLetters", "SchedulerRole", "LakeReader"}


def test_aws_own_linter_finds_nothing(
    landing: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = emitted(capsys)
    for name in ("DQ_SCHEDULE_TARGET", "DQ_LAKE_FORMATION", "DQ_LAKE_FORMATION_LOCATIONS"):
        monkeypatch.delenv(name)
    least = emitted(capsys)

    told = {text: [str(one) for one in lint(text, regions=["eu-central-1"])] for text in (whole, least)}
    assert told == {whole: [], least: []}
    # What is wrong is found.
    wrong = whole.replace('"TopicName"', '"TopicNames"')
    assert any("TopicNames" in str(one) for one in lint(wrong, regions=["eu-central-1"]))


def test_the_stack_has_what_the_settings_and_domains_name(
    landing: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = json.loads(emitted(capsys))["Resources"].values()
    names = {key: value for one in made for key, value in one["Properties"].items() if key.endswith("Name")}
    topics = [one["Properties"]["TopicName"] for one in made if one["Type"] == "AWS::SNS::Topic"]
    roles = {one["Properties"]["RoleName"] for one in made if one["Type"] == "AWS::IAM::Role"}
    assert (sorted(topics), names["QueueName"]) == (["dq-air-fares", "dq-sales"], "dq-dead-letters")
    assert roles == {"dq-registrar", "dq-scheduler", "dq-lake-reader"}


def test_without_a_refused_contract_nothing_is_printed(
    landing: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (landing / "broken.odcs.yaml").write_text("kind: [")

    assert run(["register", "contracts", "--emit-landing-zone"]) == 3

    told = capsys.readouterr()
    assert (told.out, "broken.odcs.yaml" in told.err) == ("", True)


@pytest.mark.parametrize(
    ("service", "folder", "actions"),
    [
        ("glue", "glue", privileges.GLUE),
        ("lakeformation", "lake_formation", privileges.LAKE_FORMATION),
        (
            "scheduler",
            "scheduler",
            (*privileges.SCHEDULES, *privileges.SCHEDULE_GROUP, *privileges.SCHEDULE_LISTS),
        ),
    ],
)
def test_the_actions_are_those_that_are_called(service: str, folder: str, actions: tuple[str, ...]) -> None:
    model = ServiceModel(Loader().load_service_model(service, "service-2"))
    names = {xform_name(one): one for one in model.operation_names}
    source = "".join(
        file.read_text() for file in (ROOT / "registry" / folder).glob("*.py") if file.name != "link.py"
    )
    # A call of the client, or the name of a paginator.
    words = re.findall(r"\bclient\.([a-z_]+)\b|[\"']([a-z_]+)[\"']", source)
    called = {names[word] for pair in words for word in pair if word in names}

    assert sorted(f"{service}:{one}" for one in called) == sorted(actions)


def test_the_pages_name_the_same_actions() -> None:
    pages = {
        "register.md": {
            *privileges.GLUE,
            *privileges.SCHEDULES,
            *privileges.SCHEDULE_GROUP,
            *privileges.SCHEDULE_LISTS,
        },
        "subscriptions.md": set(privileges.LAKE_FORMATION),
    }
    for page, actions in pages.items():
        text = (ROOT / "docs" / "how-to" / page).read_text()
        platform = text.split("## For the consumer", 1)[0]
        told = set(re.findall(r'"((?:glue|scheduler|lakeformation):[A-Za-z]+)"', platform))
        assert told == actions, page
