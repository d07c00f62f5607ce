"""History of a contract and its files, from tags and commits."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from pathlib import Path

from dq.contracts.access.discovery import has_contract_name
from dq.contracts.diff import ElementKind
from dq.contracts.model import Contract
from dq.contracts.normalize import normalize
from dq.contracts.yaml.parse import parse
from dq.validators.compat.comparison import Version, read_version
from dq.validators.git import repository

# Earlier versions of a contract, and deprecation dates of its elements.

DatedVersions = Sequence[tuple[Contract, date]]


def has_deprecated(contract: Contract) -> bool:
    """Return True if any object or property is deprecated."""
    return any(
        element.deprecated
        for schema_object in contract.objects
        for element in (schema_object, *schema_object.walk())
    )


def newest_first(past: DatedVersions, contract: Contract) -> list[Contract]:
    """Return the last state of each earlier version of the same major, newest version first."""
    latest: dict[Version, Contract] = {}
    own = read_version(contract.version)
    for old, _ in past:
        version = read_version(old.version)
        if version is not None and version != own and old.identity == contract.identity:
            latest[version] = old
    return [latest[key] for key in sorted(latest, reverse=True)]


def deprecated_since(past: DatedVersions) -> dict[str, date]:
    """Return the date since which each currently deprecated element has been deprecated without a gap.

    `past` is in chronological order. Elements are named by their paths, e.g. `orders.amount`.
    """
    since: dict[str, date] = {}
    for contract, day in past:
        deprecated = {
            element.path
            for schema_object in normalize(contract).parts_of(ElementKind.OBJECT)
            for element in schema_object.walk()
            if element.normal("deprecated") is not None
        }
        since = {path: since.get(path, day) for path in sorted(deprecated)}
    return since


# History of a contract, from its tags or the commits of its file.

_MAX_COMMITS = 200
_MAX_ALL_COMMITS = 10_000
_MAX_DATE = date(9000, 1, 1)


def tagged_versions(
    repo: repository.Repository, commit: str, contract: Contract, path: str, folder: str
) -> DatedVersions:
    """Return the contract at each of its tags `<id>/vX.Y.Z` up to a commit, in chronological order.

    `path` is its file, which is tried first, and `folder` the registry, both as Git names them.
    """
    prefix = f"{contract.id}/v"
    version_tags = [
        (id_, time)
        for name, id_, time in repository.tags(repo, commit)
        if name.startswith(prefix) and read_version(name[len(prefix) :])
    ]
    entries = repository.tree_entries(repo, [id_ for id_, _ in version_tags], path)
    versions = []
    for id_, time in version_tags:
        old = _find_contract(repo, [entries[id_]] if id_ in entries else [], contract)
        if old is None:
            (files,) = repository.tree_files(repo, [id_], folder)
            # Files named like contracts first: usually no others have to be read.
            names = sorted(files, key=lambda name: (not has_contract_name(name), name))
            old = _find_contract(repo, [files[name] for name in names], contract)
        if old is not None:
            versions.append((old, _day(time)))
    return sorted(versions, key=lambda item: item[1])


def committed_versions(
    repo: repository.Repository, commit: str, contract: Contract, path: str
) -> DatedVersions:
    """Return the contract after each of the last commits that changed its file, in chronological order."""
    commits = repository.commits_changing(repo, commit, path, _MAX_COMMITS)
    entries = repository.tree_entries(repo, [id_ for id_, _ in commits], path)
    versions = []
    for id_, time in reversed(commits):
        old = _find_contract(repo, [entries[id_]] if id_ in entries else [], contract, by_major=False)
        if old is not None:
            versions.append((old, _day(time)))
    return versions


def file_versions(folder: Path, file: str) -> Iterator[bytes]:
    """Yield the content of a file after each commit that changed it, up to HEAD, newest first.

    `file` is its path below `folder`. Yields nothing outside a repository, or for an untracked file.
    Raises BaseUnavailable if Git fails.
    """
    repo = repository.find_repository(folder)
    if repo is None:
        return
    path = os.path.relpath(os.path.realpath(folder / file), os.path.realpath(repo.top)).replace(os.sep, "/")
    commits = [id_ for id_, _ in repository.commits_changing(repo, "HEAD", path, _MAX_ALL_COMMITS)]
    entries = repository.tree_entries(repo, commits, path)
    yield from (data for _, data in repository.entry_contents(repo, entries) if data is not None)


def _find_contract(
    repo: repository.Repository,
    entries: list[repository.TreeEntry],
    contract: Contract,
    *,
    by_major: bool = True,
) -> Contract | None:
    """Return the first file that is this contract, with the same major or any, or None."""
    blobs = repository.read_objects(
        repo, {entry.id for entry in entries if entry.kind is repository.EntryKind.FILE}, "blob"
    )
    for data in (blobs[entry.id] for entry in entries if entry.id in blobs):
        old = parse(data, contract.file).contract if contract.id.encode() in data else None
        if old is None or not old.id or not old.version:
            continue
        if old.identity == contract.identity or (not by_major and old.id == contract.id):
            return old
    return None


def _day(time: int) -> date:
    """Return the UTC date of a commit; a commit can have any time, so it is limited to a date far in the
    future.
    """
    try:
        return min(datetime.fromtimestamp(time, UTC).date(), _MAX_DATE)
    except (OverflowError, ValueError, OSError):
        return _MAX_DATE
