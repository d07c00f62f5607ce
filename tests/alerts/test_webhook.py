"""What a receiver of webhooks can rely on."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import replace

import jsonschema
import pytest
from fakes.breaches import DUE, breach, recovery
from fakes.canary import Canary
from fakes.shelf import SIGNING_SECRET

from dq.alerts.channel import PermanentFailure, Sent, UnconfirmedSend
from dq.alerts.channels import load
from dq.alerts.channels.webhook import SCHEMA
from dq.alerts.drain import drain
from dq.alerts.incident import step
from dq.alerts.message import render
from dq.alerts.route import AlertRoute
from dq.contracts.access.alert_target import host_allowed
from dq.contracts.outcome import UsageError

WEBHOOK = load()["webhook"]
OPENED = step(None, breach(1), DUE).incident
CREATED = render(OPENED, "create")
RESOLVED = step(OPENED, recovery(1), DUE).incident


@pytest.fixture
def sender(places):
    return WEBHOOK.open(places["webhook"].settings, print).sender


def test_the_receiver_can_tell_who_sent_it(sender, hooks):
    sender = replace(sender, now=lambda: 1_777_622_400.7)

    sender.create("sales-data", CREATED, "key-1")

    (post,) = hooks.posts["webhook"]
    stamp, _, seal = post.headers["DQ-Signature"].removeprefix("t=").partition(",v1=")
    wanted = hmac.new(SIGNING_SECRET.encode(), f"{stamp}.".encode() + post.raw, hashlib.sha256)
    assert (stamp, seal) == ("1777622400", wanted.hexdigest())


def test_a_secret_of_its_own_signs_for_one_receiver_alone(places, hooks):
    settings = {**places["webhook"].settings, "own_secret:sales-data": "another-secret-of-the-tests"}

    for one in (places["webhook"].settings, settings):
        fixed = replace(WEBHOOK.open(one, print).sender, now=lambda: 0)
        fixed.create("sales-data", CREATED, "key-1")

    first, second = (post.headers["DQ-Signature"] for post in hooks.posts["webhook"])
    assert first != second


def test_all_that_is_posted_keeps_to_the_schema(sender, hooks):
    receipt = sender.create("sales-data", CREATED, "key-1").receipt
    sender.update(receipt, render(RESOLVED, "update"))
    sender.reply(receipt, render(RESOLVED, "reply:resolved"), "key-2")

    for post in hooks.posts["webhook"]:
        jsonschema.Draft202012Validator(SCHEMA).validate(post.body)
    assert [(post.body["event"], post.body["id"]) for post in hooks.posts["webhook"]] == [
        ("created", "key-1"),
        ("updated", f"{OPENED.id}/update/{RESOLVED.revision}"),
        ("step", "key-2"),
    ]


def test_a_repeat_has_the_id_of_the_first(places, store, tell, hooks, clock):
    opened = WEBHOOK.open(places["webhook"].settings, print)
    hooks.fault("webhook", "drop", accept=True)
    tell(breach(1), routes=(AlertRoute("webhook", "sales-data"),))

    drain(store, {"webhook": opened}, clock)
    clock.pass_by(minutes=1)
    drain(store, {"webhook": opened}, clock)

    keys = [(post.headers["Idempotency-Key"], post.body["repeat"]) for post in hooks.posts["webhook"]]
    assert len({key for key, _ in keys}) == 1
    assert [repeat for _, repeat in keys] == [False, True]


@pytest.mark.parametrize("secret", ["", "short"])
def test_nothing_is_sent_that_nobody_could_check(places, secret):
    with pytest.raises(UsageError, match="need a signing secret of at least 16 characters") as caught:
        WEBHOOK.open({**places["webhook"].settings, "secret": secret}, print)

    assert "short" not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "http://{host}/x",
        "https://ana:pw@{host}/x",
        "https://{host}#@acme.example/",
        "https://{host}\\@acme.example/",
        "https://acme.example@{host}/",
        "https://{host}/x",
        "file:///etc/passwd",
        "https:///x",
        "https://acme.example.{host}/x",
    ],
)
def test_a_contract_reaches_no_host_that_is_not_on_the_list(places, url):
    with Canary() as canary:
        settings = {**places["webhook"].settings, "hosts": "acme.example,*.acme.example"}
        target = url.format(host=f"127.0.0.2:{canary.port}")
        answer = WEBHOOK.open(settings, print).sender.create(target, CREATED, "key-1")

    assert isinstance(answer, PermanentFailure)
    assert canary.heard == []


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("https://acme.example/x", True),
        ("https://ACME.example/x", True),
        ("https://hooks.acme.example/x", True),
        ("https://acme.example:443/x", True),
        ("https://acme.example:8443/x", False),
        ("https://evil-acme.example/x", False),
        ("https://acme.example.evil.example/x", False),
    ],
)
def test_a_host_is_compared_whole(url, allowed):
    assert host_allowed(url, ("acme.example", "*.acme.example")) is allowed


def test_a_listed_host_is_reached_by_its_url(places, hooks):
    settings = {**places["webhook"].settings, "hosts": f"127.0.0.1:{hooks.port}"}

    answer = WEBHOOK.open(settings, print).sender.create(hooks.url("webhook"), CREATED, "key-1")

    assert isinstance(answer, Sent)


def test_an_answer_that_is_cut_off_is_none(hooks, sender):
    hooks.fault("webhook", "garbage", accept=True)

    assert isinstance(sender.create("sales-data", CREATED, "key-1"), UnconfirmedSend)
