"""What programs read of a product: `status.json`, and a badge for other people's pages."""

from __future__ import annotations

from typing import Any

from dq.alerts.incident import incident_as_row
from dq.contracts.shared.units import iso
from dq.dataquality.delivery.cycle import Kept
from dq.dataquality.delivery.history.compliance import promise_as_dict
from dq.portal.facts.product import ProductFacts, ProductState
from dq.portal.views.strip import DRAWN
from dq.portal.views.words import STATES, instant

# Grounds on which white text has a contrast of 4.5 and more.
_GROUNDS = {
    ProductState.UNREADABLE: "#8a1f17",
    ProductState.BROKEN: "#a3231a",
    ProductState.LATE: "#8f4a00",
    ProductState.UNKNOWN: "#5b4a8a",
    ProductState.SPENT: "#8f4a00",
    ProductState.UNCHECKED: "#4d5561",
    ProductState.FINE: "#1a6b3a",
    ProductState.RESTING: "#4d5561",
}
_LETTER = 7


def status(facts: ProductFacts) -> dict[str, Any]:
    """The same as `dq status --format json` says of the contract, with the last cycles of each promise.

    Rows of the data that broke a check are left out: they are for those who may read the data.
    """
    return {
        "contract": facts.card.key,
        "version": facts.contract.version,
        "state": facts.state.value,
        "as_of": instant(facts.now).iso,
        "deliveries": [
            {**promise_as_dict(one), "cycles": [_cycle(kept) for kept in one.cycles[-DRAWN:]]}
            for one in facts.promises
        ],
        "checks": [
            {name: value for name, value in line.as_dict().items() if name != "samples"}
            for one in facts.objects
            for line in one.quality.lines
        ],
        "incidents": [incident_as_row(one.incident) for one in reversed(facts.open_incidents)],
    }


def _cycle(kept: Kept) -> dict[str, Any]:
    """What most ask of a cycle; `dq status --format json` has all of it."""
    return {
        "due_at": kept.cycle.due_at.isoformat(),
        "status": kept.status,
        "delivered_at": iso(kept.delivered_at),
        "source": kept.source,
    }


def badge(state: ProductState) -> dict[str, Any]:
    """The values of a badge: `data | late`."""
    text = STATES[state].text
    width = len(text) * _LETTER + 16
    return {"text": text, "ground": _GROUNDS[state], "width": width, "whole": 44 + width}
