"""A watcher of one contract on a store, in this process; what it told stands in lists."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType

from dq.contracts import slo as promise
from dq.contracts.incident import Breach, CycleStatus, Recovery
from dq.contracts.slo import Slo
from dq.contracts.yaml.parse import parse
from dq.dataquality.delivery import cycle_store
from dq.dataquality.delivery.cycle import DeliveryPlace, WatchTarget
from dq.dataquality.delivery.notify import PLATFORM
from dq.dataquality.delivery.probe_pool import ProbePool
from dq.dataquality.delivery.tick import tick
from dq.lake.storage import LocalFiles
from dq.store.engine import Store

CONTRACT = """
apiVersion: v3.2.0
kind: DataContract
id: orders
version: 1.0.0
schema:
  - name: orders
    properties:
      - {name: day, logicalType: date, partitioned: true, partitionKeyPosition: 1}
slaProperties:
  - id: daily
    property: frequency
    value: 1
    unit: d
    element: orders
    schedule: "0 6 * * *"
    customProperties:
      - property: delivery
        vendor: dq
        value: {timezone: Europe/Berlin, grace: 30m, objective: 50%, window: 30d, __MORE__}
"""


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


class TableWatcher:
    """A watched contract; `told` is what the alerts room heard, in order."""

    def __init__(
        self,
        store: Store,
        root: Path,
        more: str,
        format: str = "parquet",
        terms: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        text = CONTRACT.replace("__MORE__", more)
        for old, new in terms.items():
            assert old in text, old
            text = text.replace(old, new)
        parsed = parse(text.encode(), "orders.odcs.yaml")
        assert parsed.contract is not None
        slos, findings = promise.read_slos(parsed.contract)
        assert findings == []
        self.store = store
        self.watched = [WatchTarget(slos[0], DeliveryPlace(str(root), format, "_SUCCESS"), LocalFiles())]
        self.told: list[Breach | Recovery] = []
        self.platform: list[Breach | Recovery] = []
        self.lookout = ProbePool()
        self.looked_at: datetime | None = None

    @property
    def slo(self) -> Slo:
        return self.watched[0].slo

    def tick(self, when: str, since: str | None = None) -> list[CycleStatus]:
        """The statuses of all cycles, oldest first, after a tick at an instant."""
        tick(
            self.store,
            self.watched,
            at(when),
            lambda _, event: (self.platform if event.key.contract == PLATFORM else self.told).append(event),
            since=at(since) if since else None,
            probe_pool=self.lookout,
            last_tick_at=self.looked_at,
        )
        self.looked_at = at(when)
        with self.store.read() as tx:
            return [kept.status for kept in cycle_store.all_cycles(tx, ("orders", "orders", "daily"))]
