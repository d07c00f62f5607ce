"""Reads the bytes of a contract file to plain values with their locations, or to findings, at bounded
cost.
"""

from __future__ import annotations

import codecs
import json
from typing import Any

from dq.contracts.access.files import MAX_BYTES, is_json
from dq.contracts.model import Position
from dq.contracts.outcome import Finding, Location, error_finding
from dq.contracts.yaml import lines


def read(data: bytes, file: str) -> tuple[dict[str, Any] | None, list[Finding]]:
    """Return the top mapping of a YAML document, with a `Place` in each mapping, and the findings.

    Accepts UTF-8 with or without a byte order mark and any line ending. Returns None and one finding if it
    cannot be read: other encodings, NUL, more than 5 MB, invalid YAML, several documents, depth over 64, more
    than 10,000 values from aliases, tags that are not plain data, and invalid JSON in a file named `.json`.
    Duplicate keys are findings; the last one wins, as in every YAML reader. Numbers that YAML 1.1 and 1.2
    read differently are findings too.
    """
    text = _text(data, file)
    if isinstance(text, Finding):
        return None, [text]
    if is_json(file) and (wrong := _not_json(text, file)) is not None:
        return None, [wrong]
    common = lines.read(text, file)
    if common is not None:
        return common, []
    # Imported here: PyYAML takes longer to import than most contracts take to read.
    from dq.contracts.yaml.builder import build

    return build(text, file)


def _not_json(text: str, file: str) -> Finding | None:
    try:
        json.loads(text, parse_constant=_reject_constant)
    except json.JSONDecodeError as error:
        reason, location = error.msg[0].lower() + error.msg[1:], Location(file, error.lineno, error.colno)
    except _NoJson as error:
        reason, location = f"{error} is not a value", Location(file)
    except (RecursionError, ValueError):
        # Too deep, or a number of a million digits: the reader of YAML says so, with the place.
        return None
    else:
        return None
    hint = "JSON has no comments and no trailing commas. Use YAML for these, in a file that ends in .yaml."
    return error_finding(
        "yaml-syntax", f"the file is named .json but is not valid JSON: {reason}.", hint, location
    )


class _NoJson(ValueError):
    """NaN or an infinity, which Python accepts although JSON does not have it."""


def _reject_constant(word: str) -> None:
    raise _NoJson(word)


def _text(data: bytes, file: str) -> str | Finding:
    if len(data) > MAX_BYTES:
        message = f"the file has {len(data):,} bytes, more than {MAX_BYTES:,}."
        return error_finding(
            "file-too-large", message, "Split it into one contract per data product.", Location(file)
        )
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return error_finding(
            "not-utf8", "the file is encoded as UTF-16.", "Save it as UTF-8.", Location(file)
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        message = f"byte 0x{data[error.start]:02x} is not UTF-8."
        location = Location(file, *_end_of(data[: error.start].decode("latin-1")))
        return error_finding("not-utf8", message, "Save the file as UTF-8.", location)
    before, nul, _ = text.partition("\0")
    if nul:
        location = Location(file, *_end_of(before))
        return error_finding(
            "not-utf8", "the file contains a NUL character.", "Remove it; it is not text.", location
        )
    return text


def _end_of(text: str) -> Position:
    return text.count("\n") + 1, len(text) - text.rfind("\n")
