"""dq cycles replay, audit, excuse and store: history judged again, compared, excused, pruned, exported."""

from __future__ import annotations

import json
import sqlite3
import subprocess
from pathlib import Path

import pytest
from fakes.command import BEGIN, MISSED, Place, contract

DUE = "2026-05-11T06:00:00Z"


class History(Place):
    """A registry in Git with one contract, whose first delivery is missing."""

    def git(self, *arguments: str) -> None:
        settings = ("-c", "user.name=ann", "-c", "user.email=ann@example.org")
        subprocess.run(
            ["git", *settings, *arguments], cwd=self.folder / "registry", check=True, capture_output=True
        )

    def commit(self, text: str) -> None:
        self.put("registry/orders.odcs.yaml", text)
        self.git("add", "-A")
        self.git("commit", "-qm", "Change the contract")

    def watch(self, when: str) -> int:
        return self.dq("watch", "registry", "--as-of", when, "--channel", "file:told.jsonl").code

    def excuse(self, *more: str) -> int:
        words = ("--by", "ann", "--reason", "planned outage", "--channel", "file:told.jsonl")
        return self.dq("excuse", "registry", *words, *more).code

    @property
    def states(self) -> list[str]:
        return [json.loads(line)["state"] for line in (self.folder / "told.jsonl").read_text().splitlines()]

    def tamper(self, statement: str) -> None:
        with sqlite3.connect(self.folder / ".dq" / "store.db") as database:
            database.execute(statement)
        database.close()


@pytest.fixture
def history(tmp_path: Path) -> History:
    made = History(tmp_path)
    (tmp_path / "lake").mkdir()
    made.put("registry/dq-policy.yaml", "{}")
    made.git("init", "-q")
    made.commit(contract("orders"))
    assert made.watch(BEGIN) == 0
    assert made.watch(MISSED) == 1
    return made


def test_replay_says_that_the_store_says_the_same(history: History) -> None:
    ran = history.dq("replay", "--format", "json")

    assert (ran.code, ran.json) == (0, {"cycles": 1, "unproven": 0, "different": 0, "shown": []})


def test_replay_finds_what_somebody_wrote_into_the_store(history: History) -> None:
    history.tamper("UPDATE cycle SET status = 'on_time'")

    ran = history.dq("replay")

    assert ran.code == 1
    assert "orders/daily due 2026-05-11 06:00Z: its changes give missing, its row says on_time" in ran.out


def test_replay_as_of_an_instant_shows_how_it_stood(history: History) -> None:
    ran = history.dq("replay", "--as-of", "2026-05-11T06:10:00Z", "--format", "json")

    assert [(one["due_at"], one["status"]) for one in ran.json["shown"]] == [
        ("2026-05-11T06:00:00+00:00", "pending")
    ]


def test_replay_of_a_contract_without_deliveries_is_a_mistake(history: History) -> None:
    assert history.dq("replay", "--contract", "sales").code == 2


def test_audit_compares_rows_with_the_contract_of_their_time(history: History) -> None:
    history.commit(
        contract("orders", version="1.1.0", **{"0 6 * * *": "0 7 * * *", "grace: 30m": "grace: 60m"})
    )
    history.watch("2026-05-12T09:00:00Z")

    ran = history.dq("audit", "registry", "--format", "json")

    assert (ran.code, ran.json) == (0, {"agreeing": 2, "unproven": 0, "wrong": []})


def test_audit_finds_a_row_that_no_contract_gives(history: History) -> None:
    history.tamper("UPDATE cycle SET due_at = '2026-05-11T05:00:00.000000Z'")

    ran = history.dq("audit", "registry")

    assert ran.code == 1
    assert "due 2026-05-11 05:00Z: the contract has no such cycle" in ran.out


def test_audit_says_what_it_cannot_compare(history: History) -> None:
    history.tamper("UPDATE cycle SET contract_hash = 'abc'")

    ran = history.dq("audit", "registry")

    assert ran.code == 3
    assert "1 not compared: no version with hash abc" in ran.out


@pytest.mark.parametrize("command", [["audit", "registry"], ["replay"]], ids=lambda one: one[0])
def test_another_store_is_not_said_to_agree(
    history: History, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    monkeypatch.setenv("DQ_STORE_URL", f"sqlite:///{history.folder / 'another.db'}")

    ran = history.dq(*command)

    assert ran.code == 3
    assert "no deliveries" in ran.err


def test_a_verdict_of_an_older_dq_is_not_said_to_be_derived(history: History) -> None:
    history.tamper("UPDATE cycle_event SET proof = NULL")

    ran = history.dq("replay", "--format", "json")

    assert (ran.code, ran.json["unproven"], ran.json["different"]) == (3, 1, 0)


def test_an_excuse_ends_the_incident_and_undoing_it_opens_another(history: History) -> None:
    assert history.excuse("--due", DUE) == 0
    excused, told = history.states[-1], (history.folder / "told.jsonl").read_text()
    assert history.excuse("--due", DUE, "--undo") == 0
    assert history.watch("2026-05-11T08:00:00Z") == 1

    assert (excused, history.states[-1]) == ("excused", "open")
    assert "Excused by ann: planned outage" in told


def test_what_was_never_excused_is_not_counted_again(history: History) -> None:
    words = ("--due", DUE, "--by", "ann", "--reason", "planned outage", "--channel", "file:told.jsonl")

    never = history.dq("excuse", "registry", *words, "--undo")
    history.dq("excuse", "registry", *words)
    undone = history.dq("excuse", "registry", *words, "--undo")
    twice = history.dq("excuse", "registry", *words, "--undo")

    assert (never.code, undone.code, twice.code) == (2, 0, 2)
    assert "no delivery due at that time is excluded: nothing to undo" in never.err
    assert "counted again" not in never.out + twice.out
    assert undone.out == "counted again: 1, already evaluated: 1\n"


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param(["--due", "2026-05-11T06:00:01Z"], id="a second too late"),
        pytest.param(["--from", DUE], id="from without to"),
        pytest.param([], id="nothing"),
        pytest.param(["--from", DUE, "--to", "8000-01-01T00:00:00Z"], id="for ever"),
        pytest.param(["--due", DUE, "--slo", "weekly"], id="another service level"),
    ],
)
def test_what_is_not_due_cannot_be_excused(history: History, asked: list[str]) -> None:
    assert history.excuse(*asked) == 2
    assert history.states == ["open"]


def test_all_deliveries_of_a_time_are_excused_at_once_before_they_are_due(history: History) -> None:
    assert history.excuse("--from", "2026-05-12T00:00:00Z", "--to", "2026-05-14T00:00:00Z") == 0
    history.watch("2026-05-15T09:00:00Z")

    status = history.dq("status", "registry", "--as-of", "2026-05-15T09:00:00Z", "--format", "json").json
    assert [one["status"] for one in status["deliveries"][0]["cycles"]] == [
        "missing", "excused", "excused", "missing", "missing",
    ]  # fmt: skip


def test_the_store_is_sound_and_says_so(history: History) -> None:
    assert history.dq("store", "check", "--format", "json").json == {"faults": []}


def test_the_store_says_what_does_not_fit(history: History) -> None:
    history.tamper("UPDATE cycle SET status = 'late'")

    ran = history.dq("store", "check")

    assert ran.code == 1
    assert "orders/daily due 2026-05-11 06:00Z is late, and its last change says missing" in ran.out


def test_prune_keeps_400_days_at_least(history: History) -> None:
    short = history.dq("store", "prune", "--keep", "90d")
    done = history.dq("store", "prune", "--as-of", "2028-05-11T06:00:00Z", "--format", "json")

    assert short.code == 2
    # What is missing may still come.
    assert (done.code, done.json["cycles"]) == (0, 0)


def test_export_writes_a_file_for_each_table(history: History) -> None:
    ran = history.dq("store", "export", "out", "--format", "json")

    assert (ran.code, ran.json["rows"]["cycle"]) == (0, 1)
    assert (history.folder / "out" / "cycle_event.parquet").is_file()


def test_export_over_a_file_is_refused(history: History) -> None:
    history.put("out", "")

    assert history.dq("store", "export", "out").code == 3


def test_upgrade_says_from_where(tmp_path: Path) -> None:
    place = Place(tmp_path)

    first, second = place.dq("store", "upgrade"), place.dq("store", "upgrade")

    assert (first.code, "was new" in first.out, "was" in second.out) == (0, True, False)
