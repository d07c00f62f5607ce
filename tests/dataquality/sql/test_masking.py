"""No report shows a value of a classified column: not in samples, not as a number, not in Spark's words."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from fakes.reach import anywhere

from dq.contracts.model import Contract
from dq.contracts.yaml.parse import parse
from dq.dataquality.check import check
from dq.dataquality.report import Report
from dq.dataquality.request import Request
from dq.dataquality.spark.dataset import locate
from dq.dataquality.spark.session import without_values

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

HEAD = "apiVersion: v3.2.0\nkind: DataContract\nid: shop\nversion: 1.0.0\n"


def contract(schema: str) -> Contract:
    parsed = parse((HEAD + schema).encode(), "shop.odcs.yaml")
    assert parsed.contract is not None, parsed.findings
    return parsed.contract


PEOPLE = contract("""
schema:
  - name: people
    properties:
      - {name: id, logicalType: integer, required: true}
      - {name: Mail, logicalType: string, classification: restricted, unique: true}
      - name: home
        logicalType: object
        properties:
          - {name: zip, logicalType: string, required: true}
          - {name: street, logicalType: string, classification: restricted}
      - name: phones
        logicalType: array
        items:
          logicalType: object
          properties:
            - name: number
              logicalType: string
              classification: restricted
              logicalTypeOptions: {maxLength: 3}
            - {name: kind, logicalType: string, enum: [{value: home}]}
      - {name: boss, logicalType: string, relationships: [{to: people.Mail}], enum: [{value: nobody}]}
""")
ROWS = [
    (None, "eve@x.org", (None, "Ulm 1"), [("5550123", "office")], "eve@y.org"),
    (2, "eve@x.org", ("89073", "Ulm 2"), [], None),
]
DDL = "id int, mail string, home struct<zip: string, street: string>, boss string"
DDL = DDL.replace("boss", "phones array<struct<number: string, kind: string>>, boss")
SECRETS = ("eve@", "Ulm", "5550123")


@pytest.fixture(scope="module")
def people(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(ROWS, DDL).coalesce(1).cache()


def failed(report: Report) -> dict[str, object]:
    return {f"{one.property} {one.check}": one.samples for one in report.failed}


@pytest.mark.spark
def test_keys_siblings_and_parts_of_what_is_classified_are_masked(people: DataFrame) -> None:
    report = check(Request(PEOPLE, people))

    found = failed(report)
    assert found["Mail unique"] == ({"Mail": "***", "count": 2},)
    assert found["home.zip required"] == ({"home.zip": "***", "id": None, "boss": "***"},)
    assert found["phones[].number lengths"] == ({"phones": "***"},)
    assert found["phones[].kind enum"] == ({"phones": "***"},)
    assert found["boss relationship"] == ({"boss": "***", "count": 1},)
    assert found["boss enum"] == ({"boss": "***"},)
    assert not any(secret in json.dumps(report.as_dict()) for secret in SECRETS)


KEYED = contract("""
schema:
  - name: people
    properties:
      - {name: ssn, logicalType: string, primaryKey: true, primaryKeyPosition: 1, classification: restricted}
      - {name: line, logicalType: integer, primaryKey: true, primaryKeyPosition: 2}
      - {name: state, logicalType: string, enum: [{value: open}]}
""")


@pytest.mark.spark
def test_of_a_classified_key_the_other_parts_are_shown(spark: SparkSession) -> None:
    frame = spark.createDataFrame([("078-05-1120", 1, "ajar")] * 2, "ssn string, line int, state string")

    report = check(Request(KEYED, frame))

    assert failed(report) == {
        "state enum": ({"ssn": "***", "line": "1"},) * 2,
        "ssn, line primary_key": ({"ssn": "***", "line": "1", "count": 2},),
    }
    assert "078-05" not in json.dumps(report.as_dict())


SALARIES = """
schema:
  - name: staff
    properties:
      - {name: id, logicalType: integer}
      - {name: salary, logicalType: integer, classification: restricted}
      - name: home
        logicalType: object
        properties: [{name: number, logicalType: integer, classification: restricted}]
    quality:
"""
# Query -> what is shown of its answer.
QUERIES = [
    ("SELECT max(salary) FROM staff", "***"),
    ("SELECT sum(salary) FROM staff WHERE id = 1", "***"),
    ("SELECT avg(s.salary) FROM staff s", "***"),
    ("SELECT max(home.number) FROM staff", "***"),
    ("SELECT max(SALARY) - min(id) FROM staff", "***"),
    ("SELECT max(CASE WHEN id = 1 THEN salary END) FROM staff", "***"),
    ("SELECT max(if(id > 0, salary, 0)) FROM staff", "***"),
    ("SELECT max(n) FROM (SELECT salary AS n FROM staff) x", "***"),
    ("SELECT count(*) FROM staff WHERE salary > 100", "1"),
    ("SELECT count(salary) FROM staff", "2"),
    ("SELECT count(DISTINCT salary) FROM staff", "2"),
    ("SELECT count_if(salary > 100) FROM staff", "1"),
    ("SELECT count(*) - count(salary) FROM staff", "0"),
    ("SELECT 100 * count_if(salary > 100) / count(*) FROM staff", "50.0"),
    # Numbers that could be asked for until they tell the value.
    ("SELECT sum(CASE WHEN salary > 100 THEN 1 ELSE 0 END) FROM staff", "***"),
    ("SELECT sum(if(salary > 100, 1, 0)) FROM staff", "***"),
    ("SELECT max(id) FROM staff WHERE salary > 0", "***"),
    ("SELECT CASE WHEN max(salary) = 4711 THEN 1 WHEN max(salary) = 4712 THEN 2 END FROM staff", "***"),
    ("SELECT sum(CASE WHEN salary > 4000 THEN 4000 ELSE 1 END) FROM staff", "***"),
    ("SELECT if(max(salary) > 4096, 4096, 0) FROM staff", "***"),
    ("SELECT CAST(max(salary) > 4096 AS INT) * 4096 FROM staff", "***"),
    ("SELECT count_if(salary > 4096) * 4096 + count_if(salary > 2048) * 2048 FROM staff", "***"),
    ("SELECT max(1) FILTER (WHERE salary > 4) + max(2) FILTER (WHERE salary > 9) FROM staff", "***"),
    ("SELECT count(*) FROM staff WHERE id <= salary", "***"),
    ("SELECT max(id) FROM staff WHERE id <= salary", "***"),
    ("SELECT count_if(id * 2 = salary) FROM staff", "***"),
    ("SELECT min_by(id, salary) FROM staff", "***"),
    ("SELECT coalesce(nullif(max(salary), 4711), 0) FROM staff", "***"),
]


@pytest.mark.spark
def test_a_number_that_may_be_a_classified_value_is_not_shown(spark: SparkSession) -> None:
    rules = "".join(
        f"      - {json.dumps({'type': 'sql', 'query': query, 'mustBe': 7})}\n" for query, _ in QUERIES
    )
    frame = spark.createDataFrame(
        [(1, 4711, (4712,)), (2, 1, (1,))], "id int, salary int, home struct<number: int>"
    )

    report = check(Request(contract(SALARIES + rules), frame.coalesce(1).cache()))

    found = [one for one in report.results if one.check == "sql_rule"]
    assert [(one.status, one.observed) for one in found] == [("fail", shown) for _, shown in QUERIES]
    assert found[0].value is None
    assert found[0].message == (
        "staff: the query gives a number that is not shown, because 'salary' is classified;"
        " allowed: exactly 7"
    )
    assert not any(secret in json.dumps(report.as_dict()) for secret in ("4711", "4712", "2356", "4710"))


COPIED = contract("""
schema:
  - name: people
    properties:
      - {name: id, logicalType: integer, primaryKey: true, primaryKeyPosition: 1}
      - {name: ssn, logicalType: string, classification: restricted}
      - {name: note, logicalType: string, unique: true, enum: [{value: fine}]}
      - {name: seat, logicalType: integer}
""")


@pytest.mark.spark
def test_a_copy_of_a_classified_value_is_masked_in_any_column(spark: SparkSession) -> None:
    rows = [(1, "078-05-1120", "078-05-1120", 1), (2, "078-05-1120", "078-05-1120", 1), (3, "x", "open", 2)]
    frame = spark.createDataFrame(rows, "id int, ssn string, note string, seat int")

    report = check(Request(COPIED, frame.coalesce(1).cache()))

    assert failed(report)["note unique"] == ({"note": "***", "count": 2},)
    assert failed(report)["note enum"] == ({"id": "1"}, {"id": "2"}, {"id": "3"})
    assert "078-05" not in json.dumps(report.as_dict())


CAST = contract("""
schema:
  - name: people
    properties:
      - name: mail
        logicalType: string
        classification: restricted
        quality:
          - metric: nullValues
            mustBe: 0
            customProperties:
              - {property: scope, vendor: dq, value: {where: cast(mail as int) > 3}}
""")


@pytest.fixture
def ansi(spark: SparkSession) -> Iterator[None]:
    before = spark.conf.get("spark.sql.ansi.enabled", "false")
    spark.conf.set("spark.sql.ansi.enabled", "true")
    yield
    spark.conf.set("spark.sql.ansi.enabled", before or "false")


CAST_FAILS = "people.mail: [CAST_INVALID_INPUT] The value …"


@pytest.mark.spark
@pytest.mark.usefixtures("ansi")
def test_a_cast_that_fails_does_not_show_what_it_found(spark: SparkSession) -> None:
    report = check(Request(CAST, spark.createDataFrame([("eve@x.org",)], "mail string")))

    assert [one.message for one in report.results if one.check == "null_values"] == [CAST_FAILS]


LINES = contract(
    """
servers: [{server: lake, type: local, path: 'LAKE', format: csv}]
schema:
  - name: people
    properties:
      - {name: id, logicalType: integer, required: true}
      - {name: mail, logicalType: string, classification: restricted}
""".replace("LAKE", "${LAKE}")
)


@pytest.mark.spark
def test_a_record_that_cannot_be_parsed_is_not_shown(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("id,mail\n1,a@x.org\nseven,eve@x.org\n")
    data = locate(LINES, LINES.objects[0], None, anywhere(LAKE=str(tmp_path)))

    report = check(Request(LINES, data, spark=spark))

    broken = [one for one in report.results if one.status != "pass"]
    assert broken
    assert "eve@" not in json.dumps(report.as_dict())
    assert "seven" not in json.dumps(report.as_dict())


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (
            "[DIVIDE_BY_ZERO] Division by zero. Use try_divide.",
            "[DIVIDE_BY_ZERO] Division by zero. Use try_divide.",
        ),
        ("[CAST_OVERFLOW] The value 1.0E20D of the type", "[CAST_OVERFLOW] The value …"),
        ("[NUMERIC_VALUE_OUT_OF_RANGE.X] The -12.5 cannot", "[NUMERIC_VALUE_OUT_OF_RANGE.X] The …"),
        ("[DUPLICATED_MAP_KEY] Duplicate map key eve was", "[DUPLICATED_MAP_KEY] Duplicate map key …"),
        ("[MALFORMED_RECORD] Malformed records: [1,eve].", "[MALFORMED_RECORD] Malformed records …"),
        ('For input string: "eve"', "For input string …"),
        ("[UNRESOLVED_COLUMN.X] A column `tax` cannot", "[UNRESOLVED_COLUMN.X] A column `tax` cannot"),
        ("[PATH_NOT_FOUND] Path does not exist: file:/x", "[PATH_NOT_FOUND] Path does not exist: file:/x"),
        ("no such luck", "no such luck"),
    ],
)
def test_what_spark_says_ends_where_a_value_may_begin(said: str, shown: str) -> None:
    assert without_values(said) == shown
