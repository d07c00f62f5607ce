"""A sensor that waits for a product's delivery, as long as its contract says that one must."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from airflow.sdk import BaseSensorOperator
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from dq.airflow.trigger import DeliveryTrigger, as_event, decided
from dq.contracts.outcome import CycleStatus
from dq.operations.status import CycleStanding, cycle

_THERE = {CycleStatus.ON_TIME, CycleStatus.ON_TIME_IN_GRACE, CycleStatus.LATE}


class DqDeliverySensor(BaseSensorOperator):
    """Waits until a promised delivery is there: that of a `partition`, or the one `due` at an instant.

    The deadline is the contract's: when the delivery is missing after due and grace, it fails with the
    reason, and is not tried again. Cleared later, it succeeds if the delivery has come, however late. One
    that is excused (a holiday, a word of its owner) skips what follows. `deferrable` waits in the triggerer,
    which then needs to read contract, store and data; else in the worker.
    """

    template_fields: Sequence[str] = (
        "contract",
        "object_name",
        "partition",
        "due",
        "slo",
        "server",
        "folder",
    )

    def __init__(
        self,
        *,
        contract: str,
        partition: Mapping[str, str] | None = None,
        due: str | None = None,
        object_name: str | None = None,
        slo: str | None = None,
        server: str | None = None,
        folder: str | None = None,
        deferrable: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if (partition is None) == (due is None):
            raise ValueError("DqDeliverySensor: give partition={…} or due=…, and not both")
        self.contract = contract
        self.partition = dict(partition) if partition is not None else None
        self.due = due
        self.object_name = object_name
        self.slo = slo
        self.server = server
        self.folder = folder
        self.deferrable = deferrable

    def execute(self, context: Any) -> Any:
        """Looks once, and waits where it is not there yet."""
        found = self._look(context)
        if decided(found, datetime.now(UTC)):
            return self.resume(context, as_event(found))
        if not self.deferrable:
            return super().execute(context)
        return self.defer(
            trigger=DeliveryTrigger(
                str(Path(self.contract).absolute()),
                found.object,
                found.slo,
                found.due_at.isoformat(),
                found.decide_at.isoformat(),
                float(self.poke_interval),
                self.server,
                str(Path(self.folder or ".").absolute()),
            ),
            method_name="resume",
        )

    def poke(self, context: Any) -> bool:
        """Whether it is there; raises as `resume` does once its deadline has passed."""
        found = self._look(context)
        if not decided(found, datetime.now(UTC)):
            return False
        self.resume(context, as_event(found))
        return True

    def resume(self, context: Any, event: dict[str, str]) -> dict[str, str]:  # noqa: ARG002  # Airflow's own
        """What is known of the delivery that came. Raises for one that did not."""
        status, reason = CycleStatus(event["status"]), event["reason"]
        self.log.info("%s: %s. %s", self.contract, status.value, reason)
        if status in _THERE:
            return event
        if status is CycleStatus.EXCUSED:
            raise AirflowSkipException(f"{self.contract}: no delivery is owed. {reason}")
        said = "nobody knows whether it came" if status is CycleStatus.UNKNOWN else status.value
        raise AirflowFailException(f"{self.contract}: {said}. {reason}")

    def _look(self, context: Any) -> CycleStanding:
        around = context.get("logical_date")
        return cycle(
            self.contract,
            self.object_name,
            partition=self.partition,
            due=datetime.fromisoformat(self.due) if self.due else None,
            slo=self.slo,
            server=self.server,
            around=around,
            folder=self.folder,
        )
