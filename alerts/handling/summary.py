"""An incident in a few JSON values, as `dq status` and the portal give it."""

from __future__ import annotations

from dq.alerts.incident import Incident


def incident_as_row(one: Incident) -> dict[str, object]:
    """What is open, how bad it is, since when, and for which deliveries or partitions."""
    return {
        "id": one.id,
        "key": str(one.key),
        "severity": one.severity,
        "title": one.title,
        "opened_at": one.opened_at.isoformat(),
        "subjects": list(one.open_subjects),
    }
