"""Page of a rule, parsed from its module's docstring, and the output of `dq explain RULE`."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from inspect import cleandoc
from typing import Any

from dq.contracts import odcs
from dq.contracts.outcome import Severity, UsageError, id_suggestion
from dq.validators.context import Argument
from dq.validators.rule import Rule, RuleScope

# Parsing of a rule's docstring, and its two fragments as complete documents.

SECTIONS = ("Why", "Bad", "Good", "How to fix")

# A valid contract, by top-level key: supplies the keys that a fragment omits.
BASE = {
    "apiVersion": "apiVersion: v3.2.0\n",
    "kind": "kind: DataContract\n",
    "id": "id: orders\n",
    "name": "name: Orders\n",
    "version": "version: 1.2.0\n",
    "status": "status: active\n",
    "team": "team: {name: sales-data, members: [{username: ana@example.com, role: owner}]}\n",
    "support": "support: [{channel: '#sales-data', tool: slack, scope: notifications}]\n",
    "servers": "servers: [{server: lake, type: glue, account: '123456789012', database: sales}]\n",
    "schema": (
        "schema:\n"
        "  - name: orders\n"
        "    description: One row per order.\n"
        "    properties:\n"
        "      - {name: order_id, logicalType: string, required: true}\n"
        "      - {name: order_date, logicalType: date, partitioned: true, partitionKeyPosition: 1}\n"
        "      - {name: amount, logicalType: number, physicalType: 'decimal(18, 2)'}\n"
    ),
}
BASE_FILE = "orders.odcs.yaml"

_HEADING = re.compile(rf"^({'|'.join(SECTIONS)}):[ \t]*(.*)$", re.MULTILINE)
_TOP_KEY = re.compile(r"^([A-Za-z]\w*):", re.MULTILINE)


class BrokenPage(ValueError):
    """A rule's docstring does not have the sections of a page: a mistake of the rule's author."""


@dataclass(frozen=True, slots=True)
class Page:
    """User documentation of a rule. `bad` and `good` are YAML; the rest is prose."""

    summary: str
    why: str
    bad: str
    good: str
    hint: str


def parse(docstring: str | None) -> Page:
    """Parse a page from a docstring. Raises BrokenPage if a section is missing, repeated or out of order."""
    text = cleandoc(docstring or "")
    headings = list(_HEADING.finditer(text))
    if [match.group(1) for match in headings] != list(SECTIONS):
        raise BrokenPage(f"a page needs a summary and the sections {', '.join(SECTIONS)}, in this order")
    ends = [match.start() for match in headings[1:]] + [len(text)]
    why, bad, good, hint = (text[match.start(2) : end] for match, end in zip(headings, ends, strict=True))
    summary = text[: headings[0].start()]
    page = Page(_prose(summary), _prose(why), _yaml(bad), _yaml(good), _prose(hint))
    if not (page.summary and page.why and page.bad and page.good and page.hint):
        raise BrokenPage("a section of the page is empty")
    return page


def document(fragment: str, laid_over: Mapping[str, str] = BASE) -> tuple[str, int]:
    """Merge a fragment into the base contract, or another base; returns the text and the fragment's first
    line.

    Top-level keys of the fragment replace those of the base. A fragment that starts with `---` is already a
    complete document.
    """
    if fragment.startswith("---"):
        return fragment, 1
    own = set(_TOP_KEY.findall(fragment))
    base = "".join(block for key, block in laid_over.items() if key not in own)
    return base + fragment, base.count("\n") + 1


def _prose(body: str) -> str:
    return "\n\n".join(" ".join(part.split()) for part in re.split(r"\n\s*\n", body.strip()))


def _yaml(body: str) -> str:
    return textwrap.dedent(body).strip("\n").rstrip() + "\n" if body.strip() else ""


# Page of a rule as text, printed by `dq explain RULE`.

RULE = "rule"


@dataclass(frozen=True, slots=True)
class Explanation:
    """Page of a validation rule, a compatibility rule or a custom check.

    `facts` are shown in parentheses after the id. Compatibility rules and custom checks, whose page is one
    text, only have a summary and a hint.
    """

    id: str
    kind: str
    summary: str
    facts: tuple[str, ...] = ()
    severity: Severity | None = None
    why: str = ""
    bad: str = ""
    good: str = ""
    hint: str = ""
    arguments: tuple[Argument[Any], ...] = ()

    def text(self, width: int = 88) -> str:
        """Return the page as text, without a line feed at the end."""
        is_validation_rule = self.kind == RULE
        parts = [f"{self.id} ({', '.join(self.facts)})"]
        parts.append(textwrap.fill(self.summary, width) if is_validation_rule else self.summary)
        if is_validation_rule:
            parts += [
                _filled("Why", self.why, width),
                _indented("Bad", self.bad),
                _indented("Good", self.good),
            ]
        if self.hint:
            parts.append(
                _filled("How to fix", self.hint, width) if is_validation_rule else f"Instead\n{self.hint}"
            )
        if self.arguments:
            lines = [
                f"  {argument.name}: {argument.description} Default: {_format_default(argument.default)}"
                for argument in self.arguments
            ]
            parts.append("\n".join(["In dq-policy.yaml:", *lines]))
        return "\n\n".join(parts)

    def as_dict(self) -> dict[str, object]:
        """Return the page as plain values; sections that a kind does not have are empty."""
        return {
            "id": self.id,
            "kind": self.kind,
            "severity": self.severity,
            "summary": self.summary,
            "why": self.why,
            "bad": self.bad,
            "good": self.good,
            "hint": self.hint,
            "arguments": [
                {"name": argument.name, "description": argument.description, "default": argument.default}
                for argument in self.arguments
            ],
        }


def explain_rule(rules: Mapping[str, Rule], id_: str) -> Explanation:
    """Return the page of the rule with this id. Raises UsageError with a suggestion for an unknown id."""
    rule = rules.get(id_)
    if rule is None:
        hint = id_suggestion(id_, rules, "'dq rules' lists them.")
        raise UsageError(f"unknown rule {id_!r}.", hint)
    page = parse(rule.page)
    return Explanation(
        rule.id,
        RULE,
        page.summary,
        tuple(_facts(rule)),
        rule.severity,
        page.why,
        page.bad,
        page.good,
        page.hint,
        tuple(rule.arguments),
    )


def explain(rules: Mapping[str, Rule], id_: str, width: int = 88) -> str:
    """Return the page of a validation rule as text. Raises UsageError like `explain_rule`."""
    return explain_rule(rules, id_).text(width) + "\n"


def explain_change(id_: str, problem: str, instead: str) -> Explanation:
    """Return the page of a compatibility rule, about a change between two versions."""
    return Explanation(
        id_, "change", f"{problem.capitalize()}.", ("a change between two versions",), hint=instead
    )


def _facts(rule: Rule) -> list[str]:
    facts = [rule.severity.value]
    if rule.scope is RuleScope.FORM:
        facts.append("always")
    if rule.opt_in:
        facts.append("only if enabled by a policy")
    if rule.first > (3, 0, 0):
        facts.append(f"from ODCS {odcs.format_version(rule.first)}")
    if rule.last is not None:
        facts.append(f"up to ODCS {odcs.format_version(rule.last)}")
    return facts


def _filled(heading: str, text: str, width: int) -> str:
    paragraphs = [textwrap.fill(part, width) for part in text.split("\n\n")]
    return "\n".join([heading, *("\n\n".join(paragraphs).splitlines())])


def _indented(heading: str, text: str) -> str:
    return heading + "\n" + textwrap.indent(text.rstrip("\n"), "    ")


def _format_default(default: object) -> str:
    return f"[{', '.join(default)}]" if isinstance(default, tuple) else str(default)
