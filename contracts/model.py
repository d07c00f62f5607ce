"""The contract as typed values: ODCS 3.0 to 3.2, one model for all three.

Which key belongs to which version is a table in `versions.py`; which keys a server type takes is one in
`servers.py`. Source: the Open Data Contract Standard, https://bitol-io.github.io/open-data-contract-standard/.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Discriminator, Field, Tag

from dq.contracts.node import Node, Open

LogicalType = Literal[
    "string", "date", "timestamp", "time", "number", "integer", "object", "array", "boolean", "map", "vector"
]
Scalar = Any  # text, number, true/false, null or a date; containers are refused by a rule


class CustomProperty(Node):
    """A key and value of the organisation's own, or of a tool's (`vendor`)."""

    property: str
    value: Open
    id: str | None = None
    description: str | None = None
    vendor: str | None = None


class AuthoritativeDefinition(Node):
    """A link to where something is defined for good."""

    url: str
    type: str
    id: str | None = None
    description: str | None = None


class Extensible(Node):
    """What may carry custom properties."""

    custom_properties: list[CustomProperty] = []

    def custom(self, name: str) -> CustomProperty | None:
        """The first custom property of this name."""
        return next((custom for custom in self.custom_properties if custom.property == name), None)


class Described(Extensible):
    """What may carry tags and definitions besides."""

    id: str | None = None
    tags: list[str] = []
    authoritative_definitions: list[AuthoritativeDefinition] = []


class Description(Extensible):
    usage: str | None = None
    purpose: str | None = None
    limitations: str | None = None
    authoritative_definitions: list[AuthoritativeDefinition] = []


class Statement(Described):
    question: str | None = None
    answer: str | None = None
    constraint: str | None = None


class Instructions(Node):
    instructions: str | None = None
    verified_statements: list[Statement] = []
    constraints: list[Statement] = []


def _shape(value: object) -> str:
    return "~list" if isinstance(value, list) else "~text" if isinstance(value, str) else "~mapping"


Context = Annotated[
    Annotated[str, Tag("~text")]
    | Annotated[Instructions, Tag("~mapping")]
    | Annotated[list[Open], Tag("~list")],
    Discriminator(_shape),
]


Names = Annotated[Annotated[str, Tag("~text")] | Annotated[list[str], Tag("~list")], Discriminator(_shape)]


class Relationship(Extensible):
    """A foreign key: `from` is implied where it stands on a property."""

    id: str | None = None
    type: Literal["foreignKey"] = "foreignKey"
    from_: Names | None = Field(None, alias="from")
    to: Names | None = None


class Quality(Described):
    """One quality rule; which keys it needs follows from its type (see the rules on the shelf)."""

    type: Literal["text", "library", "sql", "custom"] = "library"
    name: str | None = None
    description: str | None = None
    metric: str | None = None
    rule: str | None = None
    arguments: Open = None
    query: str | None = None
    engine: str | None = None
    implementation: Open = None
    must_be: Scalar = None
    must_not_be: Scalar = None
    must_be_greater_than: float | None = None
    must_be_greater_or_equal_to: float | None = None
    must_be_less_than: float | None = None
    must_be_less_or_equal_to: float | None = None
    must_be_between: list[float] | None = None
    must_not_be_between: list[float] | None = None
    valid_values: list[Scalar] | None = None
    unit: str | None = None
    dimension: (
        Literal[
            "accuracy", "completeness", "conformity", "consistency", "coverage", "timeliness", "uniqueness"
        ]
        | None
    ) = None
    severity: str | None = None
    method: str | None = None
    business_impact: str | None = None
    scheduler: str | None = None
    schedule: str | None = None

    def operators(self) -> list[tuple[str, Any]]:
        """The comparison operators that the file writes, by their ODCS names."""
        return [(name, getattr(self, attribute)) for name, attribute in OPERATORS.items() if self.has(name)]


OPERATORS = {
    "mustBe": "must_be",
    "mustNotBe": "must_not_be",
    "mustBeGreaterThan": "must_be_greater_than",
    "mustBeGreaterOrEqualTo": "must_be_greater_or_equal_to",
    "mustBeLessThan": "must_be_less_than",
    "mustBeLessOrEqualTo": "must_be_less_or_equal_to",
    "mustBeBetween": "must_be_between",
    "mustNotBeBetween": "must_not_be_between",
}


class TypeOptions(Node):
    """`logicalTypeOptions`: which of them fit which logical type is checked by a rule."""

    min_length: int | None = None
    max_length: int | None = None
    pattern: str | None = None
    format: str | None = None
    minimum: Scalar = None
    maximum: Scalar = None
    exclusive_minimum: Scalar = None
    exclusive_maximum: Scalar = None
    multiple_of: float | None = None
    timezone: bool | None = None
    default_timezone: str | None = None
    min_items: int | None = None
    max_items: int | None = None
    unique_items: bool | None = None
    min_properties: int | None = None
    max_properties: int | None = None
    required: list[str] | None = None
    dimensions: int | None = None
    element_type: str | None = None
    distance_metric: str | None = None
    embedding_model: str | None = None
    embedding_model_version: str | None = None
    normalized: bool | None = None


class EnumValue(Described):
    value: Scalar
    label: str | None = None
    description: str | None = None


class Synonym(Extensible):
    synonym: str
    id: str | None = None
    description: str | None = None
    locale: str | None = None
    source: str | None = None
    status: str | None = None


class Element(Described):
    """What objects and properties share."""

    name: str | None = None
    physical_name: str | None = None
    physical_type: str | None = None
    description: str | None = None
    business_name: str | None = None
    deprecated: bool | None = None
    synonyms: list[Synonym] = []
    relationships: list[Relationship] = []
    quality: list[Quality] = []

    @property
    def column(self) -> str:
        """The name in the data: the physical name, else the name."""
        return self.physical_name or self.name or ""


class MapTypes(Node):
    key: Property
    value: Property


class Property(Element):
    """A column or nested field. Items of arrays have no name."""

    logical_type: LogicalType | None = None
    logical_type_options: TypeOptions | None = None
    primary_key: bool | None = None
    primary_key_position: int | None = None
    required: bool | None = None
    unique: bool | None = None
    partitioned: bool | None = None
    partition_key_position: int | None = None
    classification: str | None = None
    encrypted_name: str | None = None
    critical_data_element: bool | None = None
    semantic_type: Literal["column", "measure", "dimension"] | None = None
    transform_source_objects: list[str] | None = None
    transform_logic: str | None = None
    transform_description: str | None = None
    examples: list[Open] | None = None
    enum: list[EnumValue] | None = None
    properties: list[Property] = []
    items: Property | None = None
    map: MapTypes | None = None

    def children(self) -> Iterator[Property]:
        """The properties directly inside: of a struct, of an array's items, of a map's key and value."""
        yield from self.properties
        if self.items is not None:
            yield self.items
        if self.map is not None:
            yield self.map.key
            yield self.map.value


class SchemaObject(Element):
    """A table. `name` is required here."""

    name: str
    logical_type: Literal["object", "blob"] | None = None
    data_granularity_description: str | None = None
    properties: list[Property] = []
    context: Context | None = None

    def walk(self) -> Iterator[Property]:
        """Every property, nested ones after the one that holds them."""
        stack = list(reversed(self.properties))
        while stack:
            one = stack.pop()
            yield one
            stack.extend(reversed(list(one.children())))

    def partition_keys(self) -> list[Property]:
        """The partition columns in the order of their positions (1-based; unplaced ones last)."""
        keys = [one for one in self.properties if one.partitioned]
        return sorted(keys, key=lambda one: one.partition_key_position or 1 << 30)

    def primary_key(self) -> list[Property]:
        """The columns of the primary key in the order of their positions."""
        keys = [one for one in self.properties if one.primary_key]
        return sorted(keys, key=lambda one: one.primary_key_position or 1 << 30)


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
    roles: list[Role] = []

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
    members: list[Member] = []


# ODCS 3.0 lists the members; 3.1 made the team an object and keeps the list as deprecated.
TeamForm = Annotated[
    Annotated[Team, Tag("~mapping")] | Annotated[list[Member], Tag("~list")], Discriminator(_shape)
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
    authoritative_definitions: list[AuthoritativeDefinition] = []


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
    tags: list[str] = []
    description: Description | None = None
    context: Context | None = None
    servers: list[Server] = []
    objects: list[SchemaObject] = Field([], alias="schema")
    support: list[SupportChannel] = []
    price: Price | None = None
    team: TeamForm | None = None
    roles: list[Role] = []
    sla_default_element: str | None = None
    sla_properties: list[SlaProperty] = []
    authoritative_definitions: list[AuthoritativeDefinition] = []
    contract_created_ts: str | None = None

    @property
    def file(self) -> str:
        return self.place.file

    @property
    def odcs(self) -> tuple[int, int, int]:
        """The version of the standard that this contract follows, such as (3, 2, 0)."""
        major, minor, patch = self.api_version.removeprefix("v").split(".")
        return int(major), int(minor), int(patch)

    def object(self, name: str) -> SchemaObject | None:
        """The object of this name or id."""
        return next((one for one in self.objects if name in (one.name, one.id)), None)

    def members(self) -> list[Member]:
        """The team's members, in either of the two forms that ODCS knows."""
        if isinstance(self.team, Team):
            return self.team.members
        return self.team or []


MapTypes.model_rebuild()
