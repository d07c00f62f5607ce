"""Comparison of two sides with Spark: hashes of all rows first, then the rows of buckets that differ."""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dq.contracts.model import SchemaObject
from dq.contracts.outcome import ReadError, UsageError
from dq.contracts.sql import text as sql
from dq.contracts.types import DataType
from dq.dataquality.answers.python_tasks import WORTH_ROWS
from dq.dataquality.model.column import classified, hidden_columns
from dq.dataquality.model.metric import Failure
from dq.dataquality.reconcile.columns import (
    ComparedColumn,
    Pairing,
    Terms,
    hash_of,
    pair_columns,
    partition_of,
    partition_parts,
    value_key,
)
from dq.dataquality.reconcile.differing_rows import DifferingRows, column_differences, expressions
from dq.dataquality.reconcile.metadata import one_sided, partition_count, same_files, statistics_differences
from dq.dataquality.reconcile.outcome import (
    Decision,
    Difference,
    Kind,
    Partition,
    PartitionResult,
    Reconciliation,
)
from dq.dataquality.reconcile.parquet_sums import Grouping, PartitionSums, parquet_side, sums_in_tasks
from dq.dataquality.spark.columnar_files import NULL_PARTITION, literal, only_partitions, without_partitions
from dq.dataquality.spark.dataset import Dataset
from dq.dataquality.spark.failing_rows import (
    masked_column,
    masked_where_repeated,
    repeats_classified,
)
from dq.dataquality.spark.measure import schema_of
from dq.dataquality.spark.session import attempt_without_values

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


# Groups of rows by key (or by hash, without a key) in all partitions; of each only sums of hashes are kept.
# With fewer, more equal rows are compared next to the rows that differ. With more, the sums do not fit into a
# processor's cache: 16,384 take .1 of a scan more than 4,096.
BUCKETS = 1 << 13
# Groups in each partition, if there are many or an unknown number of partitions.
_LEAST_BUCKETS = 512
# Below this share of buckets in which several keys differ, rows are selected by bucket.
_FILTER_BELOW = 0.2
# Types of partition columns of which a value has one spelling in paths, if it matches.
_ONE_SPELLING = {
    "string": re.compile(".*", re.DOTALL),
    "date": re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}"),
    "timestamp": re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}"),
}
# Hashes are summed in two parts, because a sum of whole hashes would overflow. The lower part has the bits of
# a prime, modulo which the sums of a group also tell which key differs, if it is the only one: see `_only`.
_PRIME = (1 << 31) - 1
_BITS = 31
# Bits of the hash of a key: few compared to a prime, so that a wrong quotient is seldom one, and enough that
# few rows share it.
_KEY_BITS = 24
_UNEQUAL = "(_dq_left <> _dq_right OR _dq_low <> 0 OR _dq_high <> 0)"
_SUMS = tuple(f"sum({name}) AS {name}" for name in ("_dq_left", "_dq_right", "_dq_low", "_dq_high"))
# Partitions that may be counted one by one, and decided without rows; further ones are read.
_MOST_COUNTED, _MOST_DECIDED = 100, 1_000


@dataclass(frozen=True, slots=True)
class Side:
    """Rows to compare. `dataset` is their location, if they are all of its rows; `schema_object` tells which
    columns are classified.
    """

    label: str
    frame: DataFrame
    dataset: Dataset | None = None
    schema_object: SchemaObject | None = None


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a comparison.

    `partitioned_by` are columns by which both sides are divided; the result names the partitions. With
    `partitions`, only these are compared, and with `since` those with at least this value of the first
    column. Without `details`, it is only known which partitions differ.
    `write_to` is a folder for the rows that differ, masked unless `unmasked`. From `tasks_from` rows of both
    sides on, Python tasks read Parquet files.
    """

    partitioned_by: tuple[str, ...] = ()
    partitions: tuple[Mapping[str, str], ...] = ()
    since: str | None = None
    details: bool = True
    write_to: str | None = None
    unmasked: bool = False
    tasks_from: int = WORTH_ROWS


def partition_columns(left: Side, right: Side) -> tuple[str, ...]:
    """Return the partition columns of a side that both sides have, as named on the left."""
    names = [{name.lower(): name for name in schema_of(side.frame).names} for side in (left, right)]
    for side in (left, right):
        columns = side.dataset.partitions if side.dataset is not None else ()
        if not columns and side.schema_object is not None:
            columns = tuple(prop.column for prop in side.schema_object.partition_keys())
        if columns and all(name.lower() in names[0] and name.lower() in names[1] for name in columns):
            return tuple(names[0][name.lower()] for name in columns)
    return ()


def reconcile(left: Side, right: Side, terms: Terms, options: Options) -> Reconciliation:
    """Compare two sides.

    Raises:
        UsageError: Unknown columns or partitions, a key or tolerance that does not apply (see
            `pair_columns`), or no column to compare.
        ReadError: Spark cannot read a side or write the differing rows; the message has no values.
    """
    pairing = pair_columns(schema_of_side(left), schema_of_side(right), terms)
    if not pairing.columns:
        raise UsageError(
            f"{left.label} and {right.label} have no column in common.", "Pass --rename LEFT=RIGHT."
        )
    partitioned_by = pairing.named(options.partitioned_by)
    run = _Run(left, right, pairing, options, partitioned_by, _buckets(left, partitioned_by))
    with _with_settings(left.frame.sparkSession):
        outcome = attempt_without_values(run.result)
    if isinstance(outcome, Failure):
        raise ReadError(
            f"{left.label} and {right.label} could not be compared: {outcome.message}", "Check both sides."
        )
    return outcome


# Settings of Spark during a comparison. Constraints: for ten columns with constants, Spark would infer a
# constraint for each subset of the hashed columns, and run out of memory. Partitions of cached rows: each
# further pass would start a task for each of the session's 200 shuffle partitions, nearly all empty (and
# does on Spark 3.5). Sums by group in columns: they need a tenth less time. Batches of rows: of 1,024, all
# columns fit into a processor's cache until they are hashed.
_SETTINGS = {
    "spark.sql.codegen.aggregate.map.vectorized.enable": "true",
    "spark.sql.constraintPropagation.enabled": "false",
    "spark.sql.optimizer.canChangeCachedPlanOutputPartitioning": "true",
    "spark.sql.parquet.columnarReaderBatchSize": "1024",
}
_lock, _running, _before = threading.Lock(), Counter[int](), dict[int, dict[str, str | None]]()


@contextmanager
def _with_settings(spark: SparkSession) -> Iterator[None]:
    """Apply `_SETTINGS` while one or more comparisons run in the session, and restore them."""
    session = id(spark)
    with _lock:
        if not _running[session]:
            _before[session] = {name: spark.conf.get(name, None) for name in _SETTINGS}
            for name, value in _SETTINGS.items():
                spark.conf.set(name, value)
        _running[session] += 1
    try:
        yield
    finally:
        with _lock:
            _running[session] -= 1
            if not _running[session]:
                for name, before in _before.pop(session).items():
                    if before is None:
                        spark.conf.unset(name)
                    else:
                        spark.conf.set(name, before)


def schema_of_side(side: Side) -> DataType:
    """Return the columns of a side; those that a catalog or the contract declares as char are char."""
    schema = schema_of(side.frame)
    declared = {
        field.name: str(field.metadata.get("__CHAR_VARCHAR_TYPE_STRING", ""))
        for field in side.frame.schema.fields
    }
    promised: dict[str, str] = {}
    if side.dataset is not None:
        promised = {
            name.lower(): kind.name
            for name, kind in zip(side.dataset.columns.names, side.dataset.columns.parts, strict=True)
        }
    parts = tuple(
        DataType("char", (1,))
        if kind.name == "string"
        and (declared[name].startswith("char") or promised.get(name.lower()) == "char")
        else kind
        for name, kind in zip(schema.names, schema.parts, strict=True)
    )
    return replace(schema, parts=parts)


def _buckets(left: Side, partitioned_by: Sequence[ComparedColumn]) -> int:
    """Return the number of buckets of each partition."""
    if not partitioned_by:
        return BUCKETS
    names = [column.name for column in partitioned_by]
    partitions = (
        None if left.dataset is None else partition_count(left.frame.sparkSession, left.dataset, names)
    )
    return max(_LEAST_BUCKETS, BUCKETS // (partitions or BUCKETS))


@dataclass(frozen=True, slots=True)
class _PartitionHashes:
    """Row counts of a partition, and the number of its buckets, of those that differ, and in several keys."""

    values: tuple[Any, ...]
    left_rows: int
    right_rows: int
    buckets: int
    unequal: int
    ambiguous: int


@dataclass(frozen=True, slots=True)
class _Run:
    left: Side
    right: Side
    pairing: Pairing
    options: Options
    partitioned_by: tuple[ComparedColumn, ...]
    buckets: int

    def result(self) -> Reconciliation:
        """Compare: metadata first, then hashes, then rows."""
        decided = self._by_metadata()
        remaining = self._remaining(decided)
        results = list(decided)
        differences: tuple[Difference, ...] = ()
        swapped: tuple[tuple[str, str, int], ...] = ()
        columns = column_differences(self.pairing, {}, {})
        hashes: list[_PartitionHashes] = []
        counts: Mapping[tuple[str, ...], Mapping[Kind, int]] | None = None
        written = None
        if remaining is not None:
            hashes, sums = self._hashes(*remaining, decided)
            try:
                if self.options.details and sums is not None and any(group.unequal for group in hashes):
                    left, right = self._unequal_partitions(remaining, hashes)
                    frame = self._differing(left, right, sums, hashes)
                    try:
                        rows = DifferingRows(frame, self.pairing, self.partitioned_by)
                        counts = rows.counts()
                        kinds = {kind for numbers in counts.values() for kind in numbers}
                        if Kind.CHANGED in kinds:
                            columns, swapped = rows.changed_columns()
                        differences = tuple(rows.samples(kinds)) if kinds else ()
                        if self.options.write_to is not None:
                            written = rows.write(self.options.write_to)
                    finally:
                        frame.unpersist()
            finally:
                if sums is not None:
                    sums.unpersist()
        results += [self._partition_result(group, counts) for group in hashes]
        order = sorted(
            results, key=lambda result: [(value is not None, value or "") for _, value in result.partition]
        )
        return Reconciliation(
            self.left.label,
            self.right.label,
            tuple(column.name for column in self.pairing.key),
            columns,
            tuple(order),
            self.pairing.uncompared,
            differences,
            swapped,
            self.options.details,
            written=written,
        )

    def _by_metadata(self) -> list[PartitionResult]:
        """Return the partitions that are decided without reading rows."""
        left, right = self.left.dataset, self.right.dataset
        if left is None or right is None:
            return []
        spark = self.left.frame.sparkSession
        named = tuple(column.name for column in self.partitioned_by)
        # The same files are equal only if each column is compared with itself.
        is_same_column = all(
            column.left_type == column.right_type and column.name.lower() == column.right_name.lower()
            for column in self.pairing.columns
        )
        decided = [
            PartitionResult(partition, Decision.SAME_FILES)
            for partition in (same_files(spark, left, right, named) if is_same_column else ())
            if self._is_in_scope(partition)
        ][:_MOST_DECIDED]
        if self.options.write_to is None and named:
            on_one_side = list(one_sided(spark, left, right, named))
            for partition, is_left in on_one_side if len(on_one_side) <= _MOST_COUNTED else ():
                if self._is_in_scope(partition):
                    side = self.left if is_left else self.right
                    rows = only_partitions(side.frame, [_texts(partition)]).count()
                    difference = {Kind.MISSING if is_left else Kind.EXTRA: rows}
                    counted = (rows, 0) if is_left else (0, rows)
                    decided.append(PartitionResult(partition, Decision.ONE_SIDE, *counted, difference))
        if not self.options.details:
            decided_partitions = {result.partition for result in decided}
            for partition, reason, sizes in statistics_differences(
                (self.left.frame, left), (self.right.frame, right), self.pairing.columns, named
            ):
                if partition not in decided_partitions and self._is_in_scope(partition):
                    decided.append(PartitionResult(partition, Decision.STATISTICS, *sizes, reason=reason))
        return decided

    def _is_in_scope(self, partition: Partition) -> bool:
        """Return whether metadata can decide a partition: it is to be compared, and its values have one
        spelling. The whole table always is.
        """
        if not partition:
            return not (self.options.partitions or self.options.since) or not self.partitioned_by
        if not self._has_one_spelling(partition):
            return False
        values = {name.lower(): value for name, value in partition}
        scopes = [{name.lower(): text for name, text in scope.items()} for scope in self.options.partitions]
        if scopes and not any(
            all(name in values and (values[name] or NULL_PARTITION) == text for name, text in scope.items())
            for scope in scopes
        ):
            return False
        first = partition[0][1]
        return self.options.since is None or (first is not None and first >= self.options.since)

    def _has_one_spelling(self, partition: Partition) -> bool:
        """Return whether a partition's values are written in one way only, so that a text identifies it."""
        for column, (_, text) in zip(self.partitioned_by, partition, strict=True):
            spelling = _ONE_SPELLING.get(column.left_type.name)
            if column.left_type != column.right_type or spelling is None:
                return False
            if text is not None and not spelling.fullmatch(text):
                return False
        return True

    def _remaining(self, decided: Sequence[PartitionResult]) -> tuple[DataFrame, DataFrame] | None:
        """Return the rows of both sides that are not decided yet, or None if all are."""
        partitions = [_texts(result.partition) for result in decided]
        if any(not partition for partition in partitions):
            return None
        frames = [self.left.frame, self.right.frame]
        if self.options.partitions:
            frames = [only_partitions(frame, self.options.partitions) for frame in frames]
        if self.options.since is not None:
            frames = [self._since(frame, self.options.since) for frame in frames]
        if partitions:
            frames = [without_partitions(frame, partitions) for frame in frames]
        return frames[0], frames[1]

    def _since(self, frame: DataFrame, value: str) -> DataFrame:
        """Return the rows from this value of the first partition column on."""
        if not self.partitioned_by:
            raise UsageError("the data has no partitions.", "Remove --since, or compare all rows.")
        column = self.partitioned_by[0].name
        kind = dict(zip(*_names_and_types(frame), strict=True))[column.lower()]
        try:
            start = literal(value, kind)
        except (ValueError, ArithmeticError) as error:
            raise UsageError(
                f"{value!r} is not a valid value of the partition column {column!r} of type {kind}.",
                "Write it as in the path.",
            ) from error
        return frame.where(f"{sql.name(column)} >= {start}")

    # Hashes.

    def _hashes(
        self, left: DataFrame, right: DataFrame, decided: Sequence[PartitionResult]
    ) -> tuple[list[_PartitionHashes], DataFrame | None]:
        """Return the sums of hashes by partition, and by bucket in a persisted frame (None: all are equal).

        This takes one pass over each side.
        """
        in_tasks = self._sums_in_tasks(decided)
        if in_tasks is None:
            sums = self._sums_by_spark(left, right).persist()
            return self._partition_hashes(sums), sums
        rows = [(*sums.values, *bucket) for sums in in_tasks for bucket in sums.differences]
        hashes = [
            _PartitionHashes(sums.values, sums.left_rows, sums.right_rows, sums.buckets, 0, 0)
            for sums in in_tasks
        ]
        if not rows:
            return hashes, None
        fields = [f"{column.normal} {column.equality.compared_as}" for column in self.partitioned_by]
        names = ("_dq_bucket", "_dq_left", "_dq_right", "_dq_low", "_dq_high", "_dq_product")
        schema = ", ".join([*fields, *(f"{name} bigint" for name in names)])
        frame = left.sparkSession.createDataFrame(rows, schema).persist()
        unequal = {value_key(group.values): group for group in self._partition_hashes(frame)}
        return [
            replace(group, unequal=differing.unequal, ambiguous=differing.ambiguous)
            if (differing := unequal.get(value_key(group.values)))
            else group
            for group in hashes
        ], frame

    def _sums_by_spark(self, left: DataFrame, right: DataFrame) -> DataFrame:
        """Return the sums of hashes by partition and bucket."""
        parts = partition_parts(self.partitioned_by)
        # Each side is summed on its own first, because Spark does not compile rows through a union.
        sides = self._sums(left, is_left=True), self._sums(right, is_left=False)
        totals = expressions(*_SUMS, "sum(_dq_product) AS _dq_product")
        return sides[0].unionByName(sides[1]).groupBy(*parts, "_dq_bucket").agg(*totals)

    def _partition_hashes(self, sums: DataFrame) -> list[_PartitionHashes]:
        parts = partition_parts(self.partitioned_by)
        numbers = (
            "sum(_dq_left) AS left_rows",
            "sum(_dq_right) AS right_rows",
            "count(*) AS buckets",
            f"count_if({_UNEQUAL}) AS unequal",
            f"count_if({_UNEQUAL} AND {self._only()} IS NULL) AS ambiguous",
        )
        rows = sums.groupBy(*parts).agg(*expressions(*numbers)).collect()
        size = len(parts)
        return [_PartitionHashes(tuple(row[:size]), *(number or 0 for number in row[size:])) for row in rows]

    def _unequal(self, sums: DataFrame, hashes: Sequence[_PartitionHashes]) -> DataFrame | None:
        """Return the groups of rows that differ, or None if comparing all rows is cheaper."""
        if sum(group.ambiguous for group in hashes) > _FILTER_BELOW * sum(group.buckets for group in hashes):
            return None
        return sums.where(_UNEQUAL).selectExpr(
            f"{self._group('_dq_bucket')} AS _dq_unequal", f"{self._only()} AS _dq_only"
        )

    def _only(self) -> str:
        """Return SQL for the hash of the only key that differs in a group, or NULL if several may differ.

        If rows of one key k alone differ, by h in the sum of hashes, the sum of products differs by k * h:
        modulo a prime, k is their quotient. If several keys differ, the quotient is a random number below the
        prime, which is seldom small enough and in the group.
        """
        if any(column.tolerance is not None for column in self.pairing.columns):
            return "CAST(NULL AS BIGINT)"
        # By Fermat's little theorem, 1 / h is h to the power of the prime - 2, whose bits but one are 1.
        inverse = (
            f"aggregate(sequence({_BITS - 1}, 0, -1), 1L, (power, bit) ->"
            f" power * power % {_PRIME}L * IF(bit = 1, 1L, pmod(_dq_low, {_PRIME}L)) % {_PRIME}L)"
        )
        key = f"(pmod(_dq_product, {_PRIME}L) * {inverse} % {_PRIME}L)"
        is_of_group = f"{key} < {1 << _KEY_BITS}L AND {key} % {self.buckets}L = _dq_bucket"
        return f"IF(_dq_low % {_PRIME}L <> 0 AND {is_of_group}, {key}, NULL)"

    def _key(self) -> str:
        """Return SQL for the hash of a key, or of a whole row without one, from the normal forms."""
        return f"{hash_of(self.pairing.key or self.pairing.columns)} & {(1 << _KEY_BITS) - 1}L"

    def _unequal_partitions(
        self, frames: tuple[DataFrame, DataFrame], hashes: Sequence[_PartitionHashes]
    ) -> tuple[DataFrame, DataFrame]:
        """Return the rows of the partitions that differ, if these are few and a filter can name them."""
        unequal = [partition_of(self.partitioned_by, group.values) for group in hashes if group.unequal]
        # Instants are in the time zone of this process, and not of the session.
        if (
            len(unequal) > min(_MOST_COUNTED, len(hashes) - 1)
            or any(column.left_type.name == "timestamp" for column in self.partitioned_by)
            or not all(map(self._has_one_spelling, unequal))
        ):
            return frames
        scopes = list(map(_texts, unequal))
        left, right = (only_partitions(frame, scopes) for frame in frames)
        return left, right

    def _group(self, bucket: str) -> str:
        """Return SQL for a number of a partition and a bucket."""
        if not self.partitioned_by:
            return bucket
        return f"xxhash64({hash_of(self.partitioned_by)}, {bucket})"

    def _sums_in_tasks(self, decided: Sequence[PartitionResult]) -> list[PartitionSums] | None:
        """Return the sums from Python tasks that read Parquet files, or None if Spark must read them.

        They are those of `_sums_by_spark`, with another hash of the rows.
        """
        left, right = self.left.dataset, self.right.dataset
        if left is None or right is None or self.options.since is not None:
            return None
        named = [column.name for column in self.partitioned_by]
        decided_partitions = {result.partition for result in decided}
        sides = []
        for side, dataset, is_left in ((self.left, left, True), (self.right, right, False)):
            names = [column.name if is_left else column.right_name for column in self.partitioned_by]
            files = parquet_side(side.frame, dataset, self.options.partitions, names)
            if files is None:
                return None
            sides.append(files.without(decided_partitions, dataset, named))
        if sum(side.rows for side in sides) < self.options.tasks_from:
            return None
        grouping = Grouping(self.buckets, _KEY_BITS, _BITS)
        return sums_in_tasks(sides, self.pairing.columns, self.pairing.key, self.partitioned_by, grouping)

    def _sums(self, frame: DataFrame, *, is_left: bool) -> DataFrame:
        """Return the number of rows and the sums of hashes of each partition and bucket, negative on the
        right.
        """
        parts, sign = partition_parts(self.partitioned_by), "" if is_left else "-"
        key = self._key() if self.pairing.key else f"_dq_hash & {(1 << _KEY_BITS) - 1}L"
        low = f"(_dq_hash & {_PRIME}L)"
        # Modulo the prime this is the product of key and hash, and cheaper than a division.
        product = f"(_dq_key * {low} & {_PRIME}L) + shiftrightunsigned(_dq_key * {low}, {_BITS})"
        normal = self._normal(frame, is_left=is_left)
        return (
            normal.selectExpr("*", f"{hash_of(self.pairing.columns)} AS _dq_hash")
            .selectExpr(*parts, "_dq_hash", f"{key} AS _dq_key")
            .selectExpr(*parts, "_dq_hash", "_dq_key", f"_dq_key % {self.buckets}L AS _dq_bucket")
            .groupBy(*parts, "_dq_bucket")
            .agg(
                *expressions(
                    f"{'count(*)' if is_left else '0L'} AS _dq_left",
                    f"{'0L' if is_left else 'count(*)'} AS _dq_right",
                    f"{sign}sum({low}) AS _dq_low",
                    f"{sign}sum(shiftrightunsigned(_dq_hash, {_BITS})) AS _dq_high",
                    f"{sign}sum({product}) AS _dq_product",
                )
            )
        )

    def _normal(self, frame: DataFrame, *, is_left: bool, extra: Iterable[str] = ()) -> DataFrame:
        """Return the normal forms of all compared columns."""
        return frame.selectExpr(
            *(text for column in self.pairing.columns for text in column.select(is_left=is_left)), *extra
        )

    def _partition_result(
        self, group: _PartitionHashes, counts: Mapping[tuple[str, ...], Mapping[Kind, int]] | None
    ) -> PartitionResult:
        partition = partition_of(self.partitioned_by, group.values)
        sizes = (group.left_rows, group.right_rows)
        if not group.unequal:
            return PartitionResult(partition, Decision.HASHES, *sizes)
        if counts is None:
            reason = f"{group.unequal:,} of {group.buckets:,} groups of rows differ"
            return PartitionResult(partition, Decision.HASHES, *sizes, reason=reason)
        return PartitionResult(partition, Decision.ROWS, *sizes, counts.get(value_key(group.values), {}))

    # Rows.

    def _differing(
        self, left: DataFrame, right: DataFrame, sums: DataFrame, hashes: Sequence[_PartitionHashes]
    ) -> DataFrame:
        """Return a row for each key that differs, persisted."""
        groups = self._unequal(sums, hashes)
        frame = self._differences(left, right, groups).persist()
        if groups is None or any(column.tolerance is not None for column in self.pairing.columns):
            return frame
        group = self._group(f"({self._key()}) % {self.buckets}L")
        explained = frame.selectExpr(f"{group} AS _dq_group").distinct().count()
        if explained == sum(partition.unequal for partition in hashes):
            return frame
        # In a group several keys differ, and the sums looked like those of another one.
        frame.unpersist()
        all_keys = groups.selectExpr("_dq_unequal", "CAST(NULL AS BIGINT) AS _dq_only")
        return self._differences(left, right, all_keys).persist()

    def _differences(self, left: DataFrame, right: DataFrame, groups: DataFrame | None) -> DataFrame:
        """Return a row for each key (or each whole row) that differs, from the buckets that differ."""
        sides = [
            self._candidates(frame, groups, is_left=is_left)
            for frame, is_left in ((left, True), (right, False))
        ]
        identity = self.pairing.key or self.pairing.columns
        group = [
            *partition_parts(self.partitioned_by),
            *(part for column in identity for part in column.parts),
        ]
        grouped = (
            sides[0]
            # Types of shown values differ between the sides, so each has columns of its own.
            .unionByName(sides[1], allowMissingColumns=True)
            .groupBy(*dict.fromkeys(group))
            .agg(
                *expressions(
                    *_SUMS,
                    *(
                        f"first({struct}_{side}, true) AS {struct}_{side}"
                        for side in ("left", "right")
                        for struct in ("_dq_row", "_dq_shown")
                    ),
                )
            )
        )
        return grouped.withColumn("_dq_kind", *expressions(self._kind())).where("_dq_kind IS NOT NULL")

    def _kind(self) -> str:
        """Return SQL for the kind of difference of a key, or NULL."""
        if not self.pairing.key:
            return (
                f"CASE WHEN _dq_left > _dq_right THEN '{Kind.MISSING}'"
                f" WHEN _dq_right > _dq_left THEN '{Kind.EXTRA}' END"
            )
        differs = " OR ".join(
            column.differs("_dq_row_left", "_dq_row_right") for column in self.pairing.values
        )
        return (
            f"CASE WHEN _dq_right = 0 THEN '{Kind.MISSING}' WHEN _dq_left = 0 THEN '{Kind.EXTRA}'"
            f" WHEN _dq_left = 1 AND _dq_right = 1 THEN IF({differs or 'FALSE'}, '{Kind.CHANGED}', NULL)"
            f" WHEN _dq_left <> _dq_right OR _dq_low <> 0 OR _dq_high <> 0 THEN '{Kind.REPEATED}' END"
        )

    def _candidates(self, frame: DataFrame, groups: DataFrame | None, *, is_left: bool) -> DataFrame:
        """Return the rows of a side in the buckets that differ, with their normal forms and shown values."""
        shown = self._shown(frame, is_left=is_left)
        side, sign = ("left", "") if is_left else ("right", "-")
        parts = [part for column in self.pairing.columns for part in column.parts]
        rows = frame
        if groups is not None:
            # The other columns of rows that are not selected are not computed.
            identity = self.pairing.key or self.pairing.columns
            selecting = {column.number: column for column in (*self.partitioned_by, *identity)}.values()
            texts = [text for column in selecting for text in column.select(is_left=is_left)]
            rows = rows.selectExpr("*", *texts).selectExpr("*", f"{self._key()} AS _dq_key")
            rows = rows.selectExpr("*", f"{self._group(f'_dq_key % {self.buckets}L')} AS _dq_group")
            (is_selected,) = expressions(
                "_dq_group = _dq_unequal AND (_dq_only IS NULL OR _dq_only = _dq_key)"
            )
            rows = rows.join(groups.hint("broadcast"), is_selected, "left_semi")
        rows = self._normal(rows, is_left=is_left, extra=[f"{shown} AS _dq_shown"])
        rows = rows.selectExpr("*", f"{hash_of(self.pairing.columns)} AS _dq_hash")
        return rows.selectExpr(
            *parts,
            f"named_struct({', '.join(f'{sql.text(part)}, {part}' for part in parts)}) AS _dq_row_{side}",
            f"_dq_shown AS _dq_shown_{side}",
            f"{1 if is_left else 0}L AS _dq_left",
            f"{0 if is_left else 1}L AS _dq_right",
            f"{sign}(_dq_hash & {_PRIME}L) AS _dq_low",
            f"{sign}shiftrightunsigned(_dq_hash, {_BITS}) AS _dq_high",
        )

    def _shown(self, frame: DataFrame, *, is_left: bool) -> str:
        """Return SQL for a struct of the values to show, classified ones masked."""
        names = [column.name if is_left else column.right_name for column in self.pairing.columns]
        own, other = (self.left, self.right) if is_left else (self.right, self.left)
        schema_object = own.schema_object or other.schema_object
        if schema_object is None or self.options.unmasked:
            texts = {name: sql.name(name) for name in names}
        else:
            schema = schema_of(frame)
            kinds = dict(zip(schema.names, schema.parts, strict=True))
            hidden = self._hidden()
            secrets = repeats_classified(schema_object, schema)
            texts = {
                name: (
                    masked_column(name, kinds[name])
                    if column.number in hidden
                    else masked_where_repeated(name, kinds[name], secrets)
                ).rpartition(" AS ")[0]
                or sql.name(name)
                for column, name in zip(self.pairing.columns, names, strict=True)
            }
        members = ", ".join(
            f"{sql.text(column.name)}, {texts[name]}"
            for column, name in zip(self.pairing.columns, names, strict=True)
        )
        return f"named_struct({members})"

    def _hidden(self) -> frozenset[int]:
        """Return the numbers of the columns that may not be shown: hidden on one side, hidden on both."""
        numbers = set[int]()
        for side, is_left in ((self.left, True), (self.right, False)):
            if side.schema_object is not None and classified(side.schema_object):
                hidden = hidden_columns(side.schema_object, schema_of(side.frame))
                numbers |= {
                    column.number
                    for column in self.pairing.columns
                    if (column.name if is_left else column.right_name).lower() in hidden
                }
        return frozenset(numbers)


def _names_and_types(frame: DataFrame) -> tuple[list[str], Sequence[DataType]]:
    schema = schema_of(frame)
    return [name.lower() for name in schema.names], schema.parts


def _texts(partition: Partition) -> dict[str, str]:
    return {name: NULL_PARTITION if value is None else value for name, value in partition}
