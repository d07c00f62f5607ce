"""A branch of an Iceberg table: one snapshot of it is checked, and that very snapshot becomes `main`.

A branch may grow while it is checked. So its head is read once; and the commit that moves `main` names that
snapshot, and is refused by Iceberg unless it stands on what `main` is then. Source: Iceberg's spec (refs),
`ManageSnapshots` of Iceberg 1.10.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_plus

from dq.contracts.shared.errors import DqError, Unreadable, UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

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
