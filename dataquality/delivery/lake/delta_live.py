"""Which partitions of a Delta table have data now: its newest checkpoint, and the commits since.

Source: https://github.com/delta-io/delta/blob/master/PROTOCOL.md, "Action Reconciliation".
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import BytesIO
from typing import Any

from dq.dataquality.delivery.lake import delta_names
from dq.dataquality.delivery.lake.commit import Pairs
from dq.dataquality.delivery.lake.delta import partition
from dq.dataquality.delivery.lake.files import Files, Seen

# Of a larger checkpoint nobody knows what its columns unpack to.
_MOST_FILES, _MOST_BYTES = 1_000_000, 256 * 2**20
_COMMIT = re.compile(r"\d{20}\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.\d{10}\.(\d{10}))?\.parquet")


def live(files: Files, place: str) -> set[Pairs] | None:
    """The partitions with files, as pairs of column and value; `()` for a table without partitions.

    None where it cannot be told: the log is cut, and its checkpoint is too large or lies in files of its own
    (version 2). Raises what the storage raises, and ImportError without pyarrow where a checkpoint is needed.
    """
    log = f"{place}/_delta_log"
    inside = files.inside(log)
    commits = sorted((one for one in inside if _COMMIT.fullmatch(one.name)), key=lambda one: one.name)
    number, parts = _checkpoint(inside)
    if not parts and (not commits or int(commits[0].name[:20]) != 0):
        return None
    there: dict[str, Pairs] = {}
    for name in parts:
        found = _checkpointed(files.read(f"{log}/{name}"))
        if found is None:
            return None
        there |= _paths(found)
    for one in commits:
        if one.name[:20] > number:
            actions = [
                json.loads(line) for line in files.read(f"{log}/{one.name}").splitlines() if line.strip()
            ]
            for action in actions:
                if "remove" in action:
                    there.pop(action["remove"]["path"], None)
            there |= _paths(action["add"] for action in actions if "add" in action)
    found_pairs = set(there.values())
    if delta_names.mapped({name for pairs in found_pairs for name, _ in pairs}):
        names = delta_names.names(files, log, inside, commits)
        return {tuple((names.get(name, name), value) for name, value in pairs) for pairs in found_pairs}
    return found_pairs


def _paths(adds: Iterable[Mapping[str, Any]]) -> dict[str, Pairs]:
    return {str(one["path"]): tuple(sorted(partition(one).items())) for one in adds}


def _checkpoint(inside: Sequence[Seen]) -> tuple[str, list[str]]:
    """The number of the newest whole checkpoint, and the names of its files; none: before all numbers."""
    by_number: dict[str, list[tuple[str, int]]] = {}
    for one in inside:
        if match := _CHECKPOINT.fullmatch(one.name):
            by_number.setdefault(match[1], []).append((one.name, int(match[2] or 1)))
    for number in sorted(by_number, reverse=True):
        for count in {parts for _, parts in by_number[number]}:
            names = sorted(name for name, parts in by_number[number] if parts == count)
            if len(names) == count:
                return number, names
    return "", []


def _checkpointed(content: bytes) -> Iterator[Mapping[str, Any]] | None:
    from pyarrow import parquet

    file = parquet.ParquetFile(BytesIO(content))
    names = file.schema_arrow.names
    groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
    size = sum(
        group.column(number).total_uncompressed_size
        for group in groups
        for number in range(group.num_columns)
    )
    if file.metadata.num_rows > _MOST_FILES or size > _MOST_BYTES:
        return None
    if "sidecar" in names and any(file.read(columns=["sidecar"]).column(0).to_pylist()):
        return None
    found = file.read(columns=["add.path", "add.partitionValues"]).column("add").to_pylist()
    return (one for one in found if one and one.get("path") is not None)
