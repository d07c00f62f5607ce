"""A registry of one table with an identity, and an oracle that reads its files by other means."""

from __future__ import annotations

import csv
import gzip
import json
import re
import shutil
import zlib
from collections.abc import Mapping
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq

from dq.operations.erasure import FindErasureOutcome, find_erasure

CONTRACT = """\
apiVersion: v3.2.0
kind: DataContract
id: people
version: 1.0.0
status: active
servers: [{server: lake, type: local, path: %(path)s, format: %(format)s}]
schema:
  - name: people
    properties:
      - {name: id, logicalType: integer}
      - name: email
        logicalType: string
        customProperties: [{property: identity, value: %(identity)s}]
      - {name: note, logicalType: string}
      - name: contacts
        logicalType: array
        items:
          logicalType: string
          customProperties: [{property: identity, value: %(identity)s}]
      - {name: day, logicalType: date, partitioned: true, partitionKeyPosition: 1}
"""
KEY, OTHER = "ann@example.com", "bob@example.com"
# Places for a file in the folder of a table, of which readers of the table take only the first.
PLACES = {
    "current": "day=2026-05-01/part-0",
    "next to the partitions": "part-9",
    "hidden": "day=2026-05-01/_old",
    "dotted": "day=2026-05-01/.part-1",
    "temporary": "_temporary/0/task_1/part-0",
    "staging": ".spark-staging-17/day=2026-05-02/part-0",
    "unfinished": "day=2026-05-01/part-3._COPYING_",
    "another folder": "backup/2020/part-0",
    "archive": "_archive/day=2026-05-01/part-0",
    "nested": "day=2026-05-01/deep/er/part-0",
    "another ending": "day=2026-05-01/part-5.bak",
}


class Place:
    """A folder with a registry of the table `people` at `lake`, and a file of keys."""

    def __init__(
        self, folder: Path, format: str, identity: str = "customer.email", table: str = "lake"
    ) -> None:
        self.folder, self.lake = folder, folder / table
        self.put("registry/dq-policy.yaml", "profile: default\n")
        terms = {"path": self.lake, "format": format, "identity": identity}
        self.put("registry/people.odcs.yaml", CONTRACT % terms)
        self.keys([KEY])

    def put(self, name: str, content: str | bytes) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def keys(self, keys: list[str]) -> None:
        self.put("keys.txt", "".join(f"{key}\n" for key in keys))

    def find(self, out: str = "out", **options: Any) -> FindErasureOutcome:
        return find_erasure(
            "registry", keys="keys.txt", identity="customer.email", out=out, folder=self.folder, **options
        )


def plant(lake: Path, file: Path) -> set[str]:
    """Copy a data file to all places of a table, and return their paths."""
    copies = {lake / name for name in PLACES.values()}
    for copy in copies:
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)
    return set(map(str, copies))


def hit_files(outcome: FindErasureOutcome) -> dict[str, int]:
    """The files with hits, by their path below the lake, and the rows of all keys in them."""
    hits: dict[str, int] = {}
    for result in outcome.search.files:
        for hit in result.hits:
            hits[result.file.path] = hits.get(result.file.path, 0) + hit.rows
    return hits


def files_with(folder: Path, text: str) -> set[str]:
    """The files below a folder whose decoded content, or path, has a text."""
    return {
        str(path)
        for path in folder.rglob("*")
        if path.is_file() and (text in decoded(path) or text in str(path.relative_to(folder)))
    }


def decoded(path: Path) -> str:
    """Everything that a file has, as one text."""
    data = path.read_bytes()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    if data[:4] == b"PAR1":
        footer = pq.read_metadata(path)
        bounds = [
            str(footer.row_group(group).column(at).statistics)
            for group in range(footer.num_row_groups)
            for at in range(footer.row_group(group).num_columns)
        ]
        try:
            return f"{pq.ParquetFile(path).read().to_pylist()} {bounds}"
        except OSError:
            return f"{bounds}"
    if data[:3] == b"Obj":
        with path.open("rb") as file:
            return str(list(fastavro.reader(file)))
    if data[:6] == b"#HUDI#" or data[:8] in (b"DATABLK*", b"IDXROOT2"):
        return _everything(data)
    if data[:3] == b"ORC":
        return str(orc.ORCFile(path).read().to_pylist())
    text = data.decode("utf-8", "replace")
    try:
        return f"{text} {[json.loads(line) for line in text.splitlines() if line]}"
    except ValueError:
        return f"{text} {list(csv.reader(text.splitlines()))}"


def _everything(data: bytes) -> str:
    """The bytes of a log file or an HFile of Hudi, and of each gzip stream and Parquet file inside."""
    texts = [data.decode("latin1")]
    for match in re.finditer(rb"\x1f\x8b\x08", data):
        with suppress(zlib.error):
            texts.append(zlib.decompressobj(31).decompress(data[match.start() :]).decode("latin1"))
    ends = [match.end() for match in re.finditer(rb"PAR1", data)]
    for start, end in pairwise(ends):
        with suppress(pa.ArrowInvalid):
            texts.append(str(pq.read_table(pa.BufferReader(data[start - 4 : end])).to_pylist()))
    return "".join(texts)


def row(email: str, number: int = 1, contacts: list[str] | None = None) -> Mapping[str, Any]:
    return {"id": number, "email": email, "note": f"note {number}", "contacts": contacts or []}
