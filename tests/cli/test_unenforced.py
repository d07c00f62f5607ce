"""What `dq explain` calls not evaluated, `dq validate` says at its place, in every contract of ours."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from fakes.odcs import features, mistakes

from dq.contracts.model import Contract
from dq.contracts.odcs import SUPPORTED
from dq.contracts.yaml.parse import parse
from dq.dataquality.checks import built_in
from dq.dataquality.clauses.clause import NoResult
from dq.dataquality.clauses.coverage import (
    ClauseCoverage,
    EnforcementState,
    clause_coverage,
    expected_clauses,
)
from dq.dataquality.clauses.kind import clauses_of
from dq.operations.gate import unenforced
from dq.validators.lint import lint, load_rules

TOP = Path(__file__).parents[2]
RULES = load_rules()
FILES = [
    file
    for folder in ("tests", "examples", "docs")
    for file in sorted((TOP / folder).rglob("*.odcs.yaml"))
    if not any(part.startswith(".") for part in file.relative_to(TOP).parts)
]
SMALL = [
    *(one.contract(version[1:]) for one in features() for version in SUPPORTED if one.is_of(version[1:])),
    *(one.contract for one in mistakes()),
]


def _not_evaluated(contract: Contract) -> list[ClauseCoverage]:
    found = [
        account
        for one in contract.objects
        for account in clause_coverage(contract, one, expected_clauses(contract, one, built_in()))
    ]
    return [account for account in found if account.state is EnforcementState.NOT_EVALUATED]


def _elsewhere(contract: Contract) -> set[str]:
    """Relationships into other contracts: a rule that knows all of them speaks of those."""
    clauses = [each for one in contract.objects for each in clauses_of(contract, one, built_in())]
    return {each.path for each in clauses if isinstance(each.test, NoResult) and each.test.external_keys}


def _silent(data: bytes) -> list[str]:
    """The clauses that are not evaluated and have no finding at them, at a part of them, or above."""
    contract = parse(data, "a.odcs.yaml").contract
    if contract is None:
        return []
    found = lint(data, "a.odcs.yaml", rules=RULES, today=date(2026, 11, 21), unenforced=unenforced)
    lines = {one.at.line for one in found}
    paths = {one.path for one in found}
    return [
        account.path
        for account in _not_evaluated(contract)
        if account.at.line not in lines and not any(path.startswith(account.path) for path in paths)
    ]


@pytest.mark.parametrize("file", FILES, ids=lambda one: one.relative_to(TOP).as_posix())
def test_what_is_not_evaluated_in_a_contract_of_ours_is_said_at_its_line(file: Path) -> None:
    assert _silent(file.read_bytes()) == []


def test_what_is_not_evaluated_in_a_small_contract_is_said_at_its_line() -> None:
    assert len(SMALL) > 1_000
    assert [path for data in SMALL for path in _silent(data)] == []


def test_columns_that_promise_the_same_are_judged_as_if_each_was_asked() -> None:
    contracts = [parse(data, "a").contract for data in (*SMALL, *(file.read_bytes() for file in FILES))]

    different = [
        contract.id
        for contract in contracts
        if contract is not None
        and {one.path for one in unenforced(contract)}
        != {one.path for one in _not_evaluated(contract)} - _elsewhere(contract)
    ]

    assert different == []


def test_a_rule_that_nobody_runs_is_found_among_many_columns_alike() -> None:
    columns = "\n".join(
        f"      - {{name: c{number}, logicalType: integer, required: true}}" for number in range(30)
    )
    odd = "      - {name: odd, physicalType: money, quality: [{metric: nullValues, mustBe: often}]}"
    text = (
        "apiVersion: v3.2.0\nkind: DataContract\nid: a\nversion: 1.0.0\n"
        f"schema:\n  - name: t\n    properties:\n{columns}\n{odd}\n"
    )

    found = lint(text.encode(), "a.odcs.yaml", rules=RULES, today=date(2026, 11, 21), unenforced=unenforced)

    assert {(one.rule, one.at.line) for one in found} == {("unenforced", 38)}


# A table of files, of which the contract declares `id`, `name` and two more columns alone.
UNDECLARED = """\
apiVersion: v3.1.0
kind: DataContract
id: orders
version: 1.0.0
status: active
servers:
{servers}
schema:
  - name: orders
    properties:
      - {{name: id, logicalType: integer}}
      - {{name: a, logicalType: string}}
      - {{name: b, logicalType: string}}
      - {{name: name, logicalType: string, quality: [{{type: sql, mustBe: 0, query: "{column}"}}]}}
    quality:
      - {{type: sql, mustBe: 0, query: "{query}"}}
      - {{metric: rowCount, mustBe: 0, customProperties: [{{property: scope, value: {{where: "{where}"}}}}]}}
"""
DECLARED = {
    "query": "SELECT min(id) FROM {object}",
    "column": "SELECT count({property}) FROM {object}",
    "where": "id > 9",
}
SERVERS = {
    form: f"  - {{server: {form}, type: local, path: lake, format: {form}}}" for form in ("csv", "json")
}
TYPED = "  - {server: parquet, type: local, path: lake, format: parquet}"
READS = {
    "query": "SELECT min(amount) FROM {object}",
    "column": "SELECT count(*) FROM {object} WHERE name < amount",
    "where": "amount > 9",
}
PLACES = {
    "query": (16, "quality[0]"),
    "column": (14, "properties[3].quality[0]"),
    "where": (17, "quality[1]"),
}


def _said(servers: str, **rules: str) -> tuple[list[ClauseCoverage], list[tuple[str, int]]]:
    """What is not evaluated, and the findings, of the table with these rules."""
    text = UNDECLARED.format(servers=servers, **(DECLARED | rules)).encode()
    contract = parse(text, "orders.odcs.yaml").contract
    assert contract is not None
    found = lint(text, "orders.odcs.yaml", rules=RULES, today=date(2026, 11, 21), unenforced=unenforced)
    return _not_evaluated(contract), [(one.rule, one.at.line) for one in found]


@pytest.mark.parametrize("form", SERVERS)
@pytest.mark.parametrize("rule", READS)
def test_a_column_of_texts_that_nobody_declares_is_not_evaluated_and_said_to_be_so(
    form: str, rule: str
) -> None:
    line, path = PLACES[rule]

    accounts_, found = _said(SERVERS[form], **{rule: READS[rule]})

    assert [(one.path, one.at.line) for one in accounts_] == [(f"schema[0].{path}", line)]
    assert "it reads amount, which the contract does not declare" in accounts_[0].reason
    assert found == [("unenforced" if rule == "where" else "sql-column-unknown", line)]


@pytest.mark.parametrize("rule", READS)
def test_elsewhere_the_data_may_have_it(rule: str) -> None:
    mixed = f"{SERVERS['csv']}\n{TYPED}"

    assert [_said(servers, **{rule: READS[rule]})[0] for servers in (TYPED, mixed)] == [[], []]


def test_declared_columns_of_texts_are_evaluated() -> None:
    both = "\n".join(SERVERS.values())

    assert _said(both) == ([], [])
    assert len(_said(both, **READS)[0]) == 3


WINDOWED = """\
apiVersion: v3.2.0
kind: DataContract
id: orders
version: 1.0.0
status: active
schema:
  - name: orders
    properties:
      - {{name: day, logicalType: date{key}}}
      - {{name: id, logicalType: integer}}
      - {{name: a, logicalType: string}}
      - {{name: born_on, logicalType: {kind}}}
    quality:
      - metric: rowCount
        mustBe: 3
        customProperties: [{{property: scope, vendor: dq, value: {{rows: {rows}, window: 7d{time}}}}}]
"""
_KEY = ", partitioned: true, partitionKeyPosition: 1"
WINDOWS: dict[str, tuple[dict[str, str], str]] = {
    "by the date of partition": ({"key": _KEY}, ""),
    "by a column that is named": ({"time": ", time: born_on"}, ""),
    "by another date than that of partition": ({"key": _KEY, "time": ", time: born_on"}, ""),
    "by nothing": ({}, "orders is partitioned by no date column; name the column with time:"),
    "by a number": ({"time": ", time: id"}, "time names id, which is not a date or timestamp"),
    "by nothing that is there": ({"time": ", time: nope"}, "orders has no column 'nope'"),
    "that is none": ({"rows": "table", "time": ", time: day"}, "rows: window and a window, e.g. 7d"),
}


@pytest.mark.parametrize(("terms", "reason"), WINDOWS.values(), ids=WINDOWS)
def test_a_window_needs_a_column_that_somebody_names(terms: dict[str, str], reason: str) -> None:
    blank = {"key": "", "kind": "date", "rows": "window", "time": ""}
    text = WINDOWED.format(**(blank | terms)).encode()

    found = lint(text, "orders.odcs.yaml", rules=RULES, today=date(2026, 11, 21), unenforced=unenforced)

    assert [(one.rule, one.at.line) for one in found] == ([("unenforced", 14)] if reason else [])
    assert not reason or reason in found[0].message


STRICT = "rules: {unenforced: {severity: error}}\n"
# Rules of quality that are not evaluated, and the rule of the gate that warns of them first.
WARNED = {
    "sql-refused": "{type: sql, query: 'SELECT count(* FRM {object}', mustBe: 0}",
    "unenforced": "{type: custom, engine: soda, implementation: 'checks for t'}",
}


@pytest.mark.parametrize(("warned", "rule"), WARNED.items(), ids=WARNED)
def test_a_policy_that_makes_it_an_error_is_heeded_though_another_rule_warns(
    folder: Path, dq, warned: str, rule: str
) -> None:
    text = (folder / "orders.odcs.yaml").read_text()
    described = "    description: One row per order.\n"
    (folder / "orders.odcs.yaml").write_text(
        text.replace(described, f"{described}    quality:\n      - {rule}\n")
    )

    mild = dq("validate", "--format", "json")
    (folder / "dq-policy.yaml").write_text(STRICT)
    strict = dq("validate", "--format", "json")

    assert (mild.code, strict.code) == (0, 1)
    assert [one["rule"] for one in mild.json["findings"]] == [warned]
    assert ("unenforced", "error") in {(one["rule"], one["severity"]) for one in strict.json["findings"]}


MISSPELT = b"""\
apiVersion: v3.1.0
kind: DataContract
id: orders
version: 1.0.0
status: active
schema:
  - {name: orders, properties: [{name: id, logicalType: integer, physicalType: bigint}]}
slaProperties:
  - {id: daily, property: frequency, value: 1, unit: d, element: orders, schedule: "0 6 * * *"}
customProperties:
  - {property: "delivery:dayly", value: {grace: 45m}}
"""


def test_delivery_terms_with_a_misspelt_id_are_one_mistake():
    found = lint(MISSPELT, "a.odcs.yaml", rules=RULES, today=date(2026, 11, 21), unenforced=unenforced)

    assert [one.rule for one in found] == ["delivery-without-service-level"]


def test_a_json_with_a_comma_too_many_is_found_at_it():
    data = b'{"apiVersion": "v3.2.0", "kind": "DataContract", "id": "a", "version": "1",\n"status": "a",}'

    (found,) = lint(data, "a.json", rules=RULES, today=date(2026, 11, 21))

    assert (found.rule, found.at.line) == ("yaml-syntax", 2)
