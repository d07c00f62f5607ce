"""Trigger that waits for one delivery in Airflow's triggerer, probing as the watcher does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from dq.contracts.outcome import CycleStatus, DqError, iso
from dq.operations.status import CycleStanding, cycle

_FAILED = (CycleStatus.NEVER, CycleStatus.WITHDRAWN)


def is_terminal(standing: CycleStanding, now: datetime) -> bool:
    """True if the delivery has arrived, is not expected, or its deadline has passed."""
    if standing.delivered or standing.status is CycleStatus.EXCUSED or standing.status in _FAILED:
        return True
    return now > standing.decide_at


def as_event(standing: CycleStanding) -> dict[str, str]:
    """Return the standing as the JSON values of a trigger event."""
    return {
        "contract": standing.contract,
        "object": standing.object,
        "slo": standing.slo,
        "due_at": standing.due_at.isoformat(),
        "status": str(standing.status),
        "reason": standing.reason,
        "delivered_at": iso(standing.delivered_at) or "",
    }


class DeliveryTrigger(BaseTrigger):
    """Probes for the delivery that was `due` until it has arrived or `decide_at` has passed.

    All state is in the arguments, texts and numbers, so that it survives a restart of the triggerer.
    `contract` is a path that the triggerer can read, and `folder` its working folder for dq. Read errors are
    retried until the deadline.
    """

    def __init__(
        self,
        contract: str,
        object_name: str,
        slo: str,
        due: str,
        decide_at: str,
        poke_seconds: float = 60.0,
        server: str | None = None,
        folder: str | None = None,
    ) -> None:
        super().__init__()
        self.contract = contract
        self.object_name = object_name
        self.slo = slo
        self.due = due
        self.decide_at = decide_at
        self.poke_seconds = poke_seconds
        self.server = server
        self.folder = folder

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class path and its arguments."""
        return "dq.airflow.trigger.DeliveryTrigger", {
            "contract": self.contract,
            "object_name": self.object_name,
            "slo": self.slo,
            "due": self.due,
            "decide_at": self.decide_at,
            "poke_seconds": self.poke_seconds,
            "server": self.server,
            "folder": self.folder,
        }

    def look(self) -> CycleStanding:
        """Return the current standing of the delivery."""
        return cycle(
            self.contract,
            self.object_name,
            due=datetime.fromisoformat(self.due),
            slo=self.slo,
            server=self.server,
            folder=self.folder,
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yield one event when waiting is over."""
        deadline = datetime.fromisoformat(self.decide_at)
        while True:
            now = datetime.now(UTC)
            try:
                standing = await asyncio.to_thread(self.look)
                if is_terminal(standing, now):
                    yield TriggerEvent(as_event(standing))
                    return
            except DqError as error:
                if now > deadline:
                    yield TriggerEvent({"status": CycleStatus.UNKNOWN.value, "reason": str(error)})
                    return
            remaining_seconds = (deadline - datetime.now(UTC)).total_seconds()
            await asyncio.sleep(
                min(self.poke_seconds, remaining_seconds + 0.1) if remaining_seconds > 0 else 0.1
            )
