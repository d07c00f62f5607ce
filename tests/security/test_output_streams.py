"""The door for output holds for whoever writes: libraries, Python, other programs; on and off a terminal."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import re
import shlex
import subprocess
import sys
import unicodedata
import warnings
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer
from fakes import jvm
from fakes.breaches import breach
from fakes.slack import TOKEN, FakeSlack
from fakes.strangers import TEXTS, contract, file_name, quiet_environment, raw, said, steering, world
from fakes.work import cpu_seconds
from typer.main import get_command

from dq.alerts.channels import load
from dq.alerts.incident import step
from dq.alerts.message import render
from dq.cli import check_output, output
from dq.cli.main import application, names, run
from dq.cli.output import Progress
from dq.contracts import outcome
from dq.contracts.check_result import CheckResult, Status
from dq.contracts.incident import IncidentKey
from dq.contracts.outcome import Finding, Location, ReadError, Severity
from dq.contracts.yaml.parse import parse
from dq.dataquality.check import Outline
from dq.dataquality.clauses.coverage import ClauseCoverage, EnforcementState
from dq.dataquality.model.metric import MetricExecution
from dq.dataquality.report import Quarantined, Report, Violated
from dq.operations.check import FailedScope

SGR = re.compile(r"\x1b\[[0-9;]*m")
DQ = [sys.executable, "-c", "from dq.cli.main import main; main()"]
AT = ("--as-of", "2026-05-12T12:00:00Z")
TESTS = Path(__file__).parents[1]


class Tape(io.TextIOWrapper):
    """What is written, as a terminal or a pipe of this encoding would get it."""

    def __init__(self, encoding: str = "utf-8", *, terminal: bool = False):
        super().__init__(io.BytesIO(), encoding, "strict", newline="\n")
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal

    @property
    def written(self) -> str:
        self.flush()
        return self.buffer.getvalue().decode(self.encoding)  # type: ignore[attr-defined]


@contextlib.contextmanager
def tapes(out: Tape, err: Tape):
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        yield


# --- which characters


def test_every_character_that_is_not_seen_as_itself_is_shown_and_no_other():
    wrong = []
    for code in range(0x110000):
        one = chr(code)
        hidden = unicodedata.category(one) in ("Cc", "Cs", "Cf", "Zl", "Zp") and one not in "\u200c\u200d"
        noncharacter = code & 0xFFFE == 0xFFFE or 0xFDD0 <= code <= 0xFDEF
        # What later versions of Unicode made of characters that this Python does not know yet is shown, too.
        if (hidden or noncharacter) != (outcome.one_line(one) != one) and unicodedata.category(one) != "Cn":
            wrong.append(hex(code))

    assert wrong == []


@pytest.mark.parametrize(
    ("text", "line", "block"),
    [
        ("a\tb\nc\r", r"a\tb\nc\r", "a\tb\nc\\r"),
        ("\x1b[m\x9b\u202e", r"\x1b[m\x9b\u202e", r"\x1b[m\x9b\u202e"),
        ("\U000e0041\udcff\ufeff", r"\U000e0041\udcff\ufeff", r"\U000e0041\udcff\ufeff"),
        ("ça va, 名前 👩‍🚀 ⚠️", "ça va, 名前 👩‍🚀 ⚠️", "ça va, 名前 👩‍🚀 ⚠️"),
    ],
    ids=["breaks", "control", "beyond the first plane", "what is read"],
)
def test_a_character_is_shown_as_its_escape(text: str, line: str, block: str):
    assert (outcome.one_line(text), outcome.escape_block(text)) == (line, block)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("::error::x", r":\x3aerror::x"),
        ("a ::error::x", "a ::error::x"),
        ("a\n \t::error::x", "a\n \t:\\x3aerror::x"),
        ("##[error]", r"##\x5berror]"),
        ("a ##vso[task]", r"a ##vso\x5btask]"),
        ("# [a](b) ## c", "# [a](b) ## c"),
    ],
)
def test_only_the_sign_that_would_start_a_command_is_shown(text: str, shown: str):
    assert outcome.escape_ci_commands(text) == shown


def test_a_long_text_without_a_command_is_looked_through_once():
    units = ["######", "##a##a", "      ", "\n\n\n\n\n\n", "::::::", "\u200d" * 6]

    def cost(unit: str, length: int) -> float:
        text = unit * (length // len(unit)) + "!"
        return cpu_seconds(lambda: outcome.escape_ci_commands(outcome.escape_block(text)))

    # Sixteen times the text: what looks through it again for each of its characters costs 256 times as much.
    ratios = {unit: cost(unit, 320_000) / cost(unit, 20_000) for unit in units}

    assert max(ratios.values()) < 64, ratios


# --- whoever writes


def test_what_libraries_and_python_print_passes_too():
    out, err = Tape(), Tape()

    with tapes(out, err), output.guarded_streams():
        for text in TEXTS.values():
            print(text)  # noqa: T201  # what a library may do
            typer.echo(text)
            typer.secho(text, err=True)
            sys.stderr.write(warnings.formatwarning(text, UserWarning, text, 1, text))
            handler = logging.StreamHandler()
            handler.handle(logging.LogRecord("x", logging.ERROR, "f", 1, text, (), None))
            try:
                raise ValueError(text)
            except ValueError:
                sys.excepthook(*sys.exc_info())

    assert steering(out.written) == []
    assert steering(err.written) == []


@pytest.mark.parametrize(
    "pieces",
    [
        ("::", "error::x"),
        (":", ":error"),
        ("\n ", " ", "::x"),
        ("#", "#", "[x]"),
        ("##vs", "o", "[x]"),
        ("\x1b", "[m"),
    ],
    ids=ascii,
)
def test_what_comes_in_pieces_is_seen_as_a_whole(pieces: tuple[str, ...]):
    out, err = Tape(), Tape()

    with tapes(out, err), output.guarded_streams():
        for piece in pieces:
            sys.stdout.write(piece)

    assert steering(out.written) == []


def test_a_program_that_is_started_meanwhile_passes_too(tmp_path: Path):
    program = (
        "import subprocess, sys\n"
        "from fakes.strangers import TEXTS\n"
        "from dq.cli import output\n"
        "words = '\\n'.join(TEXTS.values()).encode('utf-8', 'surrogatepass') + b'\\xff\\x9b\\n'\n"
        "other = 'import os, sys; os.write(1, sys.stdin.buffer.read()); os.write(2, b\" ::error::x\")'\n"
        "with output.guarded_streams():\n"
        "    with output.child_output():\n"
        "        done = subprocess.Popen([sys.executable, '-c', other], stdin=subprocess.PIPE)\n"
        "    done.communicate(words)\n"
        "    output.line('the result')\n"
        "import threading\n"
        "[one.join(300) for one in threading.enumerate() if one.daemon]\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": str(TESTS)},
        capture_output=True,
        timeout=300,
        check=True,
    )

    assert found.stdout == b"the result\n"
    assert steering(found.stderr.decode()) == []
    assert "pwned" in found.stderr.decode()


def test_what_a_program_says_before_it_cannot_start_stands_before_what_is_said_of_it(capfd):
    with pytest.raises(subprocess.CalledProcessError), output.child_output():
        subprocess.run(["sh", "-c", "echo last words; exit 1"], check=True)
    output.note("it did not start")

    assert capfd.readouterr().err == "last words\nit did not start\n"


# --- terminals


@pytest.mark.parametrize(
    "words", [("validate", "registry"), ("status", "one.odcs.yaml"), ("explain", "one.odcs.yaml")]
)
@pytest.mark.parametrize("name", ["csi", "rows of a table", "command where a long line is wrapped"])
def test_a_terminal_gets_our_colours_and_no_others(
    tmp_path: Path, monkeypatch, words: tuple[str, ...], name: str
):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.chdir(tmp_path)
    out, err = Tape(terminal=True), Tape(terminal=True)

    with quiet_environment(), tapes(out, err):
        world(tmp_path, TEXTS[name])
        run(list(words))

    assert SGR.search(out.written)
    assert steering(SGR.sub("", out.written)) == []
    assert steering(SGR.sub("", err.written)) == []
    assert out.written.count("\x1b[0m") * 2 == len(SGR.findall(out.written))
    assert out.written.count("\x1b") == len(SGR.findall(out.written))


@pytest.mark.parametrize(
    ("terminal", "environment", "colored"),
    [
        (True, {}, True),
        (True, {"NO_COLOR": "1"}, False),
        (True, {"TERM": "dumb"}, False),
        (False, {}, False),
        (False, {"FORCE_COLOR": "1"}, True),
        (False, {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
    ],
)
def test_colours_are_for_terminals_unless_their_user_says_otherwise(
    monkeypatch, terminal, environment, colored
):
    for name in ("NO_COLOR", "FORCE_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    out = Tape(terminal=terminal)

    with tapes(out, Tape()):
        output.line(output.styled("bad", fg="red", bold=True))

    assert out.written == ("\x1b[31;1mbad\x1b[0m\n" if colored else "bad\n")


def test_a_colour_cannot_be_asked_for_by_who_does_not_know_how():
    out = Tape(terminal=True)

    with tapes(out, Tape()):
        output.line(f"\x1b[31m \x1b{'0' * 16}[31m \x1b{'f' * 16}[0m")

    assert "\x1b" not in out.written


@pytest.mark.parametrize(
    "words", [[], ["--help"], *([name, "--help"] for name in names()), ["schedule", "next", "-h"]]
)
def test_the_help_has_its_colours_on_a_terminal(monkeypatch, words: list[str]):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    out, err = Tape(terminal=True), Tape(terminal=True)

    with tapes(out, err):
        run(words)

    assert "\x1b[1" in out.written
    assert "\\x1b" not in out.written


def test_a_progress_that_is_written_over_stays_one_line():
    err = Tape(terminal=True)

    with tapes(Tape(), err), output.guarded_streams():
        for text in TEXTS.values():
            progress = Progress(1, "checking")
            with progress.step(text):
                pass
            progress.close()
            with contextlib.suppress(ValueError), output.step(text):
                raise ValueError
            with output.step(text):
                pass

    plain = SGR.sub("", err.written.replace("\r\x1b[K", "\n"))
    assert steering(plain) == []
    assert max(map(len, plain.splitlines())) <= 1_000


def test_a_progress_names_its_activity():
    plain, terminal = Tape(), Tape(terminal=True)

    for err in (plain, terminal):
        with tapes(Tape(), err), output.guarded_streams():
            progress = Progress(1, "proposing rules of")
            with progress.step("web.visits"):
                pass
            progress.close()

    assert plain.written.startswith("  done: proposing rules of web.visits (")
    assert "  … 0 of 1 done; proposing rules of web.visits" in terminal.written
    assert "  … 1 of 1 done" in terminal.written


# --- streams that cannot take it


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "latin-1", "cp437"])
def test_a_stream_that_cannot_say_a_character_gets_its_escape(tmp_path: Path, encoding: str):
    out, err = Tape(encoding), Tape(encoding)

    with quiet_environment(), contextlib.chdir(tmp_path), tapes(out, err):
        world(tmp_path, "ñ 名 ✓ \u202e")
        codes = [
            run(words) for words in (["validate", "one.odcs.yaml"], ["doctor"], ["status", "--help"], ["名"])
        ]

    assert codes[0] == 0  # what is odd there are warnings
    assert codes[2:] == [0, 2]
    assert "\\u540d" in out.written
    assert "\\u540d" in err.written


def _line(words: str) -> str:
    return f"'{DQ[0]}' -c '{DQ[2]}' {words}"


@cache
def _usual(words: str) -> int:
    """The exit code with both streams open."""
    return subprocess.run(["sh", "-c", f"{_line(words)} >/dev/null 2>&1"], check=False).returncode


@pytest.mark.parametrize("redirection", [">&-", "2>&-", ">&- 2>&-", "| true", "2>&1 >/dev/null | true"])
@pytest.mark.parametrize("words", ["rules", "validate --nope"])
def test_who_reads_no_more_changes_no_exit_code_and_sees_no_traceback(
    tmp_path: Path, redirection: str, words: str
):
    said = tmp_path / "said"
    line = _line(words)
    usual = _usual(words)

    kept = f"({line}; echo $? >code)"
    subprocess.run(["bash", "-c", f"{kept} {redirection}"], cwd=tmp_path, stderr=said.open("w"), check=False)

    assert int((tmp_path / "code").read_text()) == usual
    assert "Error" not in said.read_text().replace("─ Error ─", "")
    assert "Exception ignored" not in said.read_text()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is full")
def test_a_disk_that_is_full_is_said_and_exit_3(tmp_path: Path):
    with open("/dev/full", "w") as full:  # noqa: PTH123
        found = subprocess.run(
            [*DQ, "rules"], stdout=full, stderr=subprocess.PIPE, cwd=tmp_path, text=True, check=False
        )

    assert found.returncode == 3
    assert found.stderr.startswith("dq: No space left on device.")
    assert "Traceback" not in found.stderr
    both = subprocess.run(["sh", "-c", f"{_line('rules')} >/dev/full 2>&1"], check=False)
    assert both.returncode == 3


def test_a_mistake_on_the_command_line_looks_as_typer_shows_it(tmp_path: Path):
    found = said("validate", "--nope", folder=tmp_path)

    assert found.code == 2
    assert found.err.splitlines()[0] == "Usage: dq validate [OPTIONS] [paths]..."
    assert "─ Error ─" in found.err
    assert "No such option: --nope" in found.err
    assert get_command(application(["validate"])).name == "dq"


# --- what a check found in the data


@pytest.mark.parametrize("form", [output.ResultFormat.TEXT, output.ResultFormat.JSON])
@pytest.mark.parametrize("name", TEXTS)
def test_what_data_say_is_shown_and_does_nothing(name: str, form: output.ResultFormat):
    text, out, err = TEXTS[name], Tape(), Tape()
    at = Location(text, 1, 1)
    results = [
        CheckResult(
            text,
            text,
            text,
            text,
            status,
            Severity.ERROR,
            text,
            text,
            text,
            at,
            1.0,
            ({text: text, "b": text},) * 9,
        )
        for status in Status
    ]
    accounts = tuple(ClauseCoverage(text, text, text, text, state, text, at) for state in EnforcementState)
    partitions = (((text, text),),)
    quarantine = (Quarantined(1, text), Quarantined(0, None, text))
    reports = [
        Report(text, text, text, partitions, tuple(results), accounts, 1, 1, None, one, (text,))
        for one in quarantine
    ]
    parsed = parse(json.dumps(contract("a", "x")).encode(), file_name(text)).contract
    failed = FailedScope(parsed, parsed.objects[0], {"day": text}, ReadError(text, text))
    outline = Outline(text, text, text, partitions, (), ((text, text),), accounts)
    finding = Finding(text, Severity.ERROR, text, text, at)

    source = check_output.new_source(text, [parsed], None, datetime(2026, 5, 1, tzinfo=UTC))

    with tapes(out, err), output.guarded_streams():
        check_output.print_reports([*reports, failed], [finding], form, source)
        check_output.print_outlines([outline, failed], [finding], form)
        output.note(repr(reports[0]))
        output.write_stderr(repr(reports[0]))
        with contextlib.suppress(Violated):
            reports[0].raise_for_status()
        output.problem(ReadError(text, text, [text]))

    assert steering(out.written) == []
    assert steering(err.written) == []
    if form is output.ResultFormat.JSON:
        documents = json.JSONDecoder().raw_decode(out.written)[0]
        assert documents[1]["results"][0]["samples"][0] == {text: text, "b": text}


@pytest.mark.parametrize("name", TEXTS)
def test_a_report_in_a_notebook_and_in_a_traceback_does_nothing(name: str):
    text = TEXTS[name]
    result = CheckResult(
        text,
        text,
        text,
        text,
        Status.FAIL,
        Severity.ERROR,
        text,
        text,
        text,
        Location(text),
        1.0,
        ({text: text},),
    )
    report = Report(text, text, text, (), (result,), (), 1)

    with pytest.raises(Violated) as caught:
        report.raise_for_status()

    assert steering(f"Violated: {caught.value}") == []
    assert steering(repr(report)) == []
    assert raw(report._repr_html_()) == []
    tags = set(re.findall(r"<(/?\w+)", report._repr_html_()))
    assert tags <= {"div", "b", "table", "tr", "td", "span", "br", "code", "small"} | {
        "/div", "/b", "/table", "/tr", "/td", "/span", "/code", "/small",
    }  # fmt: skip


def test_numbers_that_json_does_not_have_are_texts():
    out = Tape()

    with tapes(out, Tape()):
        output.as_json({"a": float("nan"), "b": [float("-inf"), 1.5], "c": ({"d": float("inf")},)})

    assert json.loads(out.written, parse_constant=pytest.fail) == {
        "a": "nan",
        "b": ["-inf", 1.5],
        "c": [{"d": "inf"}],
    }


def test_the_command_that_an_alert_names_runs_no_other_when_it_is_pasted(tmp_path: Path):
    with quiet_environment():
        file = tmp_path / "$(touch canary);`touch canary` x.odcs.yaml"
        world(tmp_path, "x")
        (tmp_path / "one.odcs.yaml").rename(file)
        said("watch", file.name, "--as-of", "2026-05-10T12:00:00Z", folder=tmp_path)
        found = said("watch", file.name, *AT, "--channel", "console", folder=tmp_path)

    (command,) = re.findall("details +(.+)", found.out)
    subprocess.run(["sh", "-c", command.replace("dq status", "true")], cwd=tmp_path, check=True)
    assert shlex.split(command) == ["dq", "status", file.name, *AT]
    assert not (tmp_path / "canary").exists()


def test_what_a_pass_is_for_is_one_of_ours():
    assert all(outcome.one_line(one.value) == one.value for one in MetricExecution)


# --- alerts


@pytest.fixture(scope="module")
def slack():
    with FakeSlack() as fake:
        yield fake


@pytest.mark.parametrize("name", TEXTS)
def test_an_alert_wakes_nobody_and_links_to_nothing_by_a_contracts_words(
    name: str, slack: FakeSlack, tmp_path: Path
):
    text = TEXTS[name]
    words = (text, f"<!channel> <@U012AB3CD> <!subteam^S01|x> <https://evil.example|click> {text}")
    odd = replace(
        breach(1),
        key=IncidentKey(text, text, text),
        title=words[1],
        subject=text,
        facts=(
            *zip(words, words, strict=True),
            ("runbook", "https://wiki.example/a?b=1&c"),
            ("budget", text),
        ),
    )
    incident = step(None, odd, odd.occurred_at).incident
    opened = load()["slack"].open({"token": TOKEN, "base_url": slack.url}, print)

    receipt = opened.sender.create("#orders-alerts", render(incident, "create"), name).receipt
    opened.sender.reply(receipt, render(incident, "reply:count"), f"{name}/2")
    opened.sender.update(receipt, render(incident, "update"))

    bodies = [body for method, body in slack.calls if method in ("chat.postMessage", "chat.update")][-3:]
    for body in bodies:
        assert (body["parse"], body["link_names"]) == ("none", False)
        for one in strings(body):
            assert raw(one) == []
            if one not in (name, f"{name}/2"):
                assert set(re.findall("<[^>]*>?", one)) <= {"<https://wiki.example/a?b=1&amp;c>"}
        assert all(one.get("verbatim") for one in marked(body))


def strings(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    # A header is plain text, which Slack does not read for anything.
    return (
        []
        if isinstance(value, dict) and value.get("type") == "plain_text"
        else [one for each in inside for one in strings(each)]
    )


def marked(value: object) -> list[dict[str, object]]:
    if isinstance(value, dict):
        own = [value] if value.get("type") == "mrkdwn" else []
        return own + [one for inner in value.values() for one in marked(inner)]
    return [one for inner in value for one in marked(inner)] if isinstance(value, list) else []


@pytest.mark.parametrize("name", TEXTS)
def test_an_alert_in_a_file_is_a_line_of_json_and_on_the_console_it_does_nothing(name: str, tmp_path: Path):
    text, out = TEXTS[name], Tape()
    odd = replace(breach(1), key=IncidentKey(text, text, text), title=text, facts=((text, text),))
    message = render(step(None, odd, odd.occurred_at).incident, "create")
    file = tmp_path / "alerts.jsonl"

    with tapes(out, Tape()), output.guarded_streams():
        load()["console"].open({}, output.block).sender.create("", message, "a")
    load()["file"].open({}, print).sender.create(str(file), message, "a")

    assert steering(out.written) == []
    (line,) = file.read_text("utf-8").splitlines()
    assert steering(line) == []
    assert json.loads(line)["contract"] == text


# --- Spark


@pytest.mark.spark
@pytest.mark.slow
def test_values_of_the_data_and_spark_itself_do_nothing(spark, tmp_path: Path):
    with quiet_environment():
        os.environ.update(jvm.SETTINGS)
        bad = contract("orders", "x")
        # Named in full: the session of the tests began in another folder.
        place = f"{tmp_path}/lake/{{object}}"
        bad["servers"] = [{"server": "lake", "type": "local", "path": place, "format": "parquet"}]
        bad["schema"] = [
            {
                "name": name,
                "properties": [
                    {"name": "id", "logicalType": "string", "primaryKey": True, "primaryKeyPosition": 1},
                    {"name": "note", "logicalType": "string", "required": True},
                ],
            }
            for name in ("good", "damaged")
        ]
        bad["slaProperties"] = []
        (tmp_path / "orders.odcs.yaml").write_text(json.dumps(bad))
        ids = [text for text in TEXTS.values() if "\udcff" not in text and len(text) < 500]
        for name in ("good", "damaged"):
            (tmp_path / "lake" / name).mkdir(parents=True)
        table = pa.table({"id": ids, "note": pa.nulls(len(ids), pa.string())})
        pq.write_table(table, tmp_path / "lake" / "good" / "a.parquet")
        damaged = tmp_path / "lake" / "damaged" / file_name("a ##[error]b ::error::pwned.parquet")
        damaged.write_bytes(b"PAR1" + b"\0" * 100 + b"PAR1")

        found = subprocess.run(
            [*DQ, "check", "--all", "--channel", "console", "--scan"],
            cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        words = ("--all", "--channel", "console", "--format", "json", "--object", "good")
        as_json = said("check", *words, folder=tmp_path)

    assert found.returncode == 3, found.stderr
    assert "id=" in found.stdout
    assert steering(found.stdout) == []
    assert steering(found.stderr.replace("\t", " ")) == []
    assert steering(as_json.out) == []
    samples = [
        sample["id"]
        for one in json.loads(as_json.out)[0]["results"]
        for sample in one["samples"]
        if "id" in sample
    ]
    assert samples
    assert set(samples) <= set(ids)
