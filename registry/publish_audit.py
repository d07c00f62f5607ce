"""Deliveries audited before they are published, and partitions that are missing repaired."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_plus

from dq.contracts.access.access_policy import has_pattern, is_remote
from dq.contracts.outcome import DqError, Unreadable, UsageError
from dq.lake.storage import file_system, is_data_name, is_data_path, partition_folder, split, unescaped
from dq.registry.catalog import Catalog, Partition, Values
from dq.registry.publications import partition_values
from dq.registry.publish import folder_is_there
from dq.registry.table import TableSpec, fold_location

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


# Delta has no branches, and a shallow clone has a log of its own: no single commit makes it the table.
#
# To write into the table and restore it when the check fails would show bad rows meanwhile. So it is
# refused. Source: https://docs.delta.io (clone, restore); protocol of Delta 4.0.


def refused(table: str) -> UsageError:
    """Why a Delta table cannot be published so, and what can be done instead."""
    return UsageError(
        f"{table} is a Delta table, and Delta cannot stage: a clone cannot become the table in one commit, "
        "and a restore comes after readers saw the rows.",
        "Check the frame before you write it: dq.check(contract, frame).raise_for_status().",
    )


# A branch of an Iceberg table: one snapshot of it is checked, and that very snapshot becomes `main`.
#
# A branch may grow while it is checked. So its head is read once; and the commit that moves `main` names
# that snapshot, and is refused by Iceberg unless it stands on what `main` is then. Source: Iceberg's spec
# (refs), `ManageSnapshots` of Iceberg 1.10.

MAIN = "main"
# Of a table that others write to as well, so many commits in a row may be faster than ours.
_TRIES = 5
# Iceberg takes nearly any name; this is what Spark takes behind `branch_`, and our own names begin apart.
_BRANCH = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_\-]{0,127}")


@dataclass(frozen=True, slots=True)
class StagedSnapshot:
    """A snapshot of a table that is the head of a branch; `published`: `main` has had it already."""

    table: IcebergTable
    branch: str
    id: int
    published: bool

    @property
    def run(self) -> str:
        """What a retry of the same publish has too."""
        return f"{self.branch}@{self.id}"


@dataclass(frozen=True, slots=True)
class IcebergTable:
    """A table by the name that Spark's catalogs have for it, or by the path of its folder."""

    spark: SparkSession
    name: str = ""
    path: str = ""

    def staged(self, branch: str) -> StagedSnapshot:
        """The head of the branch. Raises UsageError for `main`, and for a branch that is not there."""
        if branch == MAIN or not _BRANCH.fullmatch(branch):
            raise UsageError(f"{branch!r} is no branch to be audited.", "Write to a branch of its own.")
        with explained(self):
            table = self._loaded()
            found = table.snapshot(branch)
            if found is None:
                known = sorted(str(one) for one in table.refs().keySet() if str(one) != MAIN)
                raise UsageError(
                    f"{self} has no branch {branch!r}; it has: {', '.join(known) or 'none'}.",
                    f"Write to it with spark.wap.branch={branch}.",
                )
            id = int(found.snapshotId())
            return StagedSnapshot(self, branch, id, self._is_published(table, id))

    def frame(self, snapshot: int) -> DataFrame:
        """All rows as of a snapshot, whatever its branch has become since."""
        reader = self.spark.read.format("iceberg").option("snapshot-id", str(snapshot))
        with explained(self):
            return reader.load(self.path) if self.path else reader.table(self.name)

    def place(self) -> str:
        """The folder of the table."""
        with explained(self):
            return str(self._loaded().location()).removeprefix("file:")

    def changed(self, snapshot: int) -> set[tuple[tuple[str, str], ...]]:
        """The partitions in which the snapshot and those before it differ from `main`, by sorted pairs.

        Raises DqError when the snapshot does not stand on what `main` is now.
        """
        found = set()
        with explained(self):
            table = self._loaded()
            current = table.currentSnapshot()
            until = int(current.snapshotId()) if current is not None else None
            files = table.io()
            one = table.snapshot(snapshot)
            while one is not None and int(one.snapshotId()) != until:
                for kind in ("addedDataFiles", "removedDataFiles", "addedDeleteFiles", "removedDeleteFiles"):
                    for file in _each(getattr(one, kind)(files)):
                        spec = table.specs().get(file.specId())
                        found.add(_pairs(str(spec.partitionToPath(file.partition()))))
                parent = one.parentId()
                one = table.snapshot(parent) if parent is not None else None
        if one is None and until is not None:
            raise _left_behind(self)
        return found

    def forward(self, staged: StagedSnapshot) -> bool:
        """Makes the snapshot what readers of `main` see, in one commit; False when it is so already.

        Raises DqError when `main` has gone on since the branch was made: then its rows would be lost.
        """
        for attempt in range(_TRIES):
            with explained(self):
                table = self._loaded()
                if self._is_published(table, staged.id):
                    return False
                try:
                    self._commit(table, staged)
                except Exception as error:
                    if "CommitFailedException" not in _said(error) or attempt == _TRIES - 1:
                        raise
                    continue
                return True
        raise AssertionError("unreachable")

    def _commit(self, table: Any, staged: StagedSnapshot) -> None:
        if table.currentSnapshot() is None:
            # A table that was never written to has no main to be moved.
            table.manageSnapshots().createBranch(MAIN, staged.id).commit()
            return
        # A ref of our own, for a fast-forward takes a name, and the branch may have grown. All in one commit.
        ours = f"dq-audited-{staged.id}"
        done = table.manageSnapshots().createBranch(ours, staged.id)
        done.fastForwardBranch(MAIN, ours).removeBranch(ours).commit()

    def _is_published(self, table: Any, id: int) -> bool:
        """Whether the snapshot is what `main` is, or has been since."""
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
                "A branch is published from a Spark session of this process; this is Spark Connect.",
                "Run it where the driver runs, without SPARK_REMOTE.",
            )
        return jvm

    def __str__(self) -> str:
        return self.name or self.path


def of_partition(changed: set[tuple[tuple[str, str], ...]], values: Mapping[str, str]) -> bool:
    """Whether all that changed is this partition."""
    return changed <= {tuple(sorted((key.lower(), value) for key, value in values.items()))}


@contextmanager
def explained(table: IcebergTable) -> Iterator[None]:
    """What Iceberg and Spark complain about, as one sentence."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # it has no types
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError, TypeError) as error:
        said = _said(error)
        if isinstance(error, TypeError):  # py4j's word for a class that is not there
            raise Unreadable(
                "This Spark session has no jar of Iceberg.", "'dq doctor' prints what every format needs."
            ) from error
        if "is not an ancestor" in said:
            raise _left_behind(table) from error
        raise Unreadable(
            f"Iceberg refused {table}: {said[:300]}", "Mend that, then publish again."
        ) from error


def _left_behind(table: IcebergTable) -> DqError:
    return DqError(
        f"{table}: main has gone on since the branch was made, so that it cannot follow it.",
        "Drop the branch, make it anew from main, and write and publish again.",
    )


def _said(error: Exception) -> str:
    java = getattr(error, "java_exception", None)
    lines = str(java.toString() if java is not None else error).splitlines()
    return next((line.strip() for line in lines if line.strip()), "no reason given")


def _each(iterable: Any) -> Iterator[Any]:
    iterator = iterable.iterator()
    while iterator.hasNext():
        yield iterator.next()


def _pairs(path: str) -> tuple[tuple[str, str], ...]:
    steps = (step.partition("=") for step in path.split("/") if step)
    return tuple(sorted((unquote_plus(key).lower(), unquote_plus(value)) for key, _, value in steps))


# A folder beside the table: its files are checked there, and then the catalog's partition is put there.
#
# Moving a partition is one write of the catalog, and readers that ask the catalog see the old folder or the
# new one. Files are not copied and not moved: an object store has no atomic rename.

File = tuple[str, int, str, str]
"""Path of a file below the folder, its size in bytes, when it was written, and its mark.

The mark is the number of a local file and the time of its last change in any way, which no program can set.
"""


_EMPTY = "A delivery without rows has nothing to be audited: publish it with --rows 0, and without --audit."


@dataclass(frozen=True, slots=True)
class StagedFolder:
    """A partition below a staging root: `root/day=2026-11-20`."""

    root: str
    values: Values

    @property
    def folder(self) -> str:
        return f"{self.root.rstrip('/')}/{partition_folder(self.values)}"

    def run(self, files: frozenset[File]) -> str:
        """What a retry of the same publish has too, and a folder that was written anew has not."""
        # Without the marks, which a change of rights changes too.
        written = sorted((path, size, at) for path, size, at, _ in files)
        digest = hashlib.sha256(repr(written).encode()).hexdigest()[:16]
        return f"{fold_location(self.folder)}#{digest}"

    def published(self, catalog: Catalog, database: str, table: str) -> bool:
        """Whether the catalog has the partition here already: an earlier run came so far."""
        return catalog.place_of(database, table, self.values) == fold_location(self.folder)

    def files(self) -> frozenset[File]:
        """What readers will read there: no markers, and nothing that is hidden.

        Raises UsageError for a link, which could be pointed elsewhere after the audit, and for a pipe, of
        which a reader never comes back. Raises DqError where there is no folder or no file, and as
        `folder_is_there` does.
        """
        self._require_no_link()
        if not folder_is_there(self.folder):
            raise DqError(f"Nothing was staged: {self.folder} does not exist.", self._mend())
        every = _remote(self.folder) if is_remote(self.folder) else _local(self.folder)
        found = frozenset(file for file in every if is_data_path(file[0]))
        if not found:
            raise DqError(
                f"Nothing was staged: {self.folder} holds no file.", f"Write the data there. {_EMPTY}"
            )
        return found

    def _require_no_link(self) -> None:
        """The root and each step below it. What lies above is the machine's own matter, as mounts are."""
        place = self.root
        for step in ("", *partition_folder(self.values).split("/")):
            place = f"{place}/{step}" if step else place
            if not is_remote(place) and Path(place).is_symlink():
                raise _no_file(place, "a link")

    def _mend(self) -> str:
        """What to do where there is no folder: often the partition's own was named, and not the one above."""
        partition = partition_folder(self.values)
        above = self.root.removesuffix(f"/{partition}")
        if above != self.root:
            return f"Name the folder above the partition's own: --audit {above}"
        return f"Write the data there: --audit names the folder that {partition} is in. {_EMPTY}"

    def require_unchanged(self, before: frozenset[File]) -> None:
        """Raises DqError when the files are not those that were checked."""
        now = self.files()
        if now != before:
            changed = sorted({path for path, *_ in before ^ now})
            raise DqError(
                f"{self.folder} changed while it was checked: {', '.join(changed[:3])}.",
                "Publish when its writer is done; every delivery needs a folder of its own.",
            )


def staged_folder(root: str, values: Values, table_location: str) -> StagedFolder:
    """The partition below this root. Raises UsageError for a root where readers look, and for a pattern."""
    if not values:
        raise UsageError("A staged folder is of one partition.", "Name it with --partition.")
    if has_pattern(root):
        # Spark would read what the pattern matches, and the catalog would name this very folder.
        raise UsageError(
            f"{root} is a pattern: what is checked could be another folder than what is published.",
            "Stage into a folder whose name has none of * ? [ ] { }.",
        )
    made = StagedFolder(fold_location(root), values)
    own = fold_location(table_location)
    # Neither by its letters nor where links lead.
    if own and any(
        _is_seen(place, table)
        for place, table in (
            (made.root, own),
            (_real(made.root), _real(own)),
            (_real(made.folder), _real(own)),
        )
    ):
        raise UsageError(
            f"{root} is the table's own folder, lies openly in it or leads there, where readers look.",
            "Write to a folder of its own for each run, such as …/_staged/run-42.",
        )
    return made


def _is_seen(place: str, table: str) -> bool:
    """Whether readers who list the table's folder come to this place."""
    return place == table or (place.startswith(f"{table}/") and is_data_path(place.removeprefix(f"{table}/")))


def _real(place: str) -> str:
    """Where a place is, links followed; no store that is not a disk of ours has any."""
    return place if is_remote(place) else os.path.realpath(place)


def _no_file(path: str, what: str) -> UsageError:
    return UsageError(
        f"{path} is {what}, and what stands behind it may be another thing after the audit.",
        "Stage the files themselves, and name the folder that they are in.",
    )


def _local(folder: str) -> list[File]:
    found = []
    top = fold_location(folder)
    for below, folders, names in os.walk(top):
        for name in (*names, *folders):
            path = f"{below}/{name}"
            status = os.lstat(path)
            if stat.S_ISDIR(status.st_mode):
                continue
            if not stat.S_ISREG(status.st_mode) and is_data_path(path.removeprefix(f"{top}/")):
                raise _no_file(path, "a link" if stat.S_ISLNK(status.st_mode) else "no file")
            mark = f"{status.st_ino} {status.st_ctime_ns}"
            found.append((path.removeprefix(f"{top}/"), status.st_size, str(status.st_mtime_ns), mark))
    return found


def _remote(folder: str) -> list[File]:
    from pyarrow.fs import FileSelector, FileType

    root, path = split(folder)
    system, before = file_system(root)
    top = (before + path).rstrip("/")
    infos = system.get_file_info(FileSelector(top, recursive=True))
    return [
        (one.path.removeprefix(f"{top}/"), one.size, str(one.mtime_ns), "")
        for one in infos
        if one.type is FileType.File
    ]


Listing = Callable[[str], Iterable[str]]
"""The names of the folders directly inside a folder."""

# Spark and Hive write so what is NULL or empty: no value of a key.
_NULL = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True, slots=True)
class Strange:
    """A folder that is no partition of the table, and why."""

    folder: str
    reason: str


@dataclass(frozen=True, slots=True)
class RepairPlan:
    """What a catalog's table lacks. `gone` are partitions whose folder is not there; they are only told.

    `moved` are folders of partitions that the catalog has at another place, with that place.
    """

    missing: tuple[Partition, ...] = ()
    gone: tuple[Partition, ...] = ()
    moved: tuple[tuple[Partition, str], ...] = ()
    strange: tuple[Strange, ...] = ()


def repair_plan(
    spec: TableSpec, known: Iterable[Partition], inside: Listing, holds_files: Callable[[str], bool]
) -> RepairPlan:
    """How the folders below the table differ from the `known` partitions of the catalog; nothing is written.

    A folder without a file is no partition yet, and one whose value is not of its key's type is none.
    """
    places = {one.values: one.location for one in known}
    missing: list[Partition] = []
    moved: list[tuple[Partition, str]] = []
    strange: list[Strange] = []
    seen: dict[str, str] = {}
    for folder, found in _walk(spec, spec.location, [], inside):
        if isinstance(found, str):
            strange.append(Strange(folder, found))
            continue
        try:
            values = partition_values(spec, dict(found))
        except UsageError as error:
            strange.append(Strange(folder, error.what))
            continue
        twin = seen.setdefault(repr(values), folder)
        place = places.get(values)
        if twin != folder:
            strange.append(Strange(folder, f"it has the values of {twin}"))
        elif place is None and holds_files(folder):
            missing.append(Partition(values, folder))
        elif place is None:
            strange.append(Strange(folder, "it holds no file"))
        elif fold_location(place) != fold_location(folder):
            moved.append((Partition(values, folder), place))
    below = f"{fold_location(spec.location)}/"
    folders = {fold_location(folder) for folder in seen.values()}
    gone = [
        Partition(values, place)
        for values, place in places.items()
        if fold_location(place).startswith(below) and fold_location(place) not in folders
    ]
    return RepairPlan(tuple(missing), tuple(gone), tuple(moved), tuple(strange))


def with_published(
    plan: RepairPlan,
    known: Iterable[Partition],
    published: Iterable[Partition],
    holds_files: Callable[[str], bool],
) -> RepairPlan:
    """The plan with the partitions that were `published` in folders of their own, not below the table.

    One that the catalog has lost is missing, and one whose folder has no file is gone. One that the catalog
    has where it was published is as it should be, whatever lies below the table.
    """
    places = {one.values: fold_location(one.location) for one in known}
    below = {one.values for one in plan.missing}
    elsewhere = {one.values: one for one in published}
    missing = [
        one
        for values, one in elsewhere.items()
        if values not in places and values not in below and holds_files(one.location)
    ]
    kept = [one for one in elsewhere.values() if places.get(one.values) == fold_location(one.location)]
    gone = [one for one in kept if not holds_files(one.location)]
    as_published = {one.values for one in kept}
    moved = tuple(pair for pair in plan.moved if pair[0].values not in as_published)
    return replace(plan, missing=(*plan.missing, *missing), gone=(*plan.gone, *gone), moved=moved)


Pairs = list[tuple[str, str]]


def _walk(spec: TableSpec, folder: str, above: Pairs, inside: Listing) -> Iterator[tuple[str, Pairs | str]]:
    """Each folder at the depth of the keys with its values, and what on the way is none, with the reason."""
    if len(above) == len(spec.partitions):
        yield folder, above
        return
    key = spec.partitions[len(above)].name
    for name in sorted(inside(folder)):
        if not is_data_name(name):
            continue
        way = f"{folder.rstrip('/')}/{name}"
        found, equals, value = name.partition("=")
        if not equals or unescaped(found).lower() != key:
            yield way, f"it is called otherwise than {key}=…"
        elif value == _NULL:
            yield way, f"its {key} is NULL"
        else:
            yield from _walk(spec, way, [*above, (key, unescaped(value))], inside)
