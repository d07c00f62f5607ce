"""`dq-policy.yaml` to a `Policy` and everything that is wrong with it; and its JSON Schema for editors."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, create_model

from dq.contracts.access.files import POLICY_FILE
from dq.contracts.extension import Date, Filled
from dq.contracts.model import PLACE, Node, Open, Place, Scalar, plain, typed
from dq.contracts.outcome import Finding, Severity, mistake, suggestion
from dq.contracts.yaml import source
from dq.validators.policy.custom_rules import OPERATORS, Test, custom_rule, keys_of
from dq.validators.policy.json_schema import pattern_problem
from dq.validators.policy.policy import DEFAULT, Policy, PolicyWaiver, RuleSetting, Section
from dq.validators.rule import Rule, RuleScope

# The form of `dq-policy.yaml`: closed models, with the descriptions that editors show.

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


Rules = Mapping[str, Rule]

_ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


def read(data: bytes, file: str, rules: Rules, also: Collection[str] = ()) -> tuple[Policy, list[Finding]]:
    """The policy in `data`, and what is wrong with it, sorted by place. An empty file is the default policy.

    `rules` are those on the shelf; `also` are further rule ids that a waiver may name, such as those of
    compatibility. What is wrong is left out of the policy that is given.
    """
    top, findings = source.read(data, file)
    if top is None:
        return DEFAULT, [wrong for finding in findings if (wrong := _of_policy(finding)) is not None]
    made, form, _ = typed(PolicyForm, top)
    findings += form
    if made is None:
        return DEFAULT, findings
    own_rules = dict(_own(made.own, rules, findings))
    known = {**rules, **own_rules}
    policy = Policy(
        made.profile,
        dict(_settings(made.rules, known, findings)),
        tuple(
            Section(one.for_.path_, one.for_.domain, one.profile, dict(_settings(one.rules, known, findings)))
            for one in made.sections
            if _says_where(one.for_, findings)
        ),
        own_rules,
        tuple(_waivers(made.waivers, known, also, findings)),
        dict(_schemas(made.custom_properties, findings)),
        made.registry or "",
        dict(_servers(made.servers, findings)),
    )
    return policy, sorted(findings, key=lambda finding: finding.at)


def _entries(written: Mapping[str, Any]) -> Iterator[tuple[str, Any, Place]]:
    """The keys of a free mapping with their values and its place."""
    place = written.get(PLACE)
    if isinstance(place, Place):
        for key, value in written.items():
            if key != PLACE:
                yield key, value, place


def _settings(
    written: Mapping[str, Any], rules: Rules, findings: list[Finding]
) -> Iterator[tuple[str, RuleSetting]]:
    for id_, value, place in _entries(written):
        rule = rules.get(id_)
        path = place.below(id_)
        if rule is None:
            mend = _did_you_mean(id_, rules)
            at = place.at_key(id_)
            findings.append(mistake("unknown-key", f"there is no rule {id_!r}.", mend, at, path))
        elif rule.scope is RuleScope.FORM:
            message = f"{id_} is always an error: what cannot be read cannot be judged."
            findings.append(
                mistake("unknown-value", message, "Remove this setting.", place.at_key(id_), path)
            )
        elif not isinstance(value, dict):
            mend = f"Write {id_}: {{severity: warning}}."
            findings.append(mistake("wrong-type", f"{id_} must be a mapping.", mend, place.at(id_), path))
        else:
            made, form, _ = typed(_model(rule), value)
            findings += form
            if made is not None:
                yield id_, _setting(made, rule)


def _setting(made: SettingForm, rule: Rule) -> RuleSetting:
    arguments = {one.name: getattr(made, one.name) for one in rule.arguments if made.has(one.name)}
    if made.severity is None:
        return RuleSetting(rule.severity, arguments, own_severity=False)
    return RuleSetting(None if made.severity == OFF else Severity(made.severity), arguments)


def _model(rule: Rule) -> type[SettingForm]:
    """The closed model of what a policy may say of this rule: its severity and its arguments."""
    fields: dict[str, Any] = {
        one.name: (list[str] if isinstance(one.default, tuple) else type(one.default), one.default)
        for one in rule.arguments
    }
    return create_model("SettingForm", __base__=SettingForm, **fields)


def _servers(written: Mapping[str, Any], findings: list[Finding]) -> Iterator[tuple[str, dict[str, str]]]:
    for environment, value, place in _entries(written):
        names = plain(value)
        if isinstance(names, dict) and all(isinstance(name, str) and name for name in names.values()):
            yield environment, {str(contract): name for contract, name in names.items()}
            continue
        message = f"servers of {environment!r} must be names by contract."
        mend = f"Write {environment}: {{orders: lake}}."
        path = place.below(environment)
        findings.append(mistake("wrong-type", message, mend, place.at(environment), path))


def _schemas(written: SchemasForm | None, findings: list[Finding]) -> Iterator[tuple[str, object]]:
    if written is None:
        return
    # Imported here: few policies have schemas, and jsonschema takes time to start.
    from dq.validators.policy.custom_rules import LEVELS, locate, wrong_schema

    for level in LEVELS:
        given = getattr(written, level)
        if given is None:
            continue
        schema = plain(given)
        wrong = wrong_schema(schema)
        if wrong is None:
            yield level, schema
        else:
            said, way = wrong
            at, path, _ = locate(written.place, level, given, way)
            message = f"the schema of {level} is no JSON Schema that can be used: {said}."
            findings.append(mistake("unknown-value", message, "Mend the schema.", at, path))


def _says_where(for_: For, findings: list[Finding]) -> bool:
    if for_.path_ is None and for_.domain is None:
        message = "the section does not say which contracts it is for."
        mend = "Write 'path: finance/**' or 'domain: finance'."
        findings.append(mistake("missing-key", message, mend, for_.at(), for_.path()))
        return False
    return True


def _own(written: Mapping[str, Any], rules: Rules, findings: list[Finding]) -> Iterator[tuple[str, Rule]]:
    for id_, value, place in _entries(written):
        at, path = place.at_key(id_), place.below(id_)
        if id_ in rules:
            message, mend = f"rule {id_!r} exists already.", "Give your own rule another id."
            findings.append(mistake("unknown-value", message, mend, at, path))
        elif not _ID.fullmatch(id_):
            message, mend = f"{id_!r} is not a rule's id.", "Write small letters and digits with hyphens."
            findings.append(mistake("unknown-value", message, mend, at, path))
        elif not isinstance(value, dict):
            message, mend = f"{id_} must be a mapping.", "Write select, assert and message."
            findings.append(mistake("wrong-type", message, mend, place.at(id_), path))
        else:
            made, form, _ = typed(OwnForm, value)
            findings += form
            if made is not None and not form:
                before = len(findings)
                where = tuple(_tests(made.where, made.select, findings))
                asserts = tuple(_tests(made.assert_, made.select, findings))
                if len(findings) == before and not asserts:
                    message, mend = f"{id_} asserts nothing.", "Add 'assert: {name: {exists: true}}'."
                    findings.append(mistake("missing-key", message, mend, made.at("assert"), path))
                elif len(findings) == before:
                    yield (
                        id_,
                        custom_rule(
                            id_, Severity(made.severity), made.select, where, asserts, made.message, made.mend
                        ),
                    )


def _tests(written: Mapping[str, Any], select: str, findings: list[Finding]) -> Iterator[Test]:
    known = keys_of(select)
    for key, value, place in _entries(written):
        steps = tuple(key.split("."))
        at, path = place.at_key(key), place.below(key)
        if steps[0] not in known:
            mend = _did_you_mean(steps[0], known)
            findings.append(mistake("unknown-key", f"no {select} has a key {steps[0]!r}.", mend, at, path))
        elif not isinstance(value, dict):
            mend = f"Write {key}: {{exists: true}}, or another operator."
            findings.append(mistake("wrong-type", f"{key} must be a mapping.", mend, place.at(key), path))
        else:
            made, form, _ = typed(Predicate, value)
            findings += form
            if made is None:
                continue
            for operator in sorted(OPERATORS.keys() & made.place.keys, key=list(OPERATORS).index):
                wanted = getattr(made, operator.replace("-", "_"))
                if wanted is not None:
                    yield Test(steps, operator, wanted)
                    continue
                message = f"{operator} says nothing of what {key} must be."
                at, path = made.at(operator), f"{place.below(key)}.{operator}"
                findings.append(mistake("wrong-type", message, "Write a value, or remove it.", at, path))


def _waivers(
    written: list[WaiverForm], rules: Rules, also: Collection[str], findings: list[Finding]
) -> Iterator[PolicyWaiver]:
    seen: dict[tuple[str, str, str], WaiverForm] = {}
    for one in written:
        rule = rules.get(one.rule)
        at, path = one.at("rule"), one.path("rule")
        key = (one.rule, one.contract, one.path_)
        if rule is None and one.rule not in also:
            mend = _did_you_mean(one.rule, [*rules, *also])
            findings.append(mistake("unknown-value", f"there is no rule {one.rule!r}.", mend, at, path))
        elif rule is not None and rule.scope in (RuleScope.FORM, RuleScope.POLICY, RuleScope.CHANGE):
            message = f"{one.rule} cannot be waived."
            findings.append(mistake("unknown-value", message, "Mend what it finds.", at, path))
        elif key in seen:
            message = f"this finding is waived in line {seen[key].at().line} already."
            findings.append(mistake("duplicate-key", message, "Keep one of the two.", one.at(), one.path()))
        else:
            seen[key] = one
            yield PolicyWaiver(*key, one.reason, one.by, one.expires, one.at())


def json_schema(rules: Rules) -> dict[str, Any]:
    """JSON Schema (2020-12) of `dq-policy.yaml`, for editors; every rule on the shelf with its arguments."""
    schema = PolicyForm.model_json_schema(ref_template="#/$defs/{model}")
    settings = {
        rule.id: _model(rule).model_json_schema(ref_template="#/$defs/{model}")
        for rule in rules.values()
        if rule.scope is not RuleScope.FORM
    }
    definitions = schema.setdefault("$defs", {})
    definitions["rules"] = {
        "type": "object",
        "properties": settings,
        "additionalProperties": SettingForm.model_json_schema(),
    }
    definitions["tests"] = {"type": "object", "additionalProperties": {"$ref": "#/$defs/Predicate"}}
    for name, model in (("Predicate", Predicate), ("OwnForm", OwnForm)):
        definitions[name] = model.model_json_schema(ref_template="#/$defs/{model}")
    for key in ("where", "assert"):
        definitions["OwnForm"]["properties"][key] = {"$ref": "#/$defs/tests"}
    schema["properties"]["own"] = {"type": "object", "additionalProperties": {"$ref": "#/$defs/OwnForm"}}
    schema["properties"]["rules"] = {"$ref": "#/$defs/rules"}
    definitions["SectionForm"]["properties"]["rules"] = {"$ref": "#/$defs/rules"}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": POLICY_FILE}


def _of_policy(finding: Finding) -> Finding | None:
    """The finding of the reader in a policy's words, or None where an empty file is fine."""
    if finding.rule != "not-a-contract":
        return finding
    if finding.message.endswith("is empty."):
        return None
    return replace(finding, rule="wrong-type", mend="Write a mapping, such as 'profile: strict'.")


def _did_you_mean(word: str, known: Collection[str]) -> str:
    listed = "'dq rules' lists them." if len(known) > 40 else f"It has {', '.join(sorted(known))}."
    return suggestion(word, known, listed)
