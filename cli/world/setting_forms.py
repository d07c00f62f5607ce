"""What the value of a setting must be: how it is read from a variable and from TOML."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from dq.contracts.shared.outcome import Severity

_TOPIC = r"arn:aws[a-z-]*:sns:[a-z0-9-]+:[0-9]{12}:(?:[A-Za-z0-9_-]|\{domain\}){1,256}"


@dataclass(frozen=True, slots=True)
class Form:
    """What a setting's value must be. `of_text` reads a variable, `of_toml` what TOML gave.

    Both raise ValueError; `wanted` then says what was wanted, and `example` how it is written in TOML.
    `paths`: relative ones are of the folder of the file, or of the working folder.
    """

    wanted: str
    example: str
    of_text: Callable[[str], object]
    of_toml: Callable[[object], object]
    paths: bool = False


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(one, str) and one.strip() for one in value):
        raise ValueError(value)
    return tuple(one.strip() for one in value)


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in re.split("[,\n]", text) if part.strip())


def _names(value: object) -> tuple[str, ...]:
    found = _listed(value) if isinstance(value, str) else _texts(value)
    if not all(re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", one) for one in found):
        raise ValueError(value)
    return found


def _count(value: object) -> int:
    whole = int(value) if isinstance(value, str) and re.fullmatch("[0-9]{1,9}", value.strip()) else value
    if not isinstance(whole, int) or isinstance(whole, bool) or whole < 0:
        raise ValueError(value)
    return whole


def _seconds(value: object) -> int:
    whole = _count(value)
    if whole < 1:
        raise ValueError(value)
    return whole


def _number(value: object) -> str:
    """A number as a text: the channel that takes it judges it."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else _text(value)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(value)
    return value.strip()


def _topic(value: object) -> str:
    if not re.fullmatch(_TOPIC, _text(value)):
        raise ValueError(value)
    return _text(value)


def _folder(value: object) -> str:
    return "" if value is False or value == "off" else _text(value)


def _mention(value: object) -> str:
    if value is not False and value not in ("off", *Severity):
        raise ValueError(value)
    return str(value or "off")


NAMES = Form("a list of names of variables", '["LAKE"]', _names, _names)
ROOTS = Form("a list of folders and URI prefixes", '["s3://lake", "/data"]', _listed, _texts, paths=True)
TEXTS = Form("a list of texts", '["…"]', _listed, _texts)
SECONDS = Form("a whole number of seconds from 1 up", "1800", _seconds, _seconds)
COUNT = Form("a whole number from 0 up", "10", _count, _count)
NUMBER = Form("a number", "10", _number, _number)
TOPIC = Form(
    "the ARN of a standard topic of SNS, in which {domain} may stand for the contract's domain",
    '"arn:aws:sns:eu-central-1:123456789012:dq-{domain}"',
    _topic,
    _topic,
)
TEXT = Form("a text", '"…"', _text, _text)
SEVERITY = Form('a severity, or "off"', '"error"', _mention, _mention)
TARGET = Form("a file or a URL", '"/var/log/dq/lineage.jsonl"', _text, _text, paths=True)
FOLDER = Form('a folder, or "off"', '"/var/lib/dq/alerts"', _folder, _folder, paths=True)
