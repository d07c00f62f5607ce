"""Version history of all contracts from Git, cached between builds: only new commits are evaluated.

Git is queried a few times for the whole registry. The cache holds one chain per file: the last commits that
changed it, each with its impact once evaluated. A moved file keeps its chain, matched by content or by the
contract in it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from dq.contracts.access.discovery import YAML
from dq.contracts.access.files import MAX_BYTES, FileRef
from dq.contracts.model import Identity, identity
from dq.contracts.outcome import DqError
from dq.contracts.yaml.parse import parse
from dq.portal import contracts
from dq.portal.contracts import (
    ContractCard,
    EvaluatedSteps,
    FileStep,
    FileSteps,
    VersionChange,
    VersionHistory,
)
from dq.portal.output import PortalRequest, Site, WorkerPool
from dq.portal.pages import templates_digest
from dq.validators.git.commits import CommitChanges, FileChange, HistoryTip, commit_changes, history_tip
from dq.validators.git.repository import Repository, find_repository, read_objects

_NAME = "versions.jsonl"
_MAX_CHANGES = 20
"""Maximum number of changes cached per file; older ones are only in Git."""
_BATCH = 50


@dataclass(frozen=True, slots=True)
class ChainLink:
    """One step of a chain, and its change, or None if it is not evaluated yet."""

    step: FileStep
    change: VersionChange | None = None


@dataclass(slots=True)
class Chain:
    """Last changes of one file, oldest first. `older`: earlier ones are left out.

    `settled` is the digest of the file when it last equalled HEAD; otherwise `uncommitted` is its change
    against HEAD.
    """

    links: list[ChainLink] = field(default_factory=list)
    older: bool = False
    settled: str = ""
    uncommitted: VersionChange | None = None

    def grow(self, step: FileStep) -> None:
        """Append the step of one commit."""
        self.links.append(ChainLink(step))
        self.older = self.older or len(self.links) > _MAX_CHANGES
        del self.links[:-_MAX_CHANGES]
        self.settled = ""


@dataclass(slots=True)
class RegistryChains:
    """Chains of all files of one registry folder, up to the commit `head`."""

    head: HistoryTip | None = None
    chains: dict[str, Chain] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Histories:
    """Version histories by contract file. `problems` are the errors of Git."""

    by_file: Mapping[str, VersionHistory]
    problems: Sequence[DqError] = ()


def histories(
    site: Site,
    request: PortalRequest,
    files: Mapping[str, FileRef],
    cards: Sequence[ContractCard],
    pool: WorkerPool,
) -> Histories:
    """Return the version histories of these contracts, as far as Git has them."""
    before, after = _load(site), dict[str, RegistryChains]()
    by_file: dict[str, VersionHistory] = {}
    problems: list[DqError] = []
    roots: dict[Path, list[ContractCard]] = {}
    for card in cards:
        if card.readable:
            roots.setdefault(files[card.file].root, []).append(card)
    for root, root_cards in roots.items():
        place = os.path.realpath(root)
        reason = contracts.UNREAD
        try:
            repo = find_repository(Path(place))
            if repo is None:
                reason = contracts.NO_REPOSITORY
            else:
                after[place] = _update(repo, place, before.get(place, RegistryChains()))
                by_file |= _evaluate(repo, after[place], place, files, root_cards, request, pool)
                continue
        except DqError as error:
            problems.append(error)
        by_file |= {card.file: VersionHistory(unknown=reason) for card in root_cards}
    site.write_cached(_NAME, "\n".join(_lines(after)))
    return Histories(by_file, problems)


def _update(repo: Repository, place: str, previous: RegistryChains) -> RegistryChains:
    """Return the chains as of HEAD."""
    now = history_tip(repo)
    if previous.head == now:
        return previous
    folder = _folder(repo, place)
    new = None if previous.head is None else commit_changes(repo, folder, now, previous.head)
    chains = previous.chains
    if new is None:
        new, chains = commit_changes(repo, folder, now) or [], {}
    identities = _identities_by_blob(repo, new)
    for commit in new:
        _apply(chains, commit, identities)
    return RegistryChains(now, chains)


def _folder(repo: Repository, place: str) -> str:
    """Return the registry's folder relative to the repository, or "" for its top."""
    named = os.path.relpath(place, os.path.realpath(repo.top)).replace(os.sep, "/")
    return "" if named == "." else named


def _apply(chains: dict[str, Chain], commit: CommitChanges, identities: Mapping[str, Identity]) -> None:
    """Apply one commit to the chains."""
    deleted = {file_change.path: file_change for file_change in commit.files if not file_change.after}
    deleted_chains = {path: chains.pop(path, Chain()) for path in deleted}
    moved = _moved_files(commit, deleted, identities)
    for file_change in commit.files:
        if not file_change.after or not file_change.path.endswith(YAML):
            continue
        source = moved.get(file_change.path)
        if source is not None:
            chains[file_change.path] = deleted_chains[source.path]
            if source.before != file_change.after:
                chains[file_change.path].grow(FileStep(source.before, file_change.after, commit.time))
            continue
        chains.setdefault(file_change.path, Chain()).grow(
            FileStep(file_change.before, file_change.after, commit.time)
        )


def _moved_files(
    commit: CommitChanges, deleted: Mapping[str, FileChange], identities: Mapping[str, Identity]
) -> Mapping[str, FileChange]:
    """Return the deleted file that each new file was moved from in this commit, by the new path."""
    new = [file_change for file_change in commit.files if file_change.after and file_change.before == ""]
    sources: dict[str, FileChange] = {}
    free = dict(deleted)
    # The same bytes, then the same contract in the same major, then the same contract.
    match_keys: tuple[Callable[[str], object], ...] = (
        lambda blob: blob or None,
        identities.get,
        lambda blob: identities[blob][0] if blob in identities else None,
    )
    for match_key in match_keys:
        candidates: dict[Any, list[FileChange]] = {}
        for file_change in free.values():
            candidates.setdefault(match_key(file_change.before or ""), []).append(file_change)
        for file_change in new:
            value = match_key(file_change.after)
            if value is not None and file_change.path not in sources and candidates.get(value):
                sources[file_change.path] = candidates[value].pop(0)
                free.pop(sources[file_change.path].path)
    return sources


def _identities_by_blob(repo: Repository, new: Sequence[CommitChanges]) -> Mapping[str, Identity]:
    """Return the contract identities of added and deleted files by blob, to tell renames.

    Only commits that do both are read.
    """
    blob_ids: set[str] = set()
    for commit in new:
        added = {
            file_change.after
            for file_change in commit.files
            if file_change.before == "" and file_change.path.endswith(YAML)
        }
        removed = {
            file_change.before for file_change in commit.files if not file_change.after and file_change.before
        }
        if added - removed and removed - added:
            blob_ids |= (added ^ removed) - {""}
    identities = {}
    for id_, data in read_objects(repo, blob_ids, "blob", MAX_BYTES).items() if blob_ids else ():
        contract = parse(data, id_).contract
        if contract is not None and contract.id:
            identities[id_] = identity(contract.id, contract.version)
    return identities


def _evaluate(
    repo: Repository,
    registry: RegistryChains,
    place: str,
    files: Mapping[str, FileRef],
    cards: Sequence[ContractCard],
    request: PortalRequest,
    pool: WorkerPool,
) -> dict[str, VersionHistory]:
    """Evaluate new steps and return the history of each file."""
    folder = _folder(repo, place)
    above = f"{folder}/" if folder else ""
    chains: dict[str, Chain | None] = {}
    todo: list[tuple[ContractCard, Chain, FileSteps]] = []
    for card in cards:
        chain = chains[card.file] = registry.chains.get(above + files[card.file].name)
        if chain is not None:
            job = _job(files[card.file], card, chain)
            if job.steps or job.last:
                todo.append((card, chain, job))
    batches = [todo[start : start + _BATCH] for start in range(0, len(todo), _BATCH)]
    work = partial(contracts.evaluate_steps, repo, request.now.date())
    done = 0
    results = pool.run(work, [[job for _, _, job in batch] for batch in batches])
    for batch, batch_results in zip(batches, results, strict=True):
        for (card, chain, job), result in zip(batch, batch_results, strict=True):
            _record_results(chain, job, card.digest, result)
        done += len(batch)
        request.progress("versions", done, len(todo))
    return {file: _history(file_chain) for file, file_chain in chains.items()}


def _job(file: FileRef, card: ContractCard, chain: Chain) -> FileSteps:
    last = chain.links[-1].step.after if chain.settled != card.digest else ""
    return FileSteps(
        file, card.version, tuple(link.step for link in chain.links if link.change is None), last
    )


def _record_results(chain: Chain, job: FileSteps, digest_: str, result: EvaluatedSteps) -> None:
    new_changes = iter(result.changes)
    chain.links = [link if link.change else replace(link, change=next(new_changes)) for link in chain.links]
    if job.last:
        chain.uncommitted = result.uncommitted
        chain.settled = digest_ if result.uncommitted is None else ""


def _history(chain: Chain | None) -> VersionHistory:
    if chain is None:
        return VersionHistory(unknown=contracts.NOT_IN_GIT)
    history = [link.change or contracts.unknown_change(link.step) for link in reversed(chain.links)]
    if chain.uncommitted is not None:
        history.insert(0, chain.uncommitted)
    return VersionHistory(tuple(history), chain.older)


def _load(site: Site) -> dict[str, RegistryChains]:
    """Return the cached chains, or {} if another version of dq wrote them or the file is damaged."""
    registries: dict[str, RegistryChains] = {}
    try:
        lines = site.read_cached(_NAME).decode().splitlines()
        if not lines or json.loads(lines[0]) != {"made_by": templates_digest()}:
            return {}
        registry = RegistryChains()
        for line in lines[1:]:
            record = json.loads(line)
            if "root" in record:
                registry = registries[record["root"]] = RegistryChains(
                    HistoryTip(record["head"], frozenset(record["cut"]))
                )
            else:
                registry.chains[record["path"]] = _chain(record)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return {}
    return registries


def _chain(record: dict[str, Any]) -> Chain:
    links = [
        ChainLink(FileStep(*step), contracts.load_change(change) if change else None)
        for step, change in record["links"]
    ]
    return Chain(links, record["older"], record["settled"])


def _lines(registries: Mapping[str, RegistryChains]) -> Iterator[str]:
    yield json.dumps({"made_by": templates_digest()})
    for root, registry in registries.items():
        if registry.head is not None:
            yield json.dumps(
                {"root": root, "head": registry.head.commit, "cut": sorted(registry.head.shallow_boundary)}
            )
            yield from (_line(path, chain) for path, chain in registry.chains.items())


def _line(path: str, chain: Chain) -> str:
    links = [
        ((link.step.before, link.step.after, link.step.time), link.change and link.change.as_json())
        for link in chain.links
    ]
    return json.dumps({"path": path, "older": chain.older, "settled": chain.settled, "links": links})
