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
from dq.contracts.access.discovery import SUBSCRIPTIONS, YAML, called_contract, entered
from dq.contracts.access.files import POLICY_FILE, FileRefused, Found
from dq.contracts.extension import dataset
from dq.contracts.lineage import PromisedTable, promised_tables
from dq.contracts.model import Contract, Identity
from dq.contracts.odcs import is_contract
from dq.contracts.outcome import Unreadable
from dq.contracts.subscriptions import Subscription, read
from dq.contracts.yaml.parse import parse
from dq.validators.compat.classified_change import Comparison
from dq.validators.compat.comparison import DiffTerms, History, compare
from dq.validators.context import TableHolder, TablesAtBase, alike
from dq.validators.git.history import deprecated_since, has_deprecated, logged, newest_first, tagged
from dq.validators.git.repository import (
    BaseUnavailable,
    EntryKind,
    Repository,
    TreeEntry,
    commit_of,
    entry_content,
    entry_contents,
    find,
    id_of,
    ignored,
    merge_base,
    repository,
    sparse,
    tree_entries,
    tree_files,
)

# The base of a pull request, read from Git objects, and what the work tree makes of it.

# The files that are checked out, read by ourselves and held against what Git has of them.

T = TypeVar("T")

Content = bytes | FileRefused
"""The bytes of a file, or why they are not read: it is a link, say."""


def policy_files(root: Path) -> list[str]:
    """The policies below a folder, in order."""
    found = discovery.called(root, POLICY_FILE) if root.is_dir() else []
    return [one.name for one in found if PurePosixPath(one.name).name == POLICY_FILE]


def checked_out_content(file: Found) -> Content:
    """What a file holds now."""
    try:
        return files.read(file)
    except FileRefused as refused:
        return refused


def is_same_content(data: Content, entry: TreeEntry | None) -> bool:
    """Whether a file holds what Git has of it, also with the line breaks of Windows."""
    if not isinstance(data, bytes) or entry is None or entry.kind is not EntryKind.FILE:
        return False
    return entry.id in (
        id_of(data, "blob", entry.id),
        id_of(data.replace(b"\r\n", b"\n"), "blob", entry.id),
    )


@dataclass(frozen=True, slots=True)
class CheckedOut:
    """What of the work tree a commit of all of it would have, by names below the registry's root, in order.

    `contracts` are the contracts, and `others` the YAML files that are none, which the base may know as
    contracts; each comes with the id that Git would give its bytes.
    """

    contracts: Mapping[str, Found]
    others: Mapping[str, tuple[Found, str]]


def checked_out(
    repo: Repository, root: Path, then: Mapping[str, TreeEntry], head: Mapping[str, TreeEntry]
) -> CheckedOut:
    """The contracts that a commit of the whole work tree would have, in order, and the other YAML files.

    `then` and `head` are the files of the base and of HEAD. What ignore files name is left out only where
    neither has it. Contracts of a submodule belong to another repository: where the branch adds or moves
    one that holds contracts, Unreadable is raised.
    """
    prefix = root.relative_to(repo.top).as_posix()
    above = "" if prefix == "." else f"{prefix}/"
    submodules = {name: one for name, one in head.items() if one.kind is EntryKind.SUBMODULE}
    like = next((one.id for one in head.values()), "0" * 40)
    contracts: dict[str, Found] = {}
    others: dict[str, tuple[Found, str]] = {}
    # A branch may have taken the folder away.
    for file, data in discovery.candidates(root) if root.is_dir() else ():
        name = above + file.name
        is_one = data is None or is_contract(data)
        inside = next((str(one) for one in PurePosixPath(name).parents if str(one) in submodules), None)
        if inside is None and is_one:
            contracts[name] = file
        elif inside is None and data is not None:
            others[name] = (file, id_of(data, "blob", like))
        elif is_one and then.get(str(inside)) != submodules[str(inside)]:
            raise Unreadable(
                f"{inside} is a submodule that this branch adds or moves, so {file} has no base here.",
                "Judge its contracts in a pull request of its own repository.",
            )
    left_out = ignored(
        repo, [name for name in (*contracts, *others) if name not in then and name not in head]
    )
    return CheckedOut(
        {file.name: file for name, file in _in_order(contracts) if name not in left_out},
        {one[0].name: one for name, one in _in_order(others) if name not in left_out},
    )


def _in_order(named: Mapping[str, T]) -> list[tuple[str, T]]:
    return sorted(named.items(), key=lambda one: one[0].split("/"))


def first_link(top: Path, folder: Path) -> Path | None:
    """The first link on the way from the top of a work tree down to a folder, itself included."""
    ways = (folder, *folder.parents)
    return next(
        (way for way in reversed(ways) if way.is_relative_to(top) and way != top and way.is_symlink()), None
    )


def nearest_folder(place: Path, top: Path, name: str) -> Path | None:
    """The nearest folder at or above a place that has something of this name, up to the top."""
    start = Path(os.path.normpath(place.absolute()))
    folders = (one for one in (start, *start.parents) if one.is_relative_to(top))
    return next((one for one in folders if os.path.lexists(one / name)), None)


# Where a registry begins, as the base knows it: no branch moves the folder whose policy judges it.

_MEND = "Judge its contracts in a pull request of its own repository."


class Root(NamedTuple):
    """The folder of a registry, and the commit of the reference that says so."""

    folder: Path
    tip: str


def registry_root(path: Path, ref: str) -> Root:
    """The registry around a path: the nearest folder that has a policy at `ref`, else the repository's top.

    Raises as `open_base`.
    """
    repo = repository(path, ref)
    named = without_links(repo, path)
    tip = commit_of(repo, ref)
    there = tree_entries(repo, [tip], path_below(named, repo.top)).get(tip) if named != repo.top else None
    if there is None and not os.path.lexists(named):
        raise Unreadable(f"{path} exists neither here nor at {ref!r}.", "Name a folder of contracts.")
    # A branch that takes the folder away, or puts a file there, does not lead to the policy above.
    folder = named.is_dir() if there is None else there.kind is EntryKind.FOLDER
    start = named if folder else named.parent
    (files,) = tree_files(repo, [tip], path_below(start, repo.top), deep=False)
    folders = [one for one in (start, *start.parents) if one.is_relative_to(repo.top)]
    ruled = (one for one in folders if posixpath.join(path_below(one, repo.top), POLICY_FILE) in files)
    return Root(next(ruled, repo.top), tip)


def without_links(repo: Repository, folder: Path) -> Path:
    """The folder, absolute. Raises Unreadable where a link of the work tree leads to it."""
    absolute = Path(os.path.normpath(folder.absolute()))
    link = first_link(repo.top, absolute)
    if link is not None:
        message = f"{link} is a link, so it is not known whose contracts are meant."
        raise Unreadable(message, "Name the folder itself.")
    return absolute


def refuse_moved_submodule(repo: Repository, ref: str) -> None:
    """Raises Unreadable where the repository is a submodule that the branch of the outer one moves.

    It would bring a base of its own, which a stranger chose together with the contracts.
    """
    try:
        outer = find(repo.top.parent)
    except BaseUnavailable:
        # No commit leads a `.git` astray: this one has nothing to do with us.
        return
    if outer is None:
        return
    name = path_below(repo.top, outer.top)
    head = commit_of(outer, "HEAD")
    now = tree_entries(outer, [head], name).get(head)
    if now is None or now.kind is not EntryKind.SUBMODULE:
        return
    try:
        tip = commit_of(outer, ref)
    except BaseUnavailable:
        return
    then = merge_base(outer, ref, tip, head)
    if tree_entries(outer, [then], name).get(then) != now:
        raise Unreadable(
            f"{repo.top} is a submodule that this branch adds or moves, so it has no base here.", _MEND
        )


def path_below(folder: Path, top: Path) -> str:
    """The way from the top to a folder; empty for the top itself."""
    inside = folder.relative_to(top).as_posix()
    return "" if inside == "." else inside


# The base of a pull request, read from Git objects, and what the work tree makes of it.
#
# What cannot be read is an error with the command that mends it, never an empty answer: a gate that
# compares with nothing would pass everything.

Files = Mapping[str, TreeEntry]

_NAMING = tuple(os.fsencode(ending) for ending in YAML)


@dataclass(frozen=True, slots=True)
class Changed:
    """The contracts that differ between the base and the work tree, parsed; all others stay unread.

    `invalid` are files that cannot be read at the base, `broken` those that cannot be read now: they are
    not compared, since the rules of form already refuse them. `contents` is what stands now in each file
    that differs and is there.
    """

    before: tuple[Contract, ...]
    after: tuple[Contract, ...]
    invalid: tuple[str, ...]
    broken: tuple[str, ...]
    contents: Mapping[str, Content] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Base:
    """A commit to compare with: where HEAD left a reference. Files are named below `root`.

    `tip` is the commit of the reference itself. `then`, `head` and `last` are the files of the merge base,
    of HEAD and of the tip, by their names in the repository; `present` is what the work tree holds.
    """

    repo: Repository
    root: Path
    commit: str
    tip: str
    then: Files
    head: Files
    last: Files
    present: CheckedOut
    _naming: dict[str, list[bytes]] = field(default_factory=dict, compare=False)

    def read(self, file: str) -> bytes | None:
        """The bytes of a file at the base, or None where it was not there."""
        return entry_content(self.repo, self.then.get(self._inside(file)))

    def policy(self) -> bytes | None:
        """The policy at the tip of the reference, which judges: a branch may have left it long ago."""
        entry = self.last.get(self._inside(POLICY_FILE))
        if entry is not None and entry.kind is not EntryKind.FILE:
            raise Unreadable(f"{POLICY_FILE} at the base is no plain file.", "Put the policy itself there.")
        return entry_content(self.repo, entry)

    def changed(self) -> Changed:
        """The contracts that were edited, moved, deleted or are new, committed or not."""
        before: list[Contract] = []
        after: list[Contract] = []
        invalid: list[str] = []
        broken: list[str] = []
        touched = self._touched()
        for file, data in touched.items():
            new = _parsed(data, file) if isinstance(data, bytes) else None
            if new is not None:
                after.append(new)
            elif data is not None:
                broken.append(file)
        # What cannot be read now is not compared.
        old = {
            file: one for file in touched if file not in broken and (one := self.then.get(self._inside(file)))
        }
        for file, was in entry_contents(self.repo, old):
            if was is not None and not called_contract(file) and not is_contract(was):
                continue  # something else had the name that a contract has now
            parsed = _parsed(was, file) if was is not None else None
            if parsed is not None:
                before.append(parsed)
            else:
                invalid.append(file)
        contents = {file: data for file, data in touched.items() if data is not None}
        return Changed(tuple(before), tuple(after), tuple(invalid), tuple(broken), contents)

    def below(self, folder: str) -> dict[str, TreeEntry]:
        """The plain YAML files at the base below a folder of the registry (empty: all), in order."""
        plain = self._plain(self.then)
        return {file: one for file, one in plain.items() if not folder or file.startswith(f"{folder}/")}

    def at_tip(self) -> dict[str, TreeEntry]:
        """The plain YAML files at the tip of the reference, which may be later than the base, in order."""
        return self._plain(self.last)

    def _plain(self, entries: Files) -> dict[str, TreeEntry]:
        plain = {
            file: one
            for name, one in entries.items()
            if one.kind is EntryKind.FILE and (file := self._candidate(name))
        }
        return {file: plain[file] for file in sorted(plain)}

    def history(self, contract: Contract, *, always: bool = False) -> History:
        """The past of a contract up to the base: its tags `<id>/vX.Y.Z`, else first-parent history.

        It is only read where it is needed: `always` for the transitive modes, else where something is
        deprecated, whose notice began with the first version that said so.
        """
        if not always and not has_deprecated(contract):
            return History()
        path = self._inside(contract.file)
        past = tagged(self.repo, self.commit, contract, path, self._prefix())
        past = past or logged(self.repo, self.commit, contract, path)
        return History(newest_first(past, contract), deprecated_since(past))

    def mentions(self, file: str) -> list[str]:
        """The contracts in the work tree whose text names a file, without parsing them."""
        # Of each contract the lines that may name another one: most have none.
        for contract, found in self.present.contracts.items() if not self._naming else ():
            data = checked_out_content(found)
            lines = data.splitlines() if isinstance(data, bytes) else []
            self._naming[contract] = [line for line in lines if any(ending in line for ending in _NAMING)]
        wanted = os.fsencode(file)
        return [name for name, lines in self._naming.items() if any(wanted in line for line in lines)]

    def _touched(self) -> dict[str, Content | None]:
        """What stands now in each contract that differs; None for one that is gone.

        A file that was a contract at the base and is still there is one, whatever it says of itself now.
        """
        then = {file: one for name, one in self.then.items() if (file := self._candidate(name))}
        head = {file: one for name, one in self.head.items() if (file := self._candidate(name))}
        others = self.present.others
        edited = {
            file: was
            for file, (_, id_) in others.items()
            if (was := then.get(file)) is not None and was.id != id_
        }
        here = {**self.present.contracts, **{file: others[file][0] for file in self._contracts(edited)}}
        gone = self._contracts(
            {file: one for file, one in then.items() if file not in here and file not in others}
        )
        touched: dict[str, Content | None] = {}
        for file in sorted(here.keys() | gone):
            if file not in here:
                if file in head and sparse(self.repo):
                    mend = f"Run: git sparse-checkout add {posixpath.dirname(self._inside(file)) or '.'}"
                    raise Unreadable(f"{file} is left out of this sparse checkout.", mend)
                touched[file] = None
                continue
            data, was = checked_out_content(here[file]), then.get(file)
            # What is a link, or too large, and is the same in both commits, is nothing that the branch does.
            kept = isinstance(data, FileRefused) and was is not None and was == head.get(file)
            if not kept and not is_same_content(data, was):
                touched[file] = data
        return touched

    def _contracts(self, entries: Files) -> set[str]:
        """Those that are contracts, by their names or by what they say; a link of another name is none."""
        found = {file for file in entries if called_contract(file)}
        asked = {file: one for file, one in entries.items() if file not in found}
        said = entry_contents(self.repo, asked)
        return found | {file for file, data in said if data is not None and is_contract(data)}

    def _candidate(self, name: str) -> str | None:
        """A YAML file of Git as the registry names it; None where it can be none of its contracts."""
        file = self._outside(name)
        return file if file and file.endswith(YAML) and entered(file) else None

    def _prefix(self) -> str:
        return path_below(self.root, self.repo.top)

    def _inside(self, file: str) -> str:
        """A file of the registry as Git names it."""
        return posixpath.normpath(posixpath.join(self._prefix(), file))

    def _outside(self, name: str) -> str | None:
        """A file of Git as the registry names it, or None where it lies elsewhere."""
        prefix = self._prefix()
        if not prefix:
            return name
        return name.removeprefix(f"{prefix}/") if name.startswith(f"{prefix}/") else None


def open_base(root: Path, ref: str, tip: str | None = None) -> Base:
    """The base that a branch is compared with: where HEAD left `ref`. `root` is the registry's folder.

    `tip` is the commit of `ref`, where it is known already. Raises BaseRefInvalid for what cannot be a
    reference, BaseUnavailable for what is not in this clone, and Unreadable where a link or a submodule that
    the branch moves stands for the registry.
    """
    repo = repository(root, ref)
    root = without_links(repo, root)
    refuse_moved_submodule(repo, ref)
    tip = tip or commit_of(repo, ref)
    head = commit_of(repo, "HEAD")
    common = merge_base(repo, ref, tip, head)
    then, now, last = tree_files(repo, (common, head, tip), path_below(root, repo.top))
    return Base(repo, root, common, tip, then, now, last, checked_out(repo, root, then, now))


def bytes_at(place: Path, ref: str, path: str) -> bytes:
    """The bytes of a file at a reference, in the repository around `place`; `path` as Git names it.

    Raises BaseRefInvalid, or BaseUnavailable where the repository, the commit or the file is not there.
    """
    repo = repository(place, ref)
    commit = commit_of(repo, ref)
    data = entry_content(repo, tree_entries(repo, [commit], path).get(commit))
    if data is None:
        raise BaseUnavailable(
            f"there is no file {path!r} at {ref!r}.", f"See: git ls-tree -r --name-only {ref}"
        )
    return data


def compare_with(found: Base, terms: DiffTerms, changed: Changed | None = None) -> Comparison:
    """Every contract that differs from the base, judged; `terms` should come from the base as well.

    `changed` is what `found.changed()` gave, where that was asked already.
    """
    changed = changed or found.changed()

    def history(contract: Contract) -> History:
        declared = {dataset(one)[0].compatibility for one in contract.objects}
        modes = {terms.mode.value} if terms.mode else declared
        return found.history(contract, always=any(mode.endswith("_TRANSITIVE") for mode in modes))

    return compare(
        changed.before,
        changed.after,
        terms,
        invalid=changed.invalid,
        history=history,
        mentions=found.mentions,
    )


def _parsed(data: bytes, file: str) -> Contract | None:
    contract = parse(data, file).contract
    return contract if contract is not None and contract.id and contract.version else None


# The subscriptions and the tables of a registry at the base of a pull request.

# The subscriptions of a registry at the base of a pull request, and which of them a branch changes.


def at_base(found: Base) -> tuple[list[Subscription], list[str]]:
    """Who consumes what, as the base says, and the files there that do not tell.

    The latter stop nobody: a change is judged alike whoever subscribed.
    """
    every: list[Subscription] = []
    unclear: list[str] = []
    for file, data in entry_contents(found.repo, _files(found)):
        made, wrong = read(data or b"", file)
        if made is None or any(one.severity.blocks for one in wrong):
            unclear.append(file)
        else:
            every.append(made)
    return every, unclear


def changed(found: Base, present: Mapping[str, Content]) -> frozenset[str]:
    """Which of these files of the work tree are not as they were at the base."""
    then = _files(found)
    return frozenset(file for file, data in present.items() if not is_same_content(data, then.get(file)))


def contracts_at_base(found: Base, ids: Collection[str]) -> dict[Identity, Contract]:
    """Return the contracts with one of the ids as the base has them; only they are parsed."""
    wanted = [id_.encode("utf-8", "surrogatepass") for id_ in ids]
    contracts: dict[Identity, Contract] = {}
    for file, data in entry_contents(found.repo, found.below("") if wanted else {}):
        if data is None or not any(id_ in data for id_ in wanted):
            continue
        contract = parse(data, file).contract
        if contract is not None and contract.id in ids and contract.version:
            contracts.setdefault(contract.identity, contract)
    return contracts


def _files(found: Base) -> dict[str, TreeEntry]:
    return {file: one for file, one in found.below(SUBSCRIPTIONS).items() if not called_contract(file)}


# The tables of a registry at the base of a branch, as far as the changed contracts share them.
#
# Of thousands of contracts few share a table with the changed ones. Their text is searched for its name and
# its folder, and only what may have them is parsed.

_WORD = re.compile(r"[a-z0-9]+")
_ESCAPE = re.compile(rb"\\[xuU]")
_DEFAULT = re.compile(rb"\$\{\w+:-([^}]*)\}")
# Two patterns, because a search for a plain word at the start of one takes a tenth of the time.
_PLACES = tuple(
    re.compile(key + rb"""["']?[ \t]*:[ \t]*["']?([^"'\r\n]*)""") for key in (b"location", b"path")
)
_SCHEME = re.compile(r"^([a-z][a-z0-9+.-]+:)?/*")
# Behind these a place goes on with what is not known here, or is over.
_OPEN = re.compile(r"[*?\[{$,}\s#\\]")
# A text that begins so is written elsewhere: in the lines below, or at an anchor.
_ELSEWHERE = (">", "|", "*", "&", "!")


def tables_at_base(found: Base, changed: Changed) -> TablesAtBase:
    """Return what the base says of the tables that the changed contracts promise.

    Contracts that the branch leaves alone are those at the tip of the reference: it may have moved on.
    """
    base = TablesAtBase((), _by_id(changed.before))
    new = [
        table
        for contract in changed.after
        for table in promised_tables(contract)
        if not base.has(alike(contract.id), table)
    ]
    if not new:
        return base
    others = list(_unchanged(found, changed, new))
    unchanged = tuple(
        TableHolder(alike(one.id), one.file, promised_tables(one), unchanged=True) for one in others
    )
    return TablesAtBase(unchanged, _by_id([*changed.before, *others]))


def _by_id(contracts: Iterable[Contract]) -> dict[str, tuple[PromisedTable, ...]]:
    tables: dict[str, tuple[PromisedTable, ...]] = {}
    for contract in contracts:
        id_ = alike(contract.id)
        tables[id_] = (*tables.get(id_, ()), *promised_tables(contract))
    return tables


def _unchanged(found: Base, changed: Changed, tables: list[PromisedTable]) -> Iterator[Contract]:
    """Yield the contracts at the tip that the branch leaves alone and that may have one of the tables."""
    touched = {*changed.contents, *changed.invalid, *(contract.file for contract in changed.before)}
    search = _Search(tables)
    files = {file: one for file, one in found.at_tip().items() if file not in touched}
    for file, data in entry_contents(found.repo, files):
        if data is None or not search.may_share(data) or not (called_contract(file) or is_contract(data)):
            continue
        contract = parse(data, file).contract
        if contract is not None and contract.id:
            yield contract


class _Search:
    """What to look for in the text of a contract, so that those which have no such table need no parser."""

    def __init__(self, tables: Iterable[PromisedTable]) -> None:
        distinct = list(tables)
        self._names = {
            tuple(word.encode() for word in sorted({*_WORD.findall(table.name)}, key=len, reverse=True))
            for table in distinct
            if table.name
        }
        self._folders = {_plain(str(table.folder)) for table in distinct if table.folder is not None}

    def may_share(self, data: bytes) -> bool:
        """Whether a contract with this text may have one of the tables, or a folder with one of theirs."""
        if _ESCAPE.search(data):
            return True
        lower = data.lower()
        return any(all(word in lower for word in words) for words in self._names) or self._may_overlap(lower)

    def _may_overlap(self, lower: bytes) -> bool:
        if not self._folders:
            return False
        plain = _DEFAULT.sub(rb"\1", lower)
        for place in (place for places in _PLACES for place in places.findall(plain)):
            text = place.decode("utf-8", "replace")
            if not text or text.startswith(_ELSEWHERE):
                return True
            end = _OPEN.search(text)
            begin = _plain(text[: end.start()] if end else text)
            if any(_overlap(folder, begin) for folder in self._folders):
                return True
        return False


def _plain(place: str) -> str:
    """A place without its scheme, in lower case: what is the same here need not be the same place."""
    path = normpath(_SCHEME.sub("", place.lower()))
    return "" if path == "." else path


def _overlap(folder: str, begin: str) -> bool:
    """Whether a place that begins so may be the folder, or one may lie in the other."""
    return folder.startswith(begin) or begin.startswith(folder)
