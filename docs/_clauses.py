"""The page of clauses: what becomes of every clause of ODCS, as the account of a contract with all says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from _clause_keys import OF_ENUM_VALUES, OF_QUALITY, OF_RELATIONSHIPS, OF_SERVICE_LEVELS

from dq.contracts.model import Quality
from dq.contracts.types import CARRIERS
from dq.contracts.yaml.parse import parse
from dq.dataquality.checks import built_in
from dq.dataquality.checks.format import FORMATS
from dq.dataquality.clauses.coverage import SILENT, EnforcementState, clause_coverage
from dq.dataquality.clauses.kind import clauses_of
from dq.dataquality.model.run_context import OPERATORS

SOURCE = Path(__file__).parent / "every-clause.odcs.yaml"

# What holds others is enforced where they are.
_PARTS = {
    **dict.fromkeys(("properties", "items", "map"), "columns: each of them"),
    "relationships": "relationship: see below",
    "quality": "each rule by its check, see below",
    "logicalTypeOptions": "each of them by its check, see below",
}
_HOLDERS = {
    "Properties.name": (EnforcementState.ENFORCED, "columns"),
    **{f"Objects.{key}": (EnforcementState.ENFORCED, how) for key, how in _PARTS.items()},
    **{f"Properties.{key}": (EnforcementState.ENFORCED, how) for key, how in _PARTS.items()},
}

Rows = dict[tuple[str, str], tuple[str, str]]
"""A clause and its state, with how it is enforced, or why not."""


def clause_rows() -> dict[str, Rows]:
    """Return the state and reason of every clause, by section."""
    contract = parse(SOURCE.read_bytes(), SOURCE.name).contract
    assert contract is not None
    schema_object = contract.objects[0]
    accounts_ = clause_coverage(contract, schema_object, clauses_of(contract, schema_object, built_in()))
    by_path = {account.path: account for account in accounts_}
    sections: dict[str, Rows] = {"Objects": {}, "Properties": {}}

    def add(section: str, name: str, path: str) -> None:
        account = by_path[path]
        sections.setdefault(section, {}).setdefault((name, account.state), (account.state, account.reason))

    for section, element in [
        ("Objects", schema_object),
        *(("Properties", prop) for prop in schema_object.walk()),
    ]:
        for key in element.place.keys:
            if key in SILENT:
                state_and_reason = _HOLDERS.get(f"{section}.{key}") or (
                    EnforcementState.DOCUMENTED,
                    SILENT[key],
                )
                sections[section].setdefault((key, state_and_reason[0]), state_and_reason)
            elif element.path(key) in by_path:
                add(section, key, element.path(key))
        options = getattr(element, "logical_type_options", None)
        for key in options.place.keys if options else ():
            add(f"Options of the logical type {element.logical_type}", key, options.path(key))
    add("Objects", "additionalColumns, a term of dq", schema_object.path("additionalColumns"))
    for element in (schema_object, *schema_object.walk()):
        where = "on an object" if element is schema_object else "on a property"
        for relation in element.relationships:
            add("Relationships", where, relation.path())
        for quality in element.quality:
            add("Quality rules", f"{_rule_title(quality)} {where}", quality.path())
    for sla in contract.sla_properties:
        add("Service levels", sla.property, sla.path())
    compared = [(name, word) for name, (_, word) in OPERATORS.items()]
    written: list[tuple[str, Iterable[tuple[str, tuple[str, str]]]]] = [
        ("Logical types", ((name, (EnforcementState.ENFORCED, _carried(name))) for name in CARRIERS)),
        ("Formats", _formats()),
        ("Values of enum", OF_ENUM_VALUES.items()),
        ("Relationships", OF_RELATIONSHIPS.items()),
        (
            "Operators",
            ((name, (EnforcementState.ENFORCED, word.format("a", "b"))) for name, word in compared),
        ),
        ("Keys of a quality rule", OF_QUALITY.items()),
        ("Keys of a service level", OF_SERVICE_LEVELS.items()),
    ]
    for section, rows in written:
        for name, state_and_reason in rows:
            sections.setdefault(section, {}).setdefault((name, state_and_reason[0]), state_and_reason)
    return sections


def _rule_title(quality: Quality) -> str:
    unit = ", unit: percent" if quality.unit == "percent" else ""
    if quality.metric:
        return f"metric: {quality.metric}{unit}"
    return f"type: {quality.type}" + (f", engine: {quality.engine}" if quality.engine else "")


def _carried(name: str) -> str:
    """Return what the check of columns requires of a logical type."""
    kinds = ", ".join(CARRIERS[name])
    return f"columns: a column of the type {kinds}"


def _formats() -> Iterator[tuple[str, tuple[str, str]]]:
    """Every named format, with what the check of formats says of it."""
    head = "apiVersion: v3.2.0\nkind: DataContract\nid: a\nversion: 1.0.0\n"
    for kind, format_names in FORMATS.items():
        for name in format_names:
            prop = f"{{name: v, logicalType: {kind}, logicalTypeOptions: {{format: {name}}}}}"
            text = f"{head}schema: [{{name: a, properties: [{prop}]}}]\n"
            contract = parse(text.encode(), "format").contract
            assert contract is not None
            schema_object = contract.objects[0]
            coverage = clause_coverage(
                contract, schema_object, clauses_of(contract, schema_object, built_in())
            )
            account = next(clause for clause in coverage if clause.clause == "format")
            yield f"{name} ({kind})", (account.state, account.reason)


def clauses() -> Iterator[str]:
    """Every clause of ODCS, with the check that enforces it, or why none does."""
    yield "# Clauses of ODCS\n"
    yield "How each clause of ODCS 3.2 is handled when data is checked; earlier versions have fewer clauses."
    yield "A clause is enforced by a check, documented only (no data can violate it), or not evaluated."
    yield "`dq explain CONTRACT` shows the same for one contract. The table is its output for [a"
    yield "contract with every clause](../every-clause.odcs.yaml). A key listed twice depends on its value.\n"
    for section, rows in clause_rows().items():
        yield f"## {section}\n"
        yield "| clause | state | how, or why not |\n|---|---|---|"
        yield from (f"| {name} | {state} | {_linked(how)} |" for (name, _), (state, how) in rows.items())
        yield ""


def _linked(how: str) -> str:
    """The names of checks as links to their pages."""
    first, colon, explanation = how.partition(":")
    names = [part.strip() for part in first.split(",")]
    if not all(name in built_in() or name == "dq watch" for name in names):
        return how.replace("|", "\\|")
    links = [name if name == "dq watch" else f"[{name}](checks.md#{name})" for name in names]
    return ", ".join(links) + colon + explanation
