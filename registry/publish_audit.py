"""Audit of deliveries before they are published, and repair of missing partitions."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_plus

from dq.contracts.access.access_policy import has_pattern, is_remote
from dq.contracts.layout import HIVE, Layout, unescaped
from dq.contracts.outcome import DqError, ReadError, UsageError
from dq.lake.storage import file_system, is_data_name, is_data_path, split
from dq.registry.catalog import Catalog, Partition, Values
from dq.registry.publications import partition_values
from dq.registry.publish import folder_exists
from dq.registry.table import TableSpec, fold_location

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


# Delta has no branches, and a shallow clone has its own log, so no single commit can publish it.
#
# Writing into the table and restoring it after a failed check would expose bad rows meanwhile. So staging is
# not supported. Source: https://docs.delta.io (clone, restore); protocol of Delta 4.0.


def delta_not_supported(table: str) -> UsageError:
    """Return the error for staging in a Delta table, with the alternative."""
    return UsageError(
        f"{table} is a Delta table, and Delta cannot stage: a clone cannot become the table in one commit, "
        "and a restore comes after readers saw the rows.",
        "Check the frame before you write it: dq.check(contract, frame).raise_for_status().",
    )


# A branch of an Iceberg table: one snapshot is checked, and the same snapshot becomes `main`.
#
# A branch may grow while it is checked. So its head is read once, and the commit that moves `main` names
# that snapshot; Iceberg rejects it unless `main` is its ancestor. Source: Iceberg's spec (refs),
# `ManageSnapshots` of Iceberg 1.10.

MAIN = "main"
# Attempts to commit to a table with concurrent writers.
_ATTEMPTS = 5
# Iceberg allows nearly any name. These are the names that Spark accepts after `branch_`.
_BRANCH = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_\-]{0,127}")


@dataclass(frozen=True, slots=True)
class StagedSnapshot:
    """A snapshot that is the head of a branch; `published` if `main` has or had it."""

    table: IcebergTable
    branch: str
    id: int
    published: bool

    @property
    def run(self) -> str:
        """Id of the run, the same for a retry of the same publication."""
        return f"{self.branch}@{self.id}"


@dataclass(frozen=True, slots=True)
class IcebergTable:
    """A table by its name in Spark's catalogs, or by the path of its folder."""

    spark: SparkSession
    name: str = ""
    path: str = ""

    def staged(self, branch: str) -> StagedSnapshot:
        """Return the head of the branch. Raises UsageError for `main` and for an unknown branch."""
        if branch == MAIN or not _BRANCH.fullmatch(branch):
            raise UsageError(
                f"{branch!r} is not a branch that can be audited.", "Write to a separate branch."
            )
        with explained(self):
            table = self._loaded()
            head = table.snapshot(branch)
            if head is None:
                branches = sorted(str(ref) for ref in table.refs().keySet() if str(ref) != MAIN)
                raise UsageError(
                    f"{self} has no branch {branch!r}; it has: {', '.join(branches) or 'none'}.",
                    f"Write to it with spark.wap.branch={branch}.",
                )
            id = int(head.snapshotId())
            return StagedSnapshot(self, branch, id, self._is_published(table, id))

    def frame(self, snapshot: int) -> DataFrame:
        """Return all rows as of a snapshot, independent of later commits to its branch."""
        reader = self.spark.read.format("iceberg").option("snapshot-id", str(snapshot))
        with explained(self):
            return reader.load(self.path) if self.path else reader.table(self.name)

    def place(self) -> str:
        """Return the folder of the table."""
        with explained(self):
            return str(self._loaded().location()).removeprefix("file:")

    def changed_partitions(self, snapshot: int) -> set[tuple[tuple[str, str], ...]]:
        """Return the partitions in which the snapshot and its ancestors differ from `main`, as sorted pairs.

        Raises DqError if `main` is not an ancestor of the snapshot.
        """
        partitions = set()
        with explained(self):
            table = self._loaded()
            current = table.currentSnapshot()
            until = int(current.snapshotId()) if current is not None else None
            files = table.io()
            ancestor = table.snapshot(snapshot)
            while ancestor is not None and int(ancestor.snapshotId()) != until:
                for kind in ("addedDataFiles", "removedDataFiles", "addedDeleteFiles", "removedDeleteFiles"):
                    for file in _iterate(getattr(ancestor, kind)(files)):
                        spec = table.specs().get(file.specId())
                        partitions.add(_pairs(str(spec.partitionToPath(file.partition()))))
                parent = ancestor.parentId()
                ancestor = table.snapshot(parent) if parent is not None else None
        if ancestor is None and until is not None:
            raise _left_behind(self)
        return partitions

    def fast_forward(self, staged: StagedSnapshot) -> bool:
        """Fast-forward `main` to the snapshot in one commit. Return False if `main` has it already.

        Raises DqError if `main` has moved since the branch was created: its rows would be lost.
        """
        for attempt in range(_ATTEMPTS):
            with explained(self):
                table = self._loaded()
                if self._is_published(table, staged.id):
                    return False
                try:
                    self._commit(table, staged)
                except Exception as error:
                    if "CommitFailedException" not in _error_line(error) or attempt == _ATTEMPTS - 1:
                        raise
                    continue
                return True
        raise AssertionError("unreachable")

    def _commit(self, table: Any, staged: StagedSnapshot) -> None:
        if table.currentSnapshot() is None:
            # A table without commits has no main branch to move.
            table.manageSnapshots().createBranch(MAIN, staged.id).commit()
            return
        # A temporary ref, because a fast-forward takes a name and the branch may have grown. All in one
        # commit.
        audit_branch = f"dq-audited-{staged.id}"
        operation = table.manageSnapshots().createBranch(audit_branch, staged.id)
        operation.fastForwardBranch(MAIN, audit_branch).removeBranch(audit_branch).commit()

    def _is_published(self, table: Any, id: int) -> bool:
        """Return True if the snapshot is the head of `main` or one of its ancestors."""
        current = table.currentSnapshot()
        util = self._jvm().org.apache.iceberg.util.SnapshotUtil
        if current is None:
            return False
        return int(current.snapshotId()) == id or bool(
            util.isAncestorOf(table, int(current.snapshotId()), id)
        )

    def _loaded(self) -> Any:
        jvm = self._jvm()
        if self.path:
            configuration = self.spark._jsparkSession.sessionState().newHadoopConf()
            return jvm.org.apache.iceberg.hadoop.HadoopTables(configuration).load(self.path)
        self.spark.catalog.refreshTable(self.name)
        return jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(
            self.spark._jsparkSession,
            self.name,
        )

    def _jvm(self) -> Any:
        jvm = getattr(self.spark, "_jvm", None)
        if jvm is None:
            raise UsageError(
                "Publishing a branch needs a Spark session in this process; this is Spark Connect.",
                "Run it on the driver, without SPARK_REMOTE.",
            )
        return jvm

    def __str__(self) -> str:
        return self.name or self.path


def is_only_partition(changed: set[tuple[tuple[str, str], ...]], values: Mapping[str, str]) -> bool:
    """Return True if only this partition has changed."""
    return changed <= {tuple(sorted((key.lower(), value) for key, value in values.items()))}


@contextmanager
def explained(table: IcebergTable) -> Iterator[None]:
    """Turn errors of Iceberg and Spark into ReadError, with one sentence."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # it has no types
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError, TypeError) as error:
        message = _error_line(error)
        if isinstance(error, TypeError):  # py4j raises it for a missing class
            raise ReadError(
                "This Spark session has no Iceberg jar.", "Run 'dq doctor' to see what each format needs."
            ) from error
        if "is not an ancestor" in message:
            raise _left_behind(table) from error
        raise ReadError(
            f"Iceberg refused {table}: {message[:300]}", "Fix that, then publish again."
        ) from error


def _left_behind(table: IcebergTable) -> DqError:
    return DqError(
        f"{table}: main has changed since the branch was created and cannot be fast-forwarded.",
        "Drop the branch, create it again from main, then write and publish again.",
    )


def _error_line(error: Exception) -> str:
    java = getattr(error, "java_exception", None)
    lines = str(java.toString() if java is not None else error).splitlines()
    return next((line.strip() for line in lines if line.strip()), "no reason given")


def _iterate(iterable: Any) -> Iterator[Any]:
    iterator = iterable.iterator()
    while iterator.hasNext():
        yield iterator.next()


def _pairs(path: str) -> tuple[tuple[str, str], ...]:
    steps = (step.partition("=") for step in path.split("/") if step)
    return tuple(sorted((unquote_plus(key).lower(), unquote_plus(value)) for key, _, value in steps))


# A staging folder next to the table: its files are checked there, then the catalog's partition is moved to
# it.
#
# Moving a partition is one catalog write: readers of the catalog see either the old folder or the new one.
# Files are neither copied nor moved, because object stores have no atomic rename.

File = tuple[str, int, str, str]
"""Path of a file below the folder, its size in bytes, its modification time, and its mark.

The mark is a local file's inode number and status change time (ctime), which programs cannot set.
"""


_EMPTY = "A delivery without rows has nothing to audit: publish it with --rows 0 and without --audit."


@dataclass(frozen=True, slots=True)
class StagedFolder:
    """A partition below a staging root, as it is below the table: `root/day=2026-11-20`."""

    root: str
    values: Values
    layout: Layout = HIVE

    @property
    def folder(self) -> str:
        return f"{self.root.rstrip('/')}/{self.layout.folder_of(self.values)}"

    def run(self, files: frozenset[File]) -> str:
        """Return the id of the run: the same for a retry, another one for a folder that was rewritten."""
        # Without the marks, which change with file permissions too.
        entries = sorted((path, size, modified) for path, size, modified, _ in files)
        digest = hashlib.sha256(repr(entries).encode()).hexdigest()[:16]
        return f"{fold_location(self.folder)}#{digest}"

    def is_published(self, catalog: Catalog, database: str, table: str) -> bool:
        """Return True if an earlier run has moved the catalog's partition to this folder."""
        return catalog.partition_location(database, table, self.values) == fold_location(self.folder)

    def files(self) -> frozenset[File]:
        """Return the files that readers will read: without markers and hidden files.

        Raises UsageError for a link, whose target could change after the audit, and for a pipe, which blocks
        readers. Raises DqError if there is no folder or no file, and as `folder_exists` does.
        """
        self._require_no_link()
        if not folder_exists(self.folder):
            raise DqError(f"Nothing was staged: {self.folder} does not exist.", self._hint())
        all_files = _remote(self.folder) if is_remote(self.folder) else _local(self.folder)
        data_files = frozenset(file for file in all_files if is_data_path(file[0]))
        if not data_files:
            raise DqError(
                f"Nothing was staged: {self.folder} contains no files.", f"Write the data there. {_EMPTY}"
            )
        return data_files

    def _require_no_link(self) -> None:
        """Raise UsageError if the root or a folder below it is a link. Folders above the root are not
        checked.
        """
        place = self.root
        for step in ("", *self.layout.folder_of(self.values).split("/")):
            place = f"{place}/{step}" if step else place
            if not is_remote(place) and Path(place).is_symlink():
                raise _no_file(place, "a link")

    def _hint(self) -> str:
        """Return the hint for a missing folder: often the partition's folder was named instead of its
        root.
        """
        partition = self.layout.folder_of(self.values)
        above = self.root.removesuffix(f"/{partition}")
        if above != self.root:
            return f"Pass the folder that contains the partition's folder: --audit {above}"
        return f"Write the data there: --audit takes the folder that contains {partition}. {_EMPTY}"

    def require_unchanged(self, before: frozenset[File]) -> None:
        """Raise DqError if the files have changed since they were checked."""
        now = self.files()
        if now != before:
            changed = sorted({path for path, *_ in before ^ now})
            raise DqError(
                f"{self.folder} changed while it was checked: {', '.join(changed[:3])}.",
                "Publish when its writer is done; each delivery needs its own folder.",
            )


def staged_folder(root: str, values: Values, table_location: str, layout: Layout = HIVE) -> StagedFolder:
    """Return the partition below this root. Raises UsageError for a root visible to readers or a pattern."""
    if not values:
        raise UsageError("A staged folder holds one partition.", "Pass it with --partition.")
    if has_pattern(root):
        # Spark would read all matching folders, the catalog would have the literal one.
        raise UsageError(
            f"{root} is a pattern: the folder that is checked could differ from the one that is published.",
            "Stage into a folder without * ? [ ] { } in its name.",
        )
    staged = StagedFolder(fold_location(root), values, layout)
    own = fold_location(table_location)
    # Neither as written nor with links resolved.
    if own and any(
        _is_visible(place, table)
        for place, table in (
            (staged.root, own),
            (_real(staged.root), _real(own)),
            (_real(staged.folder), _real(own)),
        )
    ):
        raise UsageError(
            f"{root} is the table's own folder, or is visible in it or links to it, so readers "
            "would see the data.",
            "Write each run to its own folder, e.g. …/_staged/run-42.",
        )
    return staged


def _is_visible(place: str, table: str) -> bool:
    """Return True if readers that list the table's folder find this place."""
    return place == table or (place.startswith(f"{table}/") and is_data_path(place.removeprefix(f"{table}/")))


def _real(place: str) -> str:
    """Return the location with links resolved; remote storage has no links."""
    return place if is_remote(place) else os.path.realpath(place)


def _no_file(path: str, what: str) -> UsageError:
    return UsageError(
        f"{path} is {what}, so its content could change after the audit.",
        "Stage the files themselves, and pass the folder that contains them.",
    )


def _local(folder: str) -> list[File]:
    files = []
    top = fold_location(folder)
    for directory, folders, names in os.walk(top):
        for name in (*names, *folders):
            path = f"{directory}/{name}"
            status = os.lstat(path)
            if stat.S_ISDIR(status.st_mode):
                continue
            if not stat.S_ISREG(status.st_mode) and is_data_path(path.removeprefix(f"{top}/")):
                raise _no_file(path, "a link" if stat.S_ISLNK(status.st_mode) else "not a regular file")
            mark = f"{status.st_ino} {status.st_ctime_ns}"
            files.append((path.removeprefix(f"{top}/"), status.st_size, str(status.st_mtime_ns), mark))
    return files


def _remote(folder: str) -> list[File]:
    from pyarrow.fs import FileSelector, FileType

    root, path = split(folder)
    system, prefix = file_system(root)
    top = (prefix + path).rstrip("/")
    infos = system.get_file_info(FileSelector(top, recursive=True))
    return [
        (info.path.removeprefix(f"{top}/"), info.size, str(info.mtime_ns), "")
        for info in infos
        if info.type is FileType.File
    ]


Listing = Callable[[Sequence[str]], Iterable[Iterable[str]]]
"""The names of the folders directly inside each of several folders."""

WithFiles = Callable[[Sequence[str], Collection[str]], Collection[str]]
"""Those of the given folders that contain a file; the second argument has all folders of the same level."""

# Folder value that Spark and Hive write for NULL or empty keys.
_NULL = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True, slots=True)
class UnrecognizedFolder:
    """A folder that is not a partition of the table, with the reason."""

    folder: str
    reason: str


@dataclass(frozen=True, slots=True)
class RepairPlan:
    """Partitions that a catalog's table lacks. `dangling` are those without a folder, which are only
    reported.

    `moved` are folders of partitions that the catalog has at another location, with that location.
    """

    missing: tuple[Partition, ...] = ()
    dangling: tuple[Partition, ...] = ()
    moved: tuple[tuple[Partition, str], ...] = ()
    unrecognized: tuple[UnrecognizedFolder, ...] = ()


def repair_plan(
    spec: TableSpec, registered: Iterable[Partition], list_folders: Listing, with_files: WithFiles
) -> RepairPlan:
    """Compare the folders below the table with the `registered` partitions of the catalog. Read-only.

    Folders without a file, or with a value that does not fit the key's type, are not partitions.
    """
    places = {partition.values: partition.location for partition in registered}
    unregistered: list[Partition] = []
    moved: list[tuple[Partition, str]] = []
    unrecognized: list[UnrecognizedFolder] = []
    folder_by_values: dict[str, str] = {}
    for folder, entry in _walk(spec, list_folders):
        if isinstance(entry, str):
            unrecognized.append(UnrecognizedFolder(folder, entry))
            continue
        try:
            values = partition_values(spec, dict(entry))
        except UsageError as error:
            unrecognized.append(UnrecognizedFolder(folder, error.what))
            continue
        first_folder = folder_by_values.setdefault(repr(values), folder)
        place = places.get(values)
        if first_folder != folder:
            unrecognized.append(UnrecognizedFolder(folder, f"it has the same values as {first_folder}"))
        elif place is None:
            unregistered.append(Partition(values, folder))
        elif fold_location(place) != fold_location(folder):
            moved.append((Partition(values, folder), place))
    filled = with_files([partition.location for partition in unregistered], list(folder_by_values.values()))
    missing = [partition for partition in unregistered if partition.location in filled]
    unrecognized += [
        UnrecognizedFolder(partition.location, "it contains no files")
        for partition in unregistered
        if partition.location not in filled
    ]
    prefix = f"{fold_location(spec.location)}/"
    folders = {fold_location(folder) for folder in folder_by_values.values()}
    dangling = [
        Partition(values, place)
        for values, place in places.items()
        if fold_location(place).startswith(prefix) and fold_location(place) not in folders
    ]
    return RepairPlan(tuple(missing), tuple(dangling), tuple(moved), tuple(unrecognized))


def with_published(
    plan: RepairPlan,
    registered: Iterable[Partition],
    published: Iterable[Partition],
    has_files: Callable[[str], bool],
) -> RepairPlan:
    """Return the plan extended by partitions that were `published` in folders outside of the table.

    One that is not in the catalog is missing; one whose folder has no file is dangling. One that the catalog
    has at its published location is correct, whatever folders are below the table.
    """
    places = {partition.values: fold_location(partition.location) for partition in registered}
    below = {partition.values for partition in plan.missing}
    elsewhere = {partition.values: partition for partition in published}
    missing = [
        partition
        for values, partition in elsewhere.items()
        if values not in places and values not in below and has_files(partition.location)
    ]
    in_place = [
        partition
        for partition in elsewhere.values()
        if places.get(partition.values) == fold_location(partition.location)
    ]
    dangling = [partition for partition in in_place if not has_files(partition.location)]
    as_published = {partition.values for partition in in_place}
    moved = tuple(pair for pair in plan.moved if pair[0].values not in as_published)
    return replace(plan, missing=(*plan.missing, *missing), dangling=(*plan.dangling, *dangling), moved=moved)


Pairs = list[tuple[str, str]]


def _walk(spec: TableSpec, list_folders: Listing) -> Iterator[tuple[str, Pairs | str]]:
    """Yield each partition folder with its values, and each unrecognized folder with the reason, by level."""
    location, parents = spec.location.rstrip("/"), [""]
    depth = spec.layout.depth or len(spec.partitions)
    for level in range(depth):
        listed = list_folders([f"{location}/{parent}".rstrip("/") for parent in parents])
        folders = [
            f"{parent}/{name}" if parent else name
            for parent, names in zip(parents, listed, strict=True)
            for name in sorted(filter(is_data_name, names))
        ]
        parents = []
        for folder in folders:
            problem = _layout_problem(spec, folder) if spec.layout else _hive_problem(spec, folder, level)
            if problem:
                yield f"{location}/{folder}", problem
            elif level + 1 < depth:
                parents.append(folder)
            else:
                values = spec.layout.partition_of(folder)
                problem = f"it does not match the layout {spec.layout.template}"
                yield f"{location}/{folder}", problem if values is None else list(values)


def _layout_problem(spec: TableSpec, folder: str) -> str:
    """Return the reason why a folder is neither one of the layout nor above one, or ""."""
    may_contain = spec.layout.may_contain(folder)
    return "" if may_contain else f"it is not in the layout {spec.layout.template}"


def _hive_problem(spec: TableSpec, folder: str, level: int) -> str:
    """Return the reason why the last part of a folder is not a value of the key at this level, or ""."""
    key = spec.partitions[level].name
    name, equals, value = folder.rpartition("/")[2].partition("=")
    if not equals or unescaped(name).lower() != key:
        return f"its name is not {key}=…"
    return f"its {key} is NULL" if value == _NULL else ""
