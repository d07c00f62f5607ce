"""What is checked of a staged folder: its partition, and with it the rest of the table where clauses ask."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING

from dq.contracts.model import Contract, SchemaObject
from dq.contracts.shared.outcome import Unreadable
from dq.dataquality.checks import built_in
from dq.dataquality.clauses.clause import RowScope
from dq.dataquality.clauses.foreign_key import Neighbours
from dq.dataquality.clauses.kind import clauses_of
from dq.dataquality.spark.partitions import only
from dq.dataquality.spark.readers.columnar import for_hadoop
from dq.dataquality.spark.readers.open import TEXTS, Dataset, open_table
from dq.lake.paths import partition_folder
from dq.registry.catalog import Catalog
from dq.registry.publishing.audit import StagedFolder
from dq.registry.table import TableSpec, fold_location

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Each place is a plan of its own; beyond so many, Spark plans for longer than it reads.
_MOST_PLACES = 200


@dataclass(frozen=True, slots=True)
class Staging:
    """A staged folder, the data that it will be part of, and the catalog that says where that lies."""

    data: Dataset
    format: str
    folder: StagedFolder
    spec: TableSpec
    catalog: Catalog


def staged_data(
    spark: SparkSession, contract: Contract, one: SchemaObject, staging: Staging
) -> Dataset | DataFrame:
    """The staged partition; as it will be, with all other partitions, where a clause speaks of the table.

    Raises Unreadable where these lie at too many places, or are texts that are typed as one.
    """
    staged = replace(staging.data, path=for_hadoop(staging.folder.root), format=staging.format, table=None)
    wide = [
        clause.path
        for clause in clauses_of(contract, one, built_in(), Neighbours.of([contract]))
        if clause.extent.rows is RowScope.TABLE and clause.severity.blocks and not clause.refused
    ]
    if not wide:
        return staged
    places = _others(staging)
    if staging.format in TEXTS or len(places) > _MOST_PLACES:
        reason = (
            f"it lies at {len(places)} places" if len(places) > _MOST_PLACES else f"it is {staging.format}"
        )
        raise Unreadable(
            f"{', '.join(wide[:3])} speak of the whole table, which cannot be checked with what is staged: "
            f"{reason}.",
            "Use Iceberg, or let these clauses speak of a partition.",
        )
    frames = [only(open_table(spark, staged), [dict(staging.folder.values)])]
    for root, partitions in places.items():
        frames.append(only(open_table(spark, replace(staged, path=root)), partitions))
    return reduce(lambda left, right: left.unionByName(right), frames)


def _others(staging: Staging) -> dict[str, list[dict[str, str]]]:
    """The other partitions of the table by the roots that they lie below."""
    found: dict[str, list[dict[str, str]]] = defaultdict(list)
    for each in staging.catalog.partitions(staging.spec.database, staging.spec.name):
        if each.values == staging.folder.values:
            continue
        place, below = fold_location(each.location), f"/{partition_folder(each.values)}"
        if not place.endswith(below):
            raise Unreadable(
                f"{place} is not called as the partition that the catalog has there.",
                "Write it anew where its folder is called so, and publish it.",
            )
        found[for_hadoop(place.removesuffix(below))].append(dict(each.values))
    return found
