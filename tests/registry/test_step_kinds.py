"""The names that steps beside the tables have for machines."""

from __future__ import annotations

from dq.operations.register import ManagedResources, resources_as_dict
from dq.registry.aws.lake_formation import (
    CreateFilter,
    DataFilter,
    DefineTag,
    DropFilter,
    GrantKey,
    GrantSelect,
    RegisterLocation,
    RevokeSelect,
    TagColumns,
    UntagColumns,
)
from dq.registry.catalog import StepKind
from dq.registry.schedules import CreateSchedule, DeleteSchedule, ScheduleEntry, UpdateSchedule

ON = ("sales", "orders")
ACME = GrantKey(*ON, "210987654321")
FILTER = DataFilter(*ON, "dq_1", "customer = 'acme'", ("id",))
ENTRY = ScheduleEntry("orders-1", "orders", "orders/daily", "cron(0 6 * * ? *)", "UTC", "{}")
STEPS = (
    RegisterLocation("s3://lake/sales", "arn:aws:iam::1:role/lake"),
    DefineTag("class", ("pii",), new=True),
    TagColumns(ON, "class", "pii", ("email",)),
    UntagColumns(ON, "class", "pii", ("id",)),
    CreateFilter(FILTER),
    DropFilter(FILTER, ACME),
    GrantSelect(ACME, ("id",), ("acme.yaml",)),
    RevokeSelect(ACME, ("id",), "acme.yaml is over"),
    CreateSchedule(ENTRY, "0"),
    UpdateSchedule(ENTRY, "0", ("State ENABLED → DISABLED",), drift=True),
    DeleteSchedule("orders-1", "orders/daily no longer needs it", orphan=False),
)


def test_a_step_has_the_same_name_for_machines_whatever_its_class_is_called() -> None:
    shown = resources_as_dict(ManagedResources("AWS", STEPS))["steps"]

    assert [(step["kind"], step["description"]) for step in shown] == [
        ("RegisterLocation", "+ location s3://lake/sales, read with arn:aws:iam::1:role/lake"),
        ("DefineTag", "+ tag class: pii"),
        ("TagColumns", "~ sales.orders: class=pii on email"),
        ("UntagColumns", "- sales.orders: class=pii off id"),
        ("MakeFilter", "+ filter dq_1 of sales.orders: customer = 'acme'"),
        ("DropFilter", "- filter dq_1 of sales.orders"),
        ("Give", "+ SELECT for 210987654321 on sales.orders: id (acme.yaml)"),
        ("TakeBack", "- SELECT for 210987654321 on sales.orders: id (acme.yaml is over)"),
        ("MakeSchedule", "+ schedule orders-1: cron(0 6 * * ? *) in UTC for orders/daily"),
        ("ChangeSchedule", "~ schedule orders-1, changed by someone else: State ENABLED → DISABLED"),
        ("RemoveSchedule", "- schedule orders-1: orders/daily no longer needs it"),
    ]
    assert [step.kind for step in STEPS] == [*StepKind]
