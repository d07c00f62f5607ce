"""Invalid date, or end date before start date.

Why: Programs read until when a version is supported and who was responsible at a given time; they skip dates
that they cannot parse.

Bad:
    slaProperties:
      - {property: endOfSupport, value: end of 2026}

Good:
    slaProperties:
      - {property: endOfSupport, value: "2026-12-31"}

How to fix: Write ISO 8601 in quotes, e.g. "2026-12-31" or "2026-12-31T00:00:00Z".
"""

import datetime as dt

from dq.validators.rule import (
    Context,
    Contract,
    Rule,
    Severity,
    Violations,
    fits_type,
    quote_value,
    violation,
)

# Service levels whose value is a date or timestamp.
_MOMENTS = ("generalavailability", "endofsupport", "endoflife")
_HINT = 'Write it as "2026-12-31".'


def check(contract: Contract, _context: Context) -> Violations:
    created = contract.contract_created_ts
    if created is not None and not fits_type(created, "timestamp"):
        message = f"contractCreatedTs {quote_value(created)} is not a timestamp."
        yield violation(contract, "contractCreatedTs", message, 'Write it as "2026-12-31T00:00:00Z".')
    for sla in contract.sla_properties:
        if sla.property.lower() in _MOMENTS and not fits_type(sla.value, "timestamp"):
            yield violation(sla, "value", f"{sla.property} {quote_value(sla.value)} is not a date.", _HINT)
    for member in contract.members():
        begins, ends = _date(member.date_in), _date(member.date_out)
        for key, text, date in (("dateIn", member.date_in, begins), ("dateOut", member.date_out, ends)):
            if text is not None and date is None:
                yield violation(member, key, f"{key} {quote_value(text)} is not a date.", _HINT)
        if begins is not None and ends is not None and ends < begins:
            message = f"dateOut {ends} of {member.username!r} is before dateIn {begins}."
            yield violation(member, "dateOut", message, "Swap the two, or correct one of them.")


def _date(text: str | None) -> dt.date | None:
    try:
        return dt.datetime.fromisoformat(text).date() if text else None
    except ValueError:
        return None


RULE = Rule("date-invalid", Severity.WARNING, __doc__, check)
