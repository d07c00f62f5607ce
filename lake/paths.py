"""Names of a table's files and folders: which hold rows, and the partitions that they spell."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

# Names of a table's files and folders that hold rows: Spark's rule, for every reader of a lake.
#
# Source: HadoopFSUtils.shouldFilterOutPathName and PartitioningAwareFileIndex.isDataPath of Spark 3.5
# and 4.0. Hive and Trino pass over the same names that begin with `_` or a dot.


def is_data_name(name: str) -> bool:
    """Return whether a reader takes rows from a file of this name, or enters such a folder.

    Names that begin with a dot are hidden, and so are those that begin with `_`, unless they hold a `=`
    (`_hour=7`). `._COPYING_` ends the name of an upload by Hadoop that has not finished.
    """
    hidden = name.startswith(".") or (name.startswith("_") and "=" not in name)
    return not hidden and not is_unfinished(name)


def is_unfinished(name: str) -> bool:
    """Return whether a file of this name is an upload by Hadoop that has not finished."""
    return name.endswith("._COPYING_")


def is_data_path(path: str) -> bool:
    """Return whether a reader of a table takes rows at this path, which is relative to its folder."""
    return all(is_data_name(step) for step in path.split("/"))


# Folders of partitions as Hive and Spark name them.
#
# Source: org.apache.hadoop.hive.common.FileUtils, and Spark's ExternalCatalogUtils.escapePathName.

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


@dataclass(frozen=True, slots=True)
class PlacedPartition:
    """A partition whose files lie in a folder of their own, not where Hive would put them."""

    values: tuple[tuple[str, str], ...]
    folder: str

    def root(self, keys: Sequence[str]) -> str | None:
        """The folder above, where this one is named as its partition by the table's keys; else None."""
        order = {key.lower(): number for number, key in enumerate(keys)}
        if {key.lower() for key, _ in self.values} != order.keys():
            return None
        below = f"/{partition_folder(sorted(self.values, key=lambda pair: order[pair[0].lower()]))}"
        folder = self.folder.rstrip("/")
        return folder.removesuffix(below) if folder.endswith(below) else None

    def is_named_in(self, folders: Mapping[str, str]) -> bool:
        """Whether a file's folders, as `named_folders` has them, are those of this partition."""
        return {key.lower(): value for key, value in self.values}.items() <= folders.items()


def named_folders(path: str) -> dict[str, str]:
    """The values that the names of a file's folders say, by their columns in lower case."""
    segments = [segment.partition("=") for segment in path.split("/")[:-1]]
    return {unescaped(name).lower(): unescaped(text) for name, equals, text in segments if equals}
