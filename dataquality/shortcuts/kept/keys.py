"""How many different keys a table has, from the codes of keys that are kept of its folders.

The codes of all folders that did not change are kept once more together, so that one new folder is compared
with one list. Where codes are hashes, they prove that no key repeats, and say nothing where one does.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from dq.dataquality.model.column import Column
from dq.dataquality.model.metric import Answer, DistinctKeys, Metric, RepeatedKeys
from dq.dataquality.shortcuts.kept.folders import Folders, rows_of
from dq.dataquality.shortcuts.kept.tasks import by_tasks
from dq.dataquality.shortcuts.kernels.codes import Codes, Keys, run_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from dq.dataquality.spark.readers.open import Dataset

# The folder under which the codes of many stand together.
TOGETHER = ""
# The list of all is made anew when what came since is more than this part of it.
_SINCE = 8
# What a code is; raised when that changes.
_CODING = "1"


@dataclass(frozen=True, slots=True)
class HeldKeys:
    """What is kept of a folder's keys: its print, how many rows have a key, and their codes, packed.

    `members` are the prints of the folders whose codes stand together, None for a folder of its own; the
    print is made of theirs then.
    """

    print: str
    rows: int
    members: Mapping[str, str] | None = None
    codes: bytes = b""


class KeyMemory(Protocol):
    """Where keys are kept, by the dataset's path, their question and the folder."""

    @property
    def most(self) -> int:
        """How many keys of one question may be kept."""
        ...

    def held(self, dataset: str, question: str) -> Mapping[str, HeldKeys]:
        """What is kept of every folder, without the codes."""
        ...

    def codes(self, dataset: str, question: str, prints: Mapping[str, str]) -> Mapping[str, bytes]:
        """The codes of these folders, as they were packed, where their prints are still these."""
        ...

    def hold(self, dataset: str, question: str, keys: Mapping[str, HeldKeys], gone: Set[str]) -> None:
        """Keeps keys in the place of earlier ones of the same folders, and forgets folders that are gone."""
        ...


def different(
    metric: Metric, table: DataFrame, dataset: Dataset, folders: Folders, memory: KeyMemory, tasks_from: int
) -> tuple[Answer, ...]:
    """The answer about the keys of all of a table; none where it takes a scan."""
    import pyarrow as pa

    if not isinstance(metric, RepeatedKeys | DistinctKeys) or metric.where is not None:
        return ()
    if not all(len(key.steps) == 1 for key in metric.keys):
        return ()
    keys = Keys(tuple(str(key.steps[0]) for key in metric.keys))
    types = dict(zip(folders.around.schema.names, folders.around.schema.parts, strict=True))
    if not keys.sound(types):
        return ()
    told = "\n".join((folders.around.digest, _CODING, *keys.columns))
    question = hashlib.sha256(told.encode()).hexdigest()
    try:
        found = _counted(keys, metric.keys, question, table, dataset, folders, memory, tasks_from)
    except (OSError, ValueError, pa.ArrowException):
        # What is kept is damaged.
        return ()
    if found is None:
        return ()
    rows, distinct = found
    if rows != distinct and not keys.exact(types):
        return ()
    return (distinct if isinstance(metric, DistinctKeys) else rows - distinct,)


def _counted(
    keys: Keys,
    columns: Sequence[Column],
    question: str,
    table: DataFrame,
    dataset: Dataset,
    folders: Folders,
    memory: KeyMemory,
    tasks_from: int,
) -> tuple[int, int] | None:
    """How many rows have a key, and how many different codes these keys have."""
    assert dataset.path is not None
    held = dict(memory.held(dataset.path, question))
    base = held.pop(TOGETHER, None)
    prints = folders.prints
    same = {one: kept for one, kept in held.items() if prints.get(one) == kept.print}
    missing = {one: folder for one, folder in folders.listed.items() if one not in same}
    rows = sum(kept.rows for kept in same.values())
    new: dict[str, Codes] = {}
    if missing:
        frame = table if len(missing) == len(prints) else rows_of(table, dataset, list(missing.values()))
        if frame is None:
            return None
        new = by_tasks([keys], columns, frame, missing, tasks_from, memory.most - rows).get(keys, {})
        if not new:
            return None
        rows += sum(one.rows for one in new.values())
    members = base.members if base is not None and base.members is not None else {}
    if any(prints.get(folder) != print for folder, print in members.items()):
        members = {}
    since = [one for one in same if one not in members]
    wanted = {one: same[one].print for one in since}
    if members and base is not None:
        wanted[TOGETHER] = base.print
    stored = memory.codes(dataset.path, question, wanted)
    if stored.keys() != wanted.keys():
        # Another check has changed them since.
        return None
    together = _unpacked(stored[TOGETHER]) if members else run_of([]).codes
    settled = [_unpacked(stored[one]) for one in since] + [new[one].codes for one in new if prints[one]]
    open_ = [new[one].codes for one in new if not prints[one]]
    keep = {
        one: HeldKeys(print, new[one].rows, None, _packed(new[one].codes))
        for one in new
        if (print := prints[one])
    }
    if sum(map(len, settled)) * _SINCE > len(together):
        together = run_of([together, *settled]).codes
        settled = []
        whole = {one: print for one, print in prints.items() if print}
        told = "\n".join(sorted(f"{folder}\n{print}" for folder, print in whole.items()))
        keep[TOGETHER] = HeldKeys(hashlib.sha256(told.encode()).hexdigest(), 0, whole, _packed(together))
    if keep:
        memory.hold(dataset.path, question, keep, held.keys() - prints.keys())
    since_then = run_of([*settled, *open_]).codes
    return rows, len(together) + len(since_then) - _shared(together, since_then)


def _shared(many: Any, few: Any) -> int:
    """How many of the one are among the other, both of which have no code twice."""
    import pyarrow.compute as pc

    return int(pc.sum(pc.is_in(many, value_set=few)).as_py() or 0)


def _packed(codes: Any) -> bytes:
    """As differences, which are small: about 5 bytes for a hash of millions, less than 2 for a number."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    made = pa.BufferOutputStream()
    pq.write_table(
        pa.table({"code": codes}),
        made,
        compression="none",
        use_dictionary=False,
        write_statistics=False,
        column_encoding={"code": "DELTA_BINARY_PACKED"},
        write_page_checksum=True,
    )
    return bytes(made.getvalue())


def _unpacked(codes: bytes) -> Any:
    """Raises OSError for what is damaged."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    read = pq.read_table(pa.BufferReader(codes), page_checksum_verification=True, use_threads=False)
    return read.column("code").combine_chunks()
