"""A table and a folder belong to one contract of a registry."""

from __future__ import annotations

from datetime import date

import pytest

from dq.validators import rule_page
from dq.validators.lint import lint_files
from dq.validators.rule import Rule

TODAY = date(2026, 11, 21)
# What is said of variables and capital letters in any case.
BESIDE = {"server-variable-without-default", "name-not-for-catalog"}
FILES = ("a.odcs.yaml", "b.odcs.yaml")


@pytest.fixture
def messages(rules: dict[str, Rule]):
    """The conflicts between contracts that are fragments laid over the base of the pages, by file."""

    def run(*fragments: str) -> dict[str, list[str]]:
        names = [f"{name}.odcs.yaml" for name in "abcdefghij"]
        contents = [
            (name, rule_page.document(fragment)[0].encode())
            for name, fragment in zip(names, fragments, strict=False)
        ]
        found = lint_files(contents, rules=rules, today=TODAY).findings
        found = tuple(one for one in found if one.rule not in BESIDE)
        assert {(one.rule, str(one.severity)) for one in found} <= {("table-conflict", "error")}, found
        return {
            name: [one.message for one in found if one.at.file == name]
            for name in names
            if any(one.at.file == name for one in found)
        }

    return run


def contract(
    id_: str,
    *servers: str,
    table: str = "",
    more: str = "",
) -> str:
    listed = "\n".join(f"  - {{server: s{number}, {server}}}" for number, server in enumerate(servers))
    name = table or id_
    return (
        f"id: {id_}\nname: {id_}\nservers:\n{listed}\n"
        f"schema:\n  - {{name: {name}, properties: [{{name: id, logicalType: string}}]{more}}}\n"
    )


def s3(location: str, more: str = "") -> str:
    return f"type: s3, format: parquet, location: '{location}'{more}"


def test_each_of_two_contracts_of_one_table_names_the_other(messages) -> None:
    glue = "type: glue, account: '123456789012', database: Sales"

    found = messages(
        contract("orders", glue), contract("refunds", glue, table="refunds", more=", physicalName: ORDERS")
    )

    assert found == {
        "a.odcs.yaml": ["table sales.orders is also used by contract 'refunds' (b.odcs.yaml)."],
        "b.odcs.yaml": ["table sales.orders is also used by contract 'orders' (a.odcs.yaml)."],
    }


def test_the_finding_stands_at_the_name_that_makes_the_table(rules: dict[str, Rule]) -> None:
    glue = "type: glue, account: '123456789012', database: sales"
    text = contract("refunds", glue, more=", physicalName: orders")

    contents = [(FILES[0], contract("orders", glue)), (FILES[1], text)]
    documents = [(file, rule_page.document(fragment)[0].encode()) for file, fragment in contents]
    found = lint_files(documents, rules=rules, today=TODAY).findings

    assert [(one.at.file, one.path, one.contract) for one in found] == [
        ("a.odcs.yaml", "schema[0].name", "orders"),
        ("b.odcs.yaml", "schema[0].physicalName", "refunds"),
    ]
    lines = documents[1][1].decode().splitlines()
    assert "physicalName: orders" in lines[found[1].at.line - 1]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        # The database is that of the server, else domain and data product, else the name.
        ("domain: sales\ndataProduct: core\n", "domain: Sales\ndataProduct: CORE\n"),
        ("domain: sales\ndataProduct: core\n", "name: sales core\n"),
    ],
)
def test_a_database_is_computed_as_for_the_catalog(messages, first: str, second: str) -> None:
    one = contract("orders", s3("s3://lake/orders")).replace("name: orders\n", "name: x\n", 1) + first
    other = contract("refunds", s3("s3://lake/refunds"), table="orders")
    if "name:" in second:
        other = other.replace("name: refunds\n", "", 1)

    found = messages(one, other + second)

    assert found == {
        "a.odcs.yaml": ["table sales_core.orders is also used by contract 'refunds' (b.odcs.yaml)."],
        "b.odcs.yaml": ["table sales_core.orders is also used by contract 'orders' (a.odcs.yaml)."],
    }


SAME_FOLDER = [
    (s3("s3://lake/orders"), s3("s3a://lake/orders/"), "s3://lake/orders"),
    (s3("s3n://lake/orders"), s3("s3://lake/${FOLDER:-orders}"), "s3://lake/orders"),
    (s3("s3://lake/orders/*.parquet"), s3("s3://lake/orders"), "s3://lake/orders"),
    (s3("s3://lake/{object}"), s3("s3://lake/orders"), "s3://lake/orders"),
    (
        "type: local, format: csv, path: /data/./orders/",
        "type: local, format: csv, path: 'file:///data/sales/../orders'",
        "/data/orders",
    ),
    (
        "type: local, format: csv, path: lake/orders",
        "type: local, format: csv, path: ./lake//orders/",
        "lake/orders",
    ),
    (
        "type: azure, format: csv, location: 'abfss://c@a.dfs.core.windows.net/orders'",
        "type: azure, format: csv, location: 'abfss://c@A.dfs.core.windows.net/orders/'",
        "abfss://c@a.dfs.core.windows.net/orders",
    ),
]


@pytest.mark.parametrize(("first", "second", "folder"), SAME_FOLDER)
def test_one_folder_is_one_however_it_is_spelt(messages, first: str, second: str, folder: str) -> None:
    found = messages(contract("orders", first), contract("refunds", second))

    assert found == {
        "a.odcs.yaml": [f"the folder {folder} is also used by contract 'refunds' (b.odcs.yaml)."],
        "b.odcs.yaml": [f"the folder {folder} is also used by contract 'orders' (a.odcs.yaml)."],
    }


def test_a_folder_in_that_of_another_table_is_read_with_it(messages) -> None:
    found = messages(contract("orders", s3("s3://lake/orders")), contract("eu", s3("s3://lake/orders/eu/v1")))

    assert found == {
        "a.odcs.yaml": [
            "the folder s3://lake/orders contains s3://lake/orders/eu/v1, the folder of contract 'eu' "
            "(b.odcs.yaml)."
        ],
        "b.odcs.yaml": [
            "the folder s3://lake/orders/eu/v1 is inside s3://lake/orders, the folder of contract 'orders' "
            "(a.odcs.yaml)."
        ],
    }


def test_one_finding_says_how_many_contracts_lie_in_a_folder(messages) -> None:
    found = messages(
        contract("all", s3("s3://lake")),
        *(contract(f"part{number}", s3(f"s3://lake/{number}")) for number in range(3)),
    )

    assert found["a.odcs.yaml"] == [
        "the folder s3://lake/ contains s3://lake/0, the folder of contract 'part0' (b.odcs.yaml); "
        "it conflicts with 2 more contracts."
    ]
    assert [len(found[file]) for file in found] == [1, 1, 1, 1]


def test_several_objects_of_a_contract_lie_in_folders_of_their_names(messages) -> None:
    sales = (
        contract("sales", s3("s3://lake/sales"))
        + "  - {name: orders, properties: [{name: id, logicalType: string}]}\n"
    )

    assert messages(sales, contract("refunds", s3("s3://lake/sales/refunds"))) == {}
    assert messages(sales, contract("refunds", s3("s3://lake/sales/orders")))["b.odcs.yaml"] == [
        "the folder s3://lake/sales/orders is also used by contract 'sales' (a.odcs.yaml)."
    ]


GLUE = "type: glue, account: '123456789012', database: sales"
NO_CONFLICT = {
    "names that only begin alike": (
        contract("orders", s3("s3://lake/orders")),
        contract("orders_eu", s3("s3://lake/orders_eu")),
    ),
    "another bucket": (contract("orders", s3("s3://lake/t")), contract("refunds", s3("s3://pond/t"))),
    "two majors of one contract": (
        contract("orders", GLUE) + "version: 1.0.0\n",
        contract("orders", GLUE) + "version: 2.0.0\n",
    ),
    "another environment": (
        contract("orders", s3("s3://lake/t", ", environment: dev"), table="t") + "domain: d\n",
        contract("refunds", s3("s3://lake/t", ", environment: prod"), table="t") + "domain: d\n",
    ),
    "another account": (
        contract("orders", GLUE, table="t"),
        contract("refunds", GLUE.replace("1234", "9999"), table="t"),
    ),
    "a variable without a default": (
        contract("orders", s3("s3://${BUCKET}/t")),
        contract("refunds", s3("s3://${BUCKET}/t")),
    ),
    "a variable without a default in a database": (
        contract("orders", GLUE.replace("sales", "'${DB}'"), table="t"),
        contract("refunds", GLUE.replace("sales", "'${DB}'"), table="t"),
    ),
    "a database that is no lake": (
        contract("orders", "type: postgres, host: h, port: 5432, database: d, schema: s", table="t"),
        contract("refunds", "type: postgres, host: h, port: 5432, database: d, schema: s", table="t"),
    ),
    "a draft": (
        contract("orders", GLUE, table="t") + "status: draft\n",
        contract("refunds", GLUE, table="t"),
    ),
    "a retired contract": (
        contract("orders", GLUE, table="t"),
        contract("refunds", GLUE, table="t") + "status: retired\n",
    ),
    "files of two patterns in one folder": (
        contract("orders", s3("s3://lake/landing/orders_*.csv")),
        contract("refunds", s3("s3://lake/landing/refunds_*.csv")),
    ),
    "a relative folder and a whole one": (
        contract("orders", "type: local, format: csv, path: ."),
        contract("refunds", "type: local, format: csv, path: /data/refunds"),
    ),
    "a view, which has no folder": (
        contract("orders", s3("s3://lake/t")),
        contract("refunds", s3("s3://lake/t"), more=", physicalType: VIEW"),
    ),
}


@pytest.mark.parametrize("case", NO_CONFLICT)
def test_what_is_another_table_or_unknown_is_no_conflict(messages, case: str) -> None:
    assert messages(*NO_CONFLICT[case]) == {}


def test_a_table_is_compared_where_its_folder_is_unknown(messages) -> None:
    database = "domain: sales\n"

    found = messages(
        contract("orders", s3("s3://${BUCKET}/orders")) + database,
        contract("refunds", s3("s3://lake/refunds"), table="orders") + database,
    )

    assert sorted(found) == ["a.odcs.yaml", "b.odcs.yaml"]


def test_a_server_without_environment_may_be_of_any(messages) -> None:
    found = messages(
        contract("orders", s3("s3://lake/t", ", environment: dev"), s3("s3://lake/u", ", environment: prod")),
        contract("refunds", s3("s3://lake/u")),
    )

    assert found["b.odcs.yaml"] == ["the folder s3://lake/u is also used by contract 'orders' (a.odcs.yaml)."]
