"""Discovery of contract files below a folder, by name or content.

A file whose name ends in `.odcs.yaml` is a contract regardless of its content. Any other YAML file is one if
it contains `kind: DataContract`; skipped files are reported with their apparent format. Links are not
followed, and hidden folders and those of package managers are not searched.
"""

from __future__ import annotations

import os
import re
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from dq.contracts.access import files
from dq.contracts.odcs import OTHER, describe_format, is_contract
from dq.contracts.outcome import ReadError, nearest

CONTRACT_SUFFIX = ".odcs.yaml"
CONTRACT_SUFFIXES = (CONTRACT_SUFFIX, ".odcs.yml")
YAML = (".yaml", ".yml")

# Folders of package managers are not part of the registry, and may have a hundred thousand files.
SKIPPED_FOLDERS = frozenset(("node_modules", "site-packages", "__pycache__"))
# Folder of subscription files, which are not contracts.
SUBSCRIPTIONS = "subscriptions"

# A registry has thousands of contracts, a few folders deep; more is a mistake or an attack.
MAX_DEPTH = 64
MAX_FILES = 50_000
MAX_ENTRIES = 500_000


@dataclass(frozen=True, slots=True)
class SkippedFile:
    """A YAML file that is not a contract, and its apparent format, or `OTHER` if unknown."""

    file: files.FileRef
    kind: str


@dataclass(frozen=True, slots=True)
class Discovery:
    """Distinct contract files at some paths, in order, and skipped files."""

    contracts: tuple[files.FileRef, ...]
    skipped: tuple[SkippedFile, ...] = ()


def find(paths: Iterable[Path]) -> list[files.FileRef]:
    """Return the contract files of `discover`."""
    return list(discover(paths).contracts)


def discover(paths: Iterable[Path]) -> Discovery:
    """Return the distinct contract files at or below the paths, in order, and the skipped YAML files.

    A file that the user named always counts; below a folder, only contracts do. An entry with the name of a
    contract that is not a regular file is included, and rejected by `read`; so is an unreadable YAML file,
    because its content is unknown. Raises ReadError for a path that does not exist, for more than MAX_FILES
    contracts, and for a folder without any, because an empty result must not look like success.
    """
    contracts: dict[str, files.FileRef] = {}
    skipped: dict[str, SkippedFile] = {}
    for path in paths:
        discovery = discover_below(path) if _is_folder(path) else Discovery((files.file_ref(path),))
        if not discovery.contracts:
            skipped_text = f" {skipped_summary(discovery.skipped)}" if discovery.skipped else ""
            raise ReadError(
                f"{files.printable_path(path)} contains no contract.{skipped_text}",
                f"A contract has 'kind: DataContract' or a file name ending in {CONTRACT_SUFFIX}; "
                "'dq init' creates one."
                " Links are not followed.",
            )
        # The folder is resolved once for all its files: below it links are not followed.
        real_root = os.path.realpath(discovery.contracts[0].root)
        for file in discovery.contracts:
            contracts.setdefault(f"{real_root}/{file.name}", file)
        skipped |= {
            f"{real_root}/{skipped_file.file.name}": skipped_file for skipped_file in discovery.skipped
        }
    return Discovery(
        tuple(contracts.values()),
        tuple(skipped_file for key, skipped_file in skipped.items() if key not in contracts),
    )


def skipped_summary(skipped: Iterable[SkippedFile]) -> str:
    """Return the skipped files as one sentence with an example of each kind, or ""."""
    skipped_files = list(skipped)
    kinds = Counter(skipped_file.kind for skipped_file in skipped_files)
    first_of_kind = {skipped_file.kind: str(skipped_file.file) for skipped_file in reversed(skipped_files)}
    parts = [
        f"{count} {'of another kind' if kind == OTHER else f'like {kind}'} ({first_of_kind[kind]}"
        f"{', …' if count > 1 else ''})"
        for kind, count in sorted(
            kinds.items(), key=lambda kind_count: (kind_count[0] == OTHER, -kind_count[1], kind_count[0])
        )
    ]
    if not parts:
        return ""
    count = (
        "1 YAML file is not a contract"
        if len(skipped_files) == 1
        else f"{len(skipped_files)} YAML files are not contracts"
    )
    return f"{count}: {', '.join(parts)}."


def discover_below(root: Path) -> Discovery:
    """Return the contracts below a folder, in order, as `discover` does; may be empty."""
    contracts: list[files.FileRef] = []
    skipped: list[SkippedFile] = []
    for file, data in candidates(root):
        if data is None or is_contract(data):
            contracts.append(file)
        elif not _is_dq_file(file):
            skipped.append(SkippedFile(file, describe_format(data)))
        if len(contracts) > MAX_FILES:
            hint = "Pass smaller folders, one at a time."
            raise ReadError(f"{files.printable_path(root)} contains more than {MAX_FILES:,} contracts.", hint)
    return Discovery(
        tuple(sorted(contracts, key=_path_parts)),
        tuple(sorted(skipped, key=lambda skipped_file: _path_parts(skipped_file.file))),
    )


def candidates(root: Path) -> Iterator[tuple[files.FileRef, bytes | None]]:
    """Yield possible contracts below a folder: with None if it is one by name or cannot be read.

    Every other YAML file comes with its bytes. Links, pipes and folders with such names are skipped.
    """
    for file, folder, name in _walk(root, lambda name: name.endswith(YAML)):
        if folder is None or has_contract_name(name):
            yield file, None
            continue
        try:
            with files.translate_errors(file):
                if stat.S_ISREG(files.stat_entry(folder, name).st_mode):
                    yield file, files.read_prefix(folder, name, files.MAX_BYTES)
        except files.FileRejected as error:
            yield files.FileRef(file.root, file.name, error), None


def find_named(root: Path, name: str) -> list[files.FileRef]:
    """Return the entries of this name below a folder, in order, and the folders that cannot be read."""
    return sorted((file for file, _, _ in _walk(root, lambda other: other == name)), key=_path_parts)


def subscriptions(root: Path) -> list[files.FileRef]:
    """Return the subscription files of a registry, by their names below its root, in order.

    If the folder is a link or a file, the result is one rejected file, because it may refer to anything.
    """
    top = root / SUBSCRIPTIONS
    if not os.path.lexists(top):
        return []
    if top.is_symlink() or not top.is_dir():
        return [
            files.FileRef(
                root,
                SUBSCRIPTIONS,
                _not_a_folder(files.printable_path(top), "a link" if top.is_symlink() else "a file"),
            )
        ]
    entries = _walk(top, lambda name: name.endswith(YAML) and not has_contract_name(name), links=True)
    refs = [files.FileRef(root, f"{SUBSCRIPTIONS}/{file.name}", file.rejection) for file, _, _ in entries]
    return sorted(refs, key=_path_parts)


def _not_a_folder(path: str, kind: str) -> files.NotARegularFile:
    return files.NotARegularFile(f"{path} is {kind}.", "Replace it with the folder itself.")


def contract_names(folder: Path) -> list[str]:
    """Return the names of contract files in a folder, without its subfolders; empty if it cannot be read."""
    with suppress(OSError), os.scandir(folder) as entries:
        return [entry.name for entry in entries if has_contract_name(entry.name)]
    return []


def has_contract_name(name: str) -> bool:
    """Return True if a file is a contract by its name alone."""
    return name.endswith(CONTRACT_SUFFIXES)


def is_searched(name: str) -> bool:
    """Return True if a file at this path is searched: no part is hidden or belongs to a package manager."""
    *folders, file_name = name.split("/")
    return not file_name.startswith(".") and all(_is_searched_folder(folder) for folder in folders)


def _is_searched_folder(folder: str) -> bool:
    return folder == ".." or not (folder.startswith(".") or folder in SKIPPED_FOLDERS)


def _path_parts(file: files.FileRef) -> list[str]:
    return file.name.split("/")


def _is_dq_file(file: files.FileRef) -> bool:
    """Return True for other files of dq: a policy, or a subscription in the root of a registry."""
    *folders, file_name = file.name.split("/")
    if file_name == files.POLICY_FILE:
        return True
    registry_candidates = [
        Path(file.root, *folders[:index]) for index, name in enumerate(folders) if name == SUBSCRIPTIONS
    ]
    return folders[:1] == [SUBSCRIPTIONS] or any(
        os.path.lexists(candidate / files.POLICY_FILE) for candidate in registry_candidates
    )


def _is_folder(path: Path) -> bool:
    """Return True if the user named a folder. Raises ReadError if it does not exist."""
    try:
        mode = path.lstat().st_mode
        # A link to a folder is allowed, unless it has the name of a contract.
        return stat.S_ISDIR(mode) or (path.is_dir() and not has_contract_name(path.name))
    except (FileNotFoundError, NotADirectoryError, ValueError) as error:
        hint = _missing_path_hint(path)
        raise ReadError(f"{files.printable_path(path)} does not exist.", hint) from error
    except OSError as error:
        raise files.file_error(path, error) from error


def _missing_path_hint(path: Path) -> str:
    """Return how to fix a path that does not exist: the file next to it that was probably meant."""
    if re.fullmatch(r"\w+=[^=]+(/\w+=[^=]+)*", str(path)):
        return f"Pass a partition with --partition {files.printable_path(path)}."
    try:
        similar = nearest(path.name, (entry.name for entry in os.scandir(path.parent)))
    except (OSError, ValueError):
        similar = None
    if similar is None:
        return "Pass a contract file or a folder of contracts."
    return f"Did you mean {files.printable_path(path.with_name(similar))!r}?"


WalkEntry = tuple[files.FileRef, files.Folder | None, str]


def _walk(root: Path, is_wanted: Callable[[str], bool], *, links: bool = False) -> Iterator[WalkEntry]:
    """Yield each matching entry below a folder, with its open folder and its name there.

    A folder that cannot be read comes without an open folder, and rejected; with `links`, so does a link to
    a folder.
    """
    entry_count = 0

    def walk(folder: files.Folder, prefix: str, depth: int) -> Iterator[WalkEntry]:
        nonlocal entry_count
        folders: list[str] = []
        with os.scandir(folder) as entries:
            for entry in entries:
                entry_count += 1
                if entry_count > MAX_ENTRIES:
                    hint = "Pass the folder that contains the contracts."
                    raise ReadError(
                        f"{files.printable_path(root)} contains more than {MAX_ENTRIES:,} files.", hint
                    )
                if entry.name.startswith("."):
                    continue
                if is_wanted(entry.name):
                    yield files.FileRef(root, prefix + entry.name), folder, entry.name
                elif links and entry.is_symlink() and entry.is_dir():
                    link = files.FileRef(root, prefix + entry.name)
                    yield files.FileRef(root, link.name, _not_a_folder(str(link), "a link")), None, entry.name
                if _is_searched_folder(entry.name) and entry.is_dir(follow_symlinks=False):
                    folders.append(entry.name)
        for name in folders:
            yield from enter(folder, name, prefix + name, depth + 1)

    def enter(folder: files.Folder, name: str, path: str, depth: int) -> Iterator[WalkEntry]:
        ref = files.FileRef(root, path)
        if depth > MAX_DEPTH:
            message = f"{ref} is nested more than {MAX_DEPTH} folders deep and is not read."
            yield (
                files.FileRef(root, path, files.FileRejected(message, "Nest contracts less deeply.")),
                None,
                name,
            )
            return
        try:
            with files.translate_errors(ref), files.open_subfolder(folder, name) as inner:
                yield from walk(inner, f"{path}/", depth)
        except files.FileRejected as error:
            yield files.FileRef(root, path, error), None, name

    with files.translate_errors(files.FileRef(root, ".")), files.open_folder(root) as open_root:
        yield from walk(open_root, "", 0)


# Patterns of paths, as in a policy and in CODEOWNERS.


def matches_path(pattern: str, file: str) -> bool:
    """Return True if a path pattern with `*`, `?` and `**` matches a file; other characters are literal.

    Runs in quadratic time; a regular expression with twenty stars could take exponential time.
    """
    ends = {0}
    for part in _parts(pattern):
        ends = {end for start in ends for end in _ends(part, file, start)}
    return len(file) in ends


@lru_cache(256)
def _parts(pattern: str) -> tuple[str, ...]:
    return tuple(part for part in re.split(r"(\*\*/|\*\*|\*|\?)", pattern) if part)


def _ends(part: str, file: str, start: int) -> Iterable[int]:
    """Return the possible end offsets of a pattern part that starts at `start`."""
    slash = file.find("/", start)
    if part == "**":
        return range(start, len(file) + 1)
    if part == "**/":
        return [start, *(index + 1 for index in range(start, len(file)) if file[index] == "/")]
    if part == "*":
        return range(start, (len(file) if slash < 0 else slash) + 1)
    if part == "?":
        return [start + 1] if start < len(file) and start != slash else []
    return [start + len(part)] if file.startswith(part, start) else []
