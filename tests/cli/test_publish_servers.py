"""What was published on one server is a delivery there, and says nothing of the others."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime

import pytest

from dq import load
from dq.operations.check import RowSelection, plan_tasks
from dq.store.engine import open_store

LAKE = "  - {server: lake, type: local, path: lake, format: parquet}\n"
TRIAL = "  - {server: trial, type: custom, path: trial, format: parquet, database: trial}\n"
# Due at 6:00, with a grace of half an hour.
BEGIN, PUBLISHED, BROKEN = ("2026-05-11T00:00:00Z", "2026-05-11T03:00:00Z", "2026-05-11T08:00:00Z")


@pytest.fixture
def edit(folder):
    """Rewrites the contract."""
    file = folder / "orders.odcs.yaml"

    def edited(old, new):
        assert old in file.read_text()
        file.write_text(file.read_text().replace(old, new))

    edited(LAKE, LAKE + TRIAL)
    edited("objective: 90%", "objective: 90%, evidence: [receipt]")
    return edited


@pytest.fixture
def publish(dq, folder, edit):
    """Lays the data of the day on a server and publishes it there."""

    def published(server, *options):
        assert dq("register", "--apply", "--server", server).code == 0
        place = folder / server / "day=2026-05-10"
        place.mkdir(parents=True, exist_ok=True)
        (place / "part-0.parquet").write_bytes(b"PAR1")
        words = ("--partition", "day=2026-05-10", "--server", server, "--as-of", PUBLISHED)
        done = dq("publish", "orders.odcs.yaml", *words, *options)
        assert done.code == 0
        return done

    return published


def status(folder):
    with sqlite3.connect(folder / ".dq" / "store.db") as store:
        return store.execute("SELECT status, reason FROM cycle").fetchall()


def test_a_trial_makes_no_delivery_of_production_on_time(publish, dq, folder):
    watch = ("watch", "--channel", "file:told.jsonl", "--server", "lake", "--as-of")
    dq(*watch, BEGIN)
    publish("trial", "--rows", "7")

    before = dq(*watch, BROKEN)
    missing = status(folder)
    publish("lake", "--rows", "7")
    after = dq(*watch, "2026-05-11T08:05:00Z")

    assert (before.code, missing[0][0]) == (1, "missing")
    assert (after.code, status(folder)[0][0]) == (0, "on_time")


def test_a_check_of_what_was_delivered_lately_asks_for_nothing_of_a_trial(publish, folder):
    publish("trial")
    contract = load(folder / "orders.odcs.yaml")
    store = open_store(f"sqlite:///{folder}/.dq/store.db")

    found = {
        server: plan_tasks(
            store,
            [(contract, contract.objects[0])],
            RowSelection(since=datetime(2026, 5, 1, tzinfo=UTC)),
            server,
        )
        for server in ("trial", "lake")
    }
    store.close()

    assert found["trial"][0].scopes == ({"day": "2026-05-10"},)
    assert found["lake"][0].scopes == ()


def test_a_server_that_is_renamed_loses_no_delivery_and_the_verdict_says_so(publish, edit, dq, folder):
    watch = ("watch", "--channel", "file:told.jsonl", "--as-of")
    edit(TRIAL, "")
    dq(*watch, BEGIN)
    publish("lake", "--rows", "7")
    edit("server: lake", "server: production")

    dq(*watch, BROKEN)

    assert status(folder) == [
        (
            "on_time",
            "Delivered 2026-05-11 03:00:00Z by receipt, due 2026-05-11 06:00:00Z. But the receipt names "
            "the server 'lake', which the contract no longer has.",
        )
    ]


def test_a_receipt_that_an_older_dq_wrote_counts_on_every_server(publish, dq, folder):
    watch = ("watch", "--channel", "file:told.jsonl", "--server", "lake", "--as-of")
    dq(*watch, BEGIN)
    publish("trial")
    with sqlite3.connect(folder / ".dq" / "store.db") as store:
        store.execute("UPDATE receipt SET server = NULL")

    dq(*watch, BROKEN)

    assert status(folder)[0][0] == "on_time"
