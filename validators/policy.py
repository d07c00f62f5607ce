"""The policy of a registry: which rules hold, at which severity, with which arguments.

`dq-policy.yaml` at the registry's root::

    profile: strict
    rules:
      missing-owner: {severity: error}
      comment-too-long: {severity: off}
      retention-missing-for-pii: {classifications: [pii, health]}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, create_model

from dq.contracts import source
from dq.contracts.form import nearest
from dq.contracts.node import Node, Open
from dq.contracts.outcome import Finding, Location, Severity
from dq.contracts.parse import typed
from dq.contracts.place import PLACE, Place
from dq.validators.rule import Rule, Scope

FILE = "dq-policy.yaml"
OFF = "off"

Profile = Literal["default", "strict"]

# Profile -> what it makes of a rule's own severity. What is absent stays.
PROFILES: dict[Profile, dict[Severity, Severity]] = {
    "default": {},
    "strict": {Severity.INFO: Severity.WARNING, Severity.WARNING: Severity.ERROR},
}


@dataclass(frozen=True, slots=True)
class Setting:
    """What a policy says about one rule. Without `own_severity` the profile's stays."""

    severity: Severity | None
    arguments: Mapping[str, object] = field(default_factory=dict)
    own_severity: bool = True


@dataclass(frozen=True, slots=True)
class Policy:
    """A profile and what differs from it, by rule id."""

    profile: Profile = "default"
    settings: Mapping[str, Setting] = field(default_factory=dict)

    def severity(self, rule: Rule) -> Severity | None:
        """How much the rule's fault matters here; None when it is off."""
        own = self.settings.get(rule.id)
        if own is not None and own.own_severity:
            return own.severity
        return PROFILES[self.profile].get(rule.severity, rule.severity)

    def arguments(self, rule: Rule) -> Mapping[str, object]:
        """The rule's arguments that the policy sets."""
        own = self.settings.get(rule.id)
        return own.arguments if own else {}


DEFAULT = Policy()


class _File(Node):
    model_config = ConfigDict(title="the policy")

    profile: Profile = "default"
    rules: dict[str, Open] = {}


def _off(value: object) -> object:
    """YAML 1.1 reads a plain `off` as false."""
    return OFF if value is False else value


SeverityWord = Annotated[Literal["off", "info", "warning", "error", "critical"], BeforeValidator(_off)]


class _Setting(Node):
    model_config = ConfigDict(alias_generator=None, title="the rule's setting")

    severity: SeverityWord | None = None


def read(data: bytes, file: str, rules: Mapping[str, Rule]) -> tuple[Policy, list[Finding]]:
    """The policy in `data`, and what is wrong with it, sorted by place. An empty file is the default policy.

    What is wrong is left out of the policy that is given.
    """
    top, findings = source.read(data, file)
    if top is None:
        return DEFAULT, [wrong for finding in findings if (wrong := _of_policy(finding)) is not None]
    made, form, _ = typed(_File, top)
    findings += form
    if made is None:
        return DEFAULT, findings
    settings: dict[str, Setting] = {}
    place = made.rules.get(PLACE)
    for id_, value in made.rules.items():
        if id_ == PLACE or not isinstance(place, Place):
            continue
        setting, form = _setting(id_, value, place, rules)
        findings += form
        if setting is not None:
            settings[id_] = setting
    return Policy(made.profile, settings), sorted(findings, key=lambda finding: finding.at)


def _setting(
    id_: str, value: object, place: Place, rules: Mapping[str, Rule]
) -> tuple[Setting | None, list[Finding]]:
    """What the policy says of one rule, or what is wrong with that."""
    rule = rules.get(id_)
    path = place.below(id_)
    if rule is None:
        hint = nearest(id_, rules)
        mend = f"Did you mean {hint!r}?" if hint else "'dq rules' lists them."
        return None, [_finding("unknown-key", f"there is no rule {id_!r}.", mend, place.at_key(id_), path)]
    if rule.scope is Scope.FORM:
        message = f"{id_} is always an error: what cannot be read cannot be judged."
        mend = "Remove this setting."
        return None, [_finding("unknown-value", message, mend, place.at_key(id_), path)]
    if not isinstance(value, dict):
        mend = f"Write {id_}: {{severity: warning}}."
        return None, [_finding("wrong-type", f"{id_} must be a mapping.", mend, place.at(id_), path)]
    model = _model(rule)
    made, form, _ = typed(model, value)
    if made is None:
        return None, form
    arguments = {one.name: getattr(made, one.name) for one in rule.arguments if made.has(one.name)}
    word = made.severity
    if word is None:
        return Setting(rule.severity, arguments, own_severity=False), form
    return Setting(None if word == OFF else Severity(word), arguments), form


def _model(rule: Rule) -> type[_Setting]:
    """The closed model of what a policy may say of this rule: its severity and its arguments."""
    fields: dict[str, Any] = {one.name: (_type_of(one.default), one.default) for one in rule.arguments}
    return create_model("_Setting", __base__=_Setting, **fields)


def _type_of(default: object) -> Any:
    """The type that a policy's value must have where a rule's default is this; tuples are lists of text."""
    return list[str] if isinstance(default, tuple) else type(default)


def _of_policy(finding: Finding) -> Finding | None:
    """The finding of the reader in a policy's words, or None where an empty file is fine."""
    if finding.rule != "not-a-contract":
        return finding
    if finding.message.endswith("is empty."):
        return None
    return replace(finding, rule="wrong-type", mend="Write a mapping, such as 'profile: strict'.")


def _finding(rule: str, message: str, mend: str, at: Location, path: str) -> Finding:
    return Finding(rule, Severity.ERROR, message, mend, at, path)
