"""Nothing that a stranger writes steers who reads dq's output: a terminal, a runner of CI, a page, a program.

Hostile texts, wherever a contract, its data, its file's name or a hook's command line can hold them, times
every command, times every format.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from urllib.parse import unquote_to_bytes
from xml.etree import ElementTree

import pytest
from fakes.strangers import TEXTS, Said, file_name, quiet_environment, said, steering, world
from fragments.sarif import SCHEMA as SARIF
from jsonschema import Draft202012Validator
from markdown_it import MarkdownIt
from markdown_it.token import Token

from dq.contracts.outcome import one_line
from dq.validators.reports import names
from dq.validators.reports.json import findings_schema

BUG = 70
# What no XML 1.0 document can hold, in whatever way it is written.
NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# The mark of the comment, and what folds the rest of the findings away.
OURS = re.compile(r"<!-- dq validate -->\n*|<details><summary>\d+ more findings?</summary>\n*|</details>\n*")
# What GitHub makes a link or a notification of, in text that is no code.
ALIVE = re.compile(r"@\w|://|www\.|#\d|GH-\d|:[\w+-]+:|mailto:", re.IGNORECASE)


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Path]]:
    """A folder for each text, full of it."""
    folders = {name: tmp_path_factory.mktemp(f"world{number}") for number, name in enumerate(TEXTS)}
    with quiet_environment():
        for name, folder in folders.items():
            world(folder, TEXTS[name])
        yield folders


@cache
def answered(folder: Path, words: tuple[str, ...]) -> Said:
    """The command in this world. Several tests read the same reports."""
    return said(*words, folder=folder)


@cache
def reported(folder: Path, words: tuple[str, ...]) -> tuple[Said, dict[str, str]]:
    """The command in this world, and what it wrote as a report in each format."""
    asked = [word for form in names() for word in ("--report", f"{form}=report.{form}")]
    found = said(*words, *asked, folder=folder)
    return found, {form: (folder / f"report.{form}").read_bytes().decode() for form in names()}


def each(worlds: dict[str, Path], arguments: Callable[[str], list[str]]) -> Iterator[tuple[str, str, Said]]:
    """The command in the world of each text, but for what no command line can hold."""
    for name, folder in worlds.items():
        words = arguments(TEXTS[name].replace("\0", ""))
        again = words[:2] == ["validate", "registry"]
        yield name, TEXTS[name], answered(folder, (*words,)) if again else said(*words, folder=folder)


def harm(found: Said, *, own_commands: bool = False) -> list[str]:
    """What a run did to its readers, and whether it was a bug of dq's."""
    wrong = [*steering(found.out, own_commands=own_commands), *steering(found.err)]
    return [*wrong, *(found.err.splitlines()[-8:] if found.code == BUG or "Traceback" in found.err else [])]


AT = ("--as-of", "2026-05-12T12:00:00Z")
# Those with a report of findings; their formats are tested by what reads them, below.
REPORTING: dict[str, list[str]] = {
    "validate a registry": ["validate", "registry"],
    "validate against a base": ["validate", "registry", "--base", "main"],
    "validate under a policy of texts": ["validate", "policy"],
    "validate what is no YAML": ["validate", "raw.odcs.yaml"],
    "sample": ["sample", "one.odcs.yaml", "orders.csv"],
}
# Costly, so that one run writes all reports: what a format prints is what it writes.
AT_ONCE = ("validate against a base", "validate under a policy of texts", "validate what is no YAML")
COMMANDS: dict[str, Callable[[str], list[str]]] = {
    **{
        f"{story}, {form}": lambda _, words=words, form=form: [*words, "--format", form]
        for story, words in REPORTING.items()
        for form in names()
        if story not in AT_ONCE
    },
    "validate with a policy that is refused": lambda _: ["validate", "refused"],
    "validate a path": lambda text: ["validate", text],
    "validate in a format": lambda text: ["validate", "registry", "--format", text],
    "validate with a policy": lambda text: ["validate", "registry", "--policy", text],
    "validate against a reference": lambda text: ["validate", "registry", "--base", text or "x"],
    "validate in a mode": lambda text: ["validate", "registry", "--base", "main", "--mode", text],
    "validate with a report": lambda text: ["validate", "registry", "--report", text],
    "validate with a report into a file": lambda text: ["validate", "registry", "--report", f"{text}=x"],
    "an option": lambda text: ["validate", f"--{text}"],
    "a short option": lambda text: ["validate", f"-{text}"],
    "a command": lambda text: [text],
    "a command of a group": lambda text: ["schedule", text],
    "a value that is none of its option's": lambda text: ["status", "--format", text],
    "a number": lambda text: ["schedule", "next", "0 6 * * *", "--count", text],
    "too many arguments": lambda text: ["schema", "policy", text],
    "diff": lambda _: ["diff", "one.odcs.yaml", "two.odcs.yaml"],
    "diff, json": lambda _: ["diff", "one.odcs.yaml", "two.odcs.yaml", "--format", "json"],
    "subscriptions": lambda _: ["subscriptions"],
    "subscriptions, json": lambda _: ["subscriptions", "--format", "json"],
    "subscriptions, markdown": lambda _: ["subscriptions", "--format", "markdown"],
    "diff with a subscriber": lambda _: [
        "diff", "one.odcs.yaml", "two.odcs.yaml", "--subscriptions", "subscriptions",
    ],
    "diff what is full of mistakes": lambda _: [
        "diff", "one.odcs.yaml", "registry/everywhere.odcs.yaml",
    ],
    "diff of no file": lambda text: ["diff", text, text],
    "diff of no reference": lambda text: ["diff", f"x{text}:one.odcs.yaml", "one.odcs.yaml"],
    "diff as of": lambda text: ["diff", "one.odcs.yaml", "two.odcs.yaml", "--today", text],
    "diff for engines": lambda text: ["diff", "one.odcs.yaml", "two.odcs.yaml", "--engines", text],
    "diff for a format": lambda text: ["diff", "one.odcs.yaml", "two.odcs.yaml", "--table-format", text],
    "fmt --check": lambda _: ["fmt", "registry", "--check"],
    "fmt --diff": lambda _: ["fmt", "registry", "raw.odcs.yaml", "--diff"],
    "fmt of no path": lambda text: ["fmt", text],
    "explain a contract": lambda _: ["explain", "one.odcs.yaml"],
    "explain a contract, json": lambda _: ["explain", "one.odcs.yaml", "--format", "json"],
    "explain what is full of mistakes": lambda _: ["explain", "registry/everywhere.odcs.yaml"],
    "explain a rule": lambda text: ["explain", text],
    "register": lambda _: ["register", "one.odcs.yaml"],
    "register, json": lambda _: ["register", "one.odcs.yaml", "--format", "json"],
    "register --apply": lambda _: ["register", "one.odcs.yaml", "--apply"],
    "register what has changed": lambda _: ["register", "two.odcs.yaml"],
    "register a registry": lambda _: ["register", "registry"],
    "register on a server": lambda text: ["register", "one.odcs.yaml", "--server", text or "x"],
    "register in a catalog": lambda text: ["register", "one.odcs.yaml", "--catalog", text],
    "watch": lambda _: ["watch", "one.odcs.yaml", *AT],
    "watch, json": lambda _: ["watch", "one.odcs.yaml", "--format", "json", *AT],
    "watch a registry": lambda _: ["watch", "registry", *AT],
    "watch what is delivered late": lambda _: [
        "watch", "one.odcs.yaml", "--channel", "console", "--as-of", "2026-05-20T12:00:00Z",
    ],
    "watch on a channel": lambda text: ["watch", "one.odcs.yaml", "--channel", text],
    "watch with a pause": lambda text: ["watch", "one.odcs.yaml", "--every", text or "x"],
    "watch on a server": lambda text: ["watch", "one.odcs.yaml", "--server", f"x{text}"],
    "watch as of": lambda text: ["watch", "one.odcs.yaml", "--as-of", text or "x"],
    "status": lambda _: ["status", "one.odcs.yaml", *AT],
    "status, json": lambda _: ["status", "one.odcs.yaml", "--format", "json", *AT],
    "status of a registry": lambda _: ["status", "registry", *AT],
    "status of no path": lambda text: ["status", text],
    "publish": lambda _: ["publish", "one.odcs.yaml", "--partition", "day=2026-05-10"],
    "publish, json": lambda _: [
        "publish", "one.odcs.yaml", "--partition", "day=2026-05-10", "--format", "json",
    ],
    "publish a partition": lambda text: ["publish", "one.odcs.yaml", "--partition", f"day={text}"],
    "publish what is no partition": lambda text: ["publish", "one.odcs.yaml", "--partition", text],
    "publish an object": lambda text: ["publish", "one.odcs.yaml", "--object", text or "x"],
    "sample of no file": lambda text: ["sample", "one.odcs.yaml", text],
    "sample of no object": lambda text: ["sample", "one.odcs.yaml", f"orders.csv={text}"],
    "sample in an encoding": lambda text: ["sample", "one.odcs.yaml", "orders.csv", "--encoding", text],
    "sample with a delimiter": lambda text: ["sample", "one.odcs.yaml", "orders.csv", "--delimiter", text],
    "schedule": lambda text: ["schedule", "next", text],
    "schedule, json": lambda text: ["schedule", "next", text, "--format", "json"],
    "schedule in a zone": lambda text: ["schedule", "next", "0 6 * * *", "--tz", text],
    "schedule after": lambda text: ["schedule", "next", "0 6 * * *", "--after", text or "x"],
    "schema": lambda text: ["schema", text],
    "init": lambda text: [
        "init", "made", "--id", "a", "--domain", text, "--owner", text, "--channel", text,
        "--schedule", "0 6 * * *", "--tz", "UTC", "--location", text,
    ],
    "init an id": lambda text: [
        "init", "made", "--id", text, "--domain", "a", "--owner", "a", "--channel", "a",
        "--schedule", text, "--tz", text,
    ],
    "init where something is": lambda text: [
        "init", "policy", "--id", "orders", "--domain", "a", "--owner", "a", "--channel", "a",
        "--schedule", "0 6 * * *", "--tz", text,
    ],
    "check of no path": lambda text: ["check", text],
    "check a partition": lambda text: ["check", "one.odcs.yaml", "--partition", text.replace("=", "")],
    "check an object": lambda text: ["check", "one.odcs.yaml", "--object", text or "x"],
    "check a rule": lambda text: ["check", "one.odcs.yaml", "--rule", text],
    "check a cycle": lambda text: ["check", "one.odcs.yaml", "--cycle", text],
    "check what is full of mistakes": lambda _: [
        "check", "registry/everywhere.odcs.yaml", "--cycle", "2026-05-10T06:00:00Z",
    ],
    "emr": lambda text: [
        "emr", "--application", text, "--role", text, "--entry", text, "--environment", text,
        "--name", text, "--tag", f"a={text}", "--conf", f"a={text}", "--", "check", text,
    ],
    "emr with a tag": lambda text: [
        "emr", "--application", "a", "--role", "a", "--entry", "a", "--environment", "a", "--tag", text,
        "--", "a",
    ],
    "demo where something is": lambda text: ["demo", "--folder", f"there/{file_name(text)}"],
}  # fmt: skip


@pytest.mark.parametrize("story", COMMANDS)
def test_nothing_that_is_printed_steers_a_terminal_or_a_runner(worlds: dict[str, Path], story: str):
    own = story.endswith(", github")

    done = {name: harm(found, own_commands=own) for name, _, found in each(worlds, COMMANDS[story])}

    assert {name: wrong for name, wrong in done.items() if wrong} == {}


@pytest.mark.parametrize("form", names())
@pytest.mark.parametrize("story", AT_ONCE)
def test_no_report_steers_who_reads_it(worlds: dict[str, Path], story: str, form: str):
    done = {}
    for name, folder in worlds.items():
        found, written = reported(folder, (*REPORTING[story],))
        done[name] = harm(found) + steering(written[form], own_commands=form == "github")

    assert {name: wrong for name, wrong in done.items() if wrong} == {}


# --- what programs and pages read


def test_json_parses_is_as_its_schema_says_and_has_the_text_as_it_was_written(worlds: dict[str, Path]):
    schema = Draft202012Validator(findings_schema())

    for name, text, found in each(worlds, lambda _: ["validate", "registry", "--format", "json"]):
        document = json.loads(found.out)
        schema.validate(document)
        if yaml_holds(text):
            assert text in {one["contract"] for one in document["findings"]}, name
        if named(worlds[name], text):
            folder = file_name(text)
            files = {one["file"] for one in document["findings"]}
            assert f"registry/{folder}/{folder}.odcs.yaml" in files, name


def test_sarif_parses_is_as_its_schema_says_and_has_the_text_as_it_was_written(worlds: dict[str, Path]):
    schema = Draft202012Validator(SARIF)

    for name, text, found in each(worlds, lambda _: ["validate", "registry", "--format", "sarif"]):
        document = json.loads(found.out)
        schema.validate(document)
        results = document["runs"][0]["results"]
        if yaml_holds(text):
            assert text in {one["properties"]["contract"] for one in results}, name
        if named(worlds[name], text):
            uris = {one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for one in results}
            folder = file_name(text)
            assert os.fsencode(f"registry/{folder}/{folder}.odcs.yaml") in map(unquote_to_bytes, uris), name


def test_junit_parses_and_has_the_text_as_far_as_xml_can_hold_it(worlds: dict[str, Path]):
    for name, text, found in each(worlds, lambda _: ["validate", "registry", "--format", "junit"]):
        suites = {suite.get("name") for suite in ElementTree.fromstring(found.out.encode())}
        if yaml_holds(text):
            held = NOT_XML.sub(lambda match: one_line(match[0]), text)
            assert held in suites, name


def test_the_report_for_github_has_a_line_for_each_finding_and_no_other_command(worlds: dict[str, Path]):
    command = re.compile(r"::(error|warning|notice) (file=[^:,]+,line=\d+,col=\d+,)?title=[^:,]+::.+")

    for name, _, found in each(worlds, lambda _: ["validate", "registry", "--format", "github"]):
        *lines, closing = found.out.rstrip("\n").split("\n")
        assert [line for line in lines if not command.fullmatch(line)] == [], name
        assert closing.startswith("dq: "), name


def test_markdown_has_no_active_content(worlds: dict[str, Path]):
    for name, _, found in each(worlds, lambda _: ["validate", "registry", "--format", "markdown"]):
        assert active(found.out) == [], name


def test_markdown_with_the_changes_of_a_branch_has_no_active_content(worlds: dict[str, Path]):
    for name, folder in worlds.items():
        _, written = reported(folder, (*REPORTING["validate against a base"],))
        assert active(written["markdown"].replace("**2.0.0**", "2.0.0")) == [], name


def active(markdown: str) -> list[str]:
    """What would do something on the page that GitHub makes of it; folding is ours."""
    parser = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    tokens = parser.parse(markdown)
    found = [one.content for one in tokens if one.type == "html_block" and not OURS.fullmatch(one.content)]
    found += [f"{one.markup} {one.type}" for one in tokens if one.type in ("fence", "code_block")]
    for inline in (one for one in tokens if one.type == "inline"):
        found += _active_inside(inline)
    return found + [f"a row of {cells} cells" for cells in _rows(tokens) if cells not in (4, 5)]


def _active_inside(inline: Token) -> list[str]:
    inside = inline.children or []
    kinds = ("link_open", "image", "html_inline", "em_open", "strong_open", "s_open", "hardbreak")
    live = [one for one in inside if one.type == "text" and ALIVE.search(one.content)]
    return [f"{one.type}: {one.content}" for one in inside if one.type in kinds] + [
        f"text: {one.content}" for one in live
    ]


def _rows(tokens: list[Token]) -> list[int]:
    rows: list[int] = []
    for one in tokens:
        if one.type == "tr_open":
            rows.append(0)
        elif one.type in ("td_open", "th_open"):
            rows[-1] += 1
    return rows


@pytest.mark.parametrize("form", names())
def test_a_report_that_is_written_to_a_file_does_as_little(worlds: dict[str, Path], form: str):
    done = {}
    for name, folder in worlds.items():
        _, written = reported(folder, ("validate", "registry"))
        done[name] = steering(written[form], own_commands=form == "github")

    assert {name: wrong for name, wrong in done.items() if wrong} == {}


def yaml_holds(text: str) -> bool:
    """Whether a contract can say it; the folder has a contract whose id it is."""
    # A NUL is refused when the file is read, also where an escape puts it into a text.
    return not any("\ud800" <= one <= "\udfff" or one == "\0" for one in text)


def named(folder: Path, text: str) -> bool:
    """Whether the file system has a contract of this name; one that is no text is shown as escapes."""
    name = file_name(text)
    return yaml_holds(text) and (folder / "registry" / name).is_dir() and not name.startswith(".")
