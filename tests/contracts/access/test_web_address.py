"""An address of the web has one host, whoever reads it."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from dq.contracts.access.access_policy import WEB, web_address
from dq.contracts.access.alert_target import host_allowed

ONE_HOST = [
    ("https://example.com", "example.com"),
    ("https://Example.com:443/a?b=c@d#e", "example.com"),
    ("https://example.com:8443", "example.com:8443"),
    ("http://my_service:8080/api/", "my_service:8080"),
    ("http://127.0.0.1:9/", "127.0.0.1:9"),
    ("https://[::1]/x", "[::1]"),
    ("https://example.com/Über/uns", "example.com"),
    ("https://xn--bcher-kva.example", "xn--bcher-kva.example"),
]
SEVERAL = [
    "https://evil.com\\.slack.com/",
    "https://evil.com\\@good.com/",
    "https://user:pw@evil.com\\@good.com/",
    "https://user@example.com/",
    "https://.slack.com/",
    "https://slack..com/",
    "https://slack.com./",
    "https://-slack.com/",
    "https://slack.com-/",
    "https://",
    "https:///example.com/",
    "https:example.com",
    "https:/example.com",
    "//example.com/",
    "HTTPS://example.com/",
    "ftp://example.com/",
    "javascript:alert(1)",
    "https://example.com:0/",
    "https://example.com:65536/",
    "https://example.com:/",
    "https://example.com:80:443/",
    "https://example.com\\x",
    "https://example.com/\\x",
    "https://example.com /",
    " https://example.com/",
    "https://exa\tmple.com/",
    "https://exa\nmple.com/",
    "https://example.com/\u202e",
    "https://example。com/",
    "https://ex\u0430mple.com/",
    "https://bücher.example/",
    "https://example.com%2f@evil.com/",
    "https://%65vil.com/",
    "https://2130706433/",
    "https://0x7f.0.0.1/",
    "https://127.1/",
    "https://0177.0.0.1/",
    "https://1.2.3.4.5/",
    "https://[::1/",
    "https://[::1].evil.com/",
    "https://[v1.x]/",
    "https://[fe80::1%25eth0]/",
    'https://example.com/"onclick=x',
    "https://example.com/<x>",
    f"https://{'a' * 64}.com/",
    f"https://{'a.' * 127}com/",
]


@pytest.mark.parametrize(("text", "authority"), ONE_HOST)
def test_an_address_with_one_host_is_taken(text: str, authority: str) -> None:
    address = web_address(text, WEB)

    assert address is not None
    assert address.authority == authority
    assert address.host == urlsplit(text).hostname


@pytest.mark.parametrize("text", SEVERAL)
def test_t21_what_is_read_in_several_ways_is_no_address(text: str) -> None:
    assert web_address(text, WEB) is None
    assert not host_allowed(text, ["*"])


def test_another_scheme_is_taken_only_where_it_is_asked_for() -> None:
    assert web_address("http://example.com") is None
    assert web_address("wss://wss-primary.slack.com/link/?ticket=a%3D&app_id=1", ("wss",)) is not None
