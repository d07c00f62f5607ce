"""SHELF: one file per channel, each with a CHANNEL."""

from __future__ import annotations

import sys
from functools import cache

from dq.alerts.channel import Channel
from dq.contracts import install


@cache
def load() -> dict[str, Channel]:
    """Return all channels by id."""
    return install.load_plugins(sys.modules[__name__], "CHANNEL", Channel)
