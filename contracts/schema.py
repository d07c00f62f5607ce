"""The schema of a contract: objects, their properties at any depth, and the quality rules on both."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Discriminator, Field, Tag

from dq.contracts.node import Node, Open, no_items
from dq.contracts.shared_nodes import Context, Described, Extensible, Scalar, shape

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
