"""Thirty subscriptions of one contract, and a process that makes their grants and may be killed anywhere."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from datetime import date
from typing import Any

from fakes.registrar import Nursery, nursery, serve

from dq.contracts.model import Contract
from dq.contracts.subscriptions import Subscription, read
from dq.contracts.yaml.parse import parse
from dq.registry.aws.client import Rate
from dq.registry.aws.lake_formation import (
    LakeFormation,
    LakePlan,
    LakeState,
    LakeStep,
    LakeTerms,
    apply_lake,
    connect_lake,
    desired_grants,
    plan_lake,
)
from dq.registry.catalog import StepResult
from dq.registry.table import TableColumn, TableSpec, marked
from dq.store.engine import Store, open_store

TODAY = date(2026, 11, 23)
CATALOG = "glue:123456789012:eu-central-1"
DATABASE = "sales"
CONTRACT = """\
apiVersion: v3.2.0
kind: DataContract
id: orders
version: 1.2.0
status: active
schema:
  - name: orders
    properties:
      - {name: Id, logicalType: integer}
      - {name: amount, logicalType: number, tags: [finance], classification: Internal}
      - {name: email, logicalType: string, classification: PII}
      - name: customer
        logicalType: object
        properties:
          - {name: city, logicalType: string}
          - {name: phone, logicalType: string, classification: PII}
      - {name: day, logicalType: date, partitioned: true}
  - name: lines
    properties:
      - {name: id, logicalType: integer}
      - {name: amount, logicalType: number, tags: [finance]}
"""


def contract(text: str = CONTRACT) -> Contract:
    made = parse(text.encode(), "orders.odcs.yaml").contract
    assert made is not None
    return made


def spec(name: str, columns: str, partitions: str = "") -> TableSpec:
    facts = {
        "dq.contract-id": "orders",
        "dq.contract-version": "1.2.0",
        "dq.object": name,
        "dq.registry": "r",
    }
    made = TableSpec(
        DATABASE,
        name,
        f"s3://lake/sales/{name}",
        "parquet",
        tuple(TableColumn(one, "string") for one in columns.split()),
        tuple(TableColumn(one, "string") for one in partitions.split()),
    )
    return marked(made, facts)


TABLES = [spec("orders", "id amount email customer", "day"), spec("lines", "id amount")]


def account(number: int) -> str:
    return f"{number:012}"


def subscription(number: int, columns: str, end: str = "", **more: str) -> Subscription:
    reader = more.get("principal") or account(number)
    where = f"rowFilter: {more['rows']}\n" if "rows" in more else ""
    until = f"endDate: {end}\n" if end else ""
    key = "principal" if reader.startswith("arn:") else "account"
    text = (
        f"contract: orders\nmajor: 1\nconsumer: {{team: team{number}, {key}: '{reader}'}}\n"
        f"purpose: Reports.\ncolumns: [{columns}]\nstartDate: 2026-01-01\n{until}{where}"
    )
    made, wrong = read(text.encode(), f"subscriptions/team{number}.yaml")
    assert made is not None
    assert wrong == []
    return made


def thirty() -> list[Subscription]:
    """Ten of one column, ten of two tables, eight of a whole table, two that are over."""
    return [
        *(subscription(at, "orders.amount") for at in range(10)),
        *(subscription(at, "orders.Id, lines.amount") for at in range(10, 20)),
        *(subscription(at, "orders") for at in range(20, 28)),
        *(subscription(at, "orders.email", end="2026-11-22") for at in (28, 29)),
    ]


EXPECTED = {
    **{(DATABASE, "orders", account(at)): ["amount"] for at in range(10)},
    **{(DATABASE, "orders", account(at)): ["id"] for at in range(10, 20)},
    **{(DATABASE, "lines", account(at)): ["amount"] for at in range(10, 20)},
    **{
        (DATABASE, "orders", account(at)): ["amount", "customer", "day", "email", "id"]
        for at in range(20, 28)
    },
}


def planned(
    lake: LakeFormation, store: Store, agreed: Iterable[Subscription], today: date = TODAY, **more: Any
) -> LakePlan:
    by_key = {one.key: one for one in TABLES}
    every = list(agreed)
    terms = LakeTerms(
        {key: one.location for key, one in by_key.items()},
        grants=desired_grants(every, [contract()], by_key, today),
        expired=desired_grants([one for one in every if one.is_expired(today)], [contract()], by_key),
        **more,
    )
    return plan_lake(lake, LakeState(store, CATALOG), terms)


def kept(
    lake: LakeFormation, store: Store, agreed: Iterable[Subscription], today: date = TODAY, **more: Any
) -> list[StepResult[LakeStep]]:
    return apply_lake(lake, LakeState(store, CATALOG), planned(lake, store, agreed, today, **more))


def granting() -> AbstractContextManager[Nursery]:
    """Processes that make the grants of today, in the environment of now; see `Nursery.run`."""
    return nursery(module="fakes.lake_grants")


def _serve() -> None:
    quick = Rate(10_000, 10_000)
    lake = connect_lake(account="123456789012", rates={"read": quick, "write": quick})

    def work(url: str, _: int) -> None:
        kept(lake, open_store(url), thirty(), TODAY)

    serve(work)


if __name__ == "__main__":
    _serve()
