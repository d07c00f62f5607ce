"""A mail server on the loopback that speaks SMTP, with a ledger and a script of faults.

In a test: ``with FakeSmtp() as server: … server.port, server.fault("RCPT", code=550), server.mails``.
A fault is for the next command of its verb (CONNECT, EHLO, AUTH, MAIL, RCPT, DATA, BODY):

    code=450 answers so · drip=True goes on answering so · drop=True closes the connection
    accept=True, for BODY: takes the mail before
"""

from __future__ import annotations

import base64
import contextlib
import email
import socket
import socketserver
import ssl
import threading
import time
from collections import defaultdict
from dataclasses import dataclass
from email.message import EmailMessage
from email.policy import default
from pathlib import Path
from typing import Any

USER, PASSWORD = "dq-user", "smtp-canary-of-the-tests"


@dataclass(frozen=True)
class Mail:
    """A mail that was taken: its envelope, and what stood in it."""

    sender: str
    recipients: tuple[str, ...]
    message: EmailMessage

    def text(self, kind: str = "plain") -> str:
        return self.message.get_body((kind,)).get_content()


class FakeSmtp:
    """One mail server; `certificate` is a file for STARTTLS, `login` says whether it offers a login.

    `logins` holds who came by it.
    """

    def __init__(self, host: str = "127.0.0.1", *, login: bool = True, certificate: Path | None = None):
        self.certificate = certificate
        self.mails: list[Mail] = []
        self.commands: list[str] = []
        self.logins: list[str] = []
        self.login = login
        self.faults: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self.server = socketserver.ThreadingTCPServer((host, 0), _Session)
        self.server.daemon_threads = True
        self.server.fake = self

    @property
    def port(self) -> int:
        return self.server.server_address[1]

    def fault(self, verb: str, times: int = 1, **how: Any) -> None:
        self.faults[verb] += [how for _ in range(times)]

    def __enter__(self) -> FakeSmtp:
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()


class _Session(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        self.sender, self.recipients = "", []
        if self._faulty("CONNECT") is not False:
            return
        self._say(220, "mail.tests ESMTP")
        while line := self.rfile.readline():
            verb, _, rest = line.decode().rstrip("\r\n").partition(" ")
            self.server.fake.commands.append(verb.upper())
            if self._faulty(verb.upper()) is None:
                continue
            if self._faulted:
                return
            getattr(self, "_" + verb.lower(), self._unknown)(rest)
            if verb.upper() == "QUIT":
                return

    def _faulty(self, verb: str) -> bool | None:
        """True to close the connection, None when the fault has answered, False when there is none."""
        self._faulted = False
        script = self.server.fake.faults[verb]
        if not script:
            return False
        fault = script.pop(0)
        if fault.get("drop"):
            self._faulted = True
            return True
        if fault.get("drip"):
            with contextlib.suppress(OSError):
                while True:
                    self._say(f"{fault['code']}-and", "so on")
                    time.sleep(0.05)
        self._say(fault["code"], "scripted")
        return None

    def _say(self, code: int | str, text: str) -> None:
        self.wfile.write(f"{code} {text}\r\n".encode())

    def _unknown(self, rest: str) -> None:
        self._say(502, "what?")

    def _ehlo(self, rest: str) -> None:
        starttls = ["STARTTLS"] if self.server.fake.certificate else []
        offered = ["mail.tests", *starttls, *(["AUTH PLAIN"] if self.server.fake.login else []), "8BITMIME"]
        for each in offered[:-1]:
            self.wfile.write(f"250-{each}\r\n".encode())
        self._say(250, offered[-1])

    def _starttls(self, rest: str) -> None:
        self._say(220, "go on")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.server.fake.certificate)
        self.connection = context.wrap_socket(self.connection, server_side=True)
        self.rfile, self.wfile = self.connection.makefile("rb"), self.connection.makefile("wb", buffering=0)

    def _auth(self, rest: str) -> None:
        said = base64.b64decode(rest.partition(" ")[2]).decode().split("\0")
        if said[1:] == [USER, PASSWORD]:
            self.server.fake.logins.append(said[1])
            self._say(235, "welcome")
        else:
            self._say(535, f"no: {said[-1]}")

    def _mail(self, rest: str) -> None:
        self.sender = rest.partition("<")[2].partition(">")[0]
        self._say(250, "ok")

    def _rcpt(self, rest: str) -> None:
        self.recipients.append(rest.partition("<")[2].partition(">")[0])
        self._say(250, "ok")

    def _rset(self, rest: str) -> None:
        self._say(250, "ok")

    def _quit(self, rest: str) -> None:
        self._say(221, "bye")

    def _data(self, rest: str) -> None:
        self._say(354, "go on")
        lines = []
        while (line := self.rfile.readline()) not in (b".\r\n", b""):
            lines.append(line[1:] if line.startswith(b"..") else line)
        script = self.server.fake.faults["BODY"]
        fault = script.pop(0) if script else {"accept": True}
        if fault.get("accept"):
            message = email.message_from_bytes(b"".join(lines), policy=default)
            self.server.fake.mails.append(Mail(self.sender, tuple(self.recipients), message))
        if fault.get("drop"):
            self.connection.shutdown(socket.SHUT_RDWR)
        else:
            self._say(fault.get("code", 250), "done")
