"""Keys in dq's own store are found, and a search leaves none behind: in logs, stores or files of Spark."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa
from fakes.erasure import KEY, OTHER, Place, hit_files

from dq.operations.erasure_certificate import prove_erasure
from dq.store.engine import open_store
from dq.store.schema import UtcDateTime, complete_metadata


def _texts(table: sa.Table) -> list[sa.Column[Any]]:
    return [column for column in table.columns if isinstance(column.type, sa.String | sa.JSON)]


def _plant(url: str, text: str, document: object) -> set[str]:
    """Write a row to every table of a new store, and return the tables that can have a text."""
    with closing(open_store(url)) as store, store.write() as tx:
        for table in complete_metadata().sorted_tables:
            row = {column.key: _value(column, text, document) for column in table.columns}
            tx.execute(table.insert(), [row])
    return {table.name for table in complete_metadata().sorted_tables if _texts(table)}


def _value(column: sa.Column[Any], text: str, document: object) -> object:
    for key in column.foreign_keys:
        return _value(key.column, text, document)
    kind = column.type
    values: dict[type, object] = {sa.JSON: document, sa.LargeBinary: b"", sa.Boolean: True, sa.String: text}
    if isinstance(kind, UtcDateTime):
        return datetime(2026, 5, 1, tzinfo=UTC)
    return next((value for type_, value in values.items() if isinstance(kind, type_)), 1)


@pytest.mark.parametrize(
    ("text", "document"),
    [
        (KEY.upper(), []), (f"2 rows: id=1 email={KEY}, id=2", []), (f"'{KEY}' is not one of a, b", []),
        ("x", [{"id": 1, "email": KEY}]), ("x", {"rows": [["note", f"of <{KEY}>"]]}),
        (f'{{"email": "{KEY}"}}', []),
    ],
)  # fmt: skip
def test_keys_in_any_table_of_the_store_are_found(tmp_path: Path, text: str, document: object) -> None:
    place = Place(tmp_path, "parquet")
    place.lake.mkdir()
    tables = _plant(f"sqlite:///{tmp_path}/.dq/store.db", text, document)
    if document:
        tables = {name for name in tables if _has_documents(name)}

    outcome = place.find()

    assert set(hit_files(outcome)) == tables
    assert {result.rows for result in outcome.search.files if result.hits} == {1}
    assert {result.file.role for result in outcome.search.files if result.hits} == {"dq results"}


def _has_documents(name: str) -> bool:
    table = complete_metadata().tables[name]
    return any(isinstance(column.type, sa.JSON) for column in table.columns)


@pytest.mark.parametrize(("text", "document"), [(OTHER, [{"email": f"x{KEY}"}]), ("17", [17, {"id": 17}])])
def test_other_texts_and_numbers_of_the_store_are_not(tmp_path: Path, text: str, document: object) -> None:
    place = Place(tmp_path, "parquet")
    place.lake.mkdir()
    place.keys([KEY, "17"])
    _plant(f"sqlite:///{tmp_path}/.dq/store.db", text, document)

    assert hit_files(place.find()) == {}


def test_a_row_of_two_keys_that_are_the_same_value_counts_once(tmp_path: Path) -> None:
    place = Place(tmp_path, "json")
    place.keys([KEY, f" {KEY.title()} ", KEY])
    place.put("lake/day=2026-05-01/a.json", json.dumps({"email": KEY, "contacts": [KEY]}) + "\n")

    outcome = place.find()
    proof = prove_erasure("registry", keys="keys.txt", identity="customer.email", folder=tmp_path)

    assert outcome.rows == 1
    assert {hit.key for result in outcome.search.files for hit in result.hits} == {0, 1, 2}
    (written,) = outcome.written.values()
    assert [json.loads(line)["keys"] for line in Path(written).read_text().splitlines()] == [[0, 1, 2]]
    hits = [hit for file in proof.certificate["tables"][-1]["files"] for hit in file["hits"]]
    assert sorted({hit["key"] for hit in hits}) == proof.certificate["keys"]["digests"]
    assert len(hits) == 4


# Places in which a search could leave keys.


def _files_with_key(folder: Path, *own: str) -> list[str]:
    """The files below a folder with the key in any spelling, but those of the user."""
    patterns = [
        re.escape(text.encode()) for text in (KEY, KEY.upper(), KEY.encode("utf-16-le").decode("latin1"))
    ]
    pattern = re.compile(b"|".join(patterns), re.IGNORECASE)
    return [
        str(path)
        for path in folder.rglob("*")
        if path.is_file()
        and path.relative_to(folder).parts[0] not in own
        and pattern.search(path.read_bytes())
    ]


def test_find_plan_and_prove_leave_no_key_in_the_folder_or_in_their_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(tmp_path, "parquet")
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    (place.lake / "day=2026-05-01").mkdir(parents=True)
    pq.write_table(pa.table({"email": [KEY, OTHER]}), place.lake / "day=2026-05-01/a.parquet")
    (place.lake / "day=2026-05-01/b.parquet").write_bytes(b"PAR1" + KEY.encode())
    _plant(f"sqlite:///{tmp_path}/.dq/store.db", "x", [])
    common = ["registry", "--identity", "customer.email"]

    for arguments, code in (
        (["find", *common, "--keys", "keys.txt", "--out", "hits"], 3),
        (["find", *common, "--keys", "keys.txt", "--out", "more", "--format", "json"], 3),
        (["plan", *common], 3),
        (["prove", *common, "--keys", "keys.txt"], 1),
    ):
        line = [sys.executable, "-m", "dq", "erasure", *arguments]
        ran = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert ran.returncode == code, ran.stderr
        assert KEY not in (ran.stdout + ran.stderr).lower()

    assert _files_with_key(tmp_path, "lake", "keys.txt", "hits", "more") == []
    assert {KEY in path.read_text() for path in (tmp_path / "hits").glob("*.jsonl")} == {True}
    assert KEY not in (tmp_path / "hits/summary.json").read_text()


SEARCH = """
import shutil, sys
from pathlib import Path
from pyspark.sql import SparkSession
from dq.dataquality.erasure.files import SearchedTable, identity_column, list_table
from dq.dataquality.erasure.keys import Keys
from dq.dataquality.erasure.passes import search_listing
from dq.dataquality.model.column import Column
from dq.lake.storage import LocalFiles

folder, key = Path(sys.argv[1]), sys.argv[2]
settings = {
    "spark.eventLog.enabled": "true", "spark.eventLog.dir": f"file://{folder}/events",
    "spark.eventLog.compress": "false", "spark.eventLog.rolling.enabled": "false",
    "spark.local.dir": f"{folder}/local", "spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1", "spark.task.maxDirectResultSize": "1k",
    # Blocks of results do not fit into this memory.
    "spark.memory.fraction": "0.01", "spark.driver.memory": "1g",
}
builder = SparkSession.builder.master("local[2]")
for name, value in settings.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
spark.sparkContext.setLogLevel("INFO")
table = SearchedTable(
    "people", str(folder / "lake"), "parquet", (identity_column(Column(("email",)), "text"),)
)
keys = Keys((key, *(f"user{number}@example.com" for number in range(200_000))))
search = search_listing(
    list_table(LocalFiles(), table), keys, with_rows=True, spark=lambda: spark, most_local_bytes=0
)
print("rows:", len(search.rows), "gaps:", len(search.gaps))
shutil.copytree(folder / "local", folder / "local when it ended")
spark.stop()
"""


@pytest.mark.spark
def test_a_search_by_spark_leaves_no_key_in_event_logs_logs_or_on_disks(tmp_path: Path) -> None:
    (tmp_path / "events").mkdir()
    (tmp_path / "lake").mkdir()
    for number in range(3):
        pq.write_table(pa.table({"email": [KEY, OTHER] * 5_000}), tmp_path / f"lake/{number}.parquet")
    (tmp_path / "lake/damaged").write_bytes(b"PAR1" + KEY.encode())

    ran = subprocess.run(
        [sys.executable, "-c", SEARCH, str(tmp_path), KEY],
        cwd=tmp_path, capture_output=True, text=True, check=False,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )  # fmt: skip

    assert "rows: 15000 gaps: 1" in ran.stdout, ran.stderr
    assert KEY not in (ran.stdout + ran.stderr).lower()
    assert "SparkListenerJobEnd" in "".join(path.read_text() for path in (tmp_path / "events").iterdir())
    assert _files_with_key(tmp_path, "lake") == []
