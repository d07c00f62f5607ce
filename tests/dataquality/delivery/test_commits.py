"""What logs of tables say of deliveries, where no Spark is needed to have them say it."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest
from fakes.watcher import TableWatcher, at

from dq.contracts.incident import CycleStatus
from dq.contracts.outcome import ReadError
from dq.lake.storage import LocalFiles
from dq.store.engine import Store, open_store

DAILY = 'partition: {day: "{due:%F}"}'
MISSING, ON_TIME, UNKNOWN = CycleStatus.MISSING, CycleStatus.ON_TIME, CycleStatus.UNKNOWN


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(f"sqlite:///{tmp_path / 'store.db'}")


class Log:
    """A Delta log whose commits stand at chosen times."""

    def __init__(self, root: Path, version: int = 0) -> None:
        self.root, self.version = root, version
        (root / "_delta_log").mkdir(parents=True)

    def commit(self, when: str, *days: str, **info: object) -> Path:
        file = self.root / "_delta_log" / f"{self.version:020}.json"
        self.version += 1
        adds = [
            {"add": {"path": f"{day}.parquet", "partitionValues": {"day": day}, "dataChange": True}}
            for day in days
        ]
        actions = [{"commitInfo": {"operation": "WRITE"} | info}, *adds]
        return self._put(file, when, actions)

    def snapshot(self, when: str, **info: object) -> Path:
        file = self.root / "_delta_log" / f"{self.version:020}.json"
        self.version += 1
        add = {"add": {"path": f"{file.name}.parquet", "partitionValues": {}, "dataChange": True}}
        return self._put(file, when, [{"commitInfo": {"operation": "WRITE"} | info}, add])

    @staticmethod
    def _put(file: Path, when: str, actions: Iterable[object]) -> Path:
        file.write_text("\n".join(json.dumps(one) for one in actions))
        os.utime(file, (at(when).timestamp(),) * 2)
        return file


def test_the_first_commit_of_a_partition_is_its_delivery(store: Store, tmp_path: Path) -> None:
    watcher, log = TableWatcher(store, tmp_path / "t", DAILY, "delta"), Log(tmp_path / "t")
    watcher.tick("2026-05-10T12:00")
    log.commit("2026-05-11T03:00", "2026-05-11")
    log.commit("2026-05-11T09:00", "2026-05-11")

    assert watcher.tick("2026-05-11T10:00") == [ON_TIME]


def test_a_commit_is_at_the_time_that_it_says_itself(store: Store, tmp_path: Path) -> None:
    watcher, log = TableWatcher(store, tmp_path / "t", DAILY, "delta"), Log(tmp_path / "t")
    watcher.tick("2026-05-10T12:00")
    late = int(at("2026-05-11T09:00").timestamp() * 1000)
    log.commit("2026-05-11T03:00", "2026-05-11", inCommitTimestamp=late)

    assert watcher.tick("2026-05-11T10:00") == [CycleStatus.LATE]


def test_what_was_seen_of_a_log_outlives_it(store: Store, tmp_path: Path) -> None:
    watcher, log = TableWatcher(store, tmp_path / "t", DAILY, "delta"), Log(tmp_path / "t")
    log.commit("2026-05-10T01:00", "2026-05-10")
    watcher.tick("2026-05-09T12:00")
    early = log.commit("2026-05-10T03:00", "2026-05-11")
    watcher.tick("2026-05-10T12:00")
    early.unlink()
    log.commit("2026-05-10T14:00", "2026-05-13")

    assert watcher.tick("2026-05-11T10:00") == [ON_TIME, ON_TIME]


def test_nothing_is_missing_by_a_log_that_begins_too_late(store: Store, tmp_path: Path) -> None:
    watcher, log = TableWatcher(store, tmp_path / "t", DAILY, "delta"), Log(tmp_path / "t", 400)
    watcher.tick("2026-05-10T12:00")
    log.commit("2026-05-10T13:00", "2026-05-01")

    unknown, missing = watcher.tick("2026-05-12T10:00")

    assert (unknown, missing) == (UNKNOWN, MISSING)
    assert watcher.platform == []


def test_a_log_that_names_no_column_of_the_promise_proves_nothing(store: Store, tmp_path: Path) -> None:
    watcher, log = TableWatcher(store, tmp_path / "t", DAILY, "delta"), Log(tmp_path / "t")
    watcher.tick("2026-05-10T12:00")
    log.snapshot("2026-05-11T03:00")

    assert watcher.tick("2026-05-11T10:00") == [UNKNOWN]
    assert "do not name day" in dict(watcher.platform[0].facts)["problem"]


def test_every_update_of_a_downtime_counts_for_its_own_cycle(store: Store, tmp_path: Path) -> None:
    watcher, log = TableWatcher(store, tmp_path / "t", "evidence: [commit]", "delta"), Log(tmp_path / "t")
    watcher.tick("2026-05-10T12:00")
    log.snapshot("2026-05-11T03:00")
    log.snapshot("2026-05-13T03:00")

    assert watcher.tick("2026-05-13T12:00") == [ON_TIME, MISSING, ON_TIME]


@pytest.mark.parametrize("operation", ["DELETE", "UPDATE", "OPTIMIZE", "REORG", "RESTORE", "VACUUM END"])
def test_what_brings_no_rows_is_no_delivery(store: Store, tmp_path: Path, operation: str) -> None:
    watcher, log = TableWatcher(store, tmp_path / "t", "evidence: [commit]", "delta"), Log(tmp_path / "t")
    watcher.tick("2026-05-10T12:00")
    (log.snapshot if operation != "VACUUM END" else log.commit)("2026-05-11T03:00", operation=operation)

    assert watcher.tick("2026-05-11T10:00") == [MISSING]


@pytest.mark.parametrize(("empty", "becomes"), [("allowed", ON_TIME), ("forbidden", MISSING)])
def test_a_write_of_no_rows_is_a_delivery_where_that_is_allowed(
    store: Store, tmp_path: Path, empty: str, becomes: CycleStatus
) -> None:
    watcher = TableWatcher(store, tmp_path / "t", f"evidence: [commit], empty: {empty}", "delta")
    watcher.tick("2026-05-10T12:00")
    Log(tmp_path / "t").commit("2026-05-11T03:00")

    assert watcher.tick("2026-05-11T10:00") == [becomes]


def test_a_table_that_was_made_anew_at_its_place_is_read_anew(store: Store, tmp_path: Path) -> None:
    watcher, log = TableWatcher(store, tmp_path / "t", DAILY, "delta"), Log(tmp_path / "t")
    watcher.tick("2026-05-10T12:00")
    log.commit("2026-05-11T03:00", "2026-05-11")
    watcher.tick("2026-05-11T10:00")
    shutil.rmtree(log.root)
    Log(log.root).commit("2026-05-12T03:00", "2026-05-12")

    assert watcher.tick("2026-05-12T10:00") == [ON_TIME, ON_TIME]


def test_a_file_beside_the_log_is_no_delivery(store: Store, tmp_path: Path) -> None:
    watcher, log = TableWatcher(store, tmp_path / "t", DAILY, "delta"), Log(tmp_path / "t")
    log.commit("2026-05-10T03:00", "2026-05-10")
    watcher.tick("2026-05-10T12:00")
    (log.root / "day=2026-05-11").mkdir()
    (log.root / "day=2026-05-11" / "not-committed.parquet").write_text("rows")

    assert watcher.tick("2026-05-11T10:00") == [MISSING]


def test_a_broken_commit_is_unknown_until_it_is_whole(store: Store, tmp_path: Path) -> None:
    watcher, log = TableWatcher(store, tmp_path / "t", DAILY, "delta"), Log(tmp_path / "t")
    watcher.tick("2026-05-10T12:00")
    file = log.commit("2026-05-11T03:00", "2026-05-11")
    whole = file.read_text()
    file.write_text(whole[:-9])
    broken = watcher.tick("2026-05-11T10:00")
    file.write_text(whole)
    os.utime(file, (at("2026-05-11T03:00").timestamp(),) * 2)

    assert (broken, watcher.tick("2026-05-11T10:05")) == ([UNKNOWN], [ON_TIME])


def test_commits_asked_of_plain_files_are_unknown_and_not_missing(store: Store, tmp_path: Path) -> None:
    watcher = TableWatcher(store, tmp_path / "t", "evidence: [commit]")
    (tmp_path / "t").mkdir()
    watcher.tick("2026-05-10T12:00")

    assert watcher.tick("2026-05-11T10:00") == [UNKNOWN]


METADATA = {
    "format-version": 2,
    "schemas": [{"fields": [{"id": 1, "name": "day"}]}],
    "partition-specs": [{"spec-id": 0, "fields": [{"name": "day", "source-id": 1, "transform": "identity"}]}],
    "current-snapshot-id": 1,
    "snapshots": [
        {"snapshot-id": 1, "timestamp-ms": 1, "summary": {"operation": "append"}, "manifest-list": "__LIST__"}
    ],
}


@pytest.mark.parametrize(
    ("names", "manifests", "said"),
    [
        (["v1.metadata.json"], "/etc/metadata/../passwd", "is outside"),
        (["v1.metadata.json"], "s3://elsewhere/t/data/snap.avro", "is outside"),
        (
            [f"00001-{digit * 8}-1111-1111-1111-111111111111.metadata.json" for digit in "12"],
            "",
            "2 files of version 1",
        ),
    ],
    ids=["a path upwards", "another place", "two newest"],
)
def test_a_log_of_iceberg_leads_nowhere_else(
    store: Store, tmp_path: Path, names: list[str], manifests: str, said: str
) -> None:
    watcher = TableWatcher(store, tmp_path / "t", DAILY, "iceberg")
    watcher.tick("2026-05-10T12:00")
    folder = tmp_path / "t" / "metadata"
    folder.mkdir(parents=True)
    now = int(at("2026-05-11T03:00").timestamp() * 1000)
    for name in names:
        text = json.dumps(METADATA).replace("__LIST__", manifests)
        (folder / name).write_text(text.replace('"timestamp-ms": 1', f'"timestamp-ms": {now}'))

    assert watcher.tick("2026-05-11T10:00") == [UNKNOWN]
    assert said in dict(watcher.platform[0].facts)["problem"]


def test_a_pipe_in_a_log_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "manifest.avro")

    with pytest.raises(ReadError, match="is not a file"):
        LocalFiles().read(str(tmp_path / "manifest.avro"))


@pytest.mark.parametrize(
    "commit",
    [
        "[" * 200_000,
        '{"commitInfo": {"inCommitTimestamp": 1e30}}',
        '{"commitInfo": {"inCommitTimestamp": 1e400}}',
    ],
    ids=["nested without end", "beyond all times", "infinite"],
)
def test_what_is_no_commit_is_named_by_its_file(store: Store, tmp_path: Path, commit: str) -> None:
    watcher, log = TableWatcher(store, tmp_path / "t", DAILY, "delta"), Log(tmp_path / "t")
    watcher.tick("2026-05-10T12:00")
    file = log.commit("2026-05-11T03:00", "2026-05-11")
    file.write_text(commit)

    assert watcher.tick("2026-05-11T10:00") == [UNKNOWN]
    assert f"{file.name} in Delta's log is not a commit" in dict(watcher.platform[0].facts)["problem"]
