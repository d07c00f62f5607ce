"""The form of `dq-policy.yaml`: closed models, with the descriptions that editors show."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field

from dq.contracts.node import Node, Open
from dq.contracts.shared.extension_values import Date, Filled
from dq.contracts.shared_nodes import Scalar
from dq.validators.policy.schema_vetting import pattern_problem

OFF = "off"


def _off(value: object) -> object:
    """YAML 1.1 reads a plain `off` as false."""
    return OFF if value is False else value


def _pattern(text: str) -> str:
    problem = pattern_problem(text)
    if problem is not None:
        raise ValueError(problem)
    return text


SeverityWord = Annotated[Literal["off", "info", "warning", "error", "critical"], BeforeValidator(_off)]


class _Form(Node):
    """A mapping of the policy; its keys are written as they are named here."""

    model_config = ConfigDict(alias_generator=None)


class SettingForm(_Form):
    model_config = ConfigDict(title="the rule's setting")

    severity: SeverityWord | None = Field(None, description="How much the fault matters; off for not at all.")


class For(_Form):
    path_: str | None = Field(
        None, alias="path", description="A path from the registry's root; * and ** as in .gitignore."
    )
    domain: str | None = Field(None, description="The contract's domain, exactly.")


class SectionForm(_Form):
    for_: For = Field(alias="for", description="Which contracts; with both keys, those that fit both.")
    profile: Literal["default", "strict"] | None = None
    rules: dict[str, Open] = Field({}, description="Settings by rule id.")


class Predicate(_Form):
    """What one key must be; several operators must hold together."""

    model_config = ConfigDict(alias_generator=lambda name: name.replace("_", "-"), title="the test")

    exists: bool | None = Field(None, description="The key is there; with false, it is not.")
    not_empty: bool | None = Field(None, description="The text or list says something.")
    equals: Scalar = Field(None, description="It is exactly this value.")
    one_of: list[Scalar] | None = Field(None, description="It is one of these values.")
    none_of: list[Scalar] | None = Field(None, description="It is none of these values.")
    matches: Annotated[str, AfterValidator(_pattern)] | None = Field(
        None, description="A regular expression is found in the text; ^ and $ make it the whole text."
    )
    contains: Scalar = Field(None, description="The list has this item.")
    min_length: int | None = Field(None, description="Characters of a text, or items of a list, at least.")
    max_length: int | None = Field(None, description="Characters of a text, or items of a list, at most.")
    at_least: float | None = Field(None, description="The number is this or more.")
    at_most: float | None = Field(None, description="The number is this or less.")


class OwnForm(_Form):
    """A rule of the organisation's own."""

    model_config = ConfigDict(title="the rule")

    select: Literal[
        "contract",
        "object",
        "property",
        "column",
        "quality",
        "server",
        "slaProperty",
        "support",
        "role",
        "member",
    ] = Field(description="The kind of element that is judged; a column is a property that is not nested.")
    where: dict[str, Open] = Field({}, description="Only elements whose keys pass these tests.")
    assert_: dict[str, Open] = Field(alias="assert", description="What their keys must pass.")
    message: Filled = Field(description="What is wrong, for the producer.")
    mend: str | None = Field(None, description="What to write instead.")
    severity: Literal["info", "warning", "error", "critical"] = "warning"


class WaiverForm(_Form):
    """A finding that someone has accepted until a day."""

    model_config = ConfigDict(title="the waiver")

    rule: Filled = Field(description="The rule's id.")
    contract: Filled = Field(description="The contract's id.")
    path_: str = Field(alias="path", description="The finding's path, as 'dq validate --format json' has it.")
    reason: Filled = Field(description="Why it is accepted.")
    by: Filled = Field(description="Who accepted it.")
    expires: Date = Field(description="The last day on which it holds.")


class SchemasForm(_Form):
    """JSON Schemas (2020-12) of the object that an element's custom properties make, by level."""

    model_config = ConfigDict(title="the schemas")

    contract: dict[str, Open] | None = None
    object: dict[str, Open] | None = None
    property: dict[str, Open] | None = None
    slaProperty: dict[str, Open] | None = None  # noqa: N815 - a key of the policy
    server: dict[str, Open] | None = None


class PolicyForm(_Form):
    model_config = ConfigDict(title="the policy")

    registry: Filled | None = Field(
        None, description="What this registry is called in catalogs; else the Git remote names it."
    )
    servers: dict[str, Open] = Field(
        {},
        description="By environment: the server of a contract (by its id) where `environment` does not tell.",
    )
    profile: Literal["default", "strict"] = Field(
        "default", description="strict makes infos warnings, and warnings errors."
    )
    rules: dict[str, Open] = Field({}, description="Settings by rule id.")
    sections: list[SectionForm] = Field([], description="What differs for some contracts; later ones win.")
    own: dict[str, Open] = Field({}, description="Rules of the organisation's own, by id.")
    waivers: list[WaiverForm] = Field([], description="Findings that someone has accepted, until a day.")
    custom_properties: SchemasForm | None = Field(
        None, alias="customProperties", description="What the custom properties of each level must be."
    )
