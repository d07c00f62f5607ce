"""Examples of checks, found by the name of the check, and their contracts, written without a head."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from dq.contracts.model import Contract
from dq.contracts.yaml.parse import parse
from dq.dataquality.model.run_context import PastResult

FOLDER = Path(__file__).parents[1] / "dataquality" / "checks" / "examples"

# Checks of single rows. Spark is asked for all their predicates at once, of the rows of all examples, in
# `dataquality/model/test_examples.py`.
OF_ROWS = frozenset(
    {
        *("bounds", "compare_columns", "enum", "format", "invalid_values", "items", "lengths"),
        *("logical_type", "missing_values", "multiple_of", "null_values", "pattern", "required"),
        *("required_fields", "vector"),
    }
)


@dataclass(frozen=True, slots=True)
class Example:
    """Rows, and how every clause of the kind ends on them.

    `contract` is YAML of one object (without its name). `columns` is the frame's schema as Spark DDL.
    `ends` has one word per clause, in the order of the contract: pass, fail, error or skipped. `observed`
    are the texts that the results must show, where they matter. `levels` is a YAML list of service levels
    of the contract; `now` and `history` are what the run is told.
    """

    name: str
    contract: str
    columns: str
    rows: tuple[tuple[object, ...], ...]
    ends: str
    observed: tuple[str, ...] = ()
    levels: str = ""
    now: datetime | None = None
    history: tuple[PastResult, ...] | None = None


@cache
def examples_of(kind: str) -> tuple[Example, ...]:
    """The `EXAMPLES` of `tests/dataquality/checks/examples/<kind>.py`; none where it is missing."""
    file = FOLDER / f"{kind}.py"
    if not file.exists():
        return ()
    spec = spec_from_file_location(f"examples_of_{kind}", file)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    examples: tuple[Example, ...] = module.EXAMPLES
    return examples


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
