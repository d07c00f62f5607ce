"""What was delivered into a table with a log, and taken away again, by the log alone."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from fakes.watcher import TableWatcher, at

from dq.contracts.incident import Breach, CycleStatus, Recovery
from dq.dataquality.delivery import cycle_store
from dq.lake import hudi, iceberg
from dq.lake.storage import LocalFiles
from dq.store.engine import Store, open_store

DAILY = 'partition: {day: "{due:%F}"}'
DAY, OTHER = "2026-05-11", "2026-05-10"
MISSING, ON_TIME, LATE = CycleStatus.MISSING, CycleStatus.ON_TIME, CycleStatus.LATE


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(f"sqlite:///{tmp_path / 'store.db'}")


def entry(name: str, day: str | None = DAY, *, moved: bool = False) -> dict[str, object]:
    return {"path": name, "partitionValues": {"day": day} if day else {}, "dataChange": not moved}


class Log:
    """A Delta log; each commit names the files that it adds and removes."""

    def __init__(self, root: Path, version: int = 0) -> None:
        self.folder, self.version = root / "_delta_log", version
        self.folder.mkdir(parents=True)

    def commit(
        self,
        when: str,
        operation: str,
        add: tuple[dict[str, object], ...] = (),
        remove: tuple[dict[str, object], ...] = (),
    ) -> None:
        file = self.folder / f"{self.version:020}.json"
        self.version += 1
        actions = [{"commitInfo": {"operation": operation}}]
        file.write_text(
            "\n".join(
                [
                    *map(json.dumps, actions),
                    *(json.dumps({"remove": one}) for one in remove),
                    *(json.dumps({"add": one}) for one in add),
                ]
            )
        )
        os.utime(file, (at(when).timestamp(),) * 2)

    def checkpoint(self, *there: dict[str, object]) -> None:
        """Stands for all commits so far, which are cleaned up."""
        import pyarrow as pa
        from pyarrow import parquet

        kind = pa.struct(
            [("path", pa.string()), ("partitionValues", pa.map_(pa.string(), pa.string()))],
        )
        rows = [{"path": one["path"], "partitionValues": one["partitionValues"]} for one in there]
        table = pa.table({"add": pa.array([*rows, None], kind)})
        parquet.write_table(table, self.folder / f"{self.version - 1:020}.checkpoint.parquet")
        for file in self.folder.glob("*.json"):
            file.unlink()


@pytest.fixture
def table(store: Store, tmp_path: Path) -> tuple[TableWatcher, Log]:
    """A table whose delivery of the day was on time, in two files, and is looked at again at 04:20."""
    watcher, log = TableWatcher(store, tmp_path / "t", DAILY, "delta"), Log(tmp_path / "t")
    watcher.tick("2026-05-10T12:00")
    log.commit("2026-05-10T03:00", "WRITE", (entry("old", OTHER),))
    log.commit("2026-05-11T03:00", "WRITE", (entry("a"), entry("b")))
    assert watcher.tick("2026-05-11T04:05") == [ON_TIME]
    return watcher, log


def receive(store: Store, when: str) -> None:
    with store.write() as tx:
        cycle_store.write_receipt(
            tx,
            id=when,
            contract="orders",
            object="orders",
            partition=f"day={DAY}",
            due_at=None,
            delivered_at=at(when),
            rows=2,
            version="1.0.0",
        )


def told(watcher: TableWatcher) -> list[str]:
    return [one.title for one in watcher.told if isinstance(one, Breach)]


@pytest.mark.parametrize("operation", ["DELETE", "RESTORE", "TRUNCATE", "MERGE", "WRITE"])
def test_what_a_commit_takes_away_is_missing_again(table: tuple[TableWatcher, Log], operation: str) -> None:
    watcher, log = table
    more = (entry("c", OTHER),) if operation in ("MERGE", "WRITE") else ()
    log.commit("2026-05-11T04:10", operation, more, (entry("a"), entry("b")))

    first = watcher.tick("2026-05-11T04:21")
    sure = watcher.tick("2026-05-11T04:32")

    assert (first, sure) == ([ON_TIME], [MISSING])
    assert told(watcher) == ["orders was removed after delivery: day=2026-05-11"]


@pytest.mark.parametrize(
    ("operation", "add", "remove"),
    [
        ("DELETE", (), (entry("a"),)),
        ("DELETE", (entry("c"),), (entry("a"), entry("b"))),
        ("OPTIMIZE", (entry("c", moved=True),), (entry("a", moved=True), entry("b", moved=True))),
        ("WRITE", (entry("c"),), (entry("a"), entry("b"))),
        ("VACUUM END", (), ()),
        ("DELETE", (), (entry("old", OTHER),)),
    ],
    ids=["some rows", "rows of all files", "compaction", "overwrite", "vacuum", "another day"],
)
def test_what_leaves_data_there_takes_nothing_away(
    table: tuple[TableWatcher, Log],
    operation: str,
    add: tuple[dict[str, object], ...],
    remove: tuple[dict[str, object], ...],
) -> None:
    watcher, log = table
    log.commit("2026-05-11T04:10", operation, add, remove)

    for minute in ("04:21", "04:32", "05:30", "08:00"):
        assert watcher.tick(f"2026-05-11T{minute}") == [ON_TIME]
    assert watcher.told == []


def test_what_comes_back_counts_from_then_on(table: tuple[TableWatcher, Log]) -> None:
    watcher, log = table
    log.commit("2026-05-11T04:10", "DELETE", (), (entry("a"), entry("b")))
    watcher.tick("2026-05-11T04:21")
    watcher.tick("2026-05-11T04:32")
    still = watcher.tick("2026-05-11T06:00")
    log.commit("2026-05-11T07:00", "WRITE", (entry("c"),))

    assert (still, watcher.tick("2026-05-11T07:10")) == ([MISSING], [LATE])
    assert isinstance(watcher.told[-1], Recovery)


def test_what_is_gone_for_some_minutes_is_being_written_anew(table: tuple[TableWatcher, Log]) -> None:
    watcher, log = table
    log.commit("2026-05-11T04:10", "DELETE", (), (entry("a"), entry("b")))
    watcher.tick("2026-05-11T04:21")
    log.commit("2026-05-11T04:25", "WRITE", (entry("c"),))

    assert watcher.tick("2026-05-11T04:32") == [ON_TIME]
    assert watcher.tick("2026-05-11T06:00") == [ON_TIME]


def test_what_was_taken_away_before_anybody_looked_never_came(store: Store, tmp_path: Path) -> None:
    watcher, log = TableWatcher(store, tmp_path / "t", DAILY, "delta"), Log(tmp_path / "t")
    watcher.tick("2026-05-10T12:00")
    log.commit("2026-05-11T03:00", "WRITE", (entry("a"),))
    log.commit("2026-05-11T03:30", "DELETE", (), (entry("a"),))

    assert watcher.tick("2026-05-11T04:40") == [MISSING]


@pytest.mark.parametrize(
    ("left", "status"),
    [((entry("old", OTHER),), MISSING), ((entry("older"), entry("old", OTHER)), ON_TIME)],
    ids=["nothing else", "older data of the day"],
)
def test_a_checkpoint_tells_what_is_left(
    table: tuple[TableWatcher, Log], left: tuple[dict[str, object], ...], status: CycleStatus
) -> None:
    watcher, log = table
    log.commit("2026-05-11T04:10", "DELETE", (), (entry("a"), entry("b")))
    watcher.tick("2026-05-11T04:21")
    log.checkpoint(*left)
    log.commit("2026-05-11T04:25", "OPTIMIZE")

    assert watcher.tick("2026-05-11T04:32") == [status]


def test_a_cut_log_without_a_checkpoint_takes_nothing_away(table: tuple[TableWatcher, Log]) -> None:
    watcher, log = table
    log.commit("2026-05-11T04:10", "DELETE", (), (entry("a"), entry("b")))
    (log.folder / f"{0:020}.json").unlink()

    watcher.tick("2026-05-11T04:21")

    assert watcher.tick("2026-05-11T04:32") == [ON_TIME]


def test_a_table_without_partitions_that_is_emptied_is_missing_again(store: Store, tmp_path: Path) -> None:
    watcher, log = TableWatcher(store, tmp_path / "t", "evidence: [commit]", "delta"), Log(tmp_path / "t")
    watcher.tick("2026-05-10T12:00")
    log.commit("2026-05-11T03:00", "WRITE", (entry("a", None),))
    assert watcher.tick("2026-05-11T04:05") == [ON_TIME]
    log.commit("2026-05-11T04:10", "TRUNCATE", (), (entry("a", None),))

    watcher.tick("2026-05-11T04:21")

    assert watcher.tick("2026-05-11T04:32") == [MISSING]


def test_a_path_tells_the_partition_that_an_entry_does_not(table: tuple[TableWatcher, Log]) -> None:
    watcher, log = table
    plain = ({"path": f"day=2026-05-11/{name}", "dataChange": True} for name in "ab")
    log.commit("2026-05-11T04:06", "WRITE", tuple({**entry(f"day=2026-05-11/{n}")} for n in "ab"))
    log.commit("2026-05-11T04:10", "DELETE", (), (entry("a"), entry("b"), *plain))

    watcher.tick("2026-05-11T04:21")

    assert watcher.tick("2026-05-11T04:32") == [MISSING]


def test_a_receipt_of_before_does_not_bring_back_what_was_taken_away(store: Store, tmp_path: Path) -> None:
    more = f"{DAILY}, evidence: [receipt, commit]"
    watcher, log = TableWatcher(store, tmp_path / "t", more, "delta"), Log(tmp_path / "t")
    watcher.tick("2026-05-10T12:00")
    log.commit("2026-05-11T03:00", "WRITE", (entry("a"),))
    receive(store, "2026-05-11T03:01")
    assert watcher.tick("2026-05-11T04:05") == [ON_TIME]
    log.commit("2026-05-11T04:10", "DELETE", (), (entry("a"),))

    watcher.tick("2026-05-11T04:21")

    assert watcher.tick("2026-05-11T04:32") == [MISSING]
    assert watcher.tick("2026-05-11T05:00") == [MISSING]
    log.commit("2026-05-11T06:00", "WRITE", (entry("b"),))
    assert watcher.tick("2026-05-11T06:01") == [LATE]


ICEBERG = {
    "current-snapshot-id": 1,
    "schemas": [],
    "snapshots": [
        {"snapshot-id": 1, "timestamp-ms": 1, "summary": {"operation": "replace"}},
        {"snapshot-id": 2, "parent-snapshot-id": 1, "timestamp-ms": 2, "summary": {"operation": "append"}},
    ],
}


def test_an_iceberg_snapshot_that_was_rolled_back_is_undone_and_an_expired_one_is_not(tmp_path: Path) -> None:
    (tmp_path / "metadata").mkdir()
    (tmp_path / "metadata" / "v3.metadata.json").write_text(json.dumps(ICEBERG))

    log = iceberg.read(LocalFiles(), str(tmp_path), ("0", "1", "2"), at("2026-05-01T00:00"))

    assert (log.commit_ids, log.rolled_back) == (("1",), ("2",))


def test_a_hudi_instant_that_was_restored_away_is_undone_and_an_archived_one_is_not(tmp_path: Path) -> None:
    home = tmp_path / ".hoodie"
    home.mkdir()
    (home / "hoodie.properties").write_text("hoodie.timeline.layout.version=1\n")
    old, kept, gone = (f"2026051103{minute}00000.commit" for minute in ("00", "10", "20"))
    (home / kept).write_text(json.dumps({"operationType": "UPSERT"}))

    log = hudi.read(LocalFiles(), str(tmp_path), (old, kept, gone), at("2026-05-01T00:00"))

    assert (log.commit_ids, log.rolled_back) == ((kept,), (gone,))
