"""What every element of a contract is: strict, closed, frozen, and aware of where it was written."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticOmit

from dq.contracts.shared.outcome import Location
from dq.contracts.shared.source_map import PLACE, Place


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
        return id(self.place)


# A value that ODCS leaves open. Mappings inside still carry their places; see `source_map.plain`.
Open = Any


def no_items() -> list[Any]:
    """What a list is that is not written.

    Not `[]`, which pydantic would copy deeply for every element, nor `list`, whose signature it has to parse.
    """
    return []
