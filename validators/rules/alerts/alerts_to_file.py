"""A support channel would have alerts written to a file.

Why: The path is one of the machine that watches. Whoever runs it has to allow a folder for such files, and
without that the console is told instead.

Bad:
    support:
      - {channel: /var/log/alerts.jsonl, tool: file, scope: notifications}

Good:
    support:
      - {channel: "#sales-data", tool: slack, scope: notifications}

Mend: Name a channel that people read, or ask for `file_channels` in the watcher's settings.
"""

from dq.contracts.access.alert_target import FILES, hears
from dq.validators.rule import Context, Contract, Faults, Rule, Severity, fault


def check(contract: Contract, _context: Context) -> Faults:
    for support in contract.support:
        if support.tool in FILES and hears(support):
            message = f"alerts are written to {support.channel!r} only where the watcher's settings allow it."
            yield fault(support, "channel", message, "Name a slack channel, or ask for file_channels.")


RULE = Rule("alerts-to-file", Severity.WARNING, __doc__, check)
