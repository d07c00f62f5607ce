"""Breaches and recoveries for the tests."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from dq.alerts.route import AlertRoute
from dq.contracts.incident import Breach, IncidentKey, Recovery
from dq.contracts.outcome import Severity

KEY = IncidentKey("orders", "orders", "daily-by-8")
DUE = datetime(2026, 5, 1, 8, tzinfo=UTC)
ROUTES = (AlertRoute("slack", "#orders-alerts"),)


def breach(day: int = 1, severity: Severity = Severity.ERROR, key: IncidentKey = KEY) -> Breach:
    """The delivery of that day of May is missing."""
    at = DUE + timedelta(days=day - 1)
    return Breach(
        key,
        severity,
        f"{at:%Y-%m-%dT%H:%MZ}",
        "Orders were not delivered by 08:00",
        at,
        (
            ("promised", f"{at:%Y-%m-%d} 08:00 UTC"),
            ("seen", "nothing"),
            ("blocks", "finance.revenue"),
            ("look", f"dq check orders --partition {at:%Y-%m-%d}"),
            ("budget", "1 of 4 misses used, the next returns 2026-05-31"),
        ),
    )


def recovery(
    day: int = 1, late: timedelta = timedelta(hours=2, minutes=10), key: IncidentKey = KEY
) -> Recovery:
    """The delivery of that day of May has come."""
    at = DUE + timedelta(days=day - 1)
    facts = (("seen", f"delivered {at + late:%H:%M} UTC"), ("budget", "2 of 4 misses used"))
    return Recovery(key, f"{at:%Y-%m-%dT%H:%MZ}", at + late, facts)
