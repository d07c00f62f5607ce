"""Alerts: who is told, what is added to them, recorded, sent, chosen, and pressed."""

from __future__ import annotations

import os
import random
import re
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextvars import copy_context
from dataclasses import replace
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NoReturn

from sqlalchemy import Connection, delete, insert, select

from dq.alerts import channels, suppression
from dq.alerts import drain as outstanding
from dq.alerts.channel import Channel, ChannelSetting, Open, Press
from dq.alerts.drain import Drained, Outstanding, drain
from dq.alerts.incident import Facts
from dq.alerts.message import COMMAND, MAX_VALUE, MENTION, OWNER, PRODUCT, RUNBOOK, SINCE
from dq.alerts.record import PAST, press, record, record_past, tell_mornings
from dq.alerts.route import CONSOLE, AlertRoute, matching
from dq.alerts.suppression import Product
from dq.alerts.tables import lineage
from dq.contracts.access import alert_target
from dq.contracts.access.access_policy import is_uri, web_address
from dq.contracts.access.files import FileRefused, named, read
from dq.contracts.escaping import shell, shell_word
from dq.contracts.lineage import DataObject, consumers, declares, inputs
from dq.contracts.model import Contract, CustomProperty, SupportChannel
from dq.contracts.outcome import (
    Breach,
    DqError,
    Finding,
    IncidentKey,
    Recovery,
    Severity,
    TextFault,
    Unreadable,
    UsageError,
    first_of,
)
from dq.contracts.slo import NOT_IN_FORCE
from dq.contracts.yaml.parse import parse
from dq.dataquality import results
from dq.dataquality.delivery import cycle_store
from dq.dataquality.delivery.cycle import PastMiss
from dq.dataquality.delivery.notify import PLATFORM, misses_digest, misses_summary
from dq.operations.registry_files import Loaded, load
from dq.operations.runtime.context import World, secret_in, written_instant
from dq.operations.runtime.settings import Settings
from dq.store.engine import Store

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
        if one.tool not in alert_target.FOR_PEOPLE
        if (wrong := alert_target.tool_fault(one) or _wrong(one, known, settings)) is not None
    ]


def _wrong(one: SupportChannel, known: Collection[str], settings: Settings) -> TextFault | None:
    made = _route(one, settings) if one.tool in known and alert_target.hears(one) else None
    return made if isinstance(made, TextFault) else None


def _finding(contract: Contract, one: SupportChannel, wrong: TextFault) -> Finding:
    key = "tool" if wrong.code == alert_target.UNSERVED else "channel"
    at, path = one.at(key), one.path(key)
    return Finding("route-refused", Severity.ERROR, f"{wrong.message}.", wrong.mend, at, path, contract.id)


def _heard(contract: Contract, known: Collection[str]) -> list[SupportChannel]:
    return [one for one in contract.support if one.tool in known and alert_target.hears(one)]


def _route(support: SupportChannel, settings: Settings) -> AlertRoute | TextFault:
    tool, target = support.tool or "", alert_target.target_of(support)
    wrong = alert_target.target_fault(support)
    if wrong is not None:
        return wrong
    place = f"{tool}:{target}"
    closed = _closed_to(tool, target, settings)
    if closed:
        return TextFault("ROUTE_REFUSED", f"alerts may not go to {place!r}, so the console is told", closed)
    if tool in alert_target.FILES:
        file = _file(target, settings.file_channels)
        if file is None:
            said = f"alerts may not be written to {target!r}, so the console is told"
            mend = "Allow a folder for it: DQ_FILE_CHANNELS=FOLDER, or file_channels in dq.toml."
            return TextFault("ROUTE_REFUSED", said, mend)
        target = str(file)
    terms, _ = alert_target.route_terms(support)
    return AlertRoute(
        tool, target, terms.severities, terms.escalate_after, terms.quiet, terms.quiet_severities
    )


def _closed_to(tool: str, target: str, settings: Settings) -> str:
    """How to allow what a contract names; empty where nothing has to be allowed."""
    place = f"{tool}:{target}"
    if tool != "console" and not _listed(place, settings.channels):
        return f"Allow it: DQ_CHANNELS={place!r}, or channels in dq.toml."
    if (
        tool == "webhook"
        and "://" in target
        and not alert_target.host_allowed(target, settings.webhook_hosts)
    ):
        address = web_address(target)
        if address is None:
            return "Write an https:// URL without a user, a backslash or an odd host."
        return f"Allow its host: DQ_WEBHOOK_HOSTS={address.authority}, or webhook_hosts in dq.toml."
    if tool == "email" and not alert_target.domain_allowed(target, settings.email_domains):
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
        settings = world.environment if setting.secret else world.settings.variables
        return settings.get(variable)
    return secret_in(Path(file), variable + _FILE)


_LOOKED_AT, _MOST = 30, 0.9


def keep(store: Store, loaded: Loaded, paths: Sequence[Path]) -> None:
    """Keeps what the contracts declare, where one of them is new or says something else.

    A name is what all contracts together make of it, so all of them are read then.
    """
    with store.read() as tx:
        known = {row.contract: row for row in tx.execute(select(lineage))}
    gone = [key for key in loaded.gone if key in known]
    changed = [one for one in loaded.contracts if one.key not in known or known[one.key].digest != one.digest]
    if not changed and not gone:
        return
    concerned = any(row.inputs is not None for row in known.values()) or any(map(declares, loaded.contracts))
    everyone = _all(loaded, paths) if concerned and loaded.resting else loaded.contracts
    rows = _rows(everyone)
    with store.write() as tx:
        for key in {*gone, *(str(row["contract"]) for row in rows)}:
            tx.execute(delete(lineage).where(lineage.c.contract == key))
        if rows:
            tx.execute(insert(lineage), rows)


def _all(loaded: Loaded, paths: Sequence[Path]) -> Sequence[Contract]:
    try:
        return load(paths, lambda _: None).contracts
    except Unreadable:
        # One of the paths holds none any more; what rests below the others is read at its next tick.
        return loaded.contracts


def settler(world: World) -> Callable[[Connection], None]:
    """What the watcher calls when all of a tick is told."""

    def settle(tx: Connection) -> None:
        suppression.settle(tx, _made_from(tx), lambda key: _usual(tx, key), world.now())

    return settle


def with_own_cause(tx: Connection, misses: Sequence[PastMiss], now: datetime) -> list[PastMiss]:
    """Of what broke and ended untold, what did not wait for another of them meanwhile.

    Who waited for a cause that was told of would not have been told either.
    """
    spans: dict[Product, list[tuple[datetime, datetime]]] = defaultdict(list)
    for one in misses:
        spans[one.kept.cycle.contract, one.kept.cycle.object].append(_span(one, now))
    broken = {product: (min(those)[0], "/".join(product)) for product, those in spans.items()}
    cause_of = suppression.causes(broken, _made_from(tx))

    def waited(one: PastMiss) -> bool:
        begin, end = _span(one, now)
        cause = cause_of.get((one.kept.cycle.contract, one.kept.cycle.object))
        return (
            any(since <= end and begin <= until for since, until in spans.get(cause, ())) if cause else False
        )

    return [one for one in misses if not waited(one)]


def _span(one: PastMiss, now: datetime) -> tuple[datetime, datetime]:
    """From when on it was missing, and until when."""
    cycle, lateness = one.kept.cycle, one.verdict.lateness
    return cycle.breach_at, now if lateness is None else cycle.due_at + lateness


def _made_from(tx: Connection) -> dict[Product, set[Product]]:
    found: dict[Product, set[Product]] = {}
    for row in tx.execute(select(lineage).where(lineage.c.inputs.is_not(None))):
        for name, those in row.inputs:
            found[row.contract, name] = {(contract, other) for contract, other in those}
    return found


def _rows(contracts: Iterable[Contract]) -> list[dict[str, object]]:
    known = {one.key: one for one in contracts}
    found: dict[str, list[object]] = defaultdict(list)
    for (key, name), those in inputs(known.values()).items():
        found[key].append([name, [list(one) for one in sorted(those)]])
    return [
        {"contract": key, "digest": one.digest, "inputs": found[key] if declares(one) else None}
        for key, one in known.items()
    ]


def _usual(tx: Connection, key: IncidentKey) -> timedelta | None:
    """How long after it was due nine of ten of the last deliveries had come."""
    past = cycle_store.all_cycles(tx, (key.contract, key.object, key.group))
    came = sorted(one.delivered_at - one.cycle.due_at for one in past[-_LOOKED_AT:] if one.delivered_at)
    return came[min(int(len(came) * _MOST), len(came) - 1)] if came else None


# Whom a broken product blocks, also where the contracts of those were not read in this tick.

_NAMED = 4
# So many contracts are read for it in one run, which tells of what is broken and must not wait for long.
_MOST_READ = 200


class Blocking:
    """The contracts of a run, and the files of those that were not read; they are read where it matters."""

    def __init__(self, contracts: Iterable[Contract], resting: Mapping[str, str]) -> None:
        self._known = list(contracts)
        self._files = list(resting)
        self._texts: dict[str, bytes] | None = None
        self._declared: dict[DataObject, frozenset[DataObject]] | None = None
        self._asked: set[str] = set()
        self._left = _MOST_READ

    def line(self, contract: Contract, one: str) -> str:
        """Who is made from an object, the nearest first; empty for nobody that is known."""
        me = (contract.key, one)
        names = _names(contract)
        while self._read(names):
            # Who is made from those that were just read may rest as well.
            names = [name for known in self._known for name in _names(known) if self._uses(known, me)]
        found = consumers(self._inputs(), me)
        own = {other.key: other for other in self._known}
        by_key: dict[str, list[str]] = {}
        for key, user in found:
            by_key.setdefault(key, []).append(user)
        said = [
            f"{key}/{users[0]}" if len(own[key].objects) > 1 and len(users) == 1 else key
            for key, users in by_key.items()
        ]
        return first_of(said, _NAMED)

    def _inputs(self) -> Mapping[DataObject, frozenset[DataObject]]:
        if self._declared is None:
            self._declared = inputs(self._known)
        return self._declared

    def _uses(self, known: Contract, me: DataObject) -> bool:
        return any(key == known.key for key, _ in consumers(self._inputs(), me))

    def _read(self, names: Iterable[str]) -> bool:
        """Reads the files that rest and hold one of the names; whether any of them was read."""
        new = {name for name in names if name not in self._asked}
        self._asked |= new
        if not new or not self._files or self._left < 1:
            return False
        if self._texts is None:
            self._texts = {file: text for file in self._files if (text := _text(file))}
        wanted = re.compile(b"|".join(re.escape(name.encode()) for name in sorted(new)))
        candidates = [file for file, text in self._texts.items() if wanted.search(text)][: self._left]
        self._left -= len(candidates)
        read = [parse(self._texts.pop(file), file).contract for file in candidates]
        self._known += [contract for contract in read if contract is not None]
        self._declared = None
        return bool(candidates)


def _names(contract: Contract) -> list[str]:
    """By what others may name a contract or one of its objects."""
    own = [contract.id, Path(contract.file).name]
    return own + [name for one in contract.objects for name in (one.name, one.id, one.physical_name) if name]


def _text(file: str) -> bytes:
    try:
        return read(named(Path(file)))
    except FileRefused:
        return b""


# What helps whoever is woken: what it is, whom it blocks, who owns it, and where to look closer.

Help = Callable[[Contract, Breach], Breach]

_LOOKED_IN = "looked in"
# Slack's ids of people and of user groups.
_SLACK_ID = re.compile("[UWS][A-Z0-9]{5,20}")
_MOST_MENTIONS = 3


def helper(
    world: World,
    contracts: Iterable[Contract],
    server: str | None = None,
    resting: Mapping[str, str] | None = None,
) -> Help:
    """What adds the lines of help to a breach of one of the contracts.

    `server` is what the command was given as `--server`: whoever looks closer has to look there too.
    `resting` are the files of contracts that were not read, by file: they may be made from one of these.
    """
    blocking = Blocking(contracts, resting or {})

    def helped(contract: Contract, event: Breach) -> Breach:
        said = tuple((label, _place(world, label, value)) for label, value in event.facts)
        # A budget that is used up keeps nobody from working.
        waits = SINCE in dict(event.facts) or event.key.group == results.GROUP
        blocks = blocking.line(contract, event.key.object) if waits else ""
        more = (("blocks", blocks), *_people(contract), *_mentions(world, contract, event.severity))
        command = (COMMAND, _command(world, contract, event, server))
        facts = ((PRODUCT, _product(contract)), *said, *more, command)
        return replace(event, facts=tuple((label, value) for label, value in facts if value))

    return helped


def of_platform(world: World, event: Breach | Recovery) -> Breach | Recovery:
    """What the platform team is told, with paths as seen from the folder of the command, and a command."""
    facts = tuple((label, _nearer(world, value)) for label, value in event.facts)
    title = _nearer(world, event.title)
    if isinstance(event, Recovery):
        return replace(event, title=title, facts=facts)
    roots = [_undashed(_relative(world, root)) for root in world.registries]
    return replace(event, title=title, facts=(*facts, (COMMAND, _said(world, ["status", *roots]))))


def _nearer(world: World, text: str) -> str:
    """The text without the way to the folder of the command; the folder itself is the working folder."""
    folder = re.escape(str(world.folder))
    within = re.sub(rf"(?<!\S){folder}/(?=\S)", "", text)
    return re.sub(rf"(?<!\S){folder}(?=\s|$)", "the watcher's folder", within)


def _product(contract: Contract) -> str:
    """The contract's name and what it is for, as far as it says so: the first line of each."""
    purpose = (contract.description.purpose if contract.description else None) or ""
    said = [text.strip().splitlines()[0] for text in (contract.name or "", purpose) if text.strip()]
    return ": ".join(said)


def _people(contract: Contract) -> Facts:
    owner = next((one.username for one in contract.members() if (one.role or "").lower() == "owner"), "")
    runbook = next((one.url for one in contract.authoritative_definitions if one.type == "runbook"), "")
    if len(runbook) > MAX_VALUE:
        runbook = f"see the contract {contract.id}: the address is too long to be shown"
    return (OWNER, owner), (RUNBOOK, runbook)


def _mentions(world: World, contract: Contract, severity: Severity) -> Facts:
    """The ids that Slack can call, of owners and of support entries, for what is bad enough."""
    least = world.settings.mentions
    if least == "off" or severity.rank < Severity(least).rank:
        return ()
    owners = [one for one in contract.members() if (one.role or "").lower() == "owner"]
    named = [one.custom("slack") for one in (*owners, *contract.support)]
    ids = dict.fromkeys(found for one in named if (found := _slack_id(one)))
    return ((MENTION, " ".join([*ids][:_MOST_MENTIONS])),)


def _slack_id(custom: CustomProperty | None) -> str:
    value = custom.value if custom is not None else None
    return value if isinstance(value, str) and _SLACK_ID.fullmatch(value) else ""


def _place(world: World, label: str, value: str) -> str:
    """A path where data was looked for, as seen from the folder of the command."""
    if label != _LOOKED_IN or is_uri(value) or not value.startswith("/"):
        return value
    return _relative(world, Path(value))


def _command(world: World, contract: Contract, event: Breach, server: str | None) -> str:
    """The command that shows more, for a shell in the folder in which this one ran."""
    file = Path(_relative(world, Path(contract.file)))
    words = _words(contract, event, server, file)
    # Whoever is woken pastes it, and a stranger may have named the file: one may begin with a dash.
    said = _said(world, words)
    if len(said) <= MAX_VALUE:
        return said
    # Cut, it would do something else; the folder shows the same among others.
    shorter = [_said(world, ["status", _undashed(str(one))]) for one in file.parents]
    return next((one for one in shorter if len(one) <= MAX_VALUE), "dq status")


def _said(world: World, words: Sequence[str]) -> str:
    config = ["--config", _relative(world, world.settings.file)] if world.settings.file else []
    # A replay alerts of an instant: today's clock would tell another story.
    as_of = ["--as-of", written_instant(world.as_of)] if world.as_of else []
    return shell(["dq", *config, *words, *as_of])


def _words(contract: Contract, event: Breach, server: str | None, file: Path) -> Sequence[str]:
    if event.key.group != results.GROUP:
        return ["status", _undashed(str(file))]
    one = ["--object", event.key.object] if len(contract.objects) > 1 else []
    part = ["--all"] if event.subject == results.TABLE else ["--partition", event.subject]
    return ["check", _undashed(str(file)), *one, *part, *(["--server", server] if server else [])]


def _undashed(file: str) -> str:
    return f"./{file}" if file.startswith("-") else file


def _relative(world: World, path: Path) -> str:
    """The path as seen from the folder of the command; another machine's folders are nobody's business."""
    # Behind a link `..` leads elsewhere than the text says.
    if not path.is_absolute() or ".." in path.parts:
        return str(path)
    shared = os.path.commonpath([world.folder, path])
    return str(path) if shared == os.path.sep else os.path.relpath(path, world.folder)


# Alerts as commands send them: events recorded, channels opened, the outbox emptied.


def teller(
    world: World,
    contracts: Sequence[Contract],
    channel: str,
    server: str | None = None,
    resting: Mapping[str, str] | None = None,
) -> Callable[[Connection, Breach | Recovery], None]:
    """What the watcher calls inside its transaction: adds who to ask and where to look, and records it."""
    known, name = channels.load(), channel.partition(":")[0]
    # Now, and not in the night when the first alert has to go there.
    if name in known:
        known[name].open(settings_of(world, known[name]), lambda _: None)
    elif name != FROM_CONTRACT:
        choice = ", ".join((FROM_CONTRACT, *known))
        raise UsageError(f"there is no channel {channel!r}.", f"Choose one of {choice}.")
    platform = platform_route(channel, world.settings)
    help_of = helper(world, contracts, server, resting)
    by_key = {contract.key: contract for contract in contracts}

    def tell(tx: Connection, event: Breach | Recovery) -> None:
        if event.key.contract == PLATFORM:
            record(tx, of_platform(world, event), [platform], world.now())
            return
        contract = by_key.get(event.key.contract)
        if contract is None or isinstance(event, Recovery):
            # It goes to whoever heard of the breach; the contract itself may be no more.
            record(tx, event, (), world.now())
            return
        record(tx, help_of(contract, event), routes(contract, channel, world.settings), world.now())

    return tell


def teller_of_past(world: World, channel: str) -> Callable[[Connection, Sequence[PastMiss]], None]:
    """What the watcher calls for what broke and ended between two ticks: one message for each channel."""

    def tell(tx: Connection, misses: Sequence[PastMiss]) -> None:
        places: dict[tuple[str, str], list[PastMiss]] = {}
        for one in with_own_cause(tx, misses, world.now()):
            for route in matching(routes(one.slo.contract, channel, world.settings), one.slo.severity):
                # Whoever hears of what stays open for long hears nothing of what is over.
                if not route.after:
                    places.setdefault((route.channel, route.target), []).append(one)
        for (name, target), told in places.items():
            route, key = AlertRoute(name, target), IncidentKey(PAST, f"{name}:{target}", "past")
            severity = max((one.slo.severity for one in told), key=lambda one: one.rank)
            record_past(tx, key, severity, misses_summary(told), misses_digest(told), route, world.now())

    return tell


def reroute(world: World, store: Store, contracts: Iterable[Contract], channel: str) -> None:
    """Tells of what a place refused where the contract names another place by now."""
    with store.read() as tx:
        if not outstanding.refused(tx):
            return
    by_key = {contract.key: contract for contract in contracts}
    platform = platform_route(channel, world.settings)

    def places(key: IncidentKey, severity: Severity) -> list[AlertRoute] | None:
        contract = by_key.get(key.contract)
        if contract is None:
            return None
        return [*matching(routes(contract, channel, world.settings), severity), platform, CONSOLE]

    with store.write() as tx:
        outstanding.reroute(tx, places, world.now())


def send(
    world: World,
    store: Store,
    channel: str = FROM_CONTRACT,
    patience: timedelta | None = None,
) -> Drained:
    """Send what the outbox holds through every channel that is set up; the console is `world.messages`.

    What has to wait is waited for as long as `patience`, by default as the settings say. Files are written
    only where the operator names them, by a setting or as the `channel` of all alerts.
    """
    settings: dict[str, dict[str, str]] = {}
    unset: dict[str, str | DqError] = {}
    mistakes: list[UsageError] = []
    for name, one in channels.load().items():
        if (
            name in alert_target.FILES
            and not world.settings.file_channels
            and channel.partition(":")[0] != name
        ):
            unset[name] = "it is off. Allow a folder for it: DQ_FILE_CHANNELS=FOLDER."
            continue
        try:
            settings[name] = settings_of(world, one)
        except UsageError as error:
            mistakes.append(error)
            unset[name] = error
    tell_mornings(store, world.now())
    with store.read() as tx:
        idle = outstanding.is_empty(tx)
    drained = Drained() if idle else _drained(world, store, channel, patience, settings, unset)
    if mistakes:
        # A secret that cannot be read: after all others have been told.
        for text in undelivered(drained):
            world.note(text)
        raise mistakes[0]
    return drained


def _drained(
    world: World,
    store: Store,
    channel: str,
    patience: timedelta | None,
    settings: Mapping[str, Mapping[str, str]],
    unset: dict[str, str | DqError],
) -> Drained:
    """What came of the outbox through the channels that have `settings`; `unset` is why others have none."""
    opened: dict[str, Open] = {}
    for name, own in settings.items():
        try:
            opened[name] = channels.load()[name].open(own, world.messages.alert)
        except DqError as error:
            # One that is not set up matters only when something waits for it.
            unset[name] = error
    drained = drain(
        store,
        opened,
        _running(world),
        sleep=time.sleep,
        patience=timedelta(seconds=world.settings.send_seconds) if patience is None else patience,
        jitter=random.random,
        fallbacks=list(dict.fromkeys([platform_route(channel, world.settings), CONSOLE])),
    )
    broken = {name: str(unset.get(name, reason)) for name, reason in drained.broken.items()}
    return replace(drained, broken=broken)


def _running(world: World) -> Callable[[], datetime]:
    """A clock that goes on from the world's own, which stands still in a replay."""
    began, start = time.monotonic(), world.now()
    return lambda: start + timedelta(seconds=time.monotonic() - began)


def exit_code(drained: Drained) -> int:
    """4 when somebody has to do something so that alerts arrive, else 0."""
    return 4 if drained.broken or any(one.stuck for one in drained.outstanding) else 0


def undelivered(drained: Drained) -> list[str]:
    """What could not be sent, a sentence for each."""
    lines = [f"nothing can be sent through {name}: {reason}" for name, reason in drained.broken.items()]
    # What waits for a channel that is broken is said already.
    return lines + [
        told(one) for one in drained.outstanding if one.refused or one.channel not in drained.broken
    ]


def told(one: Outstanding) -> str:
    """What is outstanding for a place, in a sentence."""
    messages = f"{one.count} message{'s' * (one.count > 1)} for {one.place}"
    if not one.refused:
        return f"{messages} wait{'s' * (one.count == 1)} since {_at(one.since)}: {one.reason or 'its turn'}."
    return (
        f"{messages} could not be delivered since {_at(one.since)}: {one.reason}. "
        "It is tried again every hour. Mend the place, or let go of it: "
        f"dq outbox --dismiss {shell_word(one.place)}"
    )


def outstanding_as_dict(one: Outstanding) -> dict[str, object]:
    """What is outstanding for a place, for machines."""
    return {
        "channel": one.channel,
        "target": one.target,
        "messages": one.count,
        "since": one.since.isoformat(),
        "reason": one.reason,
        "refused": one.refused,
    }


def _at(instant: datetime) -> str:
    return f"{instant:%Y-%m-%d %H:%M}Z"


# Buttons below alerts: `dq watch --every` listens while it waits, where a channel is set up for it.


def listen(world: Callable[[], World], pressed: threading.Event, note: Callable[[str], None]) -> None:
    """Listens in the background through each channel that can be pressed; each press sets `pressed`.

    A channel that cannot be heard is said, and stops nothing.
    """
    # Threads of a channel begin without the context variables of this one, e.g. the file of `--config`.
    variables = copy_context()

    def write_down(one: Press) -> str:
        # A copy for each press: two threads cannot be in one context at a time.
        return variables.copy().run(record_press, one)

    def record_press(one: Press) -> str:
        here = world()
        store = here.store()
        try:
            with store.write() as tx:
                said = press(tx, one, here.now())
        finally:
            store.close()
        pressed.set()
        return said

    for channel in channels.load().values():
        if channel.listen is None:
            continue
        try:
            channel.listen(settings_of(world(), channel), write_down, note)
        except DqError as error:
            note(f"buttons of {channel.id} do not answer: {error}")


def go_on(once: Callable[[], object], pause: timedelta, began: float, pressed: threading.Event) -> NoReturn:
    """Tick after tick for ever. `began` is when the last one did, on the monotonic clock; a press ends the
    pause early, so that the message shows it at once."""
    while True:
        pressed.wait(max(pause.total_seconds() - (time.monotonic() - began), 0))
        pressed.clear()
        began = time.monotonic()
        once()
