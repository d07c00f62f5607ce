"""The faults that a sender of alerts must survive: which test shows it, and those that need real signals.

Each test of this file says what the ledger of the fake Slack must hold, and what of it people still see; the
last one prints them as a table (`pytest -rP`).
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fakes import children
from fakes.slack import FakeSlack
from sqlalchemy import select

from dq.alerts import tables
from dq.store import open_store

TESTS = Path(__file__).parents[1]

# The number and the fault -> the tests that show what becomes of it.
FAULTS = {
    "1, 2, 3, 4, 5: killed between any two steps": (
        "alerts/test_crash.py::test_a_watcher_that_is_killed_is_made_good_by_the_next",
        "cli/test_watch_crash.py::test_a_watcher_killed_between_commit_and_send_alerts_once",
    ),
    "6: Slack took it, and did not say so": (
        "alerts/test_faults.py::test_a_message_that_slack_took_without_saying_so_is_found_again",
        "alerts/test_crash.py::test_a_watcher_that_dies_while_slack_answers_is_made_good_by_the_next",
    ),
    "7: limited again and again": (
        "alerts/test_faults.py::test_a_rate_limit_is_honoured_by_all_that_go_to_the_channel",
        "alerts/test_faults.py::test_five_rate_limits_keep_the_order_of_an_incident",
    ),
    "8: each answer of Slack": (
        "alerts/test_slack_answers.py::test_a_code_that_says_wait_is_waited_for",
        "alerts/test_slack_answers.py::test_a_code_that_leaves_it_open_is_looked_into",
        "alerts/test_slack_answers.py::test_a_message_slack_cannot_show_arrives_as_plain_text",
    ),
    "9: two senders at once": ("alerts/test_crash.py::test_two_senders_at_once_say_everything_once",),
    "10: stopped past its lease, in the middle of a POST and before it": (
        "alerts/test_twenty_faults.py::test_a_sender_that_is_stopped_while_slack_answers_says_it_once",
        "alerts/test_twenty_faults.py::test_a_sender_that_is_stopped_before_it_posts_takes_its_copy_away",
        "alerts/test_outstanding.py::test_a_sender_that_overslept_takes_its_second_copy_away",
    ),
    "11: nobody may read the history": (
        "alerts/test_faults.py::test_a_channel_whose_history_nobody_may_read_gets_a_second_copy_that_says_so",
        "alerts/test_twenty_faults.py::test_a_killed_sender_without_history_says_that_it_may_be_a_repeat",
    ),
    "12: resolved while it is on its way": (
        "alerts/test_faults.py::test_a_resolve_while_the_message_is_on_its_way_has_the_last_word",
    ),
    "13: resolved before it was sent": (
        "alerts/test_deliver.py::test_what_resolved_before_it_was_sent_is_never_sent",
    ),
    "14: no watcher for hours": (
        "cli/test_watch_guards.py::test_what_came_and_went_in_a_downtime_is_one_message",
    ),
    "15: a storage that cannot be read": (
        "cli/test_watch_blind.py::test_a_lake_that_cannot_be_read_is_told_once_and_when_it_can",
    ),
    "16: a root and its children, in a storm": (
        "alerts/test_storm.py::test_six_incidents_at_once_are_one_digest_with_six_in_its_thread",
        "alerts/test_storm.py::test_a_storm_is_folded_once_by_two_senders",
    ),
    "17: a clock that jumps": (
        "cli/test_watch_guards.py::test_a_tick_before_the_last_one_judges_nothing_and_says_how_to_go_on",
        "cli/test_watch_guards.py::test_a_clock_that_was_set_while_the_machine_ran_judges_nothing",
    ),
    "18: a contract edited or removed while its incident is open": (
        "cli/test_watch_withdrawn.py::test_what_a_contract_says_no_more_is_withdrawn",
        "cli/test_watch_withdrawn.py::test_a_contract_that_was_removed_withdraws_what_it_promised",
        "alerts/test_outstanding.py::test_a_contract_that_names_another_place_has_it_told_at_once",
    ),
    "19: a newer tz database that moves what is due": (
        "cli/test_watch_tzdata.py::test_what_is_missing_keeps_its_instant_and_what_comes_follows_the_newer_one",
        "cli/test_watch_tzdata.py::test_a_delivery_that_comes_twice_by_a_newer_release_is_no_second_alert",
        "cli/test_watch_tzdata.py::test_a_delivery_that_a_newer_release_puts_into_the_past_is_named_by_the_audit",
    ),
    "20: a store that is restored from a backup": (
        "alerts/test_twenty_faults.py::test_a_store_from_before_the_answer_adopts_what_slack_holds",
    ),
}

LEDGER: list[tuple[str, str, int, int, int]] = []


def seen(slack: FakeSlack, number: str, fault: str, posts: int, visible: int) -> None:
    LEDGER.append((number, fault, posts, len(slack.posts), len(slack.roots)))
    assert (len(slack.posts), len(slack.roots)) == (posts, visible), fault


@pytest.fixture
def slack():
    with FakeSlack() as workspace:
        yield workspace


def later(url: str, slack: FakeSlack) -> None:
    """Other watchers, past the lease and past the second search."""
    for ahead in (61, 72):
        code, said = children.run(Path(__file__).with_name("driver.py"), url, slack.url, "never", ahead)
        assert code == 0, said


class Stuck:
    """A watcher of its own process that sends when it is told to, so that its id is known before."""

    def __init__(self, url: str, slack: FakeSlack, point: str = "never") -> None:
        program = [sys.executable, Path(__file__).with_name("stuck.py"), url, slack.url, point]
        environment = {**os.environ, "PYTHONPATH": str(TESTS)}
        self.process = subprocess.Popen(
            program, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.pid = int(self.process.stdout.readline())

    def go(self) -> None:
        self.process.stdin.write(b"go\n")
        self.process.stdin.flush()

    def is_stopped(self) -> None:
        """Waits until the kernel says so."""
        until = time.monotonic() + 300
        while re.search(r"^State:\s+T", Path(f"/proc/{self.pid}/status").read_text(), re.MULTILINE) is None:
            assert time.monotonic() < until, "it was never stopped"
            time.sleep(0.02)

    def goes_on(self) -> None:
        os.kill(self.pid, signal.SIGCONT)
        self.process.communicate(timeout=300)
        assert self.process.returncode == 0


linux = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads /proc")


@linux
@pytest.mark.parametrize("accept", [True, False], ids=["taken", "lost"])
def test_a_sender_that_is_stopped_while_slack_answers_says_it_once(url, slack, accept):
    stuck = Stuck(url, slack)
    # What is lost is answered with a failure that leaves it open.
    slack.fault("chat.postMessage", "stop", pid=stuck.pid, accept=accept)
    stuck.go()
    stuck.is_stopped()
    later(url, slack)
    stuck.goes_on()

    seen(slack, "10", f"stopped in the middle of a POST, {'taken' if accept else 'lost'}", 1, 1)


@linux
def test_a_sender_that_is_stopped_before_it_posts_takes_its_copy_away(url, slack):
    stuck = Stuck(url, slack, "frozen")
    stuck.go()
    stuck.is_stopped()
    later(url, slack)
    before = [post["ts"] for post in slack.posts]
    stuck.goes_on()

    seen(slack, "10", "stopped before a POST, which comes past the lease", 2, 1)
    assert [root["ts"] for root in slack.roots] == before, "the younger one is taken away"


@pytest.mark.parametrize(("point", "posts"), [("after-claim", 1), ("after-post", 2)])
def test_a_killed_sender_without_history_says_that_it_may_be_a_repeat(url, slack, point, posts):
    slack.fault("conversations.history", "error", times=9, code="missing_scope")
    code, said = children.run(Path(__file__).with_name("driver.py"), url, slack.url, point, 0)
    assert code == -signal.SIGKILL, said
    later(url, slack)

    seen(slack, "11", f"history may not be read, killed {point}", posts, posts)
    assert "Possible duplicate" in str(slack.posts[-1])


@pytest.mark.parametrize(("point", "number"), [("before-commit", "1"), ("after-commit", "2")])
def test_a_sender_that_is_killed_before_it_claims_is_made_good(url, slack, point, number):
    code, said = children.run(Path(__file__).with_name("driver.py"), url, slack.url, point, 0)
    assert code == -signal.SIGKILL, said
    later(url, slack)

    seen(slack, number, f"killed {point}", 1, 1)


@pytest.mark.parametrize(
    ("point", "number"), [("after-claim", "3"), ("after-post", "4"), ("after-settle", "5")]
)
def test_a_sender_that_is_killed_once_it_has_claimed_is_made_good(url, slack, point, number):
    code, said = children.run(Path(__file__).with_name("driver.py"), url, slack.url, point, 0)
    assert code == -signal.SIGKILL, said
    later(url, slack)

    seen(slack, number, f"killed {point}", 1, 1)


def test_a_store_from_before_the_answer_adopts_what_slack_holds(tmp_path, slack):
    file, backup = tmp_path / "store.db", tmp_path / "backup.db"
    url = f"sqlite:///{file}"
    driver = Path(__file__).with_name("driver.py")
    assert children.run(driver, url, slack.url, "after-claim", 0)[0] == -signal.SIGKILL
    # The backup is of the claim; then the message is sent, and the disk is lost.
    for name in tmp_path.glob("store.db*"):
        shutil.copy(name, backup.with_name(name.name.replace("store", "backup")))
    later(url, slack)
    for name in tmp_path.glob("store.db*"):
        name.unlink()
    for name in tmp_path.glob("backup.db*"):
        shutil.copy(name, file.with_name(name.name.replace("backup", "store")))
    later(url, slack)

    store = open_store(url)
    with store.read() as tx:
        held = tx.execute(select(tables.message.c.reference)).scalars().all()
    store.close()
    seen(slack, "20", "restored from a backup of while it was sent", 1, 1)
    assert held == [post["ts"] for post in slack.posts]


def test_each_fault_has_tests_that_there_are():
    missing = [
        name
        for names in FAULTS.values()
        for name in names
        if f"def {name.partition('::')[2]}(" not in (TESTS / name.partition("::")[0]).read_text()
    ]

    assert missing == []


def test_the_ledger_as_a_table():
    rows = sorted(LEDGER, key=lambda row: int(row[0]))
    lines = [
        f"{one:>3}  {fault:<60} posts {want}, seen {got}; shown {shown}"
        for one, fault, want, got, shown in rows
    ]
    sys.stdout.write("\n".join(lines) + "\n")

    assert all(want == got for _, _, want, got, _ in LEDGER)
