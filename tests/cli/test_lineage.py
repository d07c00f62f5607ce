"""Events of OpenLineage are those of its standard, and whoever takes them cannot harm a check."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from fakes.desk import Desk
from fakes.lake import CONTRACT, write_days
from fakes.lineage_server import LineageServer
from fragments.openlineage import read_back

from dq.contracts.access.data_location import DataLocation
from dq.contracts.yaml.parse import read
from dq.operations.openlineage_events import EventSender, names, transport
from dq.operations.runtime.context import RuntimeContext

DAY = ("check", "--channel", "console", "--partition")


@pytest.fixture
def desk(tmp_path, monkeypatch, capfd):
    """A folder with a contract and two days; the session began elsewhere, so that places are whole."""
    made = Desk(tmp_path, monkeypatch, capfd)
    monkeypatch.setenv("DQ_VARS", "DQ_LAKE")
    monkeypatch.setenv("DQ_LAKE", str(tmp_path / "lake"))
    monkeypatch.setenv("DQ_LINEAGE", "events.jsonl")
    write_days(tmp_path)
    return made


def events(folder: Path) -> list[dict]:
    """The events of the file, each of which is the standard's."""
    found = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    for event in found:
        read_back(event)
    return found


def tags(event: dict) -> dict[str, str]:
    return {one["key"]: one["value"] for one in event["run"]["facets"]["tags"]["tags"]}


@pytest.mark.spark
def test_a_check_starts_and_completes_one_run_with_what_it_found(spark, desk):
    ran = desk.dq(*DAY, "day=2026-05-11")

    start, end = events(desk.folder)
    checked = end["inputs"][0]
    assertions = checked["inputFacets"]["dataQualityAssertions"]["assertions"]
    broken = {(one["name"], one["actual"]) for one in assertions if not one["success"]}
    assert ran.code == 1
    assert (start["eventType"], end["eventType"]) == ("START", "COMPLETE")
    assert start["run"]["runId"] == end["run"]["runId"]
    assert (end["job"]["namespace"], end["job"]["name"]) == ("dq", "check.orders.orders")
    assert (checked["namespace"], checked["name"]) == ("file", str(desk.folder / "lake"))
    assert [one["name"] for one in checked["facets"]["schema"]["fields"]] == ["day", "id", "amount"]
    assert broken == {
        ("schema/orders/primaryKey", "1 row"),
        ("schema/orders/properties/id/primaryKey", "1 of 3 rows"),
    }
    assert tags(end) == {
        "contract": "orders", "contract_version": "1.0.0", "scope": "day=2026-05-11", "verdict": "failed",
    }  # fmt: skip


def changed(event, path, value):
    """The event with another value at a path such as `job.name`; None takes the key away."""
    made = json.loads(json.dumps(event))
    *above, last = path.split(".")
    inner = made
    for step in above:
        inner = inner[int(step)] if step.isdigit() else inner[step]
    if value is None:
        del inner[last]
    else:
        inner[last] = value
    return made


@pytest.mark.spark
def test_what_is_not_the_standards_is_not_read_back(spark, desk):
    desk.dq(*DAY, "day=2026-05-11")
    _, end = events(desk.folder)
    facet = "inputs.0.inputFacets.dataQualityAssertions"
    faults = [
        ("eventTime", None),
        ("eventTime", "yesterday"),
        ("eventType", "DONE"),
        ("run.runId", "17"),
        ("job.name", None),
        ("job.name", 7),
        ("inputs.0.surprise", 1),
        ("schemaURL", "https://openlineage.io/spec/1-0-0/OpenLineage.json#/$defs/RunEvent"),
        ("run.facets.tests", end["run"]["facets"]["test"]),
        ("run.facets.test", end["inputs"][0]["facets"]["schema"]),
        (f"{facet}._schemaURL", None),
        (f"{facet}.assertions.0.success", "yes"),
        (f"{facet}.assertions.0.assertion", None),
    ]

    taken = []
    for path, value in faults:
        try:
            read_back(changed(end, path, value))
        except (TypeError, ValueError):
            continue
        taken.append(path)

    assert taken == []


@pytest.mark.spark
def test_numbers_of_rows_and_nulls_are_metrics_where_they_are_of_all_rows(spark, desk):
    rules = """\
    quality:
      - {metric: rowCount, mustBe: 3}
      - metric: rowCount
        mustBe: 1
        customProperties: [{property: scope, vendor: dq, value: {where: id = 4}}]
"""
    text = CONTRACT.replace("    properties:\n", f"{rules}    properties:\n")
    text = text.replace("{minimum: 0}}", "{minimum: 0}, required: true}")
    desk.write("orders.odcs.yaml", text)

    desk.dq(*DAY, "day=2026-05-11")

    measured = events(desk.folder)[-1]["inputs"][0]["inputFacets"]["dataQualityMetrics"]
    assert measured["rowCount"] == 3
    assert measured["columnMetrics"] == {"amount": {"nullCount": 0, "quantiles": {}}}


@pytest.mark.spark
def test_a_check_that_can_tell_nothing_is_a_failed_run(spark, desk):
    ran = desk.dq(*DAY, "nonsense=1")

    _, end = events(desk.folder)
    assert ran.code == 3
    assert end["eventType"] == "FAIL"
    assert "nonsense" in end["run"]["facets"]["errorMessage"]["message"]
    assert tags(end)["verdict"] == "unknown"


@pytest.mark.spark
def test_an_event_has_the_declared_inputs_and_no_row(spark, desk):
    crm = CONTRACT.replace("id: orders", "id: crm").replace("- name: orders", "- name: people")
    desk.write("crm/crm.odcs.yaml", crm.replace("${DQ_LAKE:-lake}", str(desk.folder / "lake" / "people")))
    made_from = "    customProperties: [{property: inputs, value: [crm/people]}]\n    properties:\n"
    desk.write("orders.odcs.yaml", CONTRACT.replace("    properties:\n", made_from, 1))
    desk.write("dq-policy.yaml", "{}\n")

    desk.dq(*DAY, "day=2026-05-11", "orders.odcs.yaml")

    end = events(desk.folder)[-1]
    assert [one["name"] for one in end["inputs"][1:]] == [str(desk.folder / "lake" / "people")]
    assert '"id=4' not in json.dumps(end)
    assert "samples" not in json.dumps(end)


@pytest.mark.spark
def test_an_endpoint_that_is_down_costs_one_line_and_no_verdict(spark, desk):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/secret-path?token=canary"

        good = desk.dq(*DAY, "day=2026-05-10", DQ_LINEAGE=url)

    said = [line for line in good.err.splitlines() if "lineage" in line]
    assert good.code == 0
    assert said == ["dq: lineage: 2 of 2 events not sent: ConnectionError. Other results are not affected."]
    assert "canary" not in good.all


def test_a_url_that_holds_a_password_is_refused_and_not_shown(desk):
    ran = desk.dq(*DAY, "day=2026-05-10", DQ_LINEAGE="https://ana:canary@example.com")

    assert ran.code == 2
    assert "canary" not in ran.all


def sent(target: str, count: int = 2, seconds: float = 60, **environment: str) -> str | None:
    """What is said of so many events."""
    sender = EventSender(transport(target, environment).emit)
    for number in range(count):
        sender.send({"number": number})
    return sender.close(seconds)


def test_events_are_posted_in_their_order_with_the_key_of_the_client():
    with LineageServer() as place:
        assert sent(place.url, 20, OPENLINEAGE_API_KEY="k") is None

    assert [one["number"] for one in place.events] == [*range(20)]
    assert set(place.asked) == {("POST", "/api/v1/lineage", "Bearer k")}


def test_the_path_of_a_url_is_the_endpoint():
    with LineageServer() as place:
        sent(f"{place.url}/my/events", 1)

    assert place.asked == [("POST", "/my/events", None)]


def test_an_endpoint_that_refuses_is_told_with_its_status():
    with LineageServer(422) as place:
        assert sent(place.url) == "2 of 2 events not sent: HTTP 422"


def test_no_redirect_is_followed():
    with LineageServer() as other, LineageServer(307, location=f"{other.url}/api/v1/lineage") as place:
        said = sent(place.url, 1, OPENLINEAGE_API_KEY="k")

    assert said == "1 of 1 events not sent: TooManyRedirects"
    assert other.asked == []


@pytest.mark.parametrize("what", ["drips", "never answers"])
def test_a_slow_endpoint_is_not_waited_for(what):
    drip = 0.1 if what == "drips" else 600
    with LineageServer(drip=drip) as place:
        said = sent(place.url, 3, seconds=1)

    assert said == "3 of 3 events not sent: no answer within 1 s"


def test_an_answer_without_end_is_not_read():
    with LineageServer(flood=True) as place:
        assert sent(place.url, 3) is None

    assert place.written < 64 * 2**20


def test_settings_of_openlineage_itself_may_be_named(tmp_path):
    with LineageServer() as place:
        file = tmp_path / "openlineage.yml"
        auth = "{type: api_key, apiKey: k}"
        file.write_text(f"transport: {{type: http, url: '{place.url}', endpoint: x, auth: {auth}}}\n")

        said = sent(str(file), 1)

    assert said is None
    assert place.asked == [("POST", "/x", "Bearer k")]


def test_no_settings_are_read_that_lie_in_the_working_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with LineageServer() as stranger, LineageServer() as ours:
        (tmp_path / "openlineage.yml").write_text(f"transport: {{type: http, url: '{stranger.url}'}}\n")

        sent(ours.url, 1)

    assert (len(ours.events), stranger.asked) == (1, [])


WRITER = """
import sys
from dq.operations.openlineage_events import transport
send = transport(sys.argv[1], {}).emit
for number in range(50):
    send({"writer": sys.argv[2], "number": number, "text": "x" * 30_000})
"""


def test_lines_of_several_processes_stay_whole(tmp_path):
    path = str(tmp_path / "events.jsonl")
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, path, one]) for one in "abcd"]
    assert [writer.wait() for writer in writers] == [0, 0, 0, 0]

    found = [json.loads(line) for line in Path(path).read_text().splitlines()]
    assert {(one["writer"], one["number"]) for one in found} == {(a, b) for a in "abcd" for b in range(50)}
    assert len(found) == 200


def test_a_pipe_that_nobody_reads_keeps_nobody_waiting(tmp_path):
    os.mkfifo(tmp_path / "pipe")

    said = sent(str(tmp_path / "pipe"), 1)

    assert said == "1 of 1 events not sent: OSError: No such device or address"


GLUE = "{server: lake, type: glue, account: '123456789012', database: sales, location: s3://lake/orders}"
HIVE = "{server: lake, type: hive, host: meta, port: 9083, database: sales}"
ICEBERG = "{server: lake, type: iceberg, catalog: c, catalogUrl: 'https://rest/', namespace: sales}"
S3, TABLE = ("s3://lake", "orders"), ("arn:aws:glue:eu-west-1:123456789012", "table/sales/orders")


@pytest.mark.parametrize(
    ("server", "place", "called"),
    [
        (GLUE, DataLocation("lake", "glue", "s3://lake/orders", "parquet", "sales"), [S3, TABLE]),
        (GLUE, DataLocation("lake", "s3", "s3a://lake/a/b", "parquet"), [("s3://lake", "a/b")]),
        (HIVE, DataLocation("lake", "hive", "", "parquet", "sales"), [("hive://meta:9083", "sales.orders")]),
        (ICEBERG, DataLocation("lake", "iceberg", "", "iceberg"), [("https://rest", "sales.orders")]),
        (GLUE, DataLocation("lake", "s3", "hdfs://nn:8020/a", "orc"), [("hdfs://nn:8020", "/a")]),
        (GLUE, DataLocation("lake", "local", "/data/a", "orc"), [("file", "/data/a")]),
    ],
    ids=["glue", "s3a", "hive", "iceberg", "hdfs", "local"],
)
def test_a_dataset_is_called_as_the_standard_says(server, place, called):
    text = CONTRACT.replace('{server: lake, type: local, path: "${DQ_LAKE:-lake}", format: parquet}', server)
    contract = read(text)

    made = names(place, contract.servers[0], contract.objects[0], {"AWS_REGION": "eu-west-1"})

    assert [tuple(one) for one in made] == called


def test_a_delivery_is_a_run_whose_output_is_the_dataset(desk):
    from dq.operations.openlineage import recording
    from dq.operations.runtime.context import runtime_context

    world: RuntimeContext = runtime_context(None, [desk.folder / "orders.odcs.yaml"])
    contract = read(desk.folder / "orders.odcs.yaml")
    id = "6f1f1f3e-52f0-5d7a-9c7b-3f1c8f0b1d2a"
    with recording(world, [contract]) as told:
        assert told is not None
        told.record_publication(contract, contract.objects[0], id, 912)

    start, end = events(desk.folder)
    assert [one["run"]["runId"] for one in (start, end)] == [id, id]
    assert end["outputs"][0]["name"] == str(desk.folder / "lake")
    assert end["outputs"][0]["outputFacets"]["outputStatistics"]["rowCount"] == 912
    assert datetime.fromisoformat(end["eventTime"]).tzinfo == UTC
