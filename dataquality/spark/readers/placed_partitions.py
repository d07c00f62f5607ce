"""Partitions that lie beside their table, read together with those below it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING
from urllib.parse import quote

from dq.contracts.shared.errors import Unreadable
from dq.dataquality.spark.partitions import only, without
from dq.dataquality.spark.readers.file_schemas import is_held
from dq.lake.paths import PlacedPartition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructField

# Each folder is a plan of its own; beyond so many, Spark plans for longer than it reads.
MOST_FOLDERS = 200


def for_hadoop(path: str) -> str:
    """The address as Hadoop's own client for S3 has it, with the scheme s3a."""
    return f"s3a://{path.removeprefix('s3://')}" if path.startswith("s3://") else path


def in_scope(
    placed: Sequence[PlacedPartition], scope: Sequence[Mapping[str, str]], types: Mapping[str, StructField]
) -> tuple[PlacedPartition, ...]:
    """Return those that may be among the partitions of a scope; none of these stands for all.

    `types` are those of the partition columns, by their lower case.
    """
    return tuple(
        partition
        for partition in placed
        if not scope
        or any(is_held(f"{quote(partition.folder)}/", wanted, types) is not False for wanted in scope)
    )


def united(
    name: str,
    below: DataFrame | None,
    placed: Sequence[PlacedPartition],
    keys: Sequence[str],
    read: Callable[[str], DataFrame],
) -> DataFrame:
    """The rows below the table but for those of the placed partitions, and the rows of these.

    `below` is None where no other partition lies below the table. `read` opens all that lies below a folder.

    Raises Unreadable for more folders than Spark can plan, and for one that is not named as its partition.
    """
    roots: dict[str, list[Mapping[str, str]]] = defaultdict(list)
    for partition in placed:
        root = partition.root(keys)
        if root is None:
            raise Unreadable(
                f"{name}: {partition.folder} is not named as the partition that was published there.",
                "Publish it from a folder that is named so.",
            )
        roots[root].append(dict(partition.values))
    if len(roots) > MOST_FOLDERS:
        raise Unreadable(
            f"{name}: its partitions were published from {len(roots):,} folders, more than {MOST_FOLDERS}.",
            "Stage below one folder, or name the catalog that has them as the contract's server.",
        )
    frames = [only(read(for_hadoop(root)), partitions) for root, partitions in roots.items()]
    if below is not None:
        frames.insert(0, without(below, [dict(partition.values) for partition in placed]))
    return reduce(lambda left, right: left.unionByName(right, allowMissingColumns=True), frames)
