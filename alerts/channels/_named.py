"""Targets that contracts name, and whose address or key, a secret, only the operator knows."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dq.alerts.channel import Blockage, ChannelSetting, Inspection, Rejected, Sender
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


def inspecting(
    channel: str,
    make: Callable[[Mapping[str, str], Callable[[str], object]], Sender],
    setting: ChannelSetting,
    why_not: Callable[[str], str] = unsafe,
) -> Callable[[Mapping[str, str]], list[Inspection]]:
    """Tells whether the settings are whole: a look beyond that would send a message.

    `why_not` says what is wrong with a target's value, without showing it.
    """

    def inspect(settings: Mapping[str, str]) -> list[Inspection]:
        make(settings, str)
        return [
            Inspection(False, f"{target}: {wrong}", f"Mend {setting.of(target)}.")
            if (wrong := why_not(value))
            else Inspection(
                None, f"{target}: set, not tried", f"dq test-alert --channel {channel}:{target} sends one."
            )
            for target, value in sorted(values(setting, settings).items())
        ]

    return inspect
