"""moto's Glue over HTTP, behind a strict shim: it refuses what AWS refuses and moto lets through.

The shim counts what is on the wire, and can lose answers, fail, or kill the caller between two calls.
"""

from __future__ import annotations

import http.client
import json
import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler
from typing import Any

from fakes import lake_formation, scheduler
from fakes.lake_formation import LakeFormationShim
from fakes.quiet_server import QuietServer
from moto.server import ThreadedMotoServer

REGION = "eu-central-1"
_CAPS = {
    "BatchCreatePartition": ("PartitionInputList", 100),
    "BatchDeletePartition": ("PartitionsToDelete", 25),
    "BatchUpdatePartition": ("Entries", 100),
}
_PAGES = {"GetTables": ("TableList", 100), "GetPartitions": ("Partitions", 1000)}
_WRITES = ("Create", "Update", "Delete", "BatchCreate", "BatchUpdate", "BatchDelete", *lake_formation.WRITES)


@dataclass(frozen=True, slots=True)
class Call:
    """One call on the wire, and the body that it had."""

    operation: str
    body: dict[str, Any]
    path: str = "/"

    @property
    def writes(self) -> bool:
        return self.operation.startswith(_WRITES)


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: bytes
    # Lake Formation names an error in a header.
    error: str = ""


Fault = Callable[[Call, Callable[[], Answer]], Answer | None]
"""What happens to a call instead: gets the call and what would forward it; None hangs up."""


@dataclass
class GlueShim:
    """The server that clients talk to. `calls` are those of Glue, Lake Formation and EventBridge Scheduler.

    `kill_at` says at which call the victim is killed, before or after it: its number, 0 for the next write.
    The `faults` of an operation are used up. `others` are the path and body of requests to other services.
    """

    backend: int
    calls: list[Call] = field(default_factory=list)
    others: list[tuple[str, bytes]] = field(default_factory=list)
    faults: dict[str, list[Fault]] = field(default_factory=dict)
    kill_at: tuple[int, str] | None = None
    victim: int = 0
    indexes: dict[tuple[str, str], list[dict[str, Any]]] = field(default_factory=dict)
    lake: LakeFormationShim = field(default_factory=LakeFormationShim)

    def __post_init__(self) -> None:
        self._server = QuietServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def environment(self) -> dict[str, str]:
        """What points boto3 here, away from any real account."""
        return {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self._server.server_port}",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": REGION,
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def reset(self) -> None:
        """Forgets every table, call and fault."""
        self.forward("POST", "/moto-api/reset", b"", {})
        self.calls.clear()
        self.others.clear()
        self.faults.clear()
        self.indexes.clear()
        self.lake.reset()
        self.kill_at = None

    def writes(self) -> list[str]:
        return [call.operation for call in self.calls if call.writes]

    @contextmanager
    def counted(self) -> Iterator[list[str]]:
        """The writes within the block."""
        start = len(self.calls)
        seen: list[str] = []
        yield seen
        seen += [call.operation for call in self.calls[start:] if call.writes]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def forward(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.backend, timeout=300)
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        made = Answer(answer.status, answer.read())
        connection.close()
        return made

    def answer(self, call: Call, forward: Callable[[dict[str, Any]], Answer]) -> Answer | None:
        self.calls.append(call)
        if self._kill(call, "before"):
            return None
        faults = self.faults.get(call.operation, [])
        if call.operation in lake_formation.OPERATIONS:
            strict = partial(self.lake.answer, call.operation, call.body, lake_forward(self))
        elif call.operation in scheduler.OPERATIONS:
            strict = partial(
                scheduler.answer, self, call.operation, call.body, call.path, lambda: forward(call.body)
            )
        else:
            strict = _strict(self, call, forward)
        made = faults.pop(0)(call, strict) if faults else strict()
        self._kill(call, "after")
        return made

    def _kill(self, call: Call, when: str) -> bool:
        here = self.kill_at == (len(self.calls), when) or (call.writes and self.kill_at == (0, when))
        if here:
            os.kill(self.victim, signal.SIGKILL)
        return here


def lake_forward(shim: GlueShim) -> lake_formation.Forward:
    """Asks moto for operations of Lake Formation, and of Glue, whoever called."""

    def forward(operation: str, body: dict[str, Any]) -> Answer:
        service, _, name = operation.rpartition(":")
        scope = f"test/20260101/{REGION}/{service or 'lakeformation'}/aws4_request"
        headers = {
            "Authorization": f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature=0",
            "Content-Type": "application/x-amz-json-1.1" if service else "application/json",
        }
        if service:
            headers["X-Amz-Target"] = f"AWSGlue.{name}"
        return shim.forward("POST", "/" if service else f"/{name}", json.dumps(body).encode(), headers)

    return forward


def refused(code: str, message: str, status: int = 400) -> Answer:
    return Answer(status, json.dumps({"__type": code, "message": message}).encode())


def _strict(shim: GlueShim, call: Call, forward: Callable[[dict[str, Any]], Answer]) -> Callable[[], Answer]:
    def made() -> Answer:
        wrong = _wrong(call)
        if wrong:
            return refused("InvalidInputException", wrong)
        body = _folded(call.body)
        if call.operation == "UpdateTable":
            live = forward_get(body, forward)
            if live is not None and body.get("VersionId") not in (None, live):
                return refused("ConcurrentModificationException", "Update table failed due to a conflict.")
        if call.operation.endswith(("PartitionIndex", "PartitionIndexes")):
            return _index(shim, call.operation, body, forward)
        if call.operation == "CreateTable" and body.get("PartitionIndexes"):
            return _indexed(shim, body, forward)
        if call.operation == "DeleteTable":
            shim.indexes.pop((body["DatabaseName"], body["Name"]), None)
        if call.operation in _PAGES:
            return _page(call.operation, body, forward)
        return forward(body)

    return made


_MOST_INDEXES = 3


def _indexed(shim: GlueShim, body: dict[str, Any], forward: Callable[[dict[str, Any]], Answer]) -> Answer:
    """CreateTable with its indexes, which moto drops."""
    answer = forward(body)
    key = body["DatabaseName"], body["TableInput"]["Name"]
    if answer.status == 200:
        shim.indexes[key] = []
        for one in body["PartitionIndexes"]:
            _add(shim, key, one, body["TableInput"]["PartitionKeys"])
    return answer


def _index(
    shim: GlueShim, operation: str, body: dict[str, Any], forward: Callable[[dict[str, Any]], Answer]
) -> Answer:
    """What AWS does with the indexes of a table, none of which moto knows."""
    key = body["DatabaseName"], body["TableName"]
    found = forward({"#": "GetTable", "DatabaseName": key[0], "Name": key[1]})
    if found.status != 200:
        return found
    there = shim.indexes.setdefault(key, [])
    if operation == "GetPartitionIndexes":
        return Answer(200, json.dumps({"PartitionIndexDescriptorList": there}).encode())
    if operation == "CreatePartitionIndex":
        keys = json.loads(found.body)["Table"]["PartitionKeys"]
        return _add(shim, key, body["PartitionIndex"], keys)
    left = [one for one in there if one["IndexName"] != body["IndexName"]]
    if len(left) == len(there):
        return refused("EntityNotFoundException", "Index not found.")
    shim.indexes[key] = left
    return Answer(200, b"{}")


def _add(shim: GlueShim, key: tuple[str, str], index: dict[str, Any], keys: list[dict[str, Any]]) -> Answer:
    types = {one["Name"]: one["Type"] for one in keys}
    there = shim.indexes[key]
    if not set(index["Keys"]) <= types.keys():
        return refused("InvalidInputException", "Keys of an index are partition keys.")
    for one in there:
        if one["IndexName"] == index["IndexName"] or [k["Name"] for k in one["Keys"]] == index["Keys"]:
            return refused("AlreadyExistsException", "Index already exists.")
    if len(there) >= _MOST_INDEXES:
        return refused("ResourceNumberLimitExceededException", "A table has three indexes.")
    made = [{"Name": name, "Type": types[name]} for name in index["Keys"]]
    there.append({"IndexName": index["IndexName"], "Keys": made, "IndexStatus": "ACTIVE"})
    return Answer(200, b"{}")


def forward_get(body: dict[str, Any], forward: Callable[[dict[str, Any]], Answer]) -> str | None:
    """The version of the table that an update is about."""
    asked = {"DatabaseName": body["DatabaseName"], "Name": body["TableInput"]["Name"]}
    answer = forward({"#": "GetTable", **asked})
    return json.loads(answer.body)["Table"]["VersionId"] if answer.status == 200 else None


def _wrong(call: Call) -> str:
    body = call.body
    member, cap = _CAPS.get(call.operation, ("", 0))
    if member and len(body.get(member, ())) > cap:
        return f"{member} has more than {cap} items"
    page = _PAGES.get(call.operation)
    if page and body.get("MaxResults", 1) > page[1]:
        return "MaxResults is too large"
    table = body.get("TableInput") or {}
    columns = [*table.get("StorageDescriptor", {}).get("Columns", []), *table.get("PartitionKeys", [])]
    names = [column["Name"].lower() for column in columns]
    if len(set(names)) != len(names):
        return "duplicate columns"
    for column in columns:
        comment = column.get("Comment", "")
        if len(comment) > 255 or "\n" in comment or not column["Name"]:
            return "Member must satisfy constraint: Comment"
    if len(table.get("Description", "")) > 2048 or len(table.get("Name", "")) > 255:
        return "Member must have length less than or equal to its maximum"
    arities = {len(one.get("Values", ())) for one in body.get("PartitionInputList", ())}
    return "The number of partition keys do not match" if len(arities) > 1 else ""


def _folded(body: dict[str, Any]) -> dict[str, Any]:
    """The names of a request as Glue keeps them: in lower case."""
    made = dict(body)
    for member in ("DatabaseName", "TableName", "Name"):
        if isinstance(made.get(member), str):
            made[member] = made[member].lower()
    for member in ("TableInput", "DatabaseInput"):
        if member in made:
            made[member] = {**made[member], "Name": made[member]["Name"].lower()}
    return made


def _page(operation: str, body: dict[str, Any], forward: Callable[[dict[str, Any]], Answer]) -> Answer:
    member, most = _PAGES[operation]
    start = int(body.get("NextToken") or 0)
    asked = {key: value for key, value in body.items() if key not in ("NextToken", "MaxResults")}
    answer = forward(asked)
    if answer.status != 200:
        return answer
    everything = json.loads(answer.body)
    items = everything[member]
    end = start + body.get("MaxResults", most)
    everything[member] = items[start:end]
    everything.pop("NextToken", None)
    if end < len(items):
        everything["NextToken"] = str(end)
    return Answer(200, json.dumps(everything).encode())


def _handler(shim: GlueShim) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # header and body in one packet: two would wait for each other
        disable_nagle_algorithm = True

        def log_message(self, format: str, *args: object) -> None:
            pass

        def do_GET(self) -> None:
            self._answer("GET")

        def do_PUT(self) -> None:
            self._answer("PUT")

        def do_DELETE(self) -> None:
            self._answer("DELETE")

        def do_POST(self) -> None:
            self._answer("POST")

        def _answer(self, method: str) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            target = self.headers.get("X-Amz-Target", "")
            headers = {
                name: text
                for name, text in self.headers.items()
                if name.lower() not in ("host", "content-length", "connection", "accept-encoding")
            }

            def forward(asked: dict[str, Any]) -> Answer:
                operation = asked.get("#")
                sent = {name: text for name, text in asked.items() if name != "#"}
                named = {"X-Amz-Target": f"AWSGlue.{operation}"} if operation else {}
                return shim.forward("POST", self.path, json.dumps(sent).encode(), {**headers, **named})

            timed = scheduler.operation_of(method, self.path)
            if timed:
                call = Call(timed, json.loads(body or b"{}"), self.path)
                answer = shim.answer(call, lambda _: shim.forward(method, self.path, body, headers))
            elif self.path.strip("/") in lake_formation.OPERATIONS:
                answer = shim.answer(Call(self.path.strip("/"), json.loads(body)), forward)
            elif target.startswith("AWSGlue."):
                answer = shim.answer(Call(target.removeprefix("AWSGlue."), json.loads(body)), forward)
            else:
                shim.others.append((self.path, body))
                answer = shim.forward(method, self.path, body, headers)
            if answer is None:
                self.close_connection = True
                self.connection.close()
                return
            self.send_response(answer.status)
            kind = "application/x-amz-json-1.1" if target else "text/xml"
            self.send_header("Content-Type", kind)
            if answer.error:
                self.send_header("x-amzn-ErrorType", answer.error)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)
            self.wfile.flush()

    return Handler


@contextmanager
def serving() -> Iterator[GlueShim]:
    """moto's server with the shim before it."""
    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    shim = GlueShim(server.get_host_and_port()[1])
    yield shim
    shim.close()
    server.stop()
