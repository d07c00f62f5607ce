"""What `dq tables` says of Delta and Iceberg by their logs alone is what Spark counts in their rows."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from fakes import lakehouse

from dq.contracts.outcome import ReadError
from dq.dataquality.spark.measure import schema_of
from dq.dataquality.table_metadata import MetadataFacts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = lakehouse.MARKS
FORMATS = pytest.mark.parametrize("form", ["delta", "iceberg"])
COLUMNS = (
    "id INT, price DECIMAL(9,2), at TIMESTAMP, seen TIMESTAMP_NTZ, state STRING, ratio DOUBLE,"
    " who STRUCT<name: STRING, tags: ARRAY<STRING>>, counts MAP<STRING, INT>, day DATE"
)
ROW = (
    "({0}, IF({0} % 2 = 0, NULL, 1.5), TIMESTAMP'2026-01-01 10:00:00', NULL, IF({0} % 3 = 0, NULL, 'x'),"
    " 0.5D, IF({0} % 2 = 0, NULL, named_struct('name', 'n', 'tags', array('t'))), NULL,"
    " IF({0} % 5 = 0, NULL, DATE'2026-05-01'))"
)


class Written:
    """A table that Spark writes, and what its log says."""

    def __init__(
        self, spark: SparkSession, form: str, folder: Path, columns: str = COLUMNS, **terms: str
    ) -> None:
        self.spark, self.form = spark, form
        name = "m" + folder.name.replace("-", "_")
        home = str(spark.conf.get(f"spark.sql.catalog.{lakehouse.CATALOG}.warehouse"))
        self.path = Path(f"{home}/shop/{name}" if form == "iceberg" else folder / "t")
        self.name = f"{lakehouse.CATALOG}.shop.{name}" if form == "iceberg" else f"delta.`{self.path}`"
        given = ", ".join(f"'{key}'='{value}'" for key, value in terms.items())
        more = f"TBLPROPERTIES ({given})" if terms else ""
        by = "PARTITIONED BY (day)" if "day" in columns else ""
        self.sql(f"CREATE TABLE {{}} ({columns}) USING {form} {by} {more}")

    def sql(self, statement: str) -> None:
        self.spark.sql(statement.replace("{}", self.name))

    def insert(self, first: int, last: int, row: str = ROW) -> None:
        values = ", ".join(row.format(number) for number in range(first, last + 1))
        self.sql("INSERT INTO {} SELECT /*+ COALESCE(1) */ * FROM VALUES [rows]".replace("[rows]", values))

    def told(self) -> MetadataFacts:
        """What the log says; in the place of broken promises the columns."""
        return lakehouse.by_log(str(self.path), self.form)

    def true(self) -> MetadataFacts:
        """What the log says, after it was compared with all rows."""
        said = self.told()
        if self.form == "iceberg":
            self.sql("REFRESH TABLE {}")
        frame = self.spark.table(self.name)
        counts = [f"count_if(`{name}` IS NULL) AS `{name}`" for name in said.nulls]
        [(rows, *nulls)] = frame.selectExpr("count(*)", *counts).collect()
        assert said.rows in (rows, None)
        wrong = {
            name: (told, found)
            for (name, told), found in zip(said.nulls.items(), nulls, strict=True)
            if told not in (found, None)
        }
        assert not wrong
        assert said.broken == (str(schema_of(frame)),)
        assert (said.rows == rows) or None in said.nulls.values() or rows == 0
        return said

    def known(self) -> MetadataFacts:
        """As `true`, where nothing is unknown."""
        said = self.true()
        assert said.rows is not None
        assert None not in said.nulls.values()
        return said


@FORMATS
def test_rows_nulls_and_columns_are_those_that_spark_counts(
    spark: SparkSession, tmp_path: Path, form: str
) -> None:
    terms = {"delta.enableDeletionVectors": "false"} if form == "delta" else {"format-version": "2"}
    made = Written(spark, form, tmp_path, **terms)
    empty = made.known()
    made.insert(1, 20)
    first = made.known()
    made.sql("INSERT OVERWRITE {} VALUES [row]".replace("[row]", ROW.format(7)))

    assert (empty.rows, empty.files, empty.newest) == (0, 0, None)
    assert set(first.nulls) == {"id", "price", "at", "seen", "state", "ratio", "day"}
    assert (first.rows, first.nulls["seen"], first.nulls["day"]) == (20, 20, 4)
    assert first.newest is not None
    assert abs(dt.datetime.fromisoformat(first.newest) - dt.datetime.now(dt.UTC)) < dt.timedelta(minutes=5)
    assert made.known().rows == 1


VECTORS = [
    pytest.param("3", True, id="deletion vectors"),
    pytest.param("2", False, id="position deletes"),
]


@pytest.mark.parametrize(("version", "exact"), VECTORS)
def test_rows_that_are_deleted_are_taken_off_where_iceberg_counts_them(
    spark: SparkSession, tmp_path: Path, version: str, exact: bool
) -> None:
    terms = {"format-version": version, "write.delete.mode": "merge-on-read"}
    made = Written(spark, "iceberg", tmp_path, "id INT, note STRING, none INT", **terms)
    made.insert(1, 9, "({0}, IF({0} % 2 = 0, NULL, 'x'), NULL)")
    made.sql("DELETE FROM {} WHERE id IN (1, 2)")
    once = made.true()
    made.sql("DELETE FROM {} WHERE id = 3")
    made.insert(10, 11, "({0}, 'y', NULL)")
    twice = made.true()
    lakehouse.compact(spark, made.name)
    made.known()

    assert once.rows == (7 if exact else None)
    assert dict(once.nulls) == {"id": 0, "note": None, "none": 7 if exact else None}
    assert twice.rows == (8 if exact else None)


def test_a_checkpoint_alone_says_the_same(spark: SparkSession, tmp_path: Path) -> None:
    terms = {"delta.checkpointInterval": "2", "delta.enableDeletionVectors": "true"}
    made = Written(spark, "delta", tmp_path, **terms, **{"delta.columnMapping.mode": "name"})
    made.insert(1, 9)
    made.sql("ALTER TABLE {} RENAME COLUMN state TO mood")
    made.sql("ALTER TABLE {} DROP COLUMN ratio")
    made.sql("ALTER TABLE {} ADD COLUMN ratio INT")
    made.sql("DELETE FROM {} WHERE id = 4")
    made.insert(10, 12, ROW.replace(" 0.5D,", "").replace("DATE'2026-05-01')", "DATE'2026-05-01'), 5"))
    whole = made.true()
    log = made.path / "_delta_log"
    newest = max(log.glob("*.checkpoint.parquet")).name[:20]
    for file in log.glob("*.json"):
        if file.name[:20] < newest:
            file.unlink()
    cut = made.true()
    assert cut == whole
    assert cut.rows == 11
    assert (cut.nulls["ratio"], cut.nulls["mood"]) == (None, None)
    (log / f"{int(newest):020}.checkpoint.parquet").unlink()
    with pytest.raises(ReadError, match="has a Delta log that is truncated"):
        made.told()


def test_the_hint_and_the_place_of_an_iceberg_table_decide_what_is_certain(
    spark: SparkSession, tmp_path: Path
) -> None:
    made = Written(spark, "iceberg", tmp_path, "id INT, day DATE", **{"format-version": "1"})
    made.insert(1, 3, "({0}, DATE'2026-05-01')")
    made.sql("ALTER TABLE {} ADD COLUMN late STRING")
    made.insert(4, 5, "({0}, DATE'2026-05-02', 'x')")
    said = made.true()
    hint = made.path / "metadata" / "version-hint.text"
    kept = hint.read_text()

    def refused() -> str:
        with pytest.raises(ReadError) as error:
            made.told()
        return error.value.message

    assert (said.rows, said.nulls["late"], said.nulls["id"]) == (5, None, 0)
    hint.write_text("1")
    assert made.told().rows == 5
    hint.write_text("77")
    assert "names version 77, whose metadata does not exist" in refused()
    hint.unlink()
    assert "only its catalog knows" in refused()
    hint.write_text(kept)
    newest = made.path / "metadata" / f"v{kept}.metadata.json"
    told = json.loads(newest.read_text())
    for change, why in (
        ({"format-version": 4}, "the unsupported Iceberg format version 4"),
        ({"location": f"{told['location']}_before"}, "was moved"),
        ({"encryption-keys": [{"key-id": "k"}]}, "is encrypted"),
        ({"current-snapshot-id": 7}, "cannot be understood|main branch"),
    ):
        newest.write_text(json.dumps({**told, **change}))
        with pytest.raises(ReadError, match=why):
            made.told()
