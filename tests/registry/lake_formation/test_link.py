"""The consumer's side, against botocore's Stubber: moto knows neither invitations nor links of accounts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from dq.contracts.outcome import DqError
from dq.registry.aws.lake_link import ConsumerAccount, LinkStep, LinkStepKind, LinkTerms

OWNER, OWN = "123456789012", "210987654321"
ROLE = f"arn:aws:iam::{OWN}:role/billing"
TERMS = LinkTerms(OWNER, "sales", "orders", OWN, "shared", "orders", ROLE)
TARGET = {"CatalogId": OWNER, "DatabaseName": "sales", "Name": "orders"}
LINK = {"DatabaseName": "shared", "Name": "orders"}
INVITATION = f"arn:aws:ram:eu-central-1:{OWNER}:resource-share-invitation/1"


@pytest.fixture
def stubs(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Stubber]]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    session = boto3.Session(region_name="eu-central-1")
    made = {name: Stubber(session.client(name)) for name in ("ram", "glue", "lakeformation")}
    for one in made.values():
        one.activate()
    yield made
    for one in made.values():
        one.assert_no_pending_responses()


def side(stubs: dict[str, Stubber]) -> ConsumerAccount:
    return ConsumerAccount(*(stubs[name].client for name in ("ram", "glue", "lakeformation")))


def invited(stubs: dict[str, Stubber], *statuses: str, sender: str = OWNER) -> None:
    shares = [
        {
            "resourceShareInvitationArn": INVITATION,
            "resourceShareName": "LakeFormation-1",
            "senderAccountId": sender,
            "status": status,
        }
        for status in statuses
    ]
    stubs["ram"].add_response("get_resource_share_invitations", {"resourceShareInvitations": shares}, {})


def listed(stubs: dict[str, Stubber], table: dict[str, str], principal: str, *rows: dict[str, Any]) -> None:
    asked = {"Principal": {"DataLakePrincipalIdentifier": principal}, "Resource": {"Table": table}}
    stubs["lakeformation"].add_response(
        "list_permissions", {"PrincipalResourcePermissions": list(rows)}, asked
    )


def row(permission: str, resource: dict[str, Any], onwards: bool = False) -> dict[str, Any]:
    return {
        "Permissions": [permission],
        "PermissionsWithGrantOption": [permission] if onwards else [],
        "Resource": resource,
    }


def absent(stub: Stubber, operation: str) -> None:
    stub.add_client_error(operation, "EntityNotFoundException", http_status_code=400)


def test_everything_is_missing_at_first_and_nothing_is_written_by_looking(stubs: dict[str, Stubber]) -> None:
    invited(stubs, "EXPIRED", "PENDING")
    absent(stubs["glue"], "get_database")
    absent(stubs["glue"], "get_table")
    absent(stubs["lakeformation"], "list_permissions")
    absent(stubs["lakeformation"], "list_permissions")

    steps = side(stubs).steps(TERMS)

    assert [one.kind for one in steps] == list(LinkStepKind)
    assert str(steps[0]) == f"+ accept the share LakeFormation-1 of {OWNER}"
    assert steps[0].invitation == INVITATION


def test_what_is_so_already_is_left_alone(stubs: dict[str, Stubber]) -> None:
    invited(stubs, "ACCEPTED")
    stubs["glue"].add_response("get_database", {"Database": {"Name": "shared"}}, {"Name": "shared"})
    table = {"Name": "orders", "TargetTable": TARGET}
    stubs["glue"].add_response("get_table", {"Table": table}, {"DatabaseName": "shared", "Name": "orders"})
    listed(stubs, LINK, ROLE, row("DESCRIBE", {"Table": LINK}))
    listed(stubs, TARGET, ROLE, row("SELECT", {"TableWithColumns": {**TARGET, "ColumnNames": ["id"]}}))

    assert side(stubs).steps(TERMS) == []


def test_the_share_of_a_stranger_is_not_accepted(stubs: dict[str, Stubber]) -> None:
    invited(stubs, "PENDING", sender="999999999999")
    stubs["glue"].add_response("get_database", {"Database": {"Name": "shared"}})
    absent(stubs["glue"], "get_table")
    absent(stubs["lakeformation"], "list_permissions")
    absent(stubs["lakeformation"], "list_permissions")

    assert LinkStepKind.ACCEPT not in [one.kind for one in side(stubs).steps(TERMS)]


def test_a_table_that_has_the_name_of_the_link_is_left_alone(stubs: dict[str, Stubber]) -> None:
    invited(stubs)
    stubs["glue"].add_response("get_database", {"Database": {"Name": "shared"}})
    stubs["glue"].add_response("get_table", {"Table": {"Name": "orders"}})

    with pytest.raises(DqError, match=r"exists and is not a link to 123456789012:sales\.orders"):
        side(stubs).steps(TERMS)


def test_each_step_asks_for_what_it_says(stubs: dict[str, Stubber]) -> None:
    stubs["ram"].add_response(
        "accept_resource_share_invitation", {}, {"resourceShareInvitationArn": INVITATION}
    )
    stubs["glue"].add_response("create_database", {}, {"DatabaseInput": {"Name": "shared"}})
    link = {"Name": "orders", "TargetTable": TARGET}
    stubs["glue"].add_response("create_table", {}, {"DatabaseName": "shared", "TableInput": link})
    who = {"DataLakePrincipalIdentifier": ROLE}
    describe = {"Principal": who, "Resource": {"Table": LINK}, "Permissions": ["DESCRIBE"]}
    stubs["lakeformation"].add_response("grant_permissions", {}, describe)
    columns = {"TableWithColumns": {**TARGET, "ColumnNames": ["id", "amount"]}}
    listed(stubs, TARGET, OWN, row("SELECT", columns, onwards=True))
    given = {"TableWithColumns": {**TARGET, "ColumnNames": ["amount", "id"]}}
    select = {"Principal": who, "Resource": given, "Permissions": ["SELECT"]}
    stubs["lakeformation"].add_response("grant_permissions", {}, select)

    for kind in LinkStepKind:
        side(stubs).execute(LinkStep(kind, "it", INVITATION), TERMS)


def test_what_another_run_has_done_meanwhile_is_no_error(stubs: dict[str, Stubber]) -> None:
    stubs["ram"].add_client_error(
        "accept_resource_share_invitation", "ResourceShareInvitationAlreadyAcceptedException"
    )
    stubs["glue"].add_client_error("create_database", "AlreadyExistsException")
    stubs["glue"].add_client_error("create_table", "AlreadyExistsException")

    for kind in (LinkStepKind.ACCEPT, LinkStepKind.DATABASE, LinkStepKind.LINK):
        side(stubs).execute(LinkStep(kind, "it", INVITATION), TERMS)


def test_what_was_not_shared_to_be_given_on_is_said_with_whom_to_ask(stubs: dict[str, Stubber]) -> None:
    listed(stubs, TARGET, OWN, row("SELECT", {"TableWithColumns": {**TARGET, "ColumnNames": ["id"]}}))

    with pytest.raises(DqError, match=r"has not shared sales\.orders with 210987654321"):
        side(stubs).execute(LinkStep(LinkStepKind.SELECT, "it"), TERMS)
