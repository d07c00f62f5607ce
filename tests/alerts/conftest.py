"""What the tests of alerts share: a store on each database, a clock that is set by hand, and Slack."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from fakes import postgres
from fakes.slack import TOKEN, FakeSlack

from dq.alerts.channels import load
from dq.store import open_store


class Clock:
    """The time of the test; it stands still until it is moved."""

    def __init__(self):
        self.at = datetime(2026, 5, 1, 8, 30, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.at

    def pass_by(self, **length: float) -> None:
        self.at += timedelta(**length)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture(params=["sqlite", "postgres"])
def url(request, tmp_path):
    return postgres.new_database() if request.param == "postgres" else f"sqlite:///{tmp_path / 'dq.db'}"


@pytest.fixture
def store(url):
    opened = open_store(url)
    yield opened
    opened.close()


@pytest.fixture
def slack(clock):
    with FakeSlack(now=lambda: clock().timestamp()) as workspace:
        yield workspace


@pytest.fixture
def terminal():
    return []


@pytest.fixture
def channels(slack, terminal):
    """Slack and the console, open."""
    settings = {"token": TOKEN, "base_url": slack.url, "timeout_seconds": "0.5"}
    shelf = load()
    return {
        "slack": shelf["slack"].open(settings, terminal.append),
        "console": shelf["console"].open({}, terminal.append),
    }
