"""The doctor tells the truth: each row with its mend, none hidden by another, nothing changed, no secret."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import threading
import tomllib
from contextlib import closing
from pathlib import Path

import pytest
from fakes import next_release
from fakes.command import BEGIN, MISSED, contract
from fakes.desk import Desk
from fakes.late_s3 import LateS3, environment
from fakes.postgres import new_database

from dq.contracts.outcome import ReadError
from dq.operations import doctor
from dq.operations.doctor import EXTRAS, HealthCheck, run_check
from dq.operations.runtime.context import RuntimeContext
from dq.store import engine

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
SECRET = "xoxb-hunter2"


@pytest.fixture
def desk(tmp_path, monkeypatch, capfd):
    made = Desk(tmp_path, monkeypatch, capfd)
    made.write("registry/orders.odcs.yaml", contract("orders"))
    (tmp_path / "lake").mkdir()
    return made


def rows(ran):
    return {one["name"]: one for one in ran.json}


def look(desk, *arguments, **variables):
    return desk.dq("doctor", *arguments, "--format", "json", **variables)


def watched(desk):
    """A store with something in it."""
    desk.dq("watch", "registry", "--as-of", BEGIN)
    desk.dq("watch", "registry", "--as-of", MISSED)
    return desk.folder / ".dq" / "store.db"


def test_every_extra_has_a_row_that_says_all_that_it_brings():
    brought = {
        extra: {one.partition("[")[0].partition(">")[0].partition("=")[0] for one in named}
        for extra, named in PROJECT["optional-dependencies"].items()
        if extra != "all"
    }

    assert {extra: set(names) for extra, (_, names) in EXTRAS.items()} == brought


def test_a_store_that_is_well_is_said_to_be(desk):
    watched(desk)

    row = rows(look(desk))["store"]

    assert (row["ok"], f"schema {engine.head()}, consistent" in row["detail"]) == (True, True)


@pytest.mark.parametrize("damage", ["no database", "a torn page", "a lost history"])
def test_a_damaged_store_is_broken_and_has_a_mend(desk, damage):
    file = watched(desk)
    if damage == "no database":
        for one in file.parent.glob("store.db*"):
            one.unlink()
        file.write_text("junk")
    elif damage == "a torn page":
        with sqlite3.connect(file) as base:
            base.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            [(page,)] = base.execute("SELECT rootpage FROM sqlite_master WHERE name = 'cycle_event'")
            [(size,)] = base.execute("PRAGMA page_size")
        base.close()
        whole = bytearray(file.read_bytes())
        whole[(page - 1) * size : page * size] = b"\xff" * size
        file.write_bytes(whole)
    else:
        with sqlite3.connect(file) as base:
            base.execute("DELETE FROM cycle_event")
        base.close()

    ran = look(desk)

    row = rows(ran)["store"]
    assert (ran.code, row["ok"], bool(row["hint"])) == (3, False, True)
    assert "registry" in rows(ran)


def test_an_old_store_is_named_and_left_as_it_is(desk):
    file = watched(desk)
    before = dump(file)

    row = of_the_next_release(desk)

    assert row["ok"] is None
    assert f"has schema {engine.head()}" in row["detail"]
    assert row["hint"].endswith("dq store upgrade")
    assert dump(file) == before


def dump(file):
    with closing(sqlite3.connect(file)) as base:
        return list(base.iterdump())


def of_the_next_release(desk, **variables):
    """What the doctor of the next release says of the store of this one."""
    ran = next_release.install().run(desk.folder, "doctor", "--format", "json", **variables)
    return next(one for one in json.loads(ran.stdout) if one["name"] == "store")


def test_a_store_of_before_the_first_release_asks_for_a_new_one(desk):
    file = watched(desk)
    with sqlite3.connect(file) as base:
        base.execute("UPDATE alembic_version SET version_num = '0033'")
    base.close()

    row = rows(look(desk))["store"]

    assert (row["ok"], "has schema 0033" in row["detail"]) == (False, True)
    assert row["hint"].startswith("Name a new file or database in DQ_STORE_URL")


def test_a_newer_store_asks_for_a_newer_dq(desk):
    file = watched(desk)
    with sqlite3.connect(file) as base:
        base.execute("UPDATE alembic_version SET version_num = '9999'")
    base.close()

    row = rows(look(desk))["store"]

    assert (row["ok"], row["hint"].startswith("Upgrade dq")) == (False, True)


def test_no_store_is_made_by_looking(desk):
    ran = look(desk)

    assert (rows(ran)["store"]["ok"], ran.code) == (None, 0)
    assert not (desk.folder / ".dq" / "store.db").exists()


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="a folder that nobody can write to, root neither")
def test_a_folder_that_cannot_be_written_is_broken(desk):
    row = rows(look(desk, DQ_STORE_URL="sqlite:////proc/dq/store.db"))["store"]

    assert (row["ok"], "cannot write to /proc" in row["detail"]) == (False, True)


def test_a_database_is_asked_and_a_silent_one_told_without_its_password(desk):
    with new_database() as url:
        empty = rows(look(desk, DQ_STORE_URL=url))["store"]
        desk.dq("watch", "registry", "--as-of", BEGIN, DQ_STORE_URL=url)
        made = rows(look(desk, DQ_STORE_URL=url))["store"]
        old = of_the_next_release(desk, DQ_STORE_URL=url)
    gone = look(desk, DQ_STORE_URL="postgresql://dq:hunter2@127.0.0.1:1/dq")

    assert [empty["ok"], made["ok"], old["ok"]] == [None, True, None]
    assert (rows(gone)["store"]["ok"], "hunter2" in gone.all) == (False, False)


def test_each_lake_root_is_listed(desk):
    (desk.folder / "lake" / "orders").mkdir()

    found = [one for one in look(desk, DQ_LAKE_ROOTS=f"{desk.folder}/lake,{desk.folder}/gone").json
             if one["name"] == "lake"]  # fmt: skip

    assert [(one["ok"], bool(one["hint"])) for one in found] == [(True, False), (False, True)]


def test_s3_is_asked_and_a_silent_bucket_holds_nobody_up(desk):
    server = LateS3()
    server.put(["lake/orders/_SUCCESS"])
    own = {"DQ_LAKE_ROOTS": "s3://lake,s3://lake/empty,s3://silent", "DQ_STORAGE_SECONDS": "1"}

    # A process of its own: it must be able to end, too.
    ran = subprocess.run(
        [Path(sys.executable).with_name("dq"), "doctor", "--format", "json"],
        cwd=desk.folder,
        env={**os.environ, **environment(server.url), **own},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    server.close()

    found = [one["ok"] for one in json.loads(ran.stdout) if one["name"] == "lake"]
    assert (found, ran.returncode) == ([True, None, False], 3)


def test_no_answer_and_a_bug_are_rows_and_hide_no_other():
    def bug():
        raise ValueError(SECRET)

    def refused():
        raise ReadError("The lake is shut.", "Open it.")

    released, answers = threading.Event(), []

    def slow():
        released.wait(300)
        answers.append("slow")
        return []

    seen = [
        *run_check("slow", slow, 0.2),
        *run_check("bug", bug, 60),
        *run_check("refused", refused, 60),
        *run_check("well", lambda: [HealthCheck("well", True, "is well")], 60),
    ]

    assert answers == []
    released.set()
    assert [(one.name, one.ok) for one in seen] == [
        ("slow", False), ("bug", False), ("refused", False), ("well", True)]  # fmt: skip
    assert seen[2].hint == "Open it."
    assert SECRET not in repr(seen)


def test_a_java_that_never_answers_is_a_row(desk):
    java = desk.write("java/bin/java", "#!/bin/sh\nexec sleep 60\n")
    java.chmod(0o700)
    world = RuntimeContext({"JAVA_HOME": str(desk.folder / "java")}, desk.folder)

    [row] = doctor.java(world, seconds=0.2)

    assert (row.ok, row.detail.endswith("does not answer within 0.2 s")) == (False, True)


def test_the_catalog_is_asked_where_it_is_named(desk):
    watched(desk)

    assert "catalog" not in rows(look(desk))
    assert rows(look(desk, "--catalog", "local"))["catalog"]["ok"] is True
    closed = {**environment("http://127.0.0.1:1"), "AWS_MAX_ATTEMPTS": "1"}
    assert rows(look(desk, "--catalog", "glue", **closed))["catalog"]["ok"] is False
    assert rows(look(desk, "--catalog", "gleu"))["catalog"]["hint"]


def test_t52_an_empty_folder_shows_what_works_and_names_what_is_not_used_in_one_line(desk) -> None:
    short, whole = desk.dq("doctor"), desk.dq("doctor", "--all")

    assert len(short.out.splitlines()) < len(whole.out.splitlines())
    assert "DQ_SMTP_HOST" not in short.out
    assert "To enable, set DQ_SMTP_HOST." in whole.out
    (unused,) = [line for line in short.out.splitlines() if "not used" in line]
    assert {"email", "slack", "pagerduty"} <= set(unused.replace(",", "").split())
    assert short.code == whole.code
