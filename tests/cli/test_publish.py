"""`dq publish` on a real lake: what it looks at, what it mends, and what consumers hear."""

from __future__ import annotations

import fcntl
import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import insert, text

from dq import load
from dq.dataquality.delivery.tables import receipt
from dq.operations.publish import CatalogChoice, PublishRequest
from dq.operations.publish import deliver as deliver_staged
from dq.operations.runtime.context import runtime_context
from dq.registry.tables import publication_revision
from dq.store.engine import open_store

PARTITION = ("--partition", "day=2026-05-10")
DAY = "day=2026-05-10"


@pytest.fixture
def deliver(folder):
    """Lays the data of the day below a folder."""

    def laid(lake="lake", name=DAY):
        place = folder / lake / name
        place.mkdir(parents=True, exist_ok=True)
        (place / "part-0.parquet").write_bytes(b"PAR1")
        return place

    return laid


@pytest.fixture
def publish(dq, deliver):
    """Publishes the day of a table that is registered, with more options."""
    assert dq("register", "--apply").code == 0
    deliver()
    return lambda *options: dq("publish", "orders.odcs.yaml", *PARTITION, *options)


@pytest.fixture
def heard(folder):
    """What consumers read in the file."""

    def read():
        lines = (folder / ".dq" / "published.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]

    return read


@pytest.fixture
def sql(folder):
    """Runs a statement on the store behind dq's back."""

    def run(statement):
        store = open_store(f"sqlite:///{folder}/.dq/store.db")
        with store.write() as tx:
            done = tx.execute(text(statement))
            found = done.all() if done.returns_rows else []
        store.close()
        return found

    return run


def edit(folder, old, new):
    file = folder / "orders.odcs.yaml"
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))


# What somebody does to a published delivery, and what the next publish says of it.
@pytest.mark.parametrize(
    ("damage", "step", "sentence"),
    [
        pytest.param(
            "DELETE FROM catalog_partition", "partition", "the partition was not in the catalog", id="dropped"
        ),
        pytest.param(
            "UPDATE catalog_partition SET location = 'lake/other'",
            "partition",
            "the catalog had the partition at lake/other",
            id="moved",
        ),
        pytest.param("DELETE FROM receipt", "receipt", "the receipt was not in the store", id="receipt"),
        pytest.param("", "marker", "_SUCCESS was not there", id="marker"),
    ],
)
def test_what_is_not_there_any_more_is_put_back_and_nobody_hears_of_it(
    publish, heard, sql, folder, damage, step, sentence
):
    publish("--rows", "10")
    state = "SELECT location FROM catalog_partition"
    before = sql(state), sql("SELECT * FROM receipt")
    if damage:
        sql(damage)
    else:
        (folder / "lake" / DAY / "_SUCCESS").unlink()

    mended, again = publish("--rows", "10"), publish("--rows", "10")

    assert mended.out == f"orders {DAY}: {step}.\n  fixed: {sentence}.\n"
    assert again.out == f"orders {DAY}: nothing to do, published before.\n"
    assert (folder / "lake" / DAY / "_SUCCESS").exists()
    assert (sql(state), sql("SELECT * FROM receipt")) == before
    assert len(heard()) == 1


def test_a_table_that_was_removed_is_asked_for_and_then_filled_again(publish, heard, sql, dq):
    publish()
    sql("DELETE FROM catalog_table")

    refused = publish()
    dq("register", "--apply")
    mended = publish()

    assert refused.code == 3
    assert "The catalog has no table" in refused.err
    assert "fixed: the partition was not in the catalog" in mended.out
    assert len(heard()) == 1


def test_a_table_that_moved_takes_its_partition_along(publish, heard, sql, dq, folder, deliver):
    publish()
    edit(folder, "path: lake", "path: moved")
    deliver("moved")

    refused = publish()
    dq("register", "--apply", "--allow-breaking", "--allow-destructive")
    mended = publish()

    assert refused.code == 3
    assert "has orders.orders at lake, but the contract's server 'lake' at moved" in refused.err
    assert "dq register --apply" in refused.err
    assert f"fixed: the catalog had the partition at lake/{DAY}" in mended.out
    assert "fixed: _SUCCESS was not there" in mended.out
    assert sql("SELECT location FROM catalog_partition") == [(f"moved/{DAY}",)]
    assert len(heard()) == 1


def test_other_partition_keys_are_asked_to_be_registered_first(publish, dq, folder, deliver, heard):
    publish()
    edit(
        folder,
        "      - {name: id,",
        "      - {name: hour, logicalType: integer, physicalType: int, partitioned: true, "
        "partitionKeyPosition: 2}\n      - {name: id,",
    )
    deliver(name=f"{DAY}/hour=7")
    finer = ("publish", "orders.odcs.yaml", *PARTITION, "--partition", "hour=7")

    refused = dq(*finer)
    dq("register", "--apply", "--allow-breaking", "--allow-destructive")
    done = dq(*finer)

    assert refused.code == 3
    assert "in the catalog are day; the contract has others. Register" in refused.err.replace("\n    ", " ")
    assert done.out == f"orders {DAY}/hour=7: partition, marker, receipt, notify.\n"
    assert [one["data"]["partition"] for one in heard()] == [
        {"day": "2026-05-10"},
        {"day": "2026-05-10", "hour": "7"},
    ]


def test_the_same_delivery_on_another_server_is_another_delivery(publish, dq, folder, deliver, heard):
    publish()
    edit(
        folder,
        "  - {server: lake, type: local, path: lake, format: parquet}",
        "  - {server: lake, type: local, path: lake, format: parquet}\n"
        "  - {server: trial, type: custom, path: trial, format: parquet, database: trial}",
    )
    deliver("trial")
    dq("register", "--apply", "--server", "trial")

    other, same = publish("--server", "trial"), publish("--server", "lake")

    assert other.out == f"orders {DAY}: partition, marker, receipt, notify.\n"
    assert "nothing to do, published before" in same.out
    assert [one["data"]["server"] for one in heard()] == ["lake", "trial"]
    assert len({one["id"] for one in heard()}) == 2


def test_data_of_another_server_is_never_put_into_the_table_of_this_one(publish, dq, folder, deliver):
    edit(
        folder,
        "  - {server: lake, type: local, path: lake, format: parquet}",
        "  - {server: lake, type: local, path: lake, format: parquet}\n"
        "  - {server: trial, type: local, path: trial, format: parquet}",
    )
    place = deliver("trial")

    refused = publish("--server", "trial")

    assert refused.code == 3
    assert "orders.orders is the table of the server 'lake', at lake; 'trial' has it at trial" in refused.err
    assert "pass --server lake" in refused.err
    # It would make the other server's table this one's.
    assert "register" not in refused.err
    assert not (place / "_SUCCESS").exists()


def test_twenty_redeliveries_are_twenty_revisions_that_are_heard(publish, heard, sql):
    publish("--rows", "0", "--as-of", "2026-05-11T00:30:00Z")

    for rows in range(1, 21):
        again = publish("--rows", str(rows), "--as-of", f"2026-05-11T{rows:02}:30:00Z")
        same = publish("--rows", str(rows))
        before = "1 row" if rows == 2 else f"{rows - 1} rows"
        assert again.out == f"orders {DAY}, revision {rows + 1} ({before}, now {rows}): receipt, notify.\n"
        assert same.out.endswith("nothing to do, published before.\n")

    told = heard()
    assert [one["data"]["revision"] for one in told] == list(range(1, 22))
    assert [one["data"]["previous_rows"] for one in told] == [None, *range(20)]
    assert [one["type"] for one in told] == ["dq.delivery.delivered"] + ["dq.delivery.redelivered"] * 20
    assert len({one["id"] for one in told}) == 21
    assert sql("SELECT max(revision), count(*) FROM receipt") == [(21, 21)]


def test_a_redelivery_makes_nothing_late_and_the_watcher_knows_its_rows(publish, dq):
    dq("watch", "--as-of", "2026-05-10T12:00:00Z")
    publish("--rows", "10", "--as-of", "2026-05-11T05:00:00Z")
    publish("--rows", "12", "--as-of", "2026-05-11T06:31:00Z")

    found = dq("watch", "--as-of", "2026-05-11T06:35:00Z", "--format", "json").json
    shown = dq("status", "--format", "json", "--as-of", "2026-05-11T06:35:00Z").out

    assert [change["after"] for change in found["changes"]] == ["on_time"]
    assert '"rows": 12' in shown


def test_a_redelivery_without_rows_is_asked_for_and_counts_once_for_each_run(publish, heard):
    publish()

    done = [publish("--redelivery", "--run", run).out for run in ("night-1", "night-1", "night-2")]
    free = [publish("--redelivery").out for _ in range(2)]

    assert [line.partition(": ")[0] for line in (*done, *free)] == [
        f"orders {DAY}, revision {number}" for number in (2, 2, 3, 4, 5)
    ]
    assert "nothing to do, published before" in done[1]
    assert [one["data"]["revision"] for one in heard()] == [1, 2, 3, 4, 5]


def test_the_number_of_rows_that_a_redelivery_lacks_is_added_without_another_revision(publish, heard, sql):
    publish("--rows", "912")
    publish("--redelivery")
    publish("--redelivery")

    counted = publish("--rows", "912")
    same = publish("--rows", "912")
    other = publish("--rows", "900")

    assert counted.out.startswith(f"orders {DAY}, revision 3 (912 rows, as before): receipt.\n")
    assert "the receipt had no number of rows" in counted.out
    assert "nothing to do, published before" in same.out
    assert "revision 4 (912 rows, now 900)" in other.out
    assert [one["data"]["revision"] for one in heard()] == [1, 2, 3, 4]
    assert sql("SELECT revision, rows FROM receipt ORDER BY revision") == [
        (1, 912), (2, None), (3, 912), (4, 900),
    ]  # fmt: skip


def test_a_marker_that_is_there_is_left_alone_by_a_redelivery(publish, folder):
    publish("--rows", "1")
    marker = folder / "lake" / DAY / "_SUCCESS"
    os.utime(marker, (1_000_000_000, 1_000_000_000))

    publish("--rows", "2")

    assert marker.stat().st_mtime == 1_000_000_000


def test_what_was_tried_before_the_data_was_there_does_not_make_the_delivery_earlier(publish, heard, dq):
    missing = ("publish", "orders.odcs.yaml", "--partition", "day=2026-05-11", "--as-of")
    assert dq(*missing, "2026-05-12T05:00:00Z").code == 3
    # The data comes an hour after the first try.
    assert dq(*missing, "2026-05-12T08:00:00Z", "--rows", "0").code == 0

    assert [one["time"] for one in heard()] == ["2026-05-12T08:00:00.000000Z"]


@pytest.mark.parametrize("rows", ["3000000000", str(2**63 - 1)])
def test_very_many_rows_are_a_number_like_any(publish, heard, rows):
    assert publish("--rows", rows).code == 0
    assert heard()[0]["data"]["rows"] == int(rows)


def test_more_rows_than_any_store_counts_are_refused(publish):
    refused = publish("--rows", str(2**63))

    assert refused.code == 2
    assert "cannot have" in refused.err


# As dq wrote it before servers, catalogs and revisions were told apart.
OLD_ID = "0e14fb3e-2591-5f26-9c95-77c247a051f3"


@pytest.fixture
def old_store(folder):
    """A store in which an older dq published the day with 10 rows."""
    at = datetime(2026, 5, 11, 5, tzinfo=UTC)
    (folder / ".dq").mkdir(mode=0o700)
    store = open_store(f"sqlite:///{folder}/.dq/store.db")
    with store.write() as tx:
        tx.execute(
            insert(publication_revision).values(
                id=OLD_ID, delivery=OLD_ID, revision=1, rows=10, run="", begun_at=at, published_at=at
            )
        )
        tx.execute(
            insert(receipt).values(
                id=OLD_ID, contract="orders", object="orders", partition=DAY, delivered_at=at, rows=10,
                contract_version="1.0.0",
            )
        )  # fmt: skip
    store.close()


def test_what_an_older_dq_published_is_known_and_nobody_hears_old_news(old_store, dq, deliver, folder):
    place = deliver()
    (place / "_SUCCESS").touch()
    dq("register", "--apply")
    publish = ("publish", "orders.odcs.yaml", *PARTITION)

    mended, same = dq(*publish, "--rows", "10"), dq(*publish, "--rows", "10", "--format", "json")
    told = (folder / ".dq" / "published.jsonl").exists()
    again = dq(*publish, "--rows", "11", "--format", "json")

    assert mended.out == (f"orders {DAY}: partition.\n  fixed: the partition was not in the catalog.\n")
    assert (same.json["event_id"], same.json["at"]) == (OLD_ID, "2026-05-11T05:00:00+00:00")
    assert not told
    assert (again.json["revision"], again.json["previous_rows"]) == (2, 10)


def test_what_an_older_dq_published_on_one_server_is_no_news_of_another(old_store, dq, deliver, folder):
    edit(
        folder,
        "  - {server: lake, type: local, path: lake, format: parquet}",
        "  - {server: lake, type: local, path: lake, format: parquet}\n"
        "  - {server: trial, type: custom, path: trial, format: parquet, database: trial}",
    )
    (deliver() / "_SUCCESS").touch()
    deliver("trial")
    publish = ("publish", "orders.odcs.yaml", *PARTITION, "--format", "json", "--server")
    for server in ("lake", "trial"):
        dq("register", "--apply", "--server", server)

    trial, lake = dq(*publish, "trial").json, dq(*publish, "lake").json

    assert trial["done"] == ["partition", "marker", "receipt", "notify"]
    assert trial["event_id"] != OLD_ID
    assert (lake["done"], lake["event_id"]) == (["partition"], OLD_ID)


def test_what_consumers_could_not_be_told_waits_for_the_next_publish_or_for_pending(
    publish, heard, dq, deliver, folder
):
    file = folder / ".dq" / "published.jsonl"
    file.mkdir(parents=True)
    deliver(name="day=2026-05-11")

    late = publish("--rows", "3", "--as-of", "2026-05-11T05:00:00Z")
    waiting = dq("publish", "--pending", "--format", "json")
    file.rmdir()
    next_day = dq("publish", "orders.odcs.yaml", "--partition", "day=2026-05-11")
    publish("--redelivery")
    done = dq("publish", "--pending")

    assert (late.code, waiting.code, next_day.code, done.code) == (4, 4, 0, 0)
    assert late.out == f"orders {DAY}: partition, marker, receipt, notify.\n"
    assert "Published, but consumers were not notified yet: Consumers could not be notified" in late.err
    assert waiting.json["sent"] == 0
    assert [(one["target"], one["events"]) for one in waiting.json["waiting"]] == [(f"file:{file}", 1)]
    assert sorted(one["time"] for one in heard())[0] == "2026-05-11T05:00:00.000000Z"
    assert [one["data"]["partition"]["day"][-2:] for one in heard()] == ["11", "10", "10"]
    assert done.out == "0 sent, 0 waiting.\n"


def test_publish_without_a_contract_and_pending_with_one_are_not_understood(dq):
    assert (dq("publish").code, dq("publish", "orders.odcs.yaml", "--pending").code) == (2, 2)


TOPIC = "arn:aws:sns:eu-central-1:123456789012:dq-{domain}"


def test_a_topic_that_cannot_be_reached_undoes_nothing_and_is_told_by_the_next_publish(
    publish, dq, folder, monkeypatch
):
    edit(folder, "version: 1.0.0", "version: 1.0.0\ndomain: sales")
    assert dq("register", "--apply").code == 0
    for name, value in {
        "DQ_TOPIC": TOPIC,
        "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "nobody-sees-this",
    }.items():
        monkeypatch.setenv(name, value)

    down = publish("--rows", "3", "--format", "json")
    again = publish("--rows", "3")
    pending = dq("publish", "--pending")

    assert (down.code, again.code, pending.code) == (4, 4, 4)
    assert down.json["done"] == ["partition", "marker", "receipt", "notify"]
    assert down.json["waiting"] == [TOPIC.replace("{domain}", "sales")]
    assert "Published, but consumers were not notified yet" in again.err
    assert "0 sent, 1 waiting." in pending.out
    assert "nobody-sees-this" not in down.err + again.err + pending.out + pending.err
    assert not (folder / ".dq" / "published.jsonl").exists()


@pytest.mark.parametrize(
    ("domain", "topic", "code"),
    [
        pytest.param("", TOPIC, 2, id="no domain"),
        pytest.param("a/b", TOPIC, 2, id="no name"),
        pytest.param("sales", "arn:aws:sns:eu-central-1:123456789012:dq.fifo", 2, id="fifo"),
        pytest.param("sales", "https://example.com", 2, id="no topic"),
    ],
)
def test_a_topic_that_is_none_is_refused_before_anything_is_done(
    publish, folder, monkeypatch, domain, topic, code
):
    edit(folder, "version: 1.0.0", f"version: 1.0.0\ndomain: '{domain}'")
    monkeypatch.setenv("DQ_TOPIC", topic)

    refused = publish()

    assert refused.code == code
    assert not (folder / "lake" / DAY / "_SUCCESS").exists()


def test_what_was_published_where_it_was_staged_stays_there(publish, sql, heard, folder, deliver):
    publish("--rows", "1")
    (deliver("staged") / "_SUCCESS").touch()
    world, contract = runtime_context(None, [Path("orders.odcs.yaml")]), load("orders.odcs.yaml")
    staged = PublishRequest(
        {"day": "2026-05-10"}, rows=2, redelivery=True, run="night", folder=f"staged/{DAY}"
    )
    place = "SELECT location FROM catalog_partition"

    deliver_staged(world, contract, contract.objects[0], staged, CatalogChoice())
    before, again = sql(place), publish("--format", "json")
    after, anew = sql(place), publish("--rows", "3")

    assert before == after == [(f"staged/{DAY}",)]
    assert (again.json["done"], again.json["location"]) == ([], f"staged/{DAY}")
    assert "revision 3 (2 rows, now 3): partition, receipt, notify" in anew.out
    assert sql(place) == [(f"lake/{DAY}",)]
    assert [one["data"]["location"].partition("/")[0] for one in heard()] == ["lake", "staged", "lake"]


def test_what_was_published_long_ago_is_forgotten_with_its_notices(publish, dq, deliver):
    deliver(name="day=2026-05-11")
    publish("--as-of", "2026-05-11T06:00:00Z")
    dq("publish", "orders.odcs.yaml", "--partition", "day=2026-05-11", "--as-of", "2027-05-12T06:00:00Z")
    publish("--redelivery", "--as-of", "2026-05-12T06:00:00Z")

    gone = dq("store", "prune", "--as-of", "2027-08-01T00:00:00Z", "--format", "json").json

    assert (gone["publications"], gone["notices"], gone["receipts"]) == (2, 2, 2)
    assert publish().out.endswith("receipt, notify.\n")
    assert "published before" in dq("publish", "orders.odcs.yaml", "--partition", "day=2026-05-11").out


@pytest.mark.parametrize("kind", ["folder", "dangling link"])
def test_a_marker_that_is_no_file_is_no_marker(publish, folder, kind):
    marker = folder / "lake" / DAY / "_SUCCESS"
    marker.mkdir() if kind == "folder" else marker.symlink_to(folder / "made")

    refused = publish()

    assert refused.code == 3
    assert "_SUCCESS is not a file" in refused.err
    assert not (folder / "made").exists()


@pytest.mark.slow
def test_a_reader_that_holds_the_lock_of_the_file_stops_no_publisher(publish, heard, folder, dq):
    publish()
    with (folder / ".dq" / "published.jsonl").open() as reader:
        fcntl.flock(reader, fcntl.LOCK_EX)
        stopped = publish("--redelivery")
    sent = dq("publish", "--pending")

    assert stopped.code == 4
    assert "another process holds its lock" in stopped.err
    assert sent.out == "1 sent, 0 waiting.\n"
    assert len(heard()) == 2


def test_a_contract_with_errors_is_told_with_the_place_of_each(publish, folder):
    edit(folder, "id, logicalType: integer", "id, logicalType: integre")

    refused = publish()

    assert refused.code == 3
    assert "orders.odcs.yaml:16:33: error unknown-value: unknown logicalType 'integre'" in refused.err
    assert not (folder / "lake" / DAY / "_SUCCESS").exists()


def test_a_folder_of_which_one_contract_has_errors_publishes_no_other(publish, dq, folder):
    (folder / "broken.odcs.yaml").write_text("apiVersion: v3.2.0\nkind: DataContract\nid: [\n")

    refused = dq("publish", ".", *PARTITION)

    assert refused.code == 3
    assert "broken.odcs.yaml:" in refused.err
    assert not (folder / "lake" / DAY / "_SUCCESS").exists()
