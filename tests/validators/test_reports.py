"""Reports read well, are stable for machines, and never steer the reader's terminal."""

from __future__ import annotations

import json
import re
from datetime import date
from pathlib import Path, PurePosixPath
from xml.etree import ElementTree

import pytest
from fakes import golden
from jsonschema import Draft202012Validator

from dq.contracts.escaping import markdown_text
from dq.contracts.outcome import Finding, Location, Severity
from dq.validators.lint import LintResult, PathBase, TerminalOptions, lint_files, relocate
from dq.validators.policy import file as policy_file
from dq.validators.reports import load_reports, markdown, names
from dq.validators.reports.json import findings_schema
from dq.validators.rule import Rule

GOLDEN = Path(__file__).parent / "golden"
REPORTS = load_reports()
FILES = ("broken.odcs.yaml", "faulty.odcs.yaml", "good.odcs.yaml", "returns.odcs.yaml")


@pytest.fixture(scope="module")
def linted(rules: dict[str, Rule]) -> LintResult:
    """A registry with broken files, a policy that changes severities, and a fault between two files."""
    file = GOLDEN / "dq-policy.yaml"
    chosen, wrong = policy_file.read(file.read_bytes(), file.name, rules)
    assert wrong == []
    files = [(name, (GOLDEN / name).read_bytes()) for name in FILES]
    return lint_files(files, rules=rules, policy=chosen, today=date(2026, 11, 21))


@pytest.mark.parametrize("name", REPORTS)
def test_a_report_looks_like_its_golden_file(linted: LintResult, name: str) -> None:
    golden.compare(GOLDEN / f"report.{name}", REPORTS[name].render(linted, TerminalOptions()))


def test_every_file_in_the_folder_is_a_format() -> None:
    folder = Path(__file__).parents[2] / "validators" / "reports"

    on_disk = sorted(path.stem for path in folder.glob("*.py") if not path.stem.startswith("_"))

    assert on_disk == list(REPORTS) == names()


def test_the_registry_has_what_the_golden_files_are_for(linted: LintResult) -> None:
    found = {(one.rule, one.severity) for one in linted.findings}

    assert ("missing-owner", Severity.CRITICAL) in found
    assert ("duplicate-contract", Severity.ERROR) in found


def _one(source: str, line: int, column: int, message: str = "wrong.", rule: str = "a-rule") -> LintResult:
    finding = Finding(rule, Severity.ERROR, message, "Mend it.", Location("f", line, column))
    return LintResult((finding,), ("f",), {"f": source.encode()})


def _many(severity: Severity, number: int, file: str = "f") -> tuple[Finding, ...]:
    return tuple(
        Finding("a-rule", severity, f"wrong {index}.", "", Location(file, index + 1))
        for index in range(number)
    )


# --- text


def test_nothing_found_is_said_with_the_number_of_files() -> None:
    assert (
        REPORTS["text"].render(LintResult((), ("a", "b")), TerminalOptions()) == "2 contracts, no findings.\n"
    )


def test_color_changes_nothing_but_the_color(linted: LintResult) -> None:
    painted = REPORTS["text"].render(linted, TerminalOptions(lambda text, code: f"\x1b[{code}m{text}\x1b[0m"))

    assert "\x1b[31;1merror\x1b[0m" in painted
    assert re.sub("\x1b\\[[0-9;]*m", "", painted) == REPORTS["text"].render(linted, TerminalOptions())


def test_the_caret_stands_below_the_place_in_a_line_too_long_for_the_screen() -> None:
    text = REPORTS["text"].render(
        _one("a: " + "x" * 300 + "HERE" + "y" * 300, 1, 304), TerminalOptions(width=60)
    )

    line, caret = text.splitlines()[2:4]
    assert line[caret.index("^") :].startswith("HERE")
    assert max(len(one) for one in text.splitlines()[:-1]) <= 60


def test_the_caret_knows_that_some_characters_are_wide() -> None:
    text = REPORTS["text"].render(_one("名: 'x'", 1, 4), TerminalOptions())

    assert text.splitlines()[3] == "      |     ^"


def test_the_line_is_the_one_that_yaml_counted() -> None:
    text = REPORTS["text"].render(_one("a: 1\r\nb: 2\u2028c: 3\rd: 4", 4, 4), TerminalOptions())

    assert "4 | d: 4" in text


def test_what_could_steer_a_terminal_is_not_printed() -> None:
    text = REPORTS["text"].render(_one("a: '\x1b[2J'", 1, 4, "'\x1b[2J' is wrong."), TerminalOptions())

    assert "\x1b" not in text


@pytest.mark.parametrize("command", ["::stop-commands::x", "##[add-mask]x", "##[[group]"])
def test_what_could_steer_the_runner_of_a_log_is_not_printed(command: str) -> None:
    finding = Finding("a-rule", Severity.ERROR, f"{'x' * 70} {command} {command}", command, Location(command))

    text = REPORTS["text"].render(LintResult((finding,), ()), TerminalOptions(width=60))

    assert not any(line.lstrip().startswith("::") for line in text.splitlines())
    assert "##[" not in text


# --- json


def test_json_is_as_its_schema_says(linted: LintResult) -> None:
    schema = findings_schema()
    Draft202012Validator.check_schema(schema)

    Draft202012Validator(schema).validate(json.loads(REPORTS["json"].render(linted, TerminalOptions())))


def test_json_without_findings_is_as_its_schema_says() -> None:
    document = json.loads(REPORTS["json"].render(LintResult((), ("a",)), TerminalOptions()))

    Draft202012Validator(findings_schema()).validate(document)


@pytest.mark.parametrize(
    ("key", "value"), [("severity", "fatal"), ("line", 0), ("rule", "A Rule"), ("file", ""), ("hint", None)]
)
def test_the_schema_of_json_refuses_what_is_never_printed(
    linted: LintResult, key: str, value: object
) -> None:
    document = json.loads(REPORTS["json"].render(linted, TerminalOptions()))
    document["findings"][0][key] = value

    assert not Draft202012Validator(findings_schema()).is_valid(document)


def test_json_counts_files_and_severities(linted: LintResult) -> None:
    document = json.loads(REPORTS["json"].render(linted, TerminalOptions()))

    assert document["counts"]["files"] == len(FILES)
    assert sum(document["counts"].values()) - len(FILES) == len(document["findings"])


# --- github


def test_what_means_something_in_a_workflow_command_is_escaped() -> None:
    finding = Finding(
        "a-rule", Severity.ERROR, "50%: a,b\r\n::error::x", "Mend.", Location("a,b:c%.yaml", 3, 5)
    )

    text = REPORTS["github"].render(LintResult((finding,), ("f",)), TerminalOptions())

    assert text.splitlines() == [
        "::error file=a%2Cb%3Ac%25.yaml,line=3,col=5,title=a-rule::50%25: a,b\\r\\n::error::x%0AMend.",
        "dq: 1 contract, 1 error.",
    ]


def test_ten_annotations_of_a_level_are_shown_one_by_one() -> None:
    text = REPORTS["github"].render(LintResult(_many(Severity.ERROR, 10), ("f",)), TerminalOptions())

    assert [line.rpartition("::")[2] for line in text.splitlines()[:-1]] == [f"wrong {n}." for n in range(10)]


def test_the_tenth_says_where_the_rest_of_many_are() -> None:
    findings = (
        *_many(Severity.ERROR, 12, "a"),
        *_many(Severity.ERROR, 3, "b"),
        *_many(Severity.CRITICAL, 1, "c"),
    )

    errors = (
        REPORTS["github"].render(LintResult(findings, ("a", "b", "c")), TerminalOptions()).splitlines()[:-1]
    )

    assert len(errors) == 10
    assert errors[0].startswith("::error file=c,")
    assert errors[-1] == "::error title=7 errors more::In a (4), b (3). Run 'dq validate' to see all of them."


def test_each_level_has_its_own_ten() -> None:
    findings = (*_many(Severity.INFO, 11), *_many(Severity.WARNING, 11), *_many(Severity.ERROR, 11))

    lines = REPORTS["github"].render(LintResult(findings, ("f",)), TerminalOptions()).splitlines()[:-1]

    assert [line.split()[0] for line in lines] == ["::error"] * 10 + ["::warning"] * 10 + ["::notice"] * 10


# --- junit


def test_junit_has_a_suite_for_every_file_and_counts_them(linted: LintResult) -> None:
    top = ElementTree.fromstring(REPORTS["junit"].render(linted, TerminalOptions()))

    assert [suite.get("name") for suite in top] == ["broken.odcs.yaml", "defective", "good.odcs.yaml", "good"]
    for suite in top:
        assert int(suite.get("tests", "")) == len(suite.findall("testcase"))
        assert int(suite.get("failures", "")) == len(suite.findall("testcase/failure"))
    assert int(top.get("tests", "")) == len(top.findall("*/testcase"))
    assert int(top.get("failures", "")) == len(top.findall("*/testcase/failure"))


def test_junit_fails_no_case_for_a_warning() -> None:
    top = ElementTree.fromstring(
        REPORTS["junit"].render(LintResult(_many(Severity.WARNING, 2), ("f",)), TerminalOptions())
    )

    assert top.find("*/testcase/failure") is None
    assert top.findtext("*/testcase/system-out") == "f:1:1: warning: wrong 0.\nf:2:1: warning: wrong 1."


def test_junit_is_xml_whatever_the_contract_says() -> None:
    text = REPORTS["junit"].render(
        _one("", 1, 1, "'\x00\x1b]]>&<a b=\"'\ufffe' is wrong."), TerminalOptions()
    )

    top = ElementTree.fromstring(text.encode())

    assert top.findtext("*/testcase/failure", "").startswith(
        "f:1:1: error: '\\x00\\x1b]]>&<a b=\"'\\ufffe' is wrong."
    )


# --- markdown


def test_markdown_begins_with_the_mark_of_the_one_comment(linted: LintResult) -> None:
    assert REPORTS["markdown"].render(linted, TerminalOptions()).startswith("<!-- dq validate -->\n\n## ")


def test_markdown_shows_text_as_text_and_notifies_nobody() -> None:
    shown = markdown_text("<b>@ana</b> | *x* [y](https://z.example) #12 `q` <i> &amp;")

    assert shown == (
        r"`<b>@ana</b>` &#124; \*x\* `[y](https://z.example)` `#12` &#96;q&#96; &lt;i&gt; `&amp;`"
    )


def test_markdown_folds_what_is_beyond_twenty() -> None:
    text = REPORTS["markdown"].render(LintResult(_many(Severity.ERROR, 23), ("f",)), TerminalOptions())

    before, folded = text.split("<details><summary>3 more findings</summary>")
    assert before.count("| ❌ error |") == 20
    assert folded.count("| ❌ error |") == 3


def test_markdown_fits_into_a_comment_however_much_was_found() -> None:
    text = REPORTS["markdown"].render(LintResult(_many(Severity.ERROR, 5000), ("f",)), TerminalOptions())

    assert len(text) < 65_536
    assert re.search(r"\d+ findings did not fit here", text)


def test_markdown_has_room_for_sections_of_others(linted: LintResult) -> None:
    changes = "### Changes\n\n" + markdown.table(("what", "verdict"), [("`orders.amount` removed", "break")])

    text = markdown.summary(linted, [changes])

    assert text.index("## Data contracts") < text.index("### Changes") < text.index("| where |")


# --- where files are named from


def test_files_are_named_from_a_folder_above_the_registry() -> None:
    linted = LintResult(_many(Severity.ERROR, 1, "a.yaml"), ("a.yaml", "/far/b.yaml"), {"a.yaml": b"x"})

    seen = relocate(linted, PurePosixPath("data/contracts"))

    assert seen.findings[0].at.file == "data/contracts/a.yaml"
    assert seen.files == ("data/contracts/a.yaml", "/far/b.yaml")
    assert seen.sources == {"data/contracts/a.yaml": b"x"}


def test_what_a_pull_request_shows_is_named_from_the_repository() -> None:
    assert {name for name, one in REPORTS.items() if one.path_base is PathBase.REPOSITORY} == {
        "github", "junit", "markdown", "sarif",
    }  # fmt: skip
