"""TABLE: what a support entry must name for alerts to go there, by its tool."""

from __future__ import annotations

import re

from dq.contracts.model import SupportChannel
from dq.contracts.shared.fault import TextFault

# Scopes of support channels that want to hear of breaches; an entry without a scope does too.
HEARING = (None, "notifications", "issues")
# Tools whose channel is a path of the machine that watches.
FILES = frozenset({"file"})

# By tool: what a channel must be, what it must not be, and what to write. Slack's own limit is 80 signs.
_FORMS: dict[str, tuple[str, str, str]] = {
    "slack": (
        r"#?[\w.\-]{1,80}",
        r"[UW][A-Z0-9]{7,}",
        "Write a channel such as '#sales-data', in quotes, or its id, such as C024BE91L.",
    ),
}


def target_fault(support: SupportChannel) -> TextFault | None:
    """What is wrong with the channel of an entry, taken by itself; None for tools that have no form here."""
    if support.tool not in _FORMS:
        return None
    wanted, unwanted, mend = _FORMS[support.tool]
    if re.fullmatch(wanted, support.channel) and not re.fullmatch(unwanted, support.channel):
        return None
    return TextFault("ALERT_TARGET", f"{support.channel!r} is no channel of {support.tool}", mend)


def hears(support: SupportChannel) -> bool:
    """Whether breaches are told to this entry."""
    return support.scope in HEARING
