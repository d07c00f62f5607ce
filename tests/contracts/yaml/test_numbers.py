"""Numbers that readers of YAML do not agree about, and files that are called JSON and are not."""

from __future__ import annotations

import json

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from yaml.nodes import ScalarNode
from yaml.resolver import Resolver

from dq.contracts.yaml.parse import parse
from dq.contracts.yaml.scalars import NUMBERS_AND_DATES, UnusableScalar, other_number, value
from dq.validators import rule_page

SERVER = "servers: [{server: lake, type: postgres, host: db, database: sales, schema: a, port: %s}]\n"


@pytest.mark.parametrize(
    ("text", "made", "other"),
    [
        ("0123", 83, 123),
        ("-010", -8, -10),
        ("0o17", "0o17", 15),
        ("08", "08", 8),
        ("1_000", 1000, "1_000"),
        ("1_0.5", 10.5, "1_0.5"),
        ("1:30", 90, "1:30"),
        ("12:30:45", 45045, "12:30:45"),
        ("0b11", 3, "0b11"),
        ("-0x1F", -31, "-0x1F"),
        ("1e3", "1e3", 1000.0),
        ("1.5e3", "1.5e3", 1500.0),
    ],
)
def test_the_two_versions_of_yaml_read_these_otherwise(text, made, other):
    assert yaml.safe_load(text) == made == value(text, None, True)
    assert other_number(text, made) == other


@pytest.mark.parametrize(
    "text",
    ["0", "-1", "+5", "123", "1.10", "1.", ".5", "01", "1.5e+3", "0x1F", "010.5", ".inf", "-.inf", ".nan",
     "a1", "1.2.3", "2026-01-01", "-", "", "9" * 5_000],
)  # fmt: skip
def test_about_everything_else_they_agree_or_it_is_no_number(text):
    made = value(text, None, True) if len(text) < 1_000 else text

    assert other_number(text, made) is made or other_number(text, made) == made


def _found(document: str, file: str = "orders.odcs.yaml") -> list[tuple[str, int, int, str]]:
    return [
        (one.rule, one.at.line, one.at.column, one.path) for one in parse(document.encode(), file).findings
    ]


def test_a_number_in_a_mapping_and_one_in_a_list_are_found_at_their_place():
    document = rule_page.document("tags: [a, 010]\ncustomProperties: [{property: a, value: 1_000}]\n")[0]

    assert ("ambiguous-number", "customProperties[0].value") in [
        (rule, path) for rule, _, _, path in _found(document)
    ]


def test_what_is_in_quotes_is_a_text():
    assert _found(rule_page.document(SERVER % 123)[0].replace("123}", "123, description: '010'}")) == []


def test_a_value_of_the_wrong_type_is_told_once():
    found = _found(rule_page.document("version: 1_0\n")[0])

    assert [rule for rule, *_ in found] == ["wrong-type"]


def test_the_finding_says_what_each_reader_makes_of_it():
    (found,) = parse(rule_page.document(SERVER % "0123")[0].encode(), "a.yaml").findings

    assert found.message == "0123 is read as the number 83, but as the number 123 by YAML 1.2 parsers."
    assert found.hint == "Write 123 or 83 for a number, or use quotes for text: '0123'."


JSON = json.dumps(yaml.safe_load(rule_page.document("")[0]), indent=2)


def test_a_contract_in_json_is_read():
    assert _found(JSON, "orders.json") == []


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(JSON.replace("\n}", ",\n}"), id="a comma at the end of an object"),
        pytest.param(JSON.replace("\n  ]", ",\n  ]", 1), id="a comma at the end of a list"),
        pytest.param("// of sales\n" + JSON, id="a comment of JavaScript"),
        pytest.param("# of sales\n" + JSON, id="a comment of YAML"),
        pytest.param(JSON.replace('"active"', "active"), id="a word without quotes"),
        pytest.param(JSON.replace('"active"', "'active'"), id="single quotes"),
        pytest.param(JSON.replace('"active"', "NaN"), id="not a number"),
        pytest.param(rule_page.document("")[0], id="YAML"),
    ],
)
def test_a_file_that_is_called_json_is_json(text):
    assert [rule for rule, *_ in _found(text, "orders.JSON")] == ["yaml-syntax"]


def test_a_json_that_is_too_deep_is_refused_as_yaml_is():
    assert [rule for rule, *_ in _found("[" * 100_000, "orders.json")] == ["yaml-refused"]


RULES = """\
schema:
  - name: orders
    properties:
      - name: amount
        logicalType: number
        logicalTypeOptions: {multipleOf: 0.5, maximum: %s}
        quality: [{metric: nullValues, mustBeLessThan: %s}, {metric: nullValues, mustBeBetween: [0, %s]}]
"""


@pytest.mark.parametrize(
    ("text", "number", "spelling"),
    [
        ("1e-06", 1e-06, "1.0e-06"),
        ("1E3", 1000, "1000"),
        ("1.5e3", 1500, "1500"),
        ("2e22", 2e22, "2.0e+22"),
        ("1_000", 1000, "1000"),
        ("0o17", 15, "15"),
        ("08", 8, "8"),
    ],
)
def test_one_reading_as_a_number_counts_where_odcs_takes_a_number_T35(text, number, spelling):
    parsed = parse(rule_page.document(RULES % (text, text, text))[0].encode(), "orders.odcs.yaml")

    assert [(finding.rule, finding.severity, finding.hint) for finding in parsed.findings] == [
        ("ambiguous-number", "warning", f"Write {spelling}.")
    ] * 3
    (amount,) = parsed.contract.objects[0].properties
    less, between = amount.quality
    assert amount.logical_type_options.maximum == less.must_be_less_than == number
    assert between.must_be_between == [0, number]


@pytest.mark.parametrize("text", ["0123", "1:30", "1e999"])
def test_a_number_with_two_readings_stays_an_error_T35(text):
    findings = parse(rule_page.document(SERVER % text)[0].encode(), "orders.odcs.yaml").findings

    assert {finding.severity for finding in findings} == {"error"}


@pytest.mark.parametrize("text", ["1e-06", "1E+3", "-1e5", "2e22", "0.5e1"])
def test_a_json_contract_holds_the_numbers_of_json_T35(text):
    document = JSON.replace(
        '"name": "Orders"', f'"name": "Orders", "customProperties": [{{"property": "p", "value": {text}}}]'
    )

    parsed = parse(document.encode(), "orders.json")

    assert parsed.findings == []
    assert parsed.contract.custom_properties[0].value == json.loads(text)


@pytest.mark.parametrize("text", ["1e-06", "1e3", "1E-9", "2e22", "1.5e3", "-1e-300"])
def test_the_spelling_of_a_hint_is_a_number_to_every_reader_T35(text):
    hint = parse(rule_page.document(RULES % (text, 1, 1))[0].encode(), "a.yaml").findings[0].hint
    spelling = hint.removeprefix("Write ").removesuffix(".")

    assert yaml.safe_load(spelling) == float(text)
    assert other_number(spelling, yaml.safe_load(spelling)) == float(text)


def test_a_quoted_number_with_an_exponent_is_told_the_spelling_T35():
    found = parse(rule_page.document(RULES % (1, "'1e-06'", 1))[0].encode(), "a.yaml").findings

    assert [finding.hint for finding in found] == ["Write mustBeLessThan: 1.0e-06."]


_WORDS = ("yes", "no", "on", "off", "true", "false", "null", "y", "n")
_DATE_AND_TIME = r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt ][0-9]{1,2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?Z?)?"
_TEXTS = st.one_of(
    st.from_regex(r"[-+0-9._:eETZxbo]{1,12}", fullmatch=True),
    st.from_regex(_DATE_AND_TIME, fullmatch=True),
    st.sampled_from(
        [way(word) for word in _WORDS for way in (str, str.title, str.upper, str.swapcase, "{}s".format)]
    ),
    st.sampled_from(["~", "=", "", ".inf", "-.INF", ".NaN", "abc", "tRue", "<", "2026-W01-1"]),
)


@given(_TEXTS)
@settings(max_examples=500, deadline=None)
def test_a_plain_scalar_has_the_value_that_pyyaml_gives_it(text: str):
    tag = yaml.SafeLoader("").resolve(ScalarNode, text, (True, False))
    loader = yaml.SafeLoader("")
    try:
        expected = text if tag.endswith(":value") else loader.construct_object(ScalarNode(tag, text))
    except (ValueError, OverflowError):
        with pytest.raises(UnusableScalar):
            value(text, None, True)
        return

    actual = value(text, None, True)

    assert (type(actual), repr(actual)) == (type(expected), repr(expected))


def test_the_patterns_are_those_of_pyyaml():
    resolvers = {
        tag: pattern for pairs in Resolver.yaml_implicit_resolvers.values() for tag, pattern in pairs
    }

    assert {tag: (pattern.pattern, pattern.flags) for tag, pattern in NUMBERS_AND_DATES.items()} == {
        tag: (resolvers[tag].pattern, resolvers[tag].flags) for tag in NUMBERS_AND_DATES
    }
