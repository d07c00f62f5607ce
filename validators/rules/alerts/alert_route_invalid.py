"""Invalid alert route of a support channel.

Why: With an invalid delay or quiet hours, alerts are sent at once, even at night.

Bad:
    support:
      - channel: "#sales-lead"
        tool: slack
        scope: notifications
        customProperties:
          - property: route
            vendor: dq
            value: {escalateAfter: half an hour}

Good:
    support:
      - channel: "#sales-lead"
        tool: slack
        scope: notifications
        customProperties:
          - property: route
            vendor: dq
            value: {escalateAfter: 30m, quiet: "22:00-07:00", timezone: Europe/Berlin}

How to fix: Write durations like 30m or 2h, quiet hours like "22:00-07:00", and a time zone of the tz
database.
"""

from dq.contracts.access.alert_target import RULE as FAULT
from dq.contracts.access.alert_target import route_terms
from dq.validators.rule import Context, Contract, Rule, Severity, Violation, Violations


def check(contract: Contract, _context: Context) -> Violations:
    for support in contract.support:
        for finding in route_terms(support)[1]:
            if finding.rule == FAULT:
                yield Violation(finding.at, finding.message, finding.hint, finding.path)


RULE = Rule("alert-route-invalid", Severity.ERROR, __doc__, check)
