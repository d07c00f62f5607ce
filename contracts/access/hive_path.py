"""Folders of partitions as Hive and Spark name them.

Source: org.apache.hadoop.hive.common.FileUtils, and Spark's ExternalCatalogUtils.escapePathName.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_UNSAFE = re.compile("[\x00-\x1f\"#%'*/:=?\\\\\x7f{\\[\\]^]")
_ESCAPE = re.compile("%([0-9A-Fa-f]{2})")
_EMPTY = "__HIVE_DEFAULT_PARTITION__"


def partition_folder(values: Iterable[tuple[str, str]]) -> str:
    """The folder of a partition below its table: `flight_date=2026-11-20/hour=3`.

    No name or value leads anywhere else: what a path would take for a sign of its own is escaped.
    """
    return "/".join(f"{_escaped(key)}={_escaped(value) or _EMPTY}" for key, value in values)


def unescaped(text: str) -> str:
    """The key or value that a part of a folder's name stands for.

    Every escape is one character, also where it is a byte of UTF-8: a writer that escapes `ü` as `%C3%BC`
    names the value `Ã¼` to Hive and Spark.
    """
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), text)


def _escaped(text: str) -> str:
    return _UNSAFE.sub(lambda match: f"%{ord(match[0]):02X}", text)
