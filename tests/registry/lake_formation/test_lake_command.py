"""Subscriptions become grants by `dq register`, as a user runs it; and the role that this needs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fakes.glue import GlueShim, refused
from fakes.lake_formation import OPERATIONS, granted

from dq.cli.main import run
from dq.registry.landing_zone import REGISTRAR, actions_of

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
      - {name: Id, logicalType: integer, physicalType: bigint}
      - {name: email, logicalType: string, physicalType: string, classification: Confidential}
"""
SUBSCRIPTION = """\
contract: orders
major: 1
consumer: {team: billing, account: '210987654321'}
purpose: Invoices.
columns: [orders.Id]
startDate: 2020-01-01
"""
ALL = "locations,tags,grants"


@pytest.fixture
def registry(glue: GlueShim, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "contracts"
    (folder / "subscriptions").mkdir(parents=True)
    (folder / "dq-policy.yaml").write_text(
        "rules: {subscription-without-approver: {proof: names, other_accounts: false}}\n"
    )
    (folder / "orders.odcs.yaml").write_text(CONTRACT)
    (folder / "subscriptions" / "billing.yaml").write_text(SUBSCRIPTION)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DQ_LAKE_ROOTS", "s3://lake")
    monkeypatch.setenv("DQ_LAKE_FORMATION", ALL)
    monkeypatch.setenv("DQ_LAKE_FORMATION_LOCATIONS", "s3://lake/sales")
    monkeypatch.setenv("DQ_LAKE_FORMATION_ROLE", "arn:aws:iam::123456789012:role/lake")
    return folder


def register(*more: str) -> int:
    return run(["register", "contracts", "--catalog", "glue", *more])


def billing(glue: GlueShim) -> dict[str, list[str]]:
    return {principal: columns for (_, _, principal), columns in granted(glue).items()}


def test_without_the_setting_lake_formation_is_never_asked(
    glue: GlueShim, registry: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DQ_LAKE_FORMATION")

    assert register("--apply") == 0

    assert {call.operation for call in glue.calls}.isdisjoint(OPERATIONS)
    assert "CreateTable" in glue.writes()


def test_a_plan_lists_what_would_be_given_and_an_apply_gives_it_once(
    glue: GlueShim, registry: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    planned = register("--check")
    assert (planned, glue.writes()) == (1, [])
    told = capsys.readouterr().out
    applied = register("--apply")
    with glue.counted() as writes:
        again = register("--apply", "--check")

    assert "+ SELECT for 210987654321 on orders.orders: id (subscriptions/billing.yaml)" in told
    assert "+ location s3://lake/sales, read with arn:aws:iam::123456789012:role/lake" in told
    assert (applied, again, writes) == (0, 0, [])
    assert billing(glue) == {"210987654321": ["id"]}
    assert glue.lake.tags["orders", "orders"] == {"email": {"classification": "confidential"}}
    said = capsys.readouterr().out
    assert "Lake Formation: applied 4 of 4 changes." in said
    assert "Lake Formation: applied 0 of 0 changes." in said


def test_the_plan_for_machines_and_as_a_comment_has_the_grants(
    registry: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    register("--format", "json")
    machine: dict[str, Any] = json.loads(capsys.readouterr().out)["lake_formation"]
    register("--format", "markdown")
    comment = capsys.readouterr().out

    assert [step["kind"] for step in machine["steps"]] == [
        "RegisterLocation",
        "DefineTag",
        "TagColumns",
        "Give",
    ]
    assert "### Lake Formation" in comment
    assert "210987654321" in comment


def test_a_subscription_that_the_gate_refuses_is_given_nothing_and_loses_nothing(
    glue: GlueShim, registry: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = registry / "subscriptions" / "billing.yaml"
    register("--apply")
    file.write_text(SUBSCRIPTION.replace("orders.Id", "orders.email"))
    capsys.readouterr()

    code = register("--apply")

    said = capsys.readouterr()
    assert code == 3
    assert "subscription-without-approver" in said.err
    assert "it is kept, because subscriptions/billing.yaml cannot be parsed" in said.out
    assert billing(glue) == {"210987654321": ["id"]}


def test_t3_a_stranger_approves_no_access_of_their_own(
    glue: GlueShim, registry: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = SUBSCRIPTION.replace("orders.Id", "orders.email") + "approvers: [stranger]\n"
    (registry / "subscriptions" / "billing.yaml").write_text(own)

    code = register("--apply")

    assert code == 3
    assert "subscription-approver-unknown" in capsys.readouterr().err
    assert granted(glue) == {}


def test_an_end_is_kept_even_where_a_policy_makes_an_error_of_it(glue: GlueShim, registry: Path) -> None:
    (registry / "dq-policy.yaml").write_text(
        "rules: {subscription-expired: {severity: error},"
        " subscription-without-approver: {proof: names, other_accounts: false}}\n"
    )
    register("--apply")
    over = SUBSCRIPTION + "endDate: 2020-12-31\n"
    (registry / "subscriptions" / "billing.yaml").write_text(over.replace("orders.Id", "orders.gone"))

    code = register("--apply")

    # The column that there is not is told, and holds nothing up.
    assert code == 3
    assert billing(glue) == {}


def test_a_file_that_is_removed_takes_its_grants_along_and_one_table_alone_touches_no_other(
    glue: GlueShim, registry: Path
) -> None:
    second = CONTRACT.replace("id: orders\n", "id: lines\n").replace("sales/orders", "sales/lines")
    (registry / "lines.odcs.yaml").write_text(second)
    for_lines = SUBSCRIPTION.replace("contract: orders", "contract: lines")
    (registry / "subscriptions" / "lines.yaml").write_text(for_lines)
    register("--apply")
    for file in (registry / "subscriptions").iterdir():
        file.unlink()

    run(["register", "contracts/lines.odcs.yaml", "--catalog", "glue", "--apply"])
    left = list(granted(glue))
    register("--apply")

    assert [database for database, _, _ in left] == ["orders"]
    assert granted(glue) == {}


def test_what_became_of_the_tables_is_told_where_lake_formation_cannot_be_read(
    glue: GlueShim, registry: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    glue.faults["ListPermissions"] = [lambda call, go: refused("AccessDeniedException", "Not yours.")]

    code = register("--apply")

    said = capsys.readouterr()
    assert code == 3
    assert "Applied 1 of 1 changes." in said.out
    assert "AWS refused to list who may read orders.orders" in said.out
    assert granted(glue) == {}


def subscribe(registry: Path, name: str, text: str) -> None:
    file = registry / "subscriptions" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def of_account(number: str, more: str = "") -> str:
    named = SUBSCRIPTION.replace("210987654321", number).replace("billing", f"team{number}")
    return named + "approvers: [ana@example.com]\n" + more


OVER = "endDate: 2020-12-31\n"


def test_a_grant_ends_where_the_change_of_its_table_is_refused_and_nothing_new_is_given(
    glue: GlueShim, registry: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in ("111111111111", "222222222222"):
        subscribe(registry, f"{number}.yaml", of_account(number))
    register("--apply")
    # The type of a column that is there: a breaking change, which waits for a word.
    breaking = CONTRACT.replace("logicalType: integer, physicalType: bigint", "logicalType: string")
    (registry / "orders.odcs.yaml").write_text(breaking.replace("Confidential", "Internal"))
    subscribe(registry, "111111111111.yaml", of_account("111111111111", OVER))
    subscribe(registry, "222222222222.yaml", of_account("222222222222").replace("orders.Id", "orders.email"))
    capsys.readouterr()

    code = register("--apply")

    said = capsys.readouterr().out
    assert (code, "breaking changes need your approval" in said) == (3, True)
    assert billing(glue) == {"210987654321": ["id"], "222222222222": ["id"]}
    assert "nothing is granted until the table matches its contract" in said
    assert "it is kept, because its replacement is not granted yet" in said
    register("--apply", "--allow-breaking")
    assert billing(glue) == {"210987654321": ["id"], "222222222222": ["email"]}


def test_a_grant_that_aws_refuses_keeps_no_other_beyond_its_end(
    glue: GlueShim, registry: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    register("--apply")
    subscribe(registry, "billing.yaml", SUBSCRIPTION + OVER)
    subscribe(registry, "new.yaml", of_account("222222222222"))
    glue.faults["GrantPermissions"] = [lambda call, go: refused("InvalidInputException", "Invalid principal")]
    capsys.readouterr()

    code = register("--apply")

    assert (code, billing(glue)) == (3, {})
    assert "Lake Formation: applied 1 of 2 changes." in capsys.readouterr().out


def test_all_rows_are_taken_back_where_some_of_them_cannot_be_given(
    glue: GlueShim, registry: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    register("--apply")
    capsys.readouterr()
    subscribe(registry, "billing.yaml", SUBSCRIPTION + "rowFilter: id > 7\n")
    glue.faults["CreateDataCellsFilter"] = [lambda call, go: refused("InvalidInputException", "No.")]

    assert register("--apply") == 3

    assert billing(glue) == {}
    assert "was not attempted, because an earlier step failed" in capsys.readouterr().out
    assert register("--apply") == 0
    assert [one["RowFilter"] for one in glue.lake.filters.values()] == [{"FilterExpression": "id > 7"}]


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("id>7 and not Email like 'a%'", "id > 7 AND NOT (Email LIKE 'a%')"),
        (
            "`email` is not null or email in ('it''s', '--')",
            "\"email\" IS NOT NULL OR email IN ('it''s', '--')",
        ),
        ("not (id = -1 or email != '')", "NOT (id = -1 OR email <> '')"),
        ("email = '${env:DQ_CANARY}'", "email = '${env:DQ_CANARY}'"),
        ('email = "x"', None),
        ("id between 1 and 9", "id BETWEEN 1 AND 9"),
    ],
)
def test_t16_lake_formation_is_sent_the_filter_that_was_judged_and_not_the_text(
    glue: GlueShim, registry: Path, text: str, sent: str | None
) -> None:
    subscribe(registry, "billing.yaml", SUBSCRIPTION + f"rowFilter: {json.dumps(text)}\n")

    code = register("--apply")

    filters = [one["RowFilter"]["FilterExpression"] for one in glue.lake.filters.values()]
    assert (code, filters) == ((0, [sent]) if sent else (3, []))


def test_what_cannot_be_understood_keeps_its_grant_over_many_runs(glue: GlueShim, registry: Path) -> None:
    more = of_account("210987654321").replace("orders.Id", "orders.email")
    subscribe(registry, "more.yaml", more)
    register("--apply")
    subscribe(registry, "more.yaml", "contract: [")

    codes = [register("--apply") for _ in range(3)]
    kept = billing(glue)
    # Beside a new grant of the same reader, too.
    subscribe(registry, "billing.yaml", SUBSCRIPTION.replace("[orders.Id]", "[orders.Id, orders.email]"))
    codes += [register("--apply") for _ in range(2)]
    (registry / "subscriptions" / "more.yaml").unlink()
    subscribe(registry, "billing.yaml", SUBSCRIPTION)
    register("--apply")

    assert codes == [3] * 5
    assert kept == {"210987654321": ["email", "id"]}
    assert billing(glue) == {"210987654321": ["id"]}


@pytest.mark.parametrize(
    ("way", "place"), [("subscriptions", "link"), ("subscriptions", "file"), ("subscriptions/teams", "link")]
)
def test_a_folder_that_is_none_takes_no_grant_along(
    glue: GlueShim, registry: Path, capsys: pytest.CaptureFixture[str], way: str, place: str
) -> None:
    (registry / "subscriptions" / "billing.yaml").unlink()
    subscribe(registry, "teams/billing.yaml", SUBSCRIPTION)
    register("--apply")
    elsewhere = registry.parent / "elsewhere"
    (registry / way).rename(elsewhere)
    if place == "link":
        (registry / way).symlink_to(elsewhere)
    else:
        (registry / way).write_text("")
    capsys.readouterr()

    code = register("--apply")

    assert (code, billing(glue)) == (3, {"210987654321": ["id"]})
    assert f"{way}:1:1: error not-a-plain-file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("variable", "text", "said"),
    [
        ("DQ_LAKE_FORMATION", "grant", "Did you mean 'grants'?"),
        ("DQ_LAKE_FORMATION_ROLE", "", "lake_formation_role"),
    ],
)
def test_a_setting_that_cannot_be_is_a_mistake_of_usage(
    registry: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    variable: str,
    text: str,
    said: str,
) -> None:
    monkeypatch.setenv(variable, text)

    assert register() == 2

    assert said in capsys.readouterr().err


def test_the_registrars_policy_allows_the_calls_that_are_made_and_no_other(
    glue: GlueShim, registry: Path
) -> None:
    file = registry / "subscriptions" / "billing.yaml"
    register("--apply")
    file.write_text(SUBSCRIPTION + "rowFilter: id > 7\n")
    register("--apply")
    (registry / "orders.odcs.yaml").write_text(CONTRACT.replace(", classification: Confidential", ""))
    file.unlink()
    register("--apply")
    (registry / "orders.odcs.yaml").write_text(CONTRACT.replace("Confidential", "internal"))
    register("--apply")

    called = {call.operation for call in glue.calls} & OPERATIONS
    named = {action for action in actions_of(REGISTRAR) if action.startswith("lakeformation:")}
    assert {f"lakeformation:{operation}" for operation in called} == named
