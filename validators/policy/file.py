"""Parser of `dq-policy.yaml`: returns a `Policy` and findings; and its JSON Schema for editors."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, create_model

from dq.contracts.access.files import POLICY_FILE
from dq.contracts.extension import Date, NonEmptyText
from dq.contracts.model import SOURCE_MAP_KEY, Node, Open, Scalar, SourceMap, parse_model, strip_source_maps
from dq.contracts.outcome import Finding, Severity, error_finding, id_suggestion
from dq.contracts.yaml import source
from dq.validators.policy.custom_rules import OPERATORS, KeyTest, allowed_keys, custom_rule
from dq.validators.policy.json_schema import pattern_problem
from dq.validators.policy.policy import DEFAULT, CoverageGoal, Policy, PolicyWaiver, RuleSetting, Section
from dq.validators.rule import Rule, RuleScope

# Models of `dq-policy.yaml`, closed, with the descriptions that editors show.

OFF = "off"


def _off(value: object) -> object:
    """YAML 1.1 reads a plain `off` as false."""
    return OFF if value is False else value


def _pattern(text: str) -> str:
    problem = pattern_problem(text)
    if problem is not None:
        raise ValueError(problem)
    return text


_SHARE = re.compile(r"([0-9]{1,3})(\.[0-9]{1,6})?%")
_SHARE_HINT = "Write a share from 0% to 100%, e.g. 80%."


def _as_share(value: object) -> Fraction | None:
    """Return a share such as `80%` from 0 to 1, or None if it is not one."""
    if not isinstance(value, str) or not _SHARE.fullmatch(value):
        return None
    share = Fraction(value.removesuffix("%")) / 100
    return share if share <= 1 else None


def _share(text: str) -> str:
    if _as_share(text) is None:
        raise ValueError(_SHARE_HINT)
    return text


Share = Annotated[str, AfterValidator(_share)]
SeverityWord = Annotated[Literal["off", "info", "warning", "error", "critical"], BeforeValidator(_off)]


class _Form(Node):
    """Mapping of the policy; its keys are the field names, without alias generation."""

    model_config = ConfigDict(alias_generator=None)


class SettingForm(_Form):
    model_config = ConfigDict(title="the rule's setting")

    severity: SeverityWord | None = Field(None, description="Severity of findings; off disables the rule.")


class For(_Form):
    path_: str | None = Field(
        None, alias="path", description="A path from the registry's root; * and ** as in .gitignore."
    )
    domain: str | None = Field(None, description="The contract's domain, exactly.")


class SectionForm(_Form):
    for_: For = Field(
        alias="for", description="Contracts it applies to; with both keys, contracts that match both."
    )
    profile: Literal["default", "strict"] | None = None
    rules: dict[str, Open] = Field({}, description="Settings by rule id.")


class Predicate(_Form):
    """Test of one key; all given operators must hold."""

    model_config = ConfigDict(alias_generator=lambda name: name.replace("_", "-"), title="the test")

    exists: bool | None = Field(None, description="The key is present; with false, it is absent.")
    not_empty: bool | None = Field(None, description="The text or list is not empty.")
    equals: Scalar = Field(None, description="It equals this value.")
    one_of: list[Scalar] | None = Field(None, description="It is one of these values.")
    none_of: list[Scalar] | None = Field(None, description="It is none of these values.")
    matches: Annotated[str, AfterValidator(_pattern)] | None = Field(
        None, description="A regular expression matches in the text; use ^ and $ for the whole text."
    )
    contains: Scalar = Field(None, description="The list contains this item.")
    min_length: int | None = Field(
        None, description="Minimum number of characters of a text, or items of a list."
    )
    max_length: int | None = Field(
        None, description="Maximum number of characters of a text, or items of a list."
    )
    at_least: float | None = Field(None, description="Minimum value of a number.")
    at_most: float | None = Field(None, description="Maximum value of a number.")


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
    ] = Field(description="Kind of element to evaluate; a column is a property that is not nested.")
    where: dict[str, Open] = Field({}, description="Only elements whose keys match these predicates.")
    assert_: dict[str, Open] = Field(alias="assert", description="Predicates that their keys must match.")
    message: NonEmptyText = Field(description="What is wrong, for the producer.")
    hint: str | None = Field(None, description="How to fix it.")
    severity: Literal["info", "warning", "error", "critical"] = "warning"


class WaiverForm(_Form):
    """A finding that someone has accepted until a day."""

    model_config = ConfigDict(title="the waiver")

    rule: NonEmptyText = Field(description="The rule's id.")
    contract: NonEmptyText = Field(description="The contract's id.")
    path_: str = Field(alias="path", description="The finding's path, as 'dq validate --format json' has it.")
    reason: NonEmptyText = Field(description="Why it is accepted.")
    by: NonEmptyText = Field(description="Who accepted it.")
    expires: Date = Field(description="Last day on which it is valid.")


class SchemasForm(_Form):
    """JSON Schemas (2020-12) of the object that an element's custom properties make, by level."""

    model_config = ConfigDict(title="the schemas")

    contract: dict[str, Open] | None = None
    object: dict[str, Open] | None = None
    property: dict[str, Open] | None = None
    slaProperty: dict[str, Open] | None = None  # noqa: N815 - a key of the policy
    server: dict[str, Open] | None = None


class CompatibilityForm(_Form):
    """Levels of changes between versions."""

    model_config = ConfigDict(title="the compatibility")

    unneeded: Literal["warning", "error"] = Field(
        "error",
        description="Severity of a change that would break consumers, but affects no subscription.",
    )


class CoverageForm(_Form):
    """Share of discovered tables that need a contract in force."""

    model_config = ConfigDict(title="the coverage")

    min: Share | None = Field(
        None, description="Minimum share of the tables of each domain with a contract in force, e.g. 80%."
    )
    of: Literal["all", "read"] = Field(
        "all", description="Tables that count: all, or those that the file of --reads says are read."
    )
    domains: dict[str, Open] = Field({}, description="Minimum shares of single domains, by name.")


class PolicyForm(_Form):
    model_config = ConfigDict(title="the policy")

    registry: NonEmptyText | None = Field(
        None, description="Name of this registry in catalogs; default: the Git remote."
    )
    servers: dict[str, Open] = Field(
        {},
        description="By environment: server of a contract (by id), if `environment` is not sufficient.",
    )
    profile: Literal["default", "strict"] = Field(
        "default", description="strict turns infos into warnings, and warnings into errors."
    )
    rules: dict[str, Open] = Field({}, description="Settings by rule id.")
    sections: list[SectionForm] = Field([], description="Overrides for some contracts; later ones win.")
    own: dict[str, Open] = Field({}, description="Custom rules of the organization, by id.")
    waivers: list[WaiverForm] = Field([], description="Accepted findings, each with an expiry date.")
    compatibility: CompatibilityForm | None = Field(None, description="Levels of changes between versions.")
    coverage: CoverageForm | None = Field(
        None, description="Coverage that dq discover requires: it exits with 1 if a domain has less."
    )
    custom_properties: SchemasForm | None = Field(
        None, alias="customProperties", description="JSON Schemas of the custom properties, by level."
    )


Rules = Mapping[str, Rule]

_ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


def read(
    data: bytes, file: str, rules: Rules, extra_rule_ids: Collection[str] = ()
) -> tuple[Policy, list[Finding]]:
    """Parse a policy; returns it with its findings, sorted by location. An empty file is the default policy.

    `rules` are the built-in rules, which are not read if the policy names none; `extra_rule_ids` are further
    ids that a waiver may name, e.g. those of compatibility. Invalid parts are left out of the policy.
    """
    top, findings = source.read(data, file)
    if top is None:
        return DEFAULT, [wrong for finding in findings if (wrong := _as_policy_finding(finding)) is not None]
    model, form_findings, _ = parse_model(PolicyForm, top)
    findings += form_findings
    if model is None:
        return DEFAULT, findings
    own_rules = dict(_own_rules(model.own, rules, findings))
    all_rules = {**rules, **own_rules} if own_rules else rules
    policy = Policy(
        model.profile,
        dict(_rule_settings(model.rules, all_rules, findings)),
        tuple(
            Section(
                section.for_.path_,
                section.for_.domain,
                section.profile,
                dict(_rule_settings(section.rules, all_rules, findings)),
            )
            for section in model.sections
            if _has_target(section.for_, findings)
        ),
        own_rules,
        tuple(_waivers(model.waivers, all_rules, extra_rule_ids, findings)),
        dict(_schemas(model.custom_properties, findings)),
        model.registry or "",
        dict(_servers(model.servers, findings)),
        unneeded_changes=Severity(model.compatibility.unneeded if model.compatibility else "error"),
        coverage=_coverage_goal(model.coverage, findings),
    )
    return policy, sorted(findings, key=lambda finding: finding.at)


def _entries(mapping: Mapping[str, Any]) -> Iterator[tuple[str, Any, SourceMap]]:
    """Yield the keys of an open mapping with their values and the mapping's place."""
    place = mapping.get(SOURCE_MAP_KEY)
    if isinstance(place, SourceMap):
        for key, value in mapping.items():
            if key != SOURCE_MAP_KEY:
                yield key, value, place


def _rule_settings(
    settings: Mapping[str, Any], rules: Rules, findings: list[Finding]
) -> Iterator[tuple[str, RuleSetting]]:
    """Yield the valid settings of rules by rule ID, and add a finding for each invalid one."""
    for id_, value, place in _entries(settings):
        rule = rules.get(id_)
        path = place.child_path(id_)
        if rule is None:
            hint = _did_you_mean(id_, rules)
            location = place.locate_key(id_)
            findings.append(error_finding("unknown-key", f"unknown rule {id_!r}.", hint, location, path))
        elif rule.scope is RuleScope.FORM:
            message = f"{id_} is always an error, because its contracts cannot be read."
            findings.append(
                error_finding("unknown-value", message, "Remove this setting.", place.locate_key(id_), path)
            )
        elif not isinstance(value, dict):
            hint = f"Write {id_}: {{severity: warning}}."
            findings.append(
                error_finding("wrong-type", f"{id_} must be a mapping.", hint, place.locate(id_), path)
            )
        else:
            model, form_findings, _ = parse_model(_model(rule), value)
            findings += form_findings
            if model is not None:
                yield id_, _setting(model, rule)


def _setting(model: SettingForm, rule: Rule) -> RuleSetting:
    arguments = {
        argument.name: getattr(model, argument.name)
        for argument in rule.arguments
        if model.has(argument.name)
    }
    if model.severity is None:
        return RuleSetting(rule.severity, arguments, own_severity=False)
    return RuleSetting(None if model.severity == OFF else Severity(model.severity), arguments)


def _model(rule: Rule) -> type[SettingForm]:
    """Return the closed model of a rule's settings: its severity and its arguments."""
    fields: dict[str, Any] = {
        argument.name: (
            list[str] if isinstance(argument.default, tuple) else type(argument.default),
            argument.default,
        )
        for argument in rule.arguments
    }
    return create_model("SettingForm", __base__=SettingForm, **fields)


def _servers(servers: Mapping[str, Any], findings: list[Finding]) -> Iterator[tuple[str, dict[str, str]]]:
    for environment, value, place in _entries(servers):
        names = strip_source_maps(value)
        if isinstance(names, dict) and all(isinstance(name, str) and name for name in names.values()):
            yield environment, {str(contract): name for contract, name in names.items()}
            continue
        message = f"servers of {environment!r} must be a mapping from contracts to server names."
        hint = f"Write {environment}: {{orders: lake}}."
        path = place.child_path(environment)
        findings.append(error_finding("wrong-type", message, hint, place.locate(environment), path))


def _coverage_goal(form: CoverageForm | None, findings: list[Finding]) -> CoverageGoal | None:
    if form is None:
        return None
    domains: dict[str, Fraction] = {}
    for domain, value, place in _entries(form.domains):
        share = _as_share(value)
        if share is None:
            message = f"the coverage of {domain!r} is not a share."
            path = place.child_path(domain)
            findings.append(error_finding("unknown-value", message, _SHARE_HINT, place.locate(domain), path))
        else:
            domains[domain] = share
    if form.min is None and not domains:
        message, hint = "the coverage has no minimum.", "Add e.g. 'min: 80%'."
        findings.append(error_finding("missing-key", message, hint, form.locate(), form.path()))
    return CoverageGoal(_as_share(form.min), form.of == "read", domains)


def _schemas(form: SchemasForm | None, findings: list[Finding]) -> Iterator[tuple[str, object]]:
    if form is None:
        return
    # Imported here: few policies have schemas, and jsonschema takes time to start.
    from dq.validators.policy.custom_rules import LEVELS, locate, schema_problem

    for level in LEVELS:
        raw = getattr(form, level)
        if raw is None:
            continue
        schema = strip_source_maps(raw)
        wrong = schema_problem(schema)
        if wrong is None:
            yield level, schema
        else:
            reason, schema_path = wrong
            location, path, _ = locate(form.place, level, raw, schema_path)
            message = f"the schema of {level} is not a usable JSON Schema: {reason}."
            findings.append(error_finding("unknown-value", message, "Fix the schema.", location, path))


def _has_target(for_: For, findings: list[Finding]) -> bool:
    if for_.path_ is None and for_.domain is None:
        message = "the section does not specify its contracts."
        hint = "Write 'path: finance/**' or 'domain: finance'."
        findings.append(error_finding("missing-key", message, hint, for_.locate(), for_.path()))
        return False
    return True


def _own_rules(
    rule_forms: Mapping[str, Any], rules: Rules, findings: list[Finding]
) -> Iterator[tuple[str, Rule]]:
    for id_, value, place in _entries(rule_forms):
        location, path = place.locate_key(id_), place.child_path(id_)
        if id_ in rules:
            message, hint = f"rule {id_!r} already exists.", "Use another id."
            findings.append(error_finding("unknown-value", message, hint, location, path))
        elif not _ID.fullmatch(id_):
            message, hint = f"{id_!r} is not a valid rule id.", "Use lowercase letters, digits and hyphens."
            findings.append(error_finding("unknown-value", message, hint, location, path))
        elif not isinstance(value, dict):
            message, hint = f"{id_} must be a mapping.", "Write select, assert and message."
            findings.append(error_finding("wrong-type", message, hint, place.locate(id_), path))
        else:
            model, form_findings, _ = parse_model(OwnForm, value)
            findings += form_findings
            if model is not None and not form_findings:
                before = len(findings)
                conditions = tuple(_tests(model.where, model.select, findings))
                asserts = tuple(_tests(model.assert_, model.select, findings))
                if len(findings) == before and not asserts:
                    message, hint = f"{id_} asserts nothing.", "Add 'assert: {name: {exists: true}}'."
                    findings.append(error_finding("missing-key", message, hint, model.locate("assert"), path))
                elif len(findings) == before:
                    yield (
                        id_,
                        custom_rule(
                            id_,
                            Severity(model.severity),
                            model.select,
                            conditions,
                            asserts,
                            model.message,
                            model.hint,
                        ),
                    )


def _tests(tests: Mapping[str, Any], select: str, findings: list[Finding]) -> Iterator[KeyTest]:
    keys = allowed_keys(select)
    for key, value, place in _entries(tests):
        steps = tuple(key.split("."))
        location, path = place.locate_key(key), place.child_path(key)
        if steps[0] not in keys:
            hint = _did_you_mean(steps[0], keys)
            findings.append(
                error_finding("unknown-key", f"{select} has no key {steps[0]!r}.", hint, location, path)
            )
        elif not isinstance(value, dict):
            hint = f"Write {key}: {{exists: true}}, or another operator."
            findings.append(
                error_finding("wrong-type", f"{key} must be a mapping.", hint, place.locate(key), path)
            )
        else:
            model, form_findings, _ = parse_model(Predicate, value)
            findings += form_findings
            if model is None:
                continue
            for operator in sorted(OPERATORS.keys() & model.place.keys, key=list(OPERATORS).index):
                expected = getattr(model, operator.replace("-", "_"))
                if expected is not None:
                    yield KeyTest(steps, operator, expected)
                    continue
                message = f"{operator} of {key} has no value."
                location, path = model.locate(operator), f"{place.child_path(key)}.{operator}"
                findings.append(
                    error_finding("wrong-type", message, "Write a value, or remove it.", location, path)
                )


def _waivers(
    forms: list[WaiverForm], rules: Rules, extra_rule_ids: Collection[str], findings: list[Finding]
) -> Iterator[PolicyWaiver]:
    by_key: dict[tuple[str, str, str], WaiverForm] = {}
    for form in forms:
        rule = rules.get(form.rule)
        location, path = form.locate("rule"), form.path("rule")
        key = (form.rule, form.contract, form.path_)
        if rule is None and form.rule not in extra_rule_ids:
            hint = _did_you_mean(form.rule, [*rules, *extra_rule_ids])
            findings.append(
                error_finding("unknown-value", f"unknown rule {form.rule!r}.", hint, location, path)
            )
        elif rule is not None and rule.scope in (RuleScope.FORM, RuleScope.POLICY, RuleScope.CHANGE):
            message = f"{form.rule} cannot be waived."
            findings.append(error_finding("unknown-value", message, "Fix the finding.", location, path))
        elif key in by_key:
            message = f"this finding is already waived in line {by_key[key].locate().line}."
            findings.append(
                error_finding("duplicate-key", message, "Keep one of the two.", form.locate(), form.path())
            )
        else:
            by_key[key] = form
            yield PolicyWaiver(*key, form.reason, form.by, form.expires, form.locate())


def json_schema(rules: Rules) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of `dq-policy.yaml`, for editors, with the arguments of every rule."""
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


def _as_policy_finding(finding: Finding) -> Finding | None:
    """Return the parser's finding rephrased for a policy, or None for an empty file, which is valid."""
    if finding.rule != "not-a-contract":
        return finding
    if finding.message.endswith("is empty."):
        return None
    return replace(finding, rule="wrong-type", hint="Write a mapping, e.g. 'profile: strict'.")


def _did_you_mean(word: str, candidates: Collection[str]) -> str:
    fallback = (
        "'dq rules' lists them." if len(candidates) > 40 else f"Allowed: {', '.join(sorted(candidates))}."
    )
    return id_suggestion(word, candidates, fallback)
