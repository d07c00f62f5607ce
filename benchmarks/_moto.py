"""moto as a process of its own, with the requests that it answers counted.

Beside moto's API, `POST /fill` puts the files of a local folder as objects, with their times of modification,
and `GET /requests` returns how many requests of each kind there were. Two things would otherwise cost more
than the requests do: moto's LIST goes through all keys of a bucket, where a sorted list knows those with the
prefix, and its GetPartitions returns everything at once, which is paged here as AWS pages it.

As a program, it prints its URL, and ends with its standard input.
"""

from __future__ import annotations

import bisect
import json
import os
import subprocess
import sys
import urllib.parse
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from fakes.late_s3 import LateS3, environment

_PAGE = 1_000


@contextmanager
def moto(address: str = "127.0.0.1") -> Iterator[str]:
    """The URL of the server while the block runs; boto3 and pyarrow find it, and no account."""
    server = subprocess.Popen(
        [sys.executable, __file__, address], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert server.stdin is not None
    assert server.stdout is not None
    try:
        url = server.stdout.readline().strip()
        if not url:
            raise SystemExit("moto does not start")
        os.environ |= environment(url)
        yield url
    finally:
        server.stdin.close()
        server.wait()


def fill(url: str, folder: Path, bucket: str, prefix: str) -> int:
    """Put each file below the folder as an object below the prefix; return their number."""
    query = urllib.parse.urlencode({"folder": str(folder), "bucket": bucket, "prefix": prefix})
    request = urllib.request.Request(f"{url}/fill?{query}", method="POST")
    with urllib.request.urlopen(request) as answer:
        return int(answer.read())


def requests(url: str) -> Counter[str]:
    """The number of requests since the start, by operation."""
    with urllib.request.urlopen(f"{url}/requests") as answer:
        return Counter(json.loads(answer.read()))


class _Server(LateS3):
    """moto over HTTP, counted."""

    def __init__(self, address: str) -> None:
        self._counts: Counter[str] = Counter()
        self._partitions: dict[str, list[Any]] = {}
        super().__init__(address=address)

    def _respond(self, method: str, target: str, headers: dict[str, str], body: bytes) -> bytes:
        path, _, query = target.partition("?")
        values = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
        if path == "/fill":
            return _ok(str(_put_files(Path(values["folder"]), values["bucket"], values["prefix"])).encode())
        if path == "/requests":
            return _ok(json.dumps(self._counts).encode())
        operation = headers.get("x-amz-target", "").partition(".")[2]
        listing = "LIST" if method == "GET" and "list-type" in values else ""
        self._counts[operation or listing or method] += 1
        if operation == "GetPartitions":
            return self._page(method, target, headers, body)
        if operation:
            self._partitions.clear()
        return self._answer(method, target, headers, body)

    def _page(self, method: str, target: str, headers: dict[str, str], body: bytes) -> bytes:
        request = json.loads(body)
        start = int(request.pop("NextToken", 0))
        request.pop("MaxResults", None)
        sent = json.dumps(request, sort_keys=True)
        if sent not in self._partitions:
            answer = self._answer(method, target, headers, sent.encode())
            if b" 200 " not in answer.partition(b"\r\n")[0]:
                return answer
            self._partitions[sent] = json.loads(answer.partition(b"\r\n\r\n")[2])["Partitions"]
        partitions = self._partitions[sent]
        page: dict[str, Any] = {"Partitions": partitions[start : start + _PAGE]}
        if start + _PAGE < len(partitions):
            page["NextToken"] = str(start + _PAGE)
        return _ok(json.dumps(page).encode())


def _ok(content: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(content), content)


def _backend() -> Any:
    from moto.core import DEFAULT_ACCOUNT_ID
    from moto.s3.models import s3_backends

    return s3_backends[DEFAULT_ACCOUNT_ID]["aws"]


def _put_files(folder: Path, bucket: str, prefix: str) -> int:
    files = [path for path in folder.rglob("*") if path.is_file()]
    for path in files:
        key = _backend().put_object(bucket, f"{prefix}/{path.relative_to(folder)}", path.read_bytes())
        key.last_modified = datetime.fromtimestamp(path.stat().st_mtime, UTC).replace(tzinfo=None)
    return len(files)


def _list_by_prefix() -> None:
    """Let moto's LIST see only the keys with the prefix."""
    from moto.s3.models import S3Backend

    list_all = S3Backend.list_objects
    names_of: dict[str, list[str]] = {}

    def list_objects(backend: Any, bucket: Any, prefix: str | None, *args: Any, **options: Any) -> Any:
        names = names_of.get(bucket.name, [])
        if len(names) != len(bucket.keys):
            names = names_of[bucket.name] = sorted(dict(bucket.keys))
        start = bisect.bisect_left(names, prefix or "")
        keys = {}
        for name in names[start:] if not prefix else _with_prefix(names, start, prefix):
            keys[name] = bucket.keys[name]
        return list_all(backend, SimpleNamespace(keys=keys), prefix, *args, **options)

    S3Backend.list_objects = list_objects


def _with_prefix(names: list[str], start: int, prefix: str) -> Iterator[str]:
    for index in range(start, len(names)):
        if not names[index].startswith(prefix):
            return
        yield names[index]


if __name__ == "__main__":
    _list_by_prefix()
    server = _Server(sys.argv[1])
    sys.stdout.write(f"{server.url}\n")
    sys.stdout.flush()
    sys.stdin.read()
