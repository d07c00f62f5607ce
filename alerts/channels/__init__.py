"""SHELF: one file per channel, each with a CHANNEL."""

from __future__ import annotations

import sys

from dq.alerts.channel import Channel
from dq.contracts.shared import install


def load() -> dict[str, Channel]:
    """Every channel on the shelf by id."""
    return install.load(sys.modules[__name__], "CHANNEL", Channel)
