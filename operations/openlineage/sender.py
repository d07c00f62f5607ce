"""Names of datasets, and the thread that sends events; neither imports OpenLineage's packages.

The place of the files is the name, as the integration of Spark has it; where a catalog knows the table too,
that name is a symlink. Source: https://openlineage.io/docs/spec/naming.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from dq.contracts.access.access_policy import parse as parse_address
from dq.contracts.access.data_location import DataPlace
from dq.contracts.model import SchemaObject, Server
from dq.contracts.shared.outcome import TextFault

# Clusters name themselves by host and port; these are the ports of the field.
_HIVE_PORT = "10000"
_REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")


class DatasetName(NamedTuple):
    """The two parts of a dataset's identity."""

    namespace: str
    name: str


def names(
    place: DataPlace, server: Server, one: SchemaObject, environment: Mapping[str, str]
) -> list[DatasetName]:
    """What the dataset is called, and behind it the other names that it goes by; none where nobody knows.

    A server of Glue without an account, or on a machine that names no region, gives the place of the files
    alone.
    """
    made = [of_files(place.path)] if place.path else []
    made.append(_of_table(place, server, one.column, environment))
    return [name for name in made if name is not None]


def of_files(path: str) -> DatasetName | None:
    """What a folder of files is called; None for what is no address."""
    address = parse_address(path)
    if isinstance(address, TextFault):
        return None
    below = "/".join(address.segments)
    if not address.scheme:
        return DatasetName("file", os.path.abspath(str(address)))  # noqa: PTH100  no link is followed
    # Object stores have keys, machines have paths.
    hosted = address.scheme in ("hdfs", "webhdfs", "swebhdfs", "abfs", "abfss", "wasb", "wasbs")
    return DatasetName(f"{address.scheme}://{address.host}", f"/{below}" if hosted else below or "/")


def _of_table(
    place: DataPlace, server: Server, table: str, environment: Mapping[str, str]
) -> DatasetName | None:
    if place.type == "glue":
        region = next((environment[name] for name in _REGIONS if environment.get(name)), None)
        account = server.get("account")
        if not region or not account:
            return None
        return DatasetName(f"arn:aws:glue:{region}:{account}", f"table/{place.database}/{table}")
    if place.type == "hive":
        host, port = server.get("host") or "", server.get("port") or _HIVE_PORT
        return DatasetName(f"hive://{host}:{port}", f"{place.database}.{table}")
    if place.type == "iceberg":
        catalog = (server.get("catalogUrl") or "").rstrip("/")
        parts = [server.get("namespace") or place.database, table]
        return DatasetName(catalog, ".".join(part for part in parts if part)) if catalog else None
    return None


# Sends events beside the work: a thread of its own, which is waited for at the end, and not for long.
#
# Whoever takes the events may be down, slow or hostile: that costs one line on stderr, and changes nothing.

# What waits beyond this is thrown away: a backend that is slow for hours must not fill the memory.
_MOST_WAITING = 10_000


class EventSender:
    """Events in the order in which they were given. `emit` hands one over, and raises whatever it likes."""

    def __init__(self, emit: Callable[[Any], object]) -> None:
        self._emit = emit
        self._waiting: queue.Queue[Any] = queue.Queue(_MOST_WAITING)
        self._given = self._sent = 0
        self._reason = ""
        self._lock = threading.Lock()
        self._idle = threading.Event()
        self._idle.set()
        self._thread: threading.Thread | None = None

    def send(self, event: Any) -> None:
        """Takes the event, and never waits."""
        with self._lock:
            self._given += 1
            try:
                self._waiting.put_nowait(event)
            except queue.Full:
                return
            self._idle.clear()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="lineage", daemon=True)
                self._thread.start()

    def close(self, seconds: float) -> str | None:
        """Waits at most so long for what is left, and tells what was not sent and why; None: all was."""
        begun = time.monotonic()
        over = not self._idle.wait(seconds)
        with self._lock:
            missing = self._given - self._sent
            if not missing:
                return None
            waited = f"no answer within {time.monotonic() - begun:.0f} s"
            return f"{missing} of {self._given} events were not sent: {waited if over else self._reason}"

    def _run(self) -> None:
        while True:
            event = self._waiting.get()
            reason = self._try(event)
            with self._lock:
                if reason is None:
                    self._sent += 1
                else:
                    self._reason = reason
                if self._waiting.empty():
                    self._idle.set()

    def _try(self, event: Any) -> str | None:
        try:
            self._emit(event)
        # The one guard around code that is not ours: no error of it may become one of the check. Its words
        # may quote the address, and a key in it.
        except Exception as error:  # noqa: BLE001
            status = getattr(getattr(error, "response", None), "status_code", None)
            return f"HTTP {status}" if status else _said(error)
        return None


def _said(error: Exception) -> str:
    reason = getattr(error, "strerror", None)
    return f"{type(error).__name__}: {reason}" if reason else type(error).__name__
