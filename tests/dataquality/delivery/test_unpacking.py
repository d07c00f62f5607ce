"""What is packed in the logs of tables is never unpacked beyond a limit."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import sys
import zlib
from collections.abc import Callable
from datetime import UTC, datetime
from importlib import import_module
from io import BytesIO
from pathlib import Path

import fastavro
import pytest

from dq.contracts.outcome import MissingTool, ReadError
from dq.lake import compression, iceberg
from dq.lake.compression import MOST_UNPACKED
from dq.lake.storage import LocalFiles

LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)
LINES = {"type": "record", "name": "line", "fields": [{"name": "text", "type": "string"}]}


def deflated(content: bytes) -> bytes:
    made = zlib.compressobj(wbits=-15)
    return made.compress(content) + made.flush()


def number(value: int) -> bytes:
    folded, found = value << 1, b""
    while folded > 0x7F:
        found += bytes([folded & 0x7F | 0x80])
        folded >>= 7
    return found + bytes([folded])


def container(codec: str, block: bytes, records: int, schema: object = LINES) -> bytes:
    """An Avro file with one block of these bytes."""
    terms = {"avro.codec": codec.encode(), "avro.schema": json.dumps(schema).encode()}
    head = number(len(terms))
    for name, value in terms.items():
        head += number(len(name)) + name.encode() + number(len(value)) + value
    sync = bytes(16)
    return b"Obj\x01" + head + number(0) + sync + number(records) + number(len(block)) + block + sync


def quickly(data: bytes) -> bytes:
    return lzma.compress(data, preset=0)


@pytest.mark.parametrize(
    ("codec", "packed"),
    [("deflate", deflated), ("bzip2", bz2.compress), ("xz", quickly)],
    ids=["deflate", "bzip2", "xz"],
)
def test_a_block_that_unpacks_to_too_much_is_refused(codec: str, packed: Callable[[bytes], bytes]) -> None:
    bomb = container(codec, packed(bytes(MOST_UNPACKED + 1)), 1)

    assert len(bomb) < 1 << 20
    with pytest.raises(ReadError, match="holds more than 128 MiB"):
        compression.parse_avro(bomb, "m0.avro")


@pytest.mark.parametrize(
    "schema",
    [
        {
            "type": "record",
            "name": "r",
            "fields": [{"name": "a", "type": {"type": "array", "items": "null"}}],
        },
        {"type": "record", "name": "r", "fields": []},
        {
            "type": "record",
            "name": "r",
            "fields": [{"name": "a", "type": {"type": "fixed", "name": "f", "size": 0}}],
        },
        {
            "type": "record",
            "name": "r",
            "fields": [
                {"name": "n", "type": "long"},
                {"name": "p", "type": {"type": "record", "name": "x.empty", "fields": []}},
                {"name": "a", "type": {"type": "array", "items": "empty"}},
            ],
        },
        {
            "type": "record",
            "name": "r",
            "fields": [{"name": "n", "type": "long"}, *({"name": f"n{n}", "type": "null"} for n in range(9))],
        },
    ],
    ids=["an array of nulls", "no field", "no byte", "an array of what has no field", "many nulls"],
)
def test_what_takes_no_room_is_refused(schema: object) -> None:
    with pytest.raises(ReadError, match="holds more than"):
        compression.parse_avro(container("null", number(1 << 40) + number(0), 1, schema), "m0.avro")


def test_a_record_may_have_a_field_without_any_of_its_own() -> None:
    # As the files of a table without partitions have.
    fields = [
        {"name": "n", "type": "long"},
        {"name": "p", "type": {"type": "record", "name": "e", "fields": []}},
    ]
    made = container("null", number(7), 1, {"type": "record", "name": "r", "fields": fields})

    assert compression.parse_avro(made, "m0.avro") == [{"n": 7, "p": {}}]


def test_more_records_than_there_is_room_for_are_refused() -> None:
    with pytest.raises(ReadError, match="holds more than"):
        compression.parse_avro(container("null", b"", 1 << 50), "m0.avro")


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2", "xz", "snappy", "zstandard"])
def test_what_others_write_is_read(codec: str) -> None:
    rows, file = [{"text": "a" * 100, "none": None}] * 5_000, BytesIO()
    fields = [*LINES["fields"], {"name": "none", "type": ["null", "int"]}]  # type: ignore[misc]
    fastavro.writer(file, {**LINES, "fields": fields}, rows, codec=codec)

    assert compression.parse_avro(file.getvalue(), "m0.avro") == rows


@pytest.mark.parametrize(
    ("codec", "module"),
    [
        ("bzip2", "bz2"),
        ("xz", "lzma"),
        ("zstandard", "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"),
    ],
)
def test_every_stream_of_a_block_counts_against_the_limit(codec: str, module: str) -> None:
    compress = import_module(module).compress
    streams = compress(b"\x02a") + compress(bytes(MOST_UNPACKED))

    with pytest.raises(ReadError, match="holds more than 128 MiB"):
        compression.parse_avro(container(codec, streams, 1), "m0.avro")


@pytest.mark.parametrize("content", [b"", b"no frame", b"\x28\xb5\x2f\xfd"], ids=["empty", "text", "cut off"])
@pytest.mark.parametrize("codec", ["snappy", "zstandard"])
def test_a_block_that_its_codec_cannot_unpack_is_unreadable(codec: str, content: bytes) -> None:
    with pytest.raises(ReadError):
        compression.parse_avro(container(codec, content, 1), "m0.avro")


@pytest.mark.parametrize(("codec", "module"), [("snappy", "cramjam"), ("zstandard", "backports.zstd")])
def test_a_codec_without_its_package_is_said_to_be_missing(
    monkeypatch: pytest.MonkeyPatch, codec: str, module: str
) -> None:
    if module == "backports.zstd" and sys.version_info >= (3, 14):
        pytest.skip("Python has it")
    monkeypatch.setitem(sys.modules, module, None)

    with pytest.raises(MissingTool, match=f"compressed with {codec} need {module}"):
        compression.parse_avro(container(codec, b"", 1), "m0.avro")


@pytest.mark.parametrize("cut", [5, 40, 130], ids=["head", "schema", "block"])
def test_a_file_that_was_cut_off_is_said_to_be_none(cut: int) -> None:
    with pytest.raises(ReadError, match="not a readable Avro file"):
        compression.parse_avro(container("deflate", deflated(b"\x02a"), 1)[:cut], "m0.avro")


def test_metadata_of_iceberg_that_unpacks_to_too_much_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "t" / "metadata"
    folder.mkdir(parents=True)
    with gzip.open(folder / "v1.gz.metadata.json", "wb", compresslevel=9) as file:
        for _ in range((MOST_UNPACKED >> 20) + 1):
            file.write(b" " * (1 << 20))

    assert (folder / "v1.gz.metadata.json").stat().st_size < 1 << 20
    with pytest.raises(ReadError, match="holds more than 128 MiB"):
        iceberg.read(LocalFiles(), str(tmp_path / "t"), (), LONG_AGO)


def test_nested_metadata_without_an_end_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "t" / "metadata"
    folder.mkdir(parents=True)
    (folder / "v1.metadata.json").write_text("[" * 100_000)

    with pytest.raises(ReadError, match="is not Iceberg metadata"):
        iceberg.read(LocalFiles(), str(tmp_path / "t"), (), LONG_AGO)
