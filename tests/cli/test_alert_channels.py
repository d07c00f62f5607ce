"""Channels as commands use them: where contracts may send, the test of a route, and the doctor's look."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime

import pytest
from fakes.canary import Canary
from fakes.command import BEGIN, MISSED, Place, contract, without_settings
from fakes.desk import Desk
from fakes.hooks import ROUTING_KEY, SECRET_PATH, Hooks
from fakes.shelf import SECRETS, SIGNING_SECRET
from fakes.slack import TOKEN, FakeSlack
from fakes.smtp import PASSWORD, USER, FakeSmtp

CONTRACT = """\
apiVersion: v3.2.0
kind: DataContract
id: orders
version: 1.0.0
status: active
servers:
  - {{server: lake, type: local, path: lake, format: parquet}}
support: {support}
schema:
  - name: orders
    properties:
      - {{name: day, logicalType: date, partitioned: true, partitionKeyPosition: 1}}
      - {{name: id, logicalType: string}}
slaProperties:
  - id: daily
    property: frequency
    value: 1
    unit: d
    schedule: "0 6 * * *"
    customProperties:
      - {{property: delivery, vendor: dq, value: {{partition: {{day: "{{due:%F}}"}}}}}}
"""
WATCH = ("watch", ".", "--as-of", "2026-05-11T12:00:00Z", "--since", "2026-05-11T00:00:00Z")
ALL = (
    {"channel": "#orders-alerts", "tool": "slack", "scope": "notifications"},
    {"channel": "sales-data", "tool": "slack-webhook", "scope": "notifications"},
    {"channel": "sales-data", "tool": "teams", "scope": "notifications"},
    {"channel": "sales-data", "tool": "webhook", "scope": "notifications"},
    {"channel": "sales-data", "tool": "pagerduty", "scope": "notifications"},
    {"channel": "ana@acme.example", "tool": "email", "scope": "notifications"},
)


@pytest.fixture
def desk(tmp_path, monkeypatch, capfd):
    return Desk(tmp_path, monkeypatch, capfd)


@pytest.fixture
def hooks():
    with Hooks() as hosts:
        yield hosts


@pytest.fixture
def smtp():
    with FakeSmtp() as server:
        yield server


@pytest.fixture
def slack():
    with FakeSlack() as workspace:
        yield workspace


@pytest.fixture
def variables(hooks, smtp, slack):
    """A watcher to which every channel is known."""
    return {
        "SLACK_BOT_TOKEN": TOKEN,
        "DQ_SLACK_URL": slack.url,
        "DQ_SLACK_WEBHOOK_URL_SALES_DATA": hooks.url("slack"),
        "DQ_TEAMS_URL_SALES_DATA": hooks.url("teams"),
        "DQ_WEBHOOK_URL_SALES_DATA": hooks.url("webhook"),
        "DQ_WEBHOOK_SECRET": SIGNING_SECRET,
        "DQ_PAGERDUTY_KEY_SALES_DATA": ROUTING_KEY,
        "DQ_PAGERDUTY_URL": hooks.url("pagerduty"),
        "DQ_SMTP_HOST": "127.0.0.1",
        "DQ_SMTP_PORT": str(smtp.port),
        "DQ_SMTP_USER": USER,
        "DQ_SMTP_PASSWORD": PASSWORD,
        "DQ_SMTP_FROM": "dq@acme.example",
        "DQ_EMAIL_DOMAINS": "acme.example",
    }


def promise(desk, *support):
    desk.write("orders.odcs.yaml", CONTRACT.format(support=json.dumps(support)))


def test_a_late_delivery_is_told_through_every_channel(desk, hooks, smtp, slack, variables):
    promise(desk, *ALL)

    ran = desk.dq(*WATCH, **variables)

    assert ran.code == 1, ran.all
    assert {host: len(posts) for host, posts in hooks.posts.items()} == {
        "slack": 1,
        "teams": 1,
        "webhook": 1,
        "pagerduty": 1,
    }
    assert (len(slack.posts), len(smtp.mails)) == (1, 1)
    assert not any(secret in ran.all for secret in SECRETS)
    assert not any(secret.encode() in (desk.folder / ".dq/store.db").read_bytes() for secret in SECRETS)


def test_a_secret_may_stand_in_a_file(desk, hooks, variables):
    promise(desk, {"channel": "sales-data", "tool": "teams"})
    desk.write("secret", variables["DQ_TEAMS_URL_SALES_DATA"] + "\n")

    ran = desk.dq(*WATCH, DQ_TEAMS_URL_SALES_DATA_FILE=str(desk.folder / "secret"))

    assert (ran.code, len(hooks.posts["teams"])) == (1, 1)


def test_a_file_of_a_secret_that_is_gone_silences_no_other_channel(desk, hooks, variables):
    promise(desk, *ALL[2:4])
    given = {name: value for name, value in variables.items() if not name.startswith("DQ_TEAMS")}

    ran = desk.dq(*WATCH, **given, DQ_TEAMS_URL_SALES_DATA_FILE=str(desk.folder / "absent"))

    assert (ran.code, len(hooks.posts["webhook"])) == (2, 1)
    assert "DQ_TEAMS_URL_SALES_DATA_FILE" in ran.err


@pytest.mark.parametrize(
    ("support", "setting"),
    [
        ({"channel": "eve@evil.example", "tool": "email"}, "DQ_EMAIL_DOMAINS=evil.example"),
        ({"channel": "eve@acme.example.evil.example", "tool": "email"}, "DQ_EMAIL_DOMAINS="),
        (
            {"channel": "https://hooks.evil.example/x", "tool": "webhook"},
            "DQ_WEBHOOK_HOSTS=hooks.evil.example",
        ),
        ({"channel": "https://127.0.0.2:{port}/x", "tool": "webhook"}, "DQ_WEBHOOK_HOSTS=127.0.0.2:"),
    ],
)
def test_a_contract_sends_nowhere_that_the_operator_does_not_know(desk, smtp, variables, support, setting):
    with Canary() as canary:
        promise(desk, {**support, "channel": support["channel"].format(port=canary.port)})
        ran = desk.dq(*WATCH, **variables)

    assert (ran.code, canary.heard, smtp.mails) == (3, [], [])
    assert setting in ran.err
    assert "[!] " in ran.out


def test_an_address_may_stand_where_the_standard_has_it(desk, smtp, variables):
    mail = {"channel": "sales-ann", "tool": "email", "url": "mailto:ana@acme.example"}
    promise(desk, {**mail, "scope": "notifications"})

    ran = desk.dq(*WATCH, **variables)

    assert (ran.code, [mail.recipients for mail in smtp.mails]) == (1, [("ana@acme.example",)])


@pytest.mark.parametrize("url", ["mailto:eve@evil.example", "mailto:ana@acme.example?cc=eve@evil.example"])
def test_an_address_of_a_url_is_held_to_the_same_rules(desk, smtp, variables, url):
    promise(desk, {"channel": "sales-ann", "tool": "email", "url": url, "scope": "notifications"})

    ran = desk.dq(*WATCH, **variables)

    assert (ran.code, smtp.mails) == (3, [])


def test_a_name_reaches_no_variable_but_its_own(desk, hooks, variables):
    """`file` and what ends in it would be the variable of a secret's file."""
    promise(desk, {"channel": "file", "tool": "teams"}, {"channel": "sales-data-file", "tool": "teams"})

    ran = desk.dq(*WATCH, **variables)

    assert (ran.code, hooks.requests) == (3, [])
    assert ran.err.count("is not a valid teams channel") == 2


@pytest.mark.parametrize(
    ("support", "says"),
    [
        ({"channel": "x", "tool": "pigeon", "scope": "notifications"}, "Write one of console, file, slack"),
        ({"channel": "x", "tool": "slak", "scope": "issues"}, "Did you mean 'slack'?"),
        ({"channel": "x", "tool": "Slack"}, "Did you mean 'slack'?"),
    ],
)
def test_a_tool_that_nobody_serves_is_told_by_the_gate_and_by_the_watcher(desk, support, says):
    promise(desk, support)

    gate = desk.dq("validate", ".")
    watched = desk.dq(*WATCH)

    assert (gate.code, watched.code) == (0, 3)
    assert "warning alert-tool-unknown" in gate.out
    assert says in gate.out
    assert says in watched.err
    assert "[!] " in watched.out


@pytest.mark.parametrize("tool", ["ticket", "googlechat", "discord", "other"])
@pytest.mark.parametrize("scope", [None, "issues"])
def test_t60_a_tool_of_the_standard_that_dq_sends_nothing_to_stops_neither_gate_nor_watcher(
    desk, tool, scope
):
    promise(desk, {"channel": "x", "tool": tool} | ({"scope": scope} if scope else {}))

    gate = desk.dq("validate", ".")
    watched = desk.dq(*WATCH)

    assert (gate.code, "alert-tool-unknown" in gate.out) == (0, scope == "issues"), gate.out
    assert (watched.code, watched.err) == (1, "")
    assert "[!] " in watched.out


@pytest.mark.parametrize(
    "support",
    [
        *ALL,
        {"channel": "x", "tool": "zoom"},
        {"channel": "x", "tool": "discord", "scope": "interactive"},
        {"channel": "x"},
    ],
)
def test_the_gate_has_nothing_against_a_channel_that_is_served_or_hears_nothing(desk, support):
    promise(desk, support)

    found = desk.dq("validate", ".", "--format", "json").json["findings"]

    assert [one["rule"] for one in found if one["rule"].startswith("alert")] == []


def test_a_test_goes_through_every_route_and_opens_no_incident(desk, hooks, smtp, slack, variables):
    promise(desk, *ALL)

    ran = desk.dq("test-alert", "orders.odcs.yaml", **variables)

    assert ran.code == 0, ran.all
    assert ran.out.count(": delivered (") == len(ALL)
    assert "Test alert from dq" in slack.posts[0]["text"]
    assert "RESOLVED" in slack.roots[0]["text"]
    assert [post.body["event_action"] for post in hooks.posts["pagerduty"]] == ["trigger", "resolve"]
    assert "Test alert from dq" in smtp.mails[0].text()
    assert not (desk.folder / ".dq").exists()
    assert not any(secret in ran.all for secret in SECRETS)


@pytest.mark.parametrize(
    ("fault", "code", "says"),
    [
        ({"kind": "status", "status": 404}, 4, "rejected: HTTP 404"),
        ({"kind": "status", "status": 429}, 4, "not sent: HTTP 429"),
        ({"kind": "drop", "accept": True}, 4, "unknown: no answer"),
    ],
)
def test_a_test_says_what_did_not_arrive_and_why(desk, hooks, variables, fault, code, says):
    hooks.fault("teams", **fault)

    ran = desk.dq("test-alert", "--channel", "teams:sales-data", **variables)

    assert ran.code == code
    assert says in ran.out


def test_a_test_names_what_is_refused_and_goes_on(desk, hooks, variables):
    promise(desk, {"channel": "eve@evil.example", "tool": "email"}, *ALL[2:3])

    ran = desk.dq("test-alert", "orders.odcs.yaml", "--format", "json", **variables)

    assert ran.code == 4
    assert [one["arrived"] for one in ran.json] == [False, True]
    assert "DQ_EMAIL_DOMAINS=evil.example" in ran.json[0]["hint"]


@pytest.mark.parametrize(
    "arguments",
    [(), ("orders.odcs.yaml", "--channel", "console"), ("--channel", "slak:#x")],
    ids=["nothing", "both", "no channel"],
)
def test_a_test_of_nothing_is_a_mistake(desk, arguments):
    promise(desk, *ALL)

    assert desk.dq("test-alert", *arguments).code == 2


def looks(ran):
    return {one["name"]: one for one in ran.json}


def test_the_doctor_asks_and_sends_nothing(desk, hooks, smtp, slack, variables):
    ran = desk.dq("doctor", "--format", "json", **variables)

    seen = looks(ran)
    assert {name: seen[name]["ok"] for name in ("slack", "email", "teams", "webhook", "pagerduty")} == {
        "slack": True,
        "email": True,
        "teams": None,
        "webhook": None,
        "pagerduty": None,
    }
    assert "not tried" in seen["teams"]["detail"]
    assert (slack.posts, smtp.mails, hooks.requests) == ([], [], [])
    assert not any("unknown setting" in one["detail"] for one in ran.json)
    assert not any(secret in ran.all for secret in SECRETS)


def test_the_doctor_says_which_scope_is_missing_and_what_is_lost(desk, slack, variables):
    slack.scopes = "chat:write,channels:read,groups:read,groups:history"

    seen = looks(desk.dq("doctor", "--format", "json", **variables))["slack"]

    assert seen["ok"] is None
    assert "channels:history is missing" in seen["detail"]
    assert "Add channels:history" in seen["hint"]


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"SLACK_BOT_TOKEN": "xoxb-another"}, "slack"),
        ({"DQ_SMTP_PASSWORD": "another"}, "email"),
        ({"DQ_SMTP_PORT": "1"}, "email"),
        ({"DQ_WEBHOOK_SECRET": "short"}, "webhook"),
        ({"DQ_TEAMS_URL_SALES_DATA": f"http://acme.example/{SECRET_PATH}"}, "teams"),
        ({"DQ_PAGERDUTY_KEY_SALES_DATA": "short"}, "pagerduty"),
    ],
)
def test_the_doctor_sees_what_would_not_work(desk, variables, change, what):
    ran = desk.dq("doctor", "--format", "json", **{**variables, **change})

    assert ran.code == 3
    assert looks(ran)[what]["ok"] is False
    assert not any(secret in ran.all for secret in (*SECRETS, "xoxb-another"))


def test_the_doctor_is_content_with_channels_that_nobody_uses(desk):
    seen = looks(desk.dq("doctor", "--format", "json"))

    assert {seen[name]["ok"] for name in ("slack", "email", "teams", "webhook")} == {None}


def test_a_tick_that_has_nothing_to_send_opens_no_channel(tmp_path):
    place = Place(tmp_path)
    place.put("orders.odcs.yaml", CONTRACT.format(support=json.dumps(ALL[:1])))
    place.put("lake/marker", "")
    early = ["watch", ".", "--as-of", "2026-05-11T04:00:00Z"]
    program = f"import sys; from dq.cli.main import run; run({early}); print('slack_sdk' in sys.modules)"

    ran = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**without_settings(), "SLACK_BOT_TOKEN": TOKEN},
        capture_output=True,
        text=True,
        check=True,
    )

    assert ran.stdout.splitlines()[-1] == "False", ran.stdout + ran.stderr


def test_a_channel_that_is_not_used_any_longer_does_not_stop_later_commands(tmp_path):
    place = Place(tmp_path)
    place.put("registry/orders.odcs.yaml", contract("orders"))
    (tmp_path / "lake" / "orders").mkdir(parents=True)
    for at in (BEGIN, MISSED):
        place.dq("watch", "registry", "--as-of", at, "--channel", "file:told.jsonl")
    came = datetime(2026, 5, 11, 8, tzinfo=UTC).timestamp()
    os.utime(place.put("lake/orders/day=2026-05-10/_SUCCESS", ""), (came, came))

    for at in ("2026-05-11T08:05:00Z", "2026-05-11T08:15:00Z"):
        ran = place.dq("watch", "registry", "--as-of", at, "--channel", "console")

        assert ran.code in (1, 4), ran.all
        assert "file channels are off" in ran.err
