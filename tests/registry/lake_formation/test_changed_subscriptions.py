"""What people do to subscriptions and contracts between two runs, and what is given after the second."""

from __future__ import annotations

from pathlib import Path

import boto3
import pytest
from fakes.glue import REGION, GlueShim
from fakes.lake_formation import granted

from dq.cli.main import run

CONTRACT = """\
apiVersion: v3.2.0
kind: DataContract
id: orders
version: 1.0.0
status: active
team: {members: [{username: ana@example.com, role: owner}]}
servers:
  - {server: lake, type: s3, location: s3://lake/sales/orders, format: parquet}
schema:
  - name: orders
    properties:
      - {name: id, logicalType: integer, physicalType: bigint}
      - {name: amount, logicalType: integer, physicalType: bigint}
      - {name: email, logicalType: string, physicalType: string}
"""
FIRST, OTHER = "111111111111", "999999999999"


def text(account: str = FIRST, columns: str = "orders.id, orders.amount", more: str = "") -> str:
    return (
        f"contract: orders\nmajor: 1\nconsumer: {{team: t{account}, account: '{account}'}}\n"
        f"purpose: Reports.\ncolumns: [{columns}]\nstartDate: 2020-01-01\n"
        f"approvers: [ana@example.com]\n{more}"
    )


class Registry:
    """A registry with one contract and the subscriptions that a test writes."""

    def __init__(self, glue: GlueShim, folder: Path) -> None:
        self.glue, self.folder = glue, folder
        self.contract = folder / "orders.odcs.yaml"
        self.contract.write_text(CONTRACT)
        (folder / "dq-policy.yaml").write_text(
            "registry: r\nrules: {subscription-without-approver: {proof: names, other_accounts: false}}\n"
        )
        (folder / "subscriptions").mkdir()

    def file(self, name: str = "first") -> Path:
        return self.folder / "subscriptions" / f"{name}.yaml"

    def apply(self, *more: str) -> int:
        return run(["register", "registry", "--catalog", "glue", "--apply", *more])

    def given(self) -> dict[str, list[str]]:
        return {principal: columns for (_, _, principal), columns in granted(self.glue).items()}

    def settled(self) -> None:
        """A second run changes nothing, and asks for no more than what stands there."""
        before = self.given()
        start = len(self.glue.calls)
        self.apply()
        assert [call.operation for call in self.glue.calls[start:] if call.writes] == []
        assert self.given() == before


@pytest.fixture
def registry(glue: GlueShim, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Registry:
    folder = tmp_path / "registry"
    folder.mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DQ_LAKE_ROOTS", "s3://lake")
    monkeypatch.setenv("DQ_LAKE_FORMATION", "grants")
    return Registry(glue, folder)


BOTH = ["amount", "id"]
OVER = "endDate: 2020-12-31\n"


def account(number: int) -> str:
    return f"{number:012}"


def test_of_thirty_subscriptions_the_exact_set_is_given_and_each_change_is_followed(
    registry: Registry,
) -> None:
    glue, file = registry.glue, registry.file
    glue.lake.page = 100
    for at in range(1, 31):
        file(account(at)).write_text(text(account(at), more=OVER if at > 28 else ""))
    thirty = {account(at): BOTH for at in range(1, 29)}

    assert registry.apply() == 0
    assert registry.given() == thirty
    start = len(glue.calls)
    assert registry.apply("--check") == 0
    # One for the tables, one for who may read it, and nothing for each of thirty.
    assert [call.operation for call in glue.calls[start:]] == ["GetTables", "ListPermissions"]

    one, two, three, four, five, six, seven = (account(at) for at in range(1, 8))
    file(one).write_text(text(one, "orders.id"))
    file(two).write_text(text(two, "orders"))
    file(three).write_text(text(account(31)))
    file(four).write_text(text(four, more=OVER))
    file(five).unlink()
    file(six).rename(file("renamed"))
    file(seven).write_text(text(seven, more="endDate: 2199-12-31\n"))
    # Of these nobody knows what they ask for now.
    unclear = [account(at) for at in range(8, 13)]
    file(unclear[0]).write_text("")
    file(unclear[1]).write_text(text(unclear[1])[:70])
    file(unclear[2]).write_bytes(b"\xff\x00\xfe")
    file(unclear[3]).write_text(text(unclear[3]).replace("major: 1", "major: 2"))
    file("twice").write_text(text(unclear[4]))
    file(account(29)).write_text(text(account(29)))

    ended = registry.apply()

    for gone in (three, four, five):
        del thirty[gone]
    changed = {one: ["id"], two: ["amount", "email", "id"], account(31): BOTH, account(29): BOTH}
    assert (ended, registry.given()) == (3, {**thirty, **changed})
    registry.settled()


@pytest.mark.parametrize(
    ("before", "after", "code"),
    [
        ("name: amount", "name: total", 3),
        ("kind: DataContract", "kind: [", 3),
        ("status: active", "status: retired", 0),
        ("status: active", "status: draft", 0),
    ],
    ids=["a column is renamed", "it cannot be read", "it is retired", "it is a draft again"],
)
def test_a_contract_that_changes_takes_nobodys_grant_by_itself(
    registry: Registry, before: str, after: str, code: int
) -> None:
    registry.file().write_text(text())
    registry.apply()
    registry.contract.write_text(CONTRACT.replace(before, after))

    assert registry.apply() == code

    assert registry.given() == {FIRST: BOTH}
    registry.settled()


def test_grants_of_others_stay_whatever_becomes_of_subscriptions(registry: Registry) -> None:
    client = boto3.client("lakeformation", region_name=REGION)
    registry.file().write_text(text())
    registry.apply()
    # Of somebody else, and of the very reader a column that dq did not give.
    for reader in (OTHER, FIRST):
        client.grant_permissions(
            Principal={"DataLakePrincipalIdentifier": reader},
            Resource={
                "TableWithColumns": {"DatabaseName": "orders", "Name": "orders", "ColumnNames": ["email"]}
            },
            Permissions=["SELECT"],
        )
    registry.file().unlink()
    registry.apply()

    assert registry.given() == {OTHER: ["email"], FIRST: ["email"]}
    registry.settled()
