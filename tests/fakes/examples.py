"""The contract of a check's example, which is written without its head."""

from __future__ import annotations

import textwrap

from dq.contracts.model import Contract
from dq.contracts.yaml.parse import parse
from dq.dataquality.clauses.kind import Example

# Checks of single rows. Spark is asked for all their predicates at once, of the rows of all examples, in
# `dataquality/model/test_examples.py`.
OF_ROWS = frozenset(
    {
        *("bounds", "compare_columns", "enum", "format", "invalid_values", "items", "lengths"),
        *("logical_type", "missing_values", "multiple_of", "null_values", "pattern", "required"),
        *("required_fields", "vector"),
    }
)


def contract_of(example: Example) -> Contract:
    written = textwrap.dedent(example.contract).strip()
    head = "apiVersion: v3.2.0\nkind: DataContract\nid: example\nversion: 1.0.0\nschema:\n  - name: t\n"
    if written.startswith("{"):
        head, written = head.removesuffix("  - name: t\n"), "- {name: t, " + written[1:]
        body = textwrap.indent(written, "  ")
    else:
        body = textwrap.indent(written, "    ")
    levels = f"slaProperties: {example.levels}\n" if example.levels else ""
    parsed = parse((head + body + "\n" + levels).encode(), "example.odcs.yaml")
    assert parsed.contract is not None, parsed.findings
    return parsed.contract
