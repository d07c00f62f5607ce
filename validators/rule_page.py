"""The page of a rule: its module's docstring, taken apart, and what `dq explain RULE` prints of it."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dq.contracts import odcs
from dq.contracts.outcome import Severity, UsageError, suggestion
from dq.validators.context import Argument
from dq.validators.rule import Rule, RuleScope

# The page of a rule: its module's docstring, taken apart, and its two fragments as whole documents.

SECTIONS = ("Why", "Bad", "Good", "Mend")

# A contract without fault, by top-level key: what a fragment does not say itself.
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
    """A rule's docstring does not have the sections of a page: a fault of the one who wrote the rule."""


@dataclass(frozen=True, slots=True)
class Page:
    """What a user reads of a rule. `bad` and `good` are YAML; the rest is prose."""

    summary: str
    why: str
    bad: str
    good: str
    mend: str


def parse(docstring: str | None) -> Page:
    """The page that a docstring holds; raises BrokenPage when a section is missing, twice or out of order."""
    text = (docstring or "").strip()
    found = list(_HEADING.finditer(text))
    if [match.group(1) for match in found] != list(SECTIONS):
        raise BrokenPage(f"a page needs a summary and the sections {', '.join(SECTIONS)}, in this order")
    ends = [match.start() for match in found[1:]] + [len(text)]
    why, bad, good, mend = (text[match.start(2) : end] for match, end in zip(found, ends, strict=True))
    summary = text[: found[0].start()]
    page = Page(_prose(summary), _prose(why), _yaml(bad), _yaml(good), _prose(mend))
    if not (page.summary and page.why and page.bad and page.good and page.mend):
        raise BrokenPage("a section of the page is empty")
    return page


def document(fragment: str, laid_over: Mapping[str, str] = BASE) -> tuple[str, int]:
    """A fragment laid over the base contract, or another base, and the line in which it begins.

    Top-level keys of the fragment replace those of the base. A fragment that begins with `---` is a whole
    document already.
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


# The page of a rule as text: what `dq explain RULE` prints.

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
    made = parse(rule.page)
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


def explain_change(id_: str, problem: str, instead: str) -> Explained:
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
        facts.append(f"from ODCS {odcs.text(rule.first)}")
    if rule.last is not None:
        facts.append(f"up to ODCS {odcs.text(rule.last)}")
    return facts


def _filled(heading: str, text: str, width: int) -> str:
    paragraphs = [textwrap.fill(part, width) for part in text.split("\n\n")]
    return "\n".join([heading, *("\n\n".join(paragraphs).splitlines())])


def _indented(heading: str, text: str) -> str:
    return heading + "\n" + textwrap.indent(text.rstrip("\n"), "    ")


def _shown(default: object) -> str:
    return f"[{', '.join(default)}]" if isinstance(default, tuple) else str(default)
