"""What lies outside of this machine: settings, channels, the lake, a catalog. Nothing is sent or changed."""

from __future__ import annotations

import os
from collections.abc import Iterator

from dq.cli.inspecting.look import Look
from dq.cli.world.catalogs import opened
from dq.cli.world.environment import World
from dq.cli.world.settings import TABLE, unknown
from dq.contracts.access.access_policy import is_remote
from dq.contracts.access.discovery import find
from dq.contracts.shared.outcome import DqError
from dq.contracts.shared.wording import counted
from dq.lake.storage import Storages
from dq.store.engine import open_as_it_is

# A table that nobody has: a catalog that says so has answered.
_NOBODYS = ("dq_doctor", "dq_doctor")


def settings(world: World) -> Iterator[Look]:
    """What the operator has set, and variables that look like a setting and are none."""
    from dq.cli.alerting.channel_settings import variables

    given = world.settings
    if given.file is not None:
        yield Look("settings", True, str(given.file))
    for row in TABLE:
        value = getattr(given, row.name)
        # A URL may hold a password; the store's is shown elsewhere, without it.
        if value != row.default and not row.name.endswith("_url"):
            said = ", ".join(value) if isinstance(value, tuple) else str(value)
            yield Look("setting", True, f"{row.name}: {said or 'none'}")
    ours = variables(world.environment)
    for name, near in unknown(world.environment, given):
        if name in ours:
            continue
        mend = f"Did you mean {near}?" if near else "docs/reference/settings.md lists them."
        yield Look("setting", None, f"{name} is no setting", mend)


def channels(world: World) -> Iterator[Look]:
    """Each channel for alerts: whether it would take a message."""
    from dq.alerts import channels as shelf
    from dq.cli.alerting.channel_settings import settings_of

    for name, channel in shelf.load().items():
        if channel.inspect is None:
            continue
        try:
            given = {key: value for key, value in settings_of(world, channel).items() if value}
            if not given:
                first = channel.settings[0].of("sales-data")
                yield Look(name, None, "is not set up", f"For {channel.summary[:-1]}: {first}.")
                continue
            for seen in channel.inspect(given):
                yield Look(name, seen.good, seen.seen, seen.mend)
        except DqError as error:
            yield Look(name, False, error.message, error.mend)


def lake(world: World) -> Iterator[Look]:
    """Each place of the setting `lake_roots`: whether it can be listed. What a registry says asks nobody."""
    for root in world.settings.lake_roots or ():
        try:
            # A folder that is not there is as empty to the storages as one that is.
            if not is_remote(root):
                os.scandir(world.folder / root.removeprefix("file://")).close()
            empty = Storages(seconds=world.settings.storage_seconds).of(root).nothing(root)
        except DqError as error:
            yield Look("lake", False, error.message, error.mend)
        except OSError as error:
            yield Look("lake", False, f"{root}: {error.strerror}", "Check the path, and who may read it.")
        else:
            mend = "Check its name: a storage lists a place that is not there as one without files."
            seen = f"{root} can be listed{', and holds nothing' if empty else ''}"
            yield Look("lake", None if empty else True, seen, mend if empty else "")


def catalog(world: World, name: str, role: str, account: str) -> Iterator[Look]:
    """Whether the catalog answers a question about a table that nobody has."""
    store = open_as_it_is(world.store_url()) if name == "local" else None
    opened(world, store, name, role, account).read(*_NOBODYS)
    yield Look("catalog", True, f"{name} answers")


def registry(world: World) -> Iterator[Look]:
    """How many contracts there are; none of them is read."""
    try:
        contracts = len(find([world.folder]))
    except DqError:
        yield Look("registry", None, "no contract below this folder", "dq init writes the first one.")
        return
    yield Look("registry", True, f"{counted(contracts, 'contract')} below this folder")
