"""Publishing: the order, the idempotence, and a kill at every point."""

from __future__ import annotations

import json
import textwrap
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from fakes import children
from fakes.flights import contract, flights
from fakes.s3 import FakeS3
from sqlalchemy import Connection, text

from dq.contracts.check_result import GroupCounts
from dq.contracts.outcome import DqError, UsageError
from dq.registry import publications
from dq.registry.catalog import Catalog, CatalogSettings
from dq.registry.catalogs import open_catalog
from dq.registry.publications import (
    LEASE,
    ConsumerNotice,
    DeliveryEvent,
    JsonLines,
    Publication,
    build_publication,
    cloud_event,
    send_notices,
    unsent_targets,
)
from dq.registry.publish import Published, ReceiptStore, publish, require_folder, write_marker
from dq.store.engine import Store

NOW = datetime(2026, 11, 20, 6, 5, tzinfo=UTC)
CYCLE = datetime(2026, 11, 20, 6, 0, tzinfo=UTC)
PARTITION = {"flight_date": "2026-11-20", "hour": "07"}
FOLDER = "flight_date=2026-11-20/hour=7"


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    (tmp_path / "lake" / FOLDER).mkdir(parents=True)
    return tmp_path / "lake"


@pytest.fixture
def catalog(store: Store, lake: Path) -> Catalog:
    from dq.registry.plan import apply, propose

    made = open_catalog("local", CatalogSettings(store=store))
    apply(made, propose(made, [flights(str(lake))], store), store)
    with store.write() as connection:
        connection.execute(text("CREATE TABLE receipts (event_id TEXT NOT NULL)"))
    return made


def _knows(connection: Connection, id: str) -> bool:
    found = connection.execute(text("SELECT 1 FROM receipts WHERE event_id = :id"), {"id": id})
    return found.first() is not None


def _write(connection: Connection, event: DeliveryEvent) -> None:
    connection.execute(text("INSERT INTO receipts VALUES (:id)"), {"id": event.id})


def _groups(connection: Connection, id: str) -> GroupCounts:
    assert _knows(connection, id)
    return ()


def _count(connection: Connection, id: str, rows: int, rows_by: GroupCounts) -> None:
    assert _knows(connection, id)
    assert rows_by == ()


RECEIPTS = ReceiptStore(_knows, _write, _groups, _count)


def delivery(lake: Path, rows: int | None = 7, server: str = "lake", **partition: str) -> Publication:
    made = contract(str(lake))
    return build_publication(
        made,
        made.objects[0],
        flights(str(lake)),
        server=server,
        environment="prod",
        catalog="local",
        partition=PARTITION | partition,
        cycle=CYCLE,
        rows=rows,
    )


def run(
    one: Publication,
    catalog: Catalog,
    store: Store,
    lake: Path,
    now: datetime = NOW,
    **how: Any,
) -> Published:
    file = lake.parent / "events.jsonl"
    place = f"file:{file}"
    done = publish(one, catalog=catalog, store=store, now=now, receipts=RECEIPTS, targets=[place], **how)
    # A short lease: who follows a killed one waits for it.
    notifiers = {place: JsonLines(file)}
    send_notices(
        store, notifiers, lambda: datetime.now(UTC), event_id=done.event.id, lease=timedelta(seconds=1)
    )
    return done


def told(lake: Path) -> list[dict[str, Any]]:
    file = lake.parent / "events.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def effects(catalog: Catalog, store: Store, lake: Path) -> tuple[int, bool, int, int]:
    """Partitions, whether the marker is there, receipts, lines told."""
    with store.read() as connection:
        receipts = connection.execute(text("SELECT count(*) FROM receipts")).scalar_one()
    marker = lake / FOLDER / "_SUCCESS"
    return (
        len(catalog.partitions("air_flights", "flights")),
        marker.exists() and marker.stat().st_size == 0,
        receipts,
        len(told(lake)),
    )


def test_a_delivery_is_published_in_order(catalog: Catalog, store: Store, lake: Path) -> None:
    published = run(delivery(lake), catalog, store, lake)

    assert published.steps == ("partition", "marker", "receipt", "notify")
    assert effects(catalog, store, lake) == (1, True, 1, 1)
    assert told(lake) == [
        {
            "specversion": "1.0",
            "id": published.event.id,
            "source": "urn:dq:contract:air-flights:1",
            "type": "dq.delivery.delivered",
            "time": "2026-11-20T06:05:00.000000Z",
            "subject": f"Flights/{FOLDER}",
            "datacontenttype": "application/json",
            "data": {
                "event": "delivered",
                "contract": "air-flights",
                "domain": "air",
                "major_version": "1",
                "environment": "prod",
                "contract_version": "1.0.0",
                "object": "Flights",
                "server": "lake",
                "catalog": "local",
                "table": "air_flights.flights",
                "partition": {"flight_date": "2026-11-20", "hour": "7"},
                "location": f"{lake}/{FOLDER}",
                "cycle": "2026-11-20T06:00:00+00:00",
                "rows": 7,
                "revision": 1,
                "previous_rows": None,
            },
        }
    ]


def test_publishing_twice_does_nothing_and_gives_the_same_event(
    catalog: Catalog, store: Store, lake: Path
) -> None:
    first = run(delivery(lake), catalog, store, lake)

    second = run(delivery(lake), catalog, store, lake, now=datetime(2026, 11, 21, tzinfo=UTC))

    assert second.steps == ()
    assert second.event == first.event
    assert effects(catalog, store, lake) == (1, True, 1, 1)


def test_the_event_is_the_same_on_every_machine_and_another_for_another_partition(lake: Path) -> None:
    ids = {
        delivery(lake, hour="7").delivery,
        delivery(lake, hour="07").delivery,
        delivery(lake, hour="8").delivery,
    }

    assert len(ids) == 2


def test_nothing_is_registered_for_a_folder_that_is_not_there(
    catalog: Catalog, store: Store, lake: Path
) -> None:
    with pytest.raises(DqError, match=r"Nothing was delivered: .*hour=8 does not exist\."):
        run(delivery(lake, hour="8"), catalog, store, lake)

    assert effects(catalog, store, lake) == (0, False, 0, 0)


def test_an_empty_delivery_makes_its_folder(catalog: Catalog, store: Store, lake: Path) -> None:
    run(delivery(lake, rows=0, hour="8"), catalog, store, lake)

    assert (lake / "flight_date=2026-11-20/hour=8/_SUCCESS").exists()


def test_a_table_that_is_not_registered_is_refused(store: Store, lake: Path) -> None:
    with pytest.raises(DqError, match=r"no table air_flights\.flights\. Register it"):
        run(delivery(lake), open_catalog("local", CatalogSettings(store=store)), store, lake)


def test_an_open_table_has_neither_partition_nor_marker_to_write(
    catalog: Catalog, store: Store, lake: Path
) -> None:
    made = contract(str(lake), format="iceberg")
    spec = flights(str(lake), format="iceberg")
    one = build_publication(made, made.objects[0], spec, server="lake", catalog="local", partition=PARTITION)

    assert run(one, catalog, store, lake).steps == ("receipt", "notify")
    assert effects(catalog, store, lake) == (0, False, 1, 1)


def test_what_a_place_does_not_take_waits_and_the_delivery_stays_published(
    catalog: Catalog, store: Store, lake: Path
) -> None:
    blocked = lake.parent / "events.jsonl"
    blocked.mkdir()
    first = run(delivery(lake), catalog, store, lake)
    with store.read() as tx:
        ((place, problem),) = unsent_targets(tx, first.event.id)
    blocked.rmdir()

    again = run(delivery(lake), catalog, store, lake)

    assert first.steps == ("partition", "marker", "receipt", "notify")
    assert place == f"file:{blocked}"
    assert "Consumers could not be notified" in problem
    assert again.steps == ()
    assert effects(catalog, store, lake) == (1, True, 1, 1)


@pytest.mark.parametrize(
    ("partition", "message"),
    [
        pytest.param({"flight_date": "2026-11-20"}, "has the partition keys flight_date, hour", id="missing"),
        pytest.param(PARTITION | {"x": "1"}, "not flight_date, hour, x", id="unknown"),
        pytest.param(
            PARTITION | {"flight_date": "20.11.2026"},
            "has type date, but the value is '20.11.2026'",
            id="no date",
        ),
        pytest.param(PARTITION | {"hour": "seven"}, "has type int, but the value is 'seven'", id="no number"),
    ],
)
def test_a_partition_must_fit_the_keys(lake: Path, partition: dict[str, str], message: str) -> None:
    made = contract(str(lake))

    with pytest.raises(UsageError, match=message):
        build_publication(
            made,
            made.objects[0],
            flights(str(lake)),
            server="lake",
            catalog="local",
            partition=partition,
        )


def test_a_marker_is_an_empty_object_in_a_bucket(monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeS3({"lake/air/hour=7/part.parquet": b"x"}) as s3:
        for name, value in s3.environment.items():
            monkeypatch.setenv(name, value)

        require_folder("s3a://lake/air/hour=7")
        written = write_marker("s3a://lake/air/hour=7", "_SUCCESS")
        again = write_marker("s3://lake/air/hour=7", "_SUCCESS")
        with pytest.raises(DqError, match="Nothing was delivered: s3://lake/air/hour=8 does not exist"):
            require_folder("s3://lake/air/hour=8")
        require_folder("s3://lake/air/hour=8", make=True)

    assert (written, again) == (True, False)
    assert s3.objects == {"lake/air/hour=7/part.parquet": b"x", "lake/air/hour=7/_SUCCESS": b""}


def test_a_place_that_nobody_knows_is_said_in_one_sentence() -> None:
    with pytest.raises(DqError, match="nowhere://x/_SUCCESS cannot be read: Unrecognized filesystem"):
        write_marker("nowhere://x", "_SUCCESS")


def test_half_a_line_of_a_killed_writer_is_cut_away(lake: Path) -> None:
    file = lake / "events.jsonl"
    file.write_bytes(b'{"event_id": "other"}\n{"event_id": "ha')
    body = json.dumps(cloud_event(DeliveryEvent("mine", delivery(lake), NOW)), separators=(",", ":"))
    notice = ConsumerNotice("mine", f"file:{file}", body, ())

    JsonLines(file)(notice)
    JsonLines(file)(notice)

    assert [json.loads(line).get("id") for line in file.read_text().splitlines()] == [None, "mine"]


# Runs one publish and dies, as by kill -9, just before or just after the n-th commit. Between two commits
# lies exactly one effect, so that these points are all the places between two steps.
CHILD = """
    import os, sys
    from pathlib import Path
    from sqlalchemy import event
    sys.path.insert(0, sys.argv[5])
    from test_publish import delivery, run
    from dq.registry.catalog import CatalogSettings
    from dq.registry.catalogs import open_catalog
    from dq.store.engine import open_store

    state, folder, when, count = sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    store = open_store(state)
    commits = 0

    def die(connection):
        global commits
        if connection.get_execution_options().get("dq_write"):
            commits += 1
            if commits == count:
                if when == "after":
                    connection.connection.dbapi_connection.execute("COMMIT")
                os.kill(os.getpid(), 9)

    event.listen(store.engine, "commit", die)
    run(delivery(folder), open_catalog("local", CatalogSettings(store=store)), store, folder)
"""
COMMITS = 5  # begun; partition in the catalog; receipt with journal and notice; taken; sent


def child(store: Store, lake: Path, when: str, count: int) -> children.Child:
    url = f"sqlite:///{store.engine.url.database}"
    return children.start(textwrap.dedent(CHILD), url, lake, when, count, Path(__file__).parent)


def test_who_took_a_notice_by_a_clock_that_is_ahead_keeps_nobody_waiting(
    catalog: Catalog, store: Store, lake: Path
) -> None:
    blocked = lake.parent / "events.jsonl"
    blocked.mkdir()
    event = run(delivery(lake), catalog, store, lake).event
    blocked.rmdir()
    with store.read() as tx:
        number = tx.execute(text("SELECT number FROM consumer_notice")).scalar_one()
    # Killed before it was sent.
    ahead = datetime.now(UTC) + timedelta(days=365)
    assert publications.lease_notice(store, number, ahead, LEASE) is not None

    def waits(_: float) -> None:
        raise AssertionError("it waits for who is dead")

    sent = send_notices(
        store,
        {f"file:{blocked}": JsonLines(blocked)},
        lambda: datetime.now(UTC),
        event_id=event.id,
        pause=waits,
    )

    assert sent == 1
    assert effects(catalog, store, lake) == (1, True, 1, 1)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("count", range(1, COMMITS + 1))
def test_a_kill_at_any_point_ends_in_exactly_one_of_each(
    catalog: Catalog, store: Store, lake: Path, when: str, count: int
) -> None:
    killed = child(store, lake, when, count).end()

    retried = child(store, lake, when, 0).end()

    assert (killed, retried) == ((-9, ""), (0, ""))
    assert effects(catalog, store, lake) == (1, True, 1, 1)
    assert told(lake)[0]["data"]["revision"] == 1


def test_there_are_as_many_commits_as_are_killed(catalog: Catalog, store: Store, lake: Path) -> None:
    assert child(store, lake, "before", COMMITS + 1).end() == (0, "")


def test_two_processes_at_once_publish_once(catalog: Catalog, store: Store, lake: Path) -> None:
    both = [child(store, lake, "before", 0) for _ in range(2)]

    assert [process.end() for process in both] == [(0, "")] * 2
    assert effects(catalog, store, lake) == (1, True, 1, 1)
