from __future__ import annotations

import datetime as dt
import ipaddress
import random
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from dq.contracts.types import DataType
from dq.contracts.yaml.parse import parse
from dq.dataquality.check import check
from dq.dataquality.checks import built_in
from dq.dataquality.clauses.coverage import clause_coverage
from dq.dataquality.clauses.kind import clauses_of
from dq.dataquality.model.predicate import Not, Path, Predicate
from dq.dataquality.model.run_context import Unusable
from dq.dataquality.request import Request
from dq.dataquality.sql_predicate import predicate_sql
from dq.dataquality.sql_values import PATTERNS, violates_date_pattern, violates_format

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HEAD = "apiVersion: v3.2.0\nkind: DataContract\nid: shop\nversion: 1.0.0\n"
FORMS = """
schema:
  - name: hosts
    quality: [{metric: rowCount, mustBe: 2}]
    properties:
      - {name: ip, logicalType: string, required: true, logicalTypeOptions: {format: ipv4}}
      - {name: mail, logicalType: string, logicalTypeOptions: {format: email}}
      - {name: id, logicalType: string, logicalTypeOptions: {format: uuid}}
      - {name: port, logicalType: integer, logicalTypeOptions: {format: u16}}
      - {name: day, logicalType: date, physicalType: string, logicalTypeOptions: {format: dd.MM.yyyy}}
"""
DDL = "ip string, mail string, id string, port int, day string"


@pytest.mark.spark
def test_formats_cost_no_job_of_their_own(spark: SparkSession) -> None:
    contract = parse((HEAD + FORMS).encode(), "shop.odcs.yaml").contract
    assert contract is not None
    row = ("1.2.3.4", "a@b.de", "f81d4fae-7dec-11d0-a765-00a0c91e6bf6", 80, "29.02.2024")
    frame = spark.createDataFrame([row, ("0.0.0.0", None, None, None, None)], DDL)

    spark.sparkContext.setJobGroup("formats", "formats")
    report = check(Request(contract, frame))
    ran = len(spark.sparkContext.statusTracker().getJobIdsForGroup("formats"))
    spark.sparkContext.setJobGroup("rest", "rest")

    assert {result.status for result in report.results} == {"pass"}
    assert (ran, report.passes) == (1, 1)


def _parses(parser: Callable[[str], object]) -> Callable[[str], bool]:
    def test(value: str) -> bool:
        try:
            parser(value)
        except ValueError:
            return False
        return True

    return test


def _day(value: str) -> object:
    if len(value) != 10:
        raise ValueError(value)
    return dt.date.fromisoformat(value)


# Format -> an independent reader, and the characters that make likely texts.
ORACLES: dict[str, tuple[Callable[[str], bool], str, int]] = {
    "ipv4": (_parses(ipaddress.IPv4Address), "0125.", 9),
    "ipv6": (_parses(ipaddress.IPv6Address), "0af::::.", 17),
    "date": (_parses(_day), "", 0),
}


def _texts(name: str) -> list[str]:
    _, signs, most = ORACLES[name]
    random_ = random.Random(name)
    if name == "date":
        return [
            f"{year:04}-{month:02}-{day:02}"
            for year in (1900, 2000, 2023, 2024)
            for month in range(14)
            for day in range(34)
        ]
    made = ["".join(random_.choices(signs, k=random_.randint(0, most))) for _ in range(3000)]
    groups = [
        ":".join(random_.choices(["1", "ffff", "", "0", "10.0.0.255"], k=random_.randint(2, 9)))
        for _ in range(3000)
    ]
    return (
        made
        + groups
        + [".".join(random_.choices(["0", "9", "99", "255", "256", "01"], k=4)) for _ in range(500)]
    )


V = Path(("v",))


def written(predicate: Predicate) -> str:
    return predicate_sql(predicate, DataType("struct", (), (DataType("string"),), ("v",)))


@pytest.mark.spark
@pytest.mark.parametrize("name", ORACLES)
def test_a_format_holds_exactly_what_an_independent_reader_takes(spark: SparkSession, name: str) -> None:
    texts = sorted(set(_texts(name)))
    frame = spark.createDataFrame([(value,) for value in texts], "v string")

    rows = frame.where(written(Not(violates_format(name, V)))).collect()

    assert sorted(row.v for row in rows) == [value for value in texts if ORACLES[name][0](value)]
    assert 0 < len(rows) < len(texts)


@pytest.mark.spark
def test_long_texts_do_not_overflow_the_stack_of_the_regex(spark: SparkSession) -> None:
    long = 200_000
    texts = [
        "a" * long,
        "a." * long,
        "http://a/" + "%20" * long,
        "QUJD" * long,
        "1:" * long,
        "a@" + "b." * long,
    ]
    frame = spark.createDataFrame([(value,) for value in texts], "v string")
    asked = [f"count_if({written(violates_format(name, V))}) AS `{name}`" for name in PATTERNS]

    counted = frame.selectExpr(*asked).collect()[0].asDict()

    # One is a URI; the plain letters and the groups of four are base64.
    assert counted == {**dict.fromkeys(PATTERNS, 6), "uri": 5, "byte": 4}


@pytest.mark.spark
@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize("policy", ["EXCEPTION", "CORRECTED", "LEGACY"])
def test_date_patterns_do_not_depend_on_the_session(spark: SparkSession, ansi: str, policy: str) -> None:
    frame = spark.createDataFrame([("2024-02-29",), ("2023-02-29",), ("2024-2-9",), (None,)], "v string")
    settings = {"spark.sql.ansi.enabled": ansi, "spark.sql.legacy.timeParserPolicy": policy}
    before = {key: spark.conf.get(key) for key in settings}
    try:
        for key, value in settings.items():
            spark.conf.set(key, value)
        broken = [row.v for row in frame.where(written(violates_date_pattern("yyyy-MM-dd")(V))).collect()]
    finally:
        for key, old in before.items():
            spark.conf.set(key, old or "")

    assert broken == ["2023-02-29", "2024-2-9"]


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("YYYY-MM-dd", "'YYYY' is the week-based year; use yyyy"),
        ("yyyy-MM-DD", "'DD' is the day of the year; use dd"),
        ("yyyy-MM-dd VV", "'VV' is not a field that can be tested"),
        ("[yyyy", "unbalanced brackets"),
        ("yyyy]", "unbalanced brackets"),
        ("'today'", "no date or time field"),
        ("yyyy{", "'{' must be quoted"),
        ("yyyy 'open", '"\'" must be quoted'),
    ],
)
def test_a_pattern_that_cannot_be_tested_says_why(pattern: str, reason: str) -> None:
    with pytest.raises(Unusable) as refused:
        violates_date_pattern(pattern)

    assert reason in str(refused.value)


def test_a_format_that_is_not_tested_says_why() -> None:
    formats = {
        "string": ("password", "iban"),
        "integer": ("i128", "int32"),
        "number": ("f32", "i8"),
        "date": ("dd.MM.yyyy",),
        "boolean": ("yes",),
    }
    lines = "".join(
        f"      - {{name: {kind}_{name.replace('.', '')}, logicalType: {kind},"
        f" logicalTypeOptions: {{format: {name!r}}}}}\n"
        for kind, names in formats.items()
        for name in names
    )
    contract = parse(f"{HEAD}schema:\n  - name: t\n    properties:\n{lines}".encode(), "t.yaml").contract
    assert contract is not None
    one = contract.objects[0]

    made = clause_coverage(contract, one, clauses_of(contract, one, built_in()))

    said = {each.property: (each.state.value, each.reason) for each in made if each.clause == "format"}
    assert {name: state for name, (state, _) in said.items()} == {
        "string_password": "documented only",
        "string_iban": "not evaluated",
        "integer_i128": "documented only",
        "integer_int32": "not evaluated",
        "number_f32": "documented only",
        "number_i8": "not evaluated",
        "date_ddMMyyyy": "documented only",
        "boolean_yes": "not evaluated",
    }
    assert said["string_iban"][1].startswith("unknown format 'iban'; known formats: email, uuid,")
