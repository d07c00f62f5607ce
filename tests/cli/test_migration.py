"""Jobs move to another platform: each needs cycles in a row in which both platforms agree."""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fakes.command import Place
from jsonschema import Draft202012Validator

from dq.operations.output_schemas import json_schema

pytestmark = pytest.mark.spark

CONTRACT = """\
apiVersion: v3.2.0
kind: DataContract
id: {name}
version: 1.0.0
status: active
servers:
  - {{server: emr, type: local, path: "{root}/emr/{name}", format: parquet}}
  - {{server: serverless, type: local, path: "{root}/serverless/{name}", format: parquet}}
schema:
  - name: {name}
    properties:
      - {{name: day, logicalType: date, partitioned: true}}
      - {{name: id, logicalType: integer, physicalType: bigint}}
      - {{name: amount, logicalType: number, physicalType: double}}
    quality:
      - name: same on serverless
        type: custom
        engine: dq
        implementation:
          check: agrees
          arguments: {{with: {{server: serverless}}, key: [id], cycles: {cycles}}}
"""
JOBS = ("clicks", "orders", "visits")
WRONG = {"clicks", "visits"}


class Migration:
    """A registry of jobs that write the same tables on two platforms."""

    def __init__(self, folder: Path, jobs: Collection[str], cycles: int) -> None:
        self.place, self.jobs = Place(folder), jobs
        for name in jobs:
            self.put_contract(name, cycles=cycles)

    def put_contract(self, name: str, *, cycles: int, **parts: str) -> None:
        text = CONTRACT.format(name=name, root=self.place.folder, cycles=cycles)
        for old, new in parts.items():
            assert old in text
            text = text.replace(old, new)
        self.place.put(f"registry/{name}.odcs.yaml", text)

    def deliver(self, day: int, wrong: Collection[str] = ()) -> None:
        """Write a day of all jobs; one amount of those that are wrong is another one on the new platform."""
        for name in self.jobs:
            self.write("emr", name, day, 7.0)
            self.write("serverless", name, day, 8.0 if name in wrong else 7.0)

    def write(self, server: str, name: str, day: int, amount: float) -> None:
        folder = self.place.folder / server / name / f"day=2026-11-{day:02}"
        folder.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"id": [1, 2, 3], "amount": [1.5, amount, None]}), folder / "part-0.parquet")

    def check(self, day: int, *options: str, server: str = "emr") -> dict[str, tuple[str, str]]:
        """Status and message of the rule of each job."""
        partition = f"day=2026-11-{day:02}"
        ran = self.place.dq(
            "check", "registry", "--server", server, "--partition", partition, "--format", "json", *options
        )
        assert list(Draft202012Validator(json_schema("check")).iter_errors(ran.json)) == []
        results = {
            report["object"]: result
            for report in ran.json
            for result in report["results"]
            if result["check"] == "agrees"
        }
        assert ran.code == int(any(result["status"] == "fail" for result in results.values())), ran.all
        return {name: (result["status"], result["message"]) for name, result in results.items()}

    def incidents(self) -> dict[str, list[dict[str, object]]]:
        found: dict[str, list[dict[str, object]]] = {}
        for incident in self.place.dq("incidents", "--all", "--format", "json").json["incidents"]:
            found.setdefault(str(incident["object"]), []).append(incident)
        return found

    def agreements(self) -> dict[str, tuple[int, bool, object]]:
        ran = self.place.dq("status", "registry", "--format", "json")
        assert list(Draft202012Validator(json_schema("status")).iter_errors(ran.json)) == []
        return {
            row["object"]: (row["cycles"], row["complete"], row["disagreement"])
            for row in ran.json["agreements"]
        }


def test_a_migration_is_ready_after_seven_good_days_and_one_incident_a_job_tells_which_is_not(
    tmp_path: Path,
) -> None:
    migration = Migration(tmp_path, JOBS, cycles=7)
    place = migration.place
    for day in range(1, 11):
        # Repaired on the eighth day, with the days before.
        wrong = WRONG if day in range(4, 8) else ()
        migration.deliver(day, wrong)
        if day == 8:
            for repaired in range(4, 8):
                migration.deliver(repaired)
        results = migration.check(day)
        assert results["orders"] == (
            "pass",
            f"orders: 0 rows differ from orders on serverless; agrees in {_words(day)}",
        )
        # A day that agrees fails as long as the fourth does not.
        assert {name: status for name, (status, _) in results.items() if name in WRONG} == dict.fromkeys(
            WRONG, "fail" if 4 <= day <= 8 else "pass"
        )
        if day == 4:
            opened = {name: incidents[0]["id"] for name, incidents in migration.incidents().items()}
            assert set(opened) == WRONG
        if day == 8:
            for repaired in range(4, 8):
                migration.check(repaired)

        # One incident a job, not one a day.
        found = migration.incidents()
        assert {name: len(incidents) for name, incidents in found.items()} == (
            dict.fromkeys(WRONG, 1) if day >= 4 else {}
        )
        for name, (incident,) in found.items():
            assert incident["id"] == opened[name]
            assert incident["state"] == ("open" if day < 8 else "resolved"), day
            assert incident["open"] == (
                [f"agrees: schema/{name}/quality/same on serverless"] if day < 8 else []
            )

        if day == 6:
            assert results["clicks"] == (
                "fail",
                "clicks: 1 row differs from clicks on serverless: 1 changed (amount); day=2026-11-04"
                " disagrees; agrees in 0 of 7 cycles in a row; allowed: exactly 0 rows, in 7 cycles in a row",
            )
            assert migration.agreements() == {
                "clicks": (0, False, "day=2026-11-04"),
                "orders": (6, False, None),
                "visits": (0, False, "day=2026-11-04"),
            }
            text = place.dq("status", "registry").out
            assert (
                "  ✗ clicks/clicks agrees with clicks on serverless: 0 of 7 cycles in a row, day=2026-11-04"
                " disagrees\n"
                "  ? orders/orders agrees with orders on serverless: 6 of 7 cycles in a row\n"
            ) in text
            page, document = _portal(place, "clicks")
            assert "<td>0 of 7 cycles in a row</td>" in page
            assert (
                f'day=2026-11-04 disagrees</bdi></span> <a href="../../incidents/{opened["clicks"]}.html">'
                in page
            )
            assert document["agreements"][0]["disagreement"] == "day=2026-11-04"

    assert migration.agreements() == dict.fromkeys(JOBS, (10, True, None))
    assert (
        "✓ visits/visits agrees with visits on serverless: 7 of 7 cycles (10 in a row)"
        in place.dq("status", "registry").out
    )
    for name in JOBS:
        page, document = _portal(place, name)
        assert "<td>7 of 7 cycles (10 in a row)</td>" in page
        assert '<span class="state fine"><bdi>ready</bdi></span></td>' in page
        assert (document["agreements"][0]["cycles"], document["state"]) == (10, "fine")


def test_a_streak_counts_each_cycle_once_by_its_newest_result(tmp_path: Path) -> None:
    migration = Migration(tmp_path, ["orders"], cycles=3)
    place = migration.place
    for day in (1, 2, 3):
        migration.deliver(day)

    def check(day: int, server: str = "emr") -> tuple[str, str]:
        status, message = migration.check(day, "--rule", "agrees", server=server)["orders"]
        return status, message.partition("serverless")[2]

    # In any order, and twice.
    assert check(2) == ("pass", "; agrees in 1 of 3 cycles in a row")
    assert check(1) == ("pass", "; agrees in 2 of 3 cycles in a row")
    assert check(2) == ("pass", "; agrees in 2 of 3 cycles in a row")
    # The side that the rule names says nothing about itself.
    assert check(3, "serverless") == ("skipped", "; check another server")
    assert migration.agreements() == {"orders": (2, False, None)}

    migration.deliver(3, wrong=["orders"])
    migration.deliver(4)
    broken = "day=2026-11-03 disagrees; agrees in"
    allowed = "; allowed: exactly 0 rows, in 3 cycles in a row"
    assert check(3) == ("fail", f": 1 changed (amount); {broken} 0 of 3 cycles in a row{allowed}")
    assert check(4, "serverless")[0] == "skipped"
    assert check(4) == ("fail", f"; {broken} 1 of 3 cycles in a row{allowed}")
    [incident] = migration.incidents()["orders"]
    assert (incident["title"], incident["breaches"], incident["state"]) == (
        "orders disagrees with orders on serverless: day=2026-11-03",
        1,
        "open",
    )
    # The days before and after it are good data.
    statuses = {
        line["scope"]: line["status"]
        for line in place.dq("status", "registry", "--format", "json").json["checks"]
    }
    assert statuses == {f"day=2026-11-0{day}": "fail" if day == 3 else "pass" for day in (1, 2, 3, 4)}

    # A day that cannot be compared is no way to forget the one that disagrees.
    migration.write("emr", "orders", 5, 7.0)
    shutil.move(place.folder / "serverless", place.folder / "away")
    ran = place.dq(
        "check", "registry", "--server", "emr", "--partition", "day=2026-11-05", "--rule", "agrees"
    )
    assert ran.code == 3, ran.all
    shutil.move(place.folder / "away", place.folder / "serverless")
    for day in (5, 6, 7):
        migration.deliver(day)
    assert check(6) == (
        "fail",
        f"; {broken} 1 of 3 cycles in a row, day=2026-11-05 was not compared{allowed}",
    )
    assert check(5) == ("pass", "; agrees in 3 of 3 cycles in a row")
    assert [incident["state"] for incident in migration.incidents()["orders"]] == ["resolved"]

    # The rule ends with the migration, and with it its incident.
    migration.deliver(7, wrong=["orders"])
    assert check(7)[0] == "fail"
    assert [incident["state"] for incident in migration.incidents()["orders"]] == ["open"]
    migration.put_contract(
        "orders", cycles=3, **{"check: agrees": "check: rowCountAnomaly", "          arguments": "#"}
    )
    place.dq("check", "registry", "--server", "emr", "--partition", "day=2026-11-06")
    assert [incident["state"] for incident in migration.incidents()["orders"]] == ["withdrawn"]


def _words(cycles: int) -> str:
    return f"{cycles} of 7 cycles in a row" if cycles <= 7 else f"7 of 7 cycles ({cycles} in a row)"


def _portal(place: Place, name: str) -> tuple[str, dict[str, object]]:
    ran = place.dq("portal", "build", "site", "registry")
    assert ran.code == 0, ran.all
    folder = place.folder / "site" / "products" / name
    return (folder / "index.html").read_text(), json.loads((folder / "status.json").read_text())
