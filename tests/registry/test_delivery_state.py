"""The delivery state in catalogs: what `dq watch` writes, what it costs, and what others do with it."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from fakes.command import Place, Ran, contract
from fakes.delivery_histories import play
from fakes.glue import Answer, GlueShim
from fakes.iceberg import RestProxy

from dq.dataquality.delivery import cycle_store
from dq.operations.delivery_state import NO_VALUE
from dq.registry.aws.glue import Glue
from dq.registry.catalog import Catalog, CatalogSettings, LiveTable
from dq.registry.catalogs import open_catalog
from dq.registry.catalogs.local import Local
from dq.registry.delivery_state import LEASE
from dq.registry.table import DELIVERY_KEYS
from dq.store.engine import open_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DUE = datetime(2026, 5, 11, 6, tzinfo=UTC)
DAY, HOUR = timedelta(days=1), timedelta(hours=1)
S3 = {
    "{server: lake, type: local, path: lake/orders, format: parquet}": (
        "{server: lake, type: s3, location: s3://lake/orders, format: parquet}"
    ),
    "partition: {day": "evidence: [receipt], partition: {day",
}


class Scene(Place):
    """A registry whose one table is in a catalog, and a watcher that writes its state there."""

    name: str
    read_table: Callable[[], LiveTable | None]

    def receipt(self, number: int) -> None:
        """The delivery that is due on a day came in time."""
        due_at = DUE + number * DAY
        with closing(open_store(f"sqlite:///{self.folder}/.dq/store.db")) as store, store.write() as tx:
            cycle_store.write_receipt(
                tx, id=f"receipt-{number}", contract="orders", object="orders",
                partition=f"day={due_at - DAY:%F}", due_at=due_at, delivered_at=due_at - HOUR, rows=1,
                version="1.0.0", server="lake",
            )  # fmt: skip

    def watch(self, at: datetime, *words: str) -> Ran:
        return self.dq("watch", "contracts", "--channel", "console", "--as-of", at.isoformat(), *words)

    def register(self, *words: str) -> Ran:
        return self.dq("register", "contracts", "--catalog", self.name, *words)

    @property
    def state(self) -> tuple[str, ...]:
        """Complete through, checked through and state, as a reader of the catalog sees them."""
        live = self.read_table()
        assert live is not None
        return tuple(live.spec.parameter(key) for key in DELIVERY_KEYS)


def scene(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, **parts: str) -> Scene:
    for variable in [variable for variable in os.environ if variable.startswith("DQ_")]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("DQ_LAKE_ROOTS", f"s3://lake,{folder}")
    monkeypatch.setenv("DQ_WATCH_CATALOG", name)
    place = Scene(folder)
    object.__setattr__(place, "name", name)
    place.put("contracts/dq-policy.yaml", "registry: shop\n")
    place.put("contracts/orders.odcs.yaml", contract("orders", **parts))
    return place


def with_reader(place: Scene, catalog: Catalog) -> Scene:
    object.__setattr__(place, "read_table", lambda: catalog.read("orders", "orders"))
    return place


@pytest.fixture
def in_glue(glue: GlueShim, glue_catalog: Glue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    return with_reader(scene(tmp_path, monkeypatch, "glue", **S3), glue_catalog)


@pytest.fixture
def local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    place = scene(tmp_path, monkeypatch, "local", **S3)
    place.watch(DUE - DAY)
    with closing(open_store(f"sqlite:///{tmp_path}/.dq/store.db")) as store:
        yield with_reader(place, Local(store))


def fill(place: Scene) -> list[tuple[str, ...]]:
    """A table that is registered, has a hole, and is filled; what a reader sees after each tick."""
    place.watch(DUE - HOUR)
    assert place.register("--apply").code == 0
    seen = []
    for number, receipts in enumerate(([0], [], [2], [1])):
        for receipt in receipts:
            place.receipt(receipt)
        place.watch(DUE + number * DAY + 2 * HOUR)
        seen.append(place.state)
    return seen


FILLED = [
    ("day=2026-05-10", "day=2026-05-10", "complete"),
    ("day=2026-05-10", "day=2026-05-11", "incomplete"),
    ("day=2026-05-10", "day=2026-05-12", "incomplete"),
    # The 13th is missing now.
    ("day=2026-05-12", "day=2026-05-13", "incomplete"),
]


def test_glue_says_how_far_the_table_is_complete(in_glue: Scene, glue: GlueShim) -> None:
    assert fill(in_glue) == FILLED

    # An unchanged value costs no request, and a changed one three.
    glue.calls.clear()
    in_glue.watch(DUE + 3.5 * DAY)
    assert [call.operation for call in glue.calls] == []
    in_glue.receipt(3)
    in_glue.watch(DUE + 3.6 * DAY)
    assert Counter(call.operation for call in glue.calls) == {"GetTable": 2, "UpdateTable": 1}
    assert in_glue.state == ("day=2026-05-13", "day=2026-05-13", "complete")


def test_the_local_catalog_says_it_too(local: Scene) -> None:
    assert fill(local) == FILLED


@pytest.mark.spark
@pytest.mark.slow
def test_an_iceberg_table_says_it_too(
    iceberg_server: RestProxy, iceberg_catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    iceberg_server.reset()
    for name, text in iceberg_server.environment.items():
        monkeypatch.setenv(name, text)
    server = f"{{server: lake, type: local, path: {tmp_path}/lake/orders, format: iceberg}}"
    parts = {key: server if "format: parquet" in key else text for key, text in S3.items()}
    place = with_reader(scene(tmp_path, monkeypatch, "iceberg", **parts), iceberg_catalog)

    assert fill(place) == FILLED
    with iceberg_server.counted() as writes:
        place.watch(DUE + 3.5 * DAY)
    assert writes == []


@pytest.mark.spark
def test_a_table_of_hive_says_it_too(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = f"{{server: lake, type: local, path: {tmp_path}/lake/orders, format: parquet}}"
    parts = {key: server if "format: parquet" in key else text for key, text in S3.items()}
    catalog = open_catalog("hive", CatalogSettings(session=lambda: spark))
    place = with_reader(scene(tmp_path, monkeypatch, "hive", **parts), catalog)
    try:
        assert fill(place) == FILLED

        # Readers see it, register neither shows nor removes it, and an unchanged value is not written.
        shown = {row.key: row.value for row in spark.sql("SHOW TBLPROPERTIES orders.orders").collect()}
        assert tuple(shown[key] for key in DELIVERY_KEYS) == FILLED[-1]
        unchanged = place.register("--check")
        assert unchanged.code == 0, unchanged.all
        again = place.watch(DUE + 3.5 * DAY, "--format", "json")
        assert again.json["catalog"]["written"] == []
    finally:
        spark.sql("DROP DATABASE IF EXISTS orders CASCADE")


def test_register_neither_shows_nor_removes_it(in_glue: Scene, glue: GlueShim) -> None:
    fill(in_glue)
    in_glue.put("plan.json", "")
    text = contract("orders", "1.1.0", **S3).replace(
        "physicalType: bigint", "physicalType: bigint, description: Key"
    )

    unchanged = in_glue.register("--check")
    in_glue.put("contracts/orders.odcs.yaml", text)
    planned = in_glue.register("--out", "plan.json", "--format", "json").json
    # The watcher writes between plan and apply.
    in_glue.receipt(3)
    in_glue.watch(DUE + 4 * DAY - HOUR)
    applied = in_glue.dq("register", "contracts", "--catalog", "glue", "--plan", "plan.json", "--apply")

    assert (unchanged.code, applied.code) == (0, 0), unchanged.all + applied.all
    assert "dq.complete-through" not in json.dumps(planned)
    assert in_glue.state == ("day=2026-05-13", "day=2026-05-13", "complete")


def test_a_table_that_is_not_registered_for_the_contract_is_left_alone(
    in_glue: Scene, glue: GlueShim
) -> None:
    in_glue.watch(DUE - HOUR)
    in_glue.receipt(0)
    absent = in_glue.watch(DUE + HOUR)
    in_glue.register("--apply")
    client = in_glue.read_table.__closure__[0].cell_contents.connection.client  # type: ignore[index]
    raw = client.get_table(DatabaseName="orders", Name="orders")["Table"]
    parameters = raw["Parameters"] | {"dq.contract-id": "other"}
    table = {key: raw[key] for key in ("Name", "StorageDescriptor", "PartitionKeys", "TableType")}
    client.update_table(
        DatabaseName="orders", TableInput={**table, "Parameters": parameters}, VersionId=raw["VersionId"],
        SkipArchive=True,
    )  # fmt: skip
    in_glue.receipt(1)
    foreign = in_glue.watch(DUE + DAY + HOUR)

    for ran in (absent, foreign):
        assert ran.code == 0, ran.all
        assert "not registered in the catalog, so without delivery state: orders.orders." in ran.err
    assert in_glue.state == ("", "", "")


def test_an_outage_of_the_catalog_is_reported_and_the_next_tick_retries(
    in_glue: Scene, glue: GlueShim
) -> None:
    in_glue.watch(DUE - HOUR)
    in_glue.register("--apply")
    in_glue.receipt(0)
    refusal = json.dumps({"__type": "AccessDeniedException", "Message": "no"}).encode()
    glue.faults["UpdateTable"] = [lambda *_: Answer(400, refusal)]

    failed = in_glue.watch(DUE + HOUR, "--format", "json")
    during = in_glue.state
    retried = in_glue.watch(DUE + 1.1 * HOUR, "--format", "json")

    assert failed.code == 3
    assert [entry["table"] for entry in failed.json["catalog"]["failed"]] == ["orders.orders"]
    assert "the next tick will retry" in failed.err
    assert during == ("", "", "")
    assert (retried.code, retried.json["catalog"]["written"]) == (0, ["orders.orders"])
    assert in_glue.state == FILLED[0]


def test_a_contract_that_is_withdrawn_is_marked_as_unwatched(in_glue: Scene) -> None:
    in_glue.watch(DUE - HOUR)
    in_glue.register("--apply")
    in_glue.receipt(0)
    in_glue.watch(DUE + HOUR)
    in_glue.put("contracts/orders.odcs.yaml", contract("orders", status="retired", **S3))
    in_glue.watch(DUE + 2 * HOUR)

    assert in_glue.state == (NO_VALUE, NO_VALUE, "unwatched")


def killed_watch(place: Scene, glue: GlueShim, at: datetime, moment: tuple[int, str]) -> int:
    """One `dq watch` as a process of its own, killed at a request."""
    # The process stands still until the shim knows it.
    program = "import sys; sys.stdin.readline(); from dq.cli.main import run; sys.exit(run(sys.argv[1:]))"
    words = ("watch", "contracts", "--channel", "console", "--as-of", at.isoformat())
    child = subprocess.Popen(
        [sys.executable, "-c", program, *words], cwd=place.folder, stdin=subprocess.PIPE, text=True
    )
    glue.calls.clear()
    glue.victim, glue.kill_at = child.pid, moment
    child.communicate("go\n", timeout=300)
    glue.kill_at = None
    return child.returncode


@pytest.mark.parametrize("moment", [(1, "before"), (1, "after"), (2, "after"), (3, "before"), (3, "after")])
def test_a_watch_that_is_killed_at_any_request_is_made_good_by_the_next(
    in_glue: Scene, glue: GlueShim, moment: tuple[int, str]
) -> None:
    in_glue.watch(DUE - HOUR)
    in_glue.register("--apply")
    in_glue.receipt(0)
    in_glue.watch(DUE + HOUR)
    in_glue.receipt(1)

    code = killed_watch(in_glue, glue, DUE + DAY + HOUR, moment)
    killed = in_glue.state
    # The lease of the killed watcher holds at first.
    early = in_glue.watch(DUE + DAY + HOUR + LEASE / 2)
    in_glue.watch(DUE + DAY + HOUR + 1.1 * LEASE)

    assert code == -signal.SIGKILL
    assert early.code == 0
    assert killed[0] == ("day=2026-05-11" if moment == (3, "after") else "day=2026-05-10")
    assert in_glue.state == ("day=2026-05-11", "day=2026-05-11", "complete")


@pytest.mark.parametrize("seed", range(3))
def test_random_histories_with_kills_outages_and_other_watchers(seed: int, url: str) -> None:
    draw, counts = random.Random(seed), Counter[str]()
    with closing(open_store(url)) as store:
        for number in range(8):
            outcome = play(store, f"orders{number}", draw)
            assert outcome.violations == []
            counts.update(outcome.counts)

    assert min(counts[name] for name in ("kills", "interleavings", "writes", "settled")) > 0
