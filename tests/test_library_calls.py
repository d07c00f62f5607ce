"""What commands do is a Python call: `dq.status`, `dq.sample`, `dq.check` without a frame, `dq.backtest`."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import chdir
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fakes.command import BEGIN, Place, contract

import dq
from dq.contracts.check_result import Status
from dq.contracts.outcome import UsageError

NOW = datetime(2026, 5, 12, 8, tzinfo=UTC)


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Two domains, of which one was watched through a delivery and one that is missing."""
    made = Place(tmp_path_factory.mktemp("calls"))
    made.put("registry/dq-policy.yaml", "{}")
    made.put("registry/notes.yaml", "a: 1\n")
    for name, domain in (("orders", "shop"), ("stock", "house")):
        made.put(f"registry/{name}.odcs.yaml", contract(name) + f"domain: {domain}\n")
    (made.folder / "lake").mkdir()
    assert made.dq("watch", "registry", "--as-of", BEGIN, "--channel", "console").code == 0
    made.put("lake/orders/day=2026-05-10/_SUCCESS", "")
    made.dq("watch", "registry", "--as-of", NOW.isoformat(), "--channel", "console")
    return made


@pytest.mark.parametrize(
    ("options", "asked"),
    [
        ((), {}),
        (("--by", "domain"), {"by": "domain"}),
        (("--product", "orders"), {"product": "orders"}),
        (("--domain", "house", "--by", "all"), {"domain": "house", "by": "all"}),
    ],
    ids=["all", "by", "product", "domain"],
)
def test_status_is_what_the_command_prints(registry: Place, options, asked, capfd) -> None:
    said = registry.dq("status", "registry", "--as-of", NOW.isoformat(), "--format", "json", *options).json
    capfd.readouterr()

    with chdir(registry.folder):
        found = dq.status("registry", now=NOW, **asked)

    assert json.loads(json.dumps(found.as_dict())) == said
    assert said["deliveries"]
    # A library says nothing by itself, not even of a YAML file that is no contract.
    assert capfd.readouterr() == ("", "")


def test_status_of_another_folder_is_that_folders(registry: Place) -> None:
    found = dq.status("registry", folder=registry.folder, now=NOW)

    assert [one.slo.contract.key for one in found.deliveries] == ["orders", "stock"]
    assert [one.title for one in found.incidents if "stock" in one.title] != []
    with pytest.raises(UsageError, match="no contract matches"):
        dq.status("registry", folder=registry.folder, domain="nowhere")
    with pytest.raises(UsageError, match="by='team'"):
        dq.status("registry", folder=registry.folder, by="team")
    with pytest.raises(UsageError, match="has no time zone"):
        dq.status("registry", folder=registry.folder, now=datetime(2026, 5, 12))  # noqa: DTZ001
    with pytest.raises(dq.DqError):
        dq.status("nowhere", folder=registry.folder)


ORDERS = """\
apiVersion: v3.2.0
kind: DataContract
id: orders
version: 1.0.0
status: active
servers:
  - {server: lake, type: local, path: lake, format: parquet}
  - {server: old, type: local, path: old, format: parquet}
schema:
  - name: orders
    properties:
      - {name: id, logicalType: integer, physicalType: bigint, required: true}
      - {name: day, logicalType: date, partitioned: true, partitionKeyPosition: 1}
"""


def test_a_sample_is_tested_as_by_the_command(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.put("orders.odcs.yaml", ORDERS)
    place.put("orders.csv", "id,day\n1,2026-05-01\n,2026-05-01\nx,2026-05-02\n")
    said = place.dq("sample", "orders.odcs.yaml", "orders.csv", "--format", "json").json

    found = dq.sample(tmp_path / "orders.odcs.yaml", tmp_path / "orders.csv")

    [one] = said
    assert [(each.clause, each.status, each.message) for each in found.results] == [
        (each["clause"], each["status"], each["message"]) for each in one["results"]
    ]
    assert found.exit_code == 1
    for wrong in ({"object": "calls"}, {"delimiter": ";;"}, {"now": datetime(2026, 5, 1)}):  # noqa: DTZ001
        with pytest.raises(UsageError):
            dq.sample(ORDERS, tmp_path / "orders.csv", **wrong)
    with pytest.raises(dq.DqError):
        dq.sample(ORDERS, tmp_path / "nowhere.csv")


@pytest.mark.spark
def test_data_is_read_where_its_contract_says(spark, tmp_path: Path) -> None:
    for day, ids in (("2026-05-01", [1, 2]), ("2026-05-02", [3, None])):
        (tmp_path / f"lake/day={day}").mkdir(parents=True)
        pq.write_table(pa.table({"id": pa.array(ids, pa.int64())}), tmp_path / f"lake/day={day}/a.parquet")
    (tmp_path / "orders.odcs.yaml").write_text(ORDERS)
    options = {"server": "lake", "folder": tmp_path, "spark": spark, "now": NOW}

    whole = dq.check(ORDERS, **options)
    part = dq.check(tmp_path / "orders.odcs.yaml", partitions=[{"day": "2026-05-01"}], **options)
    past = dq.backtest(ORDERS, last=5, rules=["required"], **options)

    assert [one.message for one in whole.failed] == ["orders.id: 1 of 4 rows are NULL; allowed: no NULL"]
    assert part.failed == ()
    assert [[where for where, _ in rule.with_status(Status.FAIL)] for rule in past.rules] == [
        [(("day", "2026-05-02"),)]
    ]
    frame = spark.read.parquet(str(tmp_path / "lake"))
    assert (
        dq.backtest(ORDERS, frame, rules=["required"], now=NOW).as_dict()["rules"] == past.as_dict()["rules"]
    )
    assert not (tmp_path / ".dq").exists()
    with pytest.raises(UsageError, match="server"):
        dq.check(ORDERS, folder=tmp_path, spark=spark)
    with pytest.raises(UsageError, match="exclude each other"):
        dq.check(ORDERS, frame, server="lake")
    # Who hands in nothing by mistake is told so: only what is left out is read from its place.
    with pytest.raises(UsageError):
        dq.check(ORDERS, None, spark=spark)
    outside = ORDERS.replace("path: lake,", "path: /etc,")
    with pytest.raises(UsageError, match="is outside the registry"):
        dq.check(outside, **options)


def test_eight_threads_work_on_eight_registries_at_once(tmp_path: Path) -> None:
    places = [Place(tmp_path / str(at)) for at in range(8)]
    for at, place in enumerate(places):
        place.folder.mkdir()
        place.put("registry/dq-policy.yaml", "{}")
        place.put("registry/a.odcs.yaml", contract(f"product{at}"))
        wrong = contract(f"other{at}").replace("logicalType: integer", f"logicalType: int{at}")
        place.put("registry/b.odcs.yaml", wrong)
    begin = threading.Barrier(8)

    def work(at: int) -> list[object]:
        folder = places[at].folder
        begin.wait(30)
        said: list[object] = []
        for _ in range(3):
            one = dq.load(folder / "registry/a.odcs.yaml")
            found = dq.validate(folder / "registry")
            changed = dq.diff(
                one, contract(f"product{at}").replace("name: id", f"name: id{at}"), today=date(2026, 5, 1)
            )
            standing = dq.status("registry", folder=folder, now=NOW)
            said.append(
                (
                    one.id,
                    [finding.message for finding in found if finding.severity.blocks],
                    sorted(each.path for each in changed.changes),
                    [each.slo.contract.id for each in standing.deliveries],
                    [finding.message for finding in standing.findings],
                )
            )
        return said

    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(work, range(8)))

    begin = threading.Barrier(1)
    for at, said in enumerate(together):
        assert said == work(at)
        one, blocking, changed, deliveries, findings = said[0]
        assert (one, deliveries) == (f"product{at}", [f"product{at}"])
        assert [f"int{at}" in message for message in (*blocking, *findings)] == [True, True]
        assert changed
        assert (places[at].folder / ".dq").is_dir()
