"""Reports read well, are stable for machines, and never steer the reader's terminal."""

from __future__ import annotations

import json
import re
from datetime import date
from pathlib import Path

import pytest

from dq.contracts.outcome import Finding, Location, Severity
from dq.validators.lint import Linted, lint_files
from dq.validators.report import Screen, reports_of
from dq.validators.rule import Rule

GOLDEN = Path(__file__).parent / "golden"
REPORTS = reports_of()
FILES = ("broken.odcs.yaml", "faulty.odcs.yaml", "good.odcs.yaml")


@pytest.fixture(scope="module")
def linted(rules: dict[str, Rule]) -> Linted:
    files = [(name, (GOLDEN / name).read_bytes()) for name in FILES]
    return lint_files(files, rules=rules, today=date(2026, 11, 21))


@pytest.mark.parametrize("name", ["text", "json"])
def test_a_report_looks_like_its_golden_file(linted: Linted, name: str) -> None:
    assert REPORTS[name].render(linted, Screen()) == (GOLDEN / f"report.{name}").read_text("utf-8")


def test_every_file_in_the_folder_is_a_format() -> None:
    folder = Path(__file__).parents[2] / "validators" / "reports"

    assert sorted(path.stem for path in folder.glob("*.py") if not path.stem.startswith("_")) == list(REPORTS)


def test_json_counts_files_and_severities(linted: Linted) -> None:
    document = json.loads(REPORTS["json"].render(linted, Screen()))

    assert document["counts"]["files"] == len(FILES)
    assert sum(document["counts"].values()) - len(FILES) == len(document["findings"])
    assert list(document["findings"][0]) == [
        "rule", "severity", "message", "mend", "file", "line", "column", "path", "contract",
    ]  # fmt: skip


def test_nothing_found_is_said_with_the_number_of_files() -> None:
    assert REPORTS["text"].render(Linted((), ("a", "b")), Screen()) == "2 contracts, no findings.\n"


def test_color_changes_nothing_but_the_color(linted: Linted) -> None:
    painted = REPORTS["text"].render(linted, Screen(color=True))

    assert "\x1b[31;1merror\x1b[0m" in painted
    assert re.sub("\x1b\\[[0-9;]*m", "", painted) == REPORTS["text"].render(linted, Screen())


def _one(source: str, line: int, column: int, message: str = "wrong.") -> Linted:
    finding = Finding("a-rule", Severity.ERROR, message, "Mend it.", Location("f", line, column))
    return Linted((finding,), ("f",), {"f": source.encode()})


def test_the_caret_stands_below_the_place_in_a_line_too_long_for_the_screen() -> None:
    text = REPORTS["text"].render(_one("a: " + "x" * 300 + "HERE" + "y" * 300, 1, 304), Screen(width=60))

    line, caret = text.splitlines()[2:4]
    assert line[caret.index("^") :].startswith("HERE")
    assert max(len(one) for one in text.splitlines()) <= 60


def test_the_caret_knows_that_some_characters_are_wide() -> None:
    text = REPORTS["text"].render(_one("名: 'x'", 1, 4), Screen())

    assert text.splitlines()[3] == "      |     ^"


def test_the_line_is_the_one_that_yaml_counted() -> None:
    text = REPORTS["text"].render(_one("a: 1\r\nb: 2\u2028c: 3\rd: 4", 4, 4), Screen())

    assert "4 | d: 4" in text


def test_what_could_steer_a_terminal_is_not_printed() -> None:
    text = REPORTS["text"].render(_one("a: '\x1b[2J'", 1, 4, "'\x1b[2J' is wrong."), Screen())

    assert "\x1b" not in text
