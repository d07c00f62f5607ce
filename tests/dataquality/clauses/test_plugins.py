"""Checks of a real package, installed into a folder on the path, are asked like dq's own."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dq.contracts.check_result import CheckResult
from dq.contracts.model import Contract
from dq.contracts.yaml.parse import parse
from dq.dataquality.check import check
from dq.dataquality.checks import built_in
from dq.dataquality.clauses.coverage import clause_coverage
from dq.dataquality.clauses.kind import clauses_of
from dq.dataquality.clauses.plugins import installed, package
from dq.dataquality.report import Report
from dq.dataquality.request import Request

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ACME = '''
"""Checks of Acme."""
from dq.dataquality.model.column import Column
from dq.dataquality.clauses.plugins import Broken, Measure, Question
from dq.dataquality.model.metric import Need, aggregate, count

def upper(given):
    """Every text is in upper case."""
    most = given.arguments.get("shorter_than")
    if most is not None and not isinstance(most, int):
        raise ValueError("shorter_than must be a whole number")
    breaks = given.column.rows_where(lambda value: f"upper({value}) <> {value}")
    return Broken(breaks, (given.column,), "are not in upper case")

def spread(given):
    """How far the largest is from the smallest."""
    column = Column((given.arguments["column"],))
    low, high = (
        aggregate(name, column.sql(), needs=(Need(column),)) for name in ("min", "max")
    )
    return Question((low, high), lambda values: values[high] - values[low])

def groups(given):
    """How many groups there are."""
    return Measure(lambda frame: frame.select(given.arguments["column"]).distinct().count())

def leaks(given):
    def number(frame):
        raise RuntimeError("could not look up 'eve@example.org' with token s3cret\\nat line 1")
    return Measure(number)

def text(given):
    return Measure(lambda frame: "many")

def nothing(given):
    return None

NO_FUNCTION = 7
'''
POINTS = """[dq.checks]
acme.upper = acme_checks:upper
acme.spread = acme_checks:spread
acme.groups = acme_checks:groups
acme.leaks = acme_checks:leaks
acme.text = acme_checks:text
acme.nothing = acme_checks:nothing
acme.value = acme_checks:NO_FUNCTION
acme.gone = acme_gone:check
acme.breaks = acme_breaks:check
twice = acme_checks:upper
"""


def install(folder: Path, name: str, points: str) -> None:
    """What pip leaves behind."""
    information = folder / f"{name}-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(points)


@pytest.fixture(scope="module", autouse=True)
def acme(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("site")
    (folder / "acme_checks.py").write_text(ACME)
    (folder / "acme_breaks.py").write_text("raise OSError('https://me:s3cret@acme.org is down')\n")
    install(folder, "acme_checks", POINTS)
    install(folder, "other_checks", "[dq.checks]\ntwice = acme_checks:upper\n")
    sys.path.insert(0, str(folder))
    yield
    sys.path.remove(str(folder))
    for name in ("acme_checks", "acme_breaks"):
        sys.modules.pop(name, None)


def contract(
    *implementations: object, on_property: bool = True, scope: dict[str, str] | None = None
) -> Contract:
    custom = [{"property": "scope", "vendor": "dq", "value": scope}] if scope else []
    rules = [
        {"type": "custom", "engine": "dq", "implementation": one, "customProperties": custom}
        for one in implementations
    ]
    prop: dict[str, object] = {"name": "code", "logicalType": "string"}
    one: dict[str, object] = {"name": "orders", "properties": [prop]}
    (prop if on_property else one)["quality"] = rules
    head = {"apiVersion": "v3.2.0", "kind": "DataContract", "id": "shop", "version": "1.0.0"}
    parsed = parse(json.dumps({**head, "schema": [one]}).encode(), "shop.odcs.yaml")  # JSON is YAML
    assert parsed.contract is not None, parsed.findings
    return parsed.contract


def customs(report: Report) -> list[CheckResult]:
    return [one for one in report.results if one.check == "custom"]


# What a rule says -> why it cannot be tested.
REFUSED = [
    ("acme.uper", "no installed package registers a check 'acme.uper'; did you mean 'acme.upper'?"),
    ("os:system", "no installed package registers a check 'os:system'; available: acme.breaks, acme.gone, "),
    ("acme_checks:upper", "no installed package registers a check 'acme_checks:upper'"),
    ("twice", "the check 'twice' is registered by acme_checks and other_checks"),
    ("acme.gone", "the check 'acme.gone' of acme_checks cannot be loaded: ModuleNotFoundError: "),
    ("acme.breaks", "cannot be loaded: OSError: https://***@acme.org is down"),
    ("acme.value", "the check 'acme.value' of acme_checks is not a function"),
    ("acme.nothing", "the check 'acme.nothing' gives a NoneType, not Broken, Question or Measure"),
    ("acme.spread", "the check 'acme.spread' refuses the rule: KeyError: 'column'"),
    ({"check": "acme.upper", "arguments": {"shorter_than": "x"}}, "ValueError: shorter_than must be a whole"),
    ({"check": "acme.groups", "arguments": {"column": "code"}}, "gives a number and needs an operator"),
    ({"check": "acme.upper", "mustBe": 1, "mustBeLessThan": 2}, "it has 2 operators"),
    ({"check": "acme.upper", "unit": "percent"}, "it has a unit but no operator"),
    ({"check": "acme.upper", "mustBe": 0, "unit": "miles"}, "unit 'miles' is neither rows nor percent"),
    ({"check": "acme.upper", "mustBe": "none"}, "mustBe takes a number, not 'none'"),
    ({"check": "acme.upper", "arguments": [1]}, "its arguments must be a mapping"),
    ({"check": "acme.upper", "module": "os"}, "its implementation has 'module'; it takes check, arguments"),
    ({"arguments": {}}, "its implementation is neither the name of a check nor a mapping with 'check'"),
]  # fmt: skip


@pytest.mark.parametrize(("implementation", "why"), REFUSED, ids=lambda one: str(one)[:40])
def test_a_rule_that_cannot_be_asked_says_why_in_one_line(implementation: object, why: str) -> None:
    made = contract(implementation)

    (clause,) = clauses_of(made, made.objects[0], {"custom": built_in()["custom"]})

    assert why in clause.refusal_reason
    assert "\n" not in clause.refusal_reason
    assert "s3cret" not in clause.refusal_reason


def test_rules_of_other_engines_are_accounted_for_and_not_run() -> None:
    made = contract("acme.upper", "acme.uper")
    text = (
        b"apiVersion: v3.2.0\nkind: DataContract\nid: a\nversion: 1.0.0\nschema:\n  - name: t\n    quality:\n"
    )
    other = parse(text + b"      - {type: custom, engine: soda, implementation: x}\n", "a.odcs.yaml").contract
    assert other is not None

    said = [
        (one.state.value, one.reason)
        for each in (made, other)
        for one in clause_coverage(each, each.objects[0], clauses_of(each, each.objects[0], built_in()))
        if one.clause == "quality: custom"
    ]

    assert said == [
        ("enforced", "custom"),
        ("not evaluated", "no installed package registers a check 'acme.uper'; did you mean 'acme.upper'?"),
        ("not evaluated", "rules of the engine 'soda' are not run"),
    ]


def test_registered_checks_are_listed_without_loading_them() -> None:
    found = {name: [package(one) for one in claims] for name, claims in installed().items()}

    assert found["luhn"] == ["dq-contracts"]
    assert found["twice"] == ["acme_checks", "other_checks"]
    assert "acme_breaks" not in sys.modules


@pytest.fixture(scope="module")
def orders(spark: SparkSession) -> DataFrame:
    return (
        spark.createDataFrame([("A", 3), ("b", 10), (None, None)], "code string, n int").coalesce(1).cache()
    )


@pytest.mark.spark
def test_checks_of_rows_and_questions_share_the_pass_and_show_their_rows(orders: DataFrame) -> None:
    rows = contract("acme.upper", {"check": "acme.upper", "mustBeLessThan": 50, "unit": "percent"})

    report = check(Request(rows, orders))

    assert [(one.status, one.observed, one.samples) for one in customs(report)] == [
        ("fail", "1 of 3 rows", ({"code": "b"},)),
        ("pass", "33.33 % (1 of 3 rows)", ()),
    ]
    assert (
        customs(report)[0].message
        == "orders.code: 1 of 3 rows are not in upper case; allowed: exactly 0 rows"
    )
    assert report.passes == 1


@pytest.mark.spark
def test_numbers_are_bounded_and_a_question_shares_the_pass(spark: SparkSession, orders: DataFrame) -> None:
    spread = {"check": "acme.spread", "arguments": {"column": "n"}, "mustBe": 7}
    groups = {"check": "acme.groups", "arguments": {"column": "code"}, "mustBeLessThan": 3}
    asked = contract(spread, groups, groups, on_property=False)
    spark.sparkContext.setJobGroup("custom", "custom")
    report = check(Request(asked, orders))
    spark.sparkContext.setJobGroup("rest", "rest")

    assert [(one.status, one.value) for one in customs(report)] == [
        ("pass", 7.0),
        ("fail", 3.0),
        ("fail", 3.0),
    ]
    assert customs(report)[1].message == "orders: the check 'acme.groups' gives 3; allowed: less than 3"
    # One for the question, and that of the equal measures; `distinct().count()` takes one without adaption.
    assert len(spark.sparkContext.statusTracker().getJobIdsForGroup("custom")) == 2
    assert report.passes == 2


@pytest.mark.spark
def test_a_check_that_raises_is_an_error_of_its_rule_alone_and_shows_nothing(orders: DataFrame) -> None:
    arguments = {"mustBe": 0}
    names = ("acme.leaks", "acme.text", "acme.groups", "acme.spread", "acme.gone", "acme.upper")
    column = {"arguments": {"column": "missing"}}
    made = contract(*({"check": name, **arguments, **(column if name[5] in "gs" else {})} for name in names))

    found = customs(check(Request(made, orders)))

    assert [one.status for one in found] == [*["error"] * 5, "fail"]
    messages = [one.message for one in found]
    assert messages[0] == "orders.code: the check 'acme.leaks' raised RuntimeError: could not look up …"
    assert messages[1] == "orders.code: the check 'acme.text' gives a str; one number is needed"
    assert "raised AnalysisException: [UNRESOLVED_COLUMN" in messages[2]
    assert messages[3] == "orders.code: column 'missing' is missing"
    assert not any("\n" in one or "eve" in one or "s3cret" in one for one in messages)


@pytest.mark.spark
def test_a_scope_is_kept_where_it_can_be_and_refused_where_it_cannot(orders: DataFrame) -> None:
    groups = {"check": "acme.groups", "arguments": {"column": "code"}, "mustBe": 1}
    spread = {"check": "acme.spread", "arguments": {"column": "n"}, "mustBe": 0}
    made = contract("acme.upper", groups, spread, scope={"where": "n < 5"})

    found = customs(check(Request(made, orders)))

    assert [one.status for one in found] == ["pass", "pass", "error"]
    assert "cannot have a scope with where" in found[2].message
