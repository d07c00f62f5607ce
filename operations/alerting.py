"""Alerts: routing, enrichment, recording, sending, lineage-based inhibition, and buttons."""

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

from dq.alerts import channels, incident_store, suppression
from dq.alerts import drain as outstanding
from dq.alerts.channel import ANSWERS, Channel, ChannelSetting, Interaction, OpenChannel
from dq.alerts.drain import DrainResult, UndeliveredNotifications, drain
from dq.alerts.incident import PAST_CONTRACT, Facts, Incident
from dq.alerts.message import COMMAND, MAX_VALUE, MENTION, OWNER, PRODUCT, RUNBOOK, SINCE
from dq.alerts.record import handle_interaction, record, record_past, send_quiet_hours_summaries
from dq.alerts.route import CONSOLE, AlertRoute, matching_routes
from dq.alerts.suppression import Product
from dq.alerts.tables import lineage
from dq.contracts.access import alert_target
from dq.contracts.access.access_policy import is_uri, web_address
from dq.contracts.access.files import FileRejected, file_ref, read
from dq.contracts.escaping import shell, shell_word
from dq.contracts.incident import Breach, IncidentKey, Recovery
from dq.contracts.lineage import DataObject, consumers, declares_inputs, inputs
from dq.contracts.model import Contract, CustomProperty, SupportChannel
from dq.contracts.outcome import (
    DqError,
    Finding,
    ReadError,
    Severity,
    UsageError,
    ValueProblem,
    join_limited,
    suggestion,
)
from dq.contracts.slo import NOT_IN_FORCE, read_slos
from dq.contracts.subscriptions import Subscription
from dq.contracts.yaml.parse import parse
from dq.dataquality import results
from dq.dataquality.alarms import AlarmSpan, save_answer
from dq.dataquality.delivery import cycle_store
from dq.dataquality.delivery.cycle import UnnotifiedMiss
from dq.dataquality.delivery.notify import PLATFORM, local_time, misses_digest, misses_summary
from dq.operations.notices import Notices, RegistrySubscriptions, affected_subscriptions, subscribers_fact
from dq.operations.registry_files import LoadedContracts, load
from dq.operations.runtime.context import RuntimeContext, format_instant, read_secret
from dq.operations.runtime.settings import Settings
from dq.store.engine import Store

# Routes of a contract's alerts: the channels of its support entries that the operator allows.

FROM_CONTRACT = "contract"


def routes(contract: Contract, channel: str, settings: Settings) -> list[AlertRoute]:
    """Return the alert routes of a contract: its support channels, or one `channel[:target]` for all.

    The operator sets the one for all. Channels of the contract that are not allowed are left out and reported
    by `refused`; if none is left, alerts go to the console.
    """
    if channel != FROM_CONTRACT:
        name, _, target = channel.partition(":")
        return [AlertRoute(name, target)]
    return [
        route
        for support in _alert_channels(contract, channels.load())
        if isinstance(route := _route(support, settings), AlertRoute)
    ]


def platform_route(channel: str, settings: Settings) -> AlertRoute:
    """Return the route for platform alerts, i.e. when storage is unreachable: `platform_channel`, or
    `channel`.

    Raises UsageError for an unknown channel.
    """
    address = channel if channel != FROM_CONTRACT else settings.platform_channel
    name, _, target = address.partition(":")
    known_channels = channels.load()
    if name not in known_channels:
        hint = f"Write one of {', '.join(known_channels)}: DQ_PLATFORM_CHANNEL=slack:#data-platform"
        raise UsageError(f"platform_channel {address!r} is not a channel.", hint)
    return AlertRoute(name, target)


def refused(contracts: Iterable[Contract], channel: str, settings: Settings) -> list[Finding]:
    """Findings for the support entries of contracts in force that are not allowed to receive alerts."""
    if channel != FROM_CONTRACT:
        return []
    known_channels = channels.load()
    return [
        _finding(contract, support, problem)
        for contract in contracts
        if contract.status not in NOT_IN_FORCE
        for support in contract.support
        if support.tool not in alert_target.FOR_PEOPLE
        if (
            problem := alert_target.tool_problem(support) or _route_problem(support, known_channels, settings)
        )
        is not None
    ]


def _route_problem(
    support: SupportChannel, known_channels: Collection[str], settings: Settings
) -> ValueProblem | None:
    route = (
        _route(support, settings)
        if support.tool in known_channels and alert_target.receives_breaches(support)
        else None
    )
    return route if isinstance(route, ValueProblem) else None


def _finding(contract: Contract, support: SupportChannel, problem: ValueProblem) -> Finding:
    key = "tool" if problem.code == alert_target.UNSUPPORTED_TOOL else "channel"
    location, path = support.locate(key), support.path(key)
    return Finding(
        "route-refused", Severity.ERROR, f"{problem.message}.", problem.hint, location, path, contract.id
    )


def _alert_channels(contract: Contract, known_channels: Collection[str]) -> list[SupportChannel]:
    return [
        support
        for support in contract.support
        if support.tool in known_channels and alert_target.receives_breaches(support)
    ]


def _route(support: SupportChannel, settings: Settings) -> AlertRoute | ValueProblem:
    terms, _ = alert_target.route_terms(support)
    route = _allowed_route(support.tool or "", alert_target.alert_target(support), terms, settings)
    if isinstance(route, ValueProblem) and route.code == _REFUSED:
        return replace(route, message=f"{route.message}; using the console instead")
    return route


def _subscription_route(subscription: Subscription, settings: Settings) -> AlertRoute | ValueProblem:
    """Return the route of a consumer's alerts; the same limits apply as to those of a contract."""
    alerts = subscription.alerts
    assert alerts is not None
    if alerts.tool not in channels.load():
        return ValueProblem(
            alert_target.UNSUPPORTED_TOOL,
            f"dq has no channel {alerts.tool!r}",
            f"Write one of {', '.join(alert_target.TOOLS)}.",
        )
    return _allowed_route(alerts.tool, alerts.channel, alert_target.parse_terms(alerts)[0], settings)


_REFUSED = "ROUTE_REFUSED"


def _allowed_route(
    tool: str, target: str, terms: alert_target.RouteTerms, settings: Settings
) -> AlertRoute | ValueProblem:
    """Return the route to a target that a file of the registry names, or why it is not allowed."""
    problem = alert_target.target_problem(tool, target)
    if problem is not None:
        return problem
    allow_hint = _allow_hint(tool, target, settings)
    if allow_hint:
        return ValueProblem(_REFUSED, f"alerts may not go to {f'{tool}:{target}'!r}", allow_hint)
    if tool in alert_target.FILES:
        file = _file(target, settings.file_channels)
        if file is None:
            hint = "Allow a folder for it: DQ_FILE_CHANNELS=FOLDER, or file_channels in dq.toml."
            return ValueProblem(_REFUSED, f"alerts may not be written to {target!r}", hint)
        target = str(file)
    return AlertRoute(
        tool, target, terms.severities, terms.escalate_after, terms.quiet, terms.quiet_severities
    )


def _allow_hint(tool: str, target: str, settings: Settings) -> str:
    """Return how to allow a receiver that a contract names, or "" if it is allowed."""
    receiver = f"{tool}:{target}"
    if tool != "console" and not _listed(receiver, settings.channels):
        return f"Allow it: DQ_CHANNELS={receiver!r}, or channels in dq.toml."
    if (
        tool == "webhook"
        and "://" in target
        and not alert_target.host_allowed(target, settings.webhook_hosts)
    ):
        address = web_address(target)
        if address is None:
            return "Use a plain https:// URL without user, backslash or non-standard host."
        return f"Allow its host: DQ_WEBHOOK_HOSTS={address.authority}, or webhook_hosts in dq.toml."
    if tool == "email" and not alert_target.domain_allowed(target, settings.email_domains):
        domain = target.rpartition("@")[2]
        return f"Allow its domain: DQ_EMAIL_DOMAINS={domain}, or email_domains in dq.toml."
    return ""


def _listed(receiver: str, patterns: Iterable[str] | None) -> bool:
    # Slack accepts a channel with and without `#`.
    plain = receiver.replace(":#", ":", 1)
    return patterns is None or any(
        fnmatchcase(plain, pattern.replace(":#", ":", 1) if ":" in pattern else f"{pattern}:*")
        for pattern in patterns
    )


def _file(target: str, folder: str) -> Path | None:
    """Return the file in the operator's folder, or None if there is no folder or the target leads out of
    it.
    """
    if not folder or not target.isprintable():
        return None
    root = Path(os.path.realpath(folder))
    file = Path(os.path.realpath(root / target))
    return file if root in file.parents else None


# Settings of channels: from variables, files named by variables, and dq.toml.

_FILE = "_FILE"


def channel_settings(context: RuntimeContext, channel: Channel) -> dict[str, str]:
    """Return a channel's settings by name. Raises UsageError for an unreadable secret file."""
    values = {}
    for setting in channel.settings:
        for name, variable in _variables(context, setting):
            value = _value(context, setting, variable)
            if value is not None:
                values[name] = value
    return values


def secret_variables(names: Iterable[str]) -> set[str]:
    """Return the variable names that hold channel secrets; all other channel settings are in `TABLE`."""
    secrets = [
        setting for channel in channels.load().values() for setting in channel.settings if setting.secret
    ]
    plain = {setting.variable for setting in secrets if not setting.per_target}
    prefixes = tuple(setting.variable for setting in secrets if setting.per_target)
    return {name for name in names if name.removesuffix(_FILE) in plain or name.startswith(prefixes)}


def _variables(context: RuntimeContext, setting: ChannelSetting) -> Iterator[tuple[str, str]]:
    """Yield name and variable of a setting; for a setting per target, of each variable that is set."""
    if not setting.per_target:
        yield setting.name, setting.variable
        return
    suffixes = {
        name.removeprefix(setting.variable).removesuffix(_FILE)
        for name in context.environment
        if name.startswith(setting.variable)
    }
    for suffix in sorted(suffixes):
        # `<VARIABLE>_FILE` is the secret file of the setting itself.
        if suffix and suffix != _FILE.removeprefix("_"):
            yield f"{setting.name}:{suffix.lower().replace('_', '-')}", setting.variable + suffix


def _value(context: RuntimeContext, setting: ChannelSetting, variable: str) -> str | None:
    """Return the value of the variable; a secret may be in a file that `<VARIABLE>_FILE` names."""
    file = context.environment.get(variable + _FILE) if setting.secret else None
    if file is None:
        settings = context.environment if setting.secret else context.settings.variables
        return settings.get(variable)
    return read_secret(Path(file), variable + _FILE)


_RECENT_DELIVERIES, _QUANTILE = 30, 0.9


def save_lineage(store: Store, loaded: LoadedContracts, paths: Sequence[Path]) -> None:
    """Store the declared lineage if a contract is new or has changed.

    Names are resolved across all contracts, so all of them are loaded then.
    """
    with store.read() as tx:
        stored = {row.contract: row for row in tx.execute(select(lineage))}
    removed = [key for key in loaded.removed if key in stored]
    changed = [
        contract
        for contract in loaded.contracts
        if contract.key not in stored or stored[contract.key].digest != contract.digest
    ]
    if not changed and not removed:
        return
    has_lineage = any(row.inputs is not None for row in stored.values()) or any(
        map(declares_inputs, loaded.contracts)
    )
    contracts = _load_all(loaded, paths) if has_lineage and loaded.skipped else loaded.contracts
    rows = _rows(contracts)
    with store.write() as tx:
        for key in {*removed, *(str(row["contract"]) for row in rows)}:
            tx.execute(delete(lineage).where(lineage.c.contract == key))
        if rows:
            tx.execute(insert(lineage), rows)


def _load_all(loaded: LoadedContracts, paths: Sequence[Path]) -> Sequence[Contract]:
    try:
        return load(paths, lambda _: None).contracts
    except ReadError:
        # One of the paths no longer holds a contract; skipped contracts are read at their next tick.
        return loaded.contracts


def make_settler(context: RuntimeContext, notices: Notices) -> Callable[[Connection], None]:
    """Return the callback that the watcher calls after all events of a transaction are recorded."""

    def settle(tx: Connection) -> None:
        made_from = inputs_by_product(tx)
        suppression.apply_inhibition(tx, made_from, lambda key: _usual_delay(tx, key), context.now())
        notices.settle(tx, made_from)

    return settle


def without_inhibited(
    tx: Connection, misses: Sequence[UnnotifiedMiss], now: datetime
) -> list[UnnotifiedMiss]:
    """Return the past misses without those that were inhibited by a root cause among them.

    Alerts of a product are inhibited while a product that it is made from is missing.
    """
    spans: dict[Product, list[tuple[datetime, datetime]]] = defaultdict(list)
    for miss in misses:
        spans[miss.record.cycle.contract, miss.record.cycle.object].append(_span(miss, now))
    broken = {product: (min(intervals)[0], "/".join(product)) for product, intervals in spans.items()}
    cause_of = suppression.root_causes(broken, inputs_by_product(tx))

    def was_inhibited(miss: UnnotifiedMiss) -> bool:
        begin, end = _span(miss, now)
        cause = cause_of.get((miss.record.cycle.contract, miss.record.cycle.object))
        return (
            any(since <= end and begin <= until for since, until in spans.get(cause, ())) if cause else False
        )

    return [miss for miss in misses if not was_inhibited(miss)]


def _span(miss: UnnotifiedMiss, now: datetime) -> tuple[datetime, datetime]:
    """Return when the delivery became missing, and when it arrived (`now` if it has not)."""
    cycle, lateness = miss.record.cycle, miss.verdict.lateness
    return cycle.breach_at, now if lateness is None else cycle.due_at + lateness


def inputs_by_product(tx: Connection) -> dict[Product, set[Product]]:
    """Return the declared inputs of each product that has any."""
    sources: dict[Product, set[Product]] = {}
    for row in tx.execute(select(lineage).where(lineage.c.inputs.is_not(None))):
        for name, input_objects in row.inputs:
            sources[row.contract, name] = {(contract, object_name) for contract, object_name in input_objects}
    return sources


def _rows(contracts: Iterable[Contract]) -> list[dict[str, object]]:
    by_key = {contract.key: contract for contract in contracts}
    inputs_by_key: dict[str, list[object]] = defaultdict(list)
    for (key, name), sources in inputs(by_key.values()).items():
        inputs_by_key[key].append([name, [list(source) for source in sorted(sources)]])
    return [
        {
            "contract": key,
            "digest": contract.digest,
            "inputs": inputs_by_key[key] if declares_inputs(contract) else None,
        }
        for key, contract in by_key.items()
    ]


def _usual_delay(tx: Connection, key: IncidentKey) -> timedelta | None:
    """Return the 90th percentile of the delay after due time of the recent deliveries, or None if there are
    none.
    """
    cycles = cycle_store.all_cycles(tx, (key.contract, key.object, key.group))
    delays = sorted(
        cycle.delivered_at - cycle.cycle.due_at
        for cycle in cycles[-_RECENT_DELIVERIES:]
        if cycle.delivered_at
    )
    return delays[min(int(len(delays) * _QUANTILE), len(delays) - 1)] if delays else None


# Downstream impact of a broken product, including contracts that were not read in this tick.

_NAMED = 4
# Limit of contracts read for this in one run, so that alerts are not delayed.
_MOST_READ = 200


class DownstreamImpact:
    """Finds the downstream consumers of an object. Files of skipped contracts are read on demand."""

    def __init__(self, contracts: Iterable[Contract], skipped: Mapping[str, str]) -> None:
        self._contracts = list(contracts)
        self._skipped_files = list(skipped)
        self._texts: dict[str, bytes] | None = None
        self._declared: dict[DataObject, frozenset[DataObject]] | None = None
        self._searched_names: set[str] = set()
        self._reads_left = _MOST_READ

    def describe(self, contract: Contract, object_name: str) -> str:
        """Return the consumers of an object, nearest first, or "" if none is known."""
        product = (contract.key, object_name)
        names = _names(contract)
        while self._read_files_naming(names):
            # Consumers of those that were just read may have been skipped as well.
            names = [
                name
                for candidate in self._contracts
                for name in _names(candidate)
                if self._uses(candidate, product)
            ]
        downstream = consumers(self._inputs(), product)
        by_contract = {candidate.key: candidate for candidate in self._contracts}
        by_key: dict[str, list[str]] = {}
        for key, consumer in downstream:
            by_key.setdefault(key, []).append(consumer)
        labels = [
            f"{key}/{users[0]}" if len(by_contract[key].objects) > 1 and len(users) == 1 else key
            for key, users in by_key.items()
        ]
        return join_limited(labels, _NAMED)

    def _inputs(self) -> Mapping[DataObject, frozenset[DataObject]]:
        if self._declared is None:
            self._declared = inputs(self._contracts)
        return self._declared

    def _uses(self, contract: Contract, product: DataObject) -> bool:
        return any(key == contract.key for key, _ in consumers(self._inputs(), product))

    def _read_files_naming(self, names: Iterable[str]) -> bool:
        """Read the skipped files that contain one of the names; return True if any was read."""
        new = {name for name in names if name not in self._searched_names}
        self._searched_names |= new
        if not new or not self._skipped_files or self._reads_left < 1:
            return False
        if self._texts is None:
            self._texts = {file: text for file in self._skipped_files if (text := _text(file))}
        pattern = re.compile(b"|".join(re.escape(name.encode()) for name in sorted(new)))
        candidates = [file for file, text in self._texts.items() if pattern.search(text)][: self._reads_left]
        self._reads_left -= len(candidates)
        parsed = [parse(self._texts.pop(file), file).contract for file in candidates]
        self._contracts += [contract for contract in parsed if contract is not None]
        self._declared = None
        return bool(candidates)


def _names(contract: Contract) -> list[str]:
    """Return the names by which other contracts may refer to a contract or its objects."""
    names = [contract.id, Path(contract.file).name]
    return names + [
        name
        for schema_object in contract.objects
        for name in (schema_object.name, schema_object.id, schema_object.physical_name)
        if name
    ]


def _text(file: str) -> bytes:
    try:
        return read(file_ref(Path(file)))
    except FileRejected:
        return b""


# Enrichment of alerts: product, downstream impact, owner, runbook, and a command.

Enricher = Callable[[Contract, Breach], Breach]

_LOCATION = "location"
# Slack's ids of people and of user groups.
_SLACK_ID = re.compile("[UWS][A-Z0-9]{5,20}")
_MOST_MENTIONS = 3


def make_enricher(
    context: RuntimeContext,
    contracts: Iterable[Contract],
    server: str | None = None,
    skipped: Mapping[str, str] | None = None,
) -> Enricher:
    """Return a function that adds the enrichment facts to a breach of one of the contracts.

    `server` is the `--server` of the command, repeated in the suggested command. `skipped` has the keys of
    contracts that were not read, by file: they may be downstream.
    """
    impact = DownstreamImpact(contracts, skipped or {})

    def enrich(contract: Contract, event: Breach) -> Breach:
        event_facts = tuple((label, _display_path(context, label, value)) for label, value in event.facts)
        # An exhausted error budget blocks no consumer.
        is_blocking = SINCE in dict(event.facts) or event.key.group == results.GROUP
        blocked = impact.describe(contract, event.key.object) if is_blocking else ""
        help_facts = (("blocks", blocked), *_people(contract), *_mentions(context, contract, event.severity))
        command = (COMMAND, _command(context, contract, event, server))
        facts = ((PRODUCT, _product(contract)), *event_facts, *help_facts, command)
        return replace(event, facts=tuple((label, value) for label, value in facts if value))

    return enrich


def platform_event(context: RuntimeContext, event: Breach | Recovery) -> Breach | Recovery:
    """Return the event for the platform team, with paths relative to the command's folder, and a command."""
    facts = tuple((label, _shorten_paths(context, value)) for label, value in event.facts)
    title = _shorten_paths(context, event.title)
    if isinstance(event, Recovery):
        return replace(event, title=title, facts=facts)
    roots = [_undashed(_relative(context, root)) for root in context.registries]
    return replace(event, title=title, facts=(*facts, (COMMAND, _shell_command(context, ["status", *roots]))))


def _shorten_paths(context: RuntimeContext, text: str) -> str:
    """Return the text with paths relative to the folder of the command."""
    folder = re.escape(str(context.folder))
    within = re.sub(rf"(?<!\S){folder}/(?=\S)", "", text)
    return re.sub(rf"(?<!\S){folder}(?=\s|$)", "the watcher's folder", within)


def _product(contract: Contract) -> str:
    """Return the first lines of the contract's name and purpose, as far as they are set."""
    purpose = (contract.description.purpose if contract.description else None) or ""
    parts = [text.strip().splitlines()[0] for text in (contract.name or "", purpose) if text.strip()]
    return ": ".join(parts)


def _people(contract: Contract) -> Facts:
    owner = next(
        (member.username for member in contract.members() if (member.role or "").lower() == "owner"), ""
    )
    runbook = next(
        (definition.url for definition in contract.authoritative_definitions if definition.type == "runbook"),
        "",
    )
    if len(runbook) > MAX_VALUE:
        runbook = f"see the contract {contract.id}: the URL is too long to show"
    return (OWNER, owner), (RUNBOOK, runbook)


def _mentions(context: RuntimeContext, contract: Contract, severity: Severity) -> Facts:
    """Return the Slack ids of owners and support entries if the severity reaches the `mentions` setting."""
    threshold = context.settings.mentions
    if threshold == "off" or severity.rank < Severity(threshold).rank:
        return ()
    owners = [member for member in contract.members() if (member.role or "").lower() == "owner"]
    custom_properties = [element.custom("slack") for element in (*owners, *contract.support)]
    ids = dict.fromkeys(
        slack_id for custom_property in custom_properties if (slack_id := _slack_id(custom_property))
    )
    return ((MENTION, " ".join([*ids][:_MOST_MENTIONS])),)


def _slack_id(custom: CustomProperty | None) -> str:
    value = custom.value if custom is not None else None
    return value if isinstance(value, str) and _SLACK_ID.fullmatch(value) else ""


def _display_path(context: RuntimeContext, label: str, value: str) -> str:
    """Return a path where data was searched, relative to the folder of the command."""
    if label != _LOCATION or is_uri(value) or not value.startswith("/"):
        return value
    return _relative(context, Path(value))


def _command(context: RuntimeContext, contract: Contract, event: Breach, server: str | None) -> str:
    """Return a shell command that shows details, for the folder in which this command ran."""
    file = Path(_relative(context, Path(contract.file)))
    words = _words(contract, event, server, file)
    # The file name is untrusted and gets pasted into a shell: it may begin with a dash.
    command = _shell_command(context, words)
    if len(command) <= MAX_VALUE:
        return command
    # A truncated command would do something else; the parent folder shows the same among others.
    shorter = [_shell_command(context, ["status", _undashed(str(folder))]) for folder in file.parents]
    return next((text for text in shorter if len(text) <= MAX_VALUE), "dq status")


def _shell_command(context: RuntimeContext, words: Sequence[str]) -> str:
    config = ["--config", _relative(context, context.settings.file)] if context.settings.file else []
    # A replay alerts as of an instant, not as of today.
    as_of = ["--as-of", format_instant(context.as_of)] if context.as_of else []
    return shell(["dq", *config, *words, *as_of])


def _words(contract: Contract, event: Breach, server: str | None, file: Path) -> Sequence[str]:
    if event.key.group != results.GROUP:
        return ["status", _undashed(str(file))]
    object_option = ["--object", event.key.object] if len(contract.objects) > 1 else []
    scope = dict(event.facts).get(results.DISAGREEMENT, event.subject)
    scope_option = ["--partition", scope] if "=" in scope else ["--all"]
    return [
        "check",
        _undashed(str(file)),
        *object_option,
        *scope_option,
        *(["--server", server] if server else []),
    ]


def _undashed(file: str) -> str:
    return f"./{file}" if file.startswith("-") else file


def _relative(context: RuntimeContext, path: Path) -> str:
    """Return the path relative to the folder of the command, or as it is if they share only the root."""
    # After a symbolic link, `..` does not lead to the textual parent.
    if not path.is_absolute() or ".." in path.parts:
        return str(path)
    shared = os.path.commonpath([context.folder, path])
    return str(path) if shared == os.path.sep else os.path.relpath(path, context.folder)


# Alerts of commands: record events, open channels, drain the outbox.


def refuse_unknown_channel(channel: str, names: Collection[str]) -> NoReturn:
    """Raise UsageError for a channel that does not exist; the hint for a target alone is its channel."""
    hint = suggestion(channel.partition(":")[0], names, f"Choose one of {', '.join(names)}.")
    if channel.startswith("#"):
        hint = f"Write slack:{channel}."
    elif "@" in channel:
        hint = f"Write email:{channel}."
    raise UsageError(f"unknown channel {channel!r}.", hint)


def make_notices(context: RuntimeContext) -> Notices:
    """Return the notices of consumers for the events of a command."""

    def describe(tx: Connection, contract: Contract, event: Breach) -> Facts:
        facts = dict(event.facts)
        promise = [(label, facts[label]) for label in ("promised", SINCE) if label in facts]
        expected = "" if event.failed else _expected(tx, contract, event, context.now())
        return ((PRODUCT, _product(contract)), *promise, ("expected", expected), *_people(contract)[:1])

    return Notices(
        context, lambda subscription: _subscription_route(subscription, context.settings), describe
    )


def _expected(tx: Connection, contract: Contract, event: Breach, now: datetime) -> str:
    """Return when late deliveries of this promise usually arrive, or "" if that is unknown or past."""
    slo = next((slo for slo in read_slos(contract)[0] if slo.id == event.key.group), None)
    if slo is None:
        return ""
    recent = cycle_store.all_cycles(tx, slo.key)[-_RECENT_DELIVERIES:]
    delays = sorted(cycle.delivered_at - cycle.cycle.due_at for cycle in recent if cycle.delivered_at)
    late = [delay for delay in delays if delay > slo.grace]
    if not late:
        return ""
    due_at = datetime.fromisoformat(event.subject)
    expected_at = due_at + late[min(int(len(late) * _QUANTILE), len(late) - 1)]
    if expected_at <= now:
        return ""
    share = f"{len(late)} of the last {len(delays)} deliveries {'was' if len(late) == 1 else 'were'} late"
    return f"by {local_time(slo, expected_at)}, as in earlier delays ({share})"


def make_notifier(
    context: RuntimeContext,
    contracts: Sequence[Contract],
    channel: str,
    server: str | None = None,
    skipped: Mapping[str, str] | None = None,
    notices: Notices | None = None,
    subscriptions: RegistrySubscriptions | None = None,
) -> Callable[[Connection, Breach | Recovery], None]:
    """Return the callback that the watcher calls in its transaction: it enriches and records an event.

    With `notices`, the events are added to them, and the caller settles them in the same transaction.
    `subscriptions` may have been read before the transaction.
    """
    own_notices = notices or make_notices(context)
    subscriptions = subscriptions or RegistrySubscriptions(context)
    known_channels, name = channels.load(), channel.partition(":")[0]
    # Fail at the start, not when the first alert is sent.
    if name in known_channels:
        known_channels[name].open(channel_settings(context, known_channels[name]), lambda _: None)
    elif name != FROM_CONTRACT:
        refuse_unknown_channel(channel, (FROM_CONTRACT, *known_channels))
    platform = platform_route(channel, context.settings)
    enrich = make_enricher(context, contracts, server, skipped)
    by_key = {contract.key: contract for contract in contracts}

    def notify(tx: Connection, event: Breach | Recovery) -> None:
        if event.key.contract == PLATFORM:
            record(tx, platform_event(context, event), [platform], context.now())
            return
        contract = by_key.get(event.key.contract)
        if isinstance(event, Recovery):
            # A recovery goes to the receivers of the breach; the contract may have been removed.
            record(tx, event, (), context.now())
            own_notices.add_recovery(event)
        elif contract is None:
            record(tx, event, (), context.now())
        else:
            # Consumers are notified of breaches only.
            affected = [] if event.is_warning else affected_subscriptions(subscriptions, contract, event)
            enriched = enrich(contract, replace(event, facts=(*event.facts, *subscribers_fact(affected))))
            record(tx, enriched, routes(contract, channel, context.settings), context.now())
            # A single channel for all alerts receives each incident once.
            if channel == FROM_CONTRACT and not event.is_warning:
                own_notices.add_breach(contract, event, affected)
        if notices is None:
            own_notices.settle(tx, inputs_by_product(tx))

    return notify


def make_past_notifier(
    context: RuntimeContext, channel: str
) -> Callable[[Connection, Sequence[UnnotifiedMiss]], None]:
    """Return the callback for misses that began and ended between two ticks: one message per receiver."""

    def notify(tx: Connection, misses: Sequence[UnnotifiedMiss]) -> None:
        by_receiver: dict[tuple[str, str], list[UnnotifiedMiss]] = {}
        for miss in without_inhibited(tx, misses, context.now()):
            all_routes = routes(miss.slo.contract, channel, context.settings)
            for route in matching_routes(all_routes, miss.slo.severity):
                # Escalation routes get nothing about misses that are over.
                if not route.after:
                    by_receiver.setdefault((route.channel, route.target), []).append(miss)
        for (name, target), receiver_misses in by_receiver.items():
            route, key = AlertRoute(name, target), IncidentKey(PAST_CONTRACT, f"{name}:{target}", "past")
            severity = max((miss.slo.severity for miss in receiver_misses), key=lambda level: level.rank)
            record_past(
                tx,
                key,
                severity,
                misses_summary(receiver_misses),
                misses_digest(receiver_misses),
                route,
                context.now(),
            )

    return notify


def reroute(context: RuntimeContext, store: Store, contracts: Iterable[Contract], channel: str) -> None:
    """Resend rejected messages if the contract names another receiver now."""
    with store.read() as tx:
        if not outstanding.rejected(tx):
            return
    by_key = {contract.key: contract for contract in contracts}
    platform = platform_route(channel, context.settings)

    def receivers(key: IncidentKey, severity: Severity) -> list[AlertRoute] | None:
        contract = by_key.get(key.contract)
        if contract is None:
            return None
        return [*matching_routes(routes(contract, channel, context.settings), severity), platform, CONSOLE]

    with store.write() as tx:
        outstanding.reroute(tx, receivers, context.now())


def send(
    context: RuntimeContext,
    store: Store,
    channel: str = FROM_CONTRACT,
    patience: timedelta | None = None,
) -> DrainResult:
    """Send the outbox through every configured channel; the console is `context.messages`.

    `patience` limits the wait for channels that ask for a delay, by default `send_seconds` of the settings.
    Files are written only if the operator allows them, by a setting or as the `channel` of all alerts.
    """
    settings: dict[str, dict[str, str]] = {}
    unavailable: dict[str, str | DqError] = {}
    mistakes: list[UsageError] = []
    for name, plugin in channels.load().items():
        if (
            name in alert_target.FILES
            and not context.settings.file_channels
            and channel.partition(":")[0] != name
        ):
            unavailable[name] = "file channels are off. Allow a folder: DQ_FILE_CHANNELS=FOLDER."
            continue
        try:
            settings[name] = channel_settings(context, plugin)
        except UsageError as error:
            mistakes.append(error)
            unavailable[name] = error
    send_quiet_hours_summaries(store, context.now())
    with store.read() as tx:
        idle = outstanding.is_empty(tx)
    drained = (
        DrainResult() if idle else _drain_outbox(context, store, channel, patience, settings, unavailable)
    )
    if mistakes:
        # An unreadable secret is raised after all other channels have sent.
        for text in undelivered(drained):
            context.note(text)
        raise mistakes[0]
    return drained


def _drain_outbox(
    context: RuntimeContext,
    store: Store,
    channel: str,
    patience: timedelta | None,
    settings: Mapping[str, Mapping[str, str]],
    unavailable: dict[str, str | DqError],
) -> DrainResult:
    """Drain the outbox through the channels with `settings`; `unavailable` has the reasons for the others."""
    opened: dict[str, OpenChannel] = {}
    for name, values in settings.items():
        try:
            opened[name] = channels.load()[name].open(values, context.messages.alert)
        except DqError as error:
            # A channel that is not configured matters only if a message waits for it.
            unavailable[name] = error
    drained = drain(
        store,
        opened,
        _running_clock(context),
        sleep=time.sleep,
        patience=timedelta(seconds=context.settings.send_seconds) if patience is None else patience,
        jitter=random.random,
        fallbacks=list(dict.fromkeys([platform_route(channel, context.settings), CONSOLE])),
    )
    broken = {name: str(unavailable.get(name, reason)) for name, reason in drained.broken.items()}
    return replace(drained, broken=broken)


def _running_clock(context: RuntimeContext) -> Callable[[], datetime]:
    """Return a running clock that starts at `context.now()`, which is fixed in a replay."""
    began, start = time.monotonic(), context.now()
    return lambda: start + timedelta(seconds=time.monotonic() - began)


def exit_code(drained: DrainResult) -> int:
    """Return 4 if alerts need manual action to arrive, else 0."""
    return 4 if drained.broken or any(entry.stuck for entry in drained.undelivered) else 0


def undelivered(drained: DrainResult) -> list[str]:
    """Return a sentence for each channel or receiver with unsent messages."""
    lines = [f"cannot send through {name}: {reason}" for name, reason in drained.broken.items()]
    # Messages for a broken channel are already covered by its line.
    return lines + [
        describe_outstanding(entry)
        for entry in drained.undelivered
        if entry.rejected or entry.channel not in drained.broken
    ]


def describe_outstanding(entry: UndeliveredNotifications) -> str:
    """Describe the outstanding messages of a receiver in a sentence."""
    messages = f"{entry.count} message{'s' * (entry.count > 1)} for {entry.place}"
    if not entry.rejected:
        return f"{messages} pending since {_format_instant(entry.since)}: {entry.reason or 'queued'}."
    return (
        f"{messages} could not be delivered since {_format_instant(entry.since)}: {entry.reason}. "
        "Retried every hour. Fix the target, or discard the alerts: "
        f"dq outbox --dismiss {shell_word(entry.place)}"
    )


def outstanding_as_dict(entry: UndeliveredNotifications) -> dict[str, object]:
    """Return the outstanding messages of a receiver as JSON values."""
    return {
        "channel": entry.channel,
        "target": entry.target,
        "messages": entry.count,
        "since": entry.since.isoformat(),
        "reason": entry.reason,
        "refused": entry.rejected,
    }


def _format_instant(instant: datetime) -> str:
    return f"{instant:%Y-%m-%d %H:%M}Z"


# Buttons of alerts: `dq watch --every` listens while it waits, if a channel supports it.


def listen(
    make_context: Callable[[], RuntimeContext], pressed: threading.Event, note: Callable[[str], None]
) -> None:
    """Listen in the background on each channel with buttons; each press sets `pressed`.

    A channel that cannot listen is reported to `note`, and does not raise.
    """
    # Threads of a channel start without the context variables of this one, e.g. the file of `--config`.
    variables = copy_context()

    def handle_press(button_press: Interaction) -> str:
        # A copy for each press: two threads cannot be in one context at a time.
        return variables.copy().run(record_press, button_press)

    def record_press(button_press: Interaction) -> str:
        context = make_context()
        store = context.store()
        try:
            with store.write() as tx:
                reply = handle_interaction(tx, button_press, context.now())
                if not reply and button_press.button in ANSWERS:
                    reply = _record_answer(tx, button_press, context.now())
        finally:
            store.close()
        pressed.set()
        return reply

    for channel in channels.load().values():
        if channel.listen is None:
            continue
        try:
            channel.listen(channel_settings(make_context(), channel), handle_press, note)
        except DqError as error:
            note(f"buttons of {channel.id} do not work: {error}")


def _record_answer(tx: Connection, press: Interaction, now: datetime) -> str:
    """Record the answer of a button to unusual numbers, and return the response to the user."""
    incident, real = incident_store.get(tx, press.incident), ANSWERS[press.button]
    if incident is None or not answer_alarms(tx, incident, real=real, by=press.user, now=now):
        return "This incident has no unusual number to answer."
    return f"Recorded: {answer_text(real=real)}."


def answer_text(*, real: bool) -> str:
    """Return an answer to unusual numbers as text."""
    return "real" if real else "not real"


def answer_alarms(tx: Connection, incident: Incident, *, real: bool, by: str, now: datetime) -> int:
    """Store the answer to the unusual numbers of an incident, and return the number of its alarms."""
    key = incident.key
    if key.group != results.GROUP:
        return 0
    spans = [
        AlarmSpan(scope, subject.opened_at, subject.closed_at) for scope, subject in incident.subjects.items()
    ]
    count = save_answer(tx, key.contract, key.object, spans, real=real, by=by, now=now)
    if count:
        detail = f"{answer_text(real=real)}, by {by}"
        incident_store.log(tx, incident.id, "answered", incident.revision, now, detail=detail)
    return count


def run_forever(
    tick: Callable[[], object], pause: timedelta, began: float, pressed: threading.Event
) -> NoReturn:
    """Run `tick` forever, one per `pause`. `began` is the start of the last one on the monotonic clock.

    A press ends the pause early, so that the message is updated at once.
    """
    while True:
        pressed.wait(max(pause.total_seconds() - (time.monotonic() - began), 0))
        pressed.clear()
        began = time.monotonic()
        tick()
