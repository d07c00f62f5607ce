"""The page of a rule as text: what `dq explain RULE` prints."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

from dq.contracts import versions
from dq.contracts.shared.errors import UsageError
from dq.contracts.shared.spelling import nearest
from dq.validators import rule_page
from dq.validators.rule import Rule, RuleScope


def explain(rules: Mapping[str, Rule], id_: str, width: int = 88) -> str:
    """The page of the rule with this id; raises UsageError, naming the nearest, when there is none."""
    rule = rules.get(id_)
    if rule is None:
        hint = nearest(id_, rules)
        mend = f"Did you mean {hint!r}?" if hint else "'dq rules' lists them."
        raise UsageError(f"there is no rule {id_!r}.", mend)
    made = rule_page.parse(rule.page)
    parts = [
        f"{rule.id} ({', '.join(_facts(rule))})",
        textwrap.fill(made.summary, width),
        _prose("Why", made.why, width),
        _yaml("Bad", made.bad),
        _yaml("Good", made.good),
        _prose("Mend", made.mend, width),
    ]
    if rule.arguments:
        lines = [f"  {one.name}: {one.description} Default: {_shown(one.default)}" for one in rule.arguments]
        parts.append("\n".join(["In dq-policy.yaml:", *lines]))
    return "\n\n".join(parts) + "\n"


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


def _prose(heading: str, text: str, width: int) -> str:
    paragraphs = [textwrap.fill(part, width) for part in text.split("\n\n")]
    return "\n".join([heading, *("\n\n".join(paragraphs).splitlines())])


def _yaml(heading: str, text: str) -> str:
    return heading + "\n" + textwrap.indent(text.rstrip("\n"), "    ")


def _shown(default: object) -> str:
    return f"[{', '.join(default)}]" if isinstance(default, tuple) else str(default)
