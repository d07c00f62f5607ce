"""The consumer's side of a share: `dq link`, and the function of its stack, which does the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from fakes import consumer
from fakes.consumer import CONSUMER, OWNER, READER, REGION, ConsumerGateway

from dq.aws.consumer_handler import handler
from dq.cli.main import run
from dq.contracts.outcome import DqError, ReadError, UsageError
from dq.registry.aws.client import new_session
from dq.registry.consumer_stack import LinkScope
from dq.registry.landing_zone import CONSUMER as CONSUMER_DUTY
from dq.registry.landing_zone import actions_of

STRANGER = "999999999999"
OTHER_READER = f"arn:aws:iam::{CONSUMER}:role/marketing"


@pytest.fixture(scope="module")
def gateway_server() -> Iterator[ConsumerGateway]:
    with consumer.serving() as gateway:
        yield gateway


@pytest.fixture
def gateway(gateway_server: ConsumerGateway, monkeypatch: pytest.MonkeyPatch) -> ConsumerGateway:
    """The consumer's account: empty, and the environment of its function, which links all tables."""
    gateway_server.reset()
    for name, text in gateway_server.environment.items():
        monkeypatch.setenv(name, text)
    for name in ("AWS_PROFILE", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    for name, text in LinkScope(OWNER, READER, "shared").as_environment().items():
        monkeypatch.setenv(name, text)
    return gateway_server


def linked(database: str = "shared") -> dict[str, str]:
    """The links of a database, by name, with their targets."""
    tables = new_session().client("glue", region_name=REGION).get_tables(DatabaseName=database)["TableList"]
    targets = {table["Name"]: table.get("TargetTable") for table in tables}
    return {
        name: "{CatalogId}:{DatabaseName}.{Name}".format(**target) if target else ""
        for name, target in targets.items()
    }


def described(link: str) -> list[str]:
    """Who has DESCRIBE on a link of the database."""
    client = new_session().client("lakeformation", region_name=REGION)
    rows = client.list_permissions(Resource={"Table": {"DatabaseName": "shared", "Name": link}})
    found = rows["PrincipalResourcePermissions"]
    return [row["Principal"]["DataLakePrincipalIdentifier"] for row in found if row["Permissions"]]


def parameters(database: str = "shared") -> dict[str, str]:
    answer = new_session().client("glue", region_name=REGION).get_database(Name=database)
    return dict(answer["Database"].get("Parameters") or {})


def link(*words: str) -> int:
    return run(["link", *words, "--owner", OWNER, "--principal", READER, "--database", "shared"])


def test_the_function_accepts_the_share_links_every_table_and_grants_what_was_shared(
    gateway: ConsumerGateway,
) -> None:
    gateway.invite(status="EXPIRED")
    gateway.invite()
    gateway.share("sales.orders", "id", "amount")
    gateway.share("sales.lines", "*")
    gateway.share("sales.fares", "filter:dq_1")

    result = handler({}, None)

    assert linked() == {name: f"{OWNER}:sales.{name}" for name in ("fares", "lines", "orders")}
    assert gateway.granted == {
        ("sales.orders", READER): {"id", "amount"},
        ("sales.lines", READER): {"*"},
        ("sales.fares", READER): {"filter:dq_1"},
    }
    assert [described(name) for name in linked()] == [[READER]] * 3
    assert [one["status"] for one in gateway.invitations] == ["EXPIRED", "ACCEPTED"]
    assert result["problems"] == []
    steps = result["steps"]
    assert isinstance(steps, list)
    assert steps[0] == {"action": "accept the share", "subject": f"LakeFormation-V3-1 of {OWNER}"}
    assert {"action": "create the database", "subject": "shared"} in steps


def test_run_twice_it_changes_nothing(gateway: ConsumerGateway) -> None:
    gateway.invite()
    gateway.share("sales.orders", "id")
    handler({}, None)
    gateway.calls.clear()

    assert handler({}, None) == {"steps": [], "problems": [], "notes": []}
    assert gateway.writes() == []


def test_the_share_of_a_foreign_account_is_not_accepted(gateway: ConsumerGateway) -> None:
    gateway.invite(sender=STRANGER)
    gateway.invite()
    gateway.share("sales.orders", "id")

    # Whoever can start the function cannot choose for whom.
    handler({"owner": STRANGER, "Owner": STRANGER, "DQ_LINK_OWNER": STRANGER}, None)

    assert [one["status"] for one in gateway.invitations] == ["PENDING", "ACCEPTED"]
    # The gateway lists a table that the stranger shares, too.
    assert list(linked()) == ["orders"]


def test_a_changed_subscription_is_followed(gateway: ConsumerGateway) -> None:
    gateway.share("sales.orders", "id", "amount")
    handler({}, None)
    gateway.share("sales.orders", "id", "country")
    gateway.share("sales.lines", "id")

    result = handler({}, None)

    assert gateway.granted == {
        ("sales.orders", READER): {"id", "country"},
        ("sales.lines", READER): {"id"},
    }
    assert list(linked()) == ["orders", "lines"]
    assert {
        "action": "grant SELECT on the target",
        "subject": f"sales.orders for {READER}: country",
    } in result["steps"]  # type: ignore[operator]


def test_columns_that_aws_left_with_the_reader_are_revoked(gateway: ConsumerGateway) -> None:
    gateway.cascades = False
    gateway.share("sales.orders", "id", "amount")
    handler({}, None)
    gateway.share("sales.orders", "id")

    handler({}, None)

    assert gateway.granted == {("sales.orders", READER): {"id"}}


@pytest.mark.parametrize("cascades", [True, False])
def test_what_has_ended_is_taken_back(gateway: ConsumerGateway, cascades: bool) -> None:
    gateway.cascades = cascades
    gateway.share("sales.orders", "id")
    gateway.share("sales.lines", "id")
    handler({}, None)
    gateway.share("sales.orders")

    result = handler({}, None)

    assert linked() == {"lines": f"{OWNER}:sales.lines"}
    assert gateway.granted == {("sales.lines", READER): {"id"}}
    assert list(parameters()) == ["dq.link.lines"]
    assert described("orders") == []
    assert result["notes"] == [f"{OWNER}:sales.orders is not shared with {CONSUMER}."]
    gateway.calls.clear()
    assert handler({}, None)["steps"] == []
    assert gateway.writes() == []


def test_links_and_tables_of_somebody_else_are_left_alone(gateway: ConsumerGateway) -> None:
    glue = new_session().client("glue", region_name=REGION)
    glue.create_database(DatabaseInput={"Name": "shared", "Description": "Ours.", "Parameters": {"a": "b"}})
    target = {"CatalogId": OWNER, "DatabaseName": "sales", "Name": "orders"}
    glue.create_table(DatabaseName="shared", TableInput={"Name": "orders", "TargetTable": target})
    glue.create_table(DatabaseName="shared", TableInput={"Name": "own"})
    gone = {"CatalogId": STRANGER, "DatabaseName": "hr", "Name": "gone"}
    glue.create_table(DatabaseName="shared", TableInput={"Name": "gone", "TargetTable": gone})
    gateway.share("sales.orders", "id")
    handler({}, None)
    assert gateway.granted == {("sales.orders", READER): {"id"}}
    gateway.share("sales.orders")

    handler({}, None)

    assert linked() == {"orders": f"{OWNER}:sales.orders", "own": "", "gone": f"{STRANGER}:hr.gone"}
    database = glue.get_database(Name="shared")["Database"]
    assert (database["Description"], database["Parameters"]) == ("Ours.", {"a": "b"})
    assert "glue:DeleteTable" not in gateway.calls


def test_a_table_with_the_name_of_the_link_is_a_problem_of_this_table_alone(
    gateway: ConsumerGateway,
) -> None:
    glue = new_session().client("glue", region_name=REGION)
    glue.create_database(DatabaseInput={"Name": "shared"})
    glue.create_table(DatabaseName="shared", TableInput={"Name": "lines"})
    gateway.share("sales.lines", "id")
    gateway.share("sales.orders", "id")

    with pytest.raises(DqError, match=rf"shared\.lines exists and is not a link to {OWNER}:sales\.lines"):
        handler({}, None)

    assert linked() == {"lines": "", "orders": f"{OWNER}:sales.orders"}
    assert gateway.granted == {("sales.orders", READER): {"id"}}


def test_a_link_stays_while_another_reader_uses_it(
    gateway: ConsumerGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Two subscriptions of roles, not of the account; each role has a stack of its own.
    gateway.share("sales.orders", "id", principal=READER)
    gateway.share("sales.orders", "id", principal=OTHER_READER)
    handler({}, None)
    monkeypatch.setenv("DQ_LINK_PRINCIPAL", OTHER_READER)
    handler({}, None)
    assert sorted(described("orders")) == [READER, OTHER_READER]

    gateway.share("sales.orders", principal=OTHER_READER)
    # It is still shared with somebody of this account, so the list alone decides nothing.
    assert handler({}, None)["notes"] == [
        f"{OWNER}:sales.orders is shared, but not with {CONSUMER} with the grant option, "
        f"or with {OTHER_READER}."
    ]
    monkeypatch.setenv("DQ_LINK_PRINCIPAL", READER)
    assert handler({}, None)["steps"] == []
    gateway.share("sales.orders", principal=READER)
    handler({}, None)
    assert linked() == {"orders": f"{OWNER}:sales.orders"}
    monkeypatch.setenv("DQ_LINK_PRINCIPAL", OTHER_READER)
    handler({}, None)

    assert (linked(), parameters(), gateway.granted) == ({}, {}, {})


def test_a_table_that_glue_does_not_list_yet_keeps_its_link(
    gateway: ConsumerGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DQ_LINK_TABLES", "sales.orders")
    gateway.share("sales.orders", "id")
    gateway.unlisted.add("sales.orders")

    handler({}, None)
    assert handler({}, None) == {"steps": [], "problems": [], "notes": []}

    assert list(linked()) == ["orders"]


@pytest.mark.parametrize(
    "refused", ["glue:SearchTables", "lakeformation:ListPermissions", "glue:GetDatabase"]
)
def test_without_a_permission_nothing_is_taken_back(gateway: ConsumerGateway, refused: str) -> None:
    gateway.share("sales.orders", "id")
    handler({}, None)
    gateway.calls.clear()
    gateway.refused.add(refused)

    if refused == "lakeformation:ListPermissions":
        # The list of shared tables says that it is still shared.
        assert handler({}, None)["steps"] == []
    else:
        with pytest.raises(ReadError, match="AWS refused"):
            handler({}, None)

    assert gateway.writes() == []


def test_a_run_that_was_interrupted_is_completed_and_forgets_nothing(gateway: ConsumerGateway) -> None:
    gateway.share("sales.orders", "id")
    for refused in ("glue:CreateTable", "lakeformation:GrantPermissions"):
        gateway.refused = {refused}
        with pytest.raises(ReadError, match="AWS refused"):
            handler({}, None)
    gateway.refused = set()
    handler({}, None)
    assert gateway.granted == {("sales.orders", READER): {"id"}}
    gateway.share("sales.orders")
    for refused in ("lakeformation:RevokePermissions", "glue:DeleteTable"):
        gateway.refused = {refused}
        with pytest.raises(ReadError, match="AWS refused"):
            handler({}, None)
    gateway.refused = set()

    handler({}, None)

    assert (linked(), parameters(), described("orders")) == ({}, {}, [])


def test_it_calls_what_its_duty_allows(gateway: ConsumerGateway) -> None:
    gateway.cascades = False
    gateway.invite()
    gateway.share("sales.orders", "id")
    handler({}, None)
    gateway.share("sales.orders")
    handler({}, None)

    assert set(gateway.calls) == actions_of(CONSUMER_DUTY)


def test_the_command_shows_the_plan_and_prune_only_takes_back_if_it_is_set(
    gateway: ConsumerGateway, capsys: pytest.CaptureFixture[str]
) -> None:
    gateway.share("sales.orders", "id", "amount")
    assert link("sales.orders") == 0
    assert capsys.readouterr().out.splitlines() == [
        "  + create the database shared",
        f"  + create the link shared.orders to {OWNER}:sales.orders",
        f"  + grant DESCRIBE on the link shared.orders for {READER}",
        f"  + grant SELECT on the target sales.orders for {READER}: amount, id",
        "No changes made. Use --apply to apply this plan.",
    ]
    assert gateway.writes() == []
    assert link("--apply") == 0
    capsys.readouterr()
    assert link("Sales.Orders") == 0
    assert capsys.readouterr().out == "Nothing to do.\n"

    gateway.share("sales.orders")
    assert link() == 0
    assert capsys.readouterr().out == "Nothing to do.\n"
    assert link("--prune") == 0
    assert capsys.readouterr().out.splitlines() == [
        f"  - revoke SELECT on the target sales.orders for {READER}: amount, id",
        f"  - revoke DESCRIBE on the link shared.orders for {READER}",
        f"  - delete the link shared.orders to {OWNER}:sales.orders",
        "No changes made. Use --apply to apply this plan.",
    ]
    assert list(linked()) == ["orders"]
    assert link("--prune", "--apply") == 0
    assert linked() == {}


def test_a_link_with_a_name_of_its_own_is_followed_by_that_name(gateway: ConsumerGateway) -> None:
    gateway.share("sales.orders", "id")
    assert link("sales.orders", "--name", "theirs", "--apply") == 0
    gateway.calls.clear()

    assert handler({}, None)["steps"] == []
    assert linked() == {"theirs": f"{OWNER}:sales.orders"}


def test_what_was_not_shared_to_be_passed_on_is_a_problem_with_whom_to_ask(
    gateway: ConsumerGateway, capsys: pytest.CaptureFixture[str]
) -> None:
    assert link("sales.orders", "--apply") == 3

    assert (
        f"{OWNER} has not shared sales.orders with {CONSUMER} with the grant option"
        in capsys.readouterr().err
    )


def test_a_database_that_is_a_link_itself_is_refused(
    gateway: ConsumerGateway, capsys: pytest.CaptureFixture[str]
) -> None:
    target = {"CatalogId": OWNER, "DatabaseName": "sales"}
    database: dict[str, Any] = {"Name": "shared", "TargetDatabase": target}
    new_session().client("glue", region_name=REGION).create_database(DatabaseInput=database)
    gateway.share("sales.orders", "id")
    gateway.calls.clear()

    assert link("sales.orders", "--apply") == 3

    assert "database shared is a link to a database of another account" in capsys.readouterr().err
    assert gateway.writes() == []


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"target": 1}', '{"target": "a", "created": true, "grants": []}']
)
def test_a_record_that_is_not_from_dq_is_ignored(gateway: ConsumerGateway, text: str) -> None:
    glue = new_session().client("glue", region_name=REGION)
    glue.create_database(DatabaseInput={"Name": "shared", "Parameters": {"dq.link.orders": text}})
    glue.create_table(DatabaseName="shared", TableInput={"Name": "orders"})

    assert handler({}, None)["steps"] == []

    assert linked() == {"orders": ""}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--prune"], "--database is required with --prune"),
        ([], "--database is required without a table"),
        (["--emit-stack"], "--database is required with --emit-stack"),
        (["a.b", "a.c", "--name", "x"], "--name names one link, and 2 tables were passed"),
        (["a.b", "--emit-stack", "--database", "${AWS::Region}"], "invalid --database"),
        (["a.*", "--emit-stack", "--database", "shared"], "invalid table 'a.*'"),
        (["a.b", "--emit-stack", "--database", "shared", "--region", "*"], "invalid --region '*'"),
    ],
)
def test_invalid_options_are_refused_before_aws_is_asked(
    gateway: ConsumerGateway, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    assert run(["link", *words, "--owner", OWNER, "--principal", READER]) == 2

    assert message in capsys.readouterr().err
    assert gateway.calls == []


def test_a_function_without_its_environment_says_where_it_comes_from(
    gateway: ConsumerGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DQ_LINK_OWNER")

    with pytest.raises(UsageError, match="DQ_LINK_OWNER is not set"):
        handler({}, None)


def test_the_log_has_one_line_of_json(gateway: ConsumerGateway, caplog: pytest.LogCaptureFixture) -> None:
    gateway.share("sales.orders", "id")

    result = handler({}, None)

    (line,) = [record.getMessage() for record in caplog.records if record.name == "dq"]
    assert json.loads(line.removeprefix("dq link: ")) == result
