"""Who is a contract: two majors are two products, and nobody takes over another's alerts by its id."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

import pytest
from fakes.command import BEGIN, MISSED, Place, Ran, contract

TEAM, STRANGER = "alerts/team.jsonl", "alerts/stranger.jsonl"
LATER = "2026-05-12T07:12:00Z"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    for name in ("DQ_STORE_URL", "DQ_CONFIG", "SLACK_BOT_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    # The operator allows both, so that only the contract's identity keeps the stranger's from being told.
    monkeypatch.setenv("DQ_FILE_CHANNELS", str(tmp_path))
    (tmp_path / "dq-policy.yaml").write_text("")
    return Place(tmp_path)


def told(name: str, file: str, **more: str) -> str:
    """A contract whose breaches are told into a file."""
    return contract(name, **{f'"#{name}", tool: slack': f'"{file}", tool: file'}, **more)


def watch(place: Place, at: str, *more: str) -> Ran:
    return place.dq("watch", "--as-of", at, *(more or ("--channel", "console")))


def statuses(place: Place, *more: str) -> dict[str, list[str]]:
    found = place.dq("status", "--as-of", LATER, "--format", "json", *more).json["deliveries"]
    return {one["contract"]: [cycle["status"] for cycle in one["cycles"]] for one in found}


def deliver(place: Place, partition: str, at: str) -> None:
    marker = place.put(f"lake/{partition}/_SUCCESS", "")
    os.utime(marker, (datetime.fromisoformat(at).timestamp(),) * 2)


def test_two_majors_are_watched_and_told_apart(place: Place) -> None:
    place.put("v1.odcs.yaml", contract("orders"))
    place.put("v2.odcs.yaml", contract("orders", version="2.0.0", **{"lake/orders": "lake/new"}))
    watch(place, BEGIN)
    deliver(place, "new/day=2026-05-10", "2026-05-11T05:00:00+00:00")

    found = watch(place, MISSED)

    assert found.code == 1
    assert found.out.count("orders is missing") == 1
    assert "orders/orders/daily\n" in found.out
    assert statuses(place) == {"orders": ["missing"], "orders@2": ["on_time"]}


def test_a_recovery_of_one_major_leaves_the_incident_of_the_other_open(place: Place) -> None:
    place.put("v1.odcs.yaml", contract("orders"))
    place.put("v2.odcs.yaml", contract("orders", version="2.0.0", **{"lake/orders": "lake/new"}))
    watch(place, BEGIN)
    watch(place, MISSED)
    deliver(place, "new/day=2026-05-10", "2026-05-11T07:30:00+00:00")

    found = watch(place, "2026-05-11T08:00:00Z")

    assert found.out.count("RESOLVED") == 1
    shown = place.dq("status", "--as-of", LATER, "--format", "json").json["incidents"]
    assert [one["key"] for one in shown] == ["orders/orders/daily"]


def test_two_majors_of_one_partition_are_each_published(place: Place) -> None:
    old = place.put("v1.odcs.yaml", contract("orders"))
    new = {"name: orders": "name: orders\n    physicalName: orders_2", "lake/orders": "lake/new"}
    place.put("v2.odcs.yaml", contract("orders", version="2.0.0", **new))
    assert place.dq("register", "--apply").code == 0
    for partition in ("orders/day=2026-05-10", "new/day=2026-05-10"):
        place.put(f"lake/{partition}/part-0.parquet", "data")

    first = place.dq("publish", old.name, "--partition", "day=2026-05-10")
    second = place.dq("publish", "v2.odcs.yaml", "--partition", "day=2026-05-10")

    assert "partition, marker, receipt, notify" in first.out
    assert "partition, marker, receipt, notify" in second.out


@pytest.mark.parametrize("name", ["aaa/orders.odcs.yaml", "zzz.odcs.yaml", "orders.odcs.yml"])
@pytest.mark.parametrize("version", ["1.0.0", "1.9.9", "v1.0.0", '"1"'])
def test_a_second_contract_of_an_id_hears_nothing_and_changes_nothing(
    place: Place, name: str, version: str
) -> None:
    place.put("orders.odcs.yaml", told("orders", TEAM))
    watch(place, BEGIN, "--channel", "contract")
    place.put(name, told("orders", STRANGER, version=version, **{"lake/orders": "lake/elsewhere"}))
    deliver(place, "elsewhere/day=2026-05-10", "2026-05-11T05:00:00+00:00")

    found = watch(place, MISSED, "--channel", "contract")

    assert found.code == 3
    assert f"{name}:3:5: error duplicate-contract: orders.odcs.yaml declared the contract" in found.err
    assert "orders is missing: day=2026-05-10" in (place.folder / TEAM).read_text()
    assert not (place.folder / STRANGER).exists()


def test_a_second_contract_gets_nothing_by_being_watched_alone(place: Place) -> None:
    place.put("a/orders.odcs.yaml", told("orders", TEAM))
    watch(place, BEGIN, "--channel", "contract")
    place.put("b/orders.odcs.yaml", told("orders", STRANGER))
    # A policy of its own would make its folder a root, and give the file the name of the first one.
    place.put("b/dq-policy.yaml", "")
    place.put("b/a/orders.odcs.yaml", told("orders", STRANGER))

    for folder in ("b", "b/a"):
        found = watch(place, MISSED, "--channel", "contract", folder)
        assert found.code == 3
        assert "a/orders.odcs.yaml declared the contract 'orders' first" in found.err

    assert not (place.folder / STRANGER).exists()
    assert statuses(place, "a") == {"orders": []}


def test_a_first_one_that_is_broken_for_a_day_keeps_its_place(place: Place) -> None:
    first = place.put("a.odcs.yaml", contract("orders"))
    watch(place, BEGIN)
    place.put("b.odcs.yaml", contract("orders"))
    good = first.read_text()
    first.write_text("apiVersion: v3.2.0\nkind: [")

    broken = watch(place, MISSED)
    first.write_text(good)
    mended = watch(place, MISSED)

    assert (broken.code, mended.code) == (3, 3)
    assert "orders is missing" not in broken.out
    assert "orders is missing" in mended.out
    assert "b.odcs.yaml:3:5: error duplicate-contract: a.odcs.yaml declared" in mended.err


def test_a_file_that_moved_goes_on_where_it_was(place: Place) -> None:
    place.put("a.odcs.yaml", contract("orders")).unlink()
    place.put("a.odcs.yaml", contract("orders"))
    watch(place, BEGIN)
    (place.folder / "a.odcs.yaml").rename(place.folder / "b.odcs.yaml")
    moved = watch(place, MISSED)
    place.put("a.odcs.yaml", contract("orders"))

    again = watch(place, LATER)

    assert moved.code == 1
    assert moved.err == ""
    assert "a.odcs.yaml:3:5: error duplicate-contract: b.odcs.yaml declared the contract" in again.err
    assert statuses(place)["orders"] == ["missing", "missing"]


def test_of_two_that_came_at_once_none_is_believed_and_both_are_told(place: Place) -> None:
    place.put("a.odcs.yaml", told("orders", TEAM))
    place.put("b.odcs.yaml", told("orders", STRANGER))
    place.put("good.odcs.yaml", contract("good"))
    watch(place, BEGIN)

    found = watch(place, MISSED)

    assert found.code == 3
    assert "a.odcs.yaml:3:5: error duplicate-contract: a.odcs.yaml, b.odcs.yaml declare the same" in found.err
    assert "b.odcs.yaml:3:5: error duplicate-contract" in found.err
    assert "good is missing" in found.out
    assert "orders is missing" not in found.out


def test_a_new_major_in_the_same_file_leaves_its_old_place_to_another(place: Place) -> None:
    place.put("orders.odcs.yaml", contract("orders"))
    watch(place, BEGIN)
    place.put("orders.odcs.yaml", contract("orders", version="2.0.0"))
    place.put("orders-v1.odcs.yaml", contract("orders"))

    found = watch(place, MISSED)

    assert found.code == 1
    assert found.err == ""
    assert statuses(place) == {"orders": ["missing"], "orders@2": []}


def test_one_file_that_was_named_twice_is_one_contract(place: Place) -> None:
    place.put("orders.odcs.yaml", contract("orders"))
    twice = (".", str(place.folder / "orders.odcs.yaml"))
    watch(place, BEGIN, "--channel", "console", *twice)

    found = watch(place, MISSED, "--channel", "console", *twice)

    assert (found.code, found.err) == (1, "")
    assert found.out.count("orders is missing: day") == 1


@pytest.mark.parametrize("command", [("status",), ("check",), ("register", "--apply")])
def test_every_command_tells_of_the_second_contract(place: Place, command: tuple[str, ...]) -> None:
    place.put("orders.odcs.yaml", contract("orders"))
    watch(place, BEGIN)
    place.put(
        "a.odcs.yaml",
        contract("orders", **{"name: orders": "name: mine", "element: orders": "element: mine"}),
    )

    found = place.dq(*command)

    assert found.code == 3
    assert "a.odcs.yaml:3:5: error duplicate-contract: orders.odcs.yaml declared the" in found.err
    assert "mine" not in found.out
