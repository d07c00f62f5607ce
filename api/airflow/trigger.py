"""Waits in Airflow's triggerer for one promised delivery, looking as the watcher does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from dq.contracts.outcome import CycleStatus, DqError, iso
from dq.operations.status import CycleStanding, cycle

_FAILED = (CycleStatus.NEVER, CycleStatus.WITHDRAWN)


def decided(found: CycleStanding, now: datetime) -> bool:
    """Whether waiting is over: it is there, is not expected any more, or its deadline has passed."""
    if found.delivered or found.status is CycleStatus.EXCUSED or found.status in _FAILED:
        return True
    return now > found.decide_at


def as_event(found: CycleStanding) -> dict[str, str]:
    """What the sensor is told, as JSON values."""
    return {
        "contract": found.contract,
        "object": found.object,
        "slo": found.slo,
        "due_at": found.due_at.isoformat(),
        "status": str(found.status),
        "reason": found.reason,
        "delivered_at": iso(found.delivered_at) or "",
    }


class DeliveryTrigger(BaseTrigger):
    """Looks for the delivery that was `due` until it is there or `decide_at` has passed.

    All arguments are texts and numbers, and nothing else is kept: after a restart of the triggerer it goes on
    from them. `contract` is a path that the triggerer can read, and `folder` its working folder for dq. What
    cannot be read for a moment is looked at again, until the deadline.
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
        """The class and its arguments."""
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
        """How it stands now."""
        return cycle(
            self.contract,
            self.object_name,
            due=datetime.fromisoformat(self.due),
            slo=self.slo,
            server=self.server,
            folder=self.folder,
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """One event, when waiting is over."""
        deadline = datetime.fromisoformat(self.decide_at)
        while True:
            now = datetime.now(UTC)
            try:
                found = await asyncio.to_thread(self.look)
                if decided(found, now):
                    yield TriggerEvent(as_event(found))
                    return
            except DqError as error:
                if now > deadline:
                    yield TriggerEvent({"status": CycleStatus.UNKNOWN.value, "reason": str(error)})
                    return
            left = (deadline - datetime.now(UTC)).total_seconds()
            await asyncio.sleep(min(self.poke_seconds, left + 0.1) if left > 0 else 0.1)
