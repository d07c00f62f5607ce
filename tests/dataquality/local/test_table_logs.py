"""Logs of Delta that are damaged, lie, or ask for what nobody here knows: no number of theirs is told."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fakes import lakehouse

from dq.contracts.outcome import ReadError

SCHEMA = {
    "type": "struct",
    "fields": [
        {"name": "id", "type": "long", "nullable": True, "metadata": {}},
        {"name": "note", "type": "string", "nullable": True, "metadata": {}},
    ],
}
PROTOCOL = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["deletionVectors"]}
METADATA = {"schemaString": json.dumps(SCHEMA), "partitionColumns": []}
Action = dict[str, Any]


def added(name: str, vector: Action | None = None, engine: str = "", **stats: Any) -> list[Action]:
    entry = {"path": name, "partitionValues": {}, "size": 100, "modificationTime": 1_700_000_000_000}
    more = {"deletionVector": vector} if vector else {}
    told = {"stats": json.dumps(stats)} if stats else {}
    return [{"commitInfo": {"engineInfo": engine}}, {"add": {**entry, **told, **more}}]


def counted(rows: Any, note: Any, **more: Any) -> Action:
    return {"numRecords": rows, "nullCount": {"id": 0, "note": note}, **more}


FIRST = [{"protocol": PROTOCOL}, {"metaData": METADATA}, *added("a", **counted(5, 2))]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """The log of a table with three commits of a file each."""
    place = tmp_path / "_delta_log"
    place.mkdir()
    for number, actions in enumerate((FIRST, added("b", **counted(3, 0)), added("c", **counted(2, 2)))):
        commit(place, number, actions)
    return place


def commit(log: Path, number: int, actions: list[Action]) -> None:
    (log / f"{number:020}.json").write_text("\n".join(map(json.dumps, actions)))


def said(log: Path) -> tuple[int | None, dict[str, int | None]]:
    found = lakehouse.by_log(str(log.parent), "delta")
    return found.rows, dict(found.nulls)


def test_a_whole_log_tells_and_removed_files_count_no_more(log: Path) -> None:
    before = said(log)
    commit(log, 3, [{"remove": {"path": "a"}}, *added("d%20d", **counted(1, 0))])
    commit(log, 4, [{"remove": {"path": "d d"}}])

    assert before == (10, {"id": 0, "note": 4})
    assert said(log) == (5, {"id": 0, "note": 2})


@pytest.mark.parametrize(
    ("actions", "rows", "notes"),
    [
        (added("x"), None, None),
        (added("x", **counted(-1, 0)), None, None),
        (added("x", **counted(True, 0)), None, None),
        (added("x", **counted(4.0, 0)), None, None),
        (added("x", **counted(4, 5)), 14, None),
        (added("x", **counted(4, "0")), 14, None),
        (added("x", numRecords=4), 14, None),
        (added("x", **counted(4, 1, tightBounds=False)), 14, None),
        (added("x", vector={"cardinality": 1}, **counted(4, 1, tightBounds=False)), 13, None),
        (added("x", vector={"cardinality": 1}, **counted(4, 4, tightBounds=False)), 13, 7),
        (added("x", vector={"cardinality": 9}, **counted(4, 0)), None, 4),
        (added("x", engine="parquet-rs version 4.0.0", **counted(4, 1)), 14, None),
        (added("x", engine="presto", **counted(4, 1)), None, None),
    ],
)
def test_only_numbers_that_are_certain_are_told(
    log: Path, actions: list[Action], rows: int | None, notes: int | None
) -> None:
    commit(log, 3, actions)

    told = said(log)

    assert (told[0], told[1]["note"]) == (rows, notes)


TEXTS = pa.list_(pa.string())
CHECKPOINT = pa.schema(
    {
        "protocol": pa.struct({"minReaderVersion": pa.int32(), "readerFeatures": TEXTS}),
        "metaData": pa.struct({"schemaString": pa.string(), "partitionColumns": TEXTS}),
        "add": pa.struct(
            {
                "path": pa.string(),
                "partitionValues": pa.map_(pa.string(), pa.string()),
                "size": pa.int64(),
                "modificationTime": pa.int64(),
                "stats": pa.string(),
            }
        ),
    }
)


def checkpoint(log: Path) -> None:
    """The first commit as a checkpoint, without its own file."""
    pq.write_table(pa.Table.from_pylist(FIRST, CHECKPOINT), log / f"{0:020}.checkpoint.parquet")
    (log / f"{0:020}.json").unlink()


def test_a_checkpoint_stands_for_the_commits_before_it(log: Path) -> None:
    whole = said(log)
    checkpoint(log)

    assert said(log) == whole


def _half_a_checkpoint(log: Path) -> None:
    # The older one knows nothing of the commits that are gone.
    checkpoint(log)
    for number in (1, 2):
        (log / f"{number:020}.json").unlink()
    (log / f"{2:020}.checkpoint.{1:010}.{2:010}.parquet").touch()


def _asks_for(**protocol: Any) -> Callable[[Path], None]:
    return lambda log: commit(log, 3, [{"protocol": {**PROTOCOL, **protocol}}])


def _replaced(number: int, text: str) -> Callable[[Path], None]:
    return lambda log: (log / f"{number:020}.json").write_text(text) and None


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (lambda log: (log / f"{1:020}.json").unlink(), "is truncated"),
        (lambda log: (log / f"{0:020}.json").unlink(), "is truncated"),
        (lambda log: (log / f"{7:020}.crc").touch(), "is truncated"),
        (lambda log: (log / f"{2:020}.checkpoint.0a-1b.json").touch() or commit(log, 5, []), "is truncated"),
        (_half_a_checkpoint, "is truncated"),
        (_replaced(2, ""), "00000000000000000002.json in Delta's log is not a commit"),
        (_replaced(2, '{"add": {"path"'), "cannot be understood"),
        (_replaced(2, "[1]"), "cannot be understood"),
        (_replaced(2, "[" * 100_000), "cannot be understood"),
        (_replaced(0, json.dumps({"protocol": PROTOCOL})), "cannot be understood"),
        (_asks_for(minReaderVersion=4), "version 4"),
        (_asks_for(readerFeatures=["deletionVectors", "fancy", "catalogManaged"]), "catalogManaged, fancy"),
        (_asks_for(writerFeatures=["coordinatedCommits-preview"]), "coordinatedCommits-preview"),
        (lambda log: log.rename(log.parent / "log"), "it is not a delta table"),
    ],
)
def test_a_log_that_is_not_certain_tells_nothing_but_why(
    log: Path, damage: Callable[[Path], None], why: str
) -> None:
    damage(log)

    with pytest.raises(ReadError, match=why):
        said(log)
