"""Approvals of subscriptions, as far as Git proves them: by a signed commit, or by CODEOWNERS."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from pathlib import Path
from posixpath import join

from dq.contracts.access.discovery import SUBSCRIPTIONS, matches_path
from dq.contracts.model import Contract, Identity
from dq.contracts.outcome import DqError
from dq.contracts.subscriptions import (
    PROOFS,
    Approval,
    ProofTerms,
    Subscription,
    approvers,
    is_approver,
    read,
    widened_terms,
)
from dq.contracts.yaml.parse import parse
from dq.validators.git.base import BaseCommit, path_below
from dq.validators.git.commits import CommitGraph, file_changes
from dq.validators.git.repository import (
    CommitInfo,
    EntryKind,
    Repository,
    entry_content,
    entry_contents,
    find_repository,
    has_ssh_signature,
    is_signed_by,
    read_commits,
    read_objects,
    resolve_commit,
    tree_entries,
    tree_files,
)

CODEOWNERS_FILES = (".github/CODEOWNERS", ".gitlab/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS")


class _Unproven(Exception):
    """An approval does not bind; the argument is the reason."""


@dataclass(frozen=True, slots=True)
class _Version:
    """A commit that changed a subscription's file: the subscription after it, and in each parent, if valid.

    A merge changes only what it has from none of its parents.
    """

    commit: CommitInfo
    after: Subscription | None
    before: tuple[Subscription | None, ...]

    @property
    def changes_terms(self) -> bool:
        """True if it makes the request, or changes more than the approvers."""
        after = None if self.after is None else _terms(self.after)
        return all(parent is None or _terms(parent) != after for parent in self.before)

    def adds(self, name: str) -> bool:
        return _has_approver(self.after, name) and not any(
            _has_approver(parent, name) for parent in self.before
        )


def _has_approver(subscription: Subscription | None, name: str) -> bool:
    return subscription is not None and name in subscription.approvers


def _terms(subscription: Subscription) -> tuple[object, ...]:
    """Return what an approver agrees to. Contact and alerts are the consumer's own."""
    return (
        subscription.identity,
        subscription.consumer.team,
        subscription.reader,
        subscription.purpose,
        subscription.columns,
        subscription.tags,
        subscription.row_filter,
        subscription.start_date,
        subscription.end_date,
    )


def _is_same_request(merged: Subscription, current: Subscription) -> bool:
    return _terms(merged) == _terms(current) and merged.approvers == current.approvers


class ApprovalHistory:
    """Approvals of the subscriptions below a registry's root, by the history of its repository.

    An approver has to be one before the branch with the approval was merged (with `base`: at the base, if it
    is not merged yet), and still be one: no branch can appoint its own approver.
    """

    def __init__(self, root: Path, today: date, base: BaseCommit | None = None) -> None:
        self._root, self._today, self._base = root, today, base
        # Caches: the same few commits decide about many subscriptions.
        self._logs: dict[str, _Log] = {}
        self._contents: dict[tuple[str, str], bytes | None] = {}
        self._contracts: dict[tuple[str, Identity], Contract | None] = {}
        self._approvals: dict[tuple[str, ProofTerms], Approval] = {}

    def approval(self, subscription: Subscription, contract: Contract, terms: ProofTerms) -> Approval:
        """Return the approval that binds the subscription to `contract`, its current contract.

        A problem of the repository is a reason too: what cannot be verified does not bind.
        """
        key = (subscription.file, terms)
        if key not in self._approvals:
            approval = self._evaluate(subscription, contract, terms)
            self._approvals[key] = replace(approval, request=self._request(subscription))
        return self._approvals[key]

    def _request(self, subscription: Subscription) -> str:
        try:
            versions = self._log(self._head).versions(self._inside(subscription.file))
        except (_Unproven, DqError):
            return ""
        for newest in versions[:1]:
            if newest.after is not None and _terms(newest.after) == _terms(subscription):
                return newest.commit.id
        return ""

    def _evaluate(self, subscription: Subscription, contract: Contract, terms: ProofTerms) -> Approval:
        if not subscription.approvers:
            return Approval(reasons=("it names no approver",))
        reasons: list[str] = []
        for name in dict.fromkeys(subscription.approvers):
            if terms.proof == "names" and is_approver(name, contract, self._first_day(subscription)):
                return Approval(name)
            try:
                self._require_approver(name, subscription, contract, "now")
                self._require_other_party(name, subscription, contract, ())
                match terms.proof:
                    case "signature":
                        return Approval(name, self._signed(name, subscription, contract, terms))
                    case "codeowners":
                        return Approval(name, self._reviewed(name, subscription, contract, terms))
                reasons.append(f"the policy's proof {terms.proof!r} is not one of {', '.join(PROOFS)}")
            except _Unproven as reason:
                reasons.append(str(reason))
            except DqError as error:
                reasons.append(f"{error.what.rstrip('.')} ({error.hint.rstrip('.')})")
        return Approval(reasons=tuple(dict.fromkeys(reasons)))

    # Proof by a signed commit.

    def _signed(self, name: str, subscription: Subscription, contract: Contract, terms: ProofTerms) -> str:
        """Return the signed commit with which `name` approved the subscription. Raises _Unproven."""
        log, path = self._log(self._head), self._inside(subscription.file)
        versions = log.versions(path)
        version = next((version for version in versions if version.adds(name)), None)
        if version is None or version.after is None:
            raise _Unproven(f"no commit adds {_shown(name)} to the approvers of {path}")
        commit, short_id = version.commit, version.commit.id[:12]
        if len(commit.parents) != 1:
            raise _Unproven(f"{_shown(name)} was added by {short_id}, which is a merge")
        if version.changes_terms:
            raise _Unproven(
                f"{short_id} adds {_shown(name)} and makes or changes the request itself, as squashing does; "
                "the approver's own signed commit is missing"
            )
        requests = [
            earlier.commit
            for earlier in versions
            if earlier.changes_terms and log.graph.is_ancestor(earlier.commit.id, commit.id)
        ]
        self._require_other_party(name, subscription, contract, requests)
        parents = read_commits(self._repository, commit.parents).values()
        if any(commit.time < earlier.time for earlier in (*requests, *parents)):
            raise _Unproven(f"{short_id} with {_shown(name)} is dated before the request")
        withdrawn = [
            later.commit.id
            for later in versions
            if not _has_approver(later.after, name) and log.graph.is_ancestor(commit.id, later.commit.id)
        ]
        if withdrawn:
            raise _Unproven(f"{_shown(name)} was removed again in {withdrawn[-1][:12]}")
        self._require_same_terms(version.after, subscription, contract, commit.id)
        before = self._before(log, commit.id)
        self._require_approver(name, subscription, contract, before)
        # The keys, too, are those before the branch, without those removed since.
        states = (before, self._base.tip if self._base is not None else self._head)
        for signers in dict.fromkeys(self._content(state, terms.signers) for state in states):
            if signers is None:
                raise _Unproven(f"{terms.signers} was not committed before the approval in {short_id}")
            if not is_signed_by(self._repository, commit, name, signers):
                raise _Unproven(_signature_problem(commit, name, terms.signers))
            if any(is_signed_by(self._repository, request, name, signers) for request in requests):
                raise _Unproven(f"{_shown(name)} signed the request")
            for request in requests if terms.signed_requests else ():
                if not is_signed_by(self._repository, request, request.author, signers):
                    raise _Unproven(
                        f"the request in {request.id[:12]} is not signed with a key of its author "
                        f"{_shown(request.author)} in {terms.signers}"
                    )
        return commit.id

    # Proof by CODEOWNERS and a branch that requires their review.

    def _reviewed(self, name: str, subscription: Subscription, contract: Contract, terms: ProofTerms) -> str:
        """Return the commit that brought the subscription to the protected branch after a review by its code
        owners, or "" for a change whose review is pending. Raises _Unproven.
        """
        path = self._inside(subscription.file)
        if self._base is not None:
            log, before, tip, reviewed = self._log(self._head), self._base.commit, self._base.tip, ""
        else:
            tip = resolve_commit(self._repository, terms.branch)
            log = self._log(tip)
            merged = next(iter(log.versions(path)), None)
            if merged is None or merged.after is None or not _is_same_request(merged.after, subscription):
                raise _Unproven(f"{path} is not merged into {terms.branch}")
            reviewed = merged.commit.id
            before = self._before(log, reviewed)
            self._require_same_terms(merged.after, subscription, contract, reviewed)
        # Each change under review counts as a request, and each earlier change of the terms.
        requests = [
            version.commit
            for version in log.versions(path)
            if len(version.commit.parents) < 2
            and (version.changes_terms or not log.graph.is_ancestor(version.commit.id, before))
        ]
        self._require_other_party(name, subscription, contract, requests)
        approving = self._require_approver(name, subscription, contract, before)
        for state in dict.fromkeys((before, tip)):
            self._require_owners(name, path, state, approvers(approving, self._first_day(subscription)))
        return reviewed

    def _require_owners(self, name: str, path: str, commit: str, allowed: Sequence[str]) -> None:
        """Raise _Unproven unless `name` owns the path, and every other owner may approve as well."""
        repo = self._repository
        by_file = {
            file: entry
            for file in CODEOWNERS_FILES
            if (entry := tree_entries(repo, [commit], file).get(commit)) is not None
        }
        if len(by_file) != 1:
            count = "more than one CODEOWNERS" if by_file else "no CODEOWNERS"
            raise _Unproven(f"commit {commit[:12]} has {count}")
        ((file, data),) = entry_contents(repo, by_file)
        owners = codeowners_of((data or b"").decode("utf-8", "replace"), path)
        if owners is None:
            raise _Unproven(f"{file} has sections or exclusions, which dq does not evaluate")
        if not owners:
            raise _Unproven(f"{file} in commit {commit[:12]} names no owner of {path}")
        if not any(name in owner_names(owner) for owner in owners):
            raise _Unproven(f"{_shown(name)} is not an owner of {path} in {file}")
        other = next((owner for owner in owners if owner_names(owner).isdisjoint(allowed)), None)
        if other is not None:
            raise _Unproven(f"{other} owns {path} in {file}, but may not approve")

    # Conditions of both.

    def _require_approver(
        self, name: str, subscription: Subscription, contract: Contract, commit: str
    ) -> Contract:
        """Return the contract at a commit (or `now`). Raises _Unproven unless `name` may approve by it."""
        approving = contract if commit == "now" else self._contract_at(commit, contract)
        moment = f"was not, at {commit[:12]} before the approval," if commit != "now" else "is not"
        if approving is None:
            raise _Unproven(f"contract {contract.id!r} did not exist at {commit[:12]}, before the approval")
        if name not in approvers(approving, self._first_day(subscription)):
            raise _Unproven(
                f"{_shown(name)} {moment} an owner, steward or approver of contract {contract.id!r}"
            )
        return approving

    def _first_day(self, subscription: Subscription) -> date:
        """Return the day on which an approver has to be in the team: today, or a later start."""
        return max(self._today, subscription.start_date)

    def _require_other_party(
        self, name: str, subscription: Subscription, contract: Contract, requests: Iterable[CommitInfo]
    ) -> None:
        """Raise _Unproven if the approver is the consumer, or wrote one of the requests."""
        aliases = {_fold(name)}
        for member in contract.members():
            names = {_fold(text) for text in (member.username, member.name) if text}
            if _fold(name) in names:
                aliases |= names
        consumer = (subscription.consumer.team, subscription.consumer.contact or "")
        if not aliases.isdisjoint(map(_fold, consumer)):
            raise _Unproven(f"{_shown(name)} is the consumer")
        for request in requests:
            if not aliases.isdisjoint(map(_fold, request.people)):
                raise _Unproven(f"{_shown(name)} wrote the request, in {request.id[:12]}")

    def _require_same_terms(
        self, approved: Subscription, subscription: Subscription, contract: Contract, commit: str
    ) -> None:
        contract_then = self._contract_at(commit, contract)
        if contract_then is not None and contract_then.identity != contract.identity:
            contract_then = None
        wider = widened_terms(approved, subscription, contract_then, contract)
        if wider:
            raise _Unproven(f"{', '.join(wider)} changed since the approval in {commit[:12]}")

    # State of the repository.

    @cached_property
    def _repository(self) -> Repository:
        repo = self._base.repo if self._base is not None else find_repository(self._root)
        if repo is None:
            raise _Unproven("the registry is not in a Git repository")
        return repo

    @cached_property
    def _head(self) -> str:
        return resolve_commit(self._repository, "HEAD")

    @cached_property
    def _prefix(self) -> str:
        return path_below(self._root, self._repository.top)

    def _inside(self, file: str) -> str:
        return join(self._prefix, file)

    def _log(self, tip: str) -> _Log:
        """Return the history up to HEAD, or up to the tip of a branch."""
        if tip not in self._logs:
            mainline = self._base.commit if self._base is not None and tip == self._head else tip
            self._logs[tip] = _Log(self._repository, tip, mainline, self._inside(SUBSCRIPTIONS))
        return self._logs[tip]

    def _before(self, log: _Log, commit: str) -> str:
        """Return the commit that a branch with `commit` was, or would be, merged into. Raises _Unproven."""
        before = log.graph.mainline_before(commit)
        if before is None:
            raise _Unproven(f"{commit[:12]} is the first commit, before which no contract exists")
        return before

    def _content(self, commit: str, file: str) -> bytes | None:
        """Return a file below the registry's root at a commit, or None if it is not a regular file there."""
        key = (commit, file)
        if key not in self._contents:
            entries = tree_entries(self._repository, [commit], self._inside(file))
            self._contents[key] = entry_content(self._repository, entries.get(commit))
        return self._contents[key]

    def _contract_at(self, commit: str, contract: Contract) -> Contract | None:
        """Return the contract at a commit, else the newest major with its id, or None."""
        key = (commit, contract.identity)
        if key not in self._contracts:
            data = self._content(commit, contract.file)
            same = parse(data, contract.file).contract if data is not None else None
            if same is None or same.identity != contract.identity:
                same = self._find_contract(commit, contract)
            self._contracts[key] = same
        return self._contracts[key]

    def _find_contract(self, commit: str, contract: Contract) -> Contract | None:
        """Search the whole registry at a commit: the contract's file may have been moved since."""
        repo, prefix = self._repository, self._prefix
        (files,) = tree_files(repo, [commit], prefix)
        inside = {
            name: entry
            for name, entry in files.items()
            if entry.kind is EntryKind.FILE and (not prefix or name.startswith(f"{prefix}/"))
        }
        needle = contract.id.encode("utf-8", "surrogatepass")
        parsed = (
            parse(data, name).contract
            for name, data in entry_contents(repo, inside)
            if data is not None and needle in data
        )
        majors = {other.identity: other for other in parsed if other is not None and other.id == contract.id}
        newest = max(majors, key=lambda identity: (len(identity[1]), identity[1]), default=None)
        return majors.get(contract.identity) or (majors[newest] if newest else None)


class _Log:
    """The history of all subscriptions up to a tip, read at once."""

    def __init__(self, repo: Repository, tip: str, mainline: str, folder: str) -> None:
        self.graph = CommitGraph(repo, tip, mainline)
        self._repo, self._changes = repo, file_changes(repo, tip, folder)
        self._versions: dict[str, list[_Version]] = {}

    def versions(self, path: str) -> list[_Version]:
        """Return the versions of a file, newest first; empty if it was never committed."""
        if path not in self._versions:
            changes = self._changes.get(path, [])
            ids = {id_ for change in changes for id_ in (change.after, *change.before)} - {""}
            parsed = {id_: _parsed(data, path) for id_, data in read_objects(self._repo, ids, "blob").items()}
            self._versions[path] = [
                _Version(change.commit, parsed.get(change.after), tuple(map(parsed.get, change.before)))
                for change in changes
            ]
        return self._versions[path]


def _signature_problem(commit: CommitInfo, name: str, signers: str) -> str:
    """Return why a commit is not signed by `name`. Git hosts rewrite commits without their signatures."""
    if not commit.signature:
        problem = "is not signed, as after squashing or rebasing"
    elif not has_ssh_signature(commit):
        problem = "is not signed with an SSH key; Git hosts sign what they squash with a key of their own"
    else:
        return f"{commit.id[:12]} is not signed with a key of {_shown(name)} in {signers}"
    return f"{commit.id[:12]}, which adds {_shown(name)}, {problem}"


def _parsed(data: bytes, path: str) -> Subscription | None:
    subscription, findings = read(data, path)
    return None if any(finding.severity.blocks for finding in findings) else subscription


def _fold(text: str) -> str:
    return unicodedata.normalize("NFKC", text).strip().casefold()


def _shown(name: str) -> str:
    """Return a name for a message; letters that only look like ASCII are escaped."""
    return repr(name) if name.isascii() else ascii(name)


# CODEOWNERS, as GitHub and GitLab read it: the last pattern that matches a file decides.


_OWNER = re.compile(r"@[A-Za-z0-9][\w.-]*(/[\w.-]+)?|[\w.+-]+@[\w-]+(\.[\w-]+)+", re.ASCII)


def codeowner(name: str) -> str | None:
    """Return the owner for a name in a contract: an address or a user with `@`; None if it cannot be one."""
    owner = name if "@" in name else f"@{name}"
    return owner if _OWNER.fullmatch(owner) else None


def owner_names(owner: str) -> frozenset[str]:
    """Return the names that an owner has in a contract: `@acme/sales` is `acme/sales` and `sales`."""
    plain = owner.removeprefix("@")
    return frozenset({owner, plain, plain.rpartition("/")[2]} if owner.startswith("@") else {owner})


def codeowners_of(text: str, path: str) -> list[str] | None:
    """Return the owners of a path, or an empty list.

    None for a file with GitLab's sections or exclusions, where more than one line decides.
    """
    owners: list[str] = []
    for line in text.splitlines():
        pattern, *names = _tokens(line) or [""]
        if pattern.startswith(("[", "^[", "!")):
            return None
        if pattern and _covers(pattern, path):
            owners = names
    return owners


_TOKEN = re.compile(r"(?:\\.|[^\s\\])+")


def _tokens(line: str) -> list[str]:
    return list(_without_comment(_TOKEN.findall(line)))


def _without_comment(tokens: Iterable[str]) -> Iterator[str]:
    for token in tokens:
        if token.startswith("#"):
            return
        yield re.sub(r"\\([ #])", r"\1", token)


def _covers(pattern: str, path: str) -> bool:
    anchored = "/" in pattern.rstrip("/")
    steps = ("" if anchored else "**/") + pattern.removeprefix("/")
    if steps.endswith("/"):
        return matches_path(f"{steps}**", path)
    # `docs/*` has no files of folders below, `docs` has all.
    below = "*" not in steps.rpartition("/")[2]
    return matches_path(steps, path) or (below and matches_path(f"{steps}/**", path))
