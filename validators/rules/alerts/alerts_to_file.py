"""Alert channel that is a file.

Why: The path is on the machine that runs the watcher. Its operator has to allow a folder for such files;
otherwise the alerts go to the console.

Bad:
    support:
      - {channel: /var/log/alerts.jsonl, tool: file, scope: notifications}

Good:
    support:
      - {channel: "#sales-data", tool: slack, scope: notifications}

How to fix: Use a channel that people read, or ask the operator to set `file_channels` in the watcher's
settings.
"""

from dq.contracts.access.alert_target import FILES, receives_breaches
from dq.validators.rule import Context, Contract, Rule, Severity, Violations, violation


def check(contract: Contract, _context: Context) -> Violations:
    for support in contract.support:
        if support.tool in FILES and receives_breaches(support):
            message = f"alerts are written to {support.channel!r} only if the watcher's settings allow it."
            yield violation(
                support, "channel", message, "Use a Slack channel, or have the operator set file_channels."
            )


RULE = Rule("alerts-to-file", Severity.WARNING, __doc__, check)
