"""What each version of every contract broke, kept between builds: judged is only what is new in Git.

Git is asked a few questions for a whole registry. What it told is kept as chains: of each file the last
commits that changed its bytes, each with its judgement once there is one. A file that moves takes its chain
along, by its bytes or by the contract that it holds.
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
from dq.contracts.access.files import MAX_BYTES, Found
from dq.contracts.model import Identity, identity
from dq.contracts.outcome import DqError
from dq.contracts.yaml.parse import parse
from dq.portal import contracts
from dq.portal.contracts import Card, FileStep, FileSteps, JudgedSteps, VersionChange, VersionHistory
from dq.portal.output import Crew, PortalRequest, Site
from dq.portal.pages import templates_digest
from dq.validators.git.history import CommitChanges, FileChange, Head, changes, head
from dq.validators.git.repository import Repository, find, objects

_NAME = "versions.jsonl"
_MOST = 20
"""So many changes of a file are kept; older ones stand in Git."""
_BATCH = 50


@dataclass(frozen=True, slots=True)
class ChainLink:
    """One step of a chain, and what it broke; None where it is not judged yet."""

    step: FileStep
    change: VersionChange | None = None


@dataclass(slots=True)
class Chain:
    """The last changes of one file, oldest first. `older`: there were more. `settled` is the digest of the
    file when it was last what HEAD has; else `uncommitted` is what it changes beyond that."""

    links: list[ChainLink] = field(default_factory=list)
    older: bool = False
    settled: str = ""
    uncommitted: VersionChange | None = None

    def grow(self, step: FileStep) -> None:
        """Adds what one commit did."""
        self.links.append(ChainLink(step))
        self.older = self.older or len(self.links) > _MOST
        del self.links[:-_MOST]
        self.settled = ""


@dataclass(slots=True)
class RegistryChains:
    """What is known of one folder of contracts in Git: up to which commit, and each file's chain."""

    head: Head | None = None
    chains: dict[str, Chain] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Histories:
    """The history of each contract's file. `problems` are why Git could not tell, with mends."""

    of: Mapping[str, VersionHistory]
    problems: Sequence[DqError] = ()


def histories(
    held: Site, request: PortalRequest, files: Mapping[str, Found], cards: Sequence[Card], crew: Crew
) -> Histories:
    """What each version of these contracts broke, as far as Git can tell."""
    before, after = _load(held), dict[str, RegistryChains]()
    found: dict[str, VersionHistory] = {}
    problems: list[DqError] = []
    roots: dict[Path, list[Card]] = {}
    for card in cards:
        if card.readable:
            roots.setdefault(files[card.file].root, []).append(card)
    for root, some in roots.items():
        place = os.path.realpath(root)
        reason = contracts.UNREAD
        try:
            repo = find(Path(place))
            if repo is None:
                reason = contracts.NO_REPOSITORY
            else:
                after[place] = _updated(repo, place, before.get(place, RegistryChains()))
                found |= _judged(repo, after[place], place, files, some, request, crew)
                continue
        except DqError as error:
            problems.append(error)
        found |= {card.file: VersionHistory(unknown=reason) for card in some}
    held.keep(_NAME, "\n".join(_lines(after)))
    return Histories(found, problems)


def _updated(repo: Repository, place: str, known: RegistryChains) -> RegistryChains:
    """The chains as of HEAD."""
    now = head(repo)
    if known.head == now:
        return known
    folder = _folder(repo, place)
    new = None if known.head is None else changes(repo, folder, now, known.head)
    chains = known.chains
    if new is None:
        new, chains = changes(repo, folder, now) or [], {}
    identities = _identities(repo, new)
    for commit in new:
        _apply(chains, commit, identities)
    return RegistryChains(now, chains)


def _folder(repo: Repository, place: str) -> str:
    """The folder of the registry as Git names it; empty for the top."""
    named = os.path.relpath(place, os.path.realpath(repo.top)).replace(os.sep, "/")
    return "" if named == "." else named


def _apply(chains: dict[str, Chain], commit: CommitChanges, identities: Mapping[str, Identity]) -> None:
    """What one commit did to the chains."""
    gone = {one.path: one for one in commit.files if not one.after}
    left = {path: chains.pop(path, Chain()) for path in gone}
    moved = _moved(commit, gone, identities)
    for one in commit.files:
        if not one.after or not one.path.endswith(YAML):
            continue
        source = moved.get(one.path)
        if source is not None:
            chains[one.path] = left[source.path]
            if source.before != one.after:
                chains[one.path].grow(FileStep(source.before, one.after, commit.time))
            continue
        chains.setdefault(one.path, Chain()).grow(FileStep(one.before, one.after, commit.time))


def _moved(
    commit: CommitChanges, gone: Mapping[str, FileChange], identities: Mapping[str, Identity]
) -> Mapping[str, FileChange]:
    """From the path of a file that is new to that from which it moved in this commit."""
    new = [one for one in commit.files if one.after and one.before == ""]
    found: dict[str, FileChange] = {}
    free = dict(gone)
    # The same bytes, then the same contract in the same major, then the same contract.
    alike_by: tuple[Callable[[str], object], ...] = (
        lambda blob: blob or None,
        identities.get,
        lambda blob: identities[blob][0] if blob in identities else None,
    )
    for alike in alike_by:
        by_what: dict[Any, list[FileChange]] = {}
        for one in free.values():
            by_what.setdefault(alike(one.before or ""), []).append(one)
        for one in new:
            what = alike(one.after)
            if what is not None and one.path not in found and by_what.get(what):
                found[one.path] = by_what[what].pop(0)
                free.pop(found[one.path].path)
    return found


def _identities(repo: Repository, new: Sequence[CommitChanges]) -> Mapping[str, Identity]:
    """Which contracts the files hold that may have moved: those of commits with new files and gone ones."""
    wanted: set[str] = set()
    for commit in new:
        came = {one.after for one in commit.files if one.before == "" and one.path.endswith(YAML)}
        went = {one.before for one in commit.files if not one.after and one.before}
        if came - went and went - came:
            wanted |= (came ^ went) - {""}
    found = {}
    for id_, data in objects(repo, wanted, "blob", MAX_BYTES).items() if wanted else ():
        contract = parse(data, id_).contract
        if contract is not None and contract.id:
            found[id_] = identity(contract.id, contract.version)
    return found


def _judged(
    repo: Repository,
    registry: RegistryChains,
    place: str,
    files: Mapping[str, Found],
    cards: Sequence[Card],
    request: PortalRequest,
    crew: Crew,
) -> dict[str, VersionHistory]:
    """The history of each file, once what is new of it is judged."""
    folder = _folder(repo, place)
    above = f"{folder}/" if folder else ""
    chains: dict[str, Chain | None] = {}
    todo: list[tuple[Card, Chain, FileSteps]] = []
    for card in cards:
        chain = chains[card.file] = registry.chains.get(above + files[card.file].name)
        if chain is not None:
            job = _job(files[card.file], card, chain)
            if job.steps or job.last:
                todo.append((card, chain, job))
    batches = [todo[start : start + _BATCH] for start in range(0, len(todo), _BATCH)]
    work = partial(contracts.judged, repo, request.now.date())
    done = 0
    results = crew.each(work, [[job for _, _, job in batch] for batch in batches])
    for batch, some in zip(batches, results, strict=True):
        for (card, chain, job), result in zip(batch, some, strict=True):
            _note(chain, job, card.digest, result)
        done += len(batch)
        request.progress("versions", done, len(todo))
    return {file: _history(one) for file, one in chains.items()}


def _job(file: Found, card: Card, chain: Chain) -> FileSteps:
    last = chain.links[-1].step.after if chain.settled != card.digest else ""
    return FileSteps(file, card.version, tuple(one.step for one in chain.links if one.change is None), last)


def _note(chain: Chain, job: FileSteps, digest_: str, result: JudgedSteps) -> None:
    found = iter(result.changes)
    chain.links = [one if one.change else replace(one, change=next(found)) for one in chain.links]
    if job.last:
        chain.uncommitted = result.uncommitted
        chain.settled = digest_ if result.uncommitted is None else ""


def _history(chain: Chain | None) -> VersionHistory:
    if chain is None:
        return VersionHistory(unknown=contracts.NOT_IN_GIT)
    found = [one.change or contracts.unjudged(one.step) for one in reversed(chain.links)]
    if chain.uncommitted is not None:
        found.insert(0, chain.uncommitted)
    return VersionHistory(tuple(found), chain.older)


def _load(held: Site) -> dict[str, RegistryChains]:
    """What the last build knew; nothing where another dq judged, or the file is damaged."""
    found: dict[str, RegistryChains] = {}
    try:
        lines = held.kept(_NAME).decode().splitlines()
        if not lines or json.loads(lines[0]) != {"made_by": templates_digest()}:
            return {}
        registry = RegistryChains()
        for line in lines[1:]:
            one = json.loads(line)
            if "root" in one:
                registry = found[one["root"]] = RegistryChains(Head(one["head"], frozenset(one["cut"])))
            else:
                registry.chains[one["path"]] = _chain(one)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return {}
    return found


def _chain(one: dict[str, Any]) -> Chain:
    links = [
        ChainLink(FileStep(*step), contracts.loaded(made) if made else None) for step, made in one["links"]
    ]
    return Chain(links, one["older"], one["settled"])


def _lines(registries: Mapping[str, RegistryChains]) -> Iterator[str]:
    yield json.dumps({"made_by": templates_digest()})
    for root, one in registries.items():
        if one.head is not None:
            yield json.dumps({"root": root, "head": one.head.commit, "cut": sorted(one.head.cut)})
            yield from (_line(path, chain) for path, chain in one.chains.items())


def _line(path: str, chain: Chain) -> str:
    links = [
        ((link.step.before, link.step.after, link.step.time), link.change and link.change.dumped())
        for link in chain.links
    ]
    return json.dumps({"path": path, "older": chain.older, "settled": chain.settled, "links": links})
