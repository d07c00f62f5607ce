"""Jobs move to another platform: each needs cycles in a row in which both platforms agree."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from fakes.command import Place
from fakes.migration import Migration

pytestmark = pytest.mark.spark

JOBS = ("clicks", "orders", "visits")
WRONG = {"clicks", "visits"}


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
        "orders", cycles=3, **{"check: agrees": "check: unusual", "          arguments": "#"}
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
