"""Which files a Delta table has now, and in which partitions: its newest checkpoint, and the commits since.

Source: https://github.com/delta-io/delta/blob/master/PROTOCOL.md, "Action Reconciliation".
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any
from urllib.parse import unquote

from dq.contracts.shared.errors import Unreadable
from dq.dataquality.delivery.lake import delta_names
from dq.dataquality.delivery.lake.commit import Pairs
from dq.dataquality.delivery.lake.delta import actions_of, commits, partition
from dq.dataquality.delivery.lake.files import Files, Seen

# Of a larger checkpoint nobody knows what its columns unpack to.
_MOST_FILES, _MOST_BYTES = 1_000_000, 256 * 2**20
_NUMBERED = re.compile(r"(\d{20})\.(?:json|crc|checkpoint\..+)")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.\d{10}\.(\d{10}))?\.parquet")

Entry = Mapping[str, Any]
"""An action of the log, as its JSON has it."""


@dataclass(slots=True)
class DeltaState:
    """A table's newest version: the entries of its files by their paths, its metadata and protocol.

    `engines` says by path who added a file, where its commit is still there and tells.
    """

    files: dict[str, Entry] = field(default_factory=dict)
    engines: dict[str, str] = field(default_factory=dict)
    metadata: Entry = field(default_factory=dict)
    protocol: Entry = field(default_factory=dict)

    def add(self, actions: Sequence[Entry]) -> None:
        """One commit more, or a part of the checkpoint."""
        engine = next((one["commitInfo"].get("engineInfo") for one in actions if one.get("commitInfo")), None)
        for one in actions:
            # With a deletion vector, a file is removed and added in one commit.
            if one.get("remove"):
                self.files.pop(unquote(one["remove"]["path"]), None)
            self.metadata = one.get("metaData") or self.metadata
            self.protocol = one.get("protocol") or self.protocol
        for one in actions:
            if one.get("add"):
                path = unquote(one["add"]["path"])
                self.files[path], self.engines[path] = one["add"], str(engine or "")


def live(files: Files, place: str) -> set[Pairs] | None:
    """The partitions with files, as pairs of column and value; `()` for a table without partitions.

    None where it cannot be told, and raises, as `state` does.
    """
    found = state(files, place, ("add.path", "add.partitionValues"))
    if found is None:
        return None
    pairs = {tuple(sorted(partition(one).items())) for one in found.files.values()}
    if delta_names.mapped({name for each in pairs for name, _ in each}):
        log = f"{place}/_delta_log"
        inside = files.inside(log)
        names = delta_names.names(files, log, inside, commits(inside))
        return {tuple((names.get(name, name), value) for name, value in each) for each in pairs}
    return pairs


def state(files: Files, place: str, columns: Sequence[str]) -> DeltaState | None:
    """The newest version; of a checkpoint no more is read than these columns.

    None where it cannot be told: the log is cut or lacks a commit, and its checkpoint is not whole, too large
    or lies in files of its own (version 2). Raises Unreadable for a commit that is cut off, what the storage
    raises, and ImportError without pyarrow where a checkpoint is needed.
    """
    log = f"{place}/_delta_log"
    inside = files.inside(log)
    number, parts = _checkpoint(inside)
    since = [one for one in commits(inside) if one.name[:20] > number]
    first = int(number) + 1 if parts else 0
    numbers = [int(one.name[:20]) for one in since]
    # Of a checkpoint that is half there, or of a kind that is not read, the commits may be gone.
    newest = max((int(match[1]) for one in inside if (match := _NUMBERED.fullmatch(one.name))), default=0)
    if not (parts or since) or numbers != [*range(first, newest + 1)]:
        return None
    found = DeltaState()
    for name in parts:
        actions = _checkpointed(files.read(f"{log}/{name}"), columns)
        if actions is None:
            return None
        found.add(actions)
    for one in since:
        actions = actions_of(files.read(f"{log}/{one.name}"))
        if not actions:
            raise Unreadable(f"Delta's log has no commit in {one.name}.", "Look at this file.")
        found.add(actions)
    return found


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


def _checkpointed(content: bytes, columns: Sequence[str]) -> list[Entry] | None:
    from pyarrow import parquet

    file = parquet.ParquetFile(BytesIO(content))
    groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
    size = sum(
        group.column(number).total_uncompressed_size
        for group in groups
        for number in range(group.num_columns)
    )
    if file.metadata.num_rows > _MOST_FILES or size > _MOST_BYTES:
        return None
    if "sidecar" in file.schema_arrow.names and any(file.read(columns=["sidecar"]).column(0).to_pylist()):
        return None
    actions: list[Entry] = file.read(columns=list(columns)).to_pylist()
    return actions
