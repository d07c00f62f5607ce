"""One tick of the watcher, on a real store and real files whose times are set."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from fakes.watcher import CONTRACT, TableWatcher, at

from dq.contracts import slo as promise
from dq.contracts.incident import Breach, CycleStatus, Recovery, Resolution
from dq.contracts.outcome import MissingTool
from dq.contracts.yaml.parse import parse
from dq.dataquality.delivery import cycle_store
from dq.dataquality.delivery.cycle import DeliveryPlace, WatchTarget
from dq.dataquality.delivery.cycle_store import write_receipt
from dq.dataquality.delivery.tick import tick
from dq.lake.storage import FileStat
from dq.store.engine import Store, open_store

PARTITION = 'partition: {day: "{due - 1d:%Y-%m-%d}"}, evidence: [receipt, marker, file]'


class Lake:
    """A folder of partitions whose markers stand at chosen times."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def deliver(self, partition: str, when: str, marker: str = "_SUCCESS") -> None:
        folder = self.root / partition
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / marker
        file.write_bytes(b"" if marker.startswith("_") else b"data")
        os.utime(file, (at(when).timestamp(),) * 2)


class Watcher(TableWatcher):
    """A watcher of partitions in a lake's folders."""

    def __init__(self, store: Store, lake: Lake, more: str = PARTITION) -> None:
        super().__init__(store, lake.root, more)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(f"sqlite:///{tmp_path / 'store.db'}")


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "lake")


def test_a_new_slo_has_no_cycles_of_the_past(store: Store, lake: Lake) -> None:
    assert Watcher(store, lake).tick("2026-05-10T12:00") == []


def test_a_second_miss_in_a_row_says_so(store: Store, lake: Lake) -> None:
    watcher = Watcher(store, lake)
    lake.deliver("day=2026-05-09", "2026-05-10T03:00")
    watcher.tick("2026-05-09T12:00")
    for day in (10, 11, 12):
        watcher.tick(f"2026-05-{day}T12:00")

    rows = [dict(one.facts).get("in a row") for one in watcher.told if one.key.group == "daily"]

    assert rows == [None, "2 consecutive deliveries missed"]


def test_an_edited_contract_owes_nothing_for_the_time_before_it_was_edited(store: Store, lake: Lake) -> None:
    lake.root.mkdir()
    monthly = TableWatcher(store, lake.root, PARTITION, terms={"0 6 * * *": "0 6 1 * *"})
    monthly.tick("2026-05-01T12:00")
    monthly.tick("2026-05-20T12:00")
    daily = TableWatcher(store, lake.root, PARTITION)

    assert daily.tick("2026-05-20T12:05") == []
    assert daily.tick("2026-05-21T12:00") == [CycleStatus.MISSING]


def test_what_was_not_read_because_nothing_was_due_owes_nothing_either(store: Store, lake: Lake) -> None:
    lake.root.mkdir()
    monthly = TableWatcher(store, lake.root, PARTITION, terms={"0 6 * * *": "0 6 1 * *"})
    monthly.tick("2026-05-01T12:00")
    tick(store, [], at("2026-05-20T12:00"), lambda *_: None, unchanged_contracts={"orders"})

    assert TableWatcher(store, lake.root, PARTITION).tick("2026-05-20T12:05") == []


def test_a_delivery_before_it_is_due_is_on_time_when_the_cycle_comes(store: Store, lake: Lake) -> None:
    watcher = Watcher(store, lake)
    watcher.tick("2026-05-10T12:00")
    lake.deliver("day=2026-05-10", "2026-05-11T03:00")

    assert watcher.tick("2026-05-11T04:00") == [CycleStatus.ON_TIME]
    assert watcher.told == []


def test_a_missing_delivery_is_told_once_after_the_settle_time_and_resolves_late(
    store: Store, lake: Lake
) -> None:
    watcher = Watcher(store, lake)
    watcher.tick("2026-05-10T12:00")

    assert watcher.tick("2026-05-11T04:30:00") == [CycleStatus.PENDING]
    assert watcher.tick("2026-05-11T04:30:30") == [CycleStatus.MISSING]
    assert watcher.told == []
    watcher.tick("2026-05-11T04:31:00")
    watcher.tick("2026-05-11T04:31:00")
    watcher.tick("2026-05-11T05:00:00")
    breach = watcher.told[0]
    assert isinstance(breach, Breach)
    assert breach.occurred_at == at("2026-05-11T04:30")
    assert breach.title == "orders is missing: day=2026-05-10"
    assert dict(breach.facts)["promised"] == "day=2026-05-10 by 2026-05-11 06:00 CEST, 30 min grace"
    assert dict(breach.facts)["budget"].startswith("1 miss in 1 cycle (budget starts at 2")

    lake.deliver("day=2026-05-10", "2026-05-11T07:12")
    assert watcher.tick("2026-05-11T08:00") == [CycleStatus.LATE]
    watcher.tick("2026-05-11T08:05")
    assert [type(event) for event in watcher.told] == [Breach, Recovery]
    assert dict(watcher.told[1].facts)["delivered"] == "2026-05-11 09:12 CEST, 3 h 12 min after it was due"


def test_a_watcher_that_was_down_judges_by_the_time_of_the_evidence(store: Store, lake: Lake) -> None:
    watcher = Watcher(store, lake)
    watcher.tick("2026-05-10T12:00")
    lake.deliver("day=2026-05-10", "2026-05-11T03:59")
    lake.deliver("day=2026-05-11", "2026-05-12T04:20")
    lake.deliver("day=2026-05-12", "2026-05-13T09:00")

    statuses = watcher.tick("2026-05-13T23:00")

    assert statuses == [CycleStatus.ON_TIME, CycleStatus.ON_TIME_IN_GRACE, CycleStatus.LATE]
    assert watcher.told == []


def test_a_backfill_of_an_old_partition_does_not_make_a_new_one_fresh(store: Store, lake: Lake) -> None:
    watcher = Watcher(store, lake)
    watcher.tick("2026-05-10T12:00")
    lake.deliver("day=2026-05-01", "2026-05-11T03:00")

    assert watcher.tick("2026-05-11T05:00") == [CycleStatus.MISSING]


def test_a_missing_partition_is_given_up_after_fourteen_days(store: Store, lake: Lake) -> None:
    watcher = Watcher(store, lake)
    watcher.tick("2026-05-10T12:00")
    watcher.tick("2026-05-11T05:00")

    statuses = watcher.tick("2026-05-25T04:30")

    assert statuses[0] is CycleStatus.NEVER
    assert isinstance(watcher.told[-1], Breach | Recovery)
    assert [event.subject for event in watcher.told if isinstance(event, Recovery)] == [
        "2026-05-11T04:00:00+00:00"
    ]


def test_giving_up_is_no_good_news_and_a_delivery_afterwards_is(store: Store, lake: Lake) -> None:
    watcher = Watcher(store, lake)
    watcher.tick("2026-05-10T12:00")
    watcher.tick("2026-05-11T05:00")
    watcher.tick("2026-05-25T04:30")
    [given_up] = [event for event in watcher.told if isinstance(event, Recovery)]
    lake.deliver("day=2026-05-10", "2026-05-27T03:00")
    for minute in range(3):
        watcher.tick(f"2026-05-27T03:0{minute}")

    assert (given_up.end, "given up" in dict(given_up.facts)) == (Resolution.GIVEN_UP, True)
    after = [event for event in watcher.told if event.subject == given_up.subject]
    assert [type(event) for event in after] == [Breach, Recovery, Recovery]
    assert isinstance(after[-1], Recovery)
    assert (after[-1].end, after[-1].occurred_at) == (Resolution.RECOVERED, at("2026-05-27T03:00"))
    with store.read() as tx:
        assert cycle_store.all_cycles(tx, ("orders", "orders", "daily"))[0].status is CycleStatus.NEVER


@pytest.mark.parametrize("how", ["a mount that is gone", "a link that leads nowhere", "a root above it"])
def test_what_lies_in_a_place_that_is_gone_is_not_missing(store: Store, tmp_path: Path, how: str) -> None:
    real = Lake(tmp_path / "disk" / "orders")
    real.deliver("day=2026-05-10", "2026-05-11T03:00")
    lake = Lake(tmp_path / "lake")
    lake.root.symlink_to(real.root)
    if how == "a root above it":
        lake = real
    watcher = Watcher(store, lake)
    watcher.tick("2026-05-10T12:00")
    assert watcher.tick("2026-05-11T05:00") == [CycleStatus.ON_TIME]

    if how == "a mount that is gone":
        lake.root.unlink()
    else:
        (tmp_path / "disk").rename(tmp_path / "elsewhere")
    gone = watcher.tick("2026-05-12T05:00")
    told = list(watcher.told)
    if how == "a mount that is gone":
        lake.root.symlink_to(real.root)
    else:
        (tmp_path / "elsewhere").rename(tmp_path / "disk")
    back = watcher.tick("2026-05-12T06:00")

    assert (gone, told) == ([CycleStatus.ON_TIME, CycleStatus.UNKNOWN], [])
    assert back == [CycleStatus.ON_TIME, CycleStatus.MISSING]


def test_a_miss_that_was_seen_stays_one_when_its_place_is_lost(
    store: Store, lake: Lake, tmp_path: Path
) -> None:
    lake.deliver("day=2026-05-10", "2026-05-11T03:00")
    watcher = Watcher(store, lake)
    watcher.tick("2026-05-10T12:00")
    watcher.tick("2026-05-11T05:00")
    watcher.tick("2026-05-12T04:30:30")

    lake.root.rename(tmp_path / "elsewhere")
    lost = watcher.tick("2026-05-12T04:32")

    assert lost == [CycleStatus.ON_TIME, CycleStatus.MISSING]
    assert [type(event) for event in watcher.told] == [Breach]


def test_the_first_delivery_of_a_table_can_be_missing_before_it_has_a_folder(
    store: Store, lake: Lake, tmp_path: Path
) -> None:
    new, nowhere = Watcher(store, lake), Lake(tmp_path / "no" / "lake")
    new.tick("2026-05-10T12:00")

    assert new.tick("2026-05-11T05:00") == [CycleStatus.MISSING]

    new.watched = [replace(new.watched[0], place=DeliveryPlace(str(nowhere.root), "parquet", "_SUCCESS"))]
    assert new.tick("2026-05-12T05:00") == [CycleStatus.MISSING, CycleStatus.UNKNOWN]


def test_a_storage_that_cannot_be_read_is_unknown_and_tells_the_platform_team(
    store: Store, tmp_path: Path
) -> None:
    lake = Lake(tmp_path / "loop")
    lake.root.symlink_to(lake.root)
    watcher = Watcher(store, lake)
    watcher.tick("2026-05-10T12:00")

    assert watcher.tick("2026-05-11T04:30:30") == [CycleStatus.UNKNOWN]
    assert watcher.platform == []
    watcher.tick("2026-05-11T05:00")
    (blind,) = watcher.platform
    assert isinstance(blind, Breach)
    assert (blind.key.object, dict(blind.facts)["unknown"]) == (str(tmp_path), "1 delivery of orders")
    assert "symbolic links" in dict(blind.facts)["problem"]

    lake.root.unlink()
    lake.deliver("day=2026-05-10", "2026-05-11T03:00")
    assert watcher.tick("2026-05-11T06:00") == [CycleStatus.ON_TIME]
    watcher.tick("2026-05-11T07:00")
    assert [type(event) for event in watcher.platform] == [Breach, Recovery]
    assert watcher.told == []


def second(watcher: Watcher, other: Watcher) -> Watcher:
    """Watches what the other one watches, too, as a promise of its own."""
    watcher.watched += [replace(one, slo=named(one.slo, "second")) for one in other.watched]
    return watcher


def named(slo: promise.Slo, name: str) -> promise.Slo:
    return replace(slo, id=name)


def test_one_cause_is_told_once_however_many_promises_are_behind_it(store: Store, tmp_path: Path) -> None:
    lake = Lake(tmp_path / "loop")
    lake.root.symlink_to(lake.root)
    watcher = second(Watcher(store, lake), Watcher(store, lake))
    watcher.tick("2026-05-10T12:00")

    watcher.tick("2026-05-11T05:00")

    told = [event for event in watcher.platform if isinstance(event, Breach)]
    assert [dict(event.facts)["unknown"] for event in told] == ["2 deliveries of orders"]


def test_while_one_delivery_is_blind_sight_has_not_returned(store: Store, tmp_path: Path) -> None:
    lost, fine = Lake(tmp_path / "lost"), Lake(tmp_path / "fine")
    for one in (lost, fine):
        one.root.symlink_to(one.root)
    watcher = second(Watcher(store, lost), Watcher(store, fine))
    watcher.tick("2026-05-10T12:00")
    watcher.tick("2026-05-11T05:00")

    fine.root.unlink()
    fine.deliver("day=2026-05-10", "2026-05-11T03:00")
    watcher.tick("2026-05-11T06:00")

    assert [type(event) for event in watcher.platform] == [Breach, Breach]


def test_commits_that_cannot_be_read_are_told_by_format(store: Store, lake: Lake) -> None:
    watcher = Watcher(store, lake, 'partition: {day: "{due:%Y-%m-%d}"}, evidence: [commit]')
    watcher.watched = [replace(one, place=replace(one.place, format="hudi")) for one in watcher.watched]
    (lake.root / ".hoodie").mkdir(parents=True)
    (lake.root / ".hoodie" / "hoodie.properties").touch()
    (lake.root / ".hoodie" / "20260511010203000.commit").write_text("{")
    watcher.tick("2026-05-10T12:00")

    assert watcher.tick("2026-05-11T05:00") == [CycleStatus.UNKNOWN]
    assert [event.key.object for event in watcher.platform] == ["commits of hudi"]


def test_a_snapshot_of_a_downtime_that_was_overwritten_is_unknown_and_not_charged(
    store: Store, lake: Lake
) -> None:
    watcher = Watcher(store, lake, "evidence: [marker]")
    watcher.tick("2026-05-10T12:00")
    lake.deliver(".", "2026-05-13T03:30")

    statuses = watcher.tick("2026-05-13T12:00")

    assert statuses == [CycleStatus.UNKNOWN, CycleStatus.UNKNOWN, CycleStatus.ON_TIME]
    assert (watcher.told, watcher.platform) == ([], [])


def test_a_snapshot_that_was_seen_missing_stays_so_when_the_next_one_comes(store: Store, lake: Lake) -> None:
    watcher = Watcher(store, lake, "evidence: [marker]")
    lake.deliver(".", "2026-05-10T03:30")
    watcher.tick("2026-05-10T12:00")
    watcher.tick("2026-05-11T12:00")
    lake.deliver(".", "2026-05-12T03:30")

    assert watcher.tick("2026-05-12T12:00") == [CycleStatus.NEVER, CycleStatus.ON_TIME]


def test_what_will_never_be_known_is_said_once(store: Store, lake: Lake) -> None:
    watcher = Watcher(store, lake, "evidence: [marker]")
    watcher.tick("2026-05-10T12:00")
    lake.deliver(".", "2026-05-13T03:30")

    first = tick(store, watcher.watched, at("2026-05-13T12:00"), lambda *_: None)
    again = tick(store, watcher.watched, at("2026-05-13T12:05"), lambda *_: None)

    assert (len(first.unknown), len(again.unknown)) == (2, 0)


def test_a_young_file_is_not_a_delivery_before_it_has_settled(store: Store, lake: Lake) -> None:
    watcher = Watcher(store, lake)
    watcher.tick("2026-05-10T12:00")
    lake.deliver("day=2026-05-10", "2026-05-11T04:05:00", marker="part-0.parquet")

    assert watcher.tick("2026-05-11T04:05:30") == [CycleStatus.PENDING]
    assert watcher.tick("2026-05-11T04:06:10") == [CycleStatus.ON_TIME_IN_GRACE]


def test_a_receipt_is_trusted_more_than_a_marker(store: Store, lake: Lake) -> None:
    watcher = Watcher(store, lake)
    watcher.tick("2026-05-10T12:00")
    lake.deliver("day=2026-05-10", "2026-05-11T09:00")
    receipt = {
        "id": "a",
        "contract": "orders",
        "object": "orders",
        "partition": "day=2026-05-10",
        "due_at": None,
        "delivered_at": at("2026-05-11T03:00"),
        "rows": 7,
        "version": "1.0.0",
    }
    with store.write() as tx:
        assert write_receipt(tx, **receipt) is True  # type: ignore[arg-type]
        assert write_receipt(tx, **receipt) is False  # type: ignore[arg-type]

    assert watcher.tick("2026-05-11T10:00") == [CycleStatus.ON_TIME]


def test_an_empty_delivery_is_none_where_it_is_forbidden(store: Store, lake: Lake) -> None:
    watcher = Watcher(store, lake)
    watcher.tick("2026-05-10T12:00")
    with store.write() as tx:
        write_receipt(
            tx,
            id="a",
            contract="orders",
            object="orders",
            partition="day=2026-05-10",
            due_at=None,
            delivered_at=at("2026-05-11T03:00"),
            rows=0,
            version="1.0.0",
        )

    assert watcher.tick("2026-05-11T05:00") == [CycleStatus.MISSING]
    assert "An empty delivery came" in dict(watcher.told[0].facts)["found"]


def test_a_set_of_partitions_has_arrived_when_the_last_of_them_has(store: Store, lake: Lake) -> None:
    watcher = Watcher(
        store, lake, 'partition: {day: ["{due - 1d:%Y-%m-%d}", "{due:%Y-%m-%d}"]}, evidence: [marker]'
    )
    watcher.tick("2026-05-10T12:00")
    lake.deliver("day=2026-05-10", "2026-05-11T03:00")

    assert watcher.tick("2026-05-11T04:31") == [CycleStatus.MISSING]
    lake.deliver("day=2026-05-11", "2026-05-11T04:40")
    assert watcher.tick("2026-05-11T05:00") == [CycleStatus.LATE]


def test_one_update_of_a_snapshot_serves_one_cycle(store: Store, lake: Lake) -> None:
    watcher = Watcher(store, lake, "evidence: [marker]")
    watcher.tick("2026-05-10T12:00")
    lake.deliver(".", "2026-05-11T03:00")
    first = watcher.tick("2026-05-11T06:00")
    second = watcher.tick("2026-05-12T05:00")

    assert first == [CycleStatus.ON_TIME]
    assert second == [CycleStatus.ON_TIME, CycleStatus.MISSING]


def test_two_ticks_at_one_instant_change_nothing_the_second_time(store: Store, lake: Lake) -> None:
    watcher = Watcher(store, lake)
    watcher.tick("2026-05-10T12:00")
    watcher.tick("2026-05-12T05:00")
    heard = list(watcher.told)

    assert watcher.tick("2026-05-12T05:00") == [CycleStatus.MISSING, CycleStatus.MISSING]
    assert watcher.told == heard


def test_history_replayed_in_one_tick_gives_the_statuses_of_many(tmp_path: Path, lake: Lake) -> None:
    often = Watcher(open_store(f"sqlite:///{tmp_path / 'often.db'}"), lake)
    once = Watcher(open_store(f"sqlite:///{tmp_path / 'once.db'}"), lake)
    arrivals = {f"2026-05-{day + 1:02}T0{day}:00": f"day=2026-05-{day:02}" for day in (1, 2, 4, 5)}

    for hour in range(144):
        now = (at("2026-05-01T12:00") + timedelta(hours=hour)).strftime("%Y-%m-%dT%H:%M")
        if now in arrivals:
            lake.deliver(arrivals[now], now)
        often.tick(now, "2026-05-01T12:00")

    statuses = often.tick("2026-05-07T12:00")
    assert statuses == once.tick("2026-05-07T12:00", "2026-05-01T12:00")
    assert statuses == [
        CycleStatus.ON_TIME,
        CycleStatus.ON_TIME,
        CycleStatus.MISSING,
        CycleStatus.ON_TIME,
        CycleStatus.LATE,
        CycleStatus.MISSING,
    ]


class Odd:
    """A storage that fails in a way that nobody foresaw."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def stat(self, path: str) -> FileStat | None:
        raise self.error

    def inside(self, path: str) -> list[FileStat]:
        raise self.error


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("embedded null byte"), "ValueError"),
        (OverflowError("year 30000"), "OverflowError"),
        (RecursionError(), "RecursionError"),
        (MissingTool("s3://b needs pyarrow, which is not installed."), "s3://b needs pyarrow"),
    ],
)
def test_a_storage_that_fails_oddly_is_unknown_and_the_next_contract_is_judged(
    store: Store, lake: Lake, error: Exception, said: str
) -> None:
    watcher = Watcher(store, lake)
    odd = parse(
        CONTRACT.replace("__MORE__", PARTITION).replace("id: orders", "id: odd").encode(), "odd"
    ).contract
    assert odd is not None
    (slo,), _ = promise.read_slos(odd)
    watcher.watched = [WatchTarget(slo, watcher.watched[0].place, Odd(error)), *watcher.watched]
    watcher.tick("2026-05-10T12:00")
    lake.deliver("day=2026-05-10", "2026-05-11T03:00")

    assert watcher.tick("2026-05-11T06:00") == [CycleStatus.ON_TIME]
    with store.read() as tx:
        (kept,) = cycle_store.all_cycles(tx, ("odd", "orders", "daily"))
    assert kept.status is CycleStatus.UNKNOWN
    assert said in kept.reason
