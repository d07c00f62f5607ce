"""A watcher of its own process that kills itself where it is told: store, Slack's URL, kill point.

The points lie between every two steps: `before-commit`, `after-commit`, `after-claim`, `after-post`,
`after-settle`; `never` runs to the end, and `frozen` stops itself when it is about to post. It records one
breach and drains until nothing is left.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from fakes.breaches import ROUTES, breach
from fakes.slack import TOKEN

from dq.alerts.channel import Sender
from dq.alerts.channels import load
from dq.alerts.drain import drain
from dq.alerts.record import record
from dq.store import open_store


@dataclass
class Fatal:
    """A sender that dies before or after the real one has posted."""

    sender: Sender
    point: str

    def create(self, target, message, key, below=None):
        die_at("after-claim", self.point)
        if self.point == "frozen":
            os.kill(os.getpid(), signal.SIGSTOP)
            # This thread may run on until another one was scheduled and took the signal.
            time.sleep(2)
        answer = self.sender.create(target, message, key, below)
        die_at("after-post", self.point)
        return answer

    def __getattr__(self, name):
        return getattr(self.sender, name)


def die_at(here: str, point: str) -> None:
    if here == point:
        os.kill(os.getpid(), signal.SIGKILL)


def main(url: str, slack_url: str, point: str, ahead_seconds: float) -> None:
    # A later run stands in for one after the lease: its clock is ahead.
    def now() -> datetime:
        return datetime.fromtimestamp(time.time() + ahead_seconds, UTC)

    store = open_store(url)
    with store.write() as tx:
        record(tx, breach(1), ROUTES, now())
        die_at("before-commit", point)
    die_at("after-commit", point)
    opened = load()["slack"].open({"token": TOKEN, "base_url": slack_url}, sys.stdout.write)
    channels = {
        "slack": replace(opened, sender=Fatal(opened.sender, point), can=replace(opened.can, pace_seconds=0))
    }
    drain(store, channels, now)
    die_at("after-settle", point)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4]))
