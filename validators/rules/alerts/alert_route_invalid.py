"""When a support channel is to hear of a breach cannot be understood.

Why: An alert that waits for a time that nobody can read is told at once, to people who should have slept.

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

Mend: Write elapsed time such as 30m or 2h, quiet hours such as "22:00-07:00", and a zone of the tz database.
"""

from dq.contracts.access.alert_target import RULE as FAULT
from dq.contracts.access.alert_target import route_terms
from dq.validators.rule import Context, Contract, Fault, Faults, Rule, Severity


def check(contract: Contract, _context: Context) -> Faults:
    for support in contract.support:
        for finding in route_terms(support)[1]:
            if finding.rule == FAULT:
                yield Fault(finding.at, finding.message, finding.mend, finding.path)


RULE = Rule("alert-route-invalid", Severity.ERROR, __doc__, check)
