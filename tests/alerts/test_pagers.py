"""PagerDuty, Teams and Slack's incoming webhooks: what is special about each."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fakes.breaches import DUE, breach, recovery
from fakes.hooks import MOST_BYTES

from dq.alerts.channel import FailureScope, PermanentFailure, RetryableFailure, Sent, UnconfirmedSend
from dq.alerts.channels import load
from dq.alerts.drain import drain
from dq.alerts.incident import IncidentState, step
from dq.alerts.message import render
from dq.alerts.route import AlertRoute
from dq.contracts.outcome import Severity

CHANNELS = load()
OPENED = step(None, breach(1), DUE).incident
CREATED = render(OPENED, "create")


def sender(places, channel):
    return CHANNELS[channel].open(places[channel].settings, print).sender


@pytest.mark.parametrize(
    ("state", "action"),
    [
        (IncidentState.OPEN, "trigger"),
        (IncidentState.ACKED, "acknowledge"),
        *((state, "resolve") for state in IncidentState if state.is_closed),
    ],
)
def test_an_alert_in_pagerduty_follows_its_incident(places, hooks, state, action):
    root = sender(places, "pagerduty").create("sales-data", CREATED, "key-1").receipt
    sender(places, "pagerduty").update(root, replace(CREATED, state=state, note="news"))

    first, second = (post.body for post in hooks.posts["pagerduty"])
    assert (first["event_action"], second["event_action"]) == ("trigger", action)
    assert first["dedup_key"] == second["dedup_key"] == OPENED.id
    assert second["payload"]["custom_details"]["state"] == state.replace("_", " ")


@pytest.mark.parametrize("severity", list(Severity))
def test_each_severity_has_its_name_in_pagerduty(places, hooks, severity):
    sender(places, "pagerduty").create("sales-data", replace(CREATED, severity=severity), "key-1")

    assert hooks.posts["pagerduty"][0].body["payload"]["severity"] == severity


def test_a_page_that_may_have_been_lost_is_sent_again_and_is_one_alert(places, hooks, store, tell, clock):
    opened = CHANNELS["pagerduty"].open(places["pagerduty"].settings, print)
    hooks.fault("pagerduty", "drop", accept=True)
    tell(breach(1), routes=(AlertRoute("pagerduty", "sales-data"),))
    drain(store, {"pagerduty": opened}, clock)
    clock.pass_by(minutes=1)
    drain(store, {"pagerduty": opened}, clock)
    tell(recovery(1))
    drain(store, {"pagerduty": opened}, clock)

    posts = [post.body for post in hooks.posts["pagerduty"]]
    assert len({post["dedup_key"] for post in posts}) == 1
    assert [post["event_action"] for post in posts][:2] == ["trigger", "trigger"]
    assert posts[-1]["event_action"] == "resolve"


def test_a_routing_key_that_is_none_is_a_broken_route(places):
    settings = {**places["pagerduty"].settings, "key:sales-data": "f" * 32}
    answer = CHANNELS["pagerduty"].open(settings, print).sender.create("sales-data", CREATED, "key-1")

    assert answer == PermanentFailure("HTTP 400", FailureScope.ROUTE)


def test_a_card_is_never_larger_than_teams_takes(places, hooks):
    large = replace(CREATED, facts=tuple((f"{n}", "\N{ROCKET}" * 2000) for n in range(12)))

    answer = sender(places, "teams").create("sales-data", large, "key-1")

    assert isinstance(answer, Sent)
    (post,) = hooks.posts["teams"]
    assert len(post.raw) <= MOST_BYTES["teams"]
    assert post.body["attachments"][0]["content"]["body"][-1]["inlines"][0]["text"] == "…"


def test_a_card_opens_only_addresses_that_it_shows(places, hooks):
    facts = (
        ("runbook", "https://wiki.acme.example/orders"),
        ("evil", "[a](https://evil.example)"),
        ("old", "javascript:alert(1)"),
    )

    sender(places, "teams").create("sales-data", replace(CREATED, facts=facts), "key-1")

    content = hooks.posts["teams"][0].body["attachments"][0]["content"]
    assert [action["url"] for action in content["actions"]] == ["https://wiki.acme.example/orders"]
    assert {element["type"] for element in content["body"]} == {"RichTextBlock"}


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        ("429", RetryableFailure),
        ("500", UnconfirmedSend),
        ("404", PermanentFailure),
        ("413", PermanentFailure),
    ],
)
def test_what_teams_refuses_behind_a_success_is_none(places, hooks, status, kind):
    said = (
        f"Webhook message delivery failed with error: Microsoft Teams endpoint returned HTTP error {status}"
    )
    hooks.fault("teams", "status", status=200, body=said.encode())

    assert type(sender(places, "teams").create("sales-data", CREATED, "key-1")) is kind


@pytest.mark.parametrize(
    ("status", "word", "kind"),
    [
        (403, "action_prohibited", PermanentFailure),
        (403, "invalid_token", PermanentFailure),
        (404, "channel_not_found", PermanentFailure),
        (404, "no_service", PermanentFailure),
        (410, "channel_is_archived", PermanentFailure),
        (500, "rollup_error", UnconfirmedSend),
        (429, "rate_limited", RetryableFailure),
        (200, "<html>a proxy</html>", UnconfirmedSend),
    ],
)
def test_each_answer_of_a_webhook_of_slack_means_what_it_says(places, hooks, status, word, kind):
    hooks.fault("slack", "status", status=status, body=word.encode())

    assert type(sender(places, "slack-webhook").create("sales-data", CREATED, "key-1")) is kind


def test_what_a_webhook_of_slack_cannot_show_arrives_as_plain_text(places, hooks):
    hooks.fault("slack", "status", status=400, body=b"invalid_blocks")

    answer = sender(places, "slack-webhook").create("sales-data", CREATED, "key-1")

    assert answer.note == "sent as plain text, because Slack said invalid_blocks"
    assert hooks.posts["slack"][0].body["blocks"] == []


@pytest.mark.parametrize("channel", ["pagerduty", "webhook"])
def test_t32_a_receiver_of_whole_states_is_told_the_end_once(places, hooks, store, tell, clock, channel):
    opened = CHANNELS[channel].open(places[channel].settings, print)
    tell(breach(1), routes=(AlertRoute(channel, "sales-data"),))
    drain(store, {channel: opened}, clock)

    tell(recovery(1))
    drain(store, {channel: opened}, clock)

    bodies = [post.body for post in hooks.posts[channel]]
    assert [body.get("event_action", body.get("event")) for body in bodies][1:] in (["resolve"], ["step"])
    assert len(bodies) == 2
