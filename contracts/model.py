"""The contract as typed values with their places: ODCS 3.0 to 3.2, one model for all three."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal
from urllib.parse import quote

from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, Field, Tag
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticOmit

from dq.contracts import odcs as versions
from dq.contracts.shared.outcome import Location

# Where every value of a document was written, kept beside the value at little cost.

# The key under which a mapping read from YAML carries its Place. No YAML key can be equal to it,
# because NUL is refused before parsing.
PLACE = "\0place"

# The reader refuses a document whose values lie deeper.
MAX_DEPTH = 64

Spot = tuple[int, int]


@dataclass(slots=True, eq=False)
class Place:
    """Where one mapping was written, and where each of its keys, values and list items stands.

    `path` is the way from the document's root, such as `schema[0].properties[2]`. Spots are
    (line, column), counting from 1. `raw` has the text of values that YAML turned into something
    else than what was written (`1.10`, `yes`, `2026-01-01`); `cut` has the values of keys that the
    loader left out because the model has no room for them.
    """

    file: str
    path: str
    spot: Spot
    keys: dict[str, Spot] = field(default_factory=dict)
    values: dict[str, Spot] = field(default_factory=dict)
    items: dict[str, list[Spot]] = field(default_factory=dict)
    raw: dict[str, str] = field(default_factory=dict)
    # Made on demand: nearly no mapping has any.
    cut: dict[str, object] | None = None
    # The SHA-256 of the whole file, at the document's root only.
    digest: str = ""

    def at(self, key: str | None = None, index: int | None = None) -> Location:
        """The place of a key's value, of one item of its list, or of the mapping itself.

        A key that is absent gives the mapping's own place, so that a finding about something missing
        stands where it would be added.
        """
        spot = self.spot
        if key is not None:
            spot = self.values.get(key, self.spot)
            if index is not None and index < len(self.items.get(key, ())):
                spot = self.items[key][index]
        return Location(self.file, *spot)

    def at_key(self, key: str) -> Location:
        """The place of the key itself: for a key that should not be there."""
        return Location(self.file, *self.keys.get(key, self.spot))

    def below(self, key: str) -> str:
        """The path of one of its keys."""
        return f"{self.path}.{key}" if self.path else key


def plain(value: object) -> object:
    """The value without the Places inside it, as any other YAML reader would give it."""
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items() if key != PLACE}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    return value


# What every element of a contract is: strict, closed, frozen, and aware of where it was written.


class _NotInJsonSchema:
    """Leaves a field out of the JSON Schema. pydantic's own marker costs its schema writer at every start."""

    def __get_pydantic_json_schema__(self, *_: object) -> dict[str, Any]:
        raise PydanticOmit


class Node(BaseModel):
    """One mapping of a contract. Attributes are the ODCS keys in snake case.

    Strict (no coercion: `required: "yes"` is refused), closed (an unknown key is refused) and frozen.
    Two nodes are equal when their values are, wherever they stand.
    """

    model_config = ConfigDict(
        strict=True,
        allow_inf_nan=False,
        # A validator is built for the root alone and when first asked for: it starts a tenth faster.
        defer_build=True,
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        arbitrary_types_allowed=True,
        hide_input_in_errors=True,
        protected_namespaces=(),
    )

    place: Annotated[Place, Field(alias=PLACE, repr=False, exclude=True), _NotInJsonSchema()]

    def at(self, key: str | None = None, index: int | None = None) -> Location:
        """Where a key's value stands, by its name in the file; without a key, where the node begins."""
        return self.place.at(key, index)

    def path(self, key: str | None = None) -> str:
        """The way from the document's root to this node or one of its keys."""
        return self.place.path if key is None else self.place.below(key)

    def has(self, key: str) -> bool:
        """Whether the file writes this key, whatever its value."""
        return key in self.place.keys

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        mine, theirs = dict(self.__dict__), dict(other.__dict__)
        mine.pop("place"), theirs.pop("place")
        return mine == theirs

    def __hash__(self) -> int:
        return id(self)  # an equal node elsewhere has a path and places of its own


# A value that ODCS leaves open. Mappings inside still carry their places; see `source_map.plain`.
Open = Any


def no_items() -> list[Any]:
    """What a list is that is not written.

    Not `[]`, which pydantic would copy deeply for every element, nor `list`, whose signature it has to parse.
    """
    return []


# What many elements of a contract share: custom properties, definitions, context.


def _one_value(value: object) -> object:
    if isinstance(value, (dict, list)):
        raise ValueError("it must be one value: text, a number, or true or false")
    return value


Scalar = Annotated[Any, AfterValidator(_one_value)]  # text, number, true/false, null or a date


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

    custom_properties: list[CustomProperty] = Field(default_factory=no_items)

    def custom(self, name: str) -> CustomProperty | None:
        """The first custom property of this name."""
        return next((custom for custom in self.custom_properties if custom.property == name), None)


class Described(Extensible):
    """What may carry tags and definitions besides."""

    id: str | None = None
    tags: list[str] = Field(default_factory=no_items)
    authoritative_definitions: list[AuthoritativeDefinition] = Field(default_factory=no_items)


class Description(Extensible):
    usage: str | None = None
    purpose: str | None = None
    limitations: str | None = None
    authoritative_definitions: list[AuthoritativeDefinition] = Field(default_factory=no_items)


class VerifiedStatement(Described):
    question: str
    answer: str | None = None


class Constraint(Described):
    constraint: str


class Instructions(Node):
    instructions: str | None = None
    verified_statements: list[VerifiedStatement] = Field(default_factory=no_items)
    constraints: list[Constraint] = Field(default_factory=no_items)


def shape(value: object) -> str:
    """The tag of a union's branch: what kind of value it is."""
    return "~list" if isinstance(value, list) else "~text" if isinstance(value, str) else "~mapping"


Context = Annotated[
    Annotated[str, Tag("~text")] | Annotated[Instructions, Tag("~mapping")], Discriminator(shape)
]


# The schema of a contract: objects, their properties at any depth, and the quality rules on both.

LogicalType = Literal[
    "string", "date", "timestamp", "time", "number", "integer", "object", "array", "boolean", "map", "vector"
]


Names = Annotated[Annotated[str, Tag("~text")] | Annotated[list[str], Tag("~list")], Discriminator(shape)]


class Relationship(Extensible):
    """A foreign key: `from` is implied where it stands on a property."""

    id: str | None = None
    type: Literal["foreignKey"] = "foreignKey"
    from_: Names | None = Field(None, alias="from")
    to: Names | None = None


def _text_or_mapping(value: object) -> object:
    if isinstance(value, (str, dict)):
        return value
    raise ValueError("it must be text or a mapping")


class Quality(Described):
    """One quality rule; which keys it needs follows from its type (see the rules on the shelf)."""

    type: Literal["text", "library", "sql", "custom"] = "library"
    name: str | None = None
    description: str | None = None
    metric: str | None = None
    rule: str | None = None
    arguments: dict[str, Open] | None = None
    query: str | None = None
    engine: str | None = None
    implementation: Annotated[Open, AfterValidator(_text_or_mapping)] = None
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
        keys = self.place.keys
        return [(name, getattr(self, attribute)) for name, attribute in OPERATORS.items() if name in keys]


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
    synonyms: list[Synonym] = Field(default_factory=no_items)
    relationships: list[Relationship] = Field(default_factory=no_items)
    quality: list[Quality] = Field(default_factory=no_items)

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
    properties: list[Property] = Field(default_factory=no_items)
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
    properties: list[Property] = Field(default_factory=no_items)
    context: Context | None = None

    def walk(self) -> Iterator[Property]:
        """Every property, nested ones after the one that holds them."""
        stack = list(reversed(self.properties))
        while stack:
            one = stack.pop()
            yield one
            # Most columns have nothing inside, and a registry has many columns.
            if one.properties or one.items is not None or one.map is not None:
                stack.extend(reversed(list(one.children())))

    def single(self) -> Iterator[tuple[Property, ...]]:
        """Every property that stands once in a row, behind those that hold it: none of an array or map."""
        stack: list[tuple[Property, ...]] = [(prop,) for prop in reversed(self.properties)]
        while stack:
            way = stack.pop()
            yield way
            stack += [(*way, inner) for inner in reversed(way[-1].properties)]

    def partition_keys(self) -> list[Property]:
        """The partition columns in the order of their positions (1-based; unplaced ones last)."""
        keys = [one for one in self.properties if one.partitioned]
        return sorted(keys, key=lambda one: one.partition_key_position or 1 << 30)

    def primary_key(self) -> list[Property]:
        """The columns of the primary key in the order of their positions."""
        keys = [one for one in self.properties if one.primary_key]
        return sorted(keys, key=lambda one: one.primary_key_position or 1 << 30)


# What makes two files the same contract, and the one name under which the store files what became of it.
#
# Two majors of a contract may stand side by side, and are two products: each has deliveries, runs and
# incidents of its own. So nothing is filed under the id alone.

Identity = tuple[str, str]
"""The id and the major version, as texts."""

_FIRST = "1"
_BETWEEN = "@"


def identity(id: str, version: str) -> Identity:
    """The id and the major version of a contract: `("orders", "2")` for orders 2.1.0."""
    return id, version.removeprefix("v").partition(".")[0]


def key(id: str, version: str) -> str:
    """The identity as one text, another one for each identity, whatever the two texts hold.

    Major 1 is the id alone, every other one `id@major`. An id must not have an `@` (rule `id-form`); one
    that has it all the same always carries its major, so that no id can pass for another's major.
    """
    name, major = identity(id, version)
    if major == _FIRST and _BETWEEN not in name:
        return name
    return f"{name}{_BETWEEN}{quote(major, safe='')}"


# The contract as typed values: ODCS 3.0 to 3.2, one model for all three.
#
# Which key belongs to which version is a table in `versions.py`; which keys a server type takes is one in
# `servers.py`. Source: the Open Data Contract Standard, https://bitol-io.github.io/open-data-contract-
# standard/.


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
