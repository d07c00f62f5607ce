"""`dq validate --official`: what the standard's own JSON Schema refuses and dq does not."""

from __future__ import annotations

import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest

import dq as library
from dq.contracts.outcome import Finding, MissingTool, Severity
from dq.validators import rule_page
from dq.validators.lint import lint_files, load_rules
from dq.validators.official import installed_schema
from dq.validators.policy.policy import DEFAULT, Policy, RuleSetting

RULES = load_rules()
TODAY = date(2026, 11, 21)


def opinions(fragment: str, policy: Policy = DEFAULT) -> list[Finding]:
    """The findings of the official schema in a fragment laid over the base contract of the pages."""
    text, _ = rule_page.document(fragment)
    files = [("orders.odcs.yaml", text.encode())]
    linted = lint_files(files, rules=RULES, policy=policy, today=TODAY, official=installed_schema())
    return [finding for finding in linted.findings if finding.rule == "official-schema"]


def columns(*written: str) -> str:
    return "schema:\n  - name: orders\n    description: One row per order.\n    properties:\n" + "".join(
        f"      - {column}\n" for column in written
    )


# TABLE: a fragment, and path, message after the schema's name, and fix of what the schema refuses in it.
CASES = [
    (
        "servers: [{server: lake, type: sftp, location: /exports}]\n",
        "servers[0].location",
        "requires text that matches ^sftp://.* here, not '/exports'.",
        "Write text of this form.",
    ),
    (
        columns("{name: a, logicalType: string, quality: [{type: library, rule: nullCheck, mustBe: 1}]}"),
        "schema[0].properties[0].quality[0].metric",
        "requires 'metric' here.",
        "Add metric.",
    ),
    (
        columns("{name: a, logicalType: string, quality: [{metric: rowCount, mustBeBetween: [3, 3]}]}"),
        "schema[0].properties[0].quality[0].mustBeBetween",
        "does not allow this: items 0 and 1 are equal.",
        "Write it as described in the standard.",
    ),
]


@pytest.mark.parametrize(("fragment", "path", "message", "fix"), CASES)
def test_what_only_the_official_schema_refuses_is_an_error_at_its_place(
    fragment: str, path: str, message: str, fix: str
) -> None:
    (finding,) = opinions(fragment)

    assert (finding.severity, finding.path, finding.hint) == (Severity.ERROR, path, fix)
    assert finding.message == f"the official schema of ODCS v3.2.0 {message}"
    assert finding.at.line > 1
    assert finding.at.column > 1


@pytest.mark.parametrize(
    "fragment",
    [
        "colour: red\n",
        "status: 3\n",
        "servers: [{server: lake, type: glue, account: '1'}, {server: other, type: gluee}]\n",
        "team: {name: sales, members: [{role: owner}]}\n",
        columns("{name: a, logicalType: strin}"),
        columns("{name: a, logicalType: string, colour: red}"),
        columns("{name: a, logicalType: string, quality: [{metric: duplicateValues}]}"),
        columns("{name: a, logicalType: array, items: {logicalType: string, required: 'no'}}"),
    ],
)
def test_what_a_rule_of_ours_reports_is_not_reported_twice(fragment: str) -> None:
    assert opinions(fragment) == []


def test_columns_without_logical_type_are_one_warning_of_the_object() -> None:
    (finding,) = opinions(columns("{name: a, physicalType: int}", "{name: b, physicalType: int}"))

    assert finding.severity is Severity.WARNING
    assert finding.path == "schema[0].properties[0].map"
    assert finding.message == (
        "the official schema of ODCS v3.2.0 requires 'map' here: it treats a column without logicalType "
        "as one of every type. The same holds for 1 other column of 'orders': b."
    )
    assert finding.hint.startswith("Add logicalType")


def test_a_nested_column_without_logical_type_is_one_warning() -> None:
    (nested,) = opinions(columns("{name: a, logicalType: array, items: {physicalType: int}}"))

    assert (nested.severity, nested.path) == (Severity.WARNING, "schema[0].properties[0].items.map")


def test_a_policy_sets_how_much_it_matters() -> None:
    off = Policy(settings={"official-schema": RuleSetting(None)})

    assert opinions(CASES[0][0], off) == []


def test_deep_columns_are_read_once() -> None:
    column = "{name: leaf, logicalType: string}"
    for depth in range(20):
        column = f"{{name: level{depth}, logicalType: object, properties: [{column}]}}"

    # Asked of each branch of the schema again at each level, this would take hours.
    assert opinions(columns(column)) == []


def test_a_contract_of_another_version_names_what_to_install() -> None:
    text = rule_page.document("apiVersion: v3.0.2\n")[0]

    with pytest.raises(MissingTool) as missing:
        library.validate(text, official=True, today=TODAY)

    release = installed_schema().release
    assert missing.value.message == (
        f"(text) follows ODCS v3.0.2, but the installed open-data-contract-standard {release} "
        "contains the official schema of v3.2.0."
    )
    assert missing.value.hint.endswith("'open-data-contract-standard==3.0.*'")
    assert "official]" in missing.value.hint


def test_the_function_asks_only_where_it_is_told_to(tmp_path: Path) -> None:
    file = tmp_path / "orders.odcs.yaml"
    file.write_text(rule_page.document(CASES[0][0])[0])

    assert library.validate(file) == []
    assert [finding.rule for finding in library.validate(file, official=True)] == ["official-schema"]


PROGRAM = """
import sys
class Nothing:
    def find_spec(self, name, *rest):
        if name.partition(".")[0] in ("open_data_contract_standard", "jsonschema"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Nothing())
from dq.cli.main import run
print(run(["validate", *sys.argv[1:]]))
"""


def test_without_the_package_only_the_option_fails(tmp_path: Path) -> None:
    file = tmp_path / "orders.odcs.yaml"
    file.write_text(rule_page.document("")[0])

    plain, official = (
        subprocess.run(
            [sys.executable, "-c", PROGRAM, str(file), *options], capture_output=True, text=True, check=False
        )
        for options in ([], ["--official"])
    )

    assert plain.stdout.splitlines()[-1] == "0"
    assert official.stdout.splitlines()[-1] == "2"
    assert "needs open-data-contract-standard, which is not installed." in official.stderr
    assert "official]" in official.stderr
