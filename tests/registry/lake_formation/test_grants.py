"""Grants from subscriptions, against moto's Lake Formation behind its strict shim."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from fakes.glue import GlueShim, refused
from fakes.lake_formation import granted
from fakes.lake_grants import (
    CATALOG,
    CONTRACT,
    DATABASE,
    EXPECTED,
    TABLES,
    account,
    contract,
    kept,
    planned,
    subscription,
    thirty,
)

from dq.contracts.outcome import UsageError
from dq.contracts.subscriptions import read
from dq.registry.aws.glue import Glue
from dq.registry.aws.lake_formation import (
    GrantKey,
    GrantSelect,
    LakeFormation,
    LakePlan,
    LakeState,
    LakeTerms,
    apply_lake,
    desired_tags,
    plan_lake,
)
from dq.registry.plan import apply, propose
from dq.store.engine import Store


@pytest.fixture
def tables(glue: GlueShim, glue_catalog: Glue, store: Store) -> GlueShim:
    """Glue with the two tables of the contract."""
    apply(glue_catalog, propose(glue_catalog, TABLES, store), store)
    glue.calls.clear()
    return glue


def test_thirty_subscriptions_make_exactly_their_grants_and_a_second_run_writes_nothing(
    tables: GlueShim, lake_formation: LakeFormation, store: Store
) -> None:
    first = kept(lake_formation, store, thirty())
    with tables.counted() as writes:
        second = kept(lake_formation, store, thirty())

    assert [one.error for one in first] == [None] * 38
    assert granted(tables) == EXPECTED
    assert (second, writes) == ([], [])


def test_a_plan_says_who_would_get_what_and_writes_nothing(
    tables: GlueShim, lake_formation: LakeFormation, store: Store
) -> None:
    with tables.counted() as writes:
        plan = planned(lake_formation, store, [subscription(7, "orders.amount")])

    assert [str(one) for one in plan.steps] == [
        "+ SELECT for 000000000007 on sales.orders: amount (subscriptions/team7.yaml)"
    ]
    assert writes == []
    assert LakeState(store, CATALOG).grants() == {}


def test_what_is_over_is_taken_back_and_nothing_else(
    tables: GlueShim, lake_formation: LakeFormation, store: Store
) -> None:
    both = [subscription(1, "orders.amount", end="2026-11-30"), subscription(2, "orders.amount")]
    kept(lake_formation, store, both)

    plan = planned(lake_formation, store, both, date(2026, 12, 1))
    apply_lake(lake_formation, LakeState(store, CATALOG), plan)

    assert [str(one) for one in plan.steps] == [
        "- SELECT for 000000000001 on sales.orders: amount (subscriptions/team1.yaml has ended)"
    ]
    assert granted(tables) == {(DATABASE, "orders", account(2)): ["amount"]}
    assert [key.principal for key in LakeState(store, CATALOG).grants()] == [account(2)]


def test_columns_that_a_subscription_gives_up_are_taken_back_after_the_new_ones_are_given(
    tables: GlueShim, lake_formation: LakeFormation, store: Store
) -> None:
    kept(lake_formation, store, [subscription(1, "orders.amount, orders.day")])

    kept(lake_formation, store, [subscription(1, "orders.day, orders.email")])

    assert granted(tables) == {(DATABASE, "orders", account(1)): ["day", "email"]}
    writes = [call for call in tables.calls if call.operation in ("GrantPermissions", "RevokePermissions")]
    assert [
        (call.operation, call.body["Resource"]["TableWithColumns"]["ColumnNames"]) for call in writes
    ] == [
        ("GrantPermissions", ["amount", "day"]),
        ("GrantPermissions", ["email"]),
        ("RevokePermissions", ["amount"]),
    ]


def test_a_subscription_that_is_removed_loses_its_grants_and_one_that_is_renamed_does_not(
    tables: GlueShim, lake_formation: LakeFormation, store: Store
) -> None:
    kept(lake_formation, store, [subscription(1, "orders.amount"), subscription(2, "orders.amount")])
    renamed = subscription(2, "orders.amount")
    renamed.place.file = "subscriptions/renamed.yaml"

    kept(lake_formation, store, [renamed])

    assert granted(tables) == {(DATABASE, "orders", account(2)): ["amount"]}
    assert [one.files for one in LakeState(store, CATALOG).grants().values()] == [
        {"subscriptions/renamed.yaml"}
    ]


def test_what_somebody_else_gave_is_told_and_never_taken_back(
    tables: GlueShim, lake_formation: LakeFormation, store: Store
) -> None:
    give(lake_formation, account(1), "amount")
    give(lake_formation, account(9), "email")
    one = subscription(1, "orders.amount, orders.day", end="2026-11-30")

    plan = planned(lake_formation, store, [one])
    apply_lake(lake_formation, LakeState(store, CATALOG), plan)
    later = planned(lake_formation, store, [one], date(2026, 12, 1))
    apply_lake(lake_formation, LakeState(store, CATALOG), later)

    assert any("granted by someone else" in note for note in plan.notes)
    assert any("Revoke it manually" in note for note in later.notes)
    assert granted(tables) == {
        (DATABASE, "orders", account(1)): ["amount"],
        (DATABASE, "orders", account(9)): ["email"],
    }


def test_who_reads_past_lake_formation_is_told(
    tables: GlueShim, lake_formation: LakeFormation, store: Store
) -> None:
    for principal in ("IAM_ALLOWED_PRINCIPALS", account(1)):
        tables.lake.answer(
            "GrantPermissions",
            {
                "Principal": {"DataLakePrincipalIdentifier": principal},
                "Resource": {"Table": {"DatabaseName": DATABASE, "Name": "orders"}},
                "Permissions": ["ALL"],
            },
            forward(tables),
        )

    notes = planned(lake_formation, store, [subscription(1, "orders.amount")]).notes

    assert notes == (
        "sales.orders: IAM_ALLOWED_PRINCIPALS has access, so only IAM decides who can read it.",
        f"sales.orders: someone else granted {account(1)} all columns.",
    )


def test_while_a_subscription_cannot_be_understood_what_it_asked_for_stays(
    tables: GlueShim, lake_formation: LakeFormation, store: Store
) -> None:
    kept(lake_formation, store, [subscription(1, "orders.amount"), subscription(2, "orders.amount")])

    plan = planned(lake_formation, store, [], unreadable=frozenset({"subscriptions/team1.yaml"}))
    apply_lake(lake_formation, LakeState(store, CATALOG), plan)

    assert granted(tables) == {(DATABASE, "orders", account(1)): ["amount"]}
    assert "it is kept, because subscriptions/team1.yaml cannot be parsed" in plan.notes[0]


def test_a_grant_that_somebody_took_away_is_given_again_and_one_that_is_over_is_forgotten(
    tables: GlueShim, lake_formation: LakeFormation, store: Store
) -> None:
    both = [subscription(1, "orders.amount"), subscription(2, "orders.amount", end="2026-11-30")]
    kept(lake_formation, store, both)
    for number in (1, 2):
        lake_formation.client.revoke_permissions(**permission(account(number), "amount"))

    with tables.counted() as writes:
        kept(lake_formation, store, both, date(2026, 12, 1))

    assert writes == ["GrantPermissions"]
    assert [key.principal for key in LakeState(store, CATALOG).grants()] == [account(1)]


def test_two_subscriptions_of_one_principal_are_added_up(
    tables: GlueShim, lake_formation: LakeFormation, store: Store
) -> None:
    role = "arn:aws:iam::210987654321:role/billing"
    first = subscription(1, "orders.amount", principal=role)
    second = subscription(2, "orders.amount, orders.day", principal=role, end="2026-11-30")
    kept(lake_formation, store, [first, second])
    both = granted(tables)

    kept(lake_formation, store, [first, second], date(2026, 12, 1))

    assert both == {(DATABASE, "orders", role): ["amount", "day"]}
    assert granted(tables) == {(DATABASE, "orders", role): ["amount"]}


def test_a_refused_grant_stops_nobody_on_another_table(
    tables: GlueShim, lake_formation: LakeFormation, store: Store
) -> None:
    tables.faults["GrantPermissions"] = [
        lambda call, go: refused("AccessDeniedException", "Insufficient Lake Formation permission(s)")
    ]

    results = kept(lake_formation, store, [subscription(1, "lines.id, orders.amount")])
    again = kept(lake_formation, store, [subscription(1, "lines.id, orders.amount")])

    assert ["Insufficient" in str(one.error) for one in results] == [True, False]
    assert [type(one.step) for one in again] == [GrantSelect]
    assert granted(tables).keys() == {(DATABASE, "lines", account(1)), (DATABASE, "orders", account(1))}


def test_others_who_grant_on_the_same_table_are_waited_for(
    tables: GlueShim, lake_formation: LakeFormation, store: Store
) -> None:
    moved = [lambda call, go: refused("ConcurrentModificationException", "Try again.")]
    tables.faults["GrantPermissions"] = moved * 2

    (result,) = kept(lake_formation, store, [subscription(1, "orders.amount")])

    assert result.error is None
    assert granted(tables) == {(DATABASE, "orders", account(1)): ["amount"]}


def test_a_consumer_without_an_account_is_given_nothing(
    tables: GlueShim, lake_formation: LakeFormation, store: Store
) -> None:
    made, _ = read(
        b"contract: orders\nmajor: 1\nconsumer: {team: a}\npurpose: x\nstartDate: 2020-01-01\n", "s/a.yaml"
    )
    assert made is not None

    plan = planned(lake_formation, store, [made])

    assert plan.steps == ()
    assert plan.notes == ("s/a.yaml names no account: nothing is granted to a.",)


@pytest.mark.parametrize(
    ("principal", "columns", "said"),
    [
        ("everybody", ["amount"], "is not an account"),
        ("arn:aws:iam::210987654321:role/*", ["amount"], "is not an account"),
        (account(1), [], "ColumnNames"),
        (account(1), ["amount", "amount"], "a duplicate column"),
    ],
)
def test_what_aws_would_refuse_is_never_sent(
    tables: GlueShim, lake_formation: LakeFormation, principal: str, columns: list[str], said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        lake_formation.client.grant_permissions(**permission(principal, *columns))

    assert tables.calls == []


def test_a_row_filter_is_a_grant_on_a_data_filter_which_goes_with_it(
    tables: GlueShim, lake_formation: LakeFormation, store: Store
) -> None:
    one = subscription(1, "orders.amount", end="2026-11-30", rows="day > '2026-01-01'")
    kept(lake_formation, store, [one])
    made = list(tables.lake.filters.values())
    (key,) = LakeState(store, CATALOG).grants()
    with tables.counted() as writes:
        kept(lake_formation, store, [one])

    kept(lake_formation, store, [one], date(2026, 12, 1))

    assert [(each["RowFilter"], each["ColumnNames"]) for each in made] == [
        ({"FilterExpression": "day > '2026-01-01'"}, ["amount"])
    ]
    assert key == GrantKey(DATABASE, "orders", account(1), made[0]["Name"])
    assert writes == []
    assert (tables.lake.filters, LakeState(store, CATALOG).grants(), granted(tables)) == ({}, {}, {})


def test_a_filter_that_somebody_removed_is_made_again(
    tables: GlueShim, lake_formation: LakeFormation, store: Store
) -> None:
    one = subscription(1, "orders.amount", rows="day > '2026-01-01'")
    kept(lake_formation, store, [one])
    before = dict(tables.lake.filters)
    (key,) = LakeState(store, CATALOG).grants()
    data = {"TableCatalogId": "123456789012", "DatabaseName": DATABASE, "TableName": "orders"}
    resource = {"DataCellsFilter": {**data, "Name": key.filter}}
    lake_formation.client.revoke_permissions(**permission(account(1)) | {"Resource": resource})
    lake_formation.client.delete_data_cells_filter(**data, Name=key.filter)

    results = kept(lake_formation, store, [one])

    assert [each.error for each in results] == [None, None]
    assert tables.lake.filters == before


def test_a_field_does_not_give_the_whole_column_that_it_stands_in(
    tables: GlueShim, lake_formation: LakeFormation, store: Store
) -> None:
    plan = planned(lake_formation, store, [subscription(1, "orders.customer.city, orders.amount")])
    whole = planned(lake_formation, store, [subscription(1, "orders.customer.city, orders.customer")])

    assert [each.columns for each in plan.steps if isinstance(each, GrantSelect)] == [("amount",)]
    assert plan.notes == (
        "subscriptions/team1.yaml: only whole columns can be granted, and orders.customer.city is part of "
        "one.",
    )
    assert [each.columns for each in whole.steps if isinstance(each, GrantSelect)] == [("customer",)]
    assert whole.notes == ()


def test_an_account_may_give_on_what_it_got_and_a_role_may_not(
    tables: GlueShim, lake_formation: LakeFormation, store: Store
) -> None:
    role = "arn:aws:iam::210987654321:role/billing"
    kept(
        lake_formation,
        store,
        [subscription(1, "orders.amount"), subscription(2, "orders.Id", principal=role)],
    )

    given = [call.body for call in tables.calls if call.operation == "GrantPermissions"]
    assert {
        one["Principal"]["DataLakePrincipalIdentifier"]: one.get("PermissionsWithGrantOption")
        for one in given
    } == {account(1): ["SELECT"], role: None}


def test_classified_columns_are_tagged_and_values_are_defined_first(
    tables: GlueShim, lake_formation: LakeFormation, store: Store
) -> None:
    def run(text: str) -> list[str]:
        by_key = {each.key: each for each in TABLES}
        terms = LakeTerms({}, tag="classification", tags=desired_tags([contract(text)], by_key))
        results = apply_lake(
            lake_formation,
            LakeState(store, CATALOG),
            plan_lake(lake_formation, LakeState(store, CATALOG), terms),
        )
        assert [each.error for each in results] == [None] * len(results)
        return [str(each.step) for each in results]

    first, again = run(CONTRACT), run(CONTRACT)
    changed = run(CONTRACT.replace("PII", "internal").replace(", classification: Internal", ""))

    assert first == [
        "+ tag classification: internal, pii",
        "~ sales.orders: classification=internal on amount",
        "~ sales.orders: classification=pii on email",
    ]
    assert again == []
    assert changed == [
        "~ sales.orders: classification=internal on email",
        "- sales.orders: classification=internal off amount",
    ]
    assert tables.lake.tags[DATABASE, "orders"] == {"amount": {}, "email": {"classification": "internal"}}


def test_a_tag_that_somebody_else_gave_stays(
    tables: GlueShim, lake_formation: LakeFormation, store: Store
) -> None:
    tables.lake.tags[DATABASE, "orders"] = {"id": {"classification": "secret"}}
    by_key = {each.key: each for each in TABLES}
    terms = LakeTerms({}, tag="classification", tags=desired_tags([contract()], by_key))

    apply_lake(
        lake_formation, LakeState(store, CATALOG), plan_lake(lake_formation, LakeState(store, CATALOG), terms)
    )

    assert tables.lake.tags[DATABASE, "orders"]["id"] == {"classification": "secret"}


def test_a_failure_inside_of_a_good_answer_is_a_failure(
    tables: GlueShim, lake_formation: LakeFormation, store: Store
) -> None:
    by_key = {each.key: each for each in TABLES}
    terms = LakeTerms({}, tag="classification", tags=desired_tags([contract()], by_key))
    plan = plan_lake(lake_formation, LakeState(store, CATALOG), terms)

    results = apply_lake(lake_formation, LakeState(store, CATALOG), LakePlan(plan.steps[1:]))

    assert ["Tag value is not defined" in str(one.error) for one in results] == [True, True]


def test_a_location_that_is_covered_already_is_left_alone(
    tables: GlueShim, lake_formation: LakeFormation, store: Store
) -> None:
    role = "arn:aws:iam::123456789012:role/lake"

    def run(*locations: str) -> list[str]:
        places = {one.key: one.location for one in TABLES}
        terms = LakeTerms(places, locations=locations, role=role)
        plan = plan_lake(lake_formation, LakeState(store, CATALOG), terms)
        results = apply_lake(lake_formation, LakeState(store, CATALOG), plan)
        assert [one.error for one in results] == [None] * len(results)
        return [str(one.step) for one in results] + list(plan.notes)

    first = run("s3://lake/finance/")
    second = run("s3://lake/sales", "s3a://lake/sales/orders", "s3://lake/sales/")
    third = run("s3://lake/sales/orders", "s3://lake/finance", "s3://lake/sal")

    assert first[0] == f"+ location s3://lake/finance, read with {role}"
    assert "not in a location of Lake Formation" in first[1]
    assert second == [f"+ location s3://lake/sales, read with {role}"]
    assert third == [f"+ location s3://lake/sal, read with {role}"]


def forward(shim: GlueShim) -> Any:
    from fakes.glue import lake_forward

    return lake_forward(shim)


def permission(principal: str, *columns: str) -> dict[str, Any]:
    resource = {"DatabaseName": DATABASE, "Name": "orders", "ColumnNames": list(columns)}
    onwards = {"PermissionsWithGrantOption": ["SELECT"]} if principal.isdecimal() else {}
    return {
        "Principal": {"DataLakePrincipalIdentifier": principal},
        "Resource": {"TableWithColumns": resource},
        "Permissions": ["SELECT"],
        **onwards,
    }


def give(lake: LakeFormation, principal: str, *columns: str) -> None:
    lake.client.grant_permissions(**permission(principal, *columns))
