"""Bytes of a contract file to plain values with places; what cannot be read becomes findings."""

from __future__ import annotations

import codecs
import json
from typing import Any

import yaml

from dq.contracts.access.files import MAX_BYTES
from dq.contracts.shared.outcome import Finding, Location, mistake
from dq.contracts.yaml.frame import Refusal, is_json
from dq.contracts.yaml.yaml_builder import Builder


def read(data: bytes, file: str) -> tuple[dict[str, Any] | None, list[Finding]]:
    """The top mapping of a YAML document, each mapping inside with its `Place`, and what is wrong.

    UTF-8 with or without a byte order mark, any line ending. Gives None, and one finding, for what cannot
    be read at all: another encoding, NUL, more than 5 MB, broken YAML, several documents, depth over 64,
    more than 10,000 values from aliases, tags that are not plain data, and where the file is named `.json`,
    what is no JSON. Duplicate keys are findings; the last of twins wins, as in every other YAML reader. So
    are numbers that readers of YAML disagree about.
    """
    text = _text(data, file)
    if isinstance(text, Finding):
        return None, [text]
    if is_json(file) and (wrong := _not_json(text, file)) is not None:
        return None, [wrong]
    builder = Builder(file)
    try:
        top = builder.build(text)
    except Refusal as refusal:
        return None, [mistake("yaml-refused", refusal.message, refusal.mend, Location(file, *refusal.spot))]
    except yaml.YAMLError as error:
        return None, [_syntax(error, file, text)]
    wrong_values = [*builder.odd_numbers, *builder.twins]
    if not isinstance(top, dict):
        was = "empty" if top is None else f"a {'list' if isinstance(top, list) else 'single value'}"
        mend = "Begin with 'apiVersion: v3.2.0' and 'kind: DataContract', or run 'dq init'."
        return None, [
            *wrong_values,
            mistake("not-a-contract", f"the document is {was}.", mend, Location(file)),
        ]
    return top, wrong_values


def _not_json(text: str, file: str) -> Finding | None:
    try:
        json.loads(text, parse_constant=_no_json)
    except json.JSONDecodeError as error:
        said, at = error.msg[0].lower() + error.msg[1:], Location(file, error.lineno, error.colno)
    except _NoJson as error:
        said, at = f"{error} is no value", Location(file)
    except (RecursionError, ValueError):
        # Too deep, or a number of a million digits: the reader of YAML says so, with the place.
        return None
    else:
        return None
    mend = "JSON has no comments, and no comma before a closing bracket. YAML has; its files end in .yaml."
    return mistake("yaml-syntax", f"the file is named JSON and is not: {said}.", mend, at)


class _NoJson(ValueError):
    """NaN or an infinity, which Python reads and JSON does not have."""


def _no_json(word: str) -> None:
    raise _NoJson(word)


def _text(data: bytes, file: str) -> str | Finding:
    if len(data) > MAX_BYTES:
        message = f"the file has {len(data):,} bytes, more than {MAX_BYTES:,}."
        return mistake(
            "file-too-large", message, "Split it into one contract per data product.", Location(file)
        )
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return mistake("not-utf8", "the file is encoded as UTF-16.", "Save it as UTF-8.", Location(file))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line = before.count(b"\n") + 1
        column = error.start - (before.rfind(b"\n") + 1) + 1
        message = f"byte 0x{data[error.start]:02x} is not UTF-8."
        return mistake("not-utf8", message, "Save the file as UTF-8.", Location(file, line, column))
    bad = text.find("\0")
    if bad >= 0:
        line = text.count("\n", 0, bad) + 1
        column = bad - (text.rfind("\n", 0, bad) + 1) + 1
        message = "the file holds a NUL character."
        return mistake("not-utf8", message, "Remove it; it is not text.", Location(file, line, column))
    return text


# What libyaml says, and what helps. The first match wins.
_MENDS = (
    ("cannot start any token", "Indent with spaces, and quote a value that begins with a special character."),
    ("mapping values are not allowed", "Quote a value that holds ': ', and check the indentation."),
    ("did not find expected key", "Check the indentation of this line against the lines above."),
    ("did not find expected '-' indicator", "Indent the list's items alike."),
    ("could not find expected ':'", "Write 'key: value'; quote a text that spans lines."),
    ("found unexpected end of stream", "Close the quote or bracket."),
    ("control characters are not allowed", "Remove the control character."),
    ("found undefined alias", "Write the value out."),
    ("found undefined tag handle", "Write plain YAML values, without tags."),
)


def _syntax(error: yaml.YAMLError, file: str, text: str) -> Finding:
    problem = str(getattr(error, "problem", None) or getattr(error, "reason", None) or error).splitlines()[0]
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    at = Location(file, mark.line + 1, mark.column + 1) if mark else Location(file)
    lines = text.splitlines()
    line = lines[at.line - 1] if at.line <= len(lines) else ""
    if "\t" in line[: max(at.column, len(line) - len(line.lstrip()))]:
        problem, mend = "a tab stands where YAML wants spaces", "Indent with spaces."
    else:
        mend = next((mend for part, mend in _MENDS if part in problem), "Mend the YAML at this place.")
    return mistake("yaml-syntax", f"this is not YAML: {problem}.", mend, at)
