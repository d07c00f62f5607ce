"""A date of the contract is none, or ends before it begins.

Why: Until when a version is supported, and who was in charge at a time, is read by programs; they skip what
they cannot read.

Bad:
    slaProperties:
      - {property: endOfSupport, value: end of 2026}

Good:
    slaProperties:
      - {property: endOfSupport, value: "2026-12-31"}

Mend: Write ISO 8601, such as "2026-12-31" or "2026-12-31T00:00:00Z", in quotes.
"""

import datetime as dt

from dq.validators.rule import Context, Contract, Faults, Rule, Severity, fault, fits, shown

# Service levels whose value is a moment.
_MOMENTS = ("generalavailability", "endofsupport", "endoflife")
_MEND = 'Write it as "2026-12-31".'


def check(contract: Contract, _context: Context) -> Faults:
    created = contract.contract_created_ts
    if created is not None and not fits(created, "timestamp"):
        message = f"contractCreatedTs {shown(created)} is not a timestamp."
        yield fault(contract, "contractCreatedTs", message, 'Write it as "2026-12-31T00:00:00Z".')
    for sla in contract.sla_properties:
        if sla.property.lower() in _MOMENTS and not fits(sla.value, "timestamp"):
            yield fault(sla, "value", f"{sla.property} {shown(sla.value)} is not a date.", _MEND)
    for member in contract.members():
        begins, ends = _date(member.date_in), _date(member.date_out)
        for key, written, date in (("dateIn", member.date_in, begins), ("dateOut", member.date_out, ends)):
            if written is not None and date is None:
                yield fault(member, key, f"{key} {shown(written)} is not a date.", _MEND)
        if begins is not None and ends is not None and ends < begins:
            message = f"{member.username!r} leaves on {ends}, before the beginning on {begins}."
            yield fault(member, "dateOut", message, "Swap the two, or correct one of them.")


def _date(text: str | None) -> dt.date | None:
    try:
        return dt.datetime.fromisoformat(text).date() if text else None
    except ValueError:
        return None


RULE = Rule("date-invalid", Severity.WARNING, __doc__, check)
