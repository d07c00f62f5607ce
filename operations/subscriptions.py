"""Subscriptions of a registry, and the contracts that they refer to."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from dq.contracts.access import discovery
from dq.contracts.access.discovery import SUBSCRIPTIONS, candidates, has_contract_name
from dq.contracts.access.files import POLICY_FILE, FileRejected, exists, read, write
from dq.contracts.model import Contract, Identity
from dq.contracts.odcs import MISPLACED_SUBSCRIPTION, is_contract
from dq.contracts.outcome import Finding, UsageError
from dq.contracts.subscriptions import Approval, ProofTerms, Subscription, file_name
from dq.contracts.subscriptions import read as typed
from dq.contracts.yaml.parse import parse
from dq.contracts.yaml.portable import block
from dq.operations.registry_files import parse_policy, read_policy_text
from dq.operations.runtime.context import call_context, parse_duration, registry_root
from dq.validators.context import SubscriptionContext
from dq.validators.lint import Linter, SubscriptionFiles, SubscriptionLoader, lint_subscriptions, load_rules
from dq.validators.rule import RuleScope
from dq.validators.rules.subscriptions import subscription_without_approver

if TYPE_CHECKING:
    from dq.validators.git.base import BaseCommit
    from dq.validators.git.repository import OpenedBranch


# Subscriptions of a registry, and lookup of their contracts by id.

Content = bytes | FileRejected


@dataclass(frozen=True, slots=True)
class NamedContracts:
    """Contracts of a registry by identity, and the ids that seem to be in files that cannot be read."""

    contracts: Mapping[Identity, Contract] = field(default_factory=dict)
    unclear: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class AgreedSubscriptions:
    """Approved subscriptions: without blocking findings, or expired.

    `findings` are the blocking findings of the others, and `unclear` their files. `origin` returns the text
    of a file with its commit, for a plan.
    """

    subscriptions: tuple[Subscription, ...] = ()
    findings: tuple[Finding, ...] = ()
    unclear: frozenset[str] = frozenset()
    origin: Callable[[str], str] = str


def contents(root: Path) -> dict[str, Content]:
    """Return the contents of the subscription files below a registry's root, by relative name, in order."""
    by_name: dict[str, Content] = {}
    for file in discovery.subscriptions(root):
        try:
            data = read(file)
        except FileRejected as refused:
            by_name[file.name] = refused
            continue
        if not is_contract(data):
            by_name[file.name] = data
    return by_name


EXPIRED = "subscription-expired"


def agreed_subscriptions(
    linter: Linter, subscription_files: SubscriptionFiles, ids: Collection[str]
) -> AgreedSubscriptions:
    """Return the approved subscriptions among the files; `ids` are those of the registry's contracts.

    A subscription with an error is unclear instead of approved, unless it is valid in itself and expired.
    """
    all_findings = lint_subscriptions(linter, subscription_files, ids)
    # An expired subscription is still processed, even if the policy makes it an error.
    findings = tuple(
        finding for finding in all_findings if finding.severity.blocks and finding.rule != EXPIRED
    )
    refused_files = {finding.at.file for finding in findings}
    approved: list[Subscription] = []
    unclear: set[str] = set()
    for file, data in subscription_files.files.items():
        subscription, form_findings = (None, []) if isinstance(data, FileRejected) else typed(data, file)
        is_valid = subscription is not None and not any(finding.severity.blocks for finding in form_findings)
        # An expired subscription counts as expired despite other findings.
        if (
            subscription is not None
            and is_valid
            and (file not in refused_files or subscription.is_expired(linter.today))
        ):
            approved.append(subscription)
        else:
            unclear.add(file)
    by_file = {subscription.file: subscription for subscription in approved}

    def origin(file: str) -> str:
        approval = subscription_approval(linter, by_file[file], subscription_files)
        return f"{file}, {approval.origin}" if approval is not None and approval.origin else file

    return AgreedSubscriptions(tuple(approved), findings, frozenset(unclear), origin)


def load_subscriptions(root: Path) -> tuple[list[Subscription], list[Finding]]:
    """Load the valid subscriptions of a registry, by file, and findings for the others."""
    subscriptions: list[Subscription] = []
    findings: list[Finding] = []
    for name, data in contents(root).items():
        if isinstance(data, FileRejected):
            findings.append(data.finding(name))
            continue
        subscription, problems = typed(data, name)
        problems = [problem for problem in problems if problem.severity.blocks]
        findings += problems
        subscriptions += [subscription] if subscription is not None and not problems else []
    return subscriptions, findings


def ids_in(files: Mapping[str, Content], selected_names: Collection[str]) -> set[str]:
    """Return the ids of contracts that these subscription files refer to."""
    parsed_subscriptions = (
        typed(data, name)[0] for name in selected_names if isinstance(data := files[name], bytes)
    )
    return {subscription.contract for subscription in parsed_subscriptions if subscription is not None}


def named_contracts(root: Path, ids: Collection[str]) -> NamedContracts:
    """Return the contracts below a registry's root with one of these ids; only they are parsed."""
    if not ids:
        return NamedContracts()
    parsed = _parse_matching(
        root, ids, lambda data: {raw_id.decode("utf-8", "replace") for raw_id in _IDS.findall(data)}
    )
    missing = set(ids) - {id_ for id_, _ in parsed.contracts} - parsed.unclear
    if not missing:
        return parsed
    # An id may not be on the line of its key, or may be quoted with spaces: search the raw text.
    quoted = _parse_matching(
        root,
        missing,
        lambda data: {
            missing_id for missing_id in missing if missing_id.encode("utf-8", "surrogatepass") in data
        },
    )
    return NamedContracts({**parsed.contracts, **quoted.contracts}, parsed.unclear | quoted.unclear)


_IDS = re.compile(rb"""\bid["']?[ \t]*:[ \t]*(?:&\S+[ \t]+)?["']?([^"'\s,{}#]+)""")


def _parse_matching(root: Path, ids: Collection[str], ids_of: Callable[[bytes], set[str]]) -> NamedContracts:
    """Parse the contracts whose bytes may contain one of the ids."""
    by_identity: dict[Identity, Contract] = {}
    unclear: set[str] = set()
    for data, name in _texts(root):
        if (declared_ids := ids_of(data)).isdisjoint(ids):
            continue
        contract = parse(data, name).contract
        if contract is None or (contract.id in ids and not contract.version):
            unclear |= declared_ids & set(ids)
        elif contract.id in ids:
            by_identity.setdefault(contract.identity, contract)
    return NamedContracts(by_identity, frozenset(unclear))


def _texts(root: Path) -> Iterator[tuple[bytes, str]]:
    """Yield the bytes of every readable contract, with its name relative to the root."""
    for file, data in candidates(root):
        if data is None:
            try:
                data = read(file)
            except FileRejected:
                continue
        elif not is_contract(data):
            continue
        yield data, file.name


# Subscriptions checked by a run of the gate, with the contracts that they refer to.


def split(paths: list[Path], root: Path) -> tuple[list[Path], list[Path]]:
    """Split the paths into contract paths, and subscriptions or folders of them.

    The registry's policy is in neither: a shell glob may include it, and it is read anyway.
    """
    top = Path(os.path.realpath(root))
    subscriptions_folder = top / SUBSCRIPTIONS
    subscription_paths = [
        path
        for path in paths
        if _without_links(path).is_relative_to(subscriptions_folder) and not has_contract_name(path.name)
    ]
    return [
        path for path in paths if path not in subscription_paths and _without_links(path) != top / POLICY_FILE
    ], subscription_paths


def make_gather(root: Path, paths: list[Path], today: date) -> SubscriptionLoader:
    """Return a function for the subscriptions at or below the paths, and those of the contracts that were
    read. Approvers who left before `today` do not count.
    """

    def gather(ids: Collection[str]) -> SubscriptionFiles:
        files = contents(root)
        if not files:
            return SubscriptionFiles()
        # Imported here: most runs evaluate no approvals.
        from dq.validators.git.approvals import ApprovalHistory

        top = Path(os.path.realpath(root))
        resolved = [_without_links(path) for path in paths]
        names = {name for name in files if any((top / name).is_relative_to(path) for path in resolved)}
        names |= {
            name for name, data in files.items() if name not in names and _names_contract(name, data, ids)
        }
        return replace(
            _subscription_files(root, files, names), approval_of=ApprovalHistory(root, today).approval
        )

    return gather


def changed_subscriptions(root: Path, base: BaseCommit, today: date) -> SubscriptionLoader:
    """Return a function for the subscriptions that the branch adds or changes.

    Approvers who left before `today` do not count.
    """

    from dq.validators.git.approvals import ApprovalHistory
    from dq.validators.git.base import changed_subscriptions as by_branch
    from dq.validators.git.base import contracts_at_base

    def gather(_: Collection[str]) -> SubscriptionFiles:
        files = contents(root)
        names = by_branch(base, files)
        return replace(
            _subscription_files(root, files, names),
            base_contracts=contracts_at_base(base, ids_in(files, names)),
            approval_of=ApprovalHistory(root, today, base).approval,
        )

    return gather


def _subscription_files(
    root: Path, files: Mapping[str, Content], names: Collection[str]
) -> SubscriptionFiles:
    """Return the files with the selected names and the contracts that these refer to."""
    if not names:
        return SubscriptionFiles()
    contracts = named_contracts(root, ids_in(files, names))
    return SubscriptionFiles(files, frozenset(names), contracts.contracts, contracts.unclear)


def subscription_approval(
    linter: Linter, subscription: Subscription, files: SubscriptionFiles
) -> Approval | None:
    """Return the approval of a subscription on the policy's terms, or None if its contract is unknown."""
    contract = files.contracts.get(subscription.identity)
    if contract is None or files.approval_of is None:
        return None
    return files.approval_of(subscription, contract, _proof_terms(linter, subscription.file, contract))


def _proof_terms(linter: Linter, file: str, contract: Contract) -> ProofTerms:
    """Return the policy's terms for approvals of a subscription file."""
    enabled = linter.enabled_rules(RuleScope.SUBSCRIPTION, file, contract.domain)
    arguments = next(
        (rule.arguments for rule in enabled if rule.rule is subscription_without_approver.RULE),
        {subscription_without_approver.PROOF.name: "names"},
    )
    return subscription_without_approver.proof_terms(SubscriptionContext(linter.today, arguments=arguments))


def _names_contract(name: str, data: Content, ids: Collection[str]) -> bool:
    if not isinstance(data, bytes) or not any(
        contract_id.encode("utf-8", "surrogatepass") in data for contract_id in ids if contract_id
    ):
        return False
    return not ids_in({name: data}, [name]).isdisjoint(ids)


def _without_links(path: Path) -> Path:
    """Return the path with the links of its parents resolved, but not its own."""
    return Path(os.path.realpath(path.parent)) / path.name if path.name else Path(os.path.realpath(path))


# List of subscriptions.


class SubscriptionState(StrEnum):
    """State of a subscription on a day."""

    ACTIVE = "active"
    ENDING = "ending"
    COMING = "coming"
    OVER = "over"


def load_approvals(root: Path, subscriptions: Iterable[Subscription], today: date) -> dict[str, Approval]:
    """Return the approvals of subscriptions of a registry on its policy's terms, by file.

    Those without a contract are left out. Raises UsageError for an invalid policy.
    """
    by_file = {subscription.file: subscription for subscription in subscriptions}
    if not by_file:
        return {}
    # Imported here: few commands evaluate approvals.
    from dq.validators.git.approvals import ApprovalHistory

    contracts = named_contracts(root, {subscription.contract for subscription in by_file.values()})
    files = SubscriptionFiles(
        contracts=contracts.contracts, approval_of=ApprovalHistory(root, today).approval
    )
    rules = load_rules()
    linter = Linter(rules, parse_policy(read_policy_text(root, None), rules), today)
    approvals = {file: subscription_approval(linter, own, files) for file, own in by_file.items()}
    return {file: approval for file, approval in approvals.items() if approval is not None}


ListedSubscriptions = tuple[tuple[Subscription, SubscriptionState], ...]
"""Subscriptions with their states."""


@dataclass(frozen=True, slots=True)
class SubscriptionsOutcome:
    """Subscriptions of the registry at `root`, and findings for unreadable ones.

    `notes` name skipped files. `approvals` are those of subscriptions whose contract exists, by file.
    """

    root: Path
    subscriptions: ListedSubscriptions
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()
    approvals: Mapping[str, Approval] = field(default_factory=dict)

    @property
    def exit_code(self) -> int:
        """Exit code of `dq subscriptions`: 3 a subscription cannot be read."""
        return 3 if self.findings else 0

    def as_dict(self) -> dict[str, object]:
        """Return the output of `dq subscriptions --format json` as JSON values."""
        return {
            "subscriptions": [
                {**_as_dict(subscription, state), "approval": _approval_as_dict(self.approvals, subscription)}
                for subscription, state in self.subscriptions
            ],
            "findings": [finding.as_dict() for finding in self.findings],
        }


def list_subscriptions(
    path: Path | str = ".",
    *,
    contract: str | None = None,
    team: str | None = None,
    within: str | None = None,
    folder: Path | str | None = None,
    now: datetime | None = None,
) -> SubscriptionsOutcome:
    """List the subscriptions of a registry, with start and end dates, as `dq subscriptions` does.

    `path` is a folder or file of the registry, `contract` an id, `team` a consumer. With `within`, e.g. 30d,
    only those that are active and end within that time. `folder` replaces the working folder; `now` is an
    aware instant.

    Raises UsageError for an invalid duration or policy.
    """
    context, (place,) = call_context(path, folder, now)
    today, root = context.now().date(), registry_root(place)
    soon = parse_duration(within, "--within") if within is not None else timedelta(days=30)
    subscriptions, findings = load_subscriptions(root)
    rows = [
        (subscription, _state(subscription, today, soon))
        for subscription in subscriptions
        if contract in (None, subscription.contract) and team in (None, subscription.consumer.team)
    ]
    if within is not None:
        rows = [row for row in rows if row[1] is SubscriptionState.ENDING]
    rows.sort(key=lambda row: (row[0].identity, row[0].consumer.team, row[0].start_date, row[0].file))
    skipped = [file for file in discovery.discover_below(root).skipped if file.kind == MISPLACED_SUBSCRIPTION]
    notes = (discovery.skipped_summary(skipped),) if skipped else ()
    approvals = load_approvals(root, (subscription for subscription, _ in rows), today)
    return SubscriptionsOutcome(root, tuple(rows), tuple(findings), notes, approvals)


def _state(subscription: Subscription, today: date, soon: timedelta) -> SubscriptionState:
    if subscription.is_expired(today):
        return SubscriptionState.OVER
    if not subscription.is_active(today):
        return SubscriptionState.COMING
    ending = subscription.end_date is not None and subscription.end_date - today <= soon
    return SubscriptionState.ENDING if ending else SubscriptionState.ACTIVE


def _approval_as_dict(approvals: Mapping[str, Approval], subscription: Subscription) -> object:
    return approvals[subscription.file].as_dict() if subscription.file in approvals else None


def _as_dict(subscription: Subscription, state: SubscriptionState) -> dict[str, object]:
    return {
        "contract": subscription.contract,
        "major": subscription.major,
        "consumer": {
            "team": subscription.consumer.team,
            "account": subscription.consumer.account,
            "principal": subscription.consumer.principal,
            "contact": subscription.consumer.contact,
        },
        "purpose": subscription.purpose,
        "columns": list(subscription.columns),
        "tags": list(subscription.tags),
        "row_filter": subscription.row_filter,
        "since": subscription.start_date.isoformat(),
        "until": subscription.end_date.isoformat() if subscription.end_date else None,
        "approvers": subscription.approvers,
        "state": state.value,
        "file": subscription.file,
    }


# New subscriptions.


@dataclass(frozen=True, slots=True)
class SubscribeOutcome:
    """A new subscription: its file below the registry's root, its text, and the branch if it was opened.

    `approval_needed` is the reason why an approval is needed, and who may approve; or "".
    """

    root: Path
    file: str
    text: str
    approval_needed: str = ""
    branch: OpenedBranch | None = None
    notes: tuple[str, ...] = ()

    exit_code: ClassVar[int] = 0

    def as_dict(self) -> dict[str, object]:
        """Return the output of `dq subscribe --format json` as JSON values."""
        return {
            "file": self.file,
            "text": self.text,
            "approval_needed": self.approval_needed or None,
            "branch": self.branch.name if self.branch else None,
            "commit": self.branch.commit if self.branch else None,
            "pushed": self.branch is not None and not self.branch.unpushed,
        }


def subscribe(
    contract: str,
    path: Path | str = ".",
    *,
    team: str,
    purpose: str,
    major: int | None = None,
    columns: Sequence[str] = (),
    tags: Sequence[str] = (),
    account: str | None = None,
    principal: str | None = None,
    contact: str | None = None,
    row_filter: str | None = None,
    since: date | None = None,
    until: date | None = None,
    approvers: Sequence[str] = (),
    alerts: Mapping[str, object] | None = None,
    needs: Mapping[str, object] | None = None,
    open_branch: bool = False,
    folder: Path | str | None = None,
    now: datetime | None = None,
) -> SubscribeOutcome:
    """Write the subscription of a team to a contract of a registry, as `dq subscribe` does.

    `contract` is an id, `path` a folder or file of the registry. The file is `subscriptions/ID/TEAM.yaml`.
    `major` defaults to the newest, `since` to today in UTC. `alerts` and `needs` have the keys of the file,
    e.g. `{"channel": "#billing", "tool": "slack"}` and `{"by": "07:30", "timezone": "Europe/Berlin"}`. With
    `open_branch`, the file is committed on a new branch, which is pushed if there is a remote, and the work
    tree is not changed. `folder` replaces the working folder; `now` is an aware instant.

    Raises UsageError for an unknown contract, for terms that `dq validate` rejects, with all findings, for
    approvers if the policy requires a signed commit of theirs, and if the file or the branch exists.
    """
    context, (place,) = call_context(path, folder, now)
    root, today = registry_root(place), context.now().date()
    contracts = named_contracts(root, {contract}).contracts
    majors = sorted(int(identity[1]) for identity in contracts if identity[1].isdecimal())
    if not majors:
        raise UsageError(f"there is no contract {contract!r} in {root}.", "Pass the id of a contract.")
    if major is not None and major not in majors:
        raise UsageError(
            f"contract {contract!r} has no major version {major}.", f"It has {', '.join(map(str, majors))}."
        )
    major = majors[-1] if major is None else major
    consumer = {"team": team, "account": account, "principal": principal, "contact": contact}
    keys = {
        "contract": contract,
        "major": major,
        "consumer": {key: value for key, value in consumer.items() if value is not None},
        "purpose": purpose,
        "columns": list(columns),
        "tags": list(tags),
        "rowFilter": row_filter,
        "startDate": since or today,
        "endDate": until,
        "approvers": list(approvers),
        "alerts": alerts,
        "needs": needs,
    }
    present = {key: value for key, value in keys.items() if value not in (None, [])}
    text = "".join(f"{line}\n" for line in block(present, ""))
    suffix = "" if major == majors[0] else f"-{major}"
    file = f"{SUBSCRIPTIONS}/{file_name(contract)}/{file_name(team)}{suffix}.yaml"
    approval_needed, warnings = _require_valid(root, file, text.encode(), contracts, today)
    branch = None
    target = root / file
    if exists(file, root):
        raise UsageError(f"{file} already exists.", "Change it there; wider terms need a new approval.")
    if open_branch:
        branch = _open_branch(root, file, text.encode(), contract, team)
    else:
        write(target, text.encode())
    notes = (*warnings, *context.messages.notes)
    return SubscribeOutcome(root, file, text, approval_needed, branch, notes)


def _require_valid(
    root: Path, file: str, data: bytes, contracts: Mapping[Identity, Contract], today: date
) -> tuple[str, tuple[str, ...]]:
    """Return why the subscription needs an approval, and who may approve, or ""; and its warnings.

    Raises UsageError if it is invalid, or names an approver whose signed commit is required.
    """
    # Imported here: reading subscriptions needs no history.
    from dq.validators.git.approvals import ApprovalHistory

    rules = load_rules()
    linter = Linter(rules, parse_policy(read_policy_text(root, None), rules), today)
    files = SubscriptionFiles(
        {**contents(root), file: data},
        frozenset((file,)),
        contracts,
        approval_of=ApprovalHistory(root, today).approval,
    )
    subscription, _ = typed(data, file)
    contract = contracts.get(subscription.identity) if subscription is not None else None
    # A name in the request keeps the approver from adding it in a signed commit.
    names_signer = (
        subscription is not None
        and bool(subscription.approvers)
        and contract is not None
        and _proof_terms(linter, file, contract).proof == "signature"
    )
    wrong: list[str] = []
    unapproved: list[str] = []
    warnings: list[str] = []
    for finding in lint_subscriptions(linter, files, {id_ for id_, _ in contracts}):
        text = f"{finding.message} {finding.hint}"
        if not finding.severity.blocks:
            warnings.append(text)
        elif finding.rule == subscription_without_approver.RULE.id and not names_signer:
            unapproved.append(text)
        else:
            wrong.append(text)
    if wrong:
        raise UsageError("the subscription is not valid:", details=wrong)
    return "".join(unapproved), tuple(warnings)


def _open_branch(root: Path, file: str, data: bytes, contract: str, team: str) -> OpenedBranch:
    from dq.validators.git import repository

    repo = repository.find_repository(root)
    if repo is None:
        raise UsageError(f"{root} is not in a Git repository.", "Omit --open, or run it in a clone.")
    name = f"subscribe/{file_name(contract)}-{file_name(team)}"
    inside = (root.relative_to(repo.top) / file).as_posix()
    return repository.open_branch(repo.top, name, inside, data, f"subscribe {team} to {contract}")
