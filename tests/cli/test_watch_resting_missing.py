"""A contract whose misses are told is not read until something of them is seen, and nothing is lost by it.

Each history runs twice: as it is, and with a watcher that is made to forget what rests before every tick.
"""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from fakes.command import BEGIN, Place, contract
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from dq.dataquality.delivery.cycle_store import write_receipt
from dq.store.engine import open_store

MORE = "evidence: [receipt, marker, file], giveUpAfter: 2d, "
START = datetime(2026, 5, 11, 6, tzinfo=UTC)
ROWS = (
    "select contract, slo, due_at, status, reason, delivered_at, source, told, held, held_until, blind,"
    " excuse, arriving_since, gone_since, anew_at, claims from cycle order by contract, due_at",
    "select cycle.contract, cycle.due_at, at, before, after, cycle_event.reason, proof"
    " from cycle_event join cycle on cycle.id = cycle_id order by cycle_event.id",
    "select contract, object, slo, through, delivered_at, budget from slo_watermark order by contract, slo",
)


def registry(folder: Path, names: Sequence[str] = ("orders",)) -> Place:
    made = Place(folder)
    (folder / "lake").mkdir(parents=True)
    made.put("registry/dq-policy.yaml", "{}")
    for name in names:
        made.put(f"registry/{name}.odcs.yaml", contract(name, **{"{grace:": "{" + MORE + "grace:"}))
    return made


def watch(place: Place, when: str | datetime, *more: str) -> tuple[int, str]:
    as_of = when if isinstance(when, str) else when.isoformat()
    ran = place.dq("watch", "registry", "--as-of", as_of, "--channel", "file:told.jsonl", *more)
    return ran.code, ran.out


def rested(place: Place) -> list[str]:
    """The files that the last tick laid down with something missing."""
    with sqlite3.connect(place.folder / ".dq/store.db") as store:
        return [Path(file).name for (file,) in store.execute("select distinct file from resting_part")]


def forget(place: Place) -> None:
    store = sqlite3.connect(place.folder / ".dq/store.db")
    with store:
        store.execute("delete from resting_contract")
        store.execute("delete from resting_part")
    store.close()


def kept(place: Place) -> list[list[tuple[object, ...]]]:
    with sqlite3.connect(place.folder / ".dq/store.db") as store:
        return [store.execute(asked).fetchall() for asked in ROWS]


def deliver(place: Place, name: str, day: str, when: datetime, file: str = "_SUCCESS") -> None:
    folder = place.folder / "lake" / name / f"day={day}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / file).write_text("x")
    os.utime(folder / file, (when.timestamp(),) * 2)


def receipt(place: Place, partition: str, due: datetime | None = None, name: str = "orders") -> None:
    """One that a publish step elsewhere wrote down, by the same store."""
    store = open_store(f"sqlite:///{place.folder / '.dq/store.db'}")
    with store.write() as tx:
        write_receipt(
            tx,
            id=f"{name}{partition}{due}"[:36],
            contract=name,
            object=name,
            partition=partition,
            due_at=due,
            delivered_at=START + timedelta(minutes=74),
            rows=7,
            version="1.0.0",
        )
    store.close()


def excuse(place: Place, name: str = "orders", due: datetime = START, *more: str) -> None:
    said = ("--due", due.isoformat(), "--by", "ann", "--reason", "outage", "--channel", "file:told.jsonl")
    assert place.dq("excuse", f"registry/{name}.odcs.yaml", *said, *more).code in (0, 2)


@pytest.fixture
def missing(tmp_path: Path) -> Place:
    """A product whose miss is told, and which rests."""
    made = registry(tmp_path)
    watch(made, BEGIN)
    assert watch(made, "2026-05-11T07:12:00Z")[0] == 1
    assert rested(made) == ["orders.odcs.yaml"]
    return made


def test_what_is_missing_and_told_is_counted_without_being_read(missing: Place) -> None:
    (missing.folder / "registry/orders.odcs.yaml").stat()

    code, said = watch(missing, "2026-05-11T07:20:00Z")

    assert (code, "SLOs: 1" in said, "changed: 0, still open: 1" in said) == (0, True, True)


WAKES: dict[str, tuple[Callable[[Place], object], str]] = {
    "a marker": (lambda one: deliver(one, "orders", "2026-05-10", START), "on_time"),
    "data": (lambda one: deliver(one, "orders", "2026-05-10", START, "part-0.parquet"), "on_time"),
    "a late marker": (
        lambda one: deliver(one, "orders", "2026-05-10", START + timedelta(minutes=75)),
        "late",
    ),
    "a receipt of the partition": (lambda one: receipt(one, "day=2026-05-10"), "late"),
    "a receipt of the cycle": (lambda one: receipt(one, "", START), "late"),
    "an excuse": (lambda one: excuse(one), "excused"),
    "a link to it": (
        lambda one: (
            deliver(one, "elsewhere", "2026-05-10", START),
            (one.folder / "lake/orders").symlink_to(one.folder / "lake/elsewhere"),
        ),
        "on_time",
    ),
    "the promise is gone": (
        lambda one: one.put(
            "registry/orders.odcs.yaml",
            (one.folder / "registry/orders.odcs.yaml").read_text().replace("id: daily", "id: other"),
        ),
        "withdrawn",
    ),
    "it is retired": (
        lambda one: one.put(
            "registry/orders.odcs.yaml",
            (one.folder / "registry/orders.odcs.yaml").read_text().replace("active", "retired"),
        ),
        "withdrawn",
    ),
}


@pytest.mark.parametrize("what", WAKES)
def test_it_wakes_in_the_same_tick(missing: Place, what: str) -> None:
    change, after = WAKES[what]
    change(missing)

    watch(missing, "2026-05-11T07:20:00Z")

    assert [row[3] for row in kept(missing)[0] if row[2].startswith("2026-05-11")][:1] == [after]


def test_it_is_given_up_in_time(missing: Place) -> None:
    watch(missing, "2026-05-13T05:59:00Z")
    before = [row[3] for row in kept(missing)[0]]
    watch(missing, "2026-05-13T06:00:01Z")

    assert (before, kept(missing)[0][0][3]) == (["missing", "missing"], "never")


def test_the_next_one_is_due_in_time(missing: Place) -> None:
    watch(missing, "2026-05-12T06:00:00Z")

    assert [row[3] for row in kept(missing)[0]] == ["missing", "pending"]


def test_a_time_before_the_miss_finds_it_as_it_was(missing: Place) -> None:
    watch(missing, "2026-05-11T06:10:00Z", "--trust-clock")

    assert kept(missing)[0][0][3] == "pending"


def test_what_came_on_another_version_or_under_other_settings_is_read(
    missing: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    (missing.folder / "elsewhere").mkdir()
    monkeypatch.setenv("DQ_LAKE_ROOTS", str(missing.folder / "elsewhere"))

    assert watch(missing, "2026-05-11T07:20:00Z")[0] == 3
    assert kept(missing)[0][0][3] == "missing"


def test_a_lake_that_is_lost_moves_no_miss_and_loses_none(missing: Place) -> None:
    (missing.folder / "lake").rename(missing.folder / "gone")
    lost = watch(missing, "2026-05-11T07:20:00Z")
    (missing.folder / "gone").rename(missing.folder / "lake")
    deliver(missing, "orders", "2026-05-10", START)
    watch(missing, "2026-05-11T07:25:00Z")

    assert (lost[0], kept(missing)[0][0][3]) == (0, "on_time")


def test_another_watcher_of_the_same_store_moves_it(missing: Place) -> None:
    other = Place(missing.folder / "registry")
    deliver(missing, "orders", "2026-05-10", START)
    url = f"sqlite:///{missing.folder / '.dq/store.db'}"
    config = missing.put("dq.toml", f"store_url = {url!r}\nlake_roots = [{str(missing.folder)!r}]\n")
    other.dq(
        "--config", str(config), "watch", "..", "--as-of", "2026-05-11T07:20:00Z", "--channel", "console"
    )

    code, said = watch(missing, "2026-05-11T07:25:00Z")

    assert (code, "still open: 0" in said) == (0, True)


# What happens between two ticks, of the product with this number and of a day since the first one.
HAPPENINGS: tuple[Callable[[Place, str, int], object], ...] = (
    lambda place, name, day: deliver(
        place, name, f"2026-05-{10 + day}", START + timedelta(days=day, hours=2)
    ),
    lambda place, name, day: deliver(place, name, f"2026-05-{10 + day}", START + timedelta(days=day - 1)),
    lambda place, name, day: deliver(
        place, name, f"2026-05-{10 + day}", START + timedelta(days=day), "part-0.parquet"
    ),
    lambda place, name, day: (place.folder / "lake" / name / f"day=2026-05-{10 + day}").mkdir(
        parents=True, exist_ok=True
    ),
    lambda place, name, day: shutil.rmtree(
        place.folder / "lake" / name / f"day=2026-05-{10 + day}", ignore_errors=True
    ),
    lambda place, name, day: shutil.rmtree(place.folder / "lake" / name, ignore_errors=True),
    lambda place, name, day: _toggle(place),
    lambda place, name, day: receipt(place, f"day=2026-05-{10 + day}", name=name),
    lambda place, name, day: receipt(place, "", START + timedelta(days=day), name=name),
    lambda place, name, day: excuse(place, name, START + timedelta(days=day)),
    lambda place, name, day: excuse(place, name, START + timedelta(days=day), "--undo"),
    *(
        lambda place, name, day, edit=edit: _edited(place, name, *edit)
        for edit in (
            ("giveUpAfter: 2d", "giveUpAfter: 1d"),
            ("grace: 30m", "grace: 2h"),
            ('"0 6 * * *"', '"0 7 * * *"'),
            ("status: active", "status: draft"),
            ("id: daily", "id: other"),
            ("evidence: [receipt, marker, file]", "evidence: [receipt]"),
            ("evidence: [receipt, marker, file]", "evidence: [marker]"),
            ("evidence: [receipt, marker, file]", "evidence: [commit]"),
            ("format: parquet", "format: delta"),
            ("due - 1d:%F", "due:%F"),
            ("path: lake", "path: other"),
            ("objective: 90%", "objective: 90"),
            ("objective: 90%", "calendar: {skip: [2026-05-12], excuse: [2026-05-13]}, objective: 90%"),
            ("version: 1.0.0", "version: 2.0.0"),
        )
    ),
)


def _toggle(place: Place) -> None:
    lake, gone = place.folder / "lake", place.folder / "gone"
    if lake.exists() and not gone.exists():
        lake.rename(gone)
    elif gone.exists() and not lake.exists():
        gone.rename(lake)


def _edited(place: Place, name: str, old: str, new: str) -> None:
    file = place.folder / f"registry/{name}.odcs.yaml"
    file.write_text(file.read_text().replace(old, new))


NAMES = tuple(f"p{number}" for number in range(6))
HISTORIES = st.lists(
    st.tuples(
        # Minutes to the next tick: while it is held back, about a day, about the time that it is given up.
        st.sampled_from([1, 5, 16, 60, 300, 1_439, 1_440, 2_000]),
        st.lists(
            st.tuples(st.integers(0, len(HAPPENINGS) - 1), st.sampled_from(NAMES), st.integers(0, 4)),
            max_size=3,
        ),
    ),
    min_size=2,
    max_size=9,
)


# A history that fails takes long to be made shorter.
@settings(
    max_examples=int(os.environ.get("DQ_RESTING_EXAMPLES", "6")), deadline=None, phases=[Phase.generate]
)
@given(HISTORIES)
def test_a_watcher_that_forgets_what_rests_finds_the_same(
    history: list[tuple[int, list[tuple[int, str, int]]]],
) -> None:
    with TemporaryDirectory() as name:
        twins = [registry(Path(name, twin), NAMES) for twin in ("rests", "forgets")]
        found = [list(_lived(twin, history, number == 1)) for number, twin in enumerate(twins)]

    for resting, forgetting in zip(*found, strict=True):
        assert resting == forgetting


# Random ids, and the time of this machine.
_CHANCE = re.compile(
    r'dq incidents ack \w+|"(?:id|reference|key|incident)": ?"[^"]*"|2026-(?!05)\d\d-\d\d[T ][\d:.]+Z?'
)


def _lived(place: Place, history: list[tuple[int, list[tuple[int, str, int]]]], forgets: bool) -> object:
    now = START + timedelta(minutes=31)
    watch(place, BEGIN)
    watch(place, START + timedelta(minutes=20))
    for pause, happenings in ((0, []), (2, []), *history):
        for number, name, day in happenings:
            HAPPENINGS[number](place, name, day)
        now += timedelta(minutes=pause)
        if forgets:
            forget(place)
        code, said = watch(place, now)
        told = place.folder / "told.jsonl"
        seen = [str(code), *map(repr, kept(place)), said, told.read_text() if told.exists() else ""]
        # What differs between two runs is where they are, and when a person has excused something.
        yield [_CHANCE.sub("", one.replace(str(place.folder), "")) for one in seen]
