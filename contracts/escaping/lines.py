"""Text in lines that services read: Slack's mrkdwn, workflow commands of GitHub, samples of Prometheus."""

from __future__ import annotations

from dq.contracts.shared.printable import block, inert

_SLACK = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
# "%" comes first, so that it does not escape what the others wrote.
_DATA = (("%", "%25"), ("\r", "%0D"), ("\n", "%0A"))
_PROPERTY = (*_DATA, (":", "%3A"), (",", "%2C"))


def slack(text: str, width: int) -> str:
    """The text so that Slack sees no link, mention or entity in it, cut to `width` characters on the wire."""
    kept: list[str] = []
    for character in text:
        wire = _SLACK.get(character, character)
        width -= len(wire)
        if width < 1:
            return "".join(kept) + "…"
        kept.append(wire)
    return "".join(kept)


def github_data(text: str) -> str:
    """The message of a workflow command."""
    return _github(text, _DATA)


def github_property(text: str) -> str:
    """The value of a property of a workflow command."""
    return _github(text, _PROPERTY)


def _github(text: str, table: tuple[tuple[str, str], ...]) -> str:
    for character, code in table:
        text = text.replace(character, code)
    # What is left of the characters that steer cannot be sent in any other way.
    return inert(block(text))


def prometheus_label(value: str) -> str:
    """The value of a label in Prometheus' text format, without its quotes."""
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
