"""moto's S3 over HTTP, each answer of which is late, and buckets called `silent…` that never answer.

moto's own server closes each connection after one answer and begins a thread for the next one; a storage
keeps them. So one loop asks moto here, and many requests wait at once.

As a program, `late_s3.py SECONDS OBJECTS`: OBJECTS is a file with a line `bucket/key` for each object. It
writes its URL when everything is there, and ends with its standard input.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Iterable
from contextlib import suppress
from http import HTTPStatus
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import boto3
from moto.server import DomainDispatcherApplication, create_backend_app


def environment(url: str) -> dict[str, str]:
    """What points an S3 client there, away from any real account."""
    return {
        "AWS_ENDPOINT_URL": url,
        "AWS_ENDPOINT_URL_S3": url,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    }


class LateS3:
    """The server on an address; each answer takes `late` seconds more. `asked` counts the requests."""

    def __init__(self, late: float = 0.0, address: str = "127.0.0.1") -> None:
        self.late, self.address, self.asked, self.url = late, address, 0, ""
        self._given: dict[tuple[str, str, str], bytes] = {}
        self._moto = DomainDispatcherApplication(create_backend_app)
        self._loop = asyncio.new_event_loop()
        listens = threading.Event()
        self._thread = threading.Thread(target=self._serve, args=(listens,), daemon=True)
        self._thread.start()
        listens.wait(60)

    def _serve(self, listens: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        listening = asyncio.start_server(self._client, self.address, 0, backlog=512)
        server = self._loop.run_until_complete(listening)
        self.url = f"http://{self.address}:{server.sockets[0].getsockname()[1]}"
        listens.set()
        self._loop.run_forever()
        left = asyncio.all_tasks(self._loop)
        for task in left:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Clients that give up waiting, or are killed, are no news.
        with suppress(OSError, asyncio.IncompleteReadError):
            while line := await reader.readline():
                method, target, _ = line.decode("latin-1").split()
                headers = {}
                while text := (await reader.readline()).decode("latin-1").strip():
                    name, _, value = text.partition(":")
                    headers[name.strip().lower()] = value.strip()
                if "expect" in headers:
                    writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                self.asked += 1
                if target.startswith("/silent"):
                    await asyncio.sleep(600)
                await asyncio.sleep(self.late)
                writer.write(self._respond(method, target, headers, body))
                await writer.drain()
        writer.close()

    def _respond(self, method: str, target: str, headers: dict[str, str], body: bytes) -> bytes:
        """moto's answer; the one that it gave before, as long as nothing is written: it takes its time."""
        question = (method, target, headers.get("range", ""))
        if method not in ("GET", "HEAD"):
            self._given.clear()
            return self._answer(method, target, headers, body)
        if question not in self._given:
            self._given[question] = self._answer(method, target, headers, body)
        return self._given[question]

    def _answer(self, method: str, target: str, headers: dict[str, str], body: bytes) -> bytes:
        path, _, query = target.partition("?")
        request = {
            "REQUEST_METHOD": method,
            "PATH_INFO": unquote(path, "latin-1"),
            "RAW_URI": target,
            "QUERY_STRING": query,
            "SERVER_NAME": self.address,
            "SERVER_PORT": self.url.rpartition(":")[2],
            "SERVER_PROTOCOL": "HTTP/1.1",
            "wsgi.input": BytesIO(body),
            "wsgi.errors": sys.stderr,
            "wsgi.url_scheme": "http",
            "wsgi.version": (1, 0),
            "CONTENT_LENGTH": str(len(body)),
            "CONTENT_TYPE": headers.get("content-type", ""),
            **{f"HTTP_{name.upper().replace('-', '_')}": value for name, value in headers.items()},
        }
        begun: list[tuple[str, list[tuple[str, str]]]] = []

        def start(status: str, said: list[tuple[str, str]], _: Any = None) -> None:
            begun.append((status, said))

        content = b"".join(self._moto(request, start))
        status, said = begun[0]
        # The size of what a HEAD is about stands there already.
        named = {name.lower() for name, _ in said}
        if "content-length" not in named and status[:3] != str(HTTPStatus.NO_CONTENT.value):
            said = [*said, ("Content-Length", str(len(content)))]
        lines = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in said), "", ""]
        return "\r\n".join(lines).encode("latin-1") + (b"" if method == "HEAD" else content)

    def put(self, objects: Iterable[str]) -> None:
        """Empty objects, each named as `bucket/key`; buckets are made."""
        late, self.late = self.late, 0.0
        client = boto3.client(
            "s3", endpoint_url=self.url, region_name="us-east-1", aws_access_key_id="test",
            aws_secret_access_key="test",
        )  # fmt: skip
        made: set[str] = set()
        for name in objects:
            bucket, _, key = name.partition("/")
            if bucket not in made:
                # All of moto's servers in a process have one account.
                with suppress(client.exceptions.BucketAlreadyOwnedByYou):
                    client.create_bucket(Bucket=bucket)
                made.add(bucket)
            client.put_object(Bucket=bucket, Key=key)
        self.late = late

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)


if __name__ == "__main__":
    server = LateS3(float(sys.argv[1]))
    server.put(Path(sys.argv[2]).read_text("utf-8").split())
    sys.stdout.write(f"{server.url}\n")
    sys.stdout.flush()
    sys.stdin.read()
