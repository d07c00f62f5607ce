"""The contract as typed values: ODCS 3.0 to 3.2, one model for all three.

Which key belongs to which version is a table in `versions.py`; which keys a server type takes is one in
`servers.py`. Source: the Open Data Contract Standard, https://bitol-io.github.io/open-data-contract-standard/.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Discriminator, Field, Tag

from dq.contracts import versions
from dq.contracts.identity import Identity, identity, key
from dq.contracts.node import Node, no_items
from dq.contracts.schema import (
    OPERATORS,
    Element,
    EnumValue,
    LogicalType,
    MapTypes,
    Property,
    Quality,
    Relationship,
    SchemaObject,
    TypeOptions,
)
from dq.contracts.shared_nodes import (
    AuthoritativeDefinition,
    Context,
    CustomProperty,
    Described,
    Description,
    Extensible,
    Scalar,
    shape,
)


class Role(Extensible):
    role: str
    id: str | None = None
    description: str | None = None
    access: str | None = None
    first_level_approvers: str | None = None
    second_level_approvers: str | None = None


class Server(Extensible):
    """Where the data lives. Which further keys a type takes: `servers.py`."""

    model_config = ConfigDict(extra="allow")

    server: str
    type: str
    id: str | None = None
    description: str | None = None
    environment: str | None = None
    roles: list[Role] = Field(default_factory=no_items)

    def get(self, key: str) -> str | None:
        """One of the type's own keys (`location`, `path`, `database` …) as written, or None."""
        value = (self.model_extra or {}).get(key)
        return None if value is None else str(value)


class SupportChannel(Extensible):
    channel: str
    id: str | None = None
    url: str | None = None
    description: str | None = None
    tool: str | None = None
    scope: str | None = None
    invitation_url: str | None = None


class Price(Node):
    id: str | None = None
    price_amount: float | None = None
    price_currency: str | None = None
    price_unit: str | None = None


class Member(Described):
    username: str
    name: str | None = None
    description: str | None = None
    role: str | None = None
    date_in: str | None = None
    date_out: str | None = None
    replaced_by_username: str | None = None
    comment: str | None = None


class Team(Described):
    name: str | None = None
    description: str | None = None
    members: list[Member] = Field(default_factory=no_items)


# ODCS 3.0 lists the members; 3.1 made the team an object and keeps the list as deprecated.
TeamForm = Annotated[
    Annotated[Team, Tag("~mapping")] | Annotated[list[Member], Tag("~list")], Discriminator(shape)
]


class SlaProperty(Extensible):
    """One service level. `value` is required by ODCS and may be null."""

    property: str
    value: Scalar
    id: str | None = None
    value_ext: Scalar = None
    unit: str | None = None
    element: str | None = None
    driver: str | None = None
    description: str | None = None
    scheduler: str | None = None
    schedule: str | None = None
    authoritative_definitions: list[AuthoritativeDefinition] = Field(default_factory=no_items)


class Contract(Extensible):
    """One ODCS document. Identity is (id, major version), never the path of the file."""

    api_version: str
    kind: Literal["DataContract"]
    id: str
    version: str
    status: str | None = None
    name: str | None = None
    tenant: str | None = None
    domain: str | None = None
    data_product: str | None = None
    tags: list[str] = Field(default_factory=no_items)
    description: Description | None = None
    context: Context | None = None
    servers: list[Server] = Field(default_factory=no_items)
    objects: list[SchemaObject] = Field(default_factory=no_items, alias="schema")
    support: list[SupportChannel] = Field(default_factory=no_items)
    price: Price | None = None
    team: TeamForm | None = None
    roles: list[Role] = Field(default_factory=no_items)
    sla_default_element: str | None = None
    sla_properties: list[SlaProperty] = Field(default_factory=no_items)
    authoritative_definitions: list[AuthoritativeDefinition] = Field(default_factory=no_items)
    contract_created_ts: str | None = None

    @property
    def file(self) -> str:
        return self.place.file

    @property
    def digest(self) -> str:
        """The SHA-256 of its file, as 64 hexadecimal digits; empty where it was read from none."""
        return self.place.digest

    @property
    def identity(self) -> Identity:
        """The id and the major version: two files with the same one are the same contract."""
        return identity(self.id, self.version)

    @property
    def key(self) -> str:
        """What the store files its deliveries, runs and incidents under; see `identity.key`."""
        return key(self.id, self.version)

    @property
    def odcs(self) -> tuple[int, int, int]:
        """The version of the standard that this contract follows, such as (3, 2, 0)."""
        return versions.of(self.api_version)

    def object(self, name: str) -> SchemaObject | None:
        """The object of this name or id."""
        return next((one for one in self.objects if name in (one.name, one.id)), None)

    def members(self) -> list[Member]:
        """The team's members, in either of the two forms that ODCS knows."""
        if isinstance(self.team, Team):
            return self.team.members
        return self.team or []
