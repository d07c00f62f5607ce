"""Targets that contracts name, and whose address or key, a secret, only the operator knows."""

from __future__ import annotations

from collections.abc import Mapping

from dq.alerts.channel import Blockage, ChannelSetting, Inspection, Rejected
from dq.alerts.channels._http import unsafe


def values(setting: ChannelSetting, settings: Mapping[str, str]) -> dict[str, str]:
    """The values of a setting that has one for each target, by the target's name."""
    beginning = f"{setting.name}:"
    return {
        name.removeprefix(beginning): value.strip()
        for name, value in settings.items()
        if name.startswith(beginning) and value.strip()
    }


def address(setting: ChannelSetting, urls: Mapping[str, str], target: str) -> str | Rejected:
    """The URL of a target, or why there is none; never with the URL in the words."""
    url = urls.get(target)
    if url is None:
        return Rejected(f"nothing says where {target!r} is. Set {setting.of(target)}", Blockage.ROUTE)
    wrong = unsafe(url)
    return Rejected(f"{wrong}. Mend {setting.of(target)}", Blockage.ROUTE) if wrong else url


def inspected(channel: str, setting: ChannelSetting, urls: Mapping[str, str]) -> list[Inspection]:
    """Each named target: whether its URL could be one. A look beyond that would send a message."""
    return [
        Inspection(False, f"{target}: {wrong}", f"Mend {setting.of(target)}.")
        if (wrong := unsafe(url))
        else Inspection(
            None, f"{target}: set, not tried", f"dq test-alert --channel {channel}:{target} sends one."
        )
        for target, url in sorted(urls.items())
    ]
