"""What sources say of a delivery: still arriving, written anew, in disagreement, taken away again."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from fakes.watcher import TableWatcher, at

from dq.contracts.incident import Breach, CycleStatus, Recovery, Resolution
from dq.dataquality.delivery import cycle_store
from dq.dataquality.delivery.cycle import CycleRecord, disagreeing_claims
from dq.dataquality.delivery.cycle_store import write_receipt
from dq.dataquality.delivery.tick import tick
from dq.lake.storage import FileStat, LocalFiles
from dq.store.engine import open_store

PARTITION = 'partition: {day: "{due - 1d:%Y-%m-%d}"}'
FOLDER = "day=2026-05-10"


class Producer(TableWatcher):
    """A watcher, and who writes what it watches. Due 04:00, breach 04:30 UTC; ticks know of one another."""

    def write(self, when: str, name: str = "part-0.parquet", folder: str = FOLDER) -> None:
        place = self.root / folder
        place.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(b"" if name.startswith("_") else b"data")
        os.utime(place / name, (at(when).timestamp(),) * 2)

    @property
    def root(self) -> Path:
        return Path(self.watched[0].place.path)

    @property
    def first(self) -> CycleRecord:
        with self.store.read() as tx:
            return cycle_store.all_cycles(tx, ("orders", "orders", "daily"))[0]

    @property
    def titles(self) -> list[str]:
        return [event.title for event in self.told if isinstance(event, Breach)]


def watching(tmp_path: Path, more: str) -> Iterator[Producer]:
    store = open_store(f"sqlite:///{tmp_path / 'store.db'}")
    made = Producer(store, tmp_path / "lake", more)
    made.root.mkdir()
    made.tick("2026-05-10T12:00")
    yield made
    store.close()


@pytest.fixture
def files(tmp_path: Path) -> Iterator[Producer]:
    """Known by its files alone."""
    yield from watching(tmp_path, f"{PARTITION}, evidence: [file]")


@pytest.fixture
def both(tmp_path: Path) -> Iterator[Producer]:
    """Known by a receipt, a marker or its files."""
    yield from watching(tmp_path, PARTITION)


def test_a_file_that_is_rewritten_at_every_tick_is_said_to_be_arriving(files: Producer) -> None:
    for minute in range(0, 60, 5):
        files.write(f"2026-05-11T04:{minute:02}:00")
        files.tick(f"2026-05-11T04:{minute:02}:10")

    assert files.titles == ["orders is still being written: day=2026-05-10"]
    (breach,) = files.told
    assert "data is still being written" in dict(breach.facts)["found"]
    assert files.first.arriving_since == at("2026-05-11T04:00:00")


def test_what_was_arriving_ends_when_it_settles(files: Producer) -> None:
    for minute in ("00", "31", "32"):
        files.write(f"2026-05-11T04:{minute}:00")
        files.tick(f"2026-05-11T04:{minute}:10")

    assert files.tick("2026-05-11T04:40:00") == [CycleStatus.LATE]
    assert [type(event) for event in files.told] == [Breach, Recovery]
    assert (files.first.delivered_at, files.first.arriving_since) == (at("2026-05-11T04:32:00"), None)


def test_what_never_settles_is_given_up_in_words_of_its_own(files: Producer) -> None:
    for when in ("2026-05-11T04:40:00", "2026-05-25T04:30:00"):
        files.write(when)
        files.tick(when[:-2] + "10")

    end = next(event for event in files.told if isinstance(event, Recovery))
    assert (end.end, "Nothing complete arrived; given up" in dict(end.facts)["given up"]) == (
        Resolution.GIVEN_UP,
        True,
    )


def test_a_compaction_while_nobody_watched_makes_nothing_late(files: Producer) -> None:
    files.write("2026-05-11T09:00:00", "compacted.parquet")

    statuses = files.tick("2026-05-12T02:00")
    again = files.tick("2026-05-12T02:05")

    assert (statuses, again) == ([CycleStatus.UNKNOWN], [CycleStatus.UNKNOWN])
    assert (files.told, files.platform) == ([], [])
    assert "no run checked in between" in files.first.reason


@pytest.mark.parametrize(
    ("looked", "expected"),
    [(None, "unknown"), ("2026-05-11T04:10", "unknown"), ("2026-05-11T04:20", "late")],
    ids=["never", "long before", "shortly before"],
)
def test_new_files_are_late_where_somebody_looked_about_the_breach(
    files: Producer, looked: str | None, expected: str
) -> None:
    files.write("2026-05-11T04:33:00")

    tick(
        files.store,
        files.watched,
        at("2026-05-11T04:35"),
        lambda *_: None,
        last_tick_at=at(looked) if looked else None,
    )

    assert files.first.status == expected


def test_new_files_are_late_where_their_lack_was_seen(files: Producer) -> None:
    files.tick("2026-05-11T05:00")
    files.write("2026-05-12T01:00:00")

    assert files.tick("2026-05-12T02:00") == [CycleStatus.LATE]


def test_an_older_time_of_another_source_counts(tmp_path: Path) -> None:
    (made,) = watching(tmp_path, f"{PARTITION}, evidence: [file, marker]")
    made.write("2026-05-11T03:00:00", "_SUCCESS")
    made.write("2026-05-11T09:00:00", "compacted.parquet")

    assert made.tick("2026-05-12T02:00") == [CycleStatus.ON_TIME]
    assert (made.first.source, made.first.delivered_at) == ("marker", at("2026-05-11T03:00"))


def test_a_marker_that_every_update_overwrites_proves_the_newest_only(tmp_path: Path) -> None:
    (made,) = watching(tmp_path, "evidence: [marker]")
    made.write("2026-05-11T09:00:00", "_SUCCESS", ".")

    assert made.tick("2026-05-11T10:00") == [CycleStatus.UNKNOWN]


def test_what_the_sources_say_is_kept_and_disagreements_are_known(both: Producer) -> None:
    both.write("2026-05-11T03:00:00", "_SUCCESS")
    both.write("2026-05-11T03:40:00")
    receipt(both, "2026-05-11T03:01")

    assert both.tick("2026-05-11T05:00") == [CycleStatus.ON_TIME]

    first = both.first
    assert [(one.source, one.delivered_at, one.rows) for one in first.claims] == [
        ("receipt", at("2026-05-11T03:01"), 7),
        ("marker", at("2026-05-11T03:00"), None),
        ("file", at("2026-05-11T03:40"), None),
    ]
    assert [one.source for one in disagreeing_claims(first.claims, first.source)] == ["file"]
    assert (first.first_seen_at, "the file says 2026-05-11 03:40:00Z" in first.reason) == (
        at("2026-05-11T05:00"),
        True,
    )


def receipt(watcher: Producer, when: str) -> None:
    with watcher.store.write() as tx:
        write_receipt(
            tx,
            id="a",
            contract="orders",
            object="orders",
            partition=FOLDER,
            due_at=None,
            delivered_at=at(when),
            rows=7,
            version="1.0.0",
        )


def test_a_whole_answer_of_a_weaker_source_outweighs_a_partial_one(tmp_path: Path) -> None:
    both = '"{due - 1d:%Y-%m-%d}", "{due:%Y-%m-%d}"'
    (made,) = watching(tmp_path, f"partition: {{day: [{both}]}}, evidence: [receipt, marker]")
    receipt(made, "2026-05-11T03:00")
    for day in (10, 11):
        made.write("2026-05-11T03:30:00", "_SUCCESS", f"day=2026-05-{day}")

    assert made.tick("2026-05-11T05:00") == [CycleStatus.ON_TIME]


def test_a_set_says_how_much_of_it_is_still_being_written(tmp_path: Path) -> None:
    both = '"{due - 1d:%Y-%m-%d}", "{due:%Y-%m-%d}"'
    (made,) = watching(tmp_path, f"partition: {{day: [{both}]}}, evidence: [file]")
    made.write("2026-05-11T03:00:00")
    made.write("2026-05-11T04:30:30", folder="day=2026-05-11")

    assert made.tick("2026-05-11T04:31:10") == [CycleStatus.MISSING]
    assert "So far: 1 of 2 partitions; data is still being written" in made.first.reason


def test_a_delivery_that_is_taken_away_is_missing_again_and_told(both: Producer) -> None:
    both.write("2026-05-11T03:00:00", "_SUCCESS")
    both.tick("2026-05-11T04:00")
    shutil.rmtree(both.root / FOLDER)

    seen = [both.tick(f"2026-05-11T04:{minute}")[0] for minute in (10, 15, 20, 25, 31, 32)]

    assert seen == [*[CycleStatus.ON_TIME] * 3, CycleStatus.PENDING, *[CycleStatus.MISSING] * 2]
    assert both.titles == ["orders was removed after delivery: day=2026-05-10"]
    assert "Delivered 2026-05-11 03:00:00Z, removed later" in both.first.reason


def test_what_was_taken_away_and_comes_back_is_late(both: Producer) -> None:
    both.write("2026-05-11T03:00:00", "_SUCCESS")
    both.tick("2026-05-11T04:00")
    shutil.rmtree(both.root / FOLDER)
    both.tick("2026-05-11T04:15")
    both.tick("2026-05-11T04:32")
    both.write("2026-05-11T06:00:00", "_SUCCESS")

    assert both.tick("2026-05-11T06:05") == [CycleStatus.LATE]
    assert [type(event) for event in both.told] == [Breach, Recovery]


def test_what_is_gone_for_a_moment_was_not_taken_away(both: Producer) -> None:
    both.write("2026-05-11T03:00:00", "_SUCCESS")
    both.tick("2026-05-11T04:00")
    shutil.rmtree(both.root / FOLDER)
    both.tick("2026-05-11T04:15")
    both.write("2026-05-11T04:20:00", "_SUCCESS")

    assert both.tick("2026-05-11T04:26") == [CycleStatus.ON_TIME]
    assert (both.first.gone_since, both.told) == (None, [])


@pytest.mark.parametrize("how", ["the table is gone", "it is being written anew"])
def test_what_cannot_be_told_is_not_taken_away(both: Producer, how: str) -> None:
    both.write("2026-05-11T03:00:00", "_SUCCESS")
    both.tick("2026-05-11T04:00")
    shutil.rmtree(both.root if how == "the table is gone" else both.root / FOLDER)
    if how != "the table is gone":
        (both.root / FOLDER / "_temporary").mkdir(parents=True)

    for when in ("04:15", "04:30", "05:30", "12:00"):
        assert both.tick(f"2026-05-11T{when}") == [CycleStatus.ON_TIME]


def test_old_partitions_may_be_forgotten(both: Producer) -> None:
    both.write("2026-05-11T03:00:00", "_SUCCESS")
    for when in ("2026-05-11T04:00", "2026-05-12T03:59"):
        both.tick(when)
    shutil.rmtree(both.root / FOLDER)

    assert [both.tick(f"2026-05-12T{when}")[0] for when in ("04:10", "05:00")] == [CycleStatus.ON_TIME] * 2


def test_an_unfinished_upload_is_no_new_delivery(both: Producer) -> None:
    both.write("2026-05-11T03:00:00", "_SUCCESS")
    both.tick("2026-05-11T04:00")
    both.write("2026-05-11T04:10:00", "part-0.parquet._COPYING_")

    assert both.tick("2026-05-11T04:15") == [CycleStatus.ON_TIME]
    both.tick("2026-05-11T05:15")

    assert both.first.anew_at is None


def test_a_delivery_that_is_made_anew_stays_in_time_and_is_known(both: Producer) -> None:
    both.write("2026-05-11T03:00:00", "_SUCCESS")
    both.tick("2026-05-11T04:00")
    both.write("2026-05-11T04:10:00", "_SUCCESS")

    assert both.tick("2026-05-11T04:15") == [CycleStatus.ON_TIME]
    both.tick("2026-05-11T05:15")

    assert (both.first.delivered_at, both.first.anew_at) == (at("2026-05-11T03:00"), at("2026-05-11T04:10"))
    assert both.told == []


def test_what_is_taken_away_after_it_was_told_late_visible_is_told_again(both: Producer) -> None:
    both.tick("2026-05-11T04:32")
    both.write("2026-05-11T03:00:00", "_SUCCESS")
    both.tick("2026-05-11T04:40")
    shutil.rmtree(both.root / FOLDER)
    both.tick("2026-05-11T06:00")
    both.tick("2026-05-11T06:11")

    assert [type(event) for event in both.told] == [Breach, Recovery, Breach]


@dataclass(frozen=True, slots=True)
class Mute(LocalFiles):
    """A storage that answers nobody until it is `over`."""

    over: threading.Event = field(default_factory=threading.Event)

    def inside(self, path: str) -> list[FileStat]:
        self.over.wait(30)
        return []


def test_a_receipt_counts_where_the_storage_is_silent(both: Producer) -> None:
    mute = Mute()
    both.watched = [replace(one, files=mute) for one in both.watched]
    both.lookout.seconds = 0.2
    receipt(both, "2026-05-11T03:01")

    statuses = [*both.tick("2026-05-11T05:00"), *both.tick("2026-05-12T05:00")[1:]]
    mute.over.set()

    assert statuses == [CycleStatus.ON_TIME, CycleStatus.UNKNOWN]
    assert "did not answer within 0.2 s" in both.first.reason


@pytest.mark.parametrize(
    ("when", "expected"),
    [("2030-01-01T00:00", CycleStatus.UNKNOWN), ("2026-05-11T04:40:30", CycleStatus.MISSING)],
    ids=["years ahead", "half a minute ahead"],
)
def test_files_of_the_future_are_no_delivery(files: Producer, when: str, expected: CycleStatus) -> None:
    files.write(when)

    assert files.tick("2026-05-11T04:40:00") == [expected]
