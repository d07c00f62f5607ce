"""What the shelf of channels takes from its user: variables, files that variables name, and dq.toml."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from dq.alerts import channels
from dq.alerts.channel import Channel, ChannelSetting
from dq.cli.world.environment import World, secret_in

_FILE = "_FILE"


def settings_of(world: World, channel: Channel) -> dict[str, str]:
    """A channel's settings by name. Raises UsageError for a file of a secret that cannot be read."""
    found = {}
    for setting in channel.settings:
        for name, variable in _variables(world, setting):
            value = _value(world, setting, variable)
            if value is not None:
                found[name] = value
    return found


def variables(names: Iterable[str]) -> set[str]:
    """Those of the names that are secrets of channels: all others of theirs are rows of the settings."""
    secrets = [one for channel in channels.load().values() for one in channel.settings if one.secret]
    plain = {one.variable for one in secrets if not one.each}
    each = tuple(one.variable for one in secrets if one.each)
    return {name for name in names if name.removesuffix(_FILE) in plain or name.startswith(each)}


def _variables(world: World, setting: ChannelSetting) -> Iterator[tuple[str, str]]:
    """The name and the variable of a setting; of one that each target has, all that are there."""
    if not setting.each:
        yield setting.name, setting.variable
        return
    ends = {
        name.removeprefix(setting.variable).removesuffix(_FILE)
        for name in world.environment
        if name.startswith(setting.variable)
    }
    for end in sorted(ends):
        # FILE alone is the end of another setting's file.
        if end and end != _FILE.removeprefix("_"):
            yield f"{setting.name}:{end.lower().replace('_', '-')}", setting.variable + end


def _value(world: World, setting: ChannelSetting, variable: str) -> str | None:
    """From the variable; a secret may stand in a file that `<VARIABLE>_FILE` names."""
    file = world.environment.get(variable + _FILE) if setting.secret else None
    if file is None:
        settings = world.environment if setting.secret else world.settings.variables()
        return settings.get(variable)
    return secret_in(Path(file), variable + _FILE)
