"""Fifty processes publish at once, on both databases: nothing is lost, and nothing is doubled."""

from __future__ import annotations

import json
import textwrap
from collections import Counter
from pathlib import Path

import pytest
from fakes import children
from fakes.flights import flights
from sqlalchemy import select

from dq.dataquality.delivery.tables import receipt
from dq.registry.catalog import CatalogSettings
from dq.registry.catalogs import open_catalog
from dq.registry.plan import apply, propose
from dq.registry.tables import consumer_notice, publication_revision
from dq.store.engine import open_store

PUBLISHERS = 50

# Waits until all are ready, then publishes as the command does.
CHILD = """
    import sys, time
    from datetime import UTC, datetime
    from pathlib import Path
    from fakes.flights import contract, flights
    from dq.operations.publish import RECEIPTS
    from dq.registry.catalog import CatalogSettings
    from dq.registry.catalogs import open_catalog
    from dq.registry.publications import JsonLines
    from dq.registry.publications import build_publication
    from dq.registry.publish import publish
    from dq.registry.publications import send_notices
    from dq.store.engine import open_store

    url, lake, hour, rows = sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    store, made = open_store(url), contract(str(lake))
    one = build_publication(
        made, made.objects[0], flights(str(lake)), server="lake", catalog="local",
        partition={"flight_date": "2026-11-20", "hour": hour}, rows=rows,
    )
    while not (lake / "go").exists():
        time.sleep(0.05)
    file = lake / "events.jsonl"
    catalog, place = open_catalog("local", CatalogSettings(store=store)), f"file:{file}"
    done = publish(
        one, catalog=catalog, store=store, now=datetime.now(UTC), receipts=RECEIPTS, targets=[place]
    )
    clock = lambda: datetime.now(UTC)
    send_notices(store, {place: JsonLines(file)}, clock, event_id=done.event.id)
    store.close()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("hours", "counts", "events"),
    [
        pytest.param([7] * PUBLISHERS, [5] * PUBLISHERS, 1, id="one delivery"),
        pytest.param([7] * PUBLISHERS, range(PUBLISHERS), PUBLISHERS, id="one partition, other rows"),
        pytest.param(range(PUBLISHERS), [5] * PUBLISHERS, PUBLISHERS, id="a partition each"),
    ],
)
def test_nothing_is_lost_or_doubled(
    url: str, tmp_path: Path, hours: list[int], counts: list[int], events: int
) -> None:
    lake = tmp_path / "lake"
    for hour in hours:
        (lake / f"flight_date=2026-11-20/hour={hour}").mkdir(parents=True, exist_ok=True)
    store = open_store(url)
    catalog = open_catalog("local", CatalogSettings(store=store))
    apply(catalog, propose(catalog, [flights(str(lake))], store), store)

    processes = [
        children.start(textwrap.dedent(CHILD), url, lake, hour, rows)
        for hour, rows in zip(hours, counts, strict=True)
    ]
    (lake / "go").touch()
    ended = [process.end() for process in processes]

    assert ended == [(0, "")] * PUBLISHERS
    told = [json.loads(line) for line in (lake / "events.jsonl").read_text().splitlines()]
    with store.read() as tx:
        published = tx.execute(select(publication_revision.c.id, publication_revision.c.revision)).all()
        receipts = tx.execute(select(receipt.c.id)).scalars().all()
        unsent = tx.execute(select(consumer_notice).where(consumer_notice.c.sent_at.is_(None))).all()
    ids = Counter(one["id"] for one in told)
    assert len(ids) == events
    assert set(ids.values()) == {1}
    assert sorted(ids) == sorted(receipts) == sorted(row.id for row in published)
    assert unsent == []
    revisions = sorted(one["data"]["revision"] for one in told)
    same = len(set(hours)) == 1
    assert revisions == (list(range(1, events + 1)) if same else [1] * events)
    assert {one["data"]["rows"] for one in told} == set(counts)
    assert len(catalog.partitions("air_flights", "flights")) == len(set(hours))
    store.close()
