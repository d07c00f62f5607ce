"""Who is told: routes from contracts and settings, and the settings of channels."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from dq.alerts import channels
from dq.alerts.channel import Channel, ChannelSetting
from dq.alerts.route import AlertRoute
from dq.contracts.access.access_policy import web_address
from dq.contracts.access.alert_target import (
    FILES,
    FOR_PEOPLE,
    UNSERVED,
    domain_allowed,
    hears,
    host_allowed,
    route_terms,
    target_fault,
    target_of,
    tool_fault,
)
from dq.contracts.model import Contract, SupportChannel
from dq.contracts.shared.outcome import Finding, Severity, TextFault, UsageError
from dq.contracts.slo import NOT_IN_FORCE
from dq.operations.runtime.context import World, secret_in
from dq.operations.runtime.settings import Settings

# Where the alerts of a contract may go: what its support entries name, as far as the operator allows it.

FROM_CONTRACT = "contract"


def routes(contract: Contract, channel: str, settings: Settings) -> list[AlertRoute]:
    """Who is told of this contract's breaches: its support channels, or one `channel[:target]` for all.

    The operator names the one for all. Of a contract's own, those that are not allowed are left out:
    `refused` says so, and where none is left, the console is told.
    """
    if channel != FROM_CONTRACT:
        name, _, target = channel.partition(":")
        return [AlertRoute(name, target)]
    return [
        made
        for one in _heard(contract, channels.load())
        if isinstance(made := _route(one, settings), AlertRoute)
    ]


def platform_route(channel: str, settings: Settings) -> AlertRoute:
    """Who is told when the watcher cannot see: what the operator names, or the one channel for all.

    Raises UsageError for a channel that is none.
    """
    named = channel if channel != FROM_CONTRACT else settings.platform_channel
    name, _, target = named.partition(":")
    known = channels.load()
    if name not in known:
        mend = f"Write one of {', '.join(known)}: DQ_PLATFORM_CHANNEL=slack:#data-platform"
        raise UsageError(f"platform_channel {named!r} is no channel.", mend)
    return AlertRoute(name, target)


def refused(contracts: Iterable[Contract], channel: str, settings: Settings) -> list[Finding]:
    """The support entries of contracts in force that alerts will not go to, each with the reason."""
    if channel != FROM_CONTRACT:
        return []
    known = channels.load()
    return [
        _finding(each, one, wrong)
        for each in contracts
        if each.status not in NOT_IN_FORCE
        for one in each.support
        if one.tool not in FOR_PEOPLE
        if (wrong := tool_fault(one) or _wrong(one, known, settings)) is not None
    ]


def _wrong(one: SupportChannel, known: Collection[str], settings: Settings) -> TextFault | None:
    made = _route(one, settings) if one.tool in known and hears(one) else None
    return made if isinstance(made, TextFault) else None


def _finding(contract: Contract, one: SupportChannel, wrong: TextFault) -> Finding:
    key = "tool" if wrong.code == UNSERVED else "channel"
    at, path = one.at(key), one.path(key)
    return Finding("route-refused", Severity.ERROR, f"{wrong.message}.", wrong.mend, at, path, contract.id)


def _heard(contract: Contract, known: Collection[str]) -> list[SupportChannel]:
    return [one for one in contract.support if one.tool in known and hears(one)]


def _route(support: SupportChannel, settings: Settings) -> AlertRoute | TextFault:
    tool, target = support.tool or "", target_of(support)
    wrong = target_fault(support)
    if wrong is not None:
        return wrong
    place = f"{tool}:{target}"
    if tool != "console" and not _listed(place, settings.channels):
        said = f"alerts may not go to {place!r}, so the console is told"
        return TextFault("ROUTE_REFUSED", said, f"Allow it: DQ_CHANNELS={place!r}, or channels in dq.toml.")
    if tool in FILES:
        file = _file(target, settings.file_channels)
        if file is None:
            said = f"alerts may not be written to {target!r}, so the console is told"
            mend = "Allow a folder for it: DQ_FILE_CHANNELS=FOLDER, or file_channels in dq.toml."
            return TextFault("ROUTE_REFUSED", said, mend)
        target = str(file)
    closed = _closed_to(tool, target, settings)
    if closed:
        return TextFault("ROUTE_REFUSED", f"alerts may not go to {place!r}, so the console is told", closed)
    terms, _ = route_terms(support)
    return AlertRoute(
        tool, target, terms.severities, terms.escalate_after, terms.quiet, terms.quiet_severities
    )


def _closed_to(tool: str, target: str, settings: Settings) -> str:
    """How to allow a host or a domain that a contract names; empty where nothing has to be allowed."""
    if tool == "webhook" and "://" in target and not host_allowed(target, settings.webhook_hosts):
        address = web_address(target)
        if address is None:
            return "Write an https:// URL without a user, a backslash or an odd host."
        return f"Allow its host: DQ_WEBHOOK_HOSTS={address.authority}, or webhook_hosts in dq.toml."
    if tool == "email" and not domain_allowed(target, settings.email_domains):
        domain = target.rpartition("@")[2]
        return f"Allow its domain: DQ_EMAIL_DOMAINS={domain}, or email_domains in dq.toml."
    return ""


def _listed(place: str, patterns: Iterable[str] | None) -> bool:
    # Slack takes a channel with and without its sign.
    plain = place.replace(":#", ":", 1)
    return patterns is None or any(
        fnmatchcase(plain, one.replace(":#", ":", 1) if ":" in one else f"{one}:*") for one in patterns
    )


def _file(target: str, folder: str) -> Path | None:
    """The file in the operator's folder; None where there is no folder, or the target leads out of it."""
    if not folder or not target.isprintable():
        return None
    root = Path(os.path.realpath(folder))
    file = Path(os.path.realpath(root / target))
    return file if root in file.parents else None


# What the shelf of channels takes from its user: variables, files that variables name, and dq.toml.

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
