"""`dq tables`: what metadata says of every table, kept, and never fine where it cannot be read."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fakes import parquet_footer

OLD = 1_700_000_000
CONTRACT = """\
apiVersion: v3.2.0
kind: DataContract
id: {name}
version: 1.0.0
status: active
servers: [{{server: lake, type: local, path: lake/{name}, format: {form}}}]
schema:
  - name: {name}
    properties:
      - {{name: id, logicalType: integer, physicalType: bigint}}
      - {{name: note, logicalType: string}}
{more}"""
DAY = "      - {name: day, logicalType: date, partitioned: true, partitionKeyPosition: 1}\n"


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DQ_STORE_URL", f"sqlite:///{tmp_path}/state/store.db")
    return tmp_path


def promise(folder: Path, name: str, form: str = "parquet", more: str = "") -> Path:
    (folder / f"{name}.odcs.yaml").write_text(CONTRACT.format(name=name, form=form, more=more))
    place = folder / "lake" / name
    place.mkdir(parents=True)
    return place


def deliver(file: Path, **columns: Any) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), file)
    os.utime(file, (OLD, OLD))


def look(dq) -> tuple[int, dict[str, dict[str, object]]]:
    ran = dq("tables", "--format", "json")
    return ran.code, {one["contract"]: one for one in ran.json}


def test_rows_nulls_columns_and_the_newest_file_come_from_footers(folder, dq):
    place = promise(folder, "good", more=DAY)
    deliver(place / "day=2026-05-01" / "a.parquet", id=[1, 2], note=["x", None])
    deliver(place / "day=2026-05-02" / "b.parquet", id=[3], note=pa.array([None], pa.string()))
    wrong = promise(folder, "wrong")
    deliver(wrong / "a.parquet", id=["1"])
    promise(folder, "none")

    code, told = look(dq)

    good = told["good"]
    assert (good["state"], good["rows"], good["nulls"]) == ("matching", 3, {"id": 0, "note": 2})
    assert (good["files"], good["newest"]) == (2, "2023-11-14T22:13:20+00:00")
    assert (told["none"]["state"], told["none"]["rows"], told["none"]["newest"]) == ("listed", 0, None)
    assert told["wrong"]["state"] == "mismatching"
    assert told["wrong"]["mismatches"] == [
        "wrong.id: type is string; allowed: bigint",
        "wrong.note: column 'note' is missing",
    ]
    assert code == 1


def test_what_did_not_change_is_not_looked_at_anew_and_what_did_is(folder, dq):
    for name in ("same", "more", "text"):
        deliver(promise(folder, name) / "a.parquet", id=[1], note=["x"])
    look(dq)

    second = look(dq)[1]
    deliver(folder / "lake" / "more" / "b.parquet", id=[2], note=["y"])
    file = folder / "text.odcs.yaml"
    file.write_text(file.read_text().replace("name: note", "name: memo"))
    third = look(dq)[1]

    assert {one["changed"] for one in second.values()} == {False}
    assert {name: one["changed"] for name, one in third.items()} == {
        "same": False,
        "more": True,
        "text": True,
    }
    assert (third["more"]["rows"], third["text"]["state"]) == (2, "mismatching")


def test_a_file_that_is_still_written_is_looked_at_again(folder, dq):
    place = promise(folder, "young")
    pq.write_table(pa.table({"id": [1], "note": ["x"]}), place / "a.parquet")
    look(dq)

    assert look(dq)[1]["young"]["changed"] is True


def commit(place: Path, number: int, *actions: dict[str, Any]) -> Path:
    file = place / "_delta_log" / f"{number:020}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(map(json.dumps, actions)))
    os.utime(file, (OLD, OLD))
    return file


def created(kind: str) -> tuple[dict[str, Any], ...]:
    types = {"id": kind, "note": "string"}
    fields = [{"name": name, "type": one, "metadata": {}} for name, one in types.items()]
    schema = json.dumps({"type": "struct", "fields": fields})
    return {"protocol": {"minReaderVersion": 1}}, {
        "metaData": {"schemaString": schema, "partitionColumns": []}
    }


def file_of(rows: int, notes: int) -> dict[str, Any]:
    stats = json.dumps({"numRecords": rows, "nullCount": {"id": 0, "note": notes}})
    return {"add": {"path": f"{rows}", "partitionValues": {}, "size": 9, "modificationTime": OLD * 1000,
                    "stats": stats}}  # fmt: skip


def test_a_table_with_a_log_is_told_by_it_which_is_not_read_again_without_news(folder, dq):
    log = commit(promise(folder, "log", form="delta"), 0, *created("long"), file_of(3, 1))
    commit(promise(folder, "wrong", form="delta"), 0, *created("integer"))
    outside = folder.parent / "outside" / folder.name
    commit(outside, 0, *created("long"))
    (promise(folder, "linked", form="delta") / "_delta_log").symlink_to(outside / "_delta_log")

    code, told = look(dq)
    second = look(dq)[1]["log"]
    kept = log.read_text()
    log.write_text("x" * len(kept))
    os.utime(log, (OLD, OLD))
    broken = look(dq)[1]["log"]
    log.write_text(kept)
    commit(log.parent.parent, 1, file_of(4, 0))
    third = look(dq)[1]["log"]

    first = told["log"]
    assert (first["state"], first["rows"], first["nulls"]) == ("matching", 3, {"id": 0, "note": 1})
    assert (first["files"], first["bytes"], first["newest"]) == (1, 9, "2023-11-14T22:13:20+00:00")
    assert told["wrong"]["mismatches"] == ["wrong.id: type is int; allowed: bigint"]
    assert (code, told["linked"]["state"], told["linked"]["rows"]) == (3, "unknown", None)
    assert (second, third["changed"], third["rows"]) == ({**first, "changed": False}, True, 7)
    assert (broken["state"], broken["changed"]) == ("unknown", True)


def _unreadable(folder: Path) -> None:
    (promise(folder, "odd") / "a.parquet").write_bytes(b"PAR1 no footer PAR1")


def _absent(folder: Path) -> None:
    promise(folder, "odd").rmdir()


def _leads_out(folder: Path) -> None:
    deliver(folder.parent / "outside.parquet", id=[1], note=["x"])
    (promise(folder, "odd") / "a.parquet").symlink_to(folder.parent / "outside.parquet")


def _circle(folder: Path) -> None:
    place = promise(folder, "odd", more=DAY)
    (place / "day=1").symlink_to(place / "day=1")


@pytest.mark.parametrize("change", [_unreadable, _absent, _leads_out, _circle])
def test_what_cannot_be_read_is_unknown_stops_no_other_and_is_seen_when_it_can(folder, dq, change):
    deliver(promise(folder, "good") / "a.parquet", id=[1], note=["x"])
    change(folder)

    first, second = look(dq), look(dq)
    place = folder / "lake" / "odd"
    for file in place.iterdir() if place.is_dir() else ():
        file.unlink()
    deliver(place / "a.parquet", id=[1], note=["x"])
    mended = look(dq)

    for code, told in (first, second):
        assert (code, told["good"]["state"], told["odd"]["state"], told["odd"]["rows"]) == (
            3,
            "matching",
            "unknown",
            None,
        )
        assert told["odd"]["problem"]
    assert (mended[0], mended[1]["odd"]["state"]) == (0, "matching")


def test_people_get_a_line_for_each_table_that_is_not_fine_and_one_for_all(folder, dq):
    deliver(promise(folder, "good") / "a.parquet", id=[1, 2], note=["x", None])
    (promise(folder, "text", form="csv") / "a.csv").write_text("id,note\n1,x\n")
    promise(folder, "log", form="delta")
    (folder / "bad.odcs.yaml").write_text("kind: DataContract\nid: [\n")

    ran = dq("tables")

    lines = ran.out.splitlines()
    assert ran.code == 3
    assert lines[0].startswith("unknown: log/log: ")
    assert lines[-1].startswith(
        "3 tables: 1 matching, 0 mismatching, 1 only listed, 1 unknown; rows by metadata: 2, in files: 1; "
    )
    assert "bad.odcs.yaml" in ran.err


@pytest.mark.parametrize(
    ("writer", "rows", "nulls"),
    [
        ("parquet-cpp-arrow version 26.0.1", 3, {"id": 0, "note": 1}),
        ("parquet-go version 1", 3, {"id": None, "note": None}),
        ("presto", None, {"id": None, "note": None}),
    ],
)
def test_footers_are_believed_as_far_as_checks_believe_them(folder, dq, writer, rows, nulls):
    place = promise(folder, "orders")
    deliver(place / "a.parquet", id=[1, 2], note=["x", None])
    deliver(place / "b.parquet", id=[3], note=["y"])
    parquet_footer.rewritten(
        place / "b.parquet",
        lambda fields: fields.update({parquet_footer.CREATED_BY: parquet_footer.raw(writer.encode())}),
    )

    _, told = look(dq)

    assert (told["orders"]["rows"], told["orders"]["nulls"]) == (rows, nulls)
