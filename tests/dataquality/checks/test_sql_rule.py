"""Queries of rules on data: legitimate ones give their number, and a broken one is its own fault."""

from __future__ import annotations

import datetime as dt
import json
import random
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from dq.contracts.check_result import CheckResult, Status
from dq.contracts.outcome import UsageError
from dq.contracts.sql.guard import ValidatedSql, validate_predicate
from dq.contracts.yaml.parse import parse
from dq.dataquality.check import check
from dq.dataquality.report import Report
from dq.dataquality.request import Request

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CASES = Path(__file__).parents[2] / "contracts" / "sql" / "legitimate.yaml"
DOCS = Path(__file__).parents[3] / "docs"
LEGITIMATE = yaml.load(CASES.read_text(), yaml.CSafeLoader)

DDL = (
    "id int, parent int, price decimal(9,2), state string, mail string, placed date, paid date,"
    " items array<string>, address struct<zip: int>, counts map<string, int>"
)


def day(number: int) -> dt.date:
    return dt.date(2026, 1, 1) + dt.timedelta(days=number)


ROWS = [
    (1, 2, Decimal("10.50"), "open", "a@x.org", day(0), day(40), ["a", "b"], (1,), {"k": 1}),
    (2, None, Decimal("2.00"), "open", "b@x.org", day(0), day(0), ["a"], (2,), {"k": 1}),
    (2, 9, Decimal("-1.00"), "closed", "none", day(1), day(0), ["c"], (3,), {"k": 1}),
    (4, None, None, "closed", "O'Neil@y.org; DROP TABLE x -- $", day(1), day(2), [], (4,), {"k": 1}),
]
HEAD = """
apiVersion: v3.2.0
kind: DataContract
id: shop
version: 1.0.0
schema:
  - name: orders
    physicalName: shop.orders_v1
    quality:
"""


def report(frame: DataFrame, rules: list[dict[str, object]], **how: object) -> Report:
    written = [json.dumps({"type": "sql", **rule}) for rule in rules]  # JSON is YAML
    text = HEAD + "".join(f"      - {rule}\n" for rule in written)
    parsed = parse(text.encode(), "shop.odcs.yaml")
    assert parsed.contract is not None, parsed.findings
    return check(Request(parsed.contract, frame, **how))  # type: ignore[arg-type]


def sql_results(found: Report) -> list[CheckResult]:
    return [one for one in found.results if one.check == "sql_rule"]


@pytest.fixture(scope="module")
def orders(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(ROWS, DDL)


@pytest.fixture(scope="module")
def given_numbers(orders: DataFrame) -> list[CheckResult]:
    return sql_results(
        report(orders, [{"query": one["query"], "mustBe": one["gives"]} for one in LEGITIMATE])
    )


@pytest.mark.spark
@pytest.mark.parametrize("number", range(len(LEGITIMATE)), ids=lambda at: LEGITIMATE[at]["query"][:60])
def test_a_legitimate_query_gives_its_number(given_numbers: list[CheckResult], number: int) -> None:
    found = given_numbers[number]

    assert (found.status, found.value) == (Status.PASS, LEGITIMATE[number]["gives"]), found.message


@pytest.fixture
def ansi(spark: SparkSession) -> Iterator[None]:
    """Casts that fail, as Spark 4 does by itself and dq's own session on 3.5 too."""
    before = spark.conf.get("spark.sql.ansi.enabled", "false")
    spark.conf.set("spark.sql.ansi.enabled", "true")
    yield
    spark.conf.set("spark.sql.ansi.enabled", before or "false")


@pytest.mark.spark
@pytest.mark.usefixtures("ansi")
def test_a_failing_query_leaves_its_siblings_alone_and_shows_no_value(orders: DataFrame) -> None:
    asked = [
        {"query": "SELECT count(*) FROM orders", "mustBe": 4},
        {"query": "SELECT sum(CAST(mail AS INT)) FROM orders", "mustBe": 0},
        {"query": "SELECT max(tax) FROM orders", "mustBe": 0},
        {"query": "SELECT id, price FROM orders", "mustBe": 0},
        {"query": "SELECT max(mail) FROM orders", "mustBe": 0},
        {"query": "SELECT 1 / 0 FROM orders", "mustBe": 0},
        {"query": "SELECT max(price) FROM orders WHERE false", "mustBe": 0},
        {"query": "SELECT count(*) FROM customers", "mustBe": 0},
        {"query": "SELECT count(*) FROM orders", "mustBe": 5},
    ]

    found = sql_results(report(orders, asked))

    assert [one.status for one in found] == ["pass", *["error"] * 7, "fail"]
    messages = [one.message for one in found]
    assert "CAST_INVALID_INPUT" in messages[1]
    assert not any(str(row[4]) in messages[1] for row in ROWS)
    assert messages[2] == "orders: column 'tax' is missing"
    assert messages[3] == "orders: the query gives several rows of 2 column(s); one number is needed"
    assert messages[4] == "orders: the query gives a str; one number is needed"
    assert "DIVIDE_BY_ZERO" in messages[5]
    assert messages[6] == "orders: the query gives NULL; one number is needed"
    assert "it reads 'customers'; a rule reads only orders" in messages[7]
    assert messages[8] == "orders: the query gives 4; allowed: exactly 5"


@pytest.mark.spark
def test_a_query_sees_the_partitions_that_are_checked_or_the_table(orders: DataFrame) -> None:
    table = [{"property": "scope", "vendor": "dq", "value": {"rows": "table"}}]
    asked = [
        {"query": "SELECT count(*) FROM orders", "mustBe": 2},
        {"query": "SELECT count(*) FROM orders", "mustBe": 4, "customProperties": table},
    ]

    found = sql_results(report(orders, asked, partitions=[{"placed": "2026-01-01"}]))

    assert [(one.status, one.value) for one in found] == [("pass", 2), ("pass", 4)]
    assert found[1].message.endswith("(tested on the whole table)")


@pytest.mark.spark
def test_a_session_variable_is_no_column(spark: SparkSession, orders: DataFrame) -> None:
    if spark.version.startswith("3."):
        pytest.skip("Spark 3.5 has no session variables of this form, so nothing can be read")
    spark.sql("DECLARE OR REPLACE VARIABLE secret = 7")

    (found,) = sql_results(report(orders, [{"query": "SELECT max(secret) FROM orders", "mustBe": 7}]))

    assert (found.status, found.message) == ("error", "orders: column 'secret' is missing")


@pytest.mark.spark
def test_no_view_is_left_behind(spark: SparkSession, orders: DataFrame) -> None:
    report(orders, [{"query": "SELECT 1 / 0 FROM orders", "mustBe": 4}])

    assert [one.name for one in spark.catalog.listTables() if one.name.startswith("_dq_")] == []


@pytest.mark.spark
def test_a_query_costs_one_job(spark: SparkSession, orders: DataFrame) -> None:
    spark.sparkContext.setJobGroup("one query", "one query")
    found = report(orders, [{"query": "SELECT count(*) FROM orders WHERE price < 0", "mustBe": 1}])
    spark.sparkContext.setJobGroup("rest", "rest")

    ran = spark.sparkContext.statusTracker().getJobIdsForGroup("one query")
    assert (len(ran), found.passes) == (1, 1)


COUNT = "SELECT count(*) FROM {object} WHERE"
LITERALS = [
    (r"'it''s'", "it's"),
    (r"'it\'s'", "it's"),
    ('"it\'s"', "it's"),
    ('"it""s"', 'it"s'),
    (r"'it\"s'", 'it"s'),
    ("'its'", "its"),
    (r"'a\\n'", r"a\n"),
]
TEXTS = ["it's", 'it"s', "its", r"a\n", "a\n", "A", "ab"]


@pytest.mark.parametrize("page", ["how-to/check-data.md", "reference/checks.md"])
def test_t37_the_pages_on_checks_say_how_a_text_is_read(page: str) -> None:
    text = (DOCS / page).read_text()

    examples = re.findall(r"`('[^`\n]+')` is\s+`([^`\n]+)`", text)

    assert [example for example in examples if example in LITERALS] == examples != []


@pytest.mark.spark
def test_t37_a_text_of_a_rule_means_the_same_to_spark_and_to_everything_beside_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = spark.createDataFrame([(text,) for text in TEXTS], "s string")
    rows.coalesce(1).write.parquet(str(tmp_path / "rows"))
    queries = [f"{COUNT} s = {written}" for written, _ in LITERALS]
    rules = [{"query": query, "mustBe": 1} for query in queries]
    rules += [{"query": f"{query} AND length(s) = {len(text)}", "mustBe": 1}
              for query, (_, text) in zip(queries, LITERALS, strict=True)]  # fmt: skip

    by_spark = sql_results(report(rows, rules))
    by_files = sql_results(report(spark.read.parquet(str(tmp_path / "rows")), rules))

    assert [one.message for one in (*by_spark, *by_files) if one.status is not Status.PASS] == []
    assert len(by_spark) == len(by_files) == 2 * len(LITERALS)


@pytest.mark.spark
def test_t37_a_text_that_reads_in_several_ways_is_refused_with_what_to_write(orders: DataFrame) -> None:
    literals = [r"'\n'", r"'\u0041'", "'a' 'b'", "'a' -- x\n 'b'", "'a'\"b\"", r"r'it''s'"]
    queries = [f"{COUNT} state = {one}" for one in literals]

    found = sql_results(report(orders, [{"query": one, "mustBe": 0} for one in queries]))

    assert [one.status for one in found] == [Status.ERROR] * len(literals)
    said = " ".join(one.message for one in found)
    assert said.count("a string with a single backslash is not allowed") == 2
    assert said.count("adjacent string literals is not allowed") == 3


@pytest.mark.spark
def test_t37_texts_that_are_taken_are_what_this_spark_reads_but_for_doubled_quotes(
    spark: SparkSession,
) -> None:
    signs = ["a", "'", '"', "\\\\", "\\'", '\\"', "%", "\\%", "\\n", "n", "u0041", "--", "/*", "`", "é", "$"]
    choose = random.Random(37)
    literals = {
        f"{prefix}{quote}{''.join(choose.choices(signs, k=choose.randint(0, 4)))}{quote}"
        for prefix in ("", "r")
        for quote in "'\""
        for _ in range(200)
    }
    taken = {
        one: guarded.sql.removeprefix("`s` = ")
        for one in sorted(literals)
        if "''" not in one[1:-1] and '""' not in one[1:-1]
        if isinstance(guarded := validate_predicate(f"s = {one}"), ValidatedSql)
    }
    columns = [f"{text} AS t{at}" for at, pair in enumerate(taken.items()) for text in pair]

    row = spark.range(1).selectExpr(*columns).collect()[0]

    assert len(taken) > 100
    assert [one for at, one in enumerate(taken) if row[2 * at] != row[2 * at + 1]] == []


@pytest.mark.spark
@pytest.mark.parametrize("ddl", ["`${env:DQ_CANARY}` string", "id int, a struct<`${env:DQ_CANARY}`: int>"])
def test_t12_a_name_that_the_users_session_would_fill_in_is_refused_and_shows_nothing(
    spark: SparkSession, ddl: str
) -> None:
    frame = spark.createDataFrame([], ddl)
    setting = "spark.sql.variable.substitute"
    before = spark.conf.get(setting, "true")
    try:
        spark.conf.set(setting, "true")
        with pytest.raises(UsageError, match="Spark session substitutes") as refused:
            report(frame, [])
        assert setting in refused.value.hint
        spark.conf.set(setting, "false")
        [counted] = sql_results(report(frame, [{"query": f"{COUNT} true", "mustBe": 0}]))
        assert counted.status is Status.PASS
    finally:
        spark.conf.set(setting, before or "true")
