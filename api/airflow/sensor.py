"""Sensor that waits for a delivery until the deadline in its contract."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from dq.airflow.command import AirflowFailException, AirflowSkipException, BaseSensorOperator
from dq.airflow.trigger import DeliveryTrigger, Lookup, Standing
from dq.contracts.incident import CycleStatus


class DqDeliverySensor(BaseSensorOperator):
    """Waits for a delivery: that of a `partition`, the one `due` at an instant, or all due `until` one.

    The deadline is the contract's: if the delivery is missing after due time and grace, the task fails with
    the reason and is not retried. Cleared later, it succeeds if the delivery has arrived, however late. An
    excluded delivery (holiday, or by its owner) skips downstream tasks. `deferrable` waits in the triggerer,
    which then needs access to contract, store and data; otherwise the worker waits. A relative `contract` is
    one of `folder`.

    With `until`, it succeeds when no delivery of the object that was due by that instant is missing or fails
    its checks, as `dq.complete_through` says. It looks at the watcher's decisions only, and fails if there is
    a hole after the deadline of the last of them. While the watcher has decided nothing, it waits until
    Airflow's `timeout`.

    With `python`, the interpreter of an environment that has dq, each look is a process of it; `env` are
    variables in addition to Airflow's. Without them dq runs in the process of the worker and the triggerer,
    whose environment then needs its dependencies.
    """

    template_fields: Sequence[str] = (
        "contract",
        "object_name",
        "partition",
        "due",
        "until",
        "slo",
        "server",
        "folder",
        "env",
    )

    def __init__(
        self,
        *,
        contract: str,
        partition: Mapping[str, str] | None = None,
        due: str | None = None,
        until: str | None = None,
        object_name: str | None = None,
        slo: str | None = None,
        server: str | None = None,
        folder: str | None = None,
        python: str | None = None,
        env: Mapping[str, str] | None = None,
        deferrable: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if [partition, due, until].count(None) != 2:
            raise ValueError("DqDeliverySensor: pass one of partition={…}, due=… and until=…")
        self.contract = contract
        self.partition = dict(partition) if partition is not None else None
        self.due = due
        self.until = until
        self.object_name = object_name
        self.slo = slo
        self.server = server
        self.folder = folder
        self.python = python
        self.env = dict(env or {})
        self.deferrable = deferrable

    def execute(self, context: Any) -> Any:
        """Probe once, and wait if the delivery has not arrived."""
        standing = self._look(context)
        if standing.is_terminal(datetime.now(UTC)):
            return self.resume(context, standing.as_event())
        if not self.deferrable:
            return super().execute(context)
        return self.defer(
            trigger=DeliveryTrigger(
                self._path(),
                standing.object,
                standing.slo,
                standing.due_at.isoformat(),
                standing.decide_at.isoformat(),
                float(self.poke_interval),
                self.server,
                str(Path(self.folder or ".").absolute()),
                self.python,
                self.env,
                self.until,
            ),
            method_name="resume",
            timeout=timedelta(seconds=self.timeout) if self.until else None,
        )

    def poke(self, context: Any) -> bool:
        """True if the delivery has arrived. Raises as `resume` once the deadline has passed."""
        standing = self._look(context)
        if not standing.is_terminal(datetime.now(UTC)):
            return False
        self.resume(context, standing.as_event())
        return True

    def resume(self, context: Any, event: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG002  # Airflow's own
        """Return the event of a delivery that arrived. Raises if it did not."""
        status, reason, complete = CycleStatus(event["status"]), event["reason"], event.get("complete")
        if complete is not None:
            outcome = f"{'' if complete else 'not '}complete until {self.until}"
            self.log.info("%s: %s. %s", self.contract, outcome, reason)
            if complete:
                return event
            raise AirflowFailException(f"{self.contract}: {outcome}. {reason}")
        self.log.info("%s: %s. %s", self.contract, status.value, reason)
        if status.delivered:
            return event
        if status is CycleStatus.EXCUSED:
            raise AirflowSkipException(f"{self.contract}: no delivery expected. {reason}")
        outcome = "unknown whether it was delivered" if status is CycleStatus.UNKNOWN else status.value
        raise AirflowFailException(f"{self.contract}: {outcome}. {reason}")

    def _path(self) -> str:
        return str(Path(self.folder or ".", self.contract).absolute())

    def _look(self, context: Any) -> Standing:
        return Lookup(
            self._path(),
            self.object_name,
            self.partition,
            self.due,
            self.until,
            self.slo,
            self.server,
            context.get("logical_date"),
            self.folder,
            self.python,
            self.env,
        ).look()
