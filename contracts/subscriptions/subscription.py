"""A subscription: one consumer's agreed use of a contract, from a file to a typed value."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Annotated, TypeVar

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field

from dq.contracts.identity import Identity
from dq.contracts.node import Node, no_items
from dq.contracts.shared.extension_values import Date, Filled
from dq.contracts.shared.outcome import Finding
from dq.contracts.typed import typed
from dq.contracts.yaml import source


def _positive(number: int) -> int:
    if number < 0:
        raise ValueError("it must not be negative")
    return number


def _named(entries: list[str]) -> list[str]:
    # Without the key it is about everything: whoever removes the last entry means the opposite.
    if not entries:
        raise ValueError("it must not be an empty list; without it, everything is meant")
    return entries


def _not_null(value: object) -> object:
    # A key whose value was forgotten would mean no filter, or no end.
    if value is None:
        raise ValueError("it has no value")
    return value


T = TypeVar("T")
Named = Annotated[list[Filled], AfterValidator(_named)]
# None stands for a key that is not there; one that is there has a value.
Given = Annotated[T | None, BeforeValidator(_not_null)]
Major = Annotated[int, AfterValidator(_positive)]


class Consumer(Node):
    """Who consumes: a team, and in AWS the account and perhaps the one principal that reads."""

    model_config = ConfigDict(title="the consumer")

    team: Filled = Field(description="The team that consumes.")
    account: Given[str] = Field(None, description="Its AWS account, 12 digits in quotes.")
    principal: Given[str] = Field(
        None, description="The ARN of the one role or user of that account that reads; else the account."
    )
    contact: Given[str] = Field(None, description="Where the team is asked, such as a channel or an address.")


class Subscription(Node):
    """One consumer's use of a contract. Without `columns` and `tags` it is about all columns.

    `start_date` and `end_date` are its first and its last day, in UTC; no `end_date` means no end.
    """

    model_config = ConfigDict(title="the subscription")

    contract: Filled = Field(description="The id of the contract.")
    major: Major = Field(description="The major version of the contract.")
    consumer: Consumer = Field(description="Who consumes.")
    purpose: Filled = Field(description="What the data is used for.")
    columns: Named = Field(
        default_factory=no_items,
        description="The columns that are used, as object.column; an object alone means all of its columns.",
    )
    tags: Named = Field(
        default_factory=no_items, description="Columns and objects with one of these tags are used too."
    )
    row_filter: Given[str] = Field(
        None, description="A SQL predicate: only rows for which it is true are used. Needs a single object."
    )
    start_date: Date = Field(description="The first day, in UTC.")
    end_date: Given[Date] = Field(None, description="The last day, in UTC; without it there is no end.")
    approvers: list[Filled] = Field(
        default_factory=no_items,
        description="Who agreed to it for the producer, and is asked before it changes.",
    )

    @property
    def file(self) -> str:
        return self.place.file

    @property
    def identity(self) -> Identity:
        """The id and the major version of the contract that it names."""
        return self.contract, str(self.major)

    @property
    def reader(self) -> str:
        """Whom AWS lets read: the principal, else the account; empty where it names neither."""
        return self.consumer.principal or self.consumer.account or ""

    def active(self, today: date) -> bool:
        """Whether it holds on this day; both of its ends do."""
        return self.start_date <= today and not self.over(today)

    def over(self, today: date) -> bool:
        """Whether its last day is past."""
        return self.end_date is not None and self.end_date < today


def read(data: bytes, file: str) -> tuple[Subscription | None, list[Finding]]:
    """The subscription in a file, and what is wrong with its form, by place. None where its core is.

    Never raises for what the file says. One with any finding should be taken for nothing but its names.
    """
    top, findings = source.read(data, file)
    if top is None:
        return None, [_of_subscription(one) for one in findings]
    made, form, _ = typed(Subscription, top)
    return made, sorted([*findings, *form], key=lambda one: one.at)


def json_schema() -> dict[str, object]:
    """JSON Schema (2020-12) of a subscription file, for editors."""
    schema = Subscription.model_json_schema(ref_template="#/$defs/{model}")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "dq subscription"}


def _of_subscription(finding: Finding) -> Finding:
    """The finding of the reader of YAML in a subscription's words."""
    if finding.rule != "not-a-contract":
        return finding
    mend = "Write a mapping that begins with 'contract: …' and 'major: …'."
    return replace(finding, rule="wrong-type", mend=mend)
