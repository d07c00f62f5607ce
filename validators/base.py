"""The base of a pull request, read from Git objects: the work tree is never touched.

What cannot be read is an error with the command that mends it, never an empty answer: a gate that
compares with nothing would pass everything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from dq.contracts.errors import Unreadable
from dq.contracts.files import Absent, Refused, read
from dq.contracts.model import Contract
from dq.contracts.parse import parse
from dq.validators.clone import BaseRefInvalid, BaseUnavailable, commit_of, merge_base, repository
from dq.validators.compat import Comparison, History, Subscription, Terms, compare
from dq.validators.compat import version as versions
from dq.validators.compat.subscribers import read as read_subscriptions
from dq.validators.past import deprecated_since, has_deprecated, newest_first
from dq.validators.registry import identity

if TYPE_CHECKING:
    from git import Commit, Repo

_ENDINGS = (".odcs.yaml", ".odcs.yml")
_NEWEST = 200


@dataclass(frozen=True, slots=True)
class Changed:
    """The contracts that differ between the base and the work tree, parsed; all others stay unread.

    `invalid` are files that cannot be read at the base, `broken` those that cannot be read now: they are
    not compared, since the rules of form already refuse them.
    """

    before: tuple[Contract, ...]
    after: tuple[Contract, ...]
    invalid: tuple[str, ...]
    broken: tuple[str, ...]

    @property
    def files(self) -> list[str]:
        """The files that are there now, in order: those that can be read and those that cannot."""
        return sorted({*(one.file for one in self.after), *self.broken})


@dataclass(frozen=True, slots=True)
class Base:
    """A commit to compare with: the merge base of a reference and HEAD. Files are named below `root`."""

    repo: Repo
    root: Path
    commit: Commit

    def read(self, file: str) -> bytes | None:
        """The bytes of a file at the base, or None where it was not there. For the policy, say."""
        return _bytes(self.commit, self._inside(file))

    def files(self, ending: tuple[str, ...], folder: str = "") -> list[str]:
        """The files below a folder at the base whose names end so, in order; hidden folders left out."""
        listed = self.repo.git.ls_tree("-r", "-z", "--name-only", self.commit.hexsha, "--", *self._limit())
        names = (self._outside(name) for name in listed.split("\0") if name)
        inside = (name for name in names if name is not None and name.endswith(ending))
        return sorted(name for name in inside if name.startswith(folder) and not _hidden(name))

    def changed(self) -> Changed:
        """The contracts that were edited, moved, deleted or are new, committed or not."""
        before: list[Contract] = []
        after: list[Contract] = []
        invalid: list[str] = []
        broken: list[str] = []
        for file in self._touched():
            try:
                new = _parsed(read(file, root=self.root), file)
            except Absent:
                new = None
            except Refused:
                broken.append(file)
                continue
            else:
                if new is None:
                    broken.append(file)
                    continue
            data = self.read(file)
            old = None if data is None else _parsed(data, file)
            if data is not None and old is None:
                invalid.append(file)
            before += [old] if old else []
            after += [new] if new else []
        return Changed(tuple(before), tuple(after), tuple(invalid), tuple(broken))

    def subscriptions(self, folder: str = "subscriptions/") -> list[Subscription]:
        """Who consumes what, as the files of a folder at the base say."""
        import yaml

        found: list[Subscription] = []
        for file in self.files((".yaml", ".yml"), folder):
            try:
                found += read_subscriptions(yaml.safe_load(self.read(file) or b""))
            except yaml.YAMLError as error:
                raise Unreadable(f"{file} at the base is not YAML.", "Mend it on the base branch.") from error
        return found

    def history(self, contract: Contract, *, always: bool = False) -> History:
        """The past of a contract up to the base: its tags `<id>/vX.Y.Z`, else first-parent history.

        It is only read where it is needed: `always` for the transitive modes, else where something is
        deprecated, whose notice began with the first version that said so.
        """
        if not always and not has_deprecated(contract):
            return History()
        past = self._tagged(contract) or list(self._logged(contract))
        return History(newest_first(past, contract), deprecated_since(past))

    def mentions(self, file: str) -> list[str]:
        """The contracts in the work tree whose text names a file, without parsing them."""
        from git.exc import GitCommandError

        try:
            found = self.repo.git.grep(
                "--untracked", "-z", "-l", "--full-name", "-F", "-e", file, "--", *self._limit()
            )
        except GitCommandError as error:
            if error.status == 1:  # nothing found
                return []
            raise
        names = [self._outside(name) for name in found.split("\0") if name]
        return sorted(name for name in names if name and name.endswith(_ENDINGS))

    def _tagged(self, contract: Contract) -> list[tuple[Contract, date]]:
        found: list[tuple[Contract, date]] = []
        prefix = f"{contract.id}/v"
        for tag in self.repo.tags:
            if tag.name.startswith(prefix) and versions.read(tag.name[len(prefix) :]):
                old = self._at(tag.commit, contract)
                if old is not None:
                    found.append((old, _day(tag.commit)))
        return sorted(found, key=lambda one: one[1])

    def _logged(self, contract: Contract) -> Iterator[tuple[Contract, date]]:
        path = self._inside(contract.file)
        log = self.repo.iter_commits(self.commit, paths=path, first_parent=True, max_count=_NEWEST)
        for commit in reversed(list(log)):
            data = _bytes(commit, path)
            old = None if data is None else _parsed(data, contract.file)
            if old is not None and old.id == contract.id:
                yield old, _day(commit)

    def _at(self, commit: Commit, contract: Contract) -> Contract | None:
        """The contract as it stood at a commit, in its own file or in another one."""
        own = self._inside(contract.file)
        listed = self.repo.git.ls_tree("-r", "-z", "--name-only", commit.hexsha, "--", *self._limit())
        names = [name for name in listed.split("\0") if name.endswith(_ENDINGS)]
        for name in sorted(names, key=lambda one: one != own):
            data = _bytes(commit, name)
            if data is not None and contract.id.encode() in data:
                old = _parsed(data, self._outside(name) or name)
                if old is not None and identity(old) == identity(contract):
                    return old
        return None

    def _touched(self) -> list[str]:
        git = self.repo.git
        edited = git.diff("--name-only", "-z", "--no-renames", self.commit.hexsha, "--", *self._limit())
        new = git.ls_files("--others", "--exclude-standard", "-z", "--full-name", "--", *self._limit())
        names = {self._outside(name) for name in f"{edited}\0{new}".split("\0") if name}
        return sorted(name for name in names if name and name.endswith(_ENDINGS) and not _hidden(name))

    def _limit(self) -> list[str]:
        inside = self._prefix()
        return [f":(top){inside}"] if inside else []

    def _prefix(self) -> str:
        top = Path(self.repo.working_dir).resolve()
        inside = self.root.resolve().relative_to(top).as_posix()
        return "" if inside == "." else inside

    def _inside(self, file: str) -> str:
        """A file of the registry as Git names it."""
        return str(PurePosixPath(self._prefix()) / file)

    def _outside(self, name: str) -> str | None:
        """A file of Git as the registry names it, or None where it lies elsewhere."""
        prefix = self._prefix()
        if not prefix:
            return name
        return name.removeprefix(f"{prefix}/") if name.startswith(f"{prefix}/") else None


def base(root: Path, ref: str) -> Base:
    """The base that a branch is compared with: where HEAD left `ref`. `root` is the registry's folder.

    Raises BaseRefInvalid for what cannot be a reference, BaseUnavailable for what is not in this clone.
    """
    repo = repository(root, ref)
    return Base(repo, root, merge_base(repo, ref))


def at(place: Path, ref: str, path: str) -> bytes:
    """The bytes of a file at a reference, in the repository around `place`; `path` as Git names it.

    Raises BaseRefInvalid, or BaseUnavailable where the repository, the commit or the file is not there.
    """
    repo = repository(place, ref)
    data = _bytes(commit_of(repo, ref), path)
    if data is None:
        raise BaseUnavailable(
            f"there is no file {path!r} at {ref!r}.", f"See: git ls-tree -r --name-only {ref}"
        )
    return data


def compare_with(found: Base, terms: Terms) -> Comparison:
    """Every contract that differs from the base, judged; `terms` should come from the base as well."""
    changed = found.changed()

    def history(contract: Contract) -> History:
        modes = {terms.mode.value} if terms.mode else _declared(contract)
        return found.history(contract, always=any(mode.endswith("_TRANSITIVE") for mode in modes))

    return compare(
        changed.before,
        changed.after,
        terms,
        invalid=changed.invalid,
        history=history,
        mentions=found.mentions,
    )


def _declared(contract: Contract) -> Iterable[str]:
    from dq.contracts.extension import dataset

    return {dataset(one)[0].compatibility for one in contract.objects}


def _parsed(data: bytes, file: str) -> Contract | None:
    contract = parse(data, file).contract
    return contract if contract is not None and contract.id and contract.version else None


def _bytes(commit: Commit, path: str) -> bytes | None:
    try:
        found = commit.tree / path
    except KeyError:
        return None
    data = found.data_stream.read()
    return bytes(data) if found.type == "blob" else None


def _day(commit: Commit) -> date:
    return datetime.fromtimestamp(commit.committed_date, UTC).date()


def _hidden(name: str) -> bool:
    return any(part.startswith(".") for part in PurePosixPath(name).parts)


__all__ = ["Base", "BaseRefInvalid", "BaseUnavailable", "Changed", "at", "base", "compare_with"]
