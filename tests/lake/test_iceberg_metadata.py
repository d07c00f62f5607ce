"""Which metadata of an Iceberg table holds now: the watcher, `dq import` and `dq tables` give one answer."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path

import fastavro
import pytest

from dq.contracts.outcome import DqError
from dq.dataquality.table_metadata import TableLocation, list_files, read_facts
from dq.lake import iceberg
from dq.lake.storage import LocalFiles
from dq.registry.importing.kinds.iceberg import KIND

LONG_AGO, NOW = datetime(2000, 1, 1, tzinfo=UTC), datetime(2026, 5, 1, tzinfo=UTC)
UUID, OTHER_UUID = "0a1b2c3d-1111-4111-8111-111111111111", "12345678-1111-4111-8111-111111111111"
ENTRY = {"type": "record", "name": "manifest_file", "fields": [{"name": "manifest_path", "type": "string"}]}

Reader = Callable[[Path], int]


def empty_list(codec: str = "deflate") -> bytes:
    """A list of manifests without any."""
    file = BytesIO()
    fastavro.writer(file, ENTRY, [], codec=codec)
    return file.getvalue()


def metadata(place: Path, version: int, *, moment: int | None = None) -> bytes:
    """Metadata whose only snapshot, and whose only column, tell the version."""
    fields = [{"id": 1, "name": f"c{version}", "type": "string", "required": False}]
    snapshot = {
        "snapshot-id": version,
        "timestamp-ms": 1_777_000_000_000,
        "summary": {"operation": "append"},
        "manifest-list": f"{place}/metadata/snap.avro",
    }
    return json.dumps(
        {
            "format-version": 2,
            "location": str(place),
            "last-updated-ms": version if moment is None else moment,
            "current-schema-id": 0,
            "schemas": [{"type": "struct", "schema-id": 0, "fields": fields}],
            "partition-specs": [{"spec-id": 0, "fields": []}],
            "default-spec-id": 0,
            "current-snapshot-id": version,
            "snapshots": [snapshot],
        }
    ).encode()


def by_watcher(place: Path) -> int:
    """The version of the snapshot whose delivery the watcher sees."""
    [commit] = iceberg.read(LocalFiles(), str(place), (), LONG_AGO).new_commits
    return int(commit.ident)


def by_live_partitions(place: Path) -> int:
    """The same, where it asks which partitions have files."""
    assert iceberg.live_partitions(LocalFiles(), str(place)) == set()
    return by_watcher(place)


def by_import(place: Path) -> int:
    """The version of the columns that `dq import iceberg` finds."""
    [table] = KIND.read(str(place))
    [column] = table.columns
    return int(column.name[1:])


def by_tables(place: Path) -> int:
    """The version of the columns that `dq tables` counts."""
    files, table = LocalFiles(), TableLocation(str(place), "iceberg")
    found = read_facts(files, list_files(files, table, NOW), table, lambda schema, unread: ())
    [column] = found.nulls
    return int(column[1:])


def put(place: Path, files: dict[str, bytes]) -> None:
    (place / "metadata").mkdir(parents=True)
    (place / "metadata" / "snap.avro").write_bytes(empty_list())
    for name, content in files.items():
        (place / "metadata" / name).write_bytes(content)


# Names, a number for the content that says so, and which one holds.
FOLDER_TABLES: dict[str, tuple[dict[str, int | bytes], int]] = {
    "the hint names the last": ({"v1.metadata.json": 1, "v2.metadata.json": 2, "version-hint.text": b"2"}, 2),
    "the hint lags behind": ({"v1.metadata.json": 1, "v2.metadata.json": 2, "version-hint.text": b"1"}, 2),
    "behind a gap": ({"v2.metadata.json": 2, "v7.metadata.json": 7, "version-hint.text": b"2\n"}, 2),
    "numbers and no texts": (
        {"v9.metadata.json": 9, "v10.metadata.json": 10, "version-hint.text": b"10"},
        10,
    ),
    "packed": ({"v1.metadata.json": 1, "v2.gz.metadata.json": 2, "version-hint.text": b"2"}, 2),
}
CATALOG_TABLES: dict[str, tuple[dict[str, int | bytes], int]] = {
    "no hint": ({"v9.metadata.json": 9, "v10.metadata.json": 10}, 10),
    "a hint that is damaged": (
        {"v1.metadata.json": 1, "v2.metadata.json": 2, "version-hint.text": b"\xff"},
        2,
    ),
    "by its number": ({f"00002-{UUID}.metadata.json": 2, f"00010-{UUID}.metadata.json": 10}, 10),
    "a word in the place of a UUID": ({"00001-a.metadata.json": 1, "00002-b.metadata.json": 2}, 2),
    "a time for a version": ({"v1730142007001.metadata.json": 3}, 3),
    "an unfinished commit": ({f"00003-{UUID}.metadata.json": 3, f"{OTHER_UUID}.metadata.json": 9}, 3),
    "a catalog took it over": (
        {"v5.metadata.json": 5, f"00000-{UUID}.metadata.json": 6, "version-hint.text": b"5"},
        6,
    ),
    "a catalog gave it back": (
        {"v1.metadata.json": 7, f"00004-{UUID}.metadata.json": 6, "version-hint.text": b"1"},
        7,
    ),
}
READERS: list[Reader] = [by_watcher, by_live_partitions, by_import, by_tables]


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.__name__)
@pytest.mark.parametrize(("files", "version"), FOLDER_TABLES.values(), ids=FOLDER_TABLES)
def test_every_reader_takes_the_metadata_that_iceberg_itself_takes(
    tmp_path: Path, reader: Reader, files: dict[str, int | bytes], version: int
) -> None:
    place = tmp_path / "t"
    put(place, {name: _content(place, name, told) for name, told in files.items()})

    assert reader(place) == version


@pytest.mark.parametrize("reader", READERS[:3], ids=lambda reader: reader.__name__)
@pytest.mark.parametrize(("files", "version"), CATALOG_TABLES.values(), ids=CATALOG_TABLES)
def test_without_a_hint_the_last_commit_counts(
    tmp_path: Path, reader: Reader, files: dict[str, int | bytes], version: int
) -> None:
    place = tmp_path / "t"
    put(place, {name: _content(place, name, told) for name, told in files.items()})

    assert reader(place) == version


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.__name__)
@pytest.mark.parametrize(
    ("files", "version", "last"),
    [
        ({"v1.metadata.json": 1, "v1.gz.metadata.json": 2}, 1, 2),
        ({f"00003-{UUID}.metadata.json": 3, f"00003-{OTHER_UUID}.metadata.json": 4}, 3, 4),
        ({f"00003-{UUID}.metadata.json": 4, f"00003-{OTHER_UUID}.metadata.json": 3}, 3, 4),
    ],
)
def test_of_two_files_of_a_version_an_import_takes_the_last_and_nobody_else_any(
    tmp_path: Path, reader: Reader, files: dict[str, int | bytes], version: int, last: int
) -> None:
    place = tmp_path / "t"
    put(place, {name: _content(place, name, told) for name, told in files.items()})

    if reader is by_import:
        assert reader(place) == last
    else:
        with pytest.raises(DqError, match=f"2 files of version {version}"):
            reader(place)


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.__name__)
@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"v7.metadata.json": 7, "version-hint.text": b"9"}, "names version 9"),
        ({"v7.metadata.json": b"{", "version-hint.text": b"7"}, "is not Iceberg metadata"),
        ({"v7.metadata.json": b"[]", "version-hint.text": b"7"}, "is not Iceberg metadata"),
        ({"v7.metadata.json": b"[" * 100_000, "version-hint.text": b"7"}, "is not Iceberg metadata"),
    ],
)
def test_what_no_reader_can_tell_every_one_refuses(
    tmp_path: Path, reader: Reader, files: dict[str, int | bytes], reason: str
) -> None:
    place = tmp_path / "t"
    put(place, {name: _content(place, name, told) for name, told in files.items()})

    with pytest.raises(DqError, match=reason):
        reader(place)


def test_of_two_commits_at_one_moment_neither_is_taken_for_the_newer(tmp_path: Path) -> None:
    place = tmp_path / "t"
    files = {"v5.metadata.json": metadata(place, 5, moment=1)}
    files[f"00000-{UUID}.metadata.json"] = metadata(place, 6, moment=1)
    put(place, files)

    for reader in READERS:
        with pytest.raises(DqError, match="which one is current is unknown"):
            reader(place)


@pytest.mark.parametrize("files", [files for files, _ in CATALOG_TABLES.values()], ids=CATALOG_TABLES)
def test_what_only_a_catalog_knows_is_not_counted(tmp_path: Path, files: dict[str, int | bytes]) -> None:
    place = tmp_path / "t"
    put(place, {name: _content(place, name, told) for name, told in files.items()})

    if "v1.metadata.json" in files and files.get("version-hint.text") == b"1":
        assert by_tables(place) == 7
    else:
        with pytest.raises(DqError, match="only its catalog knows"):
            by_tables(place)


@pytest.mark.parametrize("codec", ["null", "deflate", "snappy", "zstandard"])
@pytest.mark.parametrize("reader", [by_watcher, by_live_partitions, by_tables])
def test_manifests_are_read_however_they_are_packed(tmp_path: Path, reader: Reader, codec: str) -> None:
    place = tmp_path / "t"
    put(place, {"v1.metadata.json": metadata(place, 1), "version-hint.text": b"1"})
    (place / "metadata" / "snap.avro").write_bytes(empty_list(codec))

    assert reader(place) == 1


def _content(place: Path, name: str, told: int | bytes) -> bytes:
    if isinstance(told, bytes):
        return told
    content = metadata(place, told)
    return gzip.compress(content) if ".gz." in name else content


def test_the_metadata_that_a_catalog_names_is_current(tmp_path: Path) -> None:
    place = tmp_path / "orders"
    newer = f"00003-{OTHER_UUID}.metadata.json"
    names = (f"00002-{UUID}.metadata.json", newer)
    put(place, {name: metadata(place, version) for version, name in enumerate(names, 2)})
    outside = tmp_path / "metadata" / newer
    outside.parent.mkdir()
    outside.write_bytes(metadata(place, 9))

    def columns(metadata_location: str) -> tuple[str, ...]:
        return iceberg.live_table(LocalFiles(), str(place), metadata_location).columns

    assert columns(f"file://{place}/metadata/{names[0]}") == ("c2",)
    assert columns(f"{place}/metadata/{names[1]}") == ("c3",)
    for elsewhere in ("", str(outside), f"{place}/metadata/../../metadata/{newer}"):
        with pytest.raises(DqError, match="only its catalog knows which one is current"):
            columns(elsewhere)
    with pytest.raises(DqError, match="1-gone"):
        columns(f"{place}/metadata/1-gone.metadata.json")
