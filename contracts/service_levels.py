"""TABLE: service levels of ODCS and the units that their values may have.

ODCS names the properties ("case-insensitive", and others are allowed) and leaves their units open but for
days and years. Source: the section "Service-Level Agreement" of ODCS 3.1.
"""

from __future__ import annotations

# Lower-case name -> (the name as ODCS writes it, whether its value is a length of time).
SERVICE_LEVELS: dict[str, tuple[str, bool]] = {
    name.lower(): (name, timed)
    for name, timed in (
        ("availability", False),
        ("errorRate", False),
        ("throughput", False),
        ("generalAvailability", False),
        ("endOfSupport", False),
        ("endOfLife", False),
        ("timeOfAvailability", False),
        ("frequency", True),
        ("freshness", True),
        ("latency", True),
        ("retention", True),
        ("timeToDetect", True),
        ("timeToNotify", True),
        ("timeToRepair", True),
    )
}

# Unit of time as our durations write it -> the other spellings that contracts use.
_SPELLINGS = {
    "s": ("sec", "secs", "second", "seconds"),
    "min": ("mins", "minute", "minutes"),
    "h": ("hr", "hrs", "hour", "hours"),
    "d": ("day", "days"),
    "w": ("wk", "week", "weeks"),
    "mo": ("mon", "month", "months"),
    "y": ("yr", "yrs", "year", "years"),
}
TIME_UNITS: dict[str, str] = {
    spelling: unit for unit, others in _SPELLINGS.items() for spelling in (unit, *others)
}


def time_unit(written: str) -> str | None:
    """The unit of time that a spelling means, whatever its case; None for a bare `m` and for what is none."""
    return TIME_UNITS.get(written.strip().lower())
