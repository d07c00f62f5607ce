"""What many elements of a contract share: custom properties, definitions, context."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, Discriminator, Field, Tag

from dq.contracts.node import Node, Open, no_items


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
