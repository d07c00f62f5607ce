"""What the tests of alerts share: a store on each database, a clock that is set by hand, and Slack."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from fakes import shelf
from fakes.breaches import ROUTES
from fakes.hooks import Hooks
from fakes.slack import TOKEN, FakeSlack
from fakes.smtp import FakeSmtp
from sqlalchemy import select

from dq.alerts import tables
from dq.alerts.channels import load
from dq.alerts.drain import drain
from dq.alerts.record import record
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


@pytest.fixture
def store(url):
    opened = open_store(url)
    yield opened
    opened.close()


@pytest.fixture
def slack(clock):
    with FakeSlack(now=lambda: clock().timestamp()) as workspace:
        yield workspace


def hurried(opened):
    """The channel without its pace, which no test here waits for."""
    return replace(opened, can=replace(opened.can, pace_seconds=0))


@pytest.fixture
def hooks():
    with Hooks() as hosts:
        yield hosts


@pytest.fixture
def smtp():
    with FakeSmtp() as server:
        yield server


@pytest.fixture
def places(slack, hooks, smtp, tmp_path, terminal):
    """How each channel is set up here: its settings and a target."""
    return shelf.places(slack, hooks, smtp, tmp_path, terminal)


@pytest.fixture
def terminal():
    return []


@pytest.fixture
def channels(slack, terminal):
    """Slack, which may be hurried, and the console, open."""
    settings = {"token": TOKEN, "base_url": slack.url, "timeout_seconds": "2"}
    known = load()
    return {
        "slack": hurried(known["slack"].open(settings, terminal.append)),
        "console": known["console"].open({}, terminal.append),
    }


@pytest.fixture
def tell(store, clock):
    """Records events, each in a transaction of its own, for the routes."""

    def record_all(*events, routes=ROUTES):
        done = []
        for event in events:
            with store.write() as tx:
                done.append(record(tx, event, routes, clock()))
        return done

    return record_all


@pytest.fixture
def send(store, channels, clock):
    return lambda: drain(store, channels, clock)


@pytest.fixture
def kinds(store):
    """The kinds of all events so far."""

    def read():
        with store.read() as tx:
            return list(
                tx.execute(
                    select(tables.incident_event.c.kind).order_by(tables.incident_event.c.id)
                ).scalars()
            )

    return read
