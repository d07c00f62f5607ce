"""The page of a rule as text: what `dq explain RULE` prints."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dq.contracts import versions
from dq.contracts.shared.errors import UsageError
from dq.contracts.shared.outcome import Severity
from dq.contracts.shared.spelling import suggestion
from dq.validators import rule_page
from dq.validators.context import Argument
from dq.validators.rule import Rule, RuleScope

RULE = "rule"


@dataclass(frozen=True, slots=True)
class Explained:
    """The page of what has an id: a rule of the gate, a rule of changes, or a custom check.

    `facts` stand in brackets after the id. Of rules of changes and of custom checks, whose page is one text,
    only the summary and what to do instead are there.
    """

    id: str
    kind: str
    summary: str
    facts: tuple[str, ...] = ()
    severity: Severity | None = None
    why: str = ""
    bad: str = ""
    good: str = ""
    mend: str = ""
    arguments: tuple[Argument[Any], ...] = ()

    def text(self, width: int = 88) -> str:
        """The page for people, without a line feed at its end."""
        of_gate = self.kind == RULE
        parts = [f"{self.id} ({', '.join(self.facts)})"]
        parts.append(textwrap.fill(self.summary, width) if of_gate else self.summary)
        if of_gate:
            parts += [
                _filled("Why", self.why, width),
                _indented("Bad", self.bad),
                _indented("Good", self.good),
            ]
        if self.mend:
            parts.append(_filled("Mend", self.mend, width) if of_gate else f"Instead\n{self.mend}")
        if self.arguments:
            lines = [
                f"  {one.name}: {one.description} Default: {_shown(one.default)}" for one in self.arguments
            ]
            parts.append("\n".join(["In dq-policy.yaml:", *lines]))
        return "\n\n".join(parts)

    def as_dict(self) -> dict[str, object]:
        """The page for machines; what a kind does not have is empty."""
        return {
            "id": self.id,
            "kind": self.kind,
            "severity": self.severity,
            "summary": self.summary,
            "why": self.why,
            "bad": self.bad,
            "good": self.good,
            "mend": self.mend,
            "arguments": [
                {"name": one.name, "description": one.description, "default": one.default}
                for one in self.arguments
            ],
        }


def of_rule(rules: Mapping[str, Rule], id_: str) -> Explained:
    """The page of the rule with this id; raises UsageError, naming the nearest, when there is none."""
    rule = rules.get(id_)
    if rule is None:
        mend = suggestion(id_, rules, "'dq rules' lists them.")
        raise UsageError(f"there is no rule {id_!r}.", mend)
    made = rule_page.parse(rule.page)
    return Explained(
        rule.id,
        RULE,
        made.summary,
        tuple(_facts(rule)),
        rule.severity,
        made.why,
        made.bad,
        made.good,
        made.mend,
        tuple(rule.arguments),
    )


def explain(rules: Mapping[str, Rule], id_: str, width: int = 88) -> str:
    """The page of a rule of the gate as text; raises UsageError as `of_rule` does."""
    return of_rule(rules, id_).text(width) + "\n"


def of_change(id_: str, problem: str, instead: str) -> Explained:
    """The page of a rule about a change between two versions."""
    return Explained(
        id_, "change", f"{problem.capitalize()}.", ("a change between two versions",), mend=instead
    )


def _facts(rule: Rule) -> list[str]:
    facts = [rule.severity.value]
    if rule.scope is RuleScope.FORM:
        facts.append("always")
    if rule.wish:
        facts.append("only where a policy asks for it")
    if rule.first > (3, 0, 0):
        facts.append(f"from ODCS {versions.text(rule.first)}")
    if rule.last is not None:
        facts.append(f"up to ODCS {versions.text(rule.last)}")
    return facts


def _filled(heading: str, text: str, width: int) -> str:
    paragraphs = [textwrap.fill(part, width) for part in text.split("\n\n")]
    return "\n".join([heading, *("\n\n".join(paragraphs).splitlines())])


def _indented(heading: str, text: str) -> str:
    return heading + "\n" + textwrap.indent(text.rstrip("\n"), "    ")


def _shown(default: object) -> str:
    return f"[{', '.join(default)}]" if isinstance(default, tuple) else str(default)
