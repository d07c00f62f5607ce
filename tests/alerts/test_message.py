"""What people read, word for word: the files in golden/ (DQ_GOLDEN=write writes them anew)."""

from __future__ import annotations

import json
import os
from datetime import timedelta
from functools import reduce
from pathlib import Path

import pytest
from fakes.breaches import DUE, breach, recovery

from dq.alerts.channels import load
from dq.alerts.channels._slack_blocks import reply, rich
from dq.alerts.incident import Ack, step
from dq.alerts.message import duration, render
from dq.contracts.shared.outcome import Severity

GOLDEN = Path(__file__).parent / "golden"
NOW = DUE + timedelta(minutes=30)

STORIES = {
    "opened": (breach(1),),
    "joined": (breach(1), breach(2)),
    "many": tuple(breach(day) for day in range(1, 9)),
    "worse": (breach(1), breach(2), breach(3, Severity.CRITICAL)),
    "acked": (breach(1), Ack("ana")),
    "resolved": (breach(1), recovery(1)),
    "resolved-at-last": (breach(1), breach(2), recovery(1), recovery(2, late=timedelta(hours=26))),
    "never-late": (breach(1), recovery(1, late=timedelta(minutes=-5))),
    "reopened": (breach(1), recovery(1), breach(2)),
}


def told(story):
    """The incident after its story, and the last thread reply of it."""
    done = reduce(lambda last, event: step(last.incident if last else None, event, NOW), story, None)
    replies = [operation for operation in done.tell if operation.startswith("reply")]
    return done.incident, replies


def compare(name, said):
    path = GOLDEN / name
    if os.environ.get("DQ_GOLDEN") == "write":
        path.write_text(said)
    assert said == path.read_text()


@pytest.mark.parametrize("name", STORIES)
def test_the_console_reads_as_agreed(name):
    incident, replies = told(STORIES[name])
    said = []
    console = load()["console"].open({}, said.append).sender

    receipt = console.create("", render(incident, "create"), "").receipt
    for operation in replies:
        console.reply(receipt, render(incident, operation), "")

    compare(f"{name}.txt", "\n".join(said))


@pytest.mark.parametrize("name", ["opened", "resolved"])
def test_slack_reads_as_agreed(name):
    incident, replies = told(STORIES[name])

    said = [rich(render(incident, "create")), *(reply(render(incident, operation)) for operation in replies)]

    compare(f"{name}.slack.json", json.dumps(said, indent=2) + "\n")


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0, "0 s"), (59, "59 s"), (60, "1 min"), (3661, "1 h 1 min"), (90000, "1 d 1 h"), (86400, "1 d")],
)
def test_a_length_of_time_reads_well(seconds, said):
    assert duration(timedelta(seconds=seconds)) == said
