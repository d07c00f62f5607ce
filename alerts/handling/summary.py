"""An incident in a few JSON values, as `dq status` and the portal give it."""

from __future__ import annotations

from dq.alerts.incident import Incident
from dq.contracts.shared.values import picked


def incident_as_row(one: Incident) -> dict[str, object]:
    """What is open, how bad it is, since when, and for which deliveries or partitions."""
    return {
        "id": one.id,
        "key": str(one.key),
        **picked(one, "severity title opened_at"),
        "subjects": list(one.open_subjects),
    }
