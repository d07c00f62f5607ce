"""Alerts by email: threads, refusals of a server, and what is never sent in the clear."""

from __future__ import annotations

import subprocess
import time
from dataclasses import replace

import pytest
from fakes.breaches import DUE, breach, recovery
from fakes.smtp import PASSWORD, USER, FakeSmtp

from dq.alerts.channel import FailureScope, PermanentFailure, RetryableFailure, Sent, UnconfirmedSend
from dq.alerts.channels import load
from dq.alerts.incident import step
from dq.alerts.message import render
from dq.contracts.outcome import UsageError

EMAIL = load()["email"]
OPENED = step(None, breach(1), DUE).incident
CREATED = render(OPENED, "create")
RESOLVED = render(step(OPENED, recovery(1), DUE).incident, "reply:resolved")


@pytest.fixture
def sender(places):
    return EMAIL.open(places["email"].settings, print).sender


def test_a_mail_says_that_no_person_wrote_it_and_who_did(sender, smtp):
    sender.create("ana@acme.example", CREATED, "key-1")

    (mail,) = smtp.mails
    assert mail.sender == "dq@acme.example"
    assert mail.message["Auto-Submitted"] == "auto-generated"
    assert mail.message["Message-ID"] == "<key-1@acme.example>"
    assert [part.get_content_type() for part in mail.message.iter_parts()] == ["text/plain", "text/html"]


def test_a_thread_keeps_its_subject_though_the_state_changes(sender, smtp):
    root = sender.create("ana@acme.example", CREATED, "key-1").receipt
    digest = sender.create("ana@acme.example", CREATED, "key-2", parent=root).receipt
    sender.reply(digest, RESOLVED, "key-3")

    first, below, last = (mail.message for mail in smtp.mails)
    assert [first["Subject"], below["Subject"], last["Subject"]] == [
        "ERROR: Orders were not delivered by 08:00",
        "Re: ERROR: Orders were not delivered by 08:00",
        "Re: ERROR: Orders were not delivered by 08:00",
    ]
    assert below["References"] == last["References"] == "<key-1@acme.example>"
    assert smtp.mails[-1].text().startswith("RESOLVED: Orders were not delivered by 08:00")


@pytest.mark.parametrize(
    ("verb", "code", "kind", "scope"),
    [
        ("AUTH", 535, PermanentFailure, FailureScope.CHANNEL),
        ("AUTH", 454, RetryableFailure, FailureScope.CHANNEL),
        ("MAIL", 550, PermanentFailure, FailureScope.CHANNEL),
        ("MAIL", 421, RetryableFailure, FailureScope.CHANNEL),
        ("RCPT", 550, PermanentFailure, FailureScope.ROUTE),
        ("RCPT", 450, RetryableFailure, FailureScope.ROUTE),
        ("RCPT", 421, RetryableFailure, FailureScope.CHANNEL),
        ("DATA", 554, PermanentFailure, FailureScope.MESSAGE),
        ("DATA", 452, RetryableFailure, FailureScope.MESSAGE),
        ("BODY", 554, PermanentFailure, FailureScope.MESSAGE),
        ("BODY", 452, RetryableFailure, FailureScope.MESSAGE),
    ],
)
def test_each_refusal_of_a_server_means_what_it_says(sender, smtp, verb, code, kind, scope):
    smtp.fault(verb, code=code)

    answer = sender.create("ana@acme.example", CREATED, "key-1")

    assert type(answer) is kind
    assert answer.scope == scope
    assert smtp.mails == []


@pytest.mark.parametrize("verb", ["CONNECT", "EHLO", "AUTH", "MAIL", "RCPT"])
def test_a_server_that_goes_away_before_the_mail_has_none(sender, smtp, verb):
    smtp.fault(verb, drop=True)

    answers = [sender.create("ana@acme.example", CREATED, "key-1") for _ in range(2)]

    assert [type(answer) for answer in answers] == [RetryableFailure, Sent]


@pytest.mark.parametrize(("verb", "code"), [("CONNECT", 220), ("EHLO", 250), ("MAIL", 250), ("RCPT", 250)])
def test_a_server_that_goes_on_for_ever_holds_nobody_up(sender, smtp, verb, code):
    smtp.fault(verb, code=code, drip=True)
    began = time.monotonic()

    answer = replace(sender, limit_seconds=0.5).create("ana@acme.example", CREATED, "key-1")

    assert (type(answer), smtp.mails) == (RetryableFailure, [])
    # The server's words never end.
    assert time.monotonic() - began < 300


def test_a_server_that_goes_away_after_the_mail_may_have_it(sender, smtp):
    smtp.fault("BODY", drop=True, accept=True)

    assert isinstance(sender.create("ana@acme.example", CREATED, "key-1"), UnconfirmedSend)
    assert len(smtp.mails) == 1


def test_no_mail_and_no_password_is_sent_in_the_clear(places):
    # The loopback as everybody else sees it: only 127.0.0.1 needs no TLS.
    with FakeSmtp("127.0.0.2") as far:
        settings = {**places["email"].settings, "host": "127.0.0.2", "port": str(far.port)}
        answer = EMAIL.open(settings, print).sender.create("ana@acme.example", CREATED, "key-1")

    assert isinstance(answer, PermanentFailure)
    assert "offers no STARTTLS" in answer.reason
    assert (far.commands, far.mails) == (["EHLO"], [])


def certified(folder, name):
    """A certificate for a name, signed by itself, with its key."""
    key, there = folder / "key.pem", folder / "cert.pem"
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-subj",
        f"/CN={name}",
    ]
    command += ["-addext", f"subjectAltName=DNS:{name}", "-keyout", str(key), "-out", str(there)]
    subprocess.run(command, check=True, capture_output=True)
    there.write_bytes(there.read_bytes() + key.read_bytes())
    return there


@pytest.mark.parametrize(
    ("name", "trusted", "arrives"),
    [("localhost", True, True), ("localhost", False, False), ("mail.acme.example", True, False)],
    ids=["the right one", "one that nobody signed", "another host's"],
)
def test_a_mail_goes_only_to_the_server_that_proves_its_name(
    places, tmp_path, monkeypatch, name, trusted, arrives
):
    certificate = certified(tmp_path, name)
    if trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))

    with FakeSmtp("localhost", certificate=certificate) as server:
        settings = {**places["email"].settings, "host": "localhost", "port": str(server.port)}
        answer = EMAIL.open(settings, print).sender.create("ana@acme.example", CREATED, "key-1")

    assert type(answer) is (Sent if arrives else RetryableFailure)
    assert (len(server.mails), server.logins) == ((1, [USER]) if arrives else (0, []))


@pytest.mark.parametrize(
    "target",
    [
        "ana@acme.example\r\nBcc: eve@evil.example",
        "ana@acme.example, eve@evil.example",
        "Ana <ana@acme.example>",
        "ana@acme.example>\r\nRCPT TO:<eve@evil.example",
        "ana",
        "@acme.example",
        "ana@acme",
        "",
        "a" * 65 + "@acme.example",
        '"ana eve"@acme.example',
    ],
)
def test_a_target_is_one_address_and_nothing_besides(sender, smtp, target):
    answer = sender.create(target, CREATED, "key-1")

    assert isinstance(answer, PermanentFailure)
    assert (answer.scope, smtp.commands) == (FailureScope.ROUTE, [])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"host": ""}, "need a server and a sender"),
        ({"from": ""}, "need a server and a sender"),
        ({"from": "dq"}, "Invalid sender address"),
        ({"port": "smtp"}, "Invalid SMTP port"),
        ({"port": "0"}, "Invalid SMTP port"),
        ({"password": ""}, "needs a user and a password"),
        ({"user": ""}, "needs a user and a password"),
    ],
)
def test_settings_that_cannot_work_say_which(places, change, says):
    with pytest.raises(UsageError, match=says) as caught:
        EMAIL.open({**places["email"].settings, **change}, print)

    assert PASSWORD not in str(caught.value)


def test_a_look_logs_in_and_sends_nothing(places, smtp):
    (seen,) = EMAIL.inspect(places["email"].settings)

    assert (seen.is_healthy, smtp.logins, smtp.mails) == (True, [USER], [])
    assert "MAIL" not in smtp.commands


def test_a_look_sees_that_the_password_is_wrong(places):
    (seen,) = EMAIL.inspect({**places["email"].settings, "password": "not-this-one"})

    assert (seen.is_healthy, "535" in seen.detail) == (False, True)
    assert "not-this-one" not in str(seen)
