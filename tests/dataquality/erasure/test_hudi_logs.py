"""Keys in log files and HFiles of Hudi; damaged, old and unknown blocks are gaps."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fakes import hudi_log
from fakes.erasure import KEY, OTHER, Place, hit_files

PROPERTIES = "hoodie.table.name=people\nhoodie.table.recordkey.fields=email,id\n"
LOG = "lake/day=1/.f1-0_20260501000000000.log.1_0-1-0"
HFILE = "lake/.hoodie/metadata/record_index/r-0_0-1-0_20260501000000000.hfile"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("DQ_LAKE_ROOTS", str(tmp_path))  # the folder of a timeline is hidden
    place = Place(tmp_path, "hudi")
    place.put("lake/.hoodie/hoodie.properties", PROPERTIES)
    return place


def _searched(place: Place, number: int = 0) -> tuple[int, list[str]]:
    outcome = place.find(f"out{number}")
    return sum(hit_files(outcome).values()), [gap.why for gap in outcome.search.gaps]


def test_older_file_slices_are_searched(place: Place) -> None:
    (place.lake / "day=1").mkdir()
    for instant, email in (("20260501000000000", KEY), ("20260502000000000", OTHER)):
        pq.write_table(pa.table({"email": [email]}), place.lake / f"day=1/f1-0_0-1-0_{instant}.parquet")

    files = place.find().search.files

    assert [(result.file.role, bool(result.hits)) for result in files if "day=1" in result.file.path] == [
        ("old snapshot", True), ("current", False),
    ]  # fmt: skip


def test_blocks_of_rows_are_searched(place: Place) -> None:
    place.put(LOG, hudi_log.rows([{"id": 1, "email": OTHER}]) + hudi_log.rows([{"id": 2, "email": KEY}]))

    assert _searched(place) == (1, [])


@pytest.mark.parametrize(
    ("block", "why"),
    [
        (hudi_log.rows([{"id": 1, "email": OTHER}])[:-3], "bytes that are not blocks"),
        (b"torn by a crash", "bytes that are not blocks"),
        (b"#HUDI#", "bytes that are not blocks"),
        (hudi_log.block(3, b"\0\0\0\3\0\0\0\1\0\0\0\x09x"), "a block of it is damaged"),
        (hudi_log.block(3, b"\0\0\0\3\0\0\0\0more"), "a block of it is damaged"),
        (hudi_log.block(3, b"\0\0\0\3\0\0\0\0", "nothing"), "the Avro schema of a block cannot be read"),
        (hudi_log.block(3, b"\0\0\0\3\0\0\0\0", version=2), "bytes that are not blocks"),
        (hudi_log.block(7, b"x"), "unknown kind 7"),
        (hudi_log.block(5, b"PAR1 cut"), "cannot be read"),
        (hudi_log.deletes(2, b"\xac\xed\0\5"), "in a form of Hudi before 0.12"),
        (hudi_log.deletes(3, b"\2"), "a block of deletes is damaged"),
        (hudi_log.block(4, b"DATABLK*"), "an HFile without trailer"),
    ],
)
def test_a_block_that_cannot_be_read_is_a_gap_and_later_ones_are_searched(
    place: Place, block: bytes, why: str
) -> None:
    place.put(LOG, block + hudi_log.rows([{"id": 1, "email": KEY}]))
    place.put(LOG.replace("log.1", "log.2"), block)

    hits, gaps = _searched(place)

    assert hits == (1 if why != "cannot be read" else 0)
    assert [why in gap for gap in gaps] == [True, True]


@pytest.mark.parametrize(
    ("email", "key"),
    [
        (KEY, KEY), (KEY, f"email:{KEY},id:1"), (KEY, f"id:1,email:{KEY}"),
        ("a,b:c", "email:a,b:c,id:1"), ("17", "email:17,id:1"),
    ],
)  # fmt: skip
def test_the_key_of_a_partial_update_and_of_a_delete_is_searched(place: Place, email: str, key: str) -> None:
    place.keys(["customer.email", f'"{email}"'])
    schema = {**hudi_log.SCHEMA, "fields": hudi_log.SCHEMA["fields"][:2]}
    place.put(LOG, hudi_log.rows([{"_hoodie_record_key": key, "id": 1}], schema))
    assert _searched(place) == (1, [])

    record = b"\2" + b"\2" + bytes([2 * len(key)]) + key.encode() + b"\0\0" + b"\0"
    place.put(LOG, hudi_log.deletes(3, record))
    assert _searched(place, 1) == (1, [])


@pytest.mark.parametrize("key", [f"{KEY}$17", f"a\\$b${KEY}", KEY, f"email:{KEY},id:1"])
@pytest.mark.parametrize("codec", [1, 2])
def test_keys_of_an_hfile_are_searched(place: Place, key: str, codec: int) -> None:
    place.put(HFILE, hudi_log.hfile({"other": {"id": 1}, key: {"id": 2}}, codec))

    assert _searched(place) == (1, [])


def test_numbers_of_record_keys_count_only_for_their_columns(place: Place) -> None:
    place.keys(["17"])
    place.put(HFILE, hudi_log.hfile({"17": {"id": 1}}))
    assert _searched(place) == (1, [])

    place.put("lake/.hoodie/hoodie.properties", PROPERTIES.replace("email,id", "id"))
    assert _searched(place, 1) == (0, [])

    index = '{"indexDefinitions": {"i": {"indexType": "secondary_index", "sourceFields": ["email"]}}}'
    place.put("lake/.hoodie/.index_defs/index.json", index)
    assert _searched(place, 2) == (1, [])


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (hudi_log.hfile({KEY: {"id": 1}}, codec=3), "another compression than gzip"),
        (hudi_log.hfile({"a": {"id": 1}})[:-100], "an HFile without trailer"),
        (hudi_log.hfile({"a": {"id": 1}}).replace(b"DATABLK*", b"DATABLKX"), "format is unknown"),
        (hudi_log.hfile({"a": {"id": 1}}).replace(b"FILEINF2", b"XXXXINF2"), "a damaged HFile"),
        (hudi_log.hfile({"a": {"id": 1}}, 2).replace(b"\0\1a", b"\0\x7fa"), "a damaged HFile"),
        (hudi_log.hfile({"a": {"id": 1}}).replace(b"\x38\x01", b"\x38\x02"), "another number of records"),
    ],
)
def test_an_hfile_that_cannot_be_read_is_a_gap(place: Place, content: bytes, why: str) -> None:
    place.put(HFILE, content)

    hits, gaps = _searched(place)

    assert hits == 0
    assert [why in gap for gap in gaps] == [True]


def test_a_table_without_properties_is_a_gap(tmp_path: Path) -> None:
    place = Place(tmp_path, "hudi")
    place.put(LOG, hudi_log.rows([{"id": 1, "email": KEY}]))

    hits, gaps = _searched(place)

    assert hits == 1
    assert [("hoodie.properties" in gap, "DQ_LAKE_ROOTS" in gap) for gap in gaps] == [(True, True)]
