"""Which files below a folder are contracts: those that are called so, and those that say so.

A file whose name ends in `.odcs.yaml` is one whatever it holds. Any other YAML file is one when its bytes
say `kind: DataContract`; what was passed over is told, with what it seems to be. No link is followed, and
neither hidden folders nor those of package managers are entered.
"""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from dq.contracts.access import files
from dq.contracts.odcs import OTHER, is_contract, looks_like
from dq.contracts.outcome import Unreadable

ENDING = ".odcs.yaml"
ENDINGS = (ENDING, ".odcs.yml")
YAML = (".yaml", ".yml")

# What a package manager unpacks is not the registry's, and may be a hundred thousand files.
NOT_ENTERED = frozenset(("node_modules", "site-packages", "__pycache__"))
# What dq itself reads there, and is no contract.
SUBSCRIPTIONS = "subscriptions"

# A registry has thousands of contracts, a few folders deep; what is beyond is a mistake or an attack.
MAX_DEPTH = 64
MAX_FILES = 50_000
MAX_SEEN = 500_000


@dataclass(frozen=True, slots=True)
class PassedOver:
    """A YAML file that is no contract, and what it seems to be; `OTHER` where nobody knows."""

    file: files.Found
    kind: str


@dataclass(frozen=True, slots=True)
class Discovery:
    """The contract files at some paths, each once, in order, and what else was there."""

    contracts: tuple[files.Found, ...]
    passed: tuple[PassedOver, ...] = ()


def find(paths: Iterable[Path]) -> list[files.Found]:
    """The contract files of `discover`."""
    return list(discover(paths).contracts)


def discover(paths: Iterable[Path]) -> Discovery:
    """The contract files at or below the paths, each once, in order, and the YAML files passed over.

    A file that is named counts whatever its name; below a folder, contracts do. What has the name of a
    contract and is no plain file is found too, and refused by `read`; so is a YAML file that may not be
    read, for nobody knows what it is. Raises Unreadable for a path that is not there, for more than
    MAX_FILES contracts, and for a folder without any: an empty answer must not look like a clean one.
    """
    found: dict[str, files.Found] = {}
    passed: dict[str, PassedOver] = {}
    for path in paths:
        here = below(path) if _is_folder(path) else Discovery((files.named(path),))
        if not here.contracts:
            others = f" {told(here.passed)}" if here.passed else ""
            raise Unreadable(
                f"{files.shown(path)} holds no contract.{others}",
                f"A contract says 'kind: DataContract', or its name ends in {ENDING}; 'dq init' writes the"
                " first one. Links are not followed.",
            )
        # A folder that was named is resolved once for all its files: below it there are no links.
        real = os.path.realpath(here.contracts[0].root)
        for one in here.contracts:
            found.setdefault(f"{real}/{one.name}", one)
        passed |= {f"{real}/{one.file.name}": one for one in here.passed}
    return Discovery(tuple(found.values()), tuple(one for key, one in passed.items() if key not in found))


def told(passed: Iterable[PassedOver]) -> str:
    """What was passed over, as one sentence with a file of each kind; empty when nothing was."""
    every = list(passed)
    kinds = Counter(one.kind for one in every)
    first = {one.kind: str(one.file) for one in reversed(every)}
    parts = [
        f"{count} {'of another kind' if kind == OTHER else f'like {kind}'} ({first[kind]}"
        f"{', …' if count > 1 else ''})"
        for kind, count in sorted(kinds.items(), key=lambda one: (one[0] == OTHER, -one[1], one[0]))
    ]
    if not parts:
        return ""
    count = "1 YAML file is no contract" if len(every) == 1 else f"{len(every)} YAML files are no contracts"
    return f"{count}: {', '.join(parts)}."


def below(root: Path) -> Discovery:
    """The contracts below a folder, in order, as `discover` finds them; none is no error."""
    contracts: list[files.Found] = []
    passed: list[PassedOver] = []
    for one, data in candidates(root):
        if data is None or is_contract(data):
            contracts.append(one)
        elif not _is_ours(one):
            passed.append(PassedOver(one, looks_like(data)))
        if len(contracts) > MAX_FILES:
            mend = "Name folders with fewer of them, one after another."
            raise Unreadable(f"{files.shown(root)} holds more than {MAX_FILES:,} contracts.", mend)
    return Discovery(
        tuple(sorted(contracts, key=_steps)), tuple(sorted(passed, key=lambda one: _steps(one.file)))
    )


def candidates(root: Path) -> Iterator[tuple[files.Found, bytes | None]]:
    """What may be a contract below a folder: with None what is one by its name, or cannot be read.

    With every other YAML file come its bytes. Links, pipes and folders of such names are left out.
    """
    for one, folder, name in _walk(root, lambda name: name.endswith(YAML)):
        if folder is None or called_contract(name):
            yield one, None
            continue
        try:
            with files.explained(one):
                if stat.S_ISREG(files.look(folder, name).st_mode):
                    yield one, files.looked_at(folder, name, files.MAX_BYTES)
        except files.FileRefused as refused:
            yield files.Found(one.root, one.name, refused), None


def called(root: Path, name: str) -> list[files.Found]:
    """What has this name below a folder, in order, and the folders that cannot be read."""
    return sorted((one for one, _, _ in _walk(root, lambda other: other == name)), key=_steps)


def subscriptions(root: Path) -> list[files.Found]:
    """The subscription files of a registry, by their names below its root, in order; none without a folder.

    A folder that is a link comes as one refused file: it may lead anywhere. So does a file in its place.
    """
    top = root / SUBSCRIPTIONS
    if not os.path.lexists(top):
        return []
    if top.is_symlink() or not top.is_dir():
        return [
            files.Found(
                root, SUBSCRIPTIONS, _no_folder(files.shown(top), "a link" if top.is_symlink() else "a file")
            )
        ]
    inside = _walk(top, lambda name: name.endswith(YAML) and not called_contract(name), links=True)
    found = [files.Found(root, f"{SUBSCRIPTIONS}/{one.name}", one.refused) for one, _, _ in inside]
    return sorted(found, key=_steps)


def _no_folder(shown: str, what: str) -> files.NotPlain:
    return files.NotPlain(f"{shown} is {what}.", "Put the folder itself there.")


def called_contract(name: str) -> bool:
    """Whether a file is a contract by its name alone."""
    return name.endswith(ENDINGS)


def entered(name: str) -> bool:
    """Whether a file with this way below a folder is looked at: no part is hidden or a package manager's."""
    *folders, last = name.split("/")
    return not last.startswith(".") and all(_entered(folder) for folder in folders)


def _entered(folder: str) -> bool:
    return folder == ".." or not (folder.startswith(".") or folder in NOT_ENTERED)


def _steps(one: files.Found) -> list[str]:
    return one.name.split("/")


def _is_ours(one: files.Found) -> bool:
    """Whether it is what dq reads besides contracts: a policy, or a subscription where a registry begins."""
    *folders, last = one.name.split("/")
    if last == files.POLICY_FILE:
        return True
    above = [Path(one.root, *folders[:at]) for at, name in enumerate(folders) if name == SUBSCRIPTIONS]
    return folders[:1] == [SUBSCRIPTIONS] or any(
        os.path.lexists(place / files.POLICY_FILE) for place in above
    )


def _is_folder(path: Path) -> bool:
    """Whether the user named a folder. Raises Unreadable for what is not there."""
    try:
        mode = path.lstat().st_mode
        # A link to a folder is the user's; one that is called a contract was meant to be a file.
        return stat.S_ISDIR(mode) or (path.is_dir() and not called_contract(path.name))
    except (FileNotFoundError, NotADirectoryError, ValueError) as error:
        mend = "Name a contract file or a folder of contracts."
        raise Unreadable(f"{files.shown(path)} does not exist.", mend) from error
    except OSError as error:
        raise files.unreadable(path, error) from error


Seen = tuple[files.Found, files.Folder | None, str]


def _walk(root: Path, wanted: Callable[[str], bool], *, links: bool = False) -> Iterator[Seen]:
    """Each wanted name below a folder, with the open folder that it lies in and its name there.

    A folder that cannot be read comes without an open folder, and refused; with `links`, so does a link to
    a folder.
    """
    seen = 0

    def walk(held: files.Folder, above: str, depth: int) -> Iterator[Seen]:
        nonlocal seen
        folders: list[str] = []
        with os.scandir(held) as entries:
            for entry in entries:
                seen += 1
                if seen > MAX_SEEN:
                    mend = "Name the folder of the contracts."
                    raise Unreadable(f"{files.shown(root)} holds more than {MAX_SEEN:,} files.", mend)
                if entry.name.startswith("."):
                    continue
                if wanted(entry.name):
                    yield files.Found(root, above + entry.name), held, entry.name
                elif links and entry.is_symlink() and entry.is_dir():
                    one = files.Found(root, above + entry.name)
                    yield files.Found(root, one.name, _no_folder(str(one), "a link")), None, entry.name
                if _entered(entry.name) and entry.is_dir(follow_symlinks=False):
                    folders.append(entry.name)
        for name in folders:
            yield from enter(held, name, above + name, depth + 1)

    def enter(held: files.Folder, name: str, way: str, depth: int) -> Iterator[Seen]:
        one = files.Found(root, way)
        if depth > MAX_DEPTH:
            message = f"{one} lies more than {MAX_DEPTH} folders deep and is not read."
            yield (
                files.Found(root, way, files.FileRefused(message, "Keep contracts in fewer folders.")),
                None,
                name,
            )
            return
        try:
            with files.explained(one), files.inside(held, name) as inner:
                yield from walk(inner, f"{way}/", depth)
        except files.FileRefused as refused:
            yield files.Found(root, way, refused), None, name

    with files.explained(files.Found(root, ".")), files.open_folder(root) as held:
        yield from walk(held, "", 0)
