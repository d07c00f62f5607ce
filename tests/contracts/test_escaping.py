"""Each target of the table by the program that evaluates it: a text is that text, and nothing runs."""

from __future__ import annotations

import ast
import html
import json
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest
import yaml
from fakes import strangers
from fakes.browser import Ear, browser
from fakes.canary import Canary
from fakes.hostile_texts import Canaries, hostile_texts
from jinja2 import Environment, StrictUndefined
from markdown_it import MarkdownIt
from prometheus_client.parser import text_string_to_metric_families

from dq.contracts.escaping import TARGETS
from dq.contracts.outcome import UsageError
from dq.contracts.yaml.portable import commented
from dq.validators.git.approvals import codeowners_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def canaries(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Canaries]:
    with Canary() as socket:
        canaries = Canaries(tmp_path_factory.mktemp("canaries"), socket)
        canaries.prepare()
        yield canaries
        assert canaries.disturbed() == []


@pytest.fixture(scope="module")
def texts(canaries: Canaries) -> list[str]:
    """The sixty, and those that steer terminals and runners, as far as YAML can hold them."""
    return [
        *hostile_texts(canaries).values(),
        *strangers.TEXTS.values(),
        "",
        " ",
        "é\U0001f600",
        "a\nb",
        "x\\",
    ]


def written(target: str, texts: list[str]) -> dict[str, str]:
    """What the target's function makes of each text that it does not refuse."""
    made = {}
    for text in texts:
        try:
            made[text] = TARGETS[target].escape(text)
        except UsageError:
            assert TARGETS[target].refuses
    return made


def test_a_target_refuses_where_the_table_says_so(texts: list[str]) -> None:
    refusing = {name for name in TARGETS if len(written(name, texts)) < len(set(texts))}

    assert refusing == {name for name, target in TARGETS.items() if target.refuses}


def test_every_target_of_the_table_is_read_back_here() -> None:
    source = Path(__file__).read_text().replace("'", '"')

    assert [name for name in TARGETS if f'"{name}"' not in source] == []


def test_python_reads_the_text_and_nothing_else(texts: list[str]) -> None:
    for text, made in written("python", texts).items():
        tree = ast.parse(f"spark.load({made})", mode="eval").body
        assert isinstance(tree, ast.Call)
        assert isinstance(tree.args[0], ast.Constant)
        assert tree.args[0].value == text


def test_a_comment_is_one_line_and_nothing_in_it_is_filled_in(texts: list[str]) -> None:
    for text, made in written("comment", texts).items():
        assert ast.parse(f"# {made}\n").body == []
        assert len(made.splitlines()) <= 1
        assert not re.search(r"\$\{|\{[{%#]", made)
        assert made.replace(" ", "") == commented(text).replace(" ", "")


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_a_shell_reads_one_word(canaries: Canaries, texts: list[str], shell: str) -> None:
    words = {text: made for text, made in written("shell word", texts).items() if _in_a_file(text)}

    done = subprocess.run(
        [shell, "-c", f"printf '%s\\0' {' '.join(words.values())}"],
        capture_output=True, env=canaries.environment(), cwd=canaries.folder, check=True,
    )  # fmt: skip

    assert done.stdout.decode().split("\0")[:-1] == list(words)
    assert canaries.disturbed(done.stdout, done.stderr) == []


def _in_a_file(text: str) -> bool:
    return "\0" not in text and not re.search("[\ud800-\udfff]", text)


def test_jinja_evaluates_nothing_however_often_it_renders(texts: list[str]) -> None:
    jinja = Environment(undefined=StrictUndefined, keep_trailing_newline=True)  # as dbt has it
    for made in written("dbt text", texts).values():
        once = jinja.from_string(made).render()
        assert once == made.replace("\r\n", "\n").replace("\r", "\n")
        assert jinja.from_string(once).render() == once


def test_jinja_takes_a_name_of_dbt_for_the_name(texts: list[str]) -> None:
    jinja = Environment(undefined=StrictUndefined)
    names = [*texts, "plain", "with.dot", "Größe"]
    made = written("dbt name", names)

    assert {"plain", "with.dot", "Größe"} <= made.keys()
    for text, name in made.items():
        assert jinja.from_string(f"{{{{ source('a', '{name}') }}}}").render(source=lambda _, b: b) == text


def test_a_pattern_of_owners_covers_the_path_alone(texts: list[str], tmp_path: Path) -> None:
    paths = [*texts, "sales/orders.odcs.yaml", "a b/c.yaml"]
    made = written("codeowners", paths)

    assert {"sales/orders.odcs.yaml", "a b/c.yaml"} <= made.keys()
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    for path, pattern in made.items():
        # Git reads patterns of ignored files alike.
        (tmp_path / ".gitignore").write_text(f"{pattern}\n")
        names = [path, f"x/{path}", f"{path}x"]
        command = ["git", "check-ignore", "--no-index", "--", *names]
        told = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert told.stdout.split("\n") == [path, ""]
        assert codeowners_of(f"{pattern} @a", path) == ["@a"]
        assert codeowners_of(f"{pattern} @a", f"{path}x") == []


def test_a_browser_shows_the_text_and_runs_nothing(canaries: Canaries, texts: list[str]) -> None:
    # What a parser of HTML replaces in any page: NUL, carriage returns, and halves of characters.
    held = {
        text: made for text, made in written("html", texts).items() if _in_a_file(text) and "\r" not in text
    }
    rows = "".join(f'<pre title="{made}"><b>{made}</b></pre>' for made in held.values())
    with browser() as running:
        page = running.new_page()
        ear = Ear(page)
        page.set_content(f'<!doctype html><html><head><link rel="icon" href="data:,"></head>{rows}</html>')
        for row in page.locator("pre").all()[:60]:
            row.hover(force=True)
        shown = page.evaluate("[...document.querySelectorAll('pre')].map(a => [a.title, a.textContent])")
        tags = page.evaluate("[...new Set([...document.body.querySelectorAll('*')].map(a => a.tagName))]")

        assert ear.heard() == []
    assert shown == [[text, text] for text in held]
    assert sorted(tags) == ["B", "PRE"]
    assert canaries.disturbed() == []


def test_xml_and_json_and_yaml_are_read_as_the_text(texts: list[str]) -> None:
    inside, attributes = written("xml", texts), written("xml attribute", texts)
    for text in texts:
        found = ElementTree.fromstring(f'<a b="{attributes[text]}">{inside[text]}</a>')
        shown = found.get("b") or ""
        assert found.text or shown == ""
        if text.isprintable() and not re.search(r"::|##\w*\[", text):
            assert shown == text
        assert json.loads(TARGETS["json"].escape(json.dumps(text, ensure_ascii=False))) == text
        # YAML has no word for half a character.
        whole = re.sub("[\ud800-\udfff]", "\ufffd", text)
        assert yaml.safe_load(f"a: {TARGETS['yaml'].escape(text)}\n") == {"a": whole}


def test_markdown_has_no_markup_of_a_text(texts: list[str]) -> None:
    reader = MarkdownIt("commonmark").enable("table")
    for target in ("markdown", "markdown code"):
        for text, made in written(target, texts).items():
            tokens = reader.parse(f"| a | b |\n| --- | --- |\n| {made} | x |\n")
            cells = [token for token in tokens if token.type == "inline"]
            assert len(cells) == 4, (text, made)
            kinds = {child.type for child in cells[2].children or ()}
            assert kinds <= {"text", "code_inline", "text_special", "html_entity"}, (text, made)


@pytest.mark.parametrize(
    "target", ["lines", "one line", "runner", "json", "github message", "github property"]
)
def test_no_terminal_and_no_runner_is_steered(texts: list[str], target: str) -> None:
    shape: dict[str, Callable[[str], str]] = {
        "lines": lambda text: strangers_inert(TARGETS["lines"].escape(text)),
        "one line": lambda text: strangers_inert(TARGETS["one line"].escape(text)),
        "runner": lambda text: strangers_inert(TARGETS["lines"].escape(text)),
        "json": lambda text: TARGETS["json"].escape(json.dumps(text, ensure_ascii=False)),
        "github message": lambda text: f"::error title=x::{TARGETS['github message'].escape(text)}",
        "github property": lambda text: f"::error title={TARGETS['github property'].escape(text)}::x",
    }
    for text in texts:
        assert strangers.steering(shape[target](text), own_commands=target.startswith("github")) == []


def strangers_inert(text: str) -> str:
    return TARGETS["runner"].escape(text)


def test_prometheus_reads_the_text(texts: list[str]) -> None:
    # Its samples end at a line feed alone, while the reader in Python also ends them elsewhere.
    whole = [text for text in texts if len(text.splitlines()) < 2 or ("\n" in text and text.count("\n") == 1)]
    for text in whole:
        if len(text.replace("\n", "").splitlines()) > 1:
            continue
        line = f'a{{b="{TARGETS["prometheus label"].escape(text)}"}} 1\n'
        [family] = text_string_to_metric_families(f"# TYPE a gauge\n{line}")
        assert family.samples[0].labels == {"b": text}


def test_slack_sees_no_link_mention_or_entity(texts: list[str]) -> None:
    for text, made in written("slack", texts).items():
        assert not set(made) & {"<", ">"}
        assert html.unescape(made) == text


@pytest.mark.spark
def test_spark_reads_the_text_and_fills_in_nothing(spark: SparkSession, texts: list[str]) -> None:
    held = [text for text in texts if not re.search("[\ud800-\udfff]", text)]
    before = spark.conf.get("spark.sql.variable.substitute", "true")
    for substitute in ("true", "false"):
        spark.conf.set("spark.sql.variable.substitute", substitute)
        try:
            for target in ("spark sql literal", "spark sql text"):
                columns = ", ".join(
                    f"{TARGETS[target].escape(text)} AS c{at}" for at, text in enumerate(held)
                )
                assert list(spark.sql(f"SELECT {columns}").collect()[0]) == held
            for target in ("spark sql name", "spark sql name in a file"):
                names = written(target, [text for text in held if text and "${" not in text])
                row = spark.sql(f"SELECT {', '.join(f'1 AS {name}' for name in names.values())}").collect()[0]
                assert row.__fields__ == list(names)
        finally:
            spark.conf.set("spark.sql.variable.substitute", before)
    # dq's own sessions fill in nothing; a file is run in those of others.
    assert not [text for text in written("spark sql name in a file", held) if "${" in text]


def test_no_other_module_escapes_text_of_its_own() -> None:
    elsewhere = {
        "cli/output.py": "rich's own markup, of help texts",
        "operations/runtime/spark.py": "options of the operator's own Java",
        "contracts/install.py": "below the table; Windows has quotes of its own",
        "contracts/yaml/insertion.py": "below the table",
        "portal/pages.py": "Jinja's autoescape, which every template has",
    }
    own = re.compile(
        r"^\s*(?:import|from) (?:shlex|html|markupsafe|rich\.markup|xml\.sax\.saxutils)\b", re.MULTILINE
    )
    rooms = (
        *("api", "alerts", "cli", "contracts", "dataquality", "lake", "operations"),
        *("portal", "registry", "store", "validators"),
    )
    found = {
        str(file.relative_to(ROOT))
        for room in rooms
        for file in (ROOT / room).rglob("*.py")
        if file != ROOT / "contracts/escaping.py" and own.search(file.read_text())
    }

    assert found == set(elsewhere)
