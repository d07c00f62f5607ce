"""Keys in the places of plain folders where they hide: each file with one is found, and no other."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from fakes.erasure import KEY, OTHER, PLACES, Place, files_with, hit_files, row

Rows = Sequence[Mapping[str, Any]]
SCHEMA = pa.schema([
    ("id", pa.int64()), ("email", pa.string()), ("note", pa.string()), ("contacts", pa.list_(pa.string())),
])  # fmt: skip
AVRO = {
    "type": "record", "name": "row", "fields": [
        {"name": "id", "type": "long"}, {"name": "email", "type": ["null", "string"]},
        {"name": "note", "type": "string"},
        {"name": "contacts", "type": {"type": "array", "items": "string"}},
    ],
}  # fmt: skip


def _parquet(path: Path, rows: Rows) -> None:
    pq.write_table(pa.Table.from_pylist(list(rows), SCHEMA), path)


def _orc(path: Path, rows: Rows) -> None:
    orc.write_table(pa.Table.from_pylist(list(rows), SCHEMA), path)


def _avro(path: Path, rows: Rows) -> None:
    with path.open("wb") as file:
        fastavro.writer(file, AVRO, list(rows))


def _json(path: Path, rows: Rows) -> None:
    path.write_text("".join(f"{json.dumps(one)}\n" for one in rows))


def _csv(path: Path, rows: Rows) -> None:
    arrays = [json.dumps(one["contacts"]).replace('"', '""') for one in rows]
    lines = [
        f'{one["id"]},"{one["email"]}",{one["note"]},"{array}"'
        for one, array in zip(rows, arrays, strict=True)
    ]
    path.write_text("\n".join(["id,email,note,contacts", *lines, ""]))


WRITERS: dict[str, Callable[[Path, Rows], None]] = {
    "parquet": _parquet, "orc": _orc, "avro": _avro, "json": _json, "csv": _csv,
}  # fmt: skip


def _fill(place: Place, format: str, path: str, rows: Rows) -> Path:
    name = path if "." in path.rpartition("/")[2] else f"{path}.{format}"
    target = place.lake / name
    target.parent.mkdir(parents=True, exist_ok=True)
    WRITERS[format](target, rows)
    return target


@pytest.mark.parametrize("format", WRITERS)
def test_keys_are_found_in_all_places_and_nowhere_else(tmp_path: Path, format: str) -> None:
    place = Place(tmp_path, format)
    for number, path in enumerate(PLACES.values()):
        _fill(place, format, path, [row(OTHER), row(KEY, number)])
        _fill(place, format, f"{path}-other", [row(OTHER), row(f"x{KEY}", 2)])
    _fill(place, format, "day=2026-05-03/in-an-array", [row(OTHER, 1, ["a", KEY]), row(OTHER)])

    outcome = place.find()

    expected = {path for path in files_with(place.lake, f"'{KEY}'") | _in_csv(place) if "-other" not in path}
    assert set(hit_files(outcome)) == expected
    assert len(expected) == len(PLACES) + 1
    assert outcome.search.gaps == ()
    assert {result.file.path for result in outcome.search.files} == {
        str(path) for path in place.lake.rglob("*") if path.is_file()
    }


def _in_csv(place: Place) -> set[str]:
    return {
        str(path)
        for path in place.lake.rglob("*")
        if path.is_file() and f'"{KEY}"' in path.read_text("latin1")
    }


def test_a_key_in_the_path_of_a_partition_is_found(tmp_path: Path) -> None:
    place = Place(tmp_path, "parquet")
    folder = place.lake / "email=Ann%40example.com"
    folder.mkdir(parents=True)
    pq.write_table(pa.table({"id": [1, 2]}), folder / "part-0.parquet")
    (place.lake / "email=ann@example.com/day=1").mkdir(parents=True)

    assert hit_files(place.find()) == {
        str(folder / "part-0.parquet"): 2,
        f"{place.lake}/email=ann@example.com/day=1/": 1,
    }


def test_a_summary_of_footers_has_keys_as_bounds(tmp_path: Path) -> None:
    place = Place(tmp_path, "parquet")
    path = _fill(place, "parquet", "day=2026-05-01/part-0", [row(OTHER), row(KEY)])
    footer = pq.read_metadata(path)
    footer.set_file_path("day=2026-05-01/part-0.parquet")
    footer.write_metadata_file(place.lake / "_metadata")
    path.unlink()

    assert hit_files(place.find()) == {str(place.lake / "_metadata"): 1}


@pytest.mark.parametrize("format", ["csv", "json"])
def test_compressed_text_is_read(tmp_path: Path, format: str) -> None:
    place = Place(tmp_path, format)
    path = _fill(place, format, "day=2026-05-01/part-0", [row(OTHER), row(KEY)])
    path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()

    outcome = place.find()

    assert list(hit_files(outcome)) == [f"{path}.gz"]
    assert outcome.search.gaps == ()


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("part-0.parquet", b"PAR1 truncated", "cannot be read"),
        ("part-0.parquet", b"PARE encrypted", "encrypted"),
        ("part-0.parquet", b"\x00\x01\x02", "format is unknown"),
        ("part-0.parquet.sz", b"\xff\x06\x00\x00sNaPpY", "format is unknown"),
        ("part-0.avro", b"Obj\x01 truncated", "cannot be read"),
    ],
)
def test_a_file_that_cannot_be_read_is_a_gap(tmp_path: Path, name: str, content: bytes, why: str) -> None:
    place = Place(tmp_path, "parquet")
    place.put(f"lake/day=2026-05-01/{name}", content)

    outcome = place.find()

    (gap,) = outcome.search.gaps
    assert outcome.search.files == ()
    assert gap.what.endswith(name)
    assert why in gap.why
    assert outcome.exit_code == 3


@pytest.mark.parametrize(
    ("format", "content"),
    [
        ("csv", f"id,email,note,contacts\n1,a,b,c\n2,{OTHER},d,e,f\n"),
        ("csv", f'id,email,note,contacts\n1,"{OTHER},a,b\n'),
        ("json", f'{{"id": 1, "email": "{OTHER}"}}\n{{"id": 2, "email": \n'),
        ("json", f'{{"id": 1, "email": "{OTHER}", "email": "x"}}\n'),
        ("json", f'{{"id": 1, "mail": "{OTHER}"}}\n'),
        ("csv", f"id,mail\n1,{OTHER}\n"),
    ],
)
def test_text_that_is_not_understood_is_a_gap(tmp_path: Path, format: str, content: str) -> None:
    place = Place(tmp_path, format)
    place.put(f"lake/day=2026-05-01/part-0.{format}", content)

    outcome = place.find()

    assert len(outcome.search.gaps) == 1
    assert "bob" not in outcome.search.gaps[0].why


def test_an_older_name_of_the_column_is_a_gap_and_a_later_column_is_not(tmp_path: Path) -> None:
    place = Place(tmp_path, "parquet")
    (place.lake / "day=2026-05-01").mkdir(parents=True)
    pq.write_table(pa.table({"id": [1], "mail": [KEY]}), place.lake / "day=2026-05-01/a.parquet")
    pq.write_table(pa.table({"id": [1], "note": [KEY]}), place.lake / "day=2026-05-01/b.parquet")

    outcome = place.find()

    assert [(gap.what[-9:], "mail" in gap.why) for gap in outcome.search.gaps] == [("a.parquet", True)]


def test_a_link_is_a_gap_and_the_files_next_to_it_are_searched(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    place = Place(tmp_path, "parquet")
    path = _fill(place, "parquet", "day=2026-05-01/part-0", [row(KEY)])
    outside = _fill(Place(tmp_path_factory.mktemp("outside"), "parquet"), "parquet", "part-0", [row(KEY)])
    links = {"_older": tmp_path, "day=2026-05-01/b.parquet": path, "c.parquet": outside, "gone": "nowhere"}
    for name, target in links.items():
        (place.lake / name).symlink_to(target)

    outcome = place.find()

    assert hit_files(outcome) == {str(path): 1}
    assert {gap.what: gap.why for gap in outcome.search.gaps} == dict.fromkeys(
        (f"{place.lake}/{name}" for name in links), "it is a link, which is not followed"
    )


def test_rows_are_private_and_name_keys_by_position(tmp_path: Path) -> None:
    place = Place(tmp_path, "parquet")
    place.keys(["nobody@example.com", KEY])
    _fill(place, "parquet", "day=2026-05-01/part-0", [row(OTHER), row(KEY, 7)])

    outcome = place.find()

    (written,) = outcome.written.values()
    document = json.loads(Path(written).read_text())
    assert (document["keys"], document["row"]["id"]) == ([1], 7)
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "out").iterdir()} == {0o600}
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o700
    assert KEY not in json.dumps(outcome.as_dict()) + (tmp_path / "out/summary.json").read_text()


@pytest.mark.parametrize(
    ("name", "kind", "value"),
    [
        ("contacts", pa.string(), f'["x", "{KEY}"]'),
        ("contacts", pa.struct([("home", pa.string())]), {"home": KEY}),
        ("contacts", pa.list_(pa.struct([("mail", pa.string())])), [{"mail": OTHER}, {"mail": KEY}]),
        ("contacts", pa.map_(pa.string(), pa.string()), [("work", KEY)]),
        ("contacts", pa.map_(pa.string(), pa.string()), [(KEY, "work")]),
        ("email", pa.list_(pa.string()), [OTHER, KEY]),
        ("EMAIL", pa.large_string(), KEY),
        ("email", pa.binary(), KEY.encode()),
        ("email", pa.dictionary(pa.int32(), pa.string()), KEY),
    ],
)
def test_a_column_of_another_shape_is_searched(
    tmp_path: Path, name: str, kind: pa.DataType, value: Any
) -> None:
    place = Place(tmp_path, "parquet")
    (place.lake / "day=2026-05-01").mkdir(parents=True)
    path = place.lake / "day=2026-05-01/a.parquet"
    pq.write_table(pa.table({"id": [1, 2], name: pa.array([None, value], kind)}), path)

    outcome = place.find()

    assert hit_files(outcome) == {str(path): 1}
    assert outcome.search.gaps == ()


@pytest.mark.parametrize("value", ['{"mail": "%s"}', '["%s"]', '"%s"', '{"a": {"b": ["%s"]}}'])
@pytest.mark.parametrize("column", ["email", "contacts"])
def test_json_of_another_shape_is_searched(tmp_path: Path, column: str, value: str) -> None:
    place = Place(tmp_path, "json")
    place.put("lake/day=2026-05-01/a.json", f'{{"id": 1, "{column}": {value % KEY}}}\n')

    assert sum(hit_files(place.find()).values()) == 1


def test_a_key_without_digits_is_no_phone_number(tmp_path: Path) -> None:
    place = Place(tmp_path, "json", "{name: customer.email, normalize: 'phone:49'}")
    place.keys(["abc", "0049", "+49 170 1234567"])
    place.put("lake/day=2026-05-01/a.json", '{"email": "n/a"}\n{"email": ""}\n{"email": "0170/1234567"}\n')

    assert [hit.key for result in place.find().search.files for hit in result.hits] == [2]


def test_another_folder_is_searched_with_its_columns(tmp_path: Path) -> None:
    place = Place(tmp_path, "parquet")
    place.put("bad/run-1/part-0.csv", f"id,email,_dq_rules\n1,{KEY},r\n")
    (tmp_path / "bad/run-2").mkdir()
    pq.write_table(pa.table({"email": [KEY], "_dq_rules": [["r"]]}), tmp_path / "bad/run-2/a.parquet")
    place.lake.mkdir()

    outcome = place.find(also=["bad"])

    assert set(hit_files(outcome)) == {f"{tmp_path}/bad/run-1/part-0.csv", f"{tmp_path}/bad/run-2/a.parquet"}
    assert outcome.search.gaps == ()


def test_what_cannot_be_located_or_listed_is_a_gap(tmp_path: Path) -> None:
    place = Place(tmp_path, "parquet")
    contract = place.folder / "registry/people.odcs.yaml"
    servers = (
        "servers: [{server: gone, type: local, path: nowhere, format: parquet}, "
        "{server: db, type: postgresql, host: h, port: 1, database: d, schema: s}, "
        "{server: ice, type: glue, database: d, account: '1'}, "
        "{server: many, type: local, path: 'lake/*', format: parquet}]"
    )
    text = contract.read_text()
    contract.write_text(
        "\n".join(servers if one.startswith("servers:") else one for one in text.splitlines())
    )

    gaps = place.find().search.gaps

    assert {gap.table.partition("@")[2] for gap in gaps} == {"db", "gone", "ice", "many"}


@pytest.mark.parametrize(
    "table",
    [
        pa.Table.from_arrays([pa.array([KEY]), pa.array([OTHER])], ["email", "email"]),
        pa.Table.from_arrays([pa.array([OTHER]), pa.array([KEY])], ["email", "email"]),
    ],
)
def test_two_columns_of_one_name_are_a_gap(tmp_path: Path, table: pa.Table) -> None:
    place = Place(tmp_path, "parquet")
    (place.lake / "day=2026-05-01").mkdir(parents=True)
    pq.write_table(table, place.lake / "day=2026-05-01/a.parquet", use_dictionary=False)

    assert [gap.why for gap in place.find().search.gaps] == ["several of its columns are named email"]


def test_columns_that_differ_by_case_are_both_searched(tmp_path: Path) -> None:
    place = Place(tmp_path, "parquet")
    (place.lake / "day=2026-05-01").mkdir(parents=True)
    path = place.lake / "day=2026-05-01/a.parquet"
    pq.write_table(pa.table({"email": [OTHER], "Email": [KEY]}), path)

    assert hit_files(place.find()) == {str(path): 1}
