from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import sqlglot
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

from dq.contracts.sql.allow import FUNCTIONS, SqlDialect
from dq.contracts.sql.guard import (
    MAX_CHARACTERS,
    RejectedSql,
    ValidatedSql,
    validate_predicate,
    validate_query,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The long form is benchmarks/random_tests.py.
EXAMPLES = int(os.environ.get("DQ_EXAMPLES", "120"))

HERE = Path(__file__).parent
HOSTILE = yaml.load((HERE / "hostile.yaml").read_text(), yaml.CSafeLoader)
LEGITIMATE = yaml.load((HERE / "legitimate.yaml").read_text(), yaml.CSafeLoader)
PLACED = yaml.load((HERE / "placed.yaml").read_text(), yaml.CSafeLoader)
TABLES = {"orders": "_dq_rows", "shop.orders_v1": "_dq_rows"}


def guard(query: str, property: str | None = None) -> ValidatedSql | RejectedSql:
    return validate_query(query, own_table="orders", tables=TABLES, property=property)


def test_there_are_enough_of_both() -> None:
    assert (len(HOSTILE) >= 60, len(LEGITIMATE) >= 30) == (True, True)


@pytest.mark.parametrize("case", HOSTILE, ids=lambda case: case["query"][:60])
def test_a_hostile_query_is_refused_with_its_reason(case: dict[str, str]) -> None:
    found = guard(case["query"])

    assert isinstance(found, RejectedSql), found
    assert case["why"].lower() in found.reason.lower()


@pytest.mark.parametrize("case", PLACED, ids=lambda case: case["query"][:60])
def test_what_stands_where_spark_refuses_it_is_refused_at_the_gate(case: dict[str, str]) -> None:
    found = guard(case["query"])

    assert isinstance(found, RejectedSql) == ("why" in case), found
    assert not isinstance(found, RejectedSql) or case["why"] in found.reason


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
    assert isinstance(guard(query), RejectedSql)


def test_a_name_that_breaks_out_of_its_quotes_stays_a_name() -> None:
    found = validate_query(
        "SELECT count(*) FROM {object} WHERE {property} IS NULL",
        own_table="a` JOIN secrets `b",
        tables={"a` JOIN secrets `b": "_dq_rows"},
        property="`x``y`",
    )

    assert isinstance(found, ValidatedSql)
    assert found.sql == "SELECT COUNT(*) FROM `_dq_rows` AS `a`` JOIN secrets ``b` WHERE `x``y` IS NULL"


def test_names_of_with_are_our_own_so_that_a_scope_cannot_be_left() -> None:
    found = guard(
        "SELECT count(*) FROM (WITH s AS (SELECT id FROM orders) SELECT * FROM s) a JOIN s USING (id)"
    )

    assert isinstance(found, ValidatedSql)
    assert {table.name for table in sqlglot.parse_one(found.sql, dialect="spark").find_all(exp.Table)} == {
        "_dq_rows",
        "_dq_with_s",
    }


def test_texts_and_comments_of_the_query_do_not_reach_spark() -> None:
    found = guard("SELECT count(*) /* a */ FROM orders -- b\nWHERE mail = 'it\\'s $1'")

    assert isinstance(found, ValidatedSql)
    assert found.sql == (
        "SELECT COUNT(*) FROM `_dq_rows` AS `orders` WHERE `mail` = CAST(X'69742773202431' AS STRING)"
    )


def test_columns_are_those_that_the_query_does_not_define() -> None:
    found = guard(
        "SELECT max(n) FROM (SELECT id + line AS n FROM orders o WHERE exists(items, x -> x = o.mail))"
    )

    assert isinstance(found, ValidatedSql)
    assert found.columns == ("id", "items", "line")


def test_a_result_has_no_name_in_the_condition_that_comes_before_it() -> None:
    found = guard("SELECT count(*) AS secret FROM (SELECT id AS n FROM orders) x WHERE secret = 7 AND n = 1")

    assert isinstance(found, ValidatedSql)
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


@settings(max_examples=4 * EXAMPLES, deadline=None)
@given(queries())
def test_whatever_is_accepted_is_one_select_on_allowed_tables(query: str) -> None:
    found = guard(query, "`price`")

    if isinstance(found, ValidatedSql):
        (tree,) = sqlglot.parse(found.sql, dialect=SqlDialect)
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
        if isinstance(found, ValidatedSql):
            plan = plan_of(found.sql)
            relations = set(re.findall(r"UnresolvedRelation \[([^\]]*)\]", plan))
            read.update(one for one in relations if not one.startswith("_dq_with_"))
            assert "Script" not in plan

    reads_the_same()

    assert read == {"_dq_rows"}


# Words of Spark's grammar, which its list of functions leaves out.
GRAMMAR = {"if"}


@pytest.mark.spark
def test_spark_refuses_what_stands_in_the_wrong_place(spark: SparkSession) -> None:
    from pyspark.errors import AnalysisException

    ddl = "id int, parent int, state string, items array<string>, address struct<zip: int>"
    spark.createDataFrame([], ddl).createOrReplaceTempView("orders")
    refused = []
    for case in PLACED:
        try:
            assert spark.sql(case["query"]).schema
        except AnalysisException:
            refused.append(case["query"])

    assert refused == [case["query"] for case in PLACED if "why" in case]


@pytest.mark.spark
def test_every_function_of_the_list_is_built_into_spark(spark: SparkSession) -> None:
    known = {row[0] for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect()}

    assert FUNCTIONS - known - GRAMMAR == set()


PREDICATES = [
    ("state = 'closed' AND amount > 1.5e3", "`state` = 'closed' AND `amount` > 1.5e3", ("amount", "state")),
    ("`a b` IS NOT NULL", "NOT `a b` IS NULL", ("a b",)),
    (
        "upper(trim(state)) IN ('A', 'B') OR NOT (x <=> y)",
        "UPPER(TRIM(`state`)) IN ('A', 'B') OR NOT (`x` IS NOT DISTINCT FROM `y`)",
        ("state", "x", "y"),
    ),
    ("cast(a AS decimal(10, 2)) BETWEEN -1 AND 1", "CAST(`a` AS DECIMAL(10, 2)) BETWEEN -1 AND 1", ("a",)),
    ("place.zip LIKE '1%'", "`place`.`zip` LIKE '1%'", ("place",)),
    ("s = 'it''s'", "`s` = CAST(X'69742773' AS STRING)", ("s",)),
    ("s || 'x' = 'ax'", "`s` || 'x' = 'ax'", ("s",)),
    ("a = 1 -- one", "`a` = 1", ("a",)),
    ("a = '${env:SECRET}'", "`a` = CAST(X'247B656E763A5345435245547D' AS STRING)", ("a",)),
    (
        "mail RLIKE '(?i)^[a-z]+@x$'",
        "`mail` RLIKE CAST(X'283F69295E5B612D7A5D2B407824' AS STRING)",
        ("mail",),
    ),
]
NO_PREDICATES = {
    "reflect('java.lang.Runtime', 'getRuntime')": "the function 'reflect' is not allowed",
    "java_method('a', 'b')": "the function 'java_method' is not allowed",
    "`reflect`('a', 'b')": "not allowed",
    "x IN (SELECT y FROM z)": "is not allowed in a predicate",
    "EXISTS (SELECT 1 FROM z)": "is not allowed in a predicate",
    "a = 'it\\'s' AND b = '\\d'": "a string with a single backslash is not allowed",
    "a = 1) OR (b = 2": "it is not supported SQL",
    "(a = 1": "it is not supported SQL",
    "a = 1; DROP TABLE b": "it is not supported SQL",
    "exists(a, b -> true)": "is not allowed in a predicate",
    "max(a) > 1": "the function 'max' is not allowed in a predicate",
    "explode(a) = 1": "the function 'explode' is not allowed in a predicate",
    "row_number() OVER (ORDER BY a) = 1": "is not allowed in a predicate",
    "SELECT 1": "",
    "_dq_x = 1": "names that begin",
    "a RLIKE '(a+)+$'": "can match the same text in exponentially many ways",
    "": "it is empty",
    "-- nothing": "it is empty",
    "(" * 100 + "a" + ")" * 100: "it is nested too deeply",
    "a = 1 OR " * 3_000 + "true": "characters",
}


@pytest.mark.parametrize(("text", "written", "columns"), PREDICATES, ids=lambda one: str(one)[:40])
def test_a_predicate_is_written_anew(text: str, written: str, columns: tuple[str, ...]) -> None:
    found = validate_predicate(text)

    assert isinstance(found, ValidatedSql), found
    assert (found.sql, found.columns) == (written, columns)


@pytest.mark.parametrize("text", NO_PREDICATES, ids=lambda text: text[:40])
def test_a_predicate_looks_at_one_row_and_at_nothing_else(text: str) -> None:
    found = validate_predicate(text)

    assert isinstance(found, RejectedSql), found
    assert NO_PREDICATES[text] in found.reason
    assert found.hint
