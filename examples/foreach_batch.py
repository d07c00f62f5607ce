"""A stream whose batches are tested as they arrive: good rows go on, bad ones are set apart.

`publish(stream, "orders.odcs.yaml", good, bad, state)` starts it. A batch that cannot be checked stops the
stream, and is read again after a restart, because its good rows are unknown.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import dq

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery


def publish(stream: DataFrame, contract: str | Path, good: str, bad: str, state: str) -> StreamingQuery:
    """Writes what is read until now as Parquet: rows that keep the contract to `good`, the others to `bad`.

    Each batch has a folder of its own, so that one that is run again takes its own place.
    """

    def test(batch: DataFrame, number: int) -> None:
        # The batch is read several times.
        rows = batch.persist()
        try:
            gated = dq.gate(rows, contract, now=datetime.now(UTC))
            # A missing column makes all rows bad, so stop instead of writing a good part.
            gated.raise_for_status()
            gated.good.write.mode("overwrite").parquet(f"{good}/batch={number}")
            if gated.report.failed:
                gated.bad.write.mode("overwrite").parquet(f"{bad}/batch={number}")
        finally:
            rows.unpersist()

    writer = stream.writeStream.foreachBatch(test).option("checkpointLocation", state)
    return writer.trigger(availableNow=True).start()
