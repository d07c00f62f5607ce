"""A file or a whole registry is read, and everything wrong with it is said at once."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from dq.contracts.outcome import Location, ReadError, Severity
from dq.validators import rule_page
from dq.validators.lint import LintResult, lint, lint_files, lint_paths
from dq.validators.rule import Rule

TODAY = date(2026, 11, 21)
GOOD = rule_page.document("")[0]


def _registry(root: Path, **contracts: str) -> None:
    for name, text in contracts.items():
        (root / f"{name}.odcs.yaml").write_text(text, "utf-8")


def _lint(root: Path, rules: dict[str, Rule], *paths: Path) -> LintResult:
    return lint_paths(paths or (root,), root=root, rules=rules, today=TODAY)


def test_a_finding_says_all_there_is_to_say(lint_fragment) -> None:
    (found,) = lint_fragment("status: activ\n")

    assert (found.rule, found.severity) == ("status-unknown", Severity.WARNING)
    assert found.message == (
        "unknown status 'activ', treated as active: deliveries are watched and alerts are sent."
    )
    assert found.hint == "Did you mean 'active'?"
    assert found.at == Location("orders.odcs.yaml", 16, 9)
    assert (found.path, found.contract) == ("status", "orders")


def test_findings_of_form_name_the_contract_too(lint_fragment) -> None:
    (found,) = lint_fragment("nmae: Orders\n")

    assert (found.rule, found.contract) == ("unknown-key", "orders")


def test_findings_come_sorted_by_place_and_then_by_rule(rules: dict[str, Rule]) -> None:
    text = (
        "apiVersion: v3.2.0\nkind: DataContract\nid: orders\nversion: '1'\nstatus: on\nschema: [{nme: a}]\n"
    )

    found = lint(text.encode(), "orders.odcs.yaml", rules=rules, today=TODAY)

    assert [(one.at.line, one.rule) for one in found] == [
        (4, "version-not-semver"),
        (5, "wrong-type"),
        (6, "unknown-key"),
    ]


def test_what_cannot_be_read_is_one_finding(rules: dict[str, Rule]) -> None:
    found = lint(b"a: [", "x.odcs.yaml", rules=rules, today=TODAY)

    assert [(one.rule, one.contract) for one in found] == [("yaml-syntax", "")]


def test_extension_values_are_judged_with_the_form(lint_fragment) -> None:
    found = lint_fragment(
        "schema:\n"
        "  - name: orders\n"
        "    customProperties: [{property: dataset, vendor: dq, value: {additionalColumns: forbit}}]\n"
        "slaProperties:\n"
        "  - property: frequency\n"
        "    value: 1\n"
        "    unit: d\n"
        "    schedule: 0 6 * * *\n"
        "    customProperties: [{property: delivery, vendor: dq, value: {grce: 45m}}]\n"
        "support:\n"
        "  - channel: a\n"
        "    scope: notifications\n"
        "    customProperties: [{property: route, vendor: dq, value: [error]}]\n"
    )

    assert [(one.rule, one.path) for one in found] == [
        ("unknown-value", "schema[0].customProperties[0].value.additionalColumns"),
        ("unknown-key", "slaProperties[0].customProperties[0].value.grce"),
        ("wrong-type", "support[0].customProperties[0].value"),
    ]
    assert found[1].hint == "Did you mean 'grace'?"


def test_a_rule_is_asked_only_about_its_versions_of_the_standard(rules: dict[str, Rule]) -> None:
    text = rule_page.document("apiVersion: v3.1.0\nstatus: activ\n")[0].encode()
    later = {
        "status-unknown": Rule(
            "status-unknown", Severity.INFO, None, rules["status-unknown"].check, first=(3, 2, 0)
        )
    }
    earlier = {
        "status-unknown": Rule(
            "status-unknown", Severity.INFO, None, rules["status-unknown"].check, last=(3, 1, 0)
        )
    }

    assert lint(text, "orders.odcs.yaml", rules=later, today=TODAY) == []
    assert len(lint(text, "orders.odcs.yaml", rules=earlier, today=TODAY)) == 1


def test_a_folder_is_searched_but_not_its_hidden_folders(tmp_path: Path, rules: dict[str, Rule]) -> None:
    (tmp_path / "sales").mkdir()
    (tmp_path / ".git").mkdir()
    _registry(tmp_path / "sales", orders=GOOD)
    _registry(tmp_path / ".git", orders="not a contract")
    (tmp_path / "readme.yaml").write_text("not: a contract")

    linted = _lint(tmp_path, rules)

    assert replace(linted, skipped=()) == LintResult((), ("sales/orders.odcs.yaml",), {})
    assert [one.file.name for one in linted.skipped] == ["readme.yaml"]


def test_a_file_is_read_once_whatever_its_name(tmp_path: Path, rules: dict[str, Rule]) -> None:
    file = tmp_path / "orders.yaml"
    file.write_text(GOOD, "utf-8")

    linted = _lint(tmp_path, rules, file, tmp_path / "." / "orders.yaml")

    assert linted.files == ("orders.yaml",)


def test_a_file_outside_of_the_root_is_named_as_given(tmp_path: Path, rules: dict[str, Rule]) -> None:
    (tmp_path / "root").mkdir()
    _registry(tmp_path, orders=GOOD)

    linted = lint_paths([tmp_path / "orders.odcs.yaml"], root=tmp_path / "root", rules=rules, today=TODAY)

    assert linted.files == ((tmp_path / "orders.odcs.yaml").as_posix(),)


def test_only_files_with_findings_are_kept_for_the_report(tmp_path: Path, rules: dict[str, Rule]) -> None:
    returns = GOOD.replace("id: orders", "id: returns").replace("status: active", "status: activ")
    _registry(tmp_path, orders=GOOD, returns=returns)

    linted = _lint(tmp_path, rules)

    assert linted.files == ("orders.odcs.yaml", "returns.odcs.yaml")
    assert linted.sources == {"returns.odcs.yaml": returns.encode()}


def test_two_files_with_one_identity_are_found_in_the_second(tmp_path: Path, rules: dict[str, Rule]) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        _registry(tmp_path / folder, orders=GOOD)

    (found,) = _lint(tmp_path, rules).findings

    assert (found.rule, found.at.file) == ("duplicate-contract", "b/orders.odcs.yaml")
    assert found.message == "'orders' version 1 is already defined in a/orders.odcs.yaml."


REFERRING = GOOD.replace("id: orders\n", "id: sales\n").replace(
    "logicalType: string, required: true", "logicalType: string, relationships: [{to: %s}]"
)


@pytest.mark.parametrize(
    ("to", "expected"),
    [
        pytest.param("customers.customer_id", [], id="a property of an object of another contract"),
        pytest.param("customers.customer_no", ["reference-outside"], id="no such property there"),
        pytest.param("guests.customer_id", ["reference-outside"], id="no such object anywhere"),
        pytest.param(
            "'customers.odcs.yaml#/schema/customers_tbl/properties/own'", [], id="an id in another file"
        ),
        pytest.param("'customers.odcs.yaml#customers.customer_id'", [], id="a name in another file"),
        pytest.param("customers.home.zip", [], id="a field of a struct there"),
        pytest.param(
            "'customers.odcs.yaml#/schema/customers_tbl'", ["reference-outside"], id="an object there"
        ),
        pytest.param("'customers.odcs.yaml#customers'", ["reference-outside"], id="an object by its name"),
        pytest.param("customers.orders.order_no", ["reference-outside"], id="inside of an array there"),
        pytest.param("customers.prices.amount", ["reference-outside"], id="inside of a map there"),
        pytest.param("'guests.odcs.yaml#/schema/customers_tbl'", ["reference-outside"], id="no such file"),
        pytest.param("orders.order_no", ["reference-unknown"], id="no such property here"),
        pytest.param("schema/orders/properties/x", ["reference-unknown"], id="no such id here"),
        pytest.param("orders", ["reference-unknown"], id="not a property"),
    ],
)
def test_references_are_resolved_among_all_contracts_that_were_read(
    tmp_path: Path, rules: dict[str, Rule], to: str, expected: list[str]
) -> None:
    customers = rule_page.document(
        "id: customers\nschema: [{name: customers, id: customers_tbl, properties: [\n"
        "  {name: customer_id, id: own},\n"
        "  {name: home, logicalType: object, properties: [{name: zip}]},\n"
        "  {name: orders, logicalType: array,"
        " items: {logicalType: object, properties: [{name: order_no}]}},\n"
        "  {name: prices, logicalType: map, map: {key: {logicalType: string},"
        " value: {logicalType: object, properties: [{name: amount}]}}}]}]\n"
    )[0]
    _registry(tmp_path, sales=REFERRING % to, customers=customers)

    linted = _lint(tmp_path, rules)

    assert [one.rule for one in linted.findings] == expected


def test_a_path_that_does_not_exist_is_unreadable(tmp_path: Path, rules: dict[str, Rule]) -> None:
    with pytest.raises(ReadError, match="does not exist") as raised:
        _lint(tmp_path, rules, tmp_path / "nowhere")

    assert raised.value.hint
    assert raised.value.exit_code == 3


def test_a_folder_without_contracts_is_not_fine(tmp_path: Path, rules: dict[str, Rule]) -> None:
    (tmp_path / "orders.txt").write_text(GOOD)

    with pytest.raises(ReadError, match="contains no contract"):
        _lint(tmp_path, rules)


def test_files_can_be_handed_in_without_a_file_system(rules: dict[str, Rule]) -> None:
    linted = lint_files([("orders.odcs.yaml", GOOD.encode())], rules=rules, today=TODAY)

    assert linted.files == ("orders.odcs.yaml",)
