"""The contract of the benchmark: its text at a scale, and which of the forty clauses each of dq's is."""

from __future__ import annotations

from pathlib import Path

from dq.contracts.model import Contract
from dq.contracts.yaml.parse import parse
from spark import terms

FILE = Path(__file__).parent.parent / "c40.odcs.yaml"


def text(scale: float) -> str:
    """The contract with the two bounds that grow with the table."""
    document = FILE.read_text("utf-8")
    for bounds in (terms.row_bounds, terms.distinct_bounds):
        before, after = (str(list(bounds(at))) for at in (1.0, scale))
        if document.count(before) != 1:
            raise ValueError(f"{FILE.name} does not hold {before} once")
        document = document.replace(before, after)
    return document


def contract(scale: float) -> Contract:
    """The contract, parsed."""
    parsed = parse(text(scale).encode(), FILE.name)
    if parsed.contract is None or parsed.findings:
        raise ValueError(f"{FILE.name}: {parsed.findings}")
    return parsed.contract


_NAMED = {
    "shipped before received": "order",
    "mean": "mean",
    "maximum": "maximum",
    "suppliers": "distinct",
}
_BY_CHECK = {
    "additional_columns": "schema",
    "columns": "schema",
    "row_count": "rows",
    "duplicate_values": "repeated",
    "pattern": "pattern",
    "latency": "fresh",
}


def clause_of(contract: Contract, check: str, column: str, path: str) -> str:
    """The id of the clause that a check kind makes of this column and place of the contract."""
    if check == "required" or (check == "primary_key" and column in terms.COLUMNS):
        return f"null:{column}"
    if check == "primary_key":
        return "key"
    if check == "invalid_values":
        return f"enum:{column}"
    if check == "bounds":
        kind = "positive" if column == terms.POSITIVE else "dates" if column in terms.DATES else "range"
        return f"{kind}:{column}"
    if check == "lengths":
        return "min_length" if path.endswith("minLength") else "max_length"
    if check == "sql_rule":
        rules = {rule.path(): rule.name or "" for rule in contract.objects[0].quality}
        return _NAMED[rules[path]]
    return _BY_CHECK[check]
