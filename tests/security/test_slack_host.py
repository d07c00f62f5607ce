"""Slack's token goes to one host: canaries listen on the loopback, and must hear nothing."""

from __future__ import annotations

import pytest
from fakes.breaches import DUE, breach
from fakes.canary import Canary
from fakes.slack import TOKEN, FakeSlack

from dq.alerts.channel import FailureScope, PermanentFailure, Sent
from dq.alerts.channels import load
from dq.alerts.incident import step
from dq.alerts.message import render
from dq.contracts.outcome import UsageError

MESSAGE = render(step(None, breach(1), DUE).incident, "create")


def opened(address: str):
    return load()["slack"].open({"token": TOKEN, "base_url": address, "timeout_seconds": "2"}, print).sender


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_the_token_follows_no_redirect(status):
    with Canary() as evil:
        head = f"HTTP/1.1 {status} Moved\r\nLocation: http://127.0.0.1:{evil.port}/api/chat.postMessage\r\n"
        with Canary(f"{head}Content-Length: 0\r\nConnection: close\r\n\r\n".encode()) as slack:
            answer = opened(f"http://127.0.0.1:{slack.port}/api/").create("#a", MESSAGE, "k")

    assert evil.heard == []
    assert len(slack.heard) == 1
    assert isinstance(answer, PermanentFailure)
    assert answer.scope is FailureScope.CHANNEL
    assert f"HTTP {status}" in answer.reason


@pytest.mark.parametrize(
    "location", ["//127.0.0.1:{port}/", "/\\\\127.0.0.1:{port}/", "ftp://127.0.0.1:{port}/"]
)
def test_no_spelling_of_a_redirect_is_followed(location):
    with Canary() as evil:
        head = f"HTTP/1.1 302 Moved\r\nLocation: {location.format(port=evil.port)}\r\n"
        with Canary(f"{head}Content-Length: 0\r\nConnection: close\r\n\r\n".encode()) as slack:
            answer = opened(f"http://127.0.0.1:{slack.port}/api/").create("#a", MESSAGE, "k")

    assert evil.heard == []
    assert not isinstance(answer, Sent)


@pytest.mark.parametrize(
    "address",
    [
        "https://127.0.0.1:1@127.0.0.1:{port}/",
        "https://slack.com@127.0.0.1:{port}/api/",
        "https://user:password@slack.com/api/",
        "https://slack.com\\@127.0.0.1:{port}/",
        "https:\\\\127.0.0.1:{port}\\api",
        "https://slack.com/api/?x=@127.0.0.1:{port}",
        "https://slack.com/api/#@127.0.0.1:{port}",
        "https://slack.com%40127.0.0.1:{port}/",
        "https://slack.com\n.127.0.0.1:{port}/",
        "https://slack.com\t/api/",
        " https://slack.com/api/",
        "https://slack.com:443:{port}/",
        "https://sl\u0430ck.com/api/",
        "https://slack\u3002com/api/",
        "https:///api/",
        "https:127.0.0.1:{port}",
        "//127.0.0.1:{port}/api/",
        "HTTP://slack.com/api/",
        "http://slack.com/api/",
        "http://localhost.evil:{port}/",
        "http://127.0.0.1.evil:{port}/",
        "http://[::1].evil:{port}/",
        "http://0.0.0.0:{port}/",
        "ftp://127.0.0.1:{port}/",
        "file:///etc/passwd",
    ],
)
def test_an_address_that_can_be_read_in_two_ways_is_refused(address):
    with Canary() as evil, pytest.raises(UsageError) as caught:
        opened(address.format(port=evil.port)).create("#a", MESSAGE, "k")

    assert evil.heard == []
    assert "DQ_SLACK_URL" in caught.value.hint
    assert "password" not in str(caught.value)


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY"])
def test_no_proxy_hears_what_is_said_on_the_loopback(monkeypatch, variable):
    with Canary() as proxy, FakeSlack() as slack:
        monkeypatch.setenv(variable, f"http://127.0.0.1:{proxy.port}")

        answer = opened(slack.url).create("#orders-alerts", MESSAGE, "k")

    assert proxy.heard == []
    assert isinstance(answer, Sent)


def test_a_proxy_of_the_operator_hears_no_token(monkeypatch):
    refusal = b"HTTP/1.1 302 Moved\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"
    with Canary(refusal) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.port}")

        answer = opened("https://slack.invalid/api/").create("#a", MESSAGE, "k")

    assert [said.split(b"\r\n")[0] for said in proxy.heard] == [b"CONNECT slack.invalid:443 HTTP/1.0"] or [
        said.split(b" ")[:2] for said in proxy.heard
    ] == [[b"CONNECT", b"slack.invalid:443"]]
    assert TOKEN.encode() not in b"".join(proxy.heard)
    assert not isinstance(answer, Sent)
