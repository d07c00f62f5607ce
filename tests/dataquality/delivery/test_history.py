"""History judged again, compared with contracts, excused, pruned and exported, on both databases."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from fakes.watcher import TableWatcher, at
from sqlalchemy import delete, func, select, update

from dq.contracts.incident import Breach, CycleStatus, Recovery, Resolution
from dq.dataquality.delivery import cycle_store, replay, retention
from dq.dataquality.delivery import replay as audit
from dq.dataquality.delivery import replay as excusing
from dq.dataquality.delivery import retention as parquet
from dq.dataquality.delivery import retention as soundness
from dq.dataquality.delivery.cycle_store import Excuse
from dq.dataquality.delivery.replay import slo_keys
from dq.dataquality.delivery.tables import cycle, cycle_event, cycle_excuse, cycle_month, cycle_state
from dq.store.engine import Store, open_store

MORE = 'partition: {day: "{due - 1d:%Y-%m-%d}"}, evidence: [receipt, marker, file]'
KEY = ("orders", "orders", "daily")
# Due at 4:00, in grace until 4:30.
FIRST = at("2026-05-11T04:00")


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    opened = open_store(url)
    yield opened
    opened.close()


@pytest.fixture
def watcher(store: Store, tmp_path: Path) -> TableWatcher:
    """Four days: in time, late, missing, in time."""
    (tmp_path / "lake").mkdir()
    made = TableWatcher(store, tmp_path / "lake", MORE)
    made.tick("2026-05-10T12:00")
    deliver(tmp_path, "2026-05-10", "2026-05-11T03:00")
    made.tick("2026-05-11T05:00")
    made.tick("2026-05-12T05:00")
    deliver(tmp_path, "2026-05-11", "2026-05-12T09:00")
    made.tick("2026-05-12T10:00")
    deliver(tmp_path, "2026-05-13", "2026-05-14T03:00")
    made.tick("2026-05-13T05:00")
    made.tick("2026-05-14T05:00")
    return made


def deliver(folder: Path, day: str, when: str) -> None:
    file = folder / "lake" / f"day={day}" / "_SUCCESS"
    file.parent.mkdir(parents=True)
    file.touch()
    os.utime(file, (at(when).timestamp(),) * 2)


def statuses(watcher: TableWatcher) -> list[str]:
    with watcher.store.read() as tx:
        return [kept.status.value for kept in cycle_store.all_cycles(tx, KEY)]


def replayed(watcher: TableWatcher, as_of: str | None = None) -> list[replay.ReplayedCycle]:
    with watcher.store.read() as tx:
        return list(replay.replay(tx, slo_keys(tx), at(as_of) if as_of else None))


def excuse(
    watcher: TableWatcher, due: datetime, when: str, *, undone: bool = False
) -> list[Breach | Recovery]:
    told: list[Breach | Recovery] = []
    word = Excuse(KEY, due, at(when), "ann", "planned", undone)
    with watcher.store.write() as tx:
        excusing.apply_excuses(tx, {KEY: watcher.slo}, [word], at(when), lambda _, event: told.append(event))
    return told


def test_every_row_can_be_derived_from_what_its_verdicts_rest_on(watcher: TableWatcher) -> None:
    found = replayed(watcher)

    assert [one.status for one in found] == ["on_time", "late", "missing", "on_time"]
    assert [(one.differences, one.is_proven) for one in found] == [((), True)] * 4


def test_what_somebody_changed_in_the_rows_is_found(watcher: TableWatcher) -> None:
    with watcher.store.write() as tx:
        tx.execute(update(cycle).where(cycle.c.status == "missing").values(status="on_time"))
        late = select(cycle.c.id).where(cycle.c.status == "late").scalar_subquery()
        ended = (cycle_event.c.cycle_id == late) & (cycle_event.c.after == "late")
        tx.execute(update(cycle_event).where(ended).values(reason="Delivered in time."))

    found = replayed(watcher)

    assert found[2].differences == ("its changes give missing, its row says on_time",)
    assert "its inputs give the reason 'Delivered 2026-05-12 09:00:00Z by marker" in found[1].differences[0]
    assert [one.differences for one in (found[0], found[3])] == [(), ()]


@pytest.mark.parametrize(
    ("when", "expected"),
    [
        ("2026-05-12T04:10", ["on_time", "pending"]),
        ("2026-05-12T06:00", ["on_time", "missing"]),
        ("2026-05-12T10:00", ["on_time", "late"]),
        ("2026-05-14T05:00", ["on_time", "late", "missing", "on_time"]),
        # 14 days after it was due, it is given up, though no tick came since.
        ("2026-05-27T04:01", ["on_time", "late", "never", "on_time"]),
    ],
)
def test_it_stands_as_of_an_instant_as_it_stood_then(
    watcher: TableWatcher, when: str, expected: list[str]
) -> None:
    assert [one.status for one in replayed(watcher, when)] == expected


def test_a_row_of_an_older_dq_has_no_proof_and_is_no_difference(watcher: TableWatcher) -> None:
    with watcher.store.write() as tx:
        tx.execute(update(cycle_event).values(proof=None))

    assert [(one.is_proven, one.differences) for one in replayed(watcher)] == [(False, ())] * 4


def test_each_cycle_says_what_it_was_computed_with(watcher: TableWatcher) -> None:
    with watcher.store.read() as tx:
        rows = tx.execute(select(cycle.c.contract_hash, cycle.c.dq, cycle.c.tzdata).distinct()).all()

    assert [(hashed, bool(dq), bool(tzdata)) for hashed, dq, tzdata in rows] == [
        (watcher.slo.contract.digest, True, True)
    ]


def audited(watcher: TableWatcher) -> audit.Audit:
    with watcher.store.read() as tx:
        return audit.audit(tx, [KEY], {(watcher.slo.contract.digest, KEY): watcher.slo})


def test_the_rows_agree_with_the_contract(watcher: TableWatcher) -> None:
    assert audited(watcher) == audit.Audit(4, (), ())


def test_a_changed_and_a_lost_row_are_found(watcher: TableWatcher) -> None:
    with watcher.store.write() as tx:
        second = select(cycle.c.id).where(cycle.c.due_at == at("2026-05-12T04:00")).scalar_subquery()
        tx.execute(delete(cycle_event).where(cycle_event.c.cycle_id == second))
        tx.execute(delete(cycle_state).where(cycle_state.c.cycle_id == second))
        tx.execute(delete(cycle).where(cycle.c.due_at == at("2026-05-12T04:00")))
        third = cycle.c.due_at == at("2026-05-13T04:00")
        tx.execute(update(cycle).where(third).values(breach_at=at("2026-05-13T09:00")))

    found = audited(watcher)

    assert found.agreeing == 2
    assert [(one.due_at, one.problem[:40]) for one in found.wrong] == [
        (at("2026-05-12T04:00"), "the contract has this cycle, the store h"),
        (at("2026-05-13T04:00"), "breach_at is 2026-05-13T09:00:00+00:00, "),
    ]


def test_a_row_of_another_release_says_so(watcher: TableWatcher) -> None:
    with watcher.store.write() as tx:
        changes = {"nominal": "2026-05-11T07:00:00", "tzdata": "1999z", "calendar": "holidays 0.1"}
        tx.execute(update(cycle).where(cycle.c.due_at == FIRST).values(**changes))

    (wrong,) = audited(watcher).wrong

    assert "(computed with tzdata 1999z, now tzdata 2" in wrong.problem
    assert "(computed with holidays 0.1, now no holidays)" in wrong.problem


def test_the_last_rows_are_not_lost_unseen(watcher: TableWatcher) -> None:
    with watcher.store.write() as tx:
        tx.execute(delete(cycle_event))
        tx.execute(delete(cycle_state))
        tx.execute(delete(cycle).where(cycle.c.due_at > at("2026-05-12T04:00")))

    assert [one.due_at for one in audited(watcher).wrong] == [at("2026-05-13T04:00"), at("2026-05-14T04:00")]


def test_a_row_whose_contract_is_not_at_hand_is_said_to_be_so(watcher: TableWatcher) -> None:
    with watcher.store.read() as tx:
        found = audit.audit(tx, [KEY], {})

    assert (found.agreeing, len(found.unproven), found.wrong) == (0, 4, ())


def test_an_excused_miss_is_out_of_the_budget_and_ends_its_incident(watcher: TableWatcher) -> None:
    told = excuse(watcher, at("2026-05-13T04:00"), "2026-05-14T06:00")

    assert statuses(watcher) == ["on_time", "late", "excused", "on_time"]
    ends = [one.end for one in told if isinstance(one, Recovery) and one.key.group == "daily"]
    assert ends == [Resolution.EXCUSED]
    assert [one.differences for one in replayed(watcher)] == [()] * 4


def test_an_excuse_is_undone_by_another_word_and_both_are_kept(watcher: TableWatcher, store: Store) -> None:
    missing, late = at("2026-05-13T04:00"), at("2026-05-12T04:00")
    for due in (missing, late):
        excuse(watcher, due, "2026-05-14T06:00")
    excused = statuses(watcher)
    for due in (missing, late):
        excuse(watcher, due, "2026-05-14T07:00", undone=True)
    back = statuses(watcher)
    watcher.told.clear()
    watcher.tick("2026-05-14T08:00")

    assert excused == ["on_time", "excused", "excused", "on_time"]
    # Of the late one it is known what came; the other is looked for again.
    assert back == ["on_time", "late", "pending", "on_time"]
    assert statuses(watcher) == ["on_time", "late", "missing", "on_time"]
    assert [one.subject for one in watcher.told if one.key.group == "daily"] == [missing.isoformat()]
    assert [one.differences for one in replayed(watcher)] == [()] * 4
    with store.read() as tx:
        assert tx.scalar(select(func.count()).select_from(cycle_excuse)) == 4


def test_a_delivery_that_came_while_it_was_excused_is_found_when_it_counts_again(
    watcher: TableWatcher, tmp_path: Path
) -> None:
    due = at("2026-05-13T04:00")
    excuse(watcher, due, "2026-05-14T06:00")
    deliver(tmp_path, "2026-05-12", "2026-05-14T06:30")
    watcher.tick("2026-06-20T05:00")
    excuse(watcher, due, "2026-06-20T06:00", undone=True)

    watcher.tick("2026-06-20T07:00")

    assert statuses(watcher)[2] == "late"


def test_a_delivery_that_is_excused_before_it_is_due_is_never_missing(watcher: TableWatcher) -> None:
    excuse(watcher, at("2026-05-15T04:00"), "2026-05-14T06:00")
    watcher.told.clear()

    watcher.tick("2026-05-15T06:00")

    assert statuses(watcher)[-1] == "excused"
    assert watcher.told == []


def test_a_delivery_that_the_calendar_excuses_counts_neither_way(store: Store, tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    watcher = TableWatcher(store, tmp_path / "lake", f"{MORE}, calendar: {{excuse: [2026-05-11]}}")
    watcher.tick("2026-05-10T12:00")
    watcher.tick("2026-05-11T06:00")
    first = statuses(watcher)
    excuse(watcher, FIRST, "2026-05-11T07:00", undone=True)

    watcher.tick("2026-05-11T08:00")

    assert (first, statuses(watcher)) == (["excused"], ["missing"])


def test_old_deliveries_become_numbers_of_their_month_once(watcher: TableWatcher, store: Store) -> None:
    excuse(watcher, at("2026-05-12T04:00"), "2026-05-14T06:00")
    before = at("2026-05-14T00:00")

    first, second = retention.prune(store, before), retention.prune(store, before)

    # What is missing can still come.
    assert statuses(watcher) == ["missing", "on_time"]
    assert (first, second) == (retention.Pruned(2, 0, 1), retention.Pruned(0, 0, 0))
    with store.read() as tx:
        months = tx.execute(select(cycle_month.c.month, cycle_month.c.status, cycle_month.c.cycles)).all()
        assert sorted(map(tuple, months)) == [("2026-05", "excused", 1), ("2026-05", "on_time", 1)]
        assert list(soundness.integrity_faults(tx)) == []


def test_pruning_brings_no_delivery_back(watcher: TableWatcher, store: Store) -> None:
    retention.prune(store, at("2026-05-14T00:00"))

    watcher.tick("2026-05-14T06:00")

    assert statuses(watcher) == ["missing", "on_time"]


def test_a_second_month_is_added_to_the_first(watcher: TableWatcher, store: Store) -> None:
    for before in ("2026-05-12T00:00", "2026-05-15T00:00"):
        retention.prune(store, at(before))

    with store.read() as tx:
        counted = dict(tx.execute(select(cycle_month.c.status, cycle_month.c.cycles)).all())
    assert counted == {"on_time": 2, "late": 1}


def test_a_store_that_contradicts_itself_says_where(watcher: TableWatcher, store: Store) -> None:
    with store.read() as tx:
        sound = list(soundness.integrity_faults(tx))
    with store.write() as tx:
        tx.execute(update(cycle).where(cycle.c.status == "late").values(status="on_time"))

    with store.read() as tx:
        assert sound == []
        assert list(soundness.integrity_faults(tx)) == [
            "orders/daily due 2026-05-12 04:00Z is on_time, and its last change says late"
        ]


def test_the_export_holds_what_the_store_holds(watcher: TableWatcher, store: Store, tmp_path: Path) -> None:
    with store.read() as tx:
        rows = parquet.export(tx, tmp_path / "out" / "history")

    written = {name: pq.read_table(tmp_path / "out" / "history" / f"{name}.parquet") for name in rows}
    assert {name: table.num_rows for name, table in written.items()} == rows
    cycles = written["cycle"].to_pylist()
    assert [one["status"] for one in cycles] == ["on_time", "late", "missing", "on_time"]
    assert (cycles[0]["due_at"], json.loads(cycles[0]["partitions"])) == (FIRST, [[["day", "2026-05-10"]]])
    assert json.loads(written["cycle_event"].to_pylist()[0]["proof"])["evidence"]["source"] == "marker"
    assert sorted(file.name for file in (tmp_path / "out" / "history").iterdir()) == sorted(
        f"{name}.parquet" for name in rows
    )


def test_what_came_after_it_was_given_up_is_a_change(watcher: TableWatcher, tmp_path: Path) -> None:
    watcher.tick("2026-05-28T05:00")
    deliver(tmp_path, "2026-05-12", "2026-05-28T06:00")
    watcher.tick("2026-05-28T07:00")

    third = replayed(watcher)[2]

    assert (third.status, third.record.delivered_at) == (CycleStatus.NEVER, at("2026-05-28T06:00"))
    assert third.differences == ()
