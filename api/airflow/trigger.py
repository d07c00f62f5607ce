"""Trigger that waits for one delivery in Airflow's triggerer, probing as the watcher does."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from dq.airflow.command import (
    AirflowException,
    AirflowFailException,
    Ended,
    child_environment,
    command_line,
    failure,
    options,
    run_to_end,
)
from dq.contracts.incident import CycleStatus
from dq.contracts.outcome import DqError, UsageError

_UNEXPECTED = frozenset({CycleStatus.EXCUSED, CycleStatus.NEVER, CycleStatus.WITHDRAWN})
# dq itself limits each request to a storage; this ends a process that hangs.
_PROCESS_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Standing:
    """Status of a delivery, as `dq cycles show` prints it, in UTC; `delivered_at` may be empty.

    `until` is true if all deliveries up to this one are asked for; `complete` is then whether all are there,
    None if that is not known yet.
    """

    contract: str
    object: str
    slo: str
    due_at: datetime
    decide_at: datetime
    status: CycleStatus
    reason: str
    delivered_at: str
    until: bool
    complete: bool | None

    @classmethod
    def from_dict(cls, document: Mapping[str, Any], *, until: bool) -> Standing:
        """From the JSON values of `dq cycles show`."""
        return cls(
            document["contract"],
            document["object"],
            document["slo"],
            datetime.fromisoformat(document["due_at"]),
            datetime.fromisoformat(document["decide_at"]),
            CycleStatus(document["status"]),
            document["reason"],
            document["delivered_at"] or "",
            until,
            document["complete"],
        )

    def is_terminal(self, now: datetime) -> bool:
        """True if the delivery has arrived, is not expected, or its deadline has passed.

        With `until`: true if all have arrived, or the deadline of the last has passed and there is a hole.
        """
        if self.until:
            return self.complete is not None and (self.complete or now > self.decide_at)
        return self.status.delivered or self.status in _UNEXPECTED or now > self.decide_at

    def as_event(self) -> dict[str, Any]:
        """As the JSON values of a trigger event."""
        return {
            "contract": self.contract,
            "object": self.object,
            "slo": self.slo,
            "due_at": self.due_at.isoformat(),
            "status": self.status.value,
            "reason": self.reason,
            "delivered_at": self.delivered_at,
            "complete": self.complete,
        }


@dataclass(frozen=True, slots=True)
class Lookup:
    """A delivery to look up: of a `partition`, `due` at an instant (ISO 8601), or all due `until` one.

    In a process of `python`, if that or `env` is set; otherwise in this process, which then needs dq's
    dependencies.
    """

    contract: str
    object_name: str | None = None
    partition: Mapping[str, str] | None = None
    due: str | None = None
    until: str | None = None
    slo: str | None = None
    server: str | None = None
    around: datetime | None = None
    folder: str | None = None
    python: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)

    def look(self) -> Standing:
        """Return the status. Raises AirflowFailException for a wrong request, else AirflowException."""
        if not self._is_process:
            return self._look_in_process()
        ended = subprocess.run(
            command_line(self.python, self._words()),
            cwd=self.folder,
            env=child_environment(self.python, self.env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=_PROCESS_SECONDS,
        )
        return self._parse(Ended(ended.returncode, ended.stdout, ended.stderr.splitlines()))

    async def look_later(self) -> Standing:
        """As `look`, without blocking the event loop."""
        if not self._is_process:
            return await asyncio.to_thread(self._look_in_process)
        ended = await run_to_end(
            self._words(), python=self.python, folder=self.folder, env=self.env, seconds=_PROCESS_SECONDS
        )
        return self._parse(ended)

    @property
    def _is_process(self) -> bool:
        return bool(self.python or self.env)

    def _words(self) -> list[str]:
        # Words before `--` begin with the name of their option, so that no value is read as one.
        return [
            *("cycles", "show"),
            *(f"--partition={key}={value}" for key, value in (self.partition or {}).items()),
            *options({
                "due": self.due,
                "until": self.until,
                "around": self.around.isoformat() if self.around else None,
                "object": self.object_name,
                "slo": self.slo,
                "server": self.server,
                "format": "json",
            }),
            *("--", self.contract),
        ]  # fmt: skip

    def _parse(self, ended: Ended) -> Standing:
        if ended.code:
            raise failure(f"dq cycles show {self.contract}", ended)
        return Standing.from_dict(json.loads(ended.printed), until=self.until is not None)

    def _look_in_process(self) -> Standing:
        try:
            from dq.operations.status import cycle
        except ImportError as error:
            raise AirflowFailException(
                f"dq's dependencies are not installed in Airflow's environment: {error}. "
                "Pass python=, the interpreter of an environment that has dq."
            ) from error
        try:
            standing = cycle(
                self.contract,
                self.object_name,
                partition=self.partition,
                due=_instant(self.due),
                until=_instant(self.until),
                slo=self.slo,
                server=self.server,
                around=self.around,
                folder=self.folder,
            )
        except UsageError as error:
            raise AirflowFailException(str(error)) from error
        except DqError as error:
            raise AirflowException(str(error)) from error
        return Standing.from_dict(standing.as_dict(), until=self.until is not None)


def _instant(text: str | None) -> datetime | None:
    """Parse a template's instant, as the command does. Raises UsageError if it is invalid."""
    try:
        return datetime.fromisoformat(text) if text else None
    except ValueError:
        raise UsageError(f"invalid time {text!r}.", "Use e.g. 2026-05-01T06:00:00Z.") from None


class DeliveryTrigger(BaseTrigger):
    """Probes for the delivery that was `due` until it has arrived or `decide_at` has passed.

    With `until`, looks whether all deliveries due by that instant have arrived, until it is decided.

    All state is in the arguments, texts and numbers, so that it survives a restart of the triggerer.
    `contract` is a path that the triggerer can read, `folder` its working folder for dq, `python` the
    interpreter of dq's environment there, None for the triggerer's own. Read errors are retried until the
    deadline.
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
        python: str | None = None,
        env: Mapping[str, str] | None = None,
        until: str | None = None,
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
        self.python = python
        self.env = dict(env or {})
        self.until = until

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
            "python": self.python,
            "env": self.env,
            "until": self.until,
        }

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yield one event when waiting is over."""
        deadline = datetime.fromisoformat(self.decide_at)
        lookup = Lookup(
            self.contract,
            self.object_name,
            due=None if self.until else self.due,
            until=self.until,
            slo=self.slo if not self.until else None,
            server=self.server,
            folder=self.folder,
            python=self.python,
            env=self.env,
        )
        while True:
            now = datetime.now(UTC)
            try:
                standing = await lookup.look_later()
                if standing.is_terminal(now):
                    yield TriggerEvent(standing.as_event())
                    return
            except AirflowException as error:
                if now > deadline:
                    yield TriggerEvent({"status": CycleStatus.UNKNOWN.value, "reason": str(error)})
                    return
            remaining_seconds = (deadline - datetime.now(UTC)).total_seconds()
            near = 0.1 if remaining_seconds <= 0 else min(self.poke_seconds, remaining_seconds + 0.1)
            await asyncio.sleep(self.poke_seconds if self.until else near)
