"""Nothing is lost and nothing is said twice when a watcher is killed, or when two of them work at once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from fakes import children
from fakes.breaches import ROUTES, breach
from fakes.slack import FakeSlack
from sqlalchemy import select

from dq.alerts import tables
from dq.alerts.record import record
from dq.contracts.incident import IncidentKey
from dq.store import open_store

TESTS = Path(__file__).parents[1]
KILLED = -9


def start(*arguments):
    return children.start(Path(__file__).with_name("driver.py"), *arguments)


def run(*arguments):
    code, said = start(*arguments).end()
    assert code in (0, KILLED), said
    return code


@pytest.fixture
def slack():
    with FakeSlack() as workspace:
        yield workspace


@pytest.mark.parametrize(
    "point", ["before-commit", "after-commit", "after-claim", "after-post", "after-settle"]
)
def test_a_watcher_that_is_killed_is_made_good_by_the_next(url, slack, point):
    killed = run(url, slack.url, point, 0)
    # After the lease, and after the second search.
    for ahead in (0, 61, 72):
        assert run(url, slack.url, "never", ahead) == 0

    store = open_store(url)
    with store.read() as tx:
        now = tables.outbox.c.wait == ""
        rows = tx.execute(select(tables.outbox.c.operation, tables.outbox.c.state).where(now)).all()
        held = tx.execute(select(tables.message.c.reference)).scalars().all()
    store.close()
    assert killed == KILLED
    assert [tuple(row) for row in rows] == [("create", "sent")]
    assert held == [post["ts"] for post in slack.posts]
    assert len(slack.posts) == 1


def test_a_watcher_that_dies_while_slack_answers_is_made_good_by_the_next(url, slack):
    stuck = [sys.executable, Path(__file__).with_name("stuck.py"), url, slack.url]
    environment = {**os.environ, "PYTHONPATH": str(TESTS)}
    process = subprocess.Popen(stuck, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    pid = int(process.stdout.readline())
    slack.fault("chat.postMessage", "kill", pid=pid, accept=True)
    process.communicate(b"go\n", timeout=300)
    for ahead in (61, 72):
        run(url, slack.url, "never", ahead)

    assert process.returncode == KILLED
    assert len(slack.posts) == 1


def test_two_senders_at_once_say_everything_once(url, slack):
    store = open_store(url)
    keys = [IncidentKey("orders", f"table{n}", "daily-by-8") for n in range(40)]
    with store.write() as tx:
        for key in keys:
            record(tx, breach(1, key=key), ROUTES, breach(1).occurred_at)
    store.close()

    senders = [start(url, slack.url, "never", 0) for _ in range(3)]
    ends = [sender.end() for sender in senders]

    incidents = [post["metadata"]["event_payload"]["incident"] for post in slack.posts]
    assert [code for code, _ in ends] == [0, 0, 0], ends
    # The senders' own breach is the forty-first: they record it at once, and one of them opens it. So many
    # have a digest.
    assert (len(incidents), len(set(incidents)), len(slack.roots)) == (42, 42, 1)


def test_the_fake_slack_serves_other_processes_too():
    process = subprocess.Popen(
        [sys.executable, str(TESTS / "fakes" / "slack.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    url = f"http://127.0.0.1:{int(process.stdout.readline())}/"
    fault = json.dumps({"method": "auth.test", "kind": "error", "code": "invalid_auth"}).encode()
    headers = {"Content-Type": "application/json"}

    urllib.request.urlopen(urllib.request.Request(f"{url}_fault", fault, headers)).close()
    with urllib.request.urlopen(f"{url}_state") as response:
        state = json.load(response)
    process.communicate()

    assert (state, process.returncode) == ({"posts": [], "messages": [], "calls": 0}, 0)
