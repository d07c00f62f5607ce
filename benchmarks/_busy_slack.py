"""A Slack with its limits and with faults by chance, for the benchmarks of alerts.

The limits are those that docs.slack.dev/apis/web-api/rate-limits gives: a message a second and channel with
short bursts, and 50 changes or readings of a history a minute. It counts what it refused.
"""

from __future__ import annotations

import random
import sys
from collections import Counter, defaultdict
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from math import ceil
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from fakes.slack import TOKEN, FakeSlack

from dq.alerts.channel import OpenChannel
from dq.alerts.channels import load

BURST, PER_SECOND = 3, 1.0
A_MINUTE = 50


class Clock:
    """The time of a benchmark: it advances only on request, or while a caller sleeps."""

    def __init__(self, at: datetime) -> None:
        self.at = at

    def __call__(self) -> datetime:
        return self.at

    def sleep(self, seconds: float) -> None:
        self.at += timedelta(seconds=seconds)


class BusySlack(FakeSlack):
    """`faulty` is the share of calls that go wrong: dropped, HTTP 500, limited or slow, taken or not."""

    def __init__(
        self, now: Callable[[], datetime], channels: int, faulty: float = 0.0, seed: int = 1
    ) -> None:
        names = {f"#team-{number:02}": f"C0TEAM{number:04}" for number in range(channels)}
        super().__init__(now=lambda: now().timestamp(), channels=names)
        self.limited = True
        self.faulty, self.chance = faulty, random.Random(seed)
        self.befell: Counter[str] = Counter()
        self.tokens: dict[str, tuple[float, float]] = defaultdict(lambda: (float(BURST), self.now()))
        self.minute: dict[str, list[float]] = defaultdict(list)

    def unscripted(self, method: str, body: dict[str, Any]) -> dict[str, Any]:
        wait = self._wait(method, body) if self.limited else 0.0
        if wait > 0:
            self.befell["429"] += 1
            return {"kind": "rate", "retry_after": str(ceil(wait))}
        if self.chance.random() < self.faulty:
            taken = self.chance.random() < 0.5
            kind = self.chance.choice(["drop", "status", "rate", "garbage"])
            self.befell[f"{kind}, {'taken' if taken and kind != 'rate' else 'not taken'}"] += 1
            return {"kind": kind, "accept": taken and kind != "rate", "status": 500, "retry_after": "2"}
        return super().unscripted(method, body)

    def _wait(self, method: str, body: dict[str, Any]) -> float:
        """Seconds that the caller has to wait, or 0 for a call within the limits, which then counts."""
        now = self.now()
        if method == "chat.postMessage":
            place = self._channel(body) or ""
            left, at = self.tokens[place]
            left = min(float(BURST), left + (now - at) * PER_SECOND)
            if left < 1:
                self.tokens[place] = (left, now)
                return (1 - left) / PER_SECOND
            self.tokens[place] = (left - 1, now)
            return 0.0
        if method in ("chat.update", "conversations.history", "conversations.replies"):
            lately = [at for at in self.minute[method] if now - at < 60]
            self.minute[method] = lately
            if len(lately) >= A_MINUTE:
                return 60 - (now - lately[0])
            lately.append(now)
        return 0.0

    def open(self) -> dict[str, OpenChannel]:
        """The channels of a sender that speaks to this one."""
        settings = {"token": TOKEN, "base_url": self.url, "timeout_seconds": "5"}
        return {
            "slack": load()["slack"].open(settings, lambda _: None),
            "console": load()["console"].open({}, lambda _: None),
        }

    def posts_by_incident(self) -> dict[str, list[dict[str, Any]]]:
        """The posts of each incident; a digest is one too."""
        posts_by_incident: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for post in self.posts:
            posts_by_incident[post["metadata"]["event_payload"]["incident"]].append(post)
        return posts_by_incident


def instant(post: dict[str, Any]) -> datetime:
    """The time at which a post was accepted."""
    return datetime.fromtimestamp(float(post["ts"]), UTC)
