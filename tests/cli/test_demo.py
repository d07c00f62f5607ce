"""dq demo --tables: what the first hour begins with."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from fakes.command import Place

EXAMPLES = Path(__file__).parents[2] / "examples" / "registry"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_its_tables_are_those_of_the_contracts_in_the_examples(place: Place) -> None:
    made = place.dq("demo", "--tables", "lake")
    said = [place.dq("import", "parquet", f"lake/{name}", "--output", str(EXAMPLES / f"{name}.odcs.yaml")).out
            for name in ("flights", "planes", "weather")]  # fmt: skip

    assert (made.code, made.err) == (0, "")
    assert ["says what its source says" in one for one in said] == [True, True, True], said


def test_each_file_is_as_old_as_its_delivery(place: Place) -> None:
    place.dq("demo", "--tables", "lake")

    came = {file.parent.name: datetime.fromtimestamp(file.stat().st_mtime, UTC)
            for file in place.folder.glob("lake/flights/*/*.parquet")}  # fmt: skip

    assert came["flight_date=2013-10-31"] == datetime(2013, 11, 1, 13, 10, tzinfo=UTC)
    assert came["flight_date=2013-11-01"] == datetime(2013, 11, 2, 9, 20, tzinfo=UTC)
    assert max(came) == "flight_date=2013-11-03"


def test_it_follows_no_link_that_leads_away(place: Place) -> None:
    (place.folder / "lake").mkdir()
    (place.folder / "lake" / "weather").symlink_to(place.folder / "nowhere")

    ran = place.dq("demo", "--tables", "lake")

    assert (ran.code, "lake/weather is there already" in ran.err) == (2, True)
    assert not (place.folder / "nowhere").exists()


def test_it_leaves_a_table_that_is_there(place: Place) -> None:
    place.put("lake/planes/part-0.parquet", "mine")

    ran = place.dq("demo", "--tables", "lake")

    assert (ran.code, "lake/planes is there already" in ran.err) == (2, True)
    assert [one.name for one in (place.folder / "lake").iterdir()] == ["planes"]
    assert (place.folder / "lake/planes/part-0.parquet").read_text() == "mine"
