"""The page of a rule: its module's docstring, taken apart, and its two fragments as whole documents."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass

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
