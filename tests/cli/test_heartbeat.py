"""The sign of life is given after a tick that judged everything and left nothing unsent, and only then."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest
from fakes.heartbeats import Heartbeats
from fakes.slack import TOKEN, FakeSlack

from dq.operations.watch import ping

CANARIES = ("canary-5e5e", "canary-7f7f")


@pytest.fixture
def place():
    with Heartbeats() as made:
        yield made


@pytest.fixture
def lake(folder):
    (folder / "lake").mkdir()


def lately() -> str:
    return (datetime.now(UTC) - timedelta(minutes=3)).isoformat()


def due(folder):
    """The contract, so that a delivery is due every minute and missed at once."""
    file = folder / "orders.odcs.yaml"
    text = file.read_text().replace('"0 6 * * *"', '"* * * * *"').replace("grace: 30m, ", "grace: 1s, ")
    file.write_text(text.replace('{day: "{due - 1d:%F}"}', '{day: "{due:%Y-%m-%dT%H-%M}"}'))


def test_a_tick_that_judged_and_sent_everything_gives_the_sign(lake, dq, monkeypatch, place):
    monkeypatch.setenv("DQ_HEARTBEAT_URL", place.url)

    ran = dq("watch", "orders.odcs.yaml", "--channel", "console")

    assert (ran.code, place.asked) == (0, ["/canary-5e5e?k=canary-7f7f"])


def test_a_missing_delivery_of_which_all_were_told_is_a_sign_too(folder, lake, dq, monkeypatch, place):
    due(folder)
    monkeypatch.setenv("DQ_HEARTBEAT_URL", place.url)

    ran = dq("watch", "orders.odcs.yaml", "--channel", "console", "--since", lately())

    assert (ran.code, len(place.asked)) == (1, 1)


def test_a_contract_that_cannot_be_read_gives_no_sign(folder, lake, dq, monkeypatch, place):
    (folder / "broken.odcs.yaml").write_text("kind: DataContract\napiVersion: v3.2.0\nid: [\n")
    monkeypatch.setenv("DQ_HEARTBEAT_URL", place.url)

    ran = dq("watch", ".", "--channel", "console")

    assert (ran.code, place.asked) == (3, [])


def test_a_message_that_waits_gives_no_sign_until_it_is_sent(folder, lake, dq, monkeypatch, place):
    due(folder)
    monkeypatch.setenv("DQ_HEARTBEAT_URL", place.url)
    monkeypatch.setenv("SLACK_BOT_TOKEN", TOKEN)
    with FakeSlack() as slack:
        monkeypatch.setenv("DQ_SLACK_URL", slack.url)
        slack.fault("chat.postMessage", "rate", retry_after="1")
        dq("watch", "orders.odcs.yaml", "--channel", "slack:#orders-alerts", "--since", lately())
        at_first, posts = len(place.asked), len(slack.posts)
        time.sleep(1.2)
        for _ in range(10):
            if dq("watch", "orders.odcs.yaml", "--channel", "slack:#orders-alerts").code == 4 or place.asked:
                break
            time.sleep(0.3)

    # A sender that waits within its tick may have sent it at once.
    assert at_first == (1 if posts else 0)
    assert len(place.asked) >= 1


def test_a_tick_as_of_another_time_is_no_sign_of_now(lake, dq, monkeypatch, place):
    monkeypatch.setenv("DQ_HEARTBEAT_URL", place.url)

    dq("watch", "orders.odcs.yaml", "--channel", "console", "--as-of", "2026-05-10T12:00:00Z")

    assert place.asked == []


def test_a_file_may_hold_the_url_and_nothing_prints_it(folder, lake, dq, monkeypatch, place):
    (folder / "secret").write_text(place.url + "\n")
    monkeypatch.setenv("DQ_HEARTBEAT_URL_FILE", str(folder / "secret"))
    place.status = 500

    ran = dq("watch", "orders.odcs.yaml", "--channel", "console")
    looked = dq("doctor")

    assert (ran.code, len(place.asked)) == (0, 1)
    assert "heartbeat failed: HTTP status 500." in ran.err
    for said in (ran.out, ran.err, looked.out, looked.err):
        assert not any(canary in said for canary in CANARIES)


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com/canary-5e5e",
        "ftp://127.0.0.1/canary-5e5e",
        "https://canary-5e5e@example.com/",
        "https://",
        "https://example.com:canary-5e5e/",
        "https://example.com/canary-5e5e /x",
        "file:///canary-5e5e",
    ],
)
def test_a_url_that_is_not_safe_ends_the_command_before_its_first_tick(lake, folder, dq, monkeypatch, url):
    monkeypatch.setenv("DQ_HEARTBEAT_URL", url)

    ran = dq("watch", "orders.odcs.yaml", "--channel", "console")

    assert (ran.code, (folder / ".dq").exists()) == (2, False)
    assert "canary" not in ran.out + ran.err


def test_a_redirect_is_not_followed(lake, dq, monkeypatch, place):
    with Heartbeats() as elsewhere:
        place.status, place.location = 302, elsewhere.url
        monkeypatch.setenv("DQ_HEARTBEAT_URL", place.url)

        ran = dq("watch", "orders.odcs.yaml", "--channel", "console")

    assert (elsewhere.asked, "HTTP status 302" in ran.err) == ([], True)


def test_an_answer_that_never_ends_costs_its_limit_and_no_more():
    with Heartbeats(drip=0.05) as slow:
        began = time.monotonic()
        reason = ping(slow.url, seconds=0.5)

    assert reason == "no answer within 0.5 s"
    assert time.monotonic() - began < 300


def test_nobody_there_is_a_note(lake, dq, monkeypatch):
    monkeypatch.setenv("DQ_HEARTBEAT_URL", "http://127.0.0.1:1/canary-5e5e")

    ran = dq("watch", "orders.odcs.yaml", "--channel", "console")

    assert ran.code == 0
    assert "heartbeat failed: unreachable" in ran.err
    assert "canary" not in ran.out + ran.err
