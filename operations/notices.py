"""Notices: messages to the consumers that a breach affects, one for each consumer and cause."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from dq.alerts import incident_store, suppression
from dq.alerts.incident import NOTICE_CONTRACT, SUBSCRIPTION, Facts, notice_key, notice_subject
from dq.alerts.message import BUDGET, OWNER, PRODUCT, USED_FOR
from dq.alerts.record import record_all
from dq.alerts.route import AlertRoute, matching_routes
from dq.alerts.suppression import Product
from dq.contracts.incident import Breach, FailedClause, IncidentKey, Recovery, observed_and_expected
from dq.contracts.model import Contract
from dq.contracts.outcome import Finding, ReadError, UsageError, ValueProblem, join_limited, pluralize
from dq.dataquality import results
from dq.operations.runtime.context import RuntimeContext, registry_root

if TYPE_CHECKING:
    from dq.contracts.subscriptions import Subscription
    from dq.operations.subscriptions import Content
    from dq.validators.context import ApprovalOf
    from dq.validators.lint import Linter

# Id of the contract in the text of a subscription, as far as it is on one line.
_CONTRACT = re.compile(rb"""\bcontract["']?[ \t]*:[ \t]*["']?([^"'\s,{}#]+)""")
_MAX_CLAUSES = 6


class RegistrySubscriptions:
    """Approved, active subscriptions of the registries of some contracts. Files are read on first use.

    The context's messages receive why subscriptions are left out. Threads may share it.
    """

    def __init__(self, context: RuntimeContext) -> None:
        self._context = context
        self._lock = Lock()
        self._registries: dict[Path, _Registry] = {}
        self._by_contract: dict[tuple[str, str], list[Subscription]] = {}

    def read(self, contracts: Iterable[Contract]) -> None:
        """Read the subscriptions to these contracts, for which another transaction need not wait then."""
        for contract in contracts:
            self.for_contract(contract)

    def for_contract(self, contract: Contract) -> list[Subscription]:
        """Return the subscriptions to a contract that are approved, and active today, by file."""
        name = (contract.file, contract.key)
        agreed = self._by_contract.get(name)
        # Without the lock: a transaction does not wait for another thread that reads.
        if agreed is None:
            with self._lock:
                if name not in self._by_contract:
                    self._by_contract[name] = self._agreed(contract)
                agreed = self._by_contract[name]
        return agreed

    def _agreed(self, contract: Contract) -> list[Subscription]:
        root = registry_root(self._context.folder / contract.file)
        if root not in self._registries:
            self._registries[root] = _Registry.read(self._context, root)
        registry = self._registries[root]
        return registry.agreed(self._context, contract) if registry.linter is not None else []


@dataclass(slots=True)
class _Registry:
    """Subscription files of one registry: their contents, and their names by the contract's id."""

    files: Mapping[str, Content]
    by_id: Mapping[str, Sequence[str]]
    linter: Linter | None
    approval_of: ApprovalOf | None = None
    noted: set[Finding] = field(default_factory=set)

    @staticmethod
    def read(context: RuntimeContext, root: Path) -> _Registry:
        # Imported here, because the rules are slow to import, and most ticks have no breach.
        from dq.operations.registry_files import parse_policy, read_policy_text
        from dq.operations.subscriptions import contents
        from dq.validators.git.approvals import ApprovalHistory
        from dq.validators.lint import Linter, load_rules

        files = contents(root)
        by_id: dict[str, list[str]] = defaultdict(list)
        for name, data in files.items():
            ids = _CONTRACT.findall(data) if isinstance(data, bytes) else ()
            for id_ in ids or (b"",):
                by_id[id_.decode("utf-8", "replace")].append(name)
        linter = None
        if files:
            rules = load_rules()
            try:
                linter = Linter(
                    rules, parse_policy(read_policy_text(root, None), rules), context.now().date()
                )
            except (UsageError, ReadError) as error:
                context.note(f"{root}: {error.message} Consumers are not notified.")
        today = context.now().date()
        return _Registry(files, by_id, linter, ApprovalHistory(root, today).approval if files else None)

    def agreed(self, context: RuntimeContext, contract: Contract) -> list[Subscription]:
        from dq.operations.subscriptions import agreed_subscriptions
        from dq.validators.lint import SubscriptionFiles

        assert self.linter is not None
        # A file without the key on one line may be about any contract.
        names = [*self.by_id.get(contract.id, ()), *self.by_id.get("", ())]
        files = {name: self.files[name] for name in dict.fromkeys(names)}
        if not files:
            return []
        requested = SubscriptionFiles(
            files, frozenset(files), {contract.identity: contract}, approval_of=self.approval_of
        )
        approved = agreed_subscriptions(self.linter, requested, [contract.id])
        for finding in approved.findings:
            # A file that cannot be read may be about any contract, and is reported once.
            if finding.contract in ("", contract.id) and finding not in self.noted:
                self.noted.add(finding)
                context.note(f"{finding.at}: {finding.message} Its consumer is not notified.")
        return [
            subscription
            for subscription in approved.subscriptions
            if subscription.identity == contract.identity and subscription.is_active(self.linter.today)
        ]


@dataclass(frozen=True, slots=True)
class AffectedSubscription:
    """A subscription that a breach affects, with the failed clauses that it may be told about."""

    subscription: Subscription
    failed: tuple[FailedClause, ...] = ()


def affected_subscriptions(
    subscriptions: RegistrySubscriptions, contract: Contract, event: Breach
) -> list[AffectedSubscription]:
    """Return the subscriptions that a breach of a delivery or of data checks affects.

    For another breach, e.g. of an error budget, none is read.
    """
    # Imported here, because the normal form of contracts is slow to import.
    from dq.contracts.needs import affected_clauses

    is_quality = event.key.group == results.GROUP
    if not is_quality and not suppression.is_delivery(event.key):
        return []
    affected = []
    for subscription in subscriptions.for_contract(contract):
        failed = affected_clauses(subscription, contract, event.key.object, event.failed)
        if failed is not None and (failed or not is_quality):
            affected.append(AffectedSubscription(subscription, failed))
    return affected


RouteFor = Callable[["Subscription"], AlertRoute | ValueProblem]
"""Returns the route of a subscription's alerts, or why the operator does not allow it."""

DescribeBreach = Callable[[Connection, Contract, Breach], Facts]
"""Returns the facts of a delivery's breach for its consumers: promise, start, usual arrival, owner."""


@dataclass(frozen=True, slots=True)
class _Affected:
    """One breach for one consumer, i.e. a team at one receiver, with the subscriptions that it affects."""

    contract: Contract
    event: Breach
    subscriptions: tuple[AffectedSubscription, ...]
    routes: tuple[AlertRoute, ...]


class Notices:
    """Records the notices of consumers for the events of a command, in the transactions of these events.

    Events are collected by `add` and recorded by `settle`, because the cause of a breach is only known when
    all breaches of a tick are. Both are called in the same write transaction.
    """

    def __init__(self, context: RuntimeContext, route_for: RouteFor, describe: DescribeBreach) -> None:
        self._context, self._route_for, self._describe = context, route_for, describe
        self._breaches: list[tuple[Contract, Breach, list[AffectedSubscription]]] = []
        self._recoveries: list[Recovery] = []
        self._refused: set[str] = set()

    def add_breach(self, contract: Contract, event: Breach, affected: list[AffectedSubscription]) -> None:
        """Add a breach with the subscriptions that it affects."""
        if affected or event.failed:
            self._breaches.append((contract, event, affected))

    def add_recovery(self, event: Recovery) -> None:
        """Add a recovery. It reaches all consumers that were notified of the breach."""
        self._recoveries.append(event)

    def settle(self, tx: Connection, made_from: Mapping[Product, Collection[Product]]) -> None:
        """Record the notices of all added events. `made_from` is the lineage of products."""
        breaches, recoveries = self._breaches, self._recoveries
        self._breaches, self._recoveries = [], []
        now = self._context.now()
        record_recoveries(tx, recoveries, now)
        ends: dict[IncidentKey, list[Recovery]] = defaultdict(list)
        begins: dict[IncidentKey, list[Breach]] = defaultdict(list)
        routes: dict[IncidentKey, list[AlertRoute]] = defaultdict(list)
        book = _CauseBook(tx, suppression.open_root_causes(tx, made_from)) if breaches else None
        for contract, event, affected in breaches:
            assert book is not None
            consumers = self._by_consumer(contract, event, affected)
            # Once for all consumers: it reads the history of the product.
            described = self._describe(tx, contract, event) if consumers else ()
            for (team, receiver), entry in consumers.items():
                key, cause = book.key_for(team, receiver, event)
                begins[key].append(_notice(key, entry, cause, described))
                routes[key] += [route for route in entry.routes if route not in routes[key]]
            notified = {(team, receiver) for team, receiver in consumers}
            for key in _keys(tx, event.key, event.subject) if event.failed else ():
                # Its clauses pass again, although others of the object still fail.
                if not any(key.object == notice_key(*consumer, "").object for consumer in notified):
                    ends[key].append(_own_recovery(key, event))
        for end_events in ends.values():
            record_all(tx, end_events, (), now)
        for key, events in begins.items():
            record_all(tx, events, routes[key], now)

    def _by_consumer(
        self, contract: Contract, event: Breach, affected: Sequence[AffectedSubscription]
    ) -> dict[tuple[str, str], _Affected]:
        consumers: dict[tuple[str, str], _Affected] = {}
        for entry in affected:
            subscription = entry.subscription
            if subscription.alerts is None:
                continue
            route = self._route_for(subscription)
            if isinstance(route, ValueProblem):
                self._note_refusal(subscription, route)
                continue
            severity = max((clause.severity for clause in entry.failed), key=lambda level: level.rank,
                           default=event.severity)  # fmt: skip
            if severity not in route.severities:
                continue
            consumer = subscription.consumer.team, f"{route.channel}:{route.target}"
            former = consumers.get(consumer)
            consumers[consumer] = _Affected(
                contract,
                event,
                (*(former.subscriptions if former else ()), entry),
                matching_routes([*(former.routes if former else ()), route], severity),
            )
        return consumers

    def _note_refusal(self, subscription: Subscription, problem: ValueProblem) -> None:
        if subscription.file not in self._refused:
            self._refused.add(subscription.file)
            at = subscription.alerts.locate("channel") if subscription.alerts else subscription.locate()
            self._context.note(f"{at}: {problem.message}. {problem.hint}")


def _notice(key: IncidentKey, entry: _Affected, cause: Product | None, description: Facts) -> Breach:
    """Return the breach of a consumer's notice, without anything about columns that it does not use."""
    event = entry.event
    product = (event.key.contract, event.key.object)
    subscriptions = [affected.subscription for affected in entry.subscriptions]
    failed = list(dict.fromkeys(clause for affected in entry.subscriptions for clause in affected.failed))
    failed.sort(key=lambda clause: -clause.severity.rank)
    described = dict(description)
    facts = {
        PRODUCT: described.pop(PRODUCT, ""),
        USED_FOR: "; ".join(dict.fromkeys(map(_purpose, subscriptions))),
        "needed by": "" if event.failed else _needed_by(subscriptions, event),
        **described,
        **dict(_clause_facts(failed)),
        "cause": f"{'/'.join(cause)} is missing" if cause not in (None, product) and cause else "",
        SUBSCRIPTION: join_limited([subscription.file for subscription in subscriptions], 2),
    }
    owner = facts.pop(OWNER, "")
    title = event.title
    if event.failed:
        title = f"{event.key.object} fails {pluralize(len(failed), 'data check')}: {event.subject}"
    severity = max((clause.severity for clause in failed), key=lambda level: level.rank,
                   default=event.severity)  # fmt: skip
    return replace(
        event,
        key=key,
        subject=notice_subject(event.key, event.subject),
        title=title,
        severity=severity,
        facts=tuple((label, text) for label, text in (*facts.items(), (OWNER, owner)) if text),
        failed=(),
    )


class _CauseBook:
    """Assigns breaches to notices: all of one cause for one consumer are in one notice."""

    def __init__(self, tx: Connection, cause_of: Mapping[Product, Product]) -> None:
        self._cause_of = cause_of
        self._members: dict[Product, list[Product]] = defaultdict(list)
        for product, cause in cause_of.items():
            self._members[cause].append(product)
        # By consumer: the key of each open notice, with its open subjects.
        self._open: dict[str, list[tuple[IncidentKey, set[str]]]] = defaultdict(list)
        for notice in incident_store.unresolved(tx, [NOTICE_CONTRACT]):
            self._open[notice.key.object].append((notice.key, set(notice.open_subjects)))
        self._chosen: dict[tuple[str, Product], IncidentKey] = {}

    def key_for(self, team: str, receiver: str, event: Breach) -> tuple[IncidentKey, Product]:
        """Return the key of the notice for a breach, and the product that causes it."""
        product = (event.key.contract, event.key.object)
        cause = self._cause_of.get(product, product)
        new = notice_key(team, receiver, "/".join(cause))
        subject = notice_subject(event.key, event.subject)
        repeated = next((key for key, subjects in self._open[new.object] if subject in subjects), None)
        if repeated is not None:
            return repeated, cause
        choice = (new.object, cause)
        if choice not in self._chosen:
            self._chosen[choice] = self._existing(new, cause) or new
        return self._chosen[choice], cause

    def _existing(self, new: IncidentKey, cause: Product) -> IncidentKey | None:
        """Return the open notice that has the cause itself, or another breach with this cause."""
        prefixes = tuple(f"{'/'.join(member)}/" for member in (cause, *self._members.get(cause, ())))
        return next(
            (
                key
                for key, subjects in self._open[new.object]
                if key == new or any(subject.startswith(prefixes) for subject in subjects)
            ),
            None,
        )


def record_recoveries(tx: Connection, recoveries: Sequence[Recovery], now: datetime) -> None:
    """Record recoveries of products in the notices of the consumers that were notified of the breaches."""
    by_key: dict[IncidentKey, list[Recovery]] = defaultdict(list)
    for recovery in recoveries:
        for key in _keys(tx, recovery.key, recovery.subject):
            by_key[key].append(_recovery(key, recovery))
    for events in by_key.values():
        record_all(tx, events, (), now)


def _recovery(key: IncidentKey, recovery: Recovery) -> Recovery:
    """Return a recovery of a notice, without the error budget, which is the owners'."""
    facts = tuple(fact for fact in recovery.facts if fact[0] != BUDGET)
    return replace(recovery, key=key, subject=notice_subject(recovery.key, recovery.subject), facts=facts)


def _keys(tx: Connection, key: IncidentKey, subject: str) -> list[IncidentKey]:
    """Return the keys of the notices that have or had a subject of a product's incident."""
    if key.contract.startswith("("):
        return []
    return incident_store.keys_with_subject(tx, NOTICE_CONTRACT, notice_subject(key, subject))


def _own_recovery(key: IncidentKey, event: Breach) -> Recovery:
    subject = notice_subject(event.key, event.subject)
    title = f"{event.key.object} passes the data checks of your columns again: {event.subject}"
    return Recovery(key, subject, event.occurred_at, (), title=title)


def _purpose(subscription: Subscription) -> str:
    return " ".join(subscription.purpose.split()).rstrip(".")


def _needed_by(subscriptions: Sequence[Subscription], event: Breach) -> str:
    from dq.contracts.needs import needed_at

    due_at = datetime.fromisoformat(event.subject)
    instants = [
        instant for subscription in subscriptions if (instant := needed_at(subscription.needs, due_at))
    ]
    return f"{min(instants):%Y-%m-%d %H:%M %Z}" if instants else ""


def _clause_facts(failed: Sequence[FailedClause]) -> Facts:
    """Return a line for each failed clause, and for those with texts about other columns their number."""
    shown = [clause for clause in failed if clause.observed or clause.allowed]
    lines = [
        (
            f"{clause.property} {clause.check}".strip(),
            observed_and_expected(clause.observed, clause.allowed),
        )
        for clause in shown[:_MAX_CLAUSES]
    ]
    remaining = len(failed) - len(lines)
    if remaining:
        lines.append(("and", f"{remaining} more") if lines else ("failed", pluralize(remaining, "check")))
    return tuple(lines)


def subscribers_fact(affected: Sequence[AffectedSubscription]) -> Facts:
    """Return a fact with the consumers that a breach affects, for the message to the owners."""
    names = [f"{entry.subscription.consumer.team} ({_purpose(entry.subscription)})" for entry in affected]
    return (("consumers", join_limited(list(dict.fromkeys(names)), 4)),) if names else ()
