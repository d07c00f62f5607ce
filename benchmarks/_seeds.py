"""Contracts to damage: those of the examples, the tests, the docs and the pages of the rules."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from _contracts import text

from dq.validators import rule_page
from dq.validators.lint import load_rules

TREE = Path(__file__).parent.parent
BLOCK = re.compile(r"^```yaml[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)

# One object for each type that a partition key can have, so that a publication gets as far as it can.
_KEYS = {
    "string": ("string",), "date": ("date",), "timestamp": ("timestamp",), "boolean": ("boolean",),
    "integer": ("int", "bigint"), "number": ("decimal(10,2)",),
}  # fmt: skip
_OBJECT = """\
  - name: of_{logical}_{number}
    properties:
      - name: key
        logicalType: {logical}
        physicalType: {physical}
        partitioned: true
        partitionKeyPosition: 1
      - {{name: id, logicalType: integer, physicalType: bigint}}
"""
DELIVERED = """\
apiVersion: v3.2.0
kind: DataContract
id: delivered
version: 1.0.0
status: active
servers: [{server: lake, type: local, path: lake, format: parquet}]
schema:
""" + "".join(
    _OBJECT.format(logical=logical, physical=physical, number=number)
    for logical, types in _KEYS.items()
    for number, physical in enumerate(types)
)
# So many times as often as the short ones: they say more.
RICH = 8


@dataclass(frozen=True, slots=True)
class Seed:
    """A contract to damage: its bytes, its values where it has some, and where its tokens stand."""

    data: bytes
    document: Any
    tokens: tuple[tuple[int, int], ...]


def seeds() -> list[Seed]:
    """Every contract of examples, tests, docs and the pages of the rules, and a generated one."""
    documents = [
        file.read_text()
        for room in ("examples", "tests", "docs")
        for file in sorted((TREE / room).rglob("*.odcs.y*ml"))
    ]
    pages = [
        block for file in sorted((TREE / "docs").rglob("*.md")) for block in BLOCK.findall(file.read_text())
    ]
    documents += [block for block in pages if "apiVersion:" in block]
    rich = [seed_of(document) for document in dict.fromkeys([*documents, text(3, columns=12), DELIVERED])]
    shown = [rule_page.parse(rule.page) for rule in load_rules().values()]
    short = [rule_page.document(fragment)[0] for page in shown for fragment in (page.bad, page.good)]
    return [*rich * RICH, *(seed_of(document) for document in dict.fromkeys(short))]


def seed_of(contract: str) -> Seed:
    data = contract.encode()
    try:
        document = yaml.safe_load(contract)
        spans = [(token.start_mark.index, token.end_mark.index) for token in yaml.scan(contract)]
    except (yaml.YAMLError, ValueError):
        return Seed(data, None, ())
    # Marks count characters, and cuts are made in bytes.
    places = [len(contract[:place].encode()) for span in spans for place in span]
    pairs = zip(places[::2], places[1::2], strict=True)
    return Seed(data, document, tuple((start, end) for start, end in pairs if start < end))
