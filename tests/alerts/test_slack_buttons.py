"""Buttons below alerts in Slack: a press is done once, by whom it says, and nothing else is done."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from time import monotonic, sleep

import pytest
from fakes.breaches import KEY, breach, recovery
from fakes.slack import TEAM, TOKEN
from fakes.socket_slack import APP, APP_TOKEN, SocketSlack
from sqlalchemy import func, select

from dq.alerts import incident_store, suppression, tables
from dq.alerts.channel import Interaction
from dq.alerts.channels import load
from dq.alerts.channels._slack_sdk import SlackListener, Workspace, interaction_from_payload
from dq.alerts.channels.slack import open_slack
from dq.alerts.drain import drain
from dq.alerts.incident import IncidentState
from dq.alerts.record import handle_interaction
from dq.contracts.outcome import UsageError

WHO, OTHER = "U012AB3CD", "U0OTHER99"


@pytest.fixture
def url(tmp_path):
    """What is written is written by parts that have their tests on both databases."""
    return f"sqlite:///{tmp_path / 'dq.db'}"


@pytest.fixture
def slack(clock) -> Iterator[SocketSlack]:
    with SocketSlack(now=lambda: clock().timestamp()) as workspace:
        yield workspace


@pytest.fixture
def notes():
    return []


@pytest.fixture
def settings(slack):
    return {"token": TOKEN, "app_token": APP_TOKEN, "base_url": slack.url, "timeout_seconds": "5"}


@pytest.fixture
def channels(settings, terminal):
    known = load()
    opened = known["slack"].open(settings, terminal.append)
    return {
        "slack": replace(opened, can=replace(opened.can, pace_seconds=0)),
        "console": known["console"].open({}, terminal.append),
    }


@pytest.fixture
def listener(slack, settings, store, clock, notes):
    """Somebody listens, and is connected."""

    def write_down(one):
        with store.write() as tx:
            return handle_interaction(tx, one, clock())

    # As the channel makes it, but for the pings: nobody waits for them here.
    client = open_slack(settings, str).client
    end = SlackListener(client, APP_TOKEN, write_down, notes.append, ping_seconds=0.25).start()
    assert slack.connected()
    yield
    end()


@pytest.fixture
def told(tell, send, slack):
    """The message of an incident that is open."""
    tell(breach(1))
    send()
    return slack.roots[0]


def soon(holds) -> None:
    until = monotonic() + 300
    while not holds() and monotonic() < until:
        sleep(0.02)


def newest(store):
    with store.read() as tx:
        return incident_store.newest(tx, KEY)


def buttons(message) -> list[str]:
    blocks = [block for part in message["attachments"] for block in part["blocks"]]
    return [one["action_id"] for block in blocks if block["type"] == "actions" for one in block["elements"]]


def test_whoever_presses_is_on_it_and_the_buttons_go(listener, told, send, slack, store):
    before = buttons(told)
    assert slack.done(slack.press(told, "dq_ack", WHO))
    send()

    incident = newest(store)
    assert before == ["dq_ack", "dq_silence"]
    assert (incident.state, incident.acked_by) == (IncidentState.ACKED, f"{WHO} (ana)")
    assert [one["text"] for one in slack.replies] == [f"Acknowledged by {WHO} (ana)."]
    assert buttons(slack.roots[0]) == []


def test_unusual_numbers_have_buttons_for_an_answer_also_after_the_acknowledgement(
    listener, tell, send, slack, store
):
    tell(replace(breach(1), facts=(("amount unusual", "amount: mean 3.1 is unusual"),)))
    send()
    before = buttons(slack.roots[0])
    assert slack.done(slack.press(slack.roots[0], "dq_not_real", WHO))
    send()

    assert before == ["dq_ack", "dq_silence", "dq_real", "dq_not_real"]
    assert newest(store).acked_by == f"{WHO} (ana)"
    assert buttons(slack.roots[0]) == ["dq_real", "dq_not_real"]


def test_an_envelope_that_comes_twice_is_one_ack(listener, told, send, slack, kinds):
    ident = slack.press(told, "dq_ack", WHO)
    assert slack.done(ident)
    again = slack.press(told, "dq_ack", WHO)
    assert slack.done(again)
    send()

    assert kinds().count("acked") == 1
    assert len(slack.replies) == 1
    assert slack.whispers == []


def test_the_second_person_hears_who_is_on_it(listener, told, slack, kinds):
    assert slack.done(slack.press(told, "dq_ack", WHO))
    assert slack.done(slack.press(told, "dq_ack", OTHER))

    assert kinds().count("acked") == 1
    told_to = [(one["user"], one["text"]) for one in slack.whispers]
    assert told_to == [(OTHER, f"Already acknowledged by {WHO} (ana).")]


def test_two_presses_of_silence_are_one(listener, told, send, slack, store):
    for _ in range(2):
        assert slack.done(slack.press(told, "dq_silence", WHO))
    send()

    with store.read() as tx:
        rows = tx.execute(select(func.count()).select_from(tables.silence)).scalar_one()
        (held,) = suppression.active(tx, newest(store).open_since)
    assert rows == 1
    assert (held.user, str(held.pattern)) == (f"{WHO} (ana)", str(KEY))
    assert "Already silenced until" in slack.whispers[0]["text"]
    assert WHO in str(slack.roots[0]["attachments"])


def test_a_press_on_what_is_over_says_so_and_does_nothing(listener, told, tell, send, slack, kinds):
    tell(recovery(1))
    before = len(kinds())
    assert slack.done(slack.press(told, "dq_ack", WHO))
    assert slack.done(slack.press(told, "dq_silence", WHO))
    send()

    assert [one["text"] for one in slack.whispers] == ["Already closed: resolved."] * 2
    assert "acked" not in kinds()[before:]


def test_a_press_from_before_it_broke_again_is_not_taken_for_this_time(
    listener, told, tell, send, slack, store, clock
):
    pressed_at = f"{clock().timestamp():.6f}"
    tell(recovery(1))
    clock.pass_by(minutes=10)
    tell(replace(breach(2), occurred_at=clock()))
    incident = told["metadata"]["event_payload"]["incident"]
    late = [{"type": "button", "action_id": "dq_ack", "value": incident, "action_ts": pressed_at}]
    assert slack.done(slack.press(told, "dq_ack", WHO, actions=late))

    assert newest(store).state is IncidentState.OPEN
    assert "reopened since" in slack.whispers[0]["text"]


OURS = Workspace(TEAM, APP)


@pytest.mark.parametrize(
    "changes",
    [
        {"api_app_id": "A0STRANGER"},
        {"api_app_id": ""},
        {"team": {"id": "T0STRANGER"}},
        {"team": None},
        {"user": {"id": WHO, "username": "eve", "team_id": "T0STRANGER"}},
        {"user": {"id": "<!channel>"}},
        {"user": None},
        {"type": "view_submission"},
        {"type": "message_action"},
        {"actions": []},
        {"actions": "dq_ack"},
        {"actions": [{"action_id": "dq_ack", "value": "x", "action_ts": "1"}]},
        {"actions": [{"action_id": "other", "value": "0" * 36, "action_ts": "1"}]},
        {"actions": [{"action_id": "dq_ack", "value": "0" * 36, "action_ts": "inf"}]},
    ],
    ids=lambda one: ", ".join(f"{name}={value!r}"[:50] for name, value in one.items()),
)
def test_what_is_none_of_ours_is_no_press(changes):
    message = {"metadata": {"event_payload": {"incident": "0" * 36}}, "ts": "1.0", "channel": "C0ORDERS01"}
    payload = SocketSlack.payload(message, "dq_ack", WHO, 1.0)

    assert isinstance(interaction_from_payload(payload, OURS), Interaction)
    assert isinstance(interaction_from_payload({**payload, **changes}, OURS), str)


def test_before_slack_has_said_hello_nothing_is_ours():
    message = {"metadata": {"event_payload": {"incident": "0" * 36}}, "ts": "1.0", "channel": "C0ORDERS01"}
    payload = SocketSlack.payload(message, "dq_ack", WHO, 1.0)

    assert (
        interaction_from_payload({**payload, "api_app_id": ""}, Workspace(TEAM, "")) == "sent by another app"
    )


def test_a_press_in_another_workspace_is_refused_and_said(listener, told, slack, kinds, notes):
    before = kinds()
    assert slack.done(slack.press(told, "dq_ack", WHO, team={"id": "T0STRANGER"}))

    assert kinds() == before
    assert notes == ["button press in Slack refused: sent from another workspace"]
    assert slack.whispers == []


def test_a_name_of_a_stranger_is_one_line_and_short(listener, told, slack, store):
    user = {"id": WHO, "username": "ana\n<!channel> " + "x" * 200}
    assert slack.done(slack.press(told, "dq_ack", WHO, user=user))

    who = newest(store).acked_by
    assert who.startswith(f"{WHO} (ana")
    assert ("\n" in who, len(who) < 80) == (False, True)


def test_a_digest_is_taken_and_not_silenced(listener, tell, send, slack, store):
    tell(*(breach(1, key=type(KEY)(f"p{number}", "t", "daily")) for number in range(6)))
    send()
    digest = slack.roots[0]
    assert slack.done(slack.press(digest, "dq_silence", WHO))
    assert slack.done(slack.press(digest, "dq_ack", WHO))

    with store.read() as tx:
        states = {one.state for one in incident_store.open_incidents(tx)}
    assert buttons(digest) == ["dq_ack"]
    assert states == {IncidentState.ACKED}
    assert "cannot be silenced" in slack.whispers[0]["text"]


def test_slack_asks_for_a_new_connection_and_gets_it(listener, told, slack, store):
    slack.refresh()
    assert slack.connected(more_than=1)
    assert slack.done(slack.press(told, "dq_ack", WHO))

    assert newest(store).state is IncidentState.ACKED


def test_a_connection_that_is_lost_comes_again(listener, told, slack, store):
    slack.cut()
    assert slack.connected(more_than=1)
    assert slack.done(slack.press(told, "dq_ack", WHO))

    assert newest(store).state is IncidentState.ACKED


def test_a_store_that_is_away_is_said_to_whoever_pressed(slack, settings, told, notes):
    def away(_):
        raise OSError("secret of the store")

    end = load()["slack"].listen(settings, away, notes.append)
    assert slack.connected()
    assert slack.done(slack.press(told, "dq_ack", WHO))
    end()

    assert "could not record it" in slack.whispers[0]["text"]
    assert notes == ["button press in Slack could not be recorded: OSError"]


@pytest.mark.parametrize(
    "url",
    [
        "wss://evil.example/link",
        "wss://wss.slack.com:8443/link",
        "ws://wss.slack.com/link",
        "wss://slack.com.evil/",
        # T21: readers part ways at what stands before ".slack.com".
        "wss://evil.example\\.slack.com/",
        "wss://evil.example/\\.slack.com/",
        "wss://.slack.com/",
        "wss://evil.example\\@wss.slack.com/",
        "wss://user@wss.slack.com/",
        "wss://evil.example#.slack.com/",
        "wss://wss..slack.com/",
    ],
)
def test_nobody_but_slack_is_spoken_to(slack, settings, notes, url):
    slack.elsewhere = url
    end = load()["slack"].listen(settings, lambda _: "", notes.append)
    soon(lambda: notes)
    end()

    assert notes == ["Slack buttons unavailable: ValueError. Retrying every minute."]


@pytest.mark.parametrize("code", ["invalid_auth", "not_allowed_token_type", "missing_scope"])
def test_a_token_that_slack_refuses_is_said_without_it(slack, settings, notes, code):
    slack.fault("apps.connections.open", "error", times=5, code=code)
    end = load()["slack"].listen(settings, lambda _: "", notes.append)
    soon(lambda: notes)
    end()

    assert notes == [f"Slack buttons unavailable: Slack says {code}. Retrying every minute."]


def test_without_a_token_of_the_app_there_is_no_button(settings, tell, store, clock, slack):
    plain = {name: value for name, value in settings.items() if name != "app_token"}
    tell(breach(1))
    drain(store, {"slack": load()["slack"].open(plain, print)}, clock)

    assert buttons(slack.roots[0]) == []
    assert load()["slack"].listen(plain, lambda _: "", print) is None


def test_another_kind_of_token_is_a_mistake(settings):
    with pytest.raises(UsageError, match="is not an app token") as error:
        load()["slack"].listen({**settings, "app_token": "xoxb-canary"}, lambda _: "", print)

    assert "canary" not in str(error.value)


def test_a_wrong_token_costs_the_buttons_and_no_alert(settings, tell, store, clock, slack):
    tell(breach(1))
    drain(store, {"slack": load()["slack"].open({**settings, "app_token": "xoxb-1"}, print)}, clock)

    assert len(slack.roots) == 1
    assert buttons(slack.roots[0]) == []


def test_a_connection_that_breaks_while_it_is_closed_is_closed(slack, settings, notes):
    """slack-sdk's receiving thread removes the socket while the closing one waits for its lock."""
    client = open_slack(settings, str).client
    listener = SlackListener(client, APP_TOKEN, lambda _: "", notes.append)
    end = listener.start()
    assert slack.connected()
    soon(lambda: listener.socket.current_session is not None)
    session = listener.socket.current_session
    with ThreadPoolExecutor(1) as pool:
        with session.sock_send_lock:
            closed = pool.submit(end)
            sleep(0.3)
            broken, session.sock = session.sock, None
        broken.close()
        closed.result(60)

    assert not listener.socket.is_connected()
    assert listener.socket.current_session_runner.thread is None
    assert notes == []


def test_a_connection_closed_before_it_is_read_ends_its_thread(slack, settings, notes):
    """The receiving thread looks for a new connection ten times a second, and is about to read this."""
    client = open_slack(settings, str).client
    listener = SlackListener(client, APP_TOKEN, lambda _: "", notes.append)
    end = listener.start()
    assert slack.connected()
    soon(lambda: listener.socket.current_session is not None)
    session, state = listener.socket.current_session, listener.socket.current_session_state
    with ThreadPoolExecutor(1) as pool:
        # Whoever closes marks the connection, and has not removed the socket yet.
        with session.sock_send_lock:
            closed = pool.submit(end)
            soon(lambda: state.terminated)
            sleep(0.3)
            assert session.is_active()
        closed.result(60)

    assert listener.socket.current_session_runner.thread is None


def test_a_client_closed_while_it_connects_does_not_stay_connected(slack, settings, notes):
    client = open_slack(settings, str).client
    listener = SlackListener(client, APP_TOKEN, lambda _: "", notes.append)
    end = listener.start()
    assert slack.connected()
    soon(lambda: listener.socket.current_session is not None)
    end()

    listener.socket.connect()

    assert not listener.socket.is_connected()
    assert listener.socket.current_session_state.terminated
