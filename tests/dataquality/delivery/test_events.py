"""Object events of a storage as evidence: what they show, what they must not show, and what they save."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from fakes.watcher import TableWatcher, at

from dq.contracts.incident import CycleStatus
from dq.contracts.layout import parse_layout
from dq.dataquality.delivery import cycle_store
from dq.dataquality.delivery.cycle import CycleRecord
from dq.dataquality.delivery.cycle_store import StorageEvent, record_storage_events
from dq.lake.storage import LocalFiles
from dq.store.engine import open_store

PARTITION = 'partition: {day: "{due - 1d:%Y-%m-%d}"}'
DAY = "day=2026-05-10"
# What is derived from the path alone.
NO_REQUEST = {"root"}


class Counted:
    """The files of a storage, and the methods that were called."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self._files = LocalFiles()

    def __getattr__(self, name: str) -> object:
        method = getattr(self._files, name)

        def call(*arguments: object) -> object:
            self.calls.append(name)
            return method(*arguments)

        return call


class Bucket(TableWatcher):
    """A watcher of a folder, and the events of a storage about it. Due 04:00, breach 04:30 UTC."""

    def __init__(self, tmp_path: Path, more: str, format: str = "parquet") -> None:
        super().__init__(open_store(f"sqlite:///{tmp_path / 'store.db'}"), tmp_path / "lake", more, format)
        self.counted = Counted()
        self.watched = [replace(target, files=self.counted) for target in self.watched]  # type: ignore[arg-type]
        self.root.mkdir()
        self.tick("2026-05-10T12:00")

    @property
    def root(self) -> Path:
        return Path(self.watched[0].place.path)

    def created(self, when: str, partition: str = DAY, *, marker: bool = False, server: str = "lake") -> None:
        self._record(StorageEvent("orders", "orders", server, partition, marker, at(when)))

    def removed(self, when: str, partition: str = DAY, *, marker: bool = False) -> None:
        event = StorageEvent("orders", "orders", "lake", partition, marker, at(when), is_removal=True)
        self._record(event)

    def _record(self, event: StorageEvent) -> None:
        with self.store.write() as tx:
            record_storage_events(tx, [event, event], at("2026-05-12T00:00"))

    @property
    def first(self) -> CycleRecord:
        with self.store.read() as tx:
            return cycle_store.all_cycles(tx, ("orders", "orders", "daily"))[0]

    def write(self, name: str, content: bytes = b"data") -> None:
        (self.root / DAY).mkdir(exist_ok=True)
        (self.root / DAY / name).write_bytes(content)


@pytest.fixture
def bucket(tmp_path: Path) -> Iterator[Bucket]:
    made = Bucket(tmp_path, PARTITION)
    yield made
    made.store.close()


def test_a_marker_event_delivers_without_a_request_to_the_storage(bucket: Bucket) -> None:
    bucket.created("2026-05-11T03:59:00", marker=True)
    bucket.created("2026-05-11T09:00:00", marker=True)
    bucket.counted.calls.clear()

    assert bucket.tick("2026-05-11T10:00") == [CycleStatus.ON_TIME]
    assert set(bucket.counted.calls) <= NO_REQUEST
    assert (bucket.first.source, bucket.first.delivered_at) == ("event", at("2026-05-11T03:59:00"))


def test_data_events_deliver_once_they_have_settled(bucket: Bucket) -> None:
    bucket.created("2026-05-11T04:05:00")
    bucket.created("2026-05-11T04:10:00")
    bucket.counted.calls.clear()

    assert bucket.tick("2026-05-11T04:10:30") == [CycleStatus.PENDING]
    assert "data is still being written" in bucket.first.reason
    assert bucket.tick("2026-05-11T04:12:00") == [CycleStatus.ON_TIME_IN_GRACE]
    assert bucket.first.delivered_at == at("2026-05-11T04:10:00")
    assert set(bucket.counted.calls) <= NO_REQUEST


@pytest.mark.parametrize("evidence", ["[receipt, marker, event]", "[event]", "[receipt, event]"])
def test_data_is_no_delivery_where_a_marker_is_promised(tmp_path: Path, evidence: str) -> None:
    bucket = Bucket(tmp_path, f"{PARTITION}, evidence: {evidence}")
    bucket.created("2026-05-11T03:00:00")

    assert bucket.tick("2026-05-11T04:40") == [CycleStatus.MISSING]
    bucket.created("2026-05-11T05:00:00", marker=True)
    assert bucket.tick("2026-05-11T05:01") == [CycleStatus.LATE]


def test_without_events_as_evidence_they_show_nothing(tmp_path: Path) -> None:
    bucket = Bucket(tmp_path, f"{PARTITION}, evidence: [receipt, marker, file]")
    bucket.created("2026-05-11T03:00:00", marker=True)

    assert bucket.tick("2026-05-11T04:40") == [CycleStatus.MISSING]


def test_events_of_another_server_or_partition_show_nothing(tmp_path: Path) -> None:
    bucket = Bucket(tmp_path, f"{PARTITION}, evidence: [event]")
    place = replace(bucket.watched[0].place, other_servers=frozenset({"backup"}))
    bucket.watched = [replace(bucket.watched[0], place=place)]
    bucket.created("2026-05-11T03:00:00", marker=True, server="backup")
    for partition in ("day=2026-05-09", "day=2026-05-10/hour=1", ""):
        bucket.created("2026-05-11T03:00:00", partition, marker=True)

    assert bucket.tick("2026-05-11T04:40") == [CycleStatus.MISSING]


def test_files_of_a_table_with_a_log_are_no_delivery(tmp_path: Path) -> None:
    bucket = Bucket(tmp_path, PARTITION, format="delta")
    bucket.created("2026-05-11T03:00:00")

    assert CycleStatus.ON_TIME not in bucket.tick("2026-05-11T04:10")


def test_what_was_removed_again_before_the_evaluation_is_not_on_time(bucket: Bucket) -> None:
    bucket.created("2026-05-11T03:00:00", marker=True)
    bucket.created("2026-05-11T02:50:00")
    # In the other order than they happened.
    bucket.removed("2026-05-11T03:30:00", marker=True)
    bucket.removed("2026-05-11T03:30:00")

    assert bucket.tick("2026-05-11T04:40") == [CycleStatus.MISSING]
    bucket.created("2026-05-11T04:50:00", marker=True)
    assert bucket.tick("2026-05-11T04:51") == [CycleStatus.LATE]
    assert bucket.first.delivered_at == at("2026-05-11T04:50:00")


def test_an_event_that_says_nothing_leaves_the_verdict_to_the_files(bucket: Bucket) -> None:
    bucket.removed("2026-05-11T03:00:00")
    bucket.write("part-0.parquet")

    assert bucket.tick("2026-05-11T04:40") == [CycleStatus.UNKNOWN]
    assert "inside" in bucket.counted.calls


def test_a_delivery_by_events_is_looked_up_only_after_a_removal(bucket: Bucket) -> None:
    bucket.write("_SUCCESS", b"")
    bucket.created("2026-05-11T03:59:00", marker=True)
    bucket.tick("2026-05-11T04:01")
    bucket.counted.calls.clear()

    bucket.tick("2026-05-11T05:00")
    assert set(bucket.counted.calls) <= NO_REQUEST
    (bucket.root / DAY / "_SUCCESS").unlink()
    (bucket.root / DAY).rmdir()
    bucket.removed("2026-05-11T05:30:00", marker=True)
    bucket.tick("2026-05-11T09:00")
    statuses = bucket.tick("2026-05-11T09:15")

    assert statuses == [CycleStatus.MISSING]
    assert "removed later" in bucket.first.reason
    # An event from before the removal brings nothing back.
    assert bucket.tick("2026-05-11T09:20") == [CycleStatus.MISSING]
    bucket.created("2026-05-11T09:30:00", marker=True)
    assert bucket.tick("2026-05-11T09:31") == [CycleStatus.LATE]


def test_a_clock_ahead_neither_poisons_the_events_nor_makes_them_early(bucket: Bucket) -> None:
    with bucket.store.write() as tx:
        event = StorageEvent("orders", "orders", "lake", DAY, True, at("2999-01-01T00:00"))
        record_storage_events(tx, [event], at("2026-05-11T04:20:00"))

    assert bucket.tick("2026-05-11T04:25") == [CycleStatus.ON_TIME_IN_GRACE]
    assert bucket.first.delivered_at == at("2026-05-11T04:20:00")


def test_a_compaction_while_nobody_watched_makes_no_delivery_late(bucket: Bucket) -> None:
    bucket.created("2026-05-11T03:00:00")
    bucket.created("2026-05-11T09:00:00")

    assert bucket.tick("2026-05-12T02:00") == [CycleStatus.UNKNOWN]


def test_a_table_without_partitions_counts_each_update(tmp_path: Path) -> None:
    bucket = Bucket(tmp_path, "evidence: [event]")
    bucket.created("2026-05-10T03:50:00", "", marker=True)
    assert bucket.tick("2026-05-11T04:10") == [CycleStatus.PENDING]
    bucket.created("2026-05-11T04:20:00", "", marker=True)

    assert bucket.tick("2026-05-11T04:21") == [CycleStatus.ON_TIME_IN_GRACE]


def test_partitions_of_a_layout_are_found_by_the_value_of_their_folder(tmp_path: Path) -> None:
    bucket = Bucket(tmp_path, 'partition: {day: "{due - 1d:%Y-%m-%dT00}"}, evidence: [event]')
    layout = parse_layout("{day:%Y/%m/%d/%H}")
    place = replace(bucket.watched[0].place, layout=layout)  # type: ignore[arg-type]
    bucket.watched = [replace(bucket.watched[0], place=place)]
    bucket.created("2026-05-11T03:00:00", "day=2026-05-10 00:00:00", marker=True)

    assert bucket.tick("2026-05-11T04:40") == [CycleStatus.ON_TIME]
