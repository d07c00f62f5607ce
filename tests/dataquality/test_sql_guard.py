from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import sqlglot
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

from dq.contracts.outcome import CheckResult, Status
from dq.contracts.parse import parse
from dq.dataquality import Report, check
from dq.dataquality.sql_dialect import Dialect
from dq.dataquality.sql_guard import MAX_CHARACTERS, Guarded, Refused, guarded
from dq.dataquality.sql_words import FUNCTIONS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

HERE = Path(__file__).parent
HOSTILE = yaml.safe_load((HERE / "sql_hostile.yaml").read_text())
LEGITIMATE = yaml.safe_load((HERE / "sql_legitimate.yaml").read_text())
TABLES = {"orders": "_dq_rows", "shop.orders_v1": "_dq_rows"}


def guard(query: str, property: str | None = None) -> Guarded | Refused:
    return guarded(query, own="orders", tables=TABLES, property=property)


def test_there_are_enough_of_both() -> None:
    assert (len(HOSTILE) >= 60, len(LEGITIMATE) >= 30) == (True, True)


@pytest.mark.parametrize("case", HOSTILE, ids=lambda case: case["query"][:60])
def test_a_hostile_query_is_refused_with_its_reason(case: dict[str, str]) -> None:
    found = guard(case["query"])

    assert isinstance(found, Refused), found
    assert case["why"].lower() in found.reason.lower()


@pytest.mark.parametrize(
    "query",
    [
        "SELECT " + "(" * 5000 + "1" + ")" * 5000 + " FROM orders",
        "SELECT " + "NOT " * 4000 + "true FROM orders",
        "SELECT " + "- " * 4000 + "1 FROM orders",
        "SELECT " + "CASE WHEN " * 1500 + "true FROM orders",
        "SELECT " + "1 + " * 4000 + "1 FROM orders",
        "SELECT " + "1, " * 3000 + "1 FROM orders",
        "SELECT count(*) FROM orders".ljust(MAX_CHARACTERS + 1),
        "SELECT count(*) FROM orders" + " JOIN orders USING (id)" * 20,
    ],
    ids=["parentheses", "not", "minus", "case", "sum", "columns", "characters", "tables"],
)
def test_what_is_too_large_is_refused(query: str) -> None:
    assert isinstance(guard(query), Refused)


def test_a_name_that_breaks_out_of_its_quotes_stays_a_name() -> None:
    found = guarded(
        "SELECT count(*) FROM {object} WHERE {property} IS NULL",
        own="a` JOIN secrets `b",
        tables={"a` JOIN secrets `b": "_dq_rows"},
        property="`x``y`",
    )

    assert isinstance(found, Guarded)
    assert found.sql == "SELECT COUNT(*) FROM `_dq_rows` AS `a`` JOIN secrets ``b` WHERE `x``y` IS NULL"


def test_names_of_with_are_our_own_so_that_a_scope_cannot_be_left() -> None:
    found = guard(
        "SELECT count(*) FROM (WITH s AS (SELECT id FROM orders) SELECT * FROM s) a JOIN s USING (id)"
    )

    assert isinstance(found, Guarded)
    assert {table.name for table in sqlglot.parse_one(found.sql, dialect="spark").find_all(exp.Table)} == {
        "_dq_rows",
        "_dq_with_s",
    }


def test_texts_and_comments_of_the_query_do_not_reach_spark() -> None:
    found = guard("SELECT count(*) /* a */ FROM orders -- b\nWHERE mail = 'it\\'s $1'")

    assert isinstance(found, Guarded)
    assert found.sql == (
        "SELECT COUNT(*) FROM `_dq_rows` AS `orders` WHERE `mail` = CAST(X'69742773202431' AS STRING)"
    )


def test_columns_are_those_that_the_query_does_not_define() -> None:
    found = guard(
        "SELECT max(n) FROM (SELECT id + line AS n FROM orders o WHERE exists(items, x -> x = o.mail))"
    )

    assert isinstance(found, Guarded)
    assert found.columns == ("id", "items", "line")


def test_a_result_has_no_name_in_the_condition_that_comes_before_it() -> None:
    found = guard("SELECT count(*) AS secret FROM (SELECT id AS n FROM orders) x WHERE secret = 7 AND n = 1")

    assert isinstance(found, Guarded)
    assert found.columns == ("id", "secret")


PIECES = [
    *[
        "SELECT",
        "FROM",
        "orders",
        "WHERE",
        ",",
        "(",
        ")",
        "*",
        "+",
        "=",
        ";",
        "--",
        "/*",
        "*/",
        "'",
        '"',
        "`",
    ],
    *["id", "mail", "1", ".", "{", "}", "$", "${", "AS", "JOIN", "ON", "USING", "->", "UNION", "ALL", "WITH"],
    *["x", "IN", "EXISTS", "LATERAL", "VALUES", "INTO", "OVER", "PARTITION", "BY", "INTERVAL", "DAY", "CAST"],
    *[
        "secrets",
        "parquet.`/x`",
        "count(*)",
        "reflect('a','b')",
        "explode(items)",
        "transform(items, x -> x)",
    ],
    *["r'\\'", "'\\\\'"],
    "/*+ BROADCAST(a) */",
    "(SELECT id FROM orders)",
    "(SELECT id FROM secrets)",
    "SELECT count(*) FROM orders",
    "`a``b`",
    "'a\\'b'",
    "\n",
]


@st.composite
def queries(draw: st.DrawFn) -> str:
    """A good query with pieces put in, taken out and put in the place of others."""
    words = re.findall(r"\w+|\s+|.", draw(st.sampled_from([case["query"] for case in LEGITIMATE])))
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(words)))
        words[at : at + draw(st.integers(0, 2))] = [draw(st.sampled_from(PIECES)), " "]
    return "".join(words)


@settings(max_examples=1500, deadline=None)
@given(queries())
def test_whatever_is_accepted_is_one_select_on_allowed_tables(query: str) -> None:
    found = guard(query, "`price`")

    if isinstance(found, Guarded):
        (tree,) = sqlglot.parse(found.sql, dialect=Dialect)
        assert isinstance(tree, exp.Query)
        names = {table.sql(dialect="spark").split(" ")[0] for table in tree.find_all(exp.Table)}
        assert {name.strip("`") for name in names if not name.strip("`").startswith("_dq_with_")} == {
            "_dq_rows"
        }
        assert not any(node.comments for node in tree.walk())
        assert "${" not in found.sql


@pytest.mark.spark
def test_spark_reads_in_what_is_accepted_the_same_tables_and_functions(spark: SparkSession) -> None:
    from pyspark.errors import ParseException

    parser = spark._jsparkSession.sessionState().sqlParser()

    def plan_of(text: str) -> str:
        try:
            return str(parser.parsePlan(text).toString())
        except ParseException:
            return ""  # what Spark does not parse does not run

    read: set[str] = set()

    @settings(max_examples=300, deadline=None, database=None)
    @given(queries())
    def reads_the_same(query: str) -> None:
        found = guard(query, "`price`")
        if isinstance(found, Guarded):
            plan = plan_of(found.sql)
            relations = set(re.findall(r"UnresolvedRelation \[([^\]]*)\]", plan))
            read.update(one for one in relations if not one.startswith("_dq_with_"))
            assert "Script" not in plan

    reads_the_same()

    assert read == {"_dq_rows"}


# Words of Spark's grammar, which its list of functions leaves out.
GRAMMAR = {"if"}


@pytest.mark.spark
def test_every_function_of_the_list_is_built_into_spark(spark: SparkSession) -> None:
    known = {row[0] for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect()}

    assert FUNCTIONS - known - GRAMMAR == set()


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
    return check(parsed.contract, frame, **how)  # type: ignore[arg-type]


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
