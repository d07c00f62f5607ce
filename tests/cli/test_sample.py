"""dq sample: a small file against its contract, without Spark and Java."""

from __future__ import annotations

import subprocess
import sys

import pyarrow as pa
import pytest
from pyarrow import parquet

from dq.contracts.install import install_command

SHOP = """\
apiVersion: v3.2.0
kind: DataContract
id: shop
version: 1.2.0
status: active
schema:
  - name: orders
    properties:
      - {name: day, logicalType: date, partitioned: true, partitionKeyPosition: 1}
      - {name: id, logicalType: integer, physicalType: bigint, primaryKey: true}
      - {name: price, physicalType: 'decimal(10,2)', required: true, logicalType: number}
      - {name: email, logicalType: string, classification: pii, logicalTypeOptions: {format: email}}
      - {name: customer, logicalType: integer, relationships: [{to: customers.id}]}
    quality:
      - {type: sql, query: 'SELECT avg(price) FROM {object}', mustBeGreaterThan: 0}
      - {metric: rowCount, mustBeBetween: [1000, 100000]}
  - name: customers
    properties:
      - {name: id, logicalType: integer}
      - {name: v, logicalType: string, quality: [{metric: nullValues, mustBeLessThan: 50, unit: percent}]}
"""


@pytest.fixture
def shop(folder):
    (folder / "shop.odcs.yaml").write_text(SHOP)
    return folder


def failed(ran):
    """What failed, with its message and samples."""
    return {
        (one["target"]["property"], one["check"]): (one["message"], one["samples"])
        for report in ran.json
        for one in report["results"]
        if one["status"] != "pass"
    }


def test_a_good_sample_is_kept_and_what_it_cannot_show_is_said(shop, dq):
    (shop / "orders.csv").write_text("id,price,email,customer\n1,10.00,eve@example.com,7\n")

    ran = dq("sample", "shop.odcs.yaml", "orders.csv")

    assert (ran.code, ran.err) == (0, "")
    assert "orders.csv as orders: 9 pass." in ran.out
    untested = [line for line in ran.out.splitlines() if "not tested" in line]
    assert [line.split(": ")[1] for line in untested] == [
        "day logicalType",
        "customer relationship",
        "orders quality",
        "orders quality",
    ]


def test_csv_is_read_as_the_contracts_types_and_a_value_of_no_type_has_its_line(shop, dq):
    (shop / "orders.csv").write_bytes(
        b'\xef\xbb\xbfid,price,email,customer\r\n1,10.00,"a@b.de\nx",7\r\n\r\n2,abc,,\r\n3,1.005,a@b.de,7.0\r\n'
    )

    ran = dq("sample", "shop.odcs.yaml", "orders.csv", "--format", "json")

    assert ran.code == 1
    assert failed(ran) == {
        ("price", "columns"): (
            "orders.price: 2 of 3 values are not of type decimal(10,2)",
            [{"line": 5, "price": "abc"}, {"line": 6, "price": "1.005"}],
        ),
        ("email", "format"): (
            "orders.email: 1 of 3 rows do not match format email; allowed: format email",
            [{"line": 2, "email": "***"}],
        ),
        ("customer", "columns"): (
            "orders.customer: 1 of 3 values are not of type bigint",
            [{"line": 6, "customer": "7.0"}],
        ),
    }


def test_a_failure_stands_at_its_clause_with_its_count_and_lines(shop, dq):
    (shop / "a.csv").write_text("id;price;email;customer\n1;1;;\n1;;;\n1;2;;\n")

    ran = dq("sample", "shop.odcs.yaml", "a.csv=orders", "--delimiter", ";")

    assert ran.code == 1
    assert "10:76 error sample-primary-key: orders.id: 2 rows repeat a key" in ran.out
    assert "(within the" in ran.out
    assert "In a.csv: line 3 (id='1'); line 4 (id='1')." in ran.out
    assert "orders.price: 1 of 3 rows are NULL; allowed: no NULL" in ran.out


SCOPED = """\
apiVersion: v3.2.0
kind: DataContract
id: visits
version: 1.0.0
schema:
  - name: visits
    properties:
      - {name: day, logicalType: string, partitioned: true, partitionKeyPosition: 1}
      - name: state
        logicalType: string
        quality:
          - metric: nullValues
            mustBe: 0
            customProperties: [{property: scope, vendor: dq, value: {where: "day > '2020'"}}]
          - metric: nullValues
            mustBe: 0
            customProperties: [{property: scope, vendor: dq, value: {where: "nowhere = 1"}}]
"""


def test_a_scope_by_what_stands_in_the_path_is_left_out_and_by_no_column_is_an_error(folder, dq):
    (folder / "visits.odcs.yaml").write_text(SCOPED)
    (folder / "visits.csv").write_text("state\nopen\n")

    ran = dq("sample", "visits.odcs.yaml", "visits.csv")

    assert ran.code == 3
    assert "visits.state: its scope: column 'nowhere' is missing." in ran.out
    assert "state quality: nullValues: the column's value is in the partition path" in ran.out


def test_the_reports_of_the_gate_show_samples_too(shop, dq):
    (shop / "orders.csv").write_text("id,price,email,customer\n,1,,\n")

    ran = dq("sample", "shop.odcs.yaml", "orders.csv", "--format", "github")

    assert ran.code == 1
    assert "::error file=shop.odcs.yaml,line=10,col=76,title=sample-primary-key::" in ran.out


def test_json_lines_have_nested_values_and_what_a_line_lacks_is_null(shop, dq):
    (shop / "nested.odcs.yaml").write_text(
        "apiVersion: v3.2.0\nkind: DataContract\nid: nested\nversion: 1.0.0\nschema:\n  - name: t\n"
        "    properties:\n      - name: at\n        logicalType: object\n        properties:\n"
        "          - {name: zip, logicalType: string, required: true}\n"
        "      - {name: tags, logicalType: array, items: {logicalType: integer},"
        " logicalTypeOptions: {minItems: 1}}\n"
        "      - {name: n, logicalType: number}\n"
    )
    (shop / "t.jsonl").write_text(
        '{"at": {"zip": "1"}, "tags": [1], "n": 1.5}\n{"at": {}, "tags": []}\n{"tags": ["x"], "n": "1"}\n'
    )

    ran = dq("sample", "nested.odcs.yaml", "t.jsonl", "--format", "json")

    assert {name: samples for name, (_, samples) in failed(ran).items()} == {
        ("at.zip", "required"): [{"line": 2, "at": "{'zip': None}"}],
        ("tags", "columns"): [{"line": 3, "tags": '["x"]'}],
        # With one value of no type the column is one of texts, which no other clause can be tested on.
        ("tags[]", "columns"): [],
        ("tags", "items"): [],
        ("n", "columns"): [{"line": 3, "n": "1"}],
    }


def test_parquet_shows_its_own_types_and_the_number_of_the_row(shop, dq):
    table = pa.table({"id": pa.array([1, 1]), "v": pa.array([1, 2], pa.int32())})
    parquet.write_table(table, shop / "customers.parquet")

    ran = dq("sample", "shop.odcs.yaml", "customers.parquet", "--format", "json")

    assert failed(ran) == {
        ("v", "columns"): ("customers.v: type int cannot hold string; allowed: string", [])
    }


def test_a_share_is_one_of_the_sample_and_says_so(shop, dq):
    (shop / "customers.csv").write_text("id,v\n1,\n2,x\n")

    ran = dq("sample", "shop.odcs.yaml", "customers.csv", "--format", "json")

    message, samples = failed(ran)[("v", "null_values")]
    assert message == (
        "customers.v: 50 % (1 of 2 rows) are NULL; allowed: less than 50 percent of the rows"
        " (within the sample)"
    )
    assert samples == [{"line": 2, "v": None}]


@pytest.mark.parametrize(
    ("name", "content", "code", "said"),
    [
        ("orders.csv", "", 3, "orders.csv is empty"),
        ("orders.csv", "id,id\n1,1\n", 3, "orders.csv:1: duplicate column name 'id'"),
        ("orders.csv", "id,price\n1\n", 3, "orders.csv:2: 1 values for 2 columns"),
        ("orders.csv", 'id,price\n1,"2\n', 3, "orders.csv:2: the quotes of a value are not closed"),
        ("orders.csv", "id\n\udcff\n", 3, "orders.csv is not text in utf-8"),
        ("orders.jsonl", '{"id": 1}\n{"id": \n', 3, "orders.jsonl:2: not JSON"),
        ("orders.jsonl", "[1]\n", 3, "orders.jsonl:1: not an object"),
        ("orders.parquet", "x", 3, "orders.parquet is not a Parquet file"),
        ("orders.xml", "x", 2, "orders.xml cannot be read as a sample"),
        ("other.csv", "id\n1\n", 2, "one of: orders, customers"),
        ("orders.csv=nothing", "id\n1\n", 2, "one of: orders, customers"),
    ],
)
def test_a_file_that_cannot_be_read_is_a_sentence(shop, dq, name, content, code, said):
    (shop / name.partition("=")[0]).write_bytes(content.encode(errors="surrogateescape"))

    ran = dq("sample", "shop.odcs.yaml", name)

    assert (ran.code, ran.out) == (code, "")
    assert said in ran.err


def test_a_sample_that_is_not_there_is_a_sentence(shop, dq):
    ran = dq("sample", "shop.odcs.yaml", "orders.csv")

    assert ran.code == 3
    assert "orders.csv does not exist." in ran.err


PROGRAM = """
import sys
class Nothing:
    def find_spec(self, name, *rest):
        if name.partition(".")[0] == sys.argv[1]:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Nothing())
from dq.cli.main import run
code = run(["sample", "shop.odcs.yaml", sys.argv[2]])
print(code)
"""


@pytest.mark.parametrize("without", ["pyspark", "pandera", "pandas", "numpy"])
def test_a_sample_needs_no_spark_and_no_data_frames(shop, without):
    (shop / "orders.csv").write_text("id,price,email,customer\n1,10.00,,7\n")

    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, without, "orders.csv"],
        cwd=shop, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert done.stdout.splitlines()[-1] == "0", done.stderr


def test_a_sample_of_parquet_names_the_extra_that_reads_it(shop):
    parquet.write_table(pa.table({"id": [1]}), shop / "orders.parquet")

    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "pyarrow", "orders.parquet"],
        cwd=shop, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert done.stdout.splitlines()[-1] == "2", done.stdout
    assert install_command("sample") in done.stderr
