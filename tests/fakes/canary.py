"""A listening socket that nobody should speak to; it answers nothing, and keeps what it hears."""

from __future__ import annotations

import socket
import threading
from types import TracebackType
from typing import Self


class Canary:
    """On the loopback, at `port`; `heard` has the first bytes of each connection, b"" for a silent one."""

    def __init__(self, answer: bytes = b"") -> None:
        self.heard: list[bytes] = []
        self._answer = answer
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]

    def __enter__(self) -> Self:
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listening.close()

    def _serve(self) -> None:
        while True:
            try:
                one, _ = self._listening.accept()
            except OSError:
                return
            with one:
                one.settimeout(1)
                try:
                    self.heard.append(one.recv(65_536))
                    one.sendall(self._answer)
                except OSError:
                    self.heard.append(b"")
