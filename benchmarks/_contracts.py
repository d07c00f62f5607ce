"""Contracts for benchmarks: realistic ones of any number of columns, the same in every run."""

from __future__ import annotations

import random
from pathlib import Path

DOMAINS = ("orders", "billing", "shipping", "inventory", "web", "crm", "risk", "hr")
TYPES = (
    ("string", "varchar(64)"),
    ("integer", "bigint"),
    ("number", "decimal(18,2)"),
    ("date", "date"),
    ("timestamp", "timestamp"),
    ("boolean", "boolean"),
)

OF_TYPE = {
    "string": "'a', 'b'",
    "integer": "4, 7",
    "number": "1.5, 2",
    "date": "'2026-01-31'",
    "timestamp": "'2026-01-31T08:00:00Z'",
    "boolean": "true",
}

HEAD = """\
apiVersion: v3.1.0
kind: DataContract
id: {domain}-{number:05d}
name: {domain} {number}
version: {major}.{minor}.0
status: active
domain: {domain}
tenant: acme
dataProduct: {domain}-core
description:
  purpose: Curated {domain} events for reporting and models.
  usage: Join on the business key; one row per event.
  limitations: Late data up to 3 days.
servers:
  - server: prod
    type: databricks
    host: adb.example.net
    catalog: main
    schema: {domain}
    environment: prod
schema:
  - name: {table}
    physicalName: {table}
    physicalType: table
    businessName: {domain} table {number}
    description: Facts of the {domain} domain, partitioned by day.
    tags: [core, pii]
    properties:
"""
COLUMN = """\
      - name: col_{index:02d}_{domain}
        logicalType: {logical}
        physicalType: {physical}
        description: Column {index} of {domain}, as delivered by the source system.
        required: {required}
        classification: {classification}
"""
KEY = """\
        primaryKey: true
        primaryKeyPosition: 1
        unique: true
"""
EXAMPLES = """\
        examples: [{example}]
        tags: [gold]
"""
QUALITY = """\
        quality:
          - type: library
            metric: nullValues
            mustBeLessThan: 1
            unit: percent
            dimension: completeness
            severity: error
"""
TAIL = """\
    quality:
      - type: library
        metric: rowCount
        mustBeGreaterThan: {rows}
      - type: sql
        query: SELECT COUNT(*) FROM {table} WHERE col_01_{domain} IS NULL
        mustBeLessThan: 10
team:
  name: team-{domain}
  members:
    - username: a.owner@example.com
      role: Owner
    - username: b.steward@example.com
      role: Data Steward
support:
  - channel: '#{domain}-data'
    tool: slack
    scope: notifications
    url: https://example.slack.com/archives/C01
slaProperties:
  - property: latency
    value: 4
    unit: h
    element: {table}.col_01_{domain}
  - property: availability
    value: 99
    unit: percent
roles:
  - role: {domain}_reader
    access: read
    firstLevelApprovers: Team lead
contractCreatedTs: '2026-01-01T00:00:00Z'
customProperties:
  - property: costCenter
    value: CC{centre}
"""


def text(number: int, columns: int = 30) -> str:
    """The contract of this number."""
    draw = random.Random(number)
    domain = DOMAINS[number % len(DOMAINS)]
    table = f"{domain}_table_{number}"
    parts = [HEAD.format(
        domain=domain, number=number, table=table, major=draw.randint(1, 4), minor=draw.randint(0, 9)
    )]  # fmt: skip
    for index in range(columns):
        logical, physical = draw.choice(TYPES) if index > 1 else TYPES[(1, 4)[index]]
        parts.append(
            COLUMN.format(
                index=index,
                domain=domain,
                logical=logical,
                physical=physical,
                required="true" if index < 10 else "false",
                classification="internal" if index % 7 else "restricted",
            )
        )
        parts += [KEY] if index == 0 else []
        parts += [EXAMPLES.format(example=OF_TYPE[logical])] if index % 4 == 0 else []
        parts += [QUALITY] if index % 5 == 0 else []
    parts.append(TAIL.format(domain=domain, table=table, rows=draw.randint(1, 1000), centre=number % 97))
    return "".join(parts)


def write(folder: Path, count: int, columns: int = 30) -> Path:
    """`count` contracts in a folder that is made; gives the folder."""
    folder.mkdir(parents=True)
    for number in range(count):
        domain = DOMAINS[number % len(DOMAINS)]
        (folder / f"{domain}-{number:05d}.odcs.yaml").write_text(text(number, columns), "utf-8")
    return folder
