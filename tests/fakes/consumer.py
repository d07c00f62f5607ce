"""A consumer's account of AWS: moto's server, and before it the shares between accounts, which moto lacks.

Glue, STS and the grants on the consumer's own tables are moto's. The gateway has RAM's invitations, the
owner's grants on its tables, and the consumer's grants on them, and refuses what AWS refuses: a share that
was not accepted shows nothing, nobody passes on more than was shared with the account, and what the owner
revokes is lost to all readers.
"""

from __future__ import annotations

import http.client
import json
import logging
import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from fakes.quiet_server import QuietServer
from moto.server import ThreadedMotoServer

from dq.registry.aws.client import new_session

OWNER, CONSUMER, REGION = "123456789012", "210987654321", "eu-central-1"
READER = f"arn:aws:iam::{CONSUMER}:role/billing"
FUNCTION_ROLE = f"arn:aws:iam::{CONSUMER}:role/dq-link-shared"
_ALL = "*"
_PAGE = 2


@dataclass
class ConsumerGateway:
    """The server that the consumer's clients talk to.

    `calls` are the operations, as IAM names them; `refused` those that are denied. `shared` are the owner's
    grants: (table, principal) to columns, "*" for all, `filter:NAME` for a data filter. `granted` are the
    consumer's on the same tables. SearchTables does not list `unlisted` yet. `cascades`: what the owner takes
    back is lost to all readers at once.
    """

    backend: int
    calls: list[str] = field(default_factory=list)
    refused: set[str] = field(default_factory=set)
    invitations: list[dict[str, Any]] = field(default_factory=list)
    shared: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    granted: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    unlisted: set[str] = field(default_factory=set)
    cascades: bool = True

    def __post_init__(self) -> None:
        self._server = QuietServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def environment(self) -> dict[str, str]:
        """What points boto3 here, as the role of the consumer's function."""
        sts = new_session().client(
            "sts",
            region_name=REGION,
            endpoint_url=f"http://127.0.0.1:{self.backend}",
            aws_access_key_id="test",
            aws_secret_access_key="test",
        )
        made = sts.assume_role(RoleArn=FUNCTION_ROLE, RoleSessionName="dq")["Credentials"]
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": made["AccessKeyId"],
            "AWS_SECRET_ACCESS_KEY": made["SecretAccessKey"],
            "AWS_SESSION_TOKEN": made["SessionToken"],
            "AWS_DEFAULT_REGION": REGION,
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def reset(self) -> None:
        self.forward("POST", "/moto-api/reset", b"", {})
        for part in (self.calls, self.refused, self.invitations, self.shared, self.granted, self.unlisted):
            part.clear()
        self.cascades = True

    def invite(self, sender: str = OWNER, status: str = "PENDING") -> str:
        """The owner outside of the organization offers its share."""
        arn = f"arn:aws:ram:{REGION}:{sender}:resource-share-invitation/{len(self.invitations)}"
        self.invitations.append(
            {
                "resourceShareInvitationArn": arn,
                "resourceShareName": f"LakeFormation-V3-{len(self.invitations)}",
                "senderAccountId": sender,
                "receiverAccountId": CONSUMER,
                "status": status,
            }
        )
        return arn

    def share(self, table: str, *columns: str, principal: str = CONSUMER) -> None:
        """What the owner's subscription gives now, instead of what it gave before; nothing takes it back."""
        if columns:
            self.shared[table, principal] = set(columns)
        else:
            self.shared.pop((table, principal), None)
        if not self.cascades:
            return
        whole = self.shared.get((table, CONSUMER), set())
        for key, names in list(self.granted.items()):
            if key[0] == table and _ALL not in whole:
                self.granted[key] = names & whole
                if not self.granted[key]:
                    del self.granted[key]

    def writes(self) -> list[str]:
        """The calls that change something, in order."""
        return [call for call in self.calls if not re.search(":(Get|List|Search)", call)]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def forward(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.backend, timeout=300)
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        made = answer.status, answer.read()
        connection.close()
        return made

    def answer(self, service: str, operation: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]] | None:
        """What the gateway answers itself; None for what moto knows."""
        self.calls.append(f"{service}:{operation}")
        if f"{service}:{operation}" in self.refused:
            return _error("AccessDeniedException", f"not authorized to perform: {service}:{operation}")
        table = _foreign(body)
        if service == "ram" or operation == "SearchTables" or table is not None:
            return getattr(self, f"_{operation}")(body, table)  # type: ignore[no-any-return]
        return None

    def _GetResourceShareInvitations(self, body: dict[str, Any], _: str | None) -> tuple[int, dict[str, Any]]:
        start = int(body.get("nextToken") or 0)
        page: dict[str, Any] = {"resourceShareInvitations": self.invitations[start : start + _PAGE]}
        if start + _PAGE < len(self.invitations):
            page["nextToken"] = str(start + _PAGE)
        return 200, page

    def _AcceptResourceShareInvitation(
        self, body: dict[str, Any], _: str | None
    ) -> tuple[int, dict[str, Any]]:
        arn = body["resourceShareInvitationArn"]
        (invitation,) = [one for one in self.invitations if one["resourceShareInvitationArn"] == arn]
        if invitation["status"] == "ACCEPTED":
            return _error("ResourceShareInvitationAlreadyAcceptedException", "It is accepted already.")
        invitation["status"] = "ACCEPTED"
        return 200, {"resourceShareInvitation": invitation}

    def _is_open(self) -> bool:
        """Within an organization there are no invitations; otherwise, one was accepted."""
        ours = [one["status"] for one in self.invitations if one["senderAccountId"] == OWNER]
        return not ours or "ACCEPTED" in ours

    def _visible(self) -> list[str]:
        return sorted({table for table, _ in self.shared}) if self._is_open() else []

    def _SearchTables(self, body: dict[str, Any], _: str | None) -> tuple[int, dict[str, Any]]:
        assert body["ResourceShareType"] == "FOREIGN"
        tables = [table for table in self._visible() if table not in self.unlisted]
        rows = [dict(zip(("DatabaseName", "Name"), table.split("."), strict=True)) for table in tables]
        every = [{**row, "CatalogId": OWNER} for row in rows]
        # Another owner shares something, too.
        every.insert(1, {"DatabaseName": "hr", "Name": "salaries", "CatalogId": "999999999999"})
        start = int(body.get("NextToken") or 0)
        page: dict[str, Any] = {"TableList": every[start : start + _PAGE]}
        if start + _PAGE < len(every):
            page["NextToken"] = str(start + _PAGE)
        return 200, page

    def _ListPermissions(self, body: dict[str, Any], table: str | None) -> tuple[int, dict[str, Any]]:
        if table not in {*self._visible(), *(about for about, _ in self.granted)}:
            return _error("AccessDeniedException", "Insufficient Lake Formation permission(s) on the table")
        grants = [(True, self.shared), (False, self.granted)]
        rows = [
            _row(table, principal, name, onward=owners and principal == CONSUMER)
            for owners, part in grants
            for (about, principal), names in sorted(part.items())
            for name in sorted(names)
            if about == table
        ]
        start = int(body.get("NextToken") or 0)
        page: dict[str, Any] = {"PrincipalResourcePermissions": rows[start : start + _PAGE]}
        if start + _PAGE < len(rows):
            page["NextToken"] = str(start + _PAGE)
        return 200, page

    def _GrantPermissions(self, body: dict[str, Any], table: str | None) -> tuple[int, dict[str, Any]]:
        assert table is not None
        whole = self.shared.get((table, CONSUMER), set())
        names = _names(body["Resource"])
        if not self._is_open() or not (names <= whole or (_ALL in whole and not any(map(_is_filter, names)))):
            return _error("AccessDeniedException", "Insufficient Lake Formation permission(s) on the table")
        self.granted.setdefault((table, _reader(body)), set()).update(names)
        return 200, {}

    def _RevokePermissions(self, body: dict[str, Any], table: str | None) -> tuple[int, dict[str, Any]]:
        assert table is not None
        held = self.granted.get((table, _reader(body)), set())
        names = _names(body["Resource"])
        if not names <= held:
            return _error("InvalidInputException", "No permissions revoked. Grantee has no permissions.")
        held -= names
        if not held:
            del self.granted[table, _reader(body)]
        return 200, {}


def _foreign(body: dict[str, Any]) -> str | None:
    """The shared table that a request of Lake Formation is about, or None for one of the own account."""
    inner = next(iter((body.get("Resource") or {"": {}}).values()))
    if inner.get("CatalogId", inner.get("TableCatalogId")) != OWNER:
        return None
    return f"{inner['DatabaseName']}.{inner.get('TableName', inner.get('Name'))}"


def _reader(body: dict[str, Any]) -> str:
    return str(body["Principal"]["DataLakePrincipalIdentifier"])


def _names(resource: dict[str, Any]) -> set[str]:
    ((kind, inner),) = resource.items()
    if kind == "TableWithColumns":
        return set(inner["ColumnNames"])
    return {f"filter:{inner['Name']}"} if kind == "DataCellsFilter" else {_ALL}


def _row(table: str, principal: str, name: str, *, onward: bool) -> dict[str, Any]:
    database, short = table.split(".")
    if _is_filter(name):
        inner = {"DatabaseName": database, "TableName": short, "TableCatalogId": OWNER, "Name": name[7:]}
        resource = {"DataCellsFilter": inner}
    else:
        columns = {"ColumnWildcard": {}} if name == _ALL else {"ColumnNames": [name]}
        resource = {
            "TableWithColumns": {"CatalogId": OWNER, "DatabaseName": database, "Name": short, **columns}
        }
    return {
        "Principal": {"DataLakePrincipalIdentifier": principal},
        "Resource": resource,
        "Permissions": ["SELECT"],
        "PermissionsWithGrantOption": ["SELECT"] if onward else [],
    }


def _is_filter(name: str) -> bool:
    return name.startswith("filter:")


def _error(code: str, message: str) -> tuple[int, dict[str, Any]]:
    return 400, {"__type": code, "message": message, "Message": message}


# RAM's operations by path; those of Lake Formation are their own path.
_RAM = {
    "/getresourceshareinvitations": "GetResourceShareInvitations",
    "/acceptresourceshareinvitation": "AcceptResourceShareInvitation",
}


def _handler(gateway: ConsumerGateway) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1

        def log_message(self, format: str, *args: object) -> None:
            pass

        def do_GET(self) -> None:
            self._answer("GET")

        def do_POST(self) -> None:
            self._answer("POST")

        def _answer(self, method: str) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            target = self.headers.get("X-Amz-Target", "")
            scope = re.search(
                r"Credential=[^,]*/([a-z0-9-]+)/aws4_request", self.headers["Authorization"] or ""
            )
            service = scope[1] if scope else ""
            operation = _RAM.get(self.path) or target.rpartition(".")[2] or self.path.strip("/")
            answer = None
            if service in ("ram", "glue", "lakeformation"):
                answer = gateway.answer(service, operation, json.loads(body or b"{}"))
            headers = {
                name: text
                for name, text in self.headers.items()
                if name.lower() not in ("host", "content-length", "connection", "accept-encoding")
            }
            if answer is None:
                status, sent = gateway.forward(method, self.path, body, headers)
                code = ""
            else:
                status, sent = answer[0], json.dumps(answer[1]).encode()
                code = answer[1].get("__type", "")
            self.send_response(status)
            self.send_header("Content-Type", "application/x-amz-json-1.1" if service != "sts" else "text/xml")
            if code:
                self.send_header("x-amzn-ErrorType", code)
            self.send_header("Content-Length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)
            self.wfile.flush()

    return Handler


@contextmanager
def serving() -> Iterator[ConsumerGateway]:
    """moto's server with the gateway before it."""
    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    gateway = ConsumerGateway(server.get_host_and_port()[1])
    yield gateway
    gateway.close()
    server.stop()
