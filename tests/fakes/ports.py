"""A port for a server in another process that cannot say which one it was given."""

from __future__ import annotations

import socket
from random import SystemRandom

# Below those that Linux gives to connections: none of the thousands that tests open has it by chance.
_FIRST, _LAST = 20_000, 32_767


def free_port() -> int:
    """One of this machine's loopback that nobody listens on."""
    while True:
        # Not as a test has seeded it: several runs at once would all take the same.
        port = SystemRandom().randint(_FIRST, _LAST)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
