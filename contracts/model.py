"""Typed model of an ODCS contract, with the source location of every value.

Clauses have a path by positions, and a name by ids and names that is stable when columns move:
`schema[0].properties[4].required` is `schema/orders/properties/state/required`, in the form of ODCS
references.
"""

from __future__ import annotations

import datetime as dt
import json
import re
import typing
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, TypeVar
from urllib.parse import quote

from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, Field, Tag, ValidationError
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, PydanticOmit

from dq.contracts import odcs as versions
from dq.contracts.outcome import Finding, Location, error_finding, nearest, one_of, suggestion


def clause_namer(schema_object: SchemaObject) -> Callable[[str], str]:
    """Return a function that converts a path below an object to the name of the clause.

    Each part is named by its id, else by its name; a relationship by its id, else by its target. A part with
    neither, with the same label as a sibling, or with a label that looks like a position keeps its position.
    """
    names = {schema_object.path(): f"schema/{schema_object.id or schema_object.name}"}
    _name_descendants(schema_object, names)

    def name(path: str) -> str:
        # Find the nearest enclosing node; a table of a thousand columns does this for each of them.
        node = path
        while node and node not in names:
            node = node[: max(node.rfind("."), node.rfind("["), 0)]
        if not node:
            return path
        suffix = path[len(node) :].replace("[", ".").replace("]", "")
        return names[node] + suffix.replace(".", "/")

    return name


def _name_descendants(element: SchemaObject | Property, names: dict[str, str]) -> None:
    parent = names[element.path()]
    _name_children(
        names, f"{parent}/properties", [(prop, prop.id or prop.name) for prop in element.properties]
    )
    _name_children(
        names, f"{parent}/quality", [(quality, quality.id or quality.name) for quality in element.quality]
    )
    _name_children(
        names,
        f"{parent}/relationships",
        [(relationship, _target_label(relationship)) for relationship in element.relationships],
    )
    children = list(element.properties)
    if isinstance(element, Property):
        children = list(element.children())
        if element.items is not None:
            names[element.items.path()] = f"{parent}/items"
        if element.map is not None:
            names[element.map.key.path()] = f"{parent}/map/key"
            names[element.map.value.path()] = f"{parent}/map/value"
    for child in children:
        _name_descendants(child, names)


def _name_children(
    names: dict[str, str], parent: str, labelled_nodes: Sequence[tuple[Node, str | None]]
) -> None:
    times = Counter(label for _, label in labelled_nodes)
    for index, (node, label) in enumerate(labelled_nodes):
        has_own_label = label and times[label] == 1 and not label.isdecimal()
        names[node.path()] = f"{parent}/{label if has_own_label else index}"


def _target_label(relationship: Relationship) -> str | None:
    targets = [relationship.to] if isinstance(relationship.to, str) else relationship.to or []
    return relationship.id or ",".join(targets) or None


# Source maps: the location of every value of a document, stored next to the value.

# Key under which a mapping read from YAML carries its SourceMap. No YAML key can be equal to it,
# because NUL is rejected before parsing.
SOURCE_MAP_KEY = "\0place"

# The reader rejects a document with values nested deeper.
MAX_DEPTH = 64

Position = tuple[int, int]


@dataclass(slots=True, eq=False)
class SourceMap:
    """Source positions of one mapping and of its keys, values and list items.

    Positions are (line, column), counting from 1.

    Attributes:
        path: Path from the document's root, e.g. `schema[0].properties[2]`.
        raw: Source text of values that YAML converts (`1.10`, `yes`, `2026-01-01`).
        removed: Values of keys that were removed because they do not fit the model.
    """

    file: str
    path: str
    position: Position
    keys: dict[str, Position] = field(default_factory=dict)
    values: dict[str, Position] = field(default_factory=dict)
    items: dict[str, list[Position]] = field(default_factory=dict)
    raw: dict[str, str] = field(default_factory=dict)
    # Created on demand: hardly any mapping needs it.
    removed: dict[str, object] | None = None
    # The SHA-256 of the whole file, at the document's root only.
    digest: str = ""

    def locate(self, key: str | None = None, index: int | None = None) -> Location:
        """Return the location of a key's value, of one item of its list, or of the mapping itself.

        An absent key has the mapping's own location, so that a finding about a missing key points to where it
        would be added.
        """
        position = self.position
        if key is not None:
            position = self.values.get(key, self.position)
            if index is not None and index < len(self.items.get(key, ())):
                position = self.items[key][index]
        return Location(self.file, *position)

    def locate_key(self, key: str) -> Location:
        """Return the location of the key itself, e.g. of one that is not allowed."""
        return Location(self.file, *self.keys.get(key, self.position))

    def child_path(self, key: str) -> str:
        """Return the path of one of its keys."""
        return f"{self.path}.{key}" if self.path else key


def strip_source_maps(value: object) -> object:
    """Return the value without the source maps inside it, as any other YAML reader would return it."""
    if isinstance(value, dict):
        return {key: strip_source_maps(inner) for key, inner in value.items() if key != SOURCE_MAP_KEY}
    if isinstance(value, list):
        return [strip_source_maps(inner) for inner in value]
    return value


# Base of all elements of a contract: strict, closed, frozen, and with its source location.


class _NotInJsonSchema:
    """Leaves a field out of the JSON Schema. pydantic's own marker imports its schema generator at every
    start.
    """

    def __get_pydantic_json_schema__(self, *_: object) -> dict[str, Any]:
        raise PydanticOmit


class Node(BaseModel):
    """One mapping of a contract. Attributes are the ODCS keys in snake case.

    Strict (no coercion: `required: "yes"` is rejected), closed (an unknown key is rejected) and frozen.
    Two nodes are equal if their values are, regardless of their locations.
    """

    model_config = ConfigDict(
        strict=True,
        allow_inf_nan=False,
        # Build a validator only for the root and on first use: startup is a tenth faster.
        defer_build=True,
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        arbitrary_types_allowed=True,
        hide_input_in_errors=True,
        protected_namespaces=(),
    )

    place: Annotated[SourceMap, Field(alias=SOURCE_MAP_KEY, repr=False, exclude=True), _NotInJsonSchema()]

    def locate(self, key: str | None = None, index: int | None = None) -> Location:
        """Return the location of a key's value, by the key's name in the file, or of the node itself."""
        return self.place.locate(key, index)

    def path(self, key: str | None = None) -> str:
        """Return the path from the document's root to this node or one of its keys."""
        return self.place.path if key is None else self.place.child_path(key)

    def has(self, key: str) -> bool:
        """Return True if the file contains this key, whatever its value."""
        return key in self.place.keys

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        own_values, other_values = dict(self.__dict__), dict(other.__dict__)
        own_values.pop("place"), other_values.pop("place")
        return own_values == other_values

    def __hash__(self) -> int:
        return id(self)  # an equal node elsewhere has another path and other locations


# A value that ODCS leaves open. Mappings inside still carry their source maps; see `strip_source_maps`.
Open = Any


def empty_list() -> list[Any]:
    """Return an empty list, the default of list fields.

    Not `[]`, which pydantic would deep-copy for every element, nor `list`, whose signature it has to parse.
    """
    return []


# Shared parts of elements: custom properties, definitions, context.


def _scalar(value: object) -> object:
    if isinstance(value, (dict, list)):
        raise ValueError("it must be one value: text, a number, or true or false")
    return value


Scalar = Annotated[Any, AfterValidator(_scalar)]  # text, number, true/false, null or a date


class CustomProperty(Node):
    """A key and value that the organisation, or a tool (`vendor`), defines."""

    property: str
    value: Open
    id: str | None = None
    description: str | None = None
    vendor: str | None = None


class AuthoritativeDefinition(Node):
    """A link to an authoritative definition."""

    url: str
    type: str
    id: str | None = None
    description: str | None = None


class Extensible(Node):
    """An element that may have custom properties."""

    custom_properties: list[CustomProperty] = Field(default_factory=empty_list)

    def custom(self, name: str) -> CustomProperty | None:
        """Return the first custom property of this name, or None."""
        return next((custom for custom in self.custom_properties if custom.property == name), None)


class Described(Extensible):
    """An element that may also have tags and definitions."""

    id: str | None = None
    tags: list[str] = Field(default_factory=empty_list)
    authoritative_definitions: list[AuthoritativeDefinition] = Field(default_factory=empty_list)


class Description(Extensible):
    usage: str | None = None
    purpose: str | None = None
    limitations: str | None = None
    authoritative_definitions: list[AuthoritativeDefinition] = Field(default_factory=empty_list)


class VerifiedStatement(Described):
    question: str
    answer: str | None = None


class Constraint(Described):
    constraint: str


class Instructions(Node):
    instructions: str | None = None
    verified_statements: list[VerifiedStatement] = Field(default_factory=empty_list)
    constraints: list[Constraint] = Field(default_factory=empty_list)


def shape_tag(value: object) -> str:
    """Return the tag of a union's branch by the kind of value."""
    return "~list" if isinstance(value, list) else "~text" if isinstance(value, str) else "~mapping"


Context = Annotated[
    Annotated[str, Tag("~text")] | Annotated[Instructions, Tag("~mapping")], Discriminator(shape_tag)
]


# The schema of a contract: objects, their properties at any depth, and the quality rules on both.

LogicalType = Literal[
    "string", "date", "timestamp", "time", "number", "integer", "object", "array", "boolean", "map", "vector"
]


Names = Annotated[Annotated[str, Tag("~text")] | Annotated[list[str], Tag("~list")], Discriminator(shape_tag)]


class Relationship(Extensible):
    """A foreign key: `from` is implied if it is on a property."""

    id: str | None = None
    type: Literal["foreignKey"] = "foreignKey"
    from_: Names | None = Field(None, alias="from")
    to: Names | None = None


def _text_or_mapping(value: object) -> object:
    if isinstance(value, (str, dict)):
        return value
    raise ValueError("it must be text or a mapping")


class Quality(Described):
    """One quality rule; its type determines the keys that it needs (see `validators/rules`)."""

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
        """Return the comparison operators in the file, by their ODCS names."""
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
    """`logicalTypeOptions`. A rule checks which of them fit the logical type."""

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
    """Common keys of objects and properties."""

    name: str | None = None
    physical_name: str | None = None
    physical_type: str | None = None
    description: str | None = None
    business_name: str | None = None
    deprecated: bool | None = None
    synonyms: list[Synonym] = Field(default_factory=empty_list)
    relationships: list[Relationship] = Field(default_factory=empty_list)
    quality: list[Quality] = Field(default_factory=empty_list)

    @property
    def column(self) -> str:
        """Name in the data: the physical name, else the name."""
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
    properties: list[Property] = Field(default_factory=empty_list)
    items: Property | None = None
    map: MapTypes | None = None

    def children(self) -> Iterator[Property]:
        """Yield the direct children: of a struct, of an array's items, of a map's key and value."""
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
    properties: list[Property] = Field(default_factory=empty_list)
    context: Context | None = None

    def walk(self) -> Iterator[Property]:
        """Yield every property, nested ones after their parent."""
        stack = list(reversed(self.properties))
        while stack:
            prop = stack.pop()
            yield prop
            # Most columns have nothing inside, and a registry has many columns.
            if prop.properties or prop.items is not None or prop.map is not None:
                stack.extend(reversed(list(prop.children())))

    def single_valued_paths(self) -> Iterator[tuple[Property, ...]]:
        """Yield the path of every property that has one value per row, i.e. is not inside an array or map."""
        stack: list[tuple[Property, ...]] = [(prop,) for prop in reversed(self.properties)]
        while stack:
            path = stack.pop()
            yield path
            stack += [(*path, inner) for inner in reversed(path[-1].properties)]

    def partition_keys(self) -> list[Property]:
        """Return the partition columns ordered by position (1-based; those without one last)."""
        keys = [prop for prop in self.properties if prop.partitioned]
        return sorted(keys, key=lambda prop: prop.partition_key_position or 1 << 30)

    def primary_key(self) -> list[Property]:
        """Return the columns of the primary key ordered by position."""
        keys = [prop for prop in self.properties if prop.primary_key]
        return sorted(keys, key=lambda prop: prop.primary_key_position or 1 << 30)


# Identity of a contract, and the key of its records in the state store.
#
# Two major versions of a contract may coexist as two products: each has its own deliveries, runs and
# incidents. So no record is keyed by the id alone.

Identity = tuple[str, str]
"""Id and major version, as texts."""

_DEFAULT_MAJOR = "1"
_SEPARATOR = "@"


def identity(id: str, version: str) -> Identity:
    """Return the id and the major version of a contract: `("orders", "2")` for orders 2.1.0."""
    return id, version.removeprefix("v").partition(".")[0]


def contract_key(id: str, version: str) -> str:
    """Return the identity as one text, which is unique for any id and version.

    Major 1 is the id alone, every other one `id@major`. An id must not contain `@` (rule `id-form`); if it
    does, the major is always added, so that it cannot be mistaken for another contract's key.
    """
    name, major = identity(id, version)
    if major == _DEFAULT_MAJOR and _SEPARATOR not in name:
        return name
    return f"{name}{_SEPARATOR}{quote(major, safe='')}"


# The contract as typed values: ODCS 3.0 to 3.2, one model for all three.
#
# Tables in `odcs.py` list the keys of each version and of each server type. Source: the Open Data Contract
# Standard, https://bitol-io.github.io/open-data-contract-standard/.


class Role(Extensible):
    role: str
    id: str | None = None
    description: str | None = None
    access: str | None = None
    first_level_approvers: str | None = None
    second_level_approvers: str | None = None


class Server(Extensible):
    """Location of the data. `odcs.SERVER_TYPES` lists the further keys of each type."""

    model_config = ConfigDict(extra="allow")

    server: str
    type: str
    id: str | None = None
    description: str | None = None
    environment: str | None = None
    roles: list[Role] = Field(default_factory=empty_list)

    def get(self, key: str) -> str | None:
        """Return the value of one of the type's own keys (`location`, `path`, `database` …) as text, or
        None.
        """
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
    members: list[Member] = Field(default_factory=empty_list)


# ODCS 3.0 lists the members; 3.1 made the team an object and keeps the list as deprecated.
TeamForm = Annotated[
    Annotated[Team, Tag("~mapping")] | Annotated[list[Member], Tag("~list")], Discriminator(shape_tag)
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
    authoritative_definitions: list[AuthoritativeDefinition] = Field(default_factory=empty_list)


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
    tags: list[str] = Field(default_factory=empty_list)
    description: Description | None = None
    context: Context | None = None
    servers: list[Server] = Field(default_factory=empty_list)
    objects: list[SchemaObject] = Field(default_factory=empty_list, alias="schema")
    support: list[SupportChannel] = Field(default_factory=empty_list)
    price: Price | None = None
    team: TeamForm | None = None
    roles: list[Role] = Field(default_factory=empty_list)
    sla_default_element: str | None = None
    sla_properties: list[SlaProperty] = Field(default_factory=empty_list)
    authoritative_definitions: list[AuthoritativeDefinition] = Field(default_factory=empty_list)
    contract_created_ts: str | None = None

    @property
    def file(self) -> str:
        return self.place.file

    @property
    def digest(self) -> str:
        """SHA-256 of its file, as 64 hexadecimal digits, or "" if it was not read from a file."""
        return self.place.digest

    @property
    def identity(self) -> Identity:
        """Id and major version: two files with the same identity are the same contract."""
        return identity(self.id, self.version)

    @property
    def key(self) -> str:
        """Key of its deliveries, runs and incidents in the state store; see `contract_key`."""
        return contract_key(self.id, self.version)

    @property
    def odcs(self) -> tuple[int, int, int]:
        """Version of the standard that this contract follows, e.g. (3, 2, 0)."""
        return versions.parse_version(self.api_version)

    def object(self, name: str) -> SchemaObject | None:
        """Return the object of this name or id, or None."""
        return next(
            (
                schema_object
                for schema_object in self.objects
                if name in (schema_object.name, schema_object.id)
            ),
            None,
        )

    def members(self) -> list[Member]:
        """Return the team's members, from either form that ODCS allows."""
        if isinstance(self.team, Team):
            return self.team.members
        return self.team or []


# Messages for type errors: pydantic's errors, described with the text of the file.

# pydantic's error type -> expected kind of value, and an example of it.
_EXPECTED = {
    "string_type": ("text", "some text"),
    "bool_type": ("a boolean", "true"),
    "int_type": ("a whole number", "1"),
    "int_from_float": ("a whole number", "1"),
    "float_type": ("a number", "1.5"),
    "list_type": ("a list", "[…]"),
    "dict_type": ("a mapping", "{…}"),
    "model_type": ("a mapping", "{…}"),
    "model_attributes_type": ("a mapping", "{…}"),
    "union_tag_invalid": ("a mapping or a list", "[…]"),
    "date_type": ("a date", "2027-01-31"),
    "finite_number": ("a finite number", "1.5"),
}

# Keys of durations, whose number without a unit needs the unit and not quotes.
_DURATION_KEYS = frozenset({"grace", "window", "giveUpAfter"})


def _unit_hint(key: str, value: object) -> str:
    """Return how to add the unit to a bare number of a duration or an objective, or ""."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return ""
    if key == "objective":
        return f"Write a percentage: {key}: {value * 100 if value <= 1 else value:g}%."
    if key in _DURATION_KEYS and isinstance(value, int):
        return f"Add a unit, e.g. {key}: {value}m for minutes, {value}h for hours, {value}d for days."
    return ""


# A number that YAML 1.1 takes for text in some spellings.
_EXPONENT = re.compile(r"[-+]?[0-9]{1,20}(\.[0-9]{0,20})?[eE][-+]?[0-9]{1,2}")


def describe_value(value: object) -> str:
    """Return a description of a value that YAML has read, for messages."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return f"{str(value).lower()} (a boolean)"
    if isinstance(value, (int, float)):
        return f"the number {value}"
    if isinstance(value, dt.date):
        return "a date"
    if isinstance(value, str):
        return f"the text {value!r}" if len(value) < 40 else "a text"
    return "a list" if isinstance(value, list) else "a mapping"


def format_number(number: float) -> str:
    """Return a number as YAML 1.1 and 1.2 both read it: `1.0e-06`, where Python writes `1e-06`."""
    if isinstance(number, int):
        return str(number)
    short = f"{number:.15g}"
    return with_point(short if float(short) == number else repr(number))


def with_point(text: str) -> str:
    """Return a float as Python writes it with a point before its exponent, which YAML 1.1 asks for."""
    return text if "e" not in text or "." in text else text.replace("e", ".0e")


def empty_value_finding(source_map: SourceMap, key: str) -> Finding:
    """Return the finding for a key without a value, located at the key if nothing is written."""
    value_location, key_location = source_map.locate(key), source_map.locate_key(key)
    hint = f"Give '{key}' a value, or remove it."
    is_on_key_line = (
        value_location.line == key_location.line
        and value_location.column > key_location.column + len(key) + 1
    )
    if not is_on_key_line:
        hint += " YAML treats unquoted text after '#' as a comment."
    return error_finding(
        "wrong-type",
        f"{key} is empty.",
        hint,
        value_location if is_on_key_line else key_location,
        source_map.child_path(key),
    )


def explain_error(
    detail: ErrorDetails, model: type[Node], source_map: SourceMap, key: str | int, index: int | None
) -> Finding:
    """Return the finding for one of pydantic's errors.

    `source_map` is of the mapping with the error, `key` the key in it and `index` the position in its list
    if the error is about an item.
    """
    kind, value = detail["type"], detail.get("input")
    name = f"{key}[{index}]" if index is not None else str(key)
    path = source_map.child_path(name)
    location = source_map.locate(str(key), index)
    if index is None and isinstance(value, dict | list):
        # The value may begin on a line below its key; report the earlier one.
        location = min(location, source_map.locate_key(str(key)), key=lambda candidate: candidate.line)
    if kind == "extra_forbidden":
        return _unknown_key_finding(model, detail["loc"], source_map, str(key), value, path)
    if kind == "missing":
        subject = source_map.path or _document_name(model)
        return error_finding(
            "missing-key", f"{subject} needs {key!r}.", f"Add '{key}: …'.", source_map.locate(), path
        )
    if kind in ("literal_error", "enum"):
        return _unknown_value_finding(detail, name, value, location, path)
    if value is None:
        if index is None:
            return empty_value_finding(source_map, str(key))
        return error_finding("wrong-type", f"{name} is empty.", "Remove the empty item.", location, path)
    if kind not in _EXPECTED:
        # Our own validators raise with a complete message, which pydantic prefixes.
        problem, _, fix = detail["msg"].removeprefix("Value error, ").partition(". Write ")
        hint = f"Write {fix}." if fix else "Run 'dq schema' to see what fits."
        return error_finding("wrong-type", f"{name}: {problem}.", hint, location, path)
    expected, example = _EXPECTED[kind]
    if index is None and isinstance(detail["loc"][-1], int):
        first_key = next((key for key, info in _fields_at(model, detail["loc"]) if info.is_required()), "…")
        # Quoted, as JSON is YAML: a bare 01 would be read as a number.
        is_short = isinstance(value, (str, int)) and len(str(value)) < 40
        value_text = json.dumps(value, ensure_ascii=False) if is_short else "…"
        message = f"every item of {name} must be a mapping, not {describe_value(value)}."
        return error_finding(
            "wrong-type", message, f"Write {name}: [{{{first_key}: {value_text}}}, …].", location, path
        )
    # An item is written without the key of its list.
    prefix = f"{key}: " if index is None else ""
    raw = source_map.raw.get(str(key)) if index is None else None
    if kind == "string_type" and isinstance(value, (bool, int, float, dt.date)):
        source_text = raw or _yaml_scalar(value)
        message = f"{name} must be text, and YAML reads {source_text} as {describe_value(value)}."
        hint = _unit_hint(str(key), value) if index is None else ""
        return error_finding(
            "wrong-type", message, hint or f'Quote it: {prefix}"{source_text}".', location, path
        )
    message = f"{name} must be {expected}, not {describe_value(value)}."
    hint = f"Write {prefix}{example}."
    if expected == "a mapping" and isinstance(value, str) and "purpose" in keys_at(model, detail["loc"]):
        text = json.dumps(value, ensure_ascii=False) if len(value) < 80 else "…"
        hint = f"Write {prefix}{{purpose: {text}}}."
    if isinstance(value, str) and kind in ("bool_type", "int_type", "float_type"):
        message = f"{name} must be {expected}, not the string {value!r}."
        if _has_form(kind, value):
            hint = f"Remove the quotes: {prefix}{value}."
        elif kind == "float_type" and _EXPONENT.fullmatch(value):
            hint = f"Write {prefix}{format_number(float(value))}."
    return error_finding("wrong-type", message, hint, location, path)


# Logical types by the names that SQL, Spark and Python use.
_TYPE_ALIASES = {
    "datetime": "timestamp",
    **dict.fromkeys(("int", "long", "bigint", "smallint", "tinyint", "short"), "integer"),
    **dict.fromkeys(("float", "double", "decimal", "numeric"), "number"),
    **dict.fromkeys(("str", "text", "varchar", "char"), "string"),
    **dict.fromkeys(("struct", "record", "map"), "object"),
    **dict.fromkeys(("list", "set"), "array"),
}
# Operators by the names that ODCS does not use.
_KEY_ALIASES = {
    **dict.fromkeys(("mustEqual", "mustBeEqual", "mustBeEqualTo"), "mustBe"),
    **dict.fromkeys(("mustNotEqual", "mustNotBeEqualTo"), "mustNotBe"),
    **dict.fromkeys(("mustBeAtLeast", "mustBeMin"), "mustBeGreaterOrEqualTo"),
    **dict.fromkeys(("mustBeAtMost", "mustBeMax"), "mustBeLessOrEqualTo"),
}


def _unknown_key_finding(
    model: type[Node], loc: tuple[int | str, ...], source_map: SourceMap, key: str, value: object, path: str
) -> Finding:
    known_keys = sorted(keys_at(model, loc[:-1]))
    subject = source_map.path or _document_name(model)
    candidate = nearest(key, known_keys)
    if key == "$ref":
        hint = "ODCS has no $ref: write the element out, or share it with a YAML anchor."
    elif translated := versions.migration_hint(key, value, known_keys, source_map.keys):
        hint = translated
    elif (alias := _KEY_ALIASES.get(key)) in known_keys:
        hint = f"Did you mean {alias!r}?"
    elif candidate and candidate != key and _is_misspelling(key.lower(), candidate.lower()):
        hint = f"Did you mean {candidate!r}?"
    elif container := _containing_key(model, loc, key):
        hint = f"It belongs under {container!r}."
    elif "customProperties" in known_keys:
        hint = "Put your own keys under 'customProperties'."
    else:
        hint = f"It takes {', '.join(known_keys)}."
    return error_finding(
        "unknown-key", f"{subject} has no key {key!r}.", hint, source_map.locate_key(key), path
    )


def _containing_key(model: type[Node], loc: tuple[int | str, ...], key: str) -> str | None:
    """Return the key of this mapping whose value allows the unknown key, or None unless there is exactly
    one.
    """
    names = {
        name
        for name, info in _fields_at(model, loc[:-1])
        if any(key in keys_at(inner) for inner in _node_types(info.annotation))
    }
    return names.pop() if len(names) == 1 else None


def _is_misspelling(key: str, hint: str) -> bool:
    return key.startswith(hint) or _edit_distance(key, hint) <= (len(hint) + 1) // 3


def _edit_distance(word: str, other: str) -> int:
    """Return the Damerau-Levenshtein distance: insertions, deletions, substitutions and transpositions."""
    row_before_last: list[int] = []
    last_row = list(range(len(other) + 1))
    for row_number, letter in enumerate(word, 1):
        current_row = [row_number]
        for column, other_letter in enumerate(other, 1):
            current_row.append(
                min(
                    last_row[column] + 1, current_row[-1] + 1, last_row[column - 1] + (letter != other_letter)
                )
            )
            if (
                row_number > 1 < column
                and letter == other[column - 2]
                and other_letter == word[row_number - 2]
            ):
                current_row[column] = min(current_row[column], row_before_last[column - 2] + 1)
        row_before_last, last_row = last_row, current_row
    return last_row[-1]


def _unknown_value_finding(
    detail: ErrorDetails, name: str, value: Any, location: Location, path: str
) -> Finding:
    expected = str(detail.get("ctx", {}).get("expected", ""))
    words = [word.strip("' ") for word in expected.replace(" or ", ", ").split(",")]
    value_text = f"{value!r}" if isinstance(value, str) else describe_value(value)
    alias = _TYPE_ALIASES.get(value.lower()) if isinstance(value, str) else None
    hint = (
        f"Did you mean {alias!r}?" if alias in words else suggestion(value, words, f"Write {one_of(words)}.")
    )
    message = (
        f"unknown {name} {value_text}." if isinstance(value, str) else f"{name} must not be {value_text}."
    )
    return error_finding("unknown-value", message, hint, location, path)


def _document_name(model: type[Node]) -> str:
    """Return the name of a document of this model: its title, else the model's name."""
    return model.model_config.get("title") or f"the {model.__name__.lower()}"


def keys_at(model: type[Node], loc: tuple[int | str, ...] = ()) -> set[str]:
    """Return every key that a mapping at this location may have, as written in the file."""
    return {key for key, _ in _fields_at(model, loc)}


def models_at(model: type[Node], loc: tuple[int | str, ...]) -> list[type[Node]]:
    """Return the possible models of a mapping at this location."""
    models = [model]
    for part in loc:
        if isinstance(part, int) or part.startswith("~"):
            continue
        models = [
            inner
            for candidate in models
            for key, info in _fields_at(candidate, ())
            if key == part
            for inner in _node_types(info.annotation)
        ]
    return models


def _fields_at(model: type[Node], loc: tuple[int | str, ...]) -> Iterator[tuple[str, FieldInfo]]:
    """Yield the fields that a mapping at this location may have, by their keys in the file."""
    for candidate in models_at(model, loc) if loc else [model]:
        for name, info in candidate.model_fields.items():
            if info.alias != SOURCE_MAP_KEY:
                yield info.alias or name, info


def _node_types(annotation: Any) -> list[type[Node]]:
    if isinstance(annotation, type) and issubclass(annotation, Node):
        return [annotation]
    return [node_type for inner in typing.get_args(annotation) for node_type in _node_types(inner)]


def _yaml_scalar(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _has_form(kind: str, value: str) -> bool:
    if kind == "bool_type":
        return value in ("true", "false")
    return value.replace(".", "", kind == "float_type").lstrip("-").isdigit()


# Conversion of YAML values to a model, with all type errors at once.
#
# Parts that do not fit are removed, and the remaining document is validated again.

N = TypeVar("N", bound=Node)

# Maximum number of reported findings; further invalid parts are removed without a finding.
MAX_FINDINGS = 1_000
# A file with more type errors than this is not a contract.
MAX_ERRORS = 20_000

# Keys without which a document has no identity, with defaults so that the remaining document can be read.
_ROOT_DEFAULTS: dict[str, Any] = {"id": "", "version": "", "kind": "DataContract"}


def parse_model(model: type[N], document: dict[str, Any]) -> tuple[N | None, list[Finding], set[str]]:
    """Return the document as a model, the findings about its types, and the paths that were removed.

    The model is None if the root itself is invalid. `document` is modified.
    """
    findings: list[Finding] = []
    removed: set[str] = set()
    # Each round removes at least one part, and every part is at most MAX_DEPTH deep.
    for _ in range(MAX_DEPTH):
        try:
            return model.model_validate(document), findings, removed
        except ValidationError as error:
            details = error.errors(include_url=False)
            if len(details) > MAX_ERRORS:
                return None, [*findings, _not_a_contract(document, len(details))], removed
        removals: list[tuple[Any, int | str]] = []
        lacks_root_key = False
        is_misspelt = _misspelling_test(details)
        lists = Counter(entry["loc"][:-1] for entry in details if entry["type"] in _NOT_A_MAPPING)
        for detail in details:
            steps = _trace(document, detail["loc"])
            if _restore_date_text(detail, steps):
                continue
            source_map, key, index = _enclosing_mapping(steps)
            path = source_map.child_path(key if index is None else f"{key}[{index}]")
            missing = detail["type"] == "missing"
            if (list_loc := detail["loc"][:-1]) in lists and lists[list_loc] == len(steps[-1][0]) > 1:
                # One mistake: all items of the list have the wrong form.
                steps, path, index = steps[:-1], source_map.child_path(key), None
                if path in removed:
                    continue
            if path not in removed and len(findings) < MAX_FINDINGS and not (missing and is_misspelt(detail)):
                findings.append(explain_error(detail, model, source_map, key, index))
                if len(findings) == MAX_FINDINGS:
                    findings[-1] = replace(
                        findings[-1], message=f"{findings[-1].message} More errors are not listed."
                    )
            removed.add(path)
            if missing and len(steps) == 1:
                # Continue: the key may be misspelt, which the finding about the unknown key says.
                lacks_root_key = lacks_root_key or detail["loc"][0] not in _ROOT_DEFAULTS
                continue
            if missing:
                # An element without a required key is removed entirely.
                removed.add(steps[-1][0][SOURCE_MAP_KEY].path)
            removals.append(steps[-2] if missing else steps[-1])
        if lacks_root_key:
            return None, findings, removed
        _remove(removals)
        for key, default in _ROOT_DEFAULTS.items():
            if key in removed and model is Contract:
                document.setdefault(key, default)
    return None, findings, removed


# pydantic's errors for a value that should be a mapping.
_NOT_A_MAPPING = ("model_type", "model_attributes_type", "dict_type")


def _restore_date_text(detail: ErrorDetails, steps: list[tuple[Any, int | str]]) -> bool:
    """Restore the text of a date if ODCS expects text, and return True if so.

    YAML reads unquoted dates as dates, and ODCS's own examples are not quoted.
    """
    container, key = steps[-1]
    if detail["type"] != "string_type" or not isinstance(detail.get("input"), dt.date):
        return False
    source_text = container[SOURCE_MAP_KEY].raw.get(key) if isinstance(container, dict) else None
    container[key] = source_text or detail["input"].isoformat()
    return True


def _misspelling_test(details: list[ErrorDetails]) -> Callable[[ErrorDetails], bool]:
    """Return a predicate that is True for a missing key if a similar unknown key is next to it."""
    unknown: dict[tuple[int | str, ...], list[str]] = {}
    for detail in details:
        if detail["type"] == "extra_forbidden":
            unknown.setdefault(detail["loc"][:-1], []).append(str(detail["loc"][-1]))
    return lambda missing: any(
        unknown_key == "$ref" or nearest(unknown_key, [str(missing["loc"][-1])])
        for unknown_key in unknown.get(missing["loc"][:-1], ())
    )


def _trace(document: dict[str, Any], loc: tuple[int | str, ...]) -> list[tuple[Any, int | str]]:
    """Return the path to a location as (container, key) pairs, without pydantic's union tags."""
    steps: list[tuple[Any, int | str]] = []
    current: Any = document
    for part in loc:
        is_key = isinstance(current, dict) and part in current
        if isinstance(part, str) and part.startswith("~") and not is_key:
            continue
        steps.append((current, part))
        is_inside = isinstance(current, (dict, list)) and (
            part in current if isinstance(current, dict) else True
        )
        current = current[part] if is_inside else None
    return steps


def _not_a_contract(document: dict[str, Any], count: int) -> Finding:
    message = f"{count:,} unknown keys or values; this may not be a contract."
    hint = "Compare it with a contract created by 'dq init'."
    return error_finding("not-a-contract", message, hint, document[SOURCE_MAP_KEY].locate())


def _enclosing_mapping(steps: list[tuple[Any, int | str]]) -> tuple[SourceMap, str, int | None]:
    """Return the source map of the enclosing mapping, the key in it, and the index of a list item or None."""
    container, key = steps[-1]
    if isinstance(container, dict):
        return container[SOURCE_MAP_KEY], str(key), None
    mapping, list_key = next(step for step in reversed(steps) if isinstance(step[0], dict))
    return mapping[SOURCE_MAP_KEY], str(list_key), int(key)


def _remove(removals: list[tuple[Any, int | str]]) -> None:
    """Remove the parts; items of a list from the end, so that indices stay valid."""
    indices: dict[int, tuple[list[Any], set[int]]] = {}
    for container, key in removals:
        if isinstance(container, dict):
            if key in container:
                source_map: SourceMap = container[SOURCE_MAP_KEY]
                source_map.removed = {**(source_map.removed or {}), str(key): container.pop(key)}
        else:
            indices.setdefault(id(container), (container, set()))[1].add(int(key))
    for items, removed in indices.values():
        for index in sorted(removed, reverse=True):
            del items[index]
