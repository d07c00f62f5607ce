"""The name of a clause by ids and names, which stays when a column moves; its path is by positions.

`schema[0].properties[4].required` is `schema/orders/properties/state/required`, in the manner in which ODCS
refers to what has an id.
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
from dq.contracts.outcome import Finding, Location, mistake, nearest, one_of, suggestion


def namer(one: SchemaObject) -> Callable[[str], str]:
    """What names the paths of an object's clauses.

    Of each part the id counts, else the name; of a relationship what it leads to. What has neither, or shares
    it with another one beside it, keeps its position; so does what is called like a position.
    """
    known = {one.path(): f"schema/{one.id or one.name}"}
    _below(one, known)

    def name(path: str) -> str:
        # The nearest node that the path lies in; a table of a thousand columns asks for each of them.
        node = path
        while node and node not in known:
            node = node[: max(node.rfind("."), node.rfind("["), 0)]
        if not node:
            return path
        rest = path[len(node) :].replace("[", ".").replace("]", "")
        return known[node] + rest.replace(".", "/")

    return name


def _below(element: SchemaObject | Property, known: dict[str, str]) -> None:
    above = known[element.path()]
    _label(known, f"{above}/properties", [(one, one.id or one.name) for one in element.properties])
    _label(known, f"{above}/quality", [(one, one.id or one.name) for one in element.quality])
    _label(known, f"{above}/relationships", [(one, _leads_to(one)) for one in element.relationships])
    children = list(element.properties)
    if isinstance(element, Property):
        children = list(element.children())
        if element.items is not None:
            known[element.items.path()] = f"{above}/items"
        if element.map is not None:
            known[element.map.key.path()] = f"{above}/map/key"
            known[element.map.value.path()] = f"{above}/map/value"
    for child in children:
        _below(child, known)


def _label(known: dict[str, str], above: str, labelled: Sequence[tuple[Node, str | None]]) -> None:
    times = Counter(label for _, label in labelled)
    for index, (node, label) in enumerate(labelled):
        own = label and times[label] == 1 and not label.isdecimal()
        known[node.path()] = f"{above}/{label if own else index}"


def _leads_to(one: Relationship) -> str | None:
    to = [one.to] if isinstance(one.to, str) else one.to or []
    return one.id or ",".join(to) or None


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


# A value that ODCS leaves open. Mappings inside still carry their places; see `plain`.
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
# Which key belongs to which version, and which keys a server type takes, are tables in `odcs.py`. Source:
# the Open Data Contract Standard, https://bitol-io.github.io/open-data-contract-standard/.


class Role(Extensible):
    role: str
    id: str | None = None
    description: str | None = None
    access: str | None = None
    first_level_approvers: str | None = None
    second_level_approvers: str | None = None


class Server(Extensible):
    """Where the data lives. Which further keys a type takes: `odcs.SERVER_TYPES`."""

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
        """What the store files its deliveries, runs and incidents under; see `key`."""
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


# Errors of form in the reader's words: what pydantic found, said with the text that stands in the file.

# pydantic's error type -> what the value must be, and an example of it.
_WANTED = {
    "string_type": ("text", "some text"),
    "bool_type": ("true or false", "true"),
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


# A number that YAML 1.1 takes for text in some spellings.
_EXPONENT = re.compile(r"[-+]?[0-9]{1,20}(\.[0-9]{0,20})?[eE][-+]?[0-9]{1,2}")


def read_as(value: object) -> str:
    """The kind of value that YAML gave, in a reader's words."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return f"{str(value).lower()} (true or false)"
    if isinstance(value, (int, float)):
        return f"the number {value}"
    if isinstance(value, dt.date):
        return "a date"
    if isinstance(value, str):
        return f"the text {value!r}" if len(value) < 40 else "a text"
    return "a list" if isinstance(value, list) else "a mapping"


def spelled(number: float) -> str:
    """Return a number as YAML 1.1 and 1.2 both read it: `1.0e-06`, where Python writes `1e-06`."""
    if isinstance(number, int):
        return str(number)
    short = f"{number:.15g}"
    return with_point(short if float(short) == number else repr(number))


def with_point(text: str) -> str:
    """Return a float as Python writes it with a point before its exponent, which YAML 1.1 asks for."""
    return text if "e" not in text or "." in text else text.replace("e", ".0e")


def empty(holder: Place, key: str) -> Finding:
    """The finding for a key without a value, which stands at the key where nothing is written."""
    at, key_at = holder.at(key), holder.at_key(key)
    mend = f"Give '{key}' a value, or remove it."
    written = at.line == key_at.line and at.column > key_at.column + len(key) + 1
    if not written:
        mend += " What begins with '#' is a comment to YAML, unless it stands in quotes."
    return mistake("wrong-type", f"{key} is empty.", mend, at if written else key_at, holder.below(key))


def explain(
    detail: ErrorDetails, model: type[Node], holder: Place, key: str | int, index: int | None
) -> Finding:
    """The finding for one error of form.

    `holder` is the mapping that the error is in, `key` the key there and `index` the place in its list,
    if it is about an item.
    """
    kind, value = detail["type"], detail.get("input")
    name = f"{key}[{index}]" if index is not None else str(key)
    path = holder.below(name)
    at = holder.at(str(key), index)
    if index is None and isinstance(value, dict | list):
        # What is written below its key begins with something that is not meant.
        at = min(at, holder.at_key(str(key)), key=lambda one: one.line)
    if kind == "extra_forbidden":
        return _unknown_key(model, detail["loc"], holder, str(key), value, path)
    if kind == "missing":
        what = holder.path or _named(model)
        return mistake("missing-key", f"{what} needs {key!r}.", f"Add '{key}: …'.", holder.at(), path)
    if kind in ("literal_error", "enum"):
        return _wrong_word(detail, name, value, at, path)
    if value is None:
        if index is None:
            return empty(holder, str(key))
        return mistake("wrong-type", f"{name} is empty.", "Remove the empty item.", at, path)
    if kind not in _WANTED:
        # Our own validators raise with a whole clause, which pydantic prefixes.
        said = detail["msg"].removeprefix("Value error, ")
        return mistake("wrong-type", f"{name}: {said}.", "Run 'dq schema' to see what fits.", at, path)
    wanted, example = _WANTED[kind]
    if index is None and isinstance(detail["loc"][-1], int):
        first = next((key for key, info in _fields_at(model, detail["loc"]) if info.is_required()), "…")
        # Quoted, as JSON is YAML: a bare 01 would be read as a number.
        short = isinstance(value, (str, int)) and len(str(value)) < 40
        shown = json.dumps(value, ensure_ascii=False) if short else "…"
        message = f"every item of {name} must be a mapping, not {read_as(value)}."
        return mistake("wrong-type", message, f"Write {name}: [{{{first}: {shown}}}, …].", at, path)
    # An item is written without the key of its list.
    begin = f"{key}: " if index is None else ""
    raw = holder.raw.get(str(key)) if index is None else None
    if kind == "string_type" and isinstance(value, (bool, int, float, dt.date)):
        written = raw or _yaml(value)
        message = f"{name} must be text, and YAML reads {written} as {read_as(value)}."
        return mistake("wrong-type", message, f'Quote it: {begin}"{written}".', at, path)
    message = f"{name} must be {wanted}, not {read_as(value)}."
    mend = f"Write {begin}{example}."
    if wanted == "a mapping" and isinstance(value, str) and "purpose" in keys_at(model, detail["loc"]):
        text = json.dumps(value, ensure_ascii=False) if len(value) < 80 else "…"
        mend = f"Write {begin}{{purpose: {text}}}."
    if isinstance(value, str) and kind in ("bool_type", "int_type", "float_type"):
        message = f"{name} must be {wanted}, and {value!r} is text."
        if _looks_right(kind, value):
            mend = f"Remove the quotes: {begin}{value}."
        elif kind == "float_type" and _EXPONENT.fullmatch(value):
            mend = f"Write {begin}{spelled(float(value))}."
    return mistake("wrong-type", message, mend, at, path)


def _unknown_key(
    model: type[Node], loc: tuple[int | str, ...], holder: Place, key: str, value: object, path: str
) -> Finding:
    known = sorted(keys_at(model, loc[:-1]))
    where = holder.path or _named(model)
    hint = nearest(key, known)
    if key == "$ref":
        mend = "ODCS has no $ref: write the element out, or share it with a YAML anchor."
    elif translated := versions.hint(key, value, known, holder.keys):
        mend = translated
    elif hint and hint != key and _is_meant(key.lower(), hint.lower()):
        mend = f"Did you mean {hint!r}?"
    elif inside := _that_hold(model, loc, key):
        mend = f"It stands under {inside!r}."
    elif "customProperties" in known:
        mend = "Put what is your own under 'customProperties'."
    else:
        mend = f"It takes {', '.join(known)}."
    return mistake("unknown-key", f"{where} has no key {key!r}.", mend, holder.at_key(key), path)


def _that_hold(model: type[Node], loc: tuple[int | str, ...], key: str) -> str | None:
    """The one key at this place whose value has the unknown one, if there is just one."""
    found = {
        name
        for name, info in _fields_at(model, loc[:-1])
        if any(key in keys_at(inner) for inner in _node_types(info.annotation))
    }
    return found.pop() if len(found) == 1 else None


def _is_meant(key: str, hint: str) -> bool:
    return key.startswith(hint) or _differ(key, hint) <= (len(hint) + 1) // 3


def _differ(one: str, other: str) -> int:
    """How many signs have to be added, taken away, exchanged or swapped to make one word of the other."""
    earlier: list[int] = []
    before = list(range(len(other) + 1))
    for row, sign in enumerate(one, 1):
        after = [row]
        for column, theirs in enumerate(other, 1):
            after.append(min(before[column] + 1, after[-1] + 1, before[column - 1] + (sign != theirs)))
            if row > 1 < column and sign == other[column - 2] and theirs == one[row - 2]:
                after[column] = min(after[column], earlier[column - 2] + 1)
        earlier, before = before, after
    return before[-1]


def _wrong_word(detail: ErrorDetails, name: str, value: Any, at: Location, path: str) -> Finding:
    expected = str(detail.get("ctx", {}).get("expected", ""))
    words = [word.strip("' ") for word in expected.replace(" or ", ", ").split(",")]
    shown = f"{value!r}" if isinstance(value, str) else read_as(value)
    mend = suggestion(value, words, f"Write {one_of(words)}.")
    return mistake("unknown-value", f"{name} is {shown}, which is not one that it can have.", mend, at, path)


def _named(model: type[Node]) -> str:
    """What a document of this model is called: its title, else its name."""
    return model.model_config.get("title") or f"the {model.__name__.lower()}"


def keys_at(model: type[Node], loc: tuple[int | str, ...] = ()) -> set[str]:
    """Every key that a mapping at this place may have, as written in the file."""
    return {key for key, _ in _fields_at(model, loc)}


def models_at(model: type[Node], loc: tuple[int | str, ...]) -> list[type[Node]]:
    """The models that a mapping at this place may be of."""
    models = [model]
    for part in loc:
        if isinstance(part, int) or part.startswith("~"):
            continue
        models = [
            inner
            for one in models
            for key, info in _fields_at(one, ())
            if key == part
            for inner in _node_types(info.annotation)
        ]
    return models


def _fields_at(model: type[Node], loc: tuple[int | str, ...]) -> Iterator[tuple[str, FieldInfo]]:
    """The fields that a mapping at this place may have, by their keys in the file."""
    for one in models_at(model, loc) if loc else [model]:
        for name, info in one.model_fields.items():
            if info.alias != PLACE:
                yield info.alias or name, info


def _node_types(annotation: Any) -> list[type[Node]]:
    if isinstance(annotation, type) and issubclass(annotation, Node):
        return [annotation]
    return [found for inner in typing.get_args(annotation) for found in _node_types(inner)]


def _yaml(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _looks_right(kind: str, value: str) -> bool:
    if kind == "bool_type":
        return value in ("true", "false")
    return value.replace(".", "", kind == "float_type").lstrip("-").isdigit()


# Values of YAML to one of our models, and everything that is wrong with their form, all at once.
#
# Parts that do not fit are cut out one by one and the rest is typed.

N = TypeVar("N", bound=Node)

# More mistakes of form than anyone reads at once; the rest is cut out all the same.
MAX_FINDINGS = 1_000
# With more errors of form than this, a file is none of ours.
MAX_ERRORS = 20_000

# Keys without which a document has no identity; a stand-in lets the rest be read all the same.
_ROOT_STAND_INS: dict[str, Any] = {"id": "", "version": "", "kind": "DataContract"}


def typed(model: type[N], top: dict[str, Any]) -> tuple[N | None, list[Finding], set[str]]:
    """`top` as a `model`, the findings about its form, and the paths that were cut out to get there.

    `top` is changed. None is given when the root itself cannot be typed.
    """
    findings: list[Finding] = []
    cut: set[str] = set()
    # Each round cuts at least one part away, and every part lies at most MAX_DEPTH deep.
    for _ in range(MAX_DEPTH):
        try:
            return model.model_validate(top), findings, cut
        except ValidationError as error:
            details = error.errors(include_url=False)
            if len(details) > MAX_ERRORS:
                return None, [*findings, _hopeless(top, len(details))], cut
        removals: list[tuple[Any, int | str]] = []
        rootless = False
        misspelt = _misspelt(details)
        lists = Counter(one["loc"][:-1] for one in details if one["type"] in _NO_MAPPING)
        for detail in details:
            steps = _steps(top, detail["loc"])
            if _is_date_as_text(detail, steps):
                continue
            holder, key, index = _spot(steps)
            path = holder.below(key if index is None else f"{key}[{index}]")
            missing = detail["type"] == "missing"
            if (listed := detail["loc"][:-1]) in lists and lists[listed] == len(steps[-1][0]) > 1:
                # One mistake: the whole list is written in another form.
                steps, path, index = steps[:-1], holder.below(key), None
                if path in cut:
                    continue
            if path not in cut and len(findings) < MAX_FINDINGS and not (missing and misspelt(detail)):
                findings.append(explain(detail, model, holder, key, index))
                if len(findings) == MAX_FINDINGS:
                    findings[-1] = replace(
                        findings[-1], message=f"{findings[-1].message} More are not listed."
                    )
            cut.add(path)
            if missing and len(steps) == 1:
                # The rest is looked at all the same: the key may be misspelt, which is said of its twin.
                rootless = rootless or detail["loc"][0] not in _ROOT_STAND_INS
                continue
            if missing:
                # What lacks a key goes as a whole.
                cut.add(steps[-1][0][PLACE].path)
            removals.append(steps[-2] if missing else steps[-1])
        if rootless:
            return None, findings, cut
        _remove(removals)
        for key, stand_in in _ROOT_STAND_INS.items():
            if key in cut and model is Contract:
                top.setdefault(key, stand_in)
    return None, findings, cut


# pydantic's errors for what is no mapping where the model has one.
_NO_MAPPING = ("model_type", "model_attributes_type", "dict_type")


def _is_date_as_text(detail: ErrorDetails, steps: list[tuple[Any, int | str]]) -> bool:
    """Puts the text back that YAML took for a date, where ODCS has text: its own examples are not quoted."""
    container, key = steps[-1]
    if detail["type"] != "string_type" or not isinstance(detail.get("input"), dt.date):
        return False
    written = container[PLACE].raw.get(key) if isinstance(container, dict) else None
    container[key] = written or detail["input"].isoformat()
    return True


def _misspelt(details: list[ErrorDetails]) -> Callable[[ErrorDetails], bool]:
    """Answers whether a key that is missing stands beside an unknown one that reads like it."""
    unknown: dict[tuple[int | str, ...], list[str]] = {}
    for detail in details:
        if detail["type"] == "extra_forbidden":
            unknown.setdefault(detail["loc"][:-1], []).append(str(detail["loc"][-1]))
    return lambda missing: any(
        written == "$ref" or nearest(written, [str(missing["loc"][-1])])
        for written in unknown.get(missing["loc"][:-1], ())
    )


def _steps(top: dict[str, Any], loc: tuple[int | str, ...]) -> list[tuple[Any, int | str]]:
    """The way to a place as (container, key) pairs; pydantic's union tags are not part of it."""
    steps: list[tuple[Any, int | str]] = []
    here: Any = top
    for part in loc:
        written = isinstance(here, dict) and part in here
        if isinstance(part, str) and part.startswith("~") and not written:
            continue
        steps.append((here, part))
        inside = isinstance(here, (dict, list)) and (part in here if isinstance(here, dict) else True)
        here = here[part] if inside else None
    return steps


def _hopeless(top: dict[str, Any], count: int) -> Finding:
    message = f"{count:,} values or keys are not those of a contract; perhaps it is another kind of file."
    mend = "Compare it with a contract that 'dq init' writes."
    return mistake("not-a-contract", message, mend, top[PLACE].at())


def _spot(steps: list[tuple[Any, int | str]]) -> tuple[Place, str, int | None]:
    """The mapping that a place is in, the key there, and the index if it is about an item of a list."""
    holder, key = steps[-1]
    if isinstance(holder, dict):
        return holder[PLACE], str(key), None
    mapping, list_key = next(step for step in reversed(steps) if isinstance(step[0], dict))
    return mapping[PLACE], str(list_key), int(key)


def _remove(removals: list[tuple[Any, int | str]]) -> None:
    """Takes the parts out; items of one list from the back, so that indices stay true."""
    indices: dict[int, tuple[list[Any], set[int]]] = {}
    for holder, key in removals:
        if isinstance(holder, dict):
            if key in holder:
                place: Place = holder[PLACE]
                place.cut = {**(place.cut or {}), str(key): holder.pop(key)}
        else:
            indices.setdefault(id(holder), (holder, set()))[1].add(int(key))
    for items, gone in indices.values():
        for index in sorted(gone, reverse=True):
            del items[index]
