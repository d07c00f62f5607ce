"""`dq import dbt`: a project's manifest, as dbt 1.11 wrote it, and a file of properties."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from dq.contracts.types import catalog_type
from dq.contracts.yaml.parse import read

CASES = Path(__file__).parent.parent / "cases" / "dbt"
ORDERS = {
    "order_id": "bigint", "customer_id": "int", "amount": "decimal(12,2)", "state": "string",
    "placed_at": "timestamp", "labels": "array<string>", "address": "struct<city:string,zip:int>",
}  # fmt: skip


@pytest.fixture
def project(folder):
    (folder / "shop/target").mkdir(parents=True)
    for name in ("manifest.json", "catalog.json"):
        shutil.copy(CASES / name, folder / "shop/target" / name)
    shutil.copy(CASES / "schema.yml", folder / "schema.yml")
    return folder


def imported(dq, folder, *words):
    ran = dq("import", "dbt", *words, "-o", "made.odcs.yaml")
    assert ran.code == 0, ran.err
    assert "no findings" in dq("validate", "made.odcs.yaml").out
    return read(folder / "made.odcs.yaml"), ran.err


def types(one):
    return {prop.column: str(catalog_type(prop)) for prop in one.properties}


def test_a_project_says_its_tables_types_and_tests(dq, project):
    contract, told = imported(dq, project, "shop")

    orders, bare, customers, raw, visits = contract.objects
    assert (contract.id, types(orders), types(bare)) == ("shop", ORDERS, {"one": "int"})
    assert [prop.column for prop in orders.primary_key()] == ["order_id"]
    columns = {prop.column: prop for prop in orders.properties}
    assert [one.value for one in columns["state"].enum] == ["paid", "open", "no"]
    assert columns["state"].tags == ["state"]
    assert [one.to for one in columns["customer_id"].relationships] == ["customers.customer_id"]
    [warned] = columns["customer_id"].quality
    assert (warned.metric, warned.must_be, warned.severity) == ("nullValues", 0, "warning")
    [customer, _] = customers.properties
    assert (customer.required, customer.unique, types(customers)["active"]) == (True, True, "boolean")
    assert customer.quality[0].custom("scope").value["where"] == "customer_id > 0"
    assert (visits.column, [prop.column for prop in visits.properties]) == (
        "visits_v2",
        ["visit_id", "seen_at"],
    )
    [level] = contract.sla_properties
    assert (level.property, level.value, level.unit, level.element) == ("freshness", 1, "d", "visits.seen_at")
    assert orders.custom("tier").value == 1
    assert raw.column == "raw_orders"
    for more in (
        "passing is ephemeral", "lake.raw, shop.main", "orders: test one_off",
            "orders: amount: test positive",
        "orders: constraint check amount >= 0", "orders: group sales", "visits: freshness warns after 6 hour",
        'orders: test dbt_utils_like {"columns": ["order_id", "customer_id"]}',
    ):  # fmt: skip
        assert more in told


def test_one_table_of_a_project_is_named(dq, project):
    contract, _ = imported(dq, project, "shop/target/manifest.json", "--object", "customers")

    assert (contract.id, [one.name for one in contract.objects]) == ("customers", ["customers"])
    missed = dq("import", "dbt", "shop", "--object", "customer")
    assert (missed.code, "Did you mean customers?" in missed.err) == (2, True)


def test_a_file_of_properties_says_what_it_knows_and_guesses_by_accepted_values(dq, project):
    contract, told = imported(dq, project, "schema.yml@duckdb")

    orders, customers, _ = contract.objects
    assert (types(orders), types(customers)) == (ORDERS, {"customer_id": "bigint"})
    assert "by the test accepted_values." in (project / "made.odcs.yaml").read_text()
    assert "orders: amount: test positive" in told


def test_what_is_imported_again_differs_in_nothing(dq, project):
    imported(dq, project, "shop")
    again = dq("import", "dbt", "shop", "-o", "made.odcs.yaml")

    assert (again.code, "matches its source" in again.out) == (0, True)


def test_each_spelling_of_a_test_is_read(dq, project):
    (project / "p.yml").write_text(
        "models:\n  - name: t\n    tests:\n"
        "      - dbt_utils.unique_combination_of_columns: {combination_of_columns: [a, b]}\n"
        "    columns:\n      - name: a\n        data_type: string\n        tests:\n"
        "          - unique\n          - {name: mine, test_name: not_null}\n"
        "          - not_null: {severity: warn}\n          - unique: {config: {error_if: '>10'}}\n"
        "          - not_null: {where: \"x = '{{ var('x') }}'\"}\n"
        "          - relationships: {to: ref('no'), field: x}\n"
        "          - accepted_values: {values: [1, true]}\n          - unique: {enabled: false}\n"
        "      - {name: b, data_type: geography}\n"
    )
    contract, told = imported(dq, project, "p.yml")

    [one] = contract.objects
    a, b = one.properties
    assert (a.required, a.unique, [each.value for each in a.enum]) == (True, True, ["1", "true"])
    assert one.quality[0].arguments["properties"] == ["a", "b"]
    assert catalog_type(b).name == "string"
    for more in (
        "which fails if the count is >10",
        "which is a dbt template",
        "a table that is not imported",
    ):
        assert more in told


def test_tables_of_one_name_are_told_apart(dq, project):
    table = "[{name: visits, columns: [{name: id, data_type: int}]}]"
    (project / "p.yml").write_text(
        f"sources:\n  - {{name: crm, tables: {table}}}\n  - {{name: web, tables: {table}}}\n"
    )
    contract, _ = imported(dq, project, "p.yml")

    assert [one.name for one in contract.objects] == ["crm_visits", "web_visits"]
    assert {one.column for one in contract.objects} == {"visits"}


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("m.json", "{}", "is not a dbt manifest"),
        ("m.json", "[" * 100_000, "nested too deeply"),
        ("m.json", json.dumps({"metadata": {"dbt_schema_version": "x/manifest/v4.json"}, "nodes": {}}), "v4"),
        ("m.json", json.dumps({"metadata": {"dbt_schema_version": "x/manifest/v12.json"}, "nodes": {"a": 7}}),
         "has no model"),
        ("m.yml", "models: 7", "describes no models"),
        ("m.yml", "models: [{name: a}, 7, {columns: [7]}]", "no columns are described"),
        ("m.yml", "a: 1\na: 2", "duplicate key"),
        ("m.yml", "a: [", "cannot be read as YAML"),
        ("m.yml", "", "cannot be read as YAML"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_said(dq, folder, name, text, reason):
    (folder / name).write_text(text)
    ran = dq("import", "dbt", name)

    assert (ran.code in (2, 3), ran.out, "Traceback" in ran.err) == (True, "", False)
    assert reason in ran.err


def test_a_project_that_was_never_parsed_says_what_to_run(dq, folder):
    (folder / "shop").mkdir()
    (folder / "shop/dbt_project.yml").write_text("name: shop\n")

    ran = dq("import", "dbt", "shop")

    assert (ran.code, "shop has no target/manifest.json" in ran.err) == (2, True)
    assert "Run 'dbt parse' in it" in ran.err
