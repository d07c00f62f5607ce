"""What strangers write, a folder full of it, and an eye for what it did to those who read dq's output."""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from dq.cli.main import run

TEXTS = {
    "csi": "\x1b[2J\x1b[1;31mred\x1b[0m",
    "title of the window": "\x1b]0;pwned\x07",
    "hyperlink of a terminal": "\x1b]8;;http://evil.example\x1b\\click\x1b]8;;\x1b\\",
    "device control": "\x1bP1;1|17/ab\x1b\\",
    "bell": "a\x07b",
    "backspace": "rm\x08\x08ls",
    "carriage return": "bad\rgood",
    "nul": "a\0b",
    "delete": "a\x7fb",
    "csi of C1": "a\x9b31mred\x9b0m",
    "next line": "a\x85::error::pwned",
    "line separators": "a\u2028::error::pwned\u2029::error::pwned",
    "vertical tab and form feed": "a\x0b::error::pwned\x0c::error::pwned",
    "turned direction": "a\u202egnp.exe",
    "isolates": "\u2066a\u2069\u2067b\u061c",
    "invisible tags": "a\U000e0041\U000e0042\U000e007f",
    "lone surrogate": "a\udcffb\udc80",
    "byte order mark": "\ufeffa",
    "blank without width": "ad\u200bmin\u2060",
    "noncharacters": "a\ufffe\uffff\ufdd0",
    "line of a command": "\n::error file=x::pwned",
    "command after blanks": "  ::set-output name=x::y",
    "command after odd blanks": "\u3000\xa0::error::pwned",
    "command after joiners": "\u200d\ufe0f::error::pwned",
    "command with a joiner inside": ":\u200d:error::pwned",
    "add-mask": "::add-mask::a",
    "stop-commands": "::stop-commands::pause",
    "command where a long line is wrapped": f"{'long ' * 18}::error::pwned {'long ' * 19}::error::pwned",
    "older command of github": "x ##[error]pwned",
    "older command with a joiner": "#\u200d#[error]pwned",
    "command of azure": "x ##vso[task.setvariable variable=PATH]b",
    "command of teamcity": "##teamcity[buildProblem description='pwned']",
    "escaped by percent": "%0A::error::pwned",
    "link of markdown": "[click](javascript:alert(1)) [x]: http://evil.example",
    "image of markdown": "![x](http://evil.example/x.png)",
    "img": "<img src=x onerror=alert(1)>",
    "script": "</code></td><script>alert(1)</script>",
    "comment of html": "--> <!-- dq validate --> <!--",
    "mentions": "@org/team, @ana and a@b.example",
    "addresses": "https://evil.example www.evil.example ftp://evil.example #12 GH-12 :tada:",
    "xml": ']]>&amp;<a b="c">\'</failure>',
    "pipes and ticks": "a|b`c``d\\|e\\| f\\",
    "rows of a table": "\x1b[31m|\n| new | row | here |\n",
    "markup of rich": "[red]x[/red] [link=http://evil.example]y[/link] {{ env.X }}",
    "long word": "W" * 900,
    "quotes": '"\'\\\\" \\u001b \\x1b \\',
}
"""By name; each may stand in a contract, its data, its file's name, or on the command line of a hook."""

# Left as they are: scripts and emoji need them.
_JOINERS = "\u200c\u200d"
# What a comparison by a language's rules leaves out; GitHub's runner compares so.
_IGNORED = re.compile("[\u200c\u200d\ufe00-\ufe0f\u034f\u00ad]")
_OWN_COMMAND = re.compile(r"::(error|warning|notice) [a-z]+=[^:,\n]*(,[a-z]+=[^:,\n]*)*::")
_OLD_COMMAND = re.compile(r"##[A-Za-z]*\[")


def steering(printed: str, *, own_commands: bool = False) -> list[str]:
    """What of a text steers a terminal or a CI runner, each with the line that it is in."""
    found = raw(printed)
    for line in printed.split("\n"):
        plain = _IGNORED.sub("", line)
        if plain.lstrip().startswith("::") and not (own_commands and _OWN_COMMAND.match(line)):
            found.append(f"a command: {line[:200]!a}")
        if _OLD_COMMAND.search(plain):
            found.append(f"a command inside: {line[:200]!a}")
    return found


def raw(printed: str) -> list[str]:
    """The characters of a text that are not seen as themselves, each with the line that it is in."""
    # Of reports of megabytes, each character is looked at once.
    odd = {one for one in set(printed) - {"\n"} if _is_raw(one)}
    lines = {line: sorted(odd.intersection(line)) for line in (printed.split("\n") if odd else ())}
    return [
        f"{', '.join(f'U+{ord(one):04X}' for one in signs)} in {line[:200]!a}"
        for line, signs in lines.items()
        if signs
    ]


def _is_raw(one: str) -> bool:
    code = ord(one)
    noncharacter = code & 0xFFFE == 0xFFFE or 0xFDD0 <= code <= 0xFDEF
    kinds = ("Cc", "Cs", "Cf", "Zl", "Zp")
    return one not in _JOINERS and (unicodedata.category(one) in kinds or noncharacter)


@dataclass(frozen=True)
class Said:
    """What a command printed, as the bytes on the two streams decode, and its exit code."""

    code: int
    out: str
    err: str


def said(*arguments: str, folder: Path) -> Said:
    """Runs a command line in the folder, with streams that refuse what is not UTF-8, as terminals do."""
    streams = [io.TextIOWrapper(io.BytesIO(), "utf-8", "strict", newline="\n") for _ in range(2)]
    out, err = streams
    with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(list(arguments))
    for one in streams:
        one.flush()
    return Said(code, *(one.buffer.getvalue().decode() for one in streams))  # type: ignore[attr-defined]


def file_name(text: str) -> str:
    """The text as far as the name of a file can be it."""
    name = text.replace("/", "\u2215").replace("\0", "")
    while len(os.fsencode(name)) > 200:
        name = name[:-1]
    return name


def contract(id_: str, text: str, **changed: Any) -> dict[str, Any]:
    """A contract that says the text wherever no rule of form forbids it, and can be used all the same."""
    return {
        "apiVersion": "v3.2.0",
        "kind": "DataContract",
        "id": id_,
        "name": text,
        "version": "1.0.0",
        "status": "active",
        "domain": text,
        "dataProduct": text,
        "tenant": text,
        "tags": [text],
        "description": {"purpose": text, "usage": text, "limitations": text},
        "servers": [{"server": text, "type": "local", "path": "lake", "format": "csv", "description": text}],
        "team": {"name": text, "members": [{"username": text, "role": "owner", "description": text}]},
        "support": [
            {"channel": text, "tool": "console", "scope": "notifications", "description": text},
            {"channel": text, "tool": text, "url": text},
        ],
        "authoritativeDefinitions": [{"type": "runbook", "url": text}],
        "customProperties": [{"property": text, "value": text}],
        "schema": [
            {
                "name": "orders",
                "description": text,
                "businessName": text,
                "properties": [
                    {
                        "name": "day",
                        "logicalType": "date",
                        "physicalType": "date",
                        "partitioned": True,
                        "partitionKeyPosition": 1,
                    },
                    {
                        "name": "note",
                        "logicalType": "string",
                        "physicalType": "string",
                        "description": text,
                        "required": True,
                        "examples": [text],
                        "quality": [{"type": "text", "description": text}],
                    },
                    {
                        "name": text,
                        "physicalName": "odd",
                        "logicalType": "string",
                        "physicalType": "string",
                        "classification": text,
                    },
                ],
                "quality": [
                    {"name": text, "metric": "rowCount", "mustBeGreaterThan": 9, "description": text},
                    {"name": text, "type": "custom", "engine": text, "implementation": text},
                ],
            }
        ],
        "slaProperties": [
            {
                "id": "daily",
                "property": "frequency",
                "value": 1,
                "unit": "d",
                "element": "orders",
                "description": text,
                "schedule": "0 6 * * *",
                "customProperties": [
                    {
                        "property": "delivery",
                        "vendor": "dq",
                        "value": {"grace": "30m", "partition": {"day": "{due - 1d:%F}"}},
                    }
                ],
            },
            {"property": text, "value": text, "unit": text, "element": text},
        ],
        **changed,
    }


def everywhere(text: str) -> dict[str, Any]:
    """A contract that says the text in every place that a rule looks at, and as keys: full of mistakes."""
    broken = contract(text, text)
    column = {"name": text, "logicalType": text, "physicalType": text, "classification": text, text: text}
    rule = {"name": text, "metric": text, "type": text, "mustBe": text, "severity": text, "query": text}
    return broken | {
        "version": text,
        "status": text,
        text: {text: [text]},
        "servers": [{"server": text, "type": text, "path": text, text: text}],
        "schema": [
            {
                "name": text,
                "physicalType": text,
                "properties": [
                    column,
                    {"name": "query", "logicalType": "string", "quality": [rule]},
                    {"name": text, "logicalType": "string", "logicalTypeOptions": {"pattern": text, text: 1}},
                    {"name": "far", "relationships": [{"to": text}]},
                ],
                "quality": [rule, {"type": "sql", "query": text, "mustBe": 0}],
                "relationships": [{"from": text, "to": text}],
            }
        ],
        "slaProperties": [
            {
                "id": text,
                "property": "frequency",
                "value": text,
                "unit": text,
                "element": text,
                "schedule": text,
            },
            {"property": text, "value": text, "element": text},
        ],
        "price": {"priceAmount": text},
    }


POLICY = {
    "own": {
        "no-note": {
            "select": "column",
            "where": {"name": {"equals": "note"}},
            "assert": {"description": {"equals": "x"}},
            "severity": "warning",
        }
    }
}


def world(folder: Path, text: str) -> None:
    """Everything that a stranger can hand in, with this text in it, in a Git repository."""
    registry = folder / "registry"
    _write(registry / "orders.odcs.yaml", contract("orders", text))
    _write(registry / "everywhere.odcs.yaml", everywhere(text))
    named = file_name(text)
    with contextlib.suppress(OSError):
        _write(registry / named / f"{named}.odcs.yaml", contract("named", text) | {"version": "1.x"})
    _write(folder / "one.odcs.yaml", contract("orders", text))
    changed = contract("orders", text, version="1.0.1")
    changed["schema"][0]["properties"] = [
        {"name": f"{text}2", "logicalType": "integer", "description": f"{text}2"}
    ]
    changed["slaProperties"] = []
    _write(folder / "two.odcs.yaml", changed)
    # Texts that YAML takes as they are, beside mistakes, so that reports quote the lines.
    raw = f"apiVersion: v3.2.0\nkind: Data # {text}\nid: a\nnaem: x # {text}\nversion:   1 # {text}\n"
    (folder / "raw.odcs.yaml").write_bytes(raw.encode("utf-8", "surrogateescape"))
    _write(folder / "policy" / "orders.odcs.yaml", contract("orders", text))
    own = POLICY["own"]["no-note"] | {"message": text, "hint": text}
    waiver = {"rule": "no-note", "contract": text, "path": text, "reason": text, "by": text}
    waivers = [waiver | {"expires": day} for day in ("2020-01-01", "2099-01-01")]
    _write(folder / "policy" / "dq-policy.yaml", {"own": {"no-note": own}, "waivers": waivers})
    _write(folder / "refused" / "orders.odcs.yaml", contract("orders", text))
    _write(
        folder / "refused" / "dq-policy.yaml", {"profile": text, text: text, "rules": {text: {text: text}}}
    )
    agreed = {"major": 1, "purpose": text, "startDate": "2020-01-01", "approvers": [text]}
    hostile = {
        "contract": text,
        "consumer": {"team": text, "account": text, "principal": text, "contact": text},
    }
    _write(folder / "subscriptions" / "a.yaml", {**agreed, **hostile, "columns": [text], "rowFilter": text})
    _write(folder / "subscriptions" / "b.yaml", {**agreed, "contract": "orders", "consumer": {"team": text}})
    _write(folder / "subscriptions" / "c.yaml", {text: text, "contract": {text: text}, "startDate": text})
    sample = f'day,note,"{_quoted(text)}"\n2026-05-01,,x\nx,"{_quoted(text)}","{_quoted(text)}"\n'
    (folder / "orders.csv").write_bytes(sample.encode("utf-8", "surrogateescape"))
    part = folder / "lake" / "day=2026-05-10"
    part.mkdir(parents=True)
    (part / "part.csv").write_text("note\na\n")
    with contextlib.suppress(OSError):
        (folder / "there" / named).mkdir(parents=True)
    _commit(folder)


def _quoted(text: str) -> str:
    return text.replace('"', '""')


def _write(file: Path, value: object) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(yaml.safe_dump(value, allow_unicode=False, sort_keys=False, width=10_000))


def _commit(folder: Path) -> None:
    """The folder as a repository, whose last commit lacks the contract that is full of mistakes."""
    (folder / ".gitignore").write_text(".dq\n")
    who = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")
    odd = folder / "registry" / "everywhere.odcs.yaml"
    data = odd.read_bytes()
    odd.unlink()
    for words in (
        ("init", "-q", "-b", "main", "--template="),
        ("add", "-A"),
        (*who, "commit", "-q", "-m", "first"),
    ):
        subprocess.run(["git", *words], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    odd.write_bytes(data)
    orders = folder / "registry" / "orders.odcs.yaml"
    orders.write_text(orders.read_text().replace("name: note", "name: notes"))


@contextlib.contextmanager
def quiet_environment() -> Iterator[None]:
    """No setting of this machine, and a home without settings."""
    kept = dict(os.environ)
    for name in [name for name in os.environ if name.startswith(("DQ_", "SLACK_", "GIT_", "SPARK_"))]:
        del os.environ[name]
    os.environ["COLUMNS"] = "100"
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(kept)
