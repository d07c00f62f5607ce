"""`dq register --catalog iceberg` as a user runs it."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest
from fakes.flights import FLIGHTS
from fakes.iceberg import RestProxy

from dq.cli.main import run

pytestmark = [pytest.mark.spark, pytest.mark.slow]

GOOD = {
    "version": "1.0.0",
    "description": "Every flight that left.",
    "format": "iceberg",
    "id_type": "int",
    "comment": "The key.",
    "more": "",
    # Whoever proposes a contract may write any address there: it is not asked.
    "server": "iceberg\n    catalog: lake\n    catalogUrl: http://127.0.0.1:9",
}


@pytest.fixture
def registry(iceberg_server: RestProxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    iceberg_server.reset()
    folder = tmp_path / "contracts"
    folder.mkdir()
    (folder / "dq-policy.yaml").write_text("registry: air\n")
    monkeypatch.chdir(tmp_path)
    for name, text in iceberg_server.environment.items():
        monkeypatch.setenv(name, text)
    return folder


def write(registry: Path, name: str = "flights", **parts: str) -> Path:
    text = FLIGHTS.format(**GOOD | parts).replace("id: air-flights", f"id: {name}")
    file = registry / f"{name}.odcs.yaml"
    file.write_text(text.replace("physicalName: Flights", f"physicalName: {name}"))
    return file


def command(*words: str) -> int:
    return run(["register", "contracts", "--catalog", "iceberg", *words])


def test_a_contract_becomes_a_table_and_the_second_run_writes_nothing(
    iceberg_server: RestProxy, registry: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(registry)

    planned = command("--check")
    applied = command("--apply")
    with iceberg_server.counted() as writes:
        again = command("--apply", "--check")

    assert (planned, applied, again, writes) == (1, 0, 0, [])
    assert "Applied 1 of 1 changes." in capsys.readouterr().out


def test_what_the_format_cannot_do_is_a_finding_at_the_column_and_stops_no_other(
    registry: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(registry)
    write(registry, "second")
    command("--apply")
    file = write(registry, id_type="string")
    write(registry, "second", id_type="bigint", version="1.1.0")
    capsys.readouterr()

    code = command("--apply", "--allow-breaking", "--format", "json")

    said = json.loads(capsys.readouterr().out)
    assert code == 3
    assert {one["table"]: (one["kind"], one["outcome"]) for one in said["actions"]} == {
        "air_flights.flights": ("conflict", "refused"),
        "air_flights.second": ("update", "done"),
    }
    (finding,) = said["findings"]
    line = next(at for at, text in enumerate(file.read_text().splitlines(), 1) if "name: id," in text)
    assert (Path(finding["file"]).name, finding["line"]) == (file.name, line)
    assert "id cannot become string: Iceberg can only widen numbers, and this is int" in finding["message"]


def test_a_plan_that_was_kept_outlives_commits_of_data(registry: Path, iceberg_server: RestProxy) -> None:
    import pyarrow as pa
    from pyiceberg.catalog.rest import RestCatalog

    write(registry)
    command("--apply")
    write(registry, comment="Another.", version="1.0.1")
    command("--out", "plan.json")
    rest = RestCatalog("theirs", uri=iceberg_server.address)
    table = rest.load_table("air_flights.flights")
    row = {"id": 1, "price": Decimal("2.50"), "flight_date": date(2026, 11, 20), "hour": 7}
    table.append(pa.Table.from_pylist([row], schema=table.schema().as_arrow()))

    assert command("--apply", "--plan", "plan.json") == 0
    assert rest.load_table("air_flights.flights").schema().find_field("id").doc == "Another."
