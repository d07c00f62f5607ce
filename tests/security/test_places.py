"""What contracts may not reach: the real commands, with a canary behind each place, name and variable."""

from __future__ import annotations

from pathlib import Path

import pytest
from fakes.canary import Canary
from fakes.desk import Desk

SECRET = "ghp_canary_of_the_tests"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A registry with a lake, links that lead out of it, and what is nobody's business beside it."""
    home, outside = tmp_path / "checkout", tmp_path / "outside"
    for name in ("lake/orders", ".secrets"):
        (home / name).mkdir(parents=True)
    (home / ".secrets" / "config").write_text(SECRET)
    outside.mkdir()
    (outside / "passwd").write_text(SECRET)
    (home / "out").symlink_to(outside)
    (home / "hidden").symlink_to(home / ".secrets")
    return home


CONTRACT = """\
apiVersion: v3.2.0
kind: DataContract
id: orders
version: 1.0.0
status: active
servers:
  - {{server: lake, type: {type}, {key}: {place}, format: csv}}
schema:
  - name: orders
    {name}
    {terms}
    properties:
      - {{name: day, logicalType: string, partitioned: true, partitionKeyPosition: 1}}
      - {{name: id, logicalType: string, physicalType: string}}
slaProperties:
  - id: daily
    property: frequency
    value: 1
    unit: d
    schedule: "0 6 * * *"
    customProperties:
      - property: delivery
        vendor: dq
        value: {{partition: {{day: "{{due:%F}}"}}, evidence: [marker, file]}}
"""


def contract(place: str, type: str = "local", name: str = "", terms: str = "") -> str:
    key = "path" if type == "local" else "location"
    return CONTRACT.format(type=type, key=key, place=f"'{place}'", name=name, terms=terms)


@pytest.fixture
def desk(checkout, monkeypatch, capfd):
    return Desk(checkout, monkeypatch, capfd)


WATCH = ("watch", "orders.odcs.yaml", "--as-of", "2026-05-11T12:00:00Z", "--since", "2026-05-11T00:00:00Z")
COMMANDS = {
    "watch": WATCH,
    "register": ("register", "orders.odcs.yaml", "--apply"),
    "publish": ("publish", "orders.odcs.yaml", "--partition", "day=2026-05-11", "--rows", "0"),
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("place", ["s3://${CANARY}/x", "${CANARY}", "${CANARY:-lake}", "lake/${CANARY}"])
def test_no_command_shows_a_variable_that_nobody_listed(desk, command, place):
    desk.write("orders.odcs.yaml", contract(place, "s3" if place.startswith("s3") else "local"))

    ran = desk.dq(*COMMANDS[command], CANARY=SECRET)

    assert ran.code not in (0, 70)
    assert SECRET not in ran.all
    assert "DQ_VARS=CANARY" in ran.err
    assert "orders.odcs.yaml:7:" in ran.err
    assert not list(desk.folder.rglob(f"*{SECRET}*"))


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_leaves_the_registry_by_a_link_or_by_a_path(desk, command):
    for place in ("/etc", "../outside", "out", "lake/../../outside", "hidden"):
        desk.write("orders.odcs.yaml", contract(place))

        ran = desk.dq(*COMMANDS[command])

        assert ran.code not in (0, 70), place
        assert "DQ_LAKE_ROOTS=" in ran.err
    assert [one.name for one in (desk.folder.parent / "outside").iterdir()] == ["passwd"]


def test_publish_makes_nothing_where_a_partition_is_a_link(desk):
    desk.write("orders.odcs.yaml", contract("lake/orders"))
    (desk.folder / "lake" / "orders" / "day=2026-05-11").symlink_to(desk.folder.parent / "outside")
    assert desk.dq("register", "orders.odcs.yaml", "--apply").code == 0

    ran = desk.dq(*COMMANDS["publish"])

    assert ran.code == 2
    assert "a link leads there" in ran.err
    assert [one.name for one in (desk.folder.parent / "outside").iterdir()] == ["passwd"]


def test_watch_does_not_say_whether_a_file_is_there_behind_a_link(desk):
    terms = "customProperties: [{property: dataset, vendor: dq, value: {marker: passwd}}]"
    desk.write("orders.odcs.yaml", contract("lake/orders", terms=terms))
    (desk.folder / "lake" / "orders" / "day=2026-05-11").symlink_to(desk.folder.parent / "outside")

    ran = desk.dq(*WATCH)

    assert ran.code == 3
    assert "on_time" not in ran.all
    assert "a link leads there" in ran.all


MARKERS = ("../../../MARK", "/tmp/MARK", "a/b", "..", ".", "", " ", "a\\\\b", "x\\ny", "x\\u202e", "~",
           "m" * 256, "part-0.parquet", "data.CSV", "day=1", "_delta_log", "metadata", "*", "a?b",
           "%2e%2e")  # fmt: skip


@pytest.mark.parametrize("marker", MARKERS)
def test_a_marker_is_one_name_at_the_gate_and_when_it_is_written(desk, marker):
    terms = f'customProperties: [{{property: dataset, vendor: dq, value: {{marker: "{marker}"}}}}]'
    desk.write("orders.odcs.yaml", contract("lake/orders", terms=terms))
    before = {path for path in desk.folder.parent.rglob("*") if ".dq" not in path.parts}

    gate = desk.dq("validate", "orders.odcs.yaml", "--format", "json")
    published = desk.dq(*COMMANDS["publish"])
    watched = desk.dq(*WATCH)

    assert [one["line"] for one in gate.json["findings"] if "marker" in one["path"]] == [11]
    assert (gate.code, published.code) == (1, 2)
    assert watched.code not in (0, 1, 70)
    assert "orders.odcs.yaml:11:" in published.err
    after = {path for path in desk.folder.parent.rglob("*") if ".dq" not in path.parts}
    assert after == before


@pytest.mark.parametrize(
    "name", ["../../x", "/etc/x", "a/b", "..", ".", "{a,b}", "a*b", "a?b", "x%2f", "~", "a\\\\b"]
)
def test_the_name_of_an_object_is_one_step_of_a_path(desk, name):
    desk.write("orders.odcs.yaml", contract("lake/{object}", name=f'physicalName: "{name}"'))

    for command in COMMANDS.values():
        ran = desk.dq(*command)

        assert ran.code not in (0, 1, 70)
        assert "orders.odcs.yaml:10:" in ran.err


@pytest.mark.parametrize("value", ["../../..", "a/b", "..", "{due:%Y/%m}", "x\\\\y"])
def test_a_partition_is_one_folder_whatever_its_value(desk, value):
    text = contract("lake/orders").replace("{due:%F}", value)
    desk.write("orders.odcs.yaml", text)
    (desk.folder.parent / "outside" / "_SUCCESS").touch()

    ran = desk.dq(*WATCH)

    assert ran.code != 70
    assert "on_time" not in ran.all


@pytest.mark.parametrize(
    "place",
    [
        "s3://lake/orders?scheme=http&endpoint_override=127.0.0.1:{port}",
        "s3://lake/${CANARY}?scheme=http&endpoint_override=127.0.0.1:{port}",
        "s3://a:b@lake/orders?scheme=http&endpoint_override=127.0.0.1:{port}",
        "s3://lake/orders%3Fscheme=http&endpoint_override=127.0.0.1:{port}",
        "hdfs://127.0.0.1:{port}/orders",
        "abfss://c@127.0.0.1:{port}/orders?enable_tls=false",
    ],
)
# A watch goes on with the other contracts; who publishes named this one.
@pytest.mark.parametrize(("command", "code"), [("watch", 3), ("publish", 2)])
def test_no_command_speaks_to_a_host_that_a_contract_names(desk, command, code, place):
    keys = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1"}
    with Canary() as evil:
        desk.write("orders.odcs.yaml", contract(place.replace("{port}", str(evil.port)), "s3"))
        desk.dq("register", "orders.odcs.yaml", "--apply", DQ_LAKE_ROOTS="s3://lake", CANARY=SECRET)

        ran = desk.dq(*COMMANDS[command], DQ_LAKE_ROOTS="s3://lake", CANARY=SECRET, **keys)

    assert evil.heard == []
    assert ran.code == code
    assert SECRET not in ran.all


def test_no_file_of_a_lake_names_the_host_that_its_footer_is_read_from(monkeypatch):
    from dq.dataquality.spark.columnar_files import open_input

    for name, value in {"ACCESS_KEY_ID": "test", "SECRET_ACCESS_KEY": "test", "REGION": "us-east-1"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    with Canary() as evil, Canary() as ours:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{ours.port}")
        query = f"scheme=http%26endpoint_override=127.0.0.1:{evil.port}"
        with pytest.raises(OSError, match=r".*"):
            open_input(f"s3a://lake/part-0.parquet%3F{query}".replace("%26", "&"))

    assert evil.heard == []
    assert ours.heard != []
