"""`dq watch` by a clock that went back, and what came and went while nobody looked."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import chdir, closing, redirect_stderr, redirect_stdout
from datetime import datetime
from pathlib import Path

import pytest
from fakes.command import BEGIN, MISSED, Place, contract

from dq.cli.main import run

BACK = "2026-05-11T05:00:00Z"


@pytest.fixture
def registry(tmp_path: Path) -> Place:
    made = Place(tmp_path)
    (tmp_path / "lake").mkdir()
    for name in ("orders", "sales"):
        made.put(f"registry/{name}.odcs.yaml", contract(name))
        # Before its first delivery, a table's folder is no proof of anything.
        (tmp_path / "lake" / name).mkdir()
    assert watch(made, BEGIN) == 0
    return made


def watch(registry: Place, when: str, *more: str) -> int:
    return registry.dq("watch", "registry", "--as-of", when, "--channel", "file:told.jsonl", *more).code


def told(registry: Place) -> list[dict[str, object]]:
    file = registry.folder / "told.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def deliver(registry: Place, product: str, day: str, when: str) -> None:
    place = registry.folder / "lake" / product / f"day={day}"
    place.mkdir(parents=True)
    (place / "_SUCCESS").touch()
    os.utime(place / "_SUCCESS", (datetime.fromisoformat(when).timestamp(),) * 2)


def test_a_tick_before_the_last_one_judges_nothing_and_says_how_to_go_on(registry: Place) -> None:
    assert watch(registry, MISSED) == 1
    before = registry.dq("status", "registry", "--as-of", MISSED, "--format", "json").json

    ran = registry.dq("watch", "registry", "--as-of", BACK, "--format", "json")

    assert (ran.code, "refused" in ran.json, "--trust-clock" in ran.err) == (3, True, True)
    assert registry.dq("status", "registry", "--as-of", MISSED, "--format", "json").json == before
    assert watch(registry, BACK, "--trust-clock") in (0, 1)
    assert watch(registry, "2026-05-11T05:01:00Z") in (0, 1)


def test_nothing_is_judged_as_of_a_time_that_is_yet_to_come(registry: Place) -> None:
    ran = registry.dq("watch", "registry", "--as-of", "2199-01-01T00:00:00Z", "--channel", "file:told.jsonl")

    assert (ran.code, "is in the future" in ran.err, told(registry)) == (3, True, [])
    # The watcher is not held up until then.
    assert watch(registry, MISSED) == 1


def test_a_watcher_of_something_else_has_not_looked(registry: Place) -> None:
    text = contract("orders").replace("objective: 90%", "objective: 90%, evidence: [file]")
    registry.put("registry/orders.odcs.yaml", text)
    registry.put("elsewhere/others.odcs.yaml", contract("others"))
    watch(registry, "2026-05-10T12:05:00Z")
    words = ["watch", "elsewhere", "--as-of", "2026-05-11T06:29:00Z", "--channel", "file:told.jsonl"]
    registry.dq(*words)
    part = registry.folder / "lake" / "orders" / "day=2026-05-10" / "part-0.parquet"
    part.parent.mkdir(parents=True)
    part.write_bytes(b"data")
    os.utime(part, (datetime.fromisoformat("2026-05-11T06:31:00Z").timestamp(),) * 2)

    said = registry.dq("watch", "registry", "--as-of", "2026-05-11T06:35:00Z", "--channel", "file:told.jsonl")

    assert "no run checked in between" in said.err


def test_what_came_and_went_in_a_downtime_is_one_message(registry: Place) -> None:
    for day, when in (("2026-05-10", "2026-05-11T09:00:00Z"), ("2026-05-11", "2026-05-12T10:00:00Z")):
        for product in ("orders", "sales"):
            deliver(registry, product, day, when)

    watch(registry, "2026-05-12T12:00:00Z")
    watch(registry, "2026-05-12T12:01:00Z")

    (message,) = told(registry)
    assert (message["state"], "4 came late" in json.dumps(message)) == ("past", True)
    assert json.dumps(message).count("after it was due") == 4


def test_what_came_and_went_says_so_in_words(registry: Place) -> None:
    deliver(registry, "orders", "2026-05-10", "2026-05-11T09:00:00Z")
    deliver(registry, "sales", "2026-05-10", "2026-05-11T03:00:00Z")

    ran = registry.dq("watch", "registry", "--as-of", "2026-05-11T12:00:00Z", "--channel", "console")

    assert "PAST: missed deliveries without an alert: 1 came late" in ran.out
    assert "no alert had been sent, and nothing is open" in ran.out


def test_a_clock_that_was_set_while_the_machine_ran_judges_nothing(tmp_path: Path) -> None:
    made = Place(tmp_path)
    made.put("registry/orders.odcs.yaml", contract("orders"))
    (tmp_path / "lake" / "orders").mkdir(parents=True)
    words = ["watch", "registry", "--channel", "file:told.jsonl"]
    assert made.dq(*words).code == 0
    with closing(sqlite3.connect(tmp_path / ".dq" / "store.db")) as store:
        # The machine has not been running for as long as its clock says.
        store.execute("UPDATE heartbeat SET at = '2026-01-01T00:00:00.000000Z' WHERE name LIKE 'boot:%'")
        store.commit()

    ran = made.dq(*words, "--format", "json")

    assert (ran.code, "by its uptime since the last run" in str(ran.json)) == (3, True)
    assert made.dq(*words).code == 3
    assert made.dq(*words, "--trust-clock").code == 0
    assert made.dq(*words).code == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is full")
def test_a_full_disk_below_its_log_keeps_no_watcher_from_telling(registry: Place) -> None:
    registry.put("registry/broken.odcs.yaml", "kind: DataContract\n")
    words = ["watch", "registry", "--as-of", MISSED, "--channel", "file:told.jsonl"]

    with (
        open("/dev/full", "w") as full,  # noqa: PTH123
        chdir(registry.folder),
        redirect_stdout(full),
        redirect_stderr(full),
    ):
        code = run(words)

    assert code == 3
    assert [one["contract"] for one in told(registry)] == ["orders", "sales"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is full")
def test_what_the_console_could_not_show_is_told_again(registry: Place) -> None:
    words = ["watch", "registry", "--as-of", MISSED, "--channel", "console"]
    with open("/dev/full", "w") as full, chdir(registry.folder), redirect_stdout(full):  # noqa: PTH123
        assert run(words) == 3

    ran = registry.dq("watch", "registry", "--as-of", "2026-05-11T07:14:00Z", "--channel", "console")

    assert "orders is missing" in ran.out
    assert "sales is missing" in ran.out
