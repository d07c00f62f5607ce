"""SHELF: one file per channel, each with a CHANNEL."""

from __future__ import annotations

import sys

from dq.alerts.channel import Channel
from dq.contracts.shared import shelf


def load() -> dict[str, Channel]:
    """Every channel on the shelf by id."""
    return shelf.load(sys.modules[__name__], "CHANNEL", Channel)
