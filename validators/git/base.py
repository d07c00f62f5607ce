"""The base of a pull request, read from Git: its contracts, subscriptions and tables."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from posixpath import normpath
from typing import NamedTuple, TypeVar

from dq.contracts.access import discovery, files
from dq.contracts.access.discovery import SUBSCRIPTIONS, YAML, has_contract_name, is_searched
from dq.contracts.access.files import POLICY_FILE, FileRef, FileRejected
from dq.contracts.extension import dataset
from dq.contracts.lineage import PromisedTable, promised_tables
from dq.contracts.model import Contract, Identity
from dq.contracts.odcs import is_contract
from dq.contracts.outcome import ReadError
from dq.contracts.subscriptions import Subscription, read
from dq.contracts.yaml.parse import parse
from dq.validators.compat.classified_change import Comparison
from dq.validators.compat.comparison import BaselineHistory, DiffTerms, compare
from dq.validators.context import TableHolder, TablesAtBase, normalize_name
from dq.validators.git.history import (
    committed_versions,
    deprecated_since,
    has_deprecated,
    newest_first,
    tagged_versions,
)
from dq.validators.git.repository import (
    BaseUnavailable,
    EntryKind,
    Repository,
    TreeEntry,
    entry_content,
    entry_contents,
    find_repository,
    ignored_files,
    is_sparse,
    merge_base,
    object_id,
    repository_for_ref,
    resolve_commit,
    tree_entries,
    tree_files,
)

# Checked-out files, read without Git and compared with Git's objects.

T = TypeVar("T")

Content = bytes | FileRejected
"""The bytes of a file, or the reason why it is not read, e.g. because it is a link."""


def policy_files(root: Path) -> list[str]:
    """Return the policy files below a folder, in order."""
    matches = discovery.find_named(root, POLICY_FILE) if root.is_dir() else []
    return [match.name for match in matches if PurePosixPath(match.name).name == POLICY_FILE]


def checked_out_content(file: FileRef) -> Content:
    """Return the current content of a file."""
    try:
        return files.read(file)
    except FileRejected as refused:
        return refused


def is_same_content(data: Content, entry: TreeEntry | None) -> bool:
    """Return True if a file equals the Git object, ignoring Windows line endings."""
    if not isinstance(data, bytes) or entry is None or entry.kind is not EntryKind.FILE:
        return False
    return entry.id in (
        object_id(data, "blob", entry.id),
        object_id(data.replace(b"\r\n", b"\n"), "blob", entry.id),
    )


@dataclass(frozen=True, slots=True)
class WorkTreeFiles:
    """Work tree files that `git add --all` would commit, by name below the registry's root, in order.

    `contracts` are the contracts. `other_yaml` are the other YAML files, which may be contracts at the base,
    each with its Git object id.
    """

    contracts: Mapping[str, FileRef]
    other_yaml: Mapping[str, tuple[FileRef, str]]


def read_work_tree(
    repo: Repository, root: Path, base_entries: Mapping[str, TreeEntry], head_entries: Mapping[str, TreeEntry]
) -> WorkTreeFiles:
    """Return the contracts and other YAML files that a commit of the whole work tree would contain, in order.

    Ignored files are left out unless the base or HEAD has them.

    Args:
        base_entries: Files at the base.
        head_entries: Files at HEAD.

    Raises:
        ReadError: The branch adds or moves a submodule with contracts, which belong to another repository.
    """
    prefix = root.relative_to(repo.top).as_posix()
    folder = "" if prefix == "." else f"{prefix}/"
    submodules = {name: entry for name, entry in head_entries.items() if entry.kind is EntryKind.SUBMODULE}
    sample_id = next((entry.id for entry in head_entries.values()), "0" * 40)
    contracts: dict[str, FileRef] = {}
    other_yaml: dict[str, tuple[FileRef, str]] = {}
    # A branch may have removed the folder.
    for file, data in discovery.candidates(root) if root.is_dir() else ():
        name = folder + file.name
        may_be_contract = data is None or is_contract(data)
        submodule = next(
            (str(parent) for parent in PurePosixPath(name).parents if str(parent) in submodules), None
        )
        if submodule is None and may_be_contract:
            contracts[name] = file
        elif submodule is None and data is not None:
            other_yaml[name] = (file, object_id(data, "blob", sample_id))
        elif may_be_contract and base_entries.get(str(submodule)) != submodules[str(submodule)]:
            raise ReadError(
                f"{submodule} is a submodule that this branch adds or moves, so {file} has no base.",
                "Validate its contracts in a pull request of its own repository.",
            )
    ignored_names = ignored_files(
        repo,
        [name for name in (*contracts, *other_yaml) if name not in base_entries and name not in head_entries],
    )
    return WorkTreeFiles(
        {file.name: file for name, file in _sorted_by_path(contracts) if name not in ignored_names},
        {
            file_and_id[0].name: file_and_id
            for name, file_and_id in _sorted_by_path(other_yaml)
            if name not in ignored_names
        },
    )


def _sorted_by_path(entries: Mapping[str, T]) -> list[tuple[str, T]]:
    return sorted(entries.items(), key=lambda item: item[0].split("/"))


def first_link(top: Path, folder: Path) -> Path | None:
    """Return the first symbolic link on the path from the work tree's top to a folder, or None."""
    folders = (folder, *folder.parents)
    return next(
        (
            candidate
            for candidate in reversed(folders)
            if candidate.is_relative_to(top) and candidate != top and candidate.is_symlink()
        ),
        None,
    )


def nearest_folder(path: Path, top: Path, name: str) -> Path | None:
    """Return the nearest folder at or above a path with an entry of this name, up to the top, or None."""
    start = Path(os.path.normpath(path.absolute()))
    folders = (candidate for candidate in (start, *start.parents) if candidate.is_relative_to(top))
    return next((candidate for candidate in folders if os.path.lexists(candidate / name)), None)


# Root of a registry according to the base: a branch cannot move the folder whose policy applies to it.

_SUBMODULE_HINT = "Validate its contracts in a pull request of its own repository."


class RegistryRoot(NamedTuple):
    """Folder of a registry, and the commit at which it was determined."""

    folder: Path
    tip: str


def registry_root(path: Path, ref: str) -> RegistryRoot:
    """Return the registry around a path: the nearest folder with a policy at `ref`, else the repository's
    top.

    Raises the same errors as `open_base`.
    """
    repo = repository_for_ref(path, ref)
    absolute = without_links(repo, path)
    tip = resolve_commit(repo, ref)
    entry = (
        tree_entries(repo, [tip], path_below(absolute, repo.top)).get(tip) if absolute != repo.top else None
    )
    if entry is None and not os.path.lexists(absolute):
        raise ReadError(
            f"{path} exists neither in the work tree nor at {ref!r}.", "Pass a folder of contracts."
        )
    # If a branch removes the folder or replaces it with a file, the policy above still does not apply.
    is_folder = absolute.is_dir() if entry is None else entry.kind is EntryKind.FOLDER
    start = absolute if is_folder else absolute.parent
    (files,) = tree_files(repo, [tip], path_below(start, repo.top), deep=False)
    folders = [candidate for candidate in (start, *start.parents) if candidate.is_relative_to(repo.top)]
    with_policy = (
        candidate
        for candidate in folders
        if posixpath.join(path_below(candidate, repo.top), POLICY_FILE) in files
    )
    return RegistryRoot(next(with_policy, repo.top), tip)


def without_links(repo: Repository, folder: Path) -> Path:
    """Return the absolute folder. Raises ReadError if its path in the work tree has a symbolic link."""
    absolute = Path(os.path.normpath(folder.absolute()))
    link = first_link(repo.top, absolute)
    if link is not None:
        message = f"{link} is a link, so its registry is ambiguous."
        raise ReadError(message, "Pass the folder itself.")
    return absolute


def refuse_moved_submodule(repo: Repository, ref: str) -> None:
    """Raise ReadError if the repository is a submodule that the outer repository's branch adds or moves.

    Such a submodule would bring its own base, chosen by the author of the contracts.
    """
    try:
        outer = find_repository(repo.top.parent)
        if outer is None:
            return
        head = resolve_commit(outer, "HEAD")
    except BaseUnavailable:
        # No commit can create a misleading `.git`, nor one without a commit: this repository is unrelated.
        return
    name = path_below(repo.top, outer.top)
    head_entry = tree_entries(outer, [head], name).get(head)
    if head_entry is None or head_entry.kind is not EntryKind.SUBMODULE:
        return
    try:
        tip = resolve_commit(outer, ref)
    except BaseUnavailable:
        return
    base_commit = merge_base(outer, ref, tip, head)
    if tree_entries(outer, [base_commit], name).get(base_commit) != head_entry:
        raise ReadError(
            f"{repo.top} is a submodule that this branch adds or moves, so it has no base.", _SUBMODULE_HINT
        )


def path_below(folder: Path, top: Path) -> str:
    """Return the path from the top to a folder; empty for the top itself."""
    inside = folder.relative_to(top).as_posix()
    return "" if inside == "." else inside


# The base of a pull request, read from Git objects, and its differences from the work tree.
#
# Unreadable data is an error with the command that fixes it, never an empty result: comparing with nothing
# would accept every change.

Files = Mapping[str, TreeEntry]

_YAML_SUFFIXES = tuple(os.fsencode(ending) for ending in YAML)


@dataclass(frozen=True, slots=True)
class ChangedContracts:
    """Parsed contracts that differ between the base and the work tree; all others are not read.

    `invalid` are files that cannot be read at the base. `broken` are files that cannot be read now; they are
    not compared because the form rules already report them. `contents` has the current content of each
    existing file that differs.
    """

    before: tuple[Contract, ...]
    after: tuple[Contract, ...]
    invalid: tuple[str, ...]
    broken: tuple[str, ...]
    contents: Mapping[str, Content] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BaseCommit:
    """Commit to compare with: the merge base of HEAD and a reference. Files are named below `root`.

    `tip` is the commit of the reference itself. `base_files`, `head_files` and `tip_files` are the files of
    the merge base, of HEAD and of the tip, by their names in the repository; `work_tree` are the checked-out
    files.
    """

    repo: Repository
    root: Path
    commit: str
    tip: str
    base_files: Files
    head_files: Files
    tip_files: Files
    work_tree: WorkTreeFiles
    _reference_lines: dict[str, list[bytes]] = field(default_factory=dict, compare=False)

    def read(self, file: str) -> bytes | None:
        """Return the bytes of a file at the base, or None if it did not exist."""
        return entry_content(self.repo, self.base_files.get(self._inside(file)))

    def policy(self) -> bytes | None:
        """Return the policy at the tip of the reference, which applies; the merge base may be old."""
        entry = self.tip_files.get(self._inside(POLICY_FILE))
        if entry is not None and entry.kind is not EntryKind.FILE:
            raise ReadError(
                f"{POLICY_FILE} at the base is not a regular file.", "Replace it with the policy itself."
            )
        return entry_content(self.repo, entry)

    def changed_contracts(self) -> ChangedContracts:
        """Return the contracts that were added, edited, moved or deleted, committed or not."""
        before: list[Contract] = []
        after: list[Contract] = []
        invalid: list[str] = []
        broken: list[str] = []
        changed_files = self._changed_files()
        for file, data in changed_files.items():
            new = _parsed(data, file) if isinstance(data, bytes) else None
            if new is not None:
                after.append(new)
            elif data is not None:
                broken.append(file)
        # What cannot be read now is not compared.
        old = {
            file: entry
            for file in changed_files
            if file not in broken and (entry := self.base_files.get(self._inside(file)))
        }
        for file, base_data in entry_contents(self.repo, old):
            if base_data is not None and not has_contract_name(file) and not is_contract(base_data):
                continue  # the file was not a contract at the base
            parsed = _parsed(base_data, file) if base_data is not None else None
            if parsed is not None:
                before.append(parsed)
            else:
                invalid.append(file)
        contents = {file: data for file, data in changed_files.items() if data is not None}
        return ChangedContracts(tuple(before), tuple(after), tuple(invalid), tuple(broken), contents)

    def files_below(self, folder: str) -> dict[str, TreeEntry]:
        """Return the plain YAML files at the base below a folder of the registry (empty: all), in order."""
        plain = self._plain_files(self.base_files)
        return {file: entry for file, entry in plain.items() if not folder or file.startswith(f"{folder}/")}

    def files_at_tip(self) -> dict[str, TreeEntry]:
        """Return the plain YAML files at the tip of the reference, which may be newer than the base, in
        order.
        """
        return self._plain_files(self.tip_files)

    def _plain_files(self, entries: Files) -> dict[str, TreeEntry]:
        plain = {
            file: entry
            for name, entry in entries.items()
            if entry.kind is EntryKind.FILE and (file := self._candidate(name))
        }
        return {file: plain[file] for file in sorted(plain)}

    def history(self, contract: Contract, *, always: bool = False) -> BaselineHistory:
        """Return the history of a contract up to the base: its tags `<id>/vX.Y.Z`, else first-parent commits.

        It is read if `always` (for the transitive modes), else only if the contract has deprecated elements,
        whose notice period starts with the first version that deprecates them.
        """
        if not always and not has_deprecated(contract):
            return BaselineHistory()
        path = self._inside(contract.file)
        past = tagged_versions(self.repo, self.commit, contract, path, self._prefix())
        past = past or committed_versions(self.repo, self.commit, contract, path)
        return BaselineHistory(newest_first(past, contract), deprecated_since(past))

    def files_mentioning(self, file: str) -> list[str]:
        """Return the contracts in the work tree whose text mentions a file, without parsing them."""
        # Cache the lines that may mention another contract; most contracts have none.
        for contract, source in self.work_tree.contracts.items() if not self._reference_lines else ():
            data = checked_out_content(source)
            lines = data.splitlines() if isinstance(data, bytes) else []
            self._reference_lines[contract] = [
                line for line in lines if any(ending in line for ending in _YAML_SUFFIXES)
            ]
        needle = os.fsencode(file)
        return [
            name for name, lines in self._reference_lines.items() if any(needle in line for line in lines)
        ]

    def _changed_files(self) -> dict[str, Content | None]:
        """Return the current content of each contract that differs, None for a deleted one.

        An existing file that was a contract at the base counts as a contract, whatever its content is now.
        """
        base_files = {
            file: entry for name, entry in self.base_files.items() if (file := self._candidate(name))
        }
        head_files = {
            file: entry for name, entry in self.head_files.items() if (file := self._candidate(name))
        }
        other_yaml = self.work_tree.other_yaml
        edited = {
            file: base_entry
            for file, (_, id_) in other_yaml.items()
            if (base_entry := base_files.get(file)) is not None and base_entry.id != id_
        }
        current = {
            **self.work_tree.contracts,
            **{file: other_yaml[file][0] for file in self._contract_files(edited)},
        }
        deleted = self._contract_files(
            {
                file: entry
                for file, entry in base_files.items()
                if file not in current and file not in other_yaml
            }
        )
        changed_files: dict[str, Content | None] = {}
        for file in sorted(current.keys() | deleted):
            if file not in current:
                if file in head_files and is_sparse(self.repo):
                    hint = f"Run: git sparse-checkout add {posixpath.dirname(self._inside(file)) or '.'}"
                    raise ReadError(f"{file} is not part of this sparse checkout.", hint)
                changed_files[file] = None
                continue
            data, base_entry = checked_out_content(current[file]), base_files.get(file)
            # The branch did not change a link or an oversized file that is the same in both commits.
            is_untouched = (
                isinstance(data, FileRejected)
                and base_entry is not None
                and base_entry == head_files.get(file)
            )
            if not is_untouched and not is_same_content(data, base_entry):
                changed_files[file] = data
        return changed_files

    def _contract_files(self, entries: Files) -> set[str]:
        """Return the files that are contracts, by name or by content; a link with another name is not one."""
        by_name = {file for file in entries if has_contract_name(file)}
        to_read = {file: entry for file, entry in entries.items() if file not in by_name}
        contents = entry_contents(self.repo, to_read)
        return by_name | {file for file, data in contents if data is not None and is_contract(data)}

    def _candidate(self, name: str) -> str | None:
        """Return the registry's name of a YAML file in Git, or None if it cannot be one of its contracts."""
        file = self._outside(name)
        return file if file and file.endswith(YAML) and is_searched(file) else None

    def _prefix(self) -> str:
        return path_below(self.root, self.repo.top)

    def _inside(self, file: str) -> str:
        """Return Git's name of a file of the registry."""
        return posixpath.normpath(posixpath.join(self._prefix(), file))

    def _outside(self, name: str) -> str | None:
        """Return the registry's name of a file in Git, or None if it is outside the registry."""
        prefix = self._prefix()
        if not prefix:
            return name
        return name.removeprefix(f"{prefix}/") if name.startswith(f"{prefix}/") else None


def open_base(root: Path, ref: str, tip: str | None = None) -> BaseCommit:
    """Open the base that a branch is compared with: the merge base of HEAD and `ref`.

    Args:
        root: The registry's folder.
        tip: The commit of `ref`, if already known.

    Raises:
        BaseRefInvalid: `ref` cannot be a reference.
        BaseUnavailable: The base is not in this clone.
        ReadError: The registry is a symbolic link, or a submodule that the branch adds or moves.
    """
    repo = repository_for_ref(root, ref)
    root = without_links(repo, root)
    refuse_moved_submodule(repo, ref)
    tip = tip or resolve_commit(repo, ref)
    head = resolve_commit(repo, "HEAD")
    common = merge_base(repo, ref, tip, head)
    base_files, head_files, tip_files = tree_files(repo, (common, head, tip), path_below(root, repo.top))
    return BaseCommit(
        repo,
        root,
        common,
        tip,
        base_files,
        head_files,
        tip_files,
        read_work_tree(repo, root, base_files, head_files),
    )


def bytes_at(place: Path, ref: str, path: str) -> bytes:
    """Return the bytes of a file at a reference, in the repository around `place`; `path` is Git's name of
    it.

    Raises BaseRefInvalid, or BaseUnavailable if the repository, the commit or the file does not exist.
    """
    repo = repository_for_ref(place, ref)
    commit = resolve_commit(repo, ref)
    data = entry_content(repo, tree_entries(repo, [commit], path).get(commit))
    if data is None:
        raise BaseUnavailable(
            f"file {path!r} does not exist at {ref!r}.", f"See: git ls-tree -r --name-only {ref}"
        )
    return data


def compare_with_base(
    base: BaseCommit, terms: DiffTerms, changed: ChangedContracts | None = None
) -> Comparison:
    """Compare every contract that differs from the base; `terms` should come from the base as well.

    `changed` is the result of `base.changed_contracts()`, if already computed.
    """
    changed = changed or base.changed_contracts()

    def history(contract: Contract) -> BaselineHistory:
        declared = {dataset(schema_object)[0].compatibility for schema_object in contract.objects}
        modes = {terms.mode.value} if terms.mode else declared
        return base.history(contract, always=any(mode.endswith("_TRANSITIVE") for mode in modes))

    return compare(
        changed.before,
        changed.after,
        terms,
        invalid=changed.invalid,
        history=history,
        mentions=base.files_mentioning,
    )


def _parsed(data: bytes, file: str) -> Contract | None:
    contract = parse(data, file).contract
    return contract if contract is not None and contract.id and contract.version else None


# Subscriptions of a registry at the base of a pull request, and those that a branch changes.


def subscriptions_at_base(base: BaseCommit) -> tuple[list[Subscription], list[str]]:
    """Return the subscriptions at the base, and the subscription files that cannot be read.

    Unreadable files are no error, because a change is classified independently of its subscribers.
    """
    subscriptions: list[Subscription] = []
    unreadable: list[str] = []
    for file, data in entry_contents(base.repo, _subscription_entries(base)):
        subscription, findings = read(data or b"", file)
        if subscription is None or any(finding.severity.blocks for finding in findings):
            unreadable.append(file)
        else:
            subscriptions.append(subscription)
    return subscriptions, unreadable


def changed_subscriptions(base: BaseCommit, contents: Mapping[str, Content]) -> frozenset[str]:
    """Return the subscription files of the work tree that differ from the base."""
    base_entries = _subscription_entries(base)
    return frozenset(
        file for file, data in contents.items() if not is_same_content(data, base_entries.get(file))
    )


def contracts_at_base(base: BaseCommit, ids: Collection[str]) -> dict[Identity, Contract]:
    """Return the contracts with one of the ids at the base; only these are parsed."""
    needles = [id_.encode("utf-8", "surrogatepass") for id_ in ids]
    contracts: dict[Identity, Contract] = {}
    for file, data in entry_contents(base.repo, base.files_below("") if needles else {}):
        if data is None or not any(id_ in data for id_ in needles):
            continue
        contract = parse(data, file).contract
        if contract is not None and contract.id in ids and contract.version:
            contracts.setdefault(contract.identity, contract)
    return contracts


def _subscription_entries(base: BaseCommit) -> dict[str, TreeEntry]:
    return {
        file: entry for file, entry in base.files_below(SUBSCRIPTIONS).items() if not has_contract_name(file)
    }


# Tables of a registry at the base of a branch that the changed contracts share.
#
# Only a few of thousands of contracts share a table with the changed ones. The raw text is searched for table
# names and folders, and only possible matches are parsed.

_WORD = re.compile(r"[a-z0-9]+")
_ESCAPE = re.compile(rb"\\[xuU]")
_DEFAULT = re.compile(rb"\$\{\w+:-([^}]*)\}")
# Two patterns: a search that starts with a literal is ten times faster.
_LOCATION_KEYS = tuple(
    re.compile(key + rb"""["']?[ \t]*:[ \t]*["']?([^"'\r\n]*)""") for key in (b"location", b"path")
)
_SCHEME = re.compile(r"^([a-z][a-z0-9+.-]+:)?/*")
# After these characters a location is unknown, or has ended.
_UNKNOWN_PART = re.compile(r"[*?\[{$,}\s#\\]")
# A value that starts with one of these is defined elsewhere: on the following lines, or at an anchor.
_INDIRECT = (">", "|", "*", "&", "!")


def tables_at_base(base: BaseCommit, changed: ChangedContracts) -> TablesAtBase:
    """Return the base's information about the tables that the changed contracts declare.

    Unchanged contracts are read at the tip of the reference, which may be newer than the merge base.
    """
    base_tables = TablesAtBase((), _tables_by_id(changed.before))
    new = [
        table
        for contract in changed.after
        for table in promised_tables(contract)
        if not base_tables.has(normalize_name(contract.id), table)
    ]
    if not new:
        return base_tables
    unchanged_contracts = list(_unchanged(base, changed, new))
    unchanged = tuple(
        TableHolder(normalize_name(contract.id), contract.file, promised_tables(contract), unchanged=True)
        for contract in unchanged_contracts
    )
    return TablesAtBase(unchanged, _tables_by_id([*changed.before, *unchanged_contracts]))


def _tables_by_id(contracts: Iterable[Contract]) -> dict[str, tuple[PromisedTable, ...]]:
    tables: dict[str, tuple[PromisedTable, ...]] = {}
    for contract in contracts:
        id_ = normalize_name(contract.id)
        tables[id_] = (*tables.get(id_, ()), *promised_tables(contract))
    return tables


def _unchanged(
    base: BaseCommit, changed: ChangedContracts, tables: list[PromisedTable]
) -> Iterator[Contract]:
    """Yield the contracts at the tip that the branch does not change and that may have one of the tables."""
    changed_files = {*changed.contents, *changed.invalid, *(contract.file for contract in changed.before)}
    search = _TableSearch(tables)
    files = {file: entry for file, entry in base.files_at_tip().items() if file not in changed_files}
    for file, data in entry_contents(base.repo, files):
        if data is None or not search.may_share(data) or not (has_contract_name(file) or is_contract(data)):
            continue
        contract = parse(data, file).contract
        if contract is not None and contract.id:
            yield contract


class _TableSearch:
    """Text search for tables, so that contracts without any of them need not be parsed."""

    def __init__(self, tables: Iterable[PromisedTable]) -> None:
        distinct = list(tables)
        self._names = {
            tuple(word.encode() for word in sorted({*_WORD.findall(table.name)}, key=len, reverse=True))
            for table in distinct
            if table.name
        }
        self._folders = {
            _normalize_location(str(table.folder)) for table in distinct if table.folder is not None
        }

    def may_share(self, data: bytes) -> bool:
        """Return True if a contract with this text may have one of the tables or an overlapping folder."""
        if _ESCAPE.search(data):
            return True
        lower = data.lower()
        return any(all(word in lower for word in words) for words in self._names) or self._may_overlap(lower)

    def _may_overlap(self, lower: bytes) -> bool:
        if not self._folders:
            return False
        plain = _DEFAULT.sub(rb"\1", lower)
        for place in (place for places in _LOCATION_KEYS for place in places.findall(plain)):
            text = place.decode("utf-8", "replace")
            if not text or text.startswith(_INDIRECT):
                return True
            end = _UNKNOWN_PART.search(text)
            begin = _normalize_location(text[: end.start()] if end else text)
            if any(_overlap(folder, begin) for folder in self._folders):
                return True
        return False


def _normalize_location(location: str) -> str:
    """Return a location without scheme, in lower case; different locations may have the same result."""
    path = normpath(_SCHEME.sub("", location.lower()))
    return "" if path == "." else path


def _overlap(folder: str, begin: str) -> bool:
    """Return True if a location with this prefix may be the folder, or inside it, or contain it."""
    return folder.startswith(begin) or begin.startswith(folder)
