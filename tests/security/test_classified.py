"""No value of a classified column comes out of a check, by whatever way a contract asks for it (S13)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dq.contracts.model import Contract
from dq.contracts.yaml.parse import parse
from dq.dataquality.check import check
from dq.dataquality.quarantine import Run, write
from dq.dataquality.report import Report
from dq.dataquality.request import Request

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DQ = [sys.executable, "-c", "from dq.cli.main import main; main()"]
# What must not come out.
SALARY, MAIL = 4711471, "canary-eve@example.org"
HEAD = """\
apiVersion: v3.2.0
kind: DataContract
id: staff
version: 1.0.0
status: active
servers: [{server: lake, type: local, path: lake, format: parquet}]
schema:
  - name: staff
    properties:
      - {name: id, logicalType: integer, physicalType: bigint}
      - {name: salary, logicalType: integer, physicalType: bigint, classification: restricted}
      - {name: mail, logicalType: string, classification: restricted}
      - {name: contact, logicalType: string, enum: [{value: nobody}]}
      - {name: note, logicalType: string, unique: true}
      - {name: pay, logicalType: integer, physicalType: bigint, logicalTypeOptions: {maximum: 10}}
      - {name: state, logicalType: string}
    quality:
"""
COLUMNS = {
    "id": [1, 2],
    "salary": [SALARY, 1],
    "mail": [MAIL, "bob@example.org"],
    "contact": [MAIL.upper(), "nobody"],
    "note": [f"ask {MAIL}"] * 2,
    "pay": [SALARY, 2],
    "state": ["open", "open"],
    "secret": [SALARY, 2],
}
DDL = "id bigint, salary bigint, mail string, contact string, note string, pay bigint, state string,"
DDL += " secret bigint"
# ruff: noqa: S608
# Each would spell a classified number out, in one number or in what it says of it.
ORACLES = {
    "case": f"SELECT CASE WHEN max(salary) = {SALARY} THEN 4711 ELSE 0 END FROM staff",
    "case below a sum": "SELECT sum(CASE WHEN salary > 4000000 THEN 4711 ELSE 0 END) FROM staff",
    "if": f"SELECT if(max(salary) = {SALARY}, 4711, 0) FROM staff",
    "nullif": f"SELECT coalesce(nullif(max(salary), {SALARY}), 4711) FROM staff",
    "a cast of a comparison": "SELECT 4711 * CAST(max(salary) > 4000000 AS INT) FROM staff",
    "several counts": "SELECT 4711 * count_if(salary > 4000000) + 10 * count_if(salary > 1) FROM staff",
    "several counts of some rows": (
        "SELECT 4711 * count_if(id = 1) + count_if(id = 2) FROM staff WHERE salary > 4000000"
    ),
    "another column where it is": "SELECT max(4711 * id) FROM staff WHERE salary > 4000000",
    "a comparison with another column": "SELECT 4711 * count(*) FROM staff WHERE id * 4000000 < salary",
    "min_by": "SELECT 4711 * min_by(id, -salary) FROM staff",
    "a group": "SELECT 4711 * max(id) FROM staff GROUP BY salary ORDER BY 1 LIMIT 1",
    "an order": "SELECT 4711 * id FROM staff ORDER BY salary DESC LIMIT 1",
    "an order by place": "SELECT max(4711 * id) FROM (SELECT id, salary FROM staff ORDER BY 2 DESC LIMIT 1)",
    "rows made of it": (
        "SELECT 4711 * count(*) FROM (SELECT explode(array(1, 2, 3)) AS n, salary FROM staff WHERE id = 1)"
        " WHERE n <= salary"
    ),
    "a join on it": "SELECT 4711 * count(*) FROM staff a JOIN staff b USING (id, salary)",
    "a hash of the row": "SELECT 4711 * sign(abs(max(hash(*)))) FROM staff",
    "a subquery": f"SELECT 4711 * count(*) FROM staff WHERE {SALARY} IN (SELECT salary FROM staff)",
    "a column that nobody described": "SELECT max(secret) FROM staff",
    "its name in another case": f"SELECT max(`SALARY`) - {SALARY - 4711} FROM staff",
}
COUNTS = {
    "SELECT count(*) FROM staff WHERE salary < 0": "0",
    "SELECT count_if(salary > 1) FROM staff": "1",
    "SELECT count(DISTINCT salary) FROM staff": "2",
    "SELECT 100 * count_if(salary > 1) / count(*) FROM staff": "50.0",
    "SELECT count(*) - count(salary) FROM staff": "0",
    "SELECT max(id) FROM staff WHERE salary IS NOT NULL": "2",
}


def contract(rules: str, head: str = HEAD) -> Contract:
    parsed = parse((head + rules).encode(), "staff.odcs.yaml")
    assert parsed.contract is not None, parsed.findings
    return parsed.contract


def rules(queries: list[str]) -> str:
    asked = ({"type": "sql", "query": query, "mustBe": -1} for query in queries)
    return "".join(f"      - {json.dumps(rule)}\n" for rule in asked)


@pytest.fixture(scope="module")
def staff(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(list(zip(*COLUMNS.values(), strict=True)), DDL).coalesce(1).cache()


@pytest.fixture(scope="module")
def asked(staff: DataFrame) -> Report:
    return check(Request(contract(rules([*ORACLES.values(), *COUNTS])), staff))


@pytest.mark.spark
@pytest.mark.parametrize("number", range(len(ORACLES)), ids=list(ORACLES))
def test_a_number_that_could_spell_a_classified_one_is_not_shown(asked: Report, number: int) -> None:
    found = [one for one in asked.results if one.check == "sql_rule"][number]

    assert (found.status, found.observed, found.value) == ("fail", "***", None), found.message
    assert "4711" not in json.dumps(asked.as_dict())


@pytest.mark.spark
@pytest.mark.parametrize("number", range(len(COUNTS)), ids=list(COUNTS))
def test_one_count_of_rows_is_shown(asked: Report, number: int) -> None:
    found = [one for one in asked.results if one.check == "sql_rule"][len(ORACLES) + number]

    assert (found.status, found.observed) == ("fail", list(COUNTS.values())[number])


@pytest.mark.spark
def test_a_sample_does_not_show_what_repeats_a_classified_value_of_its_row(staff: DataFrame) -> None:
    report = check(Request(contract(rules([])), staff))

    samples = {one.property: one.samples for one in report.failed}
    assert samples == {
        "contact": ({"contact": "***"},),
        "note": ({"note": "***", "count": 2},),
        "pay": ({"pay": "***"},),
    }


TWINS = HEAD.replace(
    "    quality:\n",
    "      - {name: wage, physicalName: SALARY, logicalType: integer, logicalTypeOptions: {maximum: 10}}\n"
    "    quality:\n",
)


@pytest.mark.spark
def test_a_second_property_of_a_classified_column_is_classified(staff: DataFrame) -> None:
    report = check(Request(contract(rules(["SELECT max(SALARY) FROM staff"]), TWINS), staff))

    assert [one.samples for one in report.failed if one.property == "SALARY"] == [({"SALARY": "***"},)]
    assert str(SALARY) not in json.dumps(report.as_dict())


@pytest.mark.spark
def test_the_quarantine_does_not_hold_what_repeats_a_classified_value(
    staff: DataFrame, tmp_path: Path
) -> None:
    described = contract(rules([]))

    written = write(described, staff, check(Request(described, staff)), str(tmp_path / "q"), Run("1"))

    assert written.path is not None
    rows = pq.read_table(written.path).to_pylist()
    assert [(row["contact"], row["note"], row["pay"]) for row in rows] == [
        ("***", "***", None),
        ("nobody", f"ask {MAIL}", 2),
    ]


def lake(folder: Path, extra: str) -> None:
    """A contract and its data; the note of the second row holds nothing of its own row's secrets."""
    (folder / "staff.odcs.yaml").write_text(HEAD + extra)
    (folder / "lake").mkdir()
    table = pa.table({**COLUMNS, "note": [f"ask {MAIL}", "ask Bob"], "secret": [SALARY, 2]})
    pq.write_table(table, folder / "lake" / "part-0.parquet")


CASTS = """\
      - {type: sql, query: "SELECT sum(CAST(mail AS INT)) FROM staff", mustBe: 0}
      - {type: sql, query: "SELECT count(*) FROM staff WHERE CAST(contact AS DATE) > now()", mustBe: 0}
      - {type: sql, query: "SELECT count(*) FROM staff WHERE element_at(array(1), id) = salary", mustBe: 0}
      - metric: rowCount
        mustBe: 0
        customProperties: [{property: scope, vendor: dq, value: {where: CAST(mail AS INT) > 3}}]
"""


@pytest.mark.spark
def test_nothing_that_the_command_prints_or_keeps_holds_a_classified_value(tmp_path: Path) -> None:
    lake(tmp_path, CASTS + rules(list(ORACLES.values())))
    command = [*DQ, "check", "--all", "--format", "json", "--channel", "console", "--quarantine", "apart"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("DQ_")}

    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, check=False
    )

    said = (done.stdout + done.stderr).lower()
    assert done.returncode == 1, done.stderr
    kept = b"".join(path.read_bytes() for path in (tmp_path / ".dq").rglob("store.db*"))
    (file,) = (tmp_path / "apart").rglob("*.parquet")
    apart = pq.ParquetFile(file).read().to_pylist()
    assert apart
    for canary in (str(SALARY), MAIL):
        assert canary not in said
        assert canary.encode() not in kept
        assert canary not in str(apart).lower()
