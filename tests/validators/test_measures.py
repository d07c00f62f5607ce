"""The gate judges the metrics of dq's own engine at the line of what is wrong, once each."""

from __future__ import annotations

import pytest

from dq.contracts.outcome import Finding

HEAD = (
    "schema:\n"
    "  - name: flights\n"
    "    properties:\n"
    "      - {name: carrier, logicalType: string, description: The airline.}\n"
    "      - {name: pilot, logicalType: string, description: Who flies., classification: secret}\n"
    "      - {name: crew, logicalType: array, description: Who works., items: {logicalType: string}}\n"
    "      - {name: day, logicalType: date, description: The day.}\n"
    "      - {name: tail, logicalType: string, description: The plane.}\n"
    "      - name: air_time\n"
    "        logicalType: integer\n"
    "        description: Minutes in the air.\n"
    "        quality:\n"
    "          - type: custom\n"
    "            engine: dq\n"
    "            implementation:\n"
)


# The base contract stands above the fragment.
BEFORE = 9


def found(lint_fragment, implementation: str) -> list[Finding]:
    lines = "".join(f"              {line}\n" for line in implementation.splitlines())
    return [one for one in lint_fragment(HEAD + lines) if one.rule in ("measure-invalid", "unenforced")]


FINE = [
    "check: min\nmustBe: 3",
    "check: sum\narguments: {by: carrier}\nmustBeBetween: [0, 9]",
    "check: max\narguments: {by: [carrier, day], against: previous}\nunit: percent\nmustBeLessThan: 50",
    "check: mean\narguments: {against: usual, runs: 14, minimum: 3, deviations: 4, slack: 5}",
    "check: quantile\narguments: {q: 0.5}\nmustBeGreaterThan: 1",
    "check: sequenceGaps\narguments: {step: 5, start: 1}\nunit: percent\nmustBe: 0",
    'check: compareColumns\narguments: {operator: "!=", property: air_time}',
    "check: distinctCount\nunit: rows\nmustNotBe: 0",
]
# Story -> (implementation, the line of the mistake, words of the message).
WRONG = {
    "misspelt argument": ("check: sum\narguments:\n  bye: carrier\nmustBe: 1", 18, "sum has no key 'bye'"),
    "misspelt argument that is needed": (
        'check: compareColumns\narguments:\n  operator: "<="\n  other: air_time',
        19,
        "compareColumns has no key 'other'",
    ),
    "share by another word": (
        "check: quantile\narguments:\n  share: 0.5\nmustBe: 1",
        18,
        "quantile has no key 'share'",
    ),
    "share beyond one": (
        "check: quantile\narguments:\n  q: 1.5\nmustBe: 1",
        18,
        "share of a quantile is 1.5",
    ),
    "share as a text": ("check: quantile\narguments:\n  q: median\nmustBe: 1", 18, "is 'median'"),
    "no share": ("check: quantile\nmustBe: 1", 16, "argument 'q' is missing"),
    "group that is not there": (
        "check: max\narguments:\n  by:\n    - day\n    - x\nmustBe: 1",
        20,
        "'x' is not a column of the object",
    ),
    "group that is classified": (
        "check: max\narguments:\n  by:\n    - day\n    - pilot\nmustBe: 1",
        20,
        "classified",
    ),
    "group by a list": ("check: max\narguments:\n  by: crew\nmustBe: 1", 18, "cannot be grouped by"),
    "group twice": ("check: max\narguments:\n  by: [day, day]\nmustBe: 1", 18, "is listed twice"),
    "text as a bound": ("check: max\nmustBe: many", 17, "mustBe is 'many'"),
    "flag as a bound": ("check: max\nmustBe: true", 17, "mustBe is True"),
    "range the wrong way": ("check: max\nmustBeBetween: [9, 1]", 17, "mustBeBetween is [9, 1]"),
    "two bounds": ("check: max\nmustBe: 1\nmustNotBe: 2", 18, "2 operators"),
    "no bound": ("check: max", 16, "has no bound"),
    "bound beside the usual": (
        "check: max\narguments: {against: usual}\nmustBe: 1",
        18,
        "earlier runs set the bounds",
    ),
    "unit of nothing": ("check: max\nunit: percent\nmustBe: 1", 17, "no unit 'percent'"),
    "unit that is none": ("check: distinctCount\nunit: dozens\nmustBe: 1", 17, "no unit 'dozens'"),
    "comparison that is none": (
        "check: max\narguments:\n  against: yesterday\nmustBe: 1",
        18,
        "is 'yesterday'",
    ),
    "band without the usual": (
        "check: max\narguments:\n  runs: 5\nmustBe: 1",
        18,
        "only applies to a comparison",
    ),
    "never learns": (
        "check: max\narguments: {against: usual, runs: 3,\n  minimum: 9}",
        18,
        "learning would never end",
    ),
    "step of nothing": ("check: sequenceGaps\narguments:\n  step: 0\nmustBe: 1", 18, "step is 0"),
    "compared with a text": (
        'check: compareColumns\narguments: {operator: "<", property: tail}',
        17,
        "cannot be compared",
    ),
    "operator that is none": (
        "check: compareColumns\narguments:\n  property: day\n  operator: =<",
        19,
        "'=<'",
    ),
    "key that is none": ("check: max\nmust: 1\nmustBe: 1", 17, "the implementation has no key 'must'"),
    "arguments that are a list": ("check: max\narguments: [1]\nmustBe: 1", 17, "not a mapping"),
}


@pytest.mark.parametrize("implementation", FINE)
def test_a_metric_that_can_be_measured_is_fine(lint_fragment, implementation: str) -> None:
    assert found(lint_fragment, implementation) == []


@pytest.mark.parametrize("story", WRONG)
def test_a_mistake_is_one_finding_at_its_line(lint_fragment, story: str) -> None:
    implementation, line, said = WRONG[story]

    (one,) = found(lint_fragment, implementation)

    assert (one.rule, one.at.line - BEFORE, said in one.message) == ("measure-invalid", line, True), str(one)


def test_every_mistake_of_a_rule_is_told_at_once(lint_fragment) -> None:
    many = "check: quantile\narguments:\n  q: 2\n  bye: carrier\nunit: rows\nmustBe: x"

    assert [one.at.line - BEFORE for one in found(lint_fragment, many)] == [18, 19, 20, 21]


AGREES = (
    "servers:\n"
    "  - {server: eu, type: local, path: eu, format: parquet}\n"
    "schema:\n"
    "  - name: flights\n"
    "    properties:\n"
    "      - {name: tail, logicalType: string, description: The plane.}\n"
    "      - {name: air_time, logicalType: integer, description: Minutes in the air.}\n"
    "    quality:\n"
    "      - type: custom\n"
    "        engine: dq\n"
    "        implementation:\n"
    "          check: agrees\n"
    "          arguments: "
)


@pytest.mark.parametrize(
    ("arguments", "messages"),
    [
        ("{with: {server: eu}, key: [tail], tolerance: {air_time: 0.5}, mustBe: 0}", []),
        ("{with: {server: us}}", ["'us' is not a server of this contract."]),
        ("{with: {object: flight}}", ["'flight' is not an object of this contract."]),
        ("{with: {object: flights}}", ["the other side is the object itself."]),
        ("{with: {sever: eu}}", ["with has no key 'sever'."]),
        ("{with: eu}", ["with is 'eu'."]),
        ("{with: {server: eu}, key: [tial]}", ["'tial' is not a column of the object."]),
        ("{with: {server: eu}, rename: {tial: x}}", ["'tial' is not a column of the object."]),
        ("{with: {server: eu}, ingore: [x]}", ["agrees has no key 'ingore'."]),
        ("{with: {server: eu}, tolerance: {air_time: 1}}", ["a tolerance needs a key."]),
        (
            "{with: {server: eu}, key: [tail], tolerance: {air_time: x}}",
            ["the tolerance of 'air_time' is 'x'."],
        ),
        (
            "{with: {server: eu}, mustBe: 0, mustBeLessThan: 9}",
            ["the rule has 2 operators (mustBe, mustBeLessThan)."],
        ),
        ("{with: {server: eu}, unit: kilos}", ["agrees has no unit 'kilos'."]),
        ("{with: {server: eu}, cycles: 7}", []),
        *(
            (f"{{with: {{server: eu}}, cycles: {wrong}}}", [f"cycles is {shown}."])
            for wrong, shown in {
                "0": 0,
                "-7": -7,
                "367": 367,
                "1.5": 1.5,
                "7.0": 7.0,
                "true": True,
                "seven": "'seven'",
                "7d": "'7d'",
                "[7]": [7],
                "null": None,
                ".inf": "inf",
            }.items()
        ),
        (
            "{with: {contract: ledger, object: bookings}}",
            ["with 'ledger/bookings' is not in any contract that was read."],
        ),
    ],
)
def test_arguments_of_a_comparison_with_another_side(
    lint_fragment, arguments: str, messages: list[str]
) -> None:
    _has_findings(lint_fragment, AGREES + arguments, messages)


@pytest.mark.parametrize(
    ("arguments", "messages"),
    [
        ("{with: {server: eu}}", []),
        (
            "{with: {server: eu}, by: tail, sums: air_time, tolerance: {air_time: 5}, mustBe: 0, unit: '%'}",
            [],
        ),
        ("{with: {object: flights, where: air_time > 0}}", []),
        (
            "{with: {server: eu, where: rand() > 0.5}}",
            ["where is refused: the function 'rand' is not allowed; did you mean 'rank'?"],
        ),
        ("{with: {server: eu, where: 1}}", ["where is 1."]),
        ("{with: {server: eu}, key: [tail]}", ["agreesInSum has no key 'key'."]),
        (
            "{with: {server: eu}, by: [tial], sums: [air_tame]}",
            ["'tial' is not a column of the object.", "'air_tame' is not a column of the object."],
        ),
        ("{with: {server: eu}, sums: [tail]}", ["'tail' has the type string, which has no sum."]),
        (
            "{with: {server: eu}, by: [secret]}",
            ["'secret' is classified, but its values would be shown as group names."],
        ),
        ("{with: {server: eu}, tolerance: {air_time: 1}}", ["'air_time' is not in sums."]),
        (
            "{with: {server: eu}, sums: [air_time], mustBeLessThan: 5}",
            ["a difference of sums is bounded in percent."],
        ),
        (
            "{with: {server: eu}, sums: [air_time], unit: rows}",
            ["a difference of sums is bounded in percent."],
        ),
        ("{with: {server: eu}, mustBeLessThan: 5, unit: kilos}", ["agreesInSum has no unit 'kilos'."]),
        ("{with: {server: eu}, mustBeLessThan: x}", ["mustBeLessThan is 'x'."]),
        (
            "{with: {contract: ledger, object: bookings}, mustBeLessThan: 5}",
            ["with 'ledger/bookings' is not in any contract that was read."],
        ),
    ],
)
def test_arguments_of_a_comparison_of_sums(lint_fragment, arguments: str, messages: list[str]) -> None:
    secret = "      - {name: secret, logicalType: string, classification: restricted, description: S.}"
    rule = AGREES.replace("    quality:", f"{secret}\n    quality:").replace("agrees", "agreesInSum")

    _has_findings(lint_fragment, rule + arguments, messages)


def _has_findings(lint_fragment, text: str, messages: list[str]) -> None:
    findings = [
        finding
        for finding in lint_fragment(text + "\n")
        if finding.rule in ("measure-invalid", "reference-outside", "unenforced")
    ]

    assert [finding.message for finding in findings] == messages
    assert all(finding.at.line >= BEFORE + 11 for finding in findings)
