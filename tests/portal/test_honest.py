"""Ways in which a page could say "fine" of what nobody knows."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from fakes.command import Place, contract

from dq.contracts.check_result import AnsweredBy, CheckResult, Status
from dq.contracts.model import clause_namer
from dq.contracts.outcome import Severity
from dq.contracts.yaml.parse import parse
from dq.dataquality import results as check_runs
from dq.dataquality.checks import built_in
from dq.dataquality.clauses.coverage import EnforcementState, clause_coverage, expected_clauses
from dq.dataquality.clauses.foreign_key import ContractSet
from dq.dataquality.delivery import heartbeat
from dq.store.engine import open_store

NOW = "2026-05-12T08:00:00Z"
ORDERS = "registry/orders.odcs.yaml"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Orders was delivered on two days, watched, and checked as a whole after the second one."""
    place = Place(tmp_path_factory.mktemp("honest"))
    place.put("registry/dq-policy.yaml", "{}")
    place.put(ORDERS, contract("orders"))
    (place.folder / "lake").mkdir()
    watch(place, "2026-05-10T12:00:00Z")
    for day in (10, 11):
        marker = place.put(f"lake/orders/day=2026-05-{day}/_SUCCESS", "")
        os.utime(marker, (datetime(2026, 5, day + 1, 5, tzinfo=UTC).timestamp(),) * 2)
    watch(place, NOW)
    check(place)
    return place


@pytest.fixture
def place(made: Place, tmp_path: Path) -> Place:
    shutil.copytree(made.folder, tmp_path / "copy")
    return Place(tmp_path / "copy")


def watch(place: Place, at: str) -> None:
    assert place.dq("watch", "registry", "--as-of", at, "--channel", "console").code in (0, 1)


def check(
    place: Place,
    *,
    some: int | None = None,
    rules: Sequence[str] = (),
    version: str = "1.0.0",
    at: str = NOW,
) -> None:
    """Keeps a run in which every clause passes, or the first `some` of them."""
    parsed = parse((place.folder / ORDERS).read_bytes(), "orders.odcs.yaml")
    assert parsed.contract is not None
    [one] = parsed.contract.objects
    clauses = expected_clauses(
        parsed.contract, one, built_in(), ContractSet.from_contracts([parsed.contract])
    )
    asked = [
        each
        for each in clause_coverage(parsed.contract, one, clauses)
        if each.state is EnforcementState.ENFORCED and each.reason != "dq watch"
    ]
    results = [
        CheckResult(
            each.reason, each.path, "orders", each.property, Status.PASS, Severity.ERROR, "", "", "", each.at,
            name=clause_namer(one)(each.path), answered_by=AnsweredBy.SCAN,
        )
        for each in asked[:some]
    ]  # fmt: skip
    with open_store(f"sqlite:///{place.folder}/.dq/store.db").write() as tx:
        check_runs.save_run(
            tx, contract="orders", object="orders", version=version, scope="day=2026-05-11", results=results,
            jobs=1, now=datetime.fromisoformat(at), rules=rules,
        )  # fmt: skip


def state(place: Place, at: str = NOW, *more: str) -> tuple[str, str]:
    """How the product stands by its machine's page, and what the lists say of it."""
    ran = place.dq("portal", "build", "site", "registry", "--as-of", at, *more)
    assert ran.code == 0, ran.err
    told = json.loads((place.folder / "site/products/orders/status.json").read_text())["state"]
    return told, (place.folder / f"site/lists/{told}.html").read_text()


def later(**length: int) -> str:
    return f"{datetime.fromisoformat(NOW) + timedelta(**length):%FT%TZ}"


def test_what_came_and_was_checked_keeps_its_promises(place: Place) -> None:
    assert state(place)[0] == "fine"


def test_without_a_watcher_and_without_a_store_nothing_is_fine(place: Place) -> None:
    shutil.rmtree(place.folder / ".dq")

    told, said = state(place)

    assert told == "unknown"
    assert "daily not evaluated yet" in said


def test_a_check_of_another_version_says_nothing_of_this_one(place: Place) -> None:
    place.put(ORDERS, contract("orders", "1.1.0"))

    told, said = state(place)

    assert told == "unchecked"
    assert "not checked since version 1.1.0" in said
    assert (
        "last checked under version 1.0.0" in (place.folder / "site/products/orders/index.html").read_text()
    )


def test_the_version_that_was_checked_last_is_told_and_not_the_greatest_text(place: Place) -> None:
    check(place, version="1.9.0")
    check(place, version="1.10.0", some=1, rules=["columns"], at=later(minutes=1))
    place.put(ORDERS, contract("orders", "1.11.0"))

    assert state(place, later(minutes=2))[0] == "unchecked"
    said = (place.folder / "site/products/orders/index.html").read_text()
    assert "last checked under version 1.10.0" in said


def test_a_clause_that_took_the_place_of_another_was_not_checked(place: Place) -> None:
    column = "      - {name: id, logicalType: integer, physicalType: bigint}\n"
    place.put(ORDERS, contract("orders", **{column: column.replace("name: id", "name: number")}))

    told, said = state(place)

    assert told == "unchecked"
    assert "never checked" in said


def test_a_check_of_some_clauses_is_none_of_the_others(place: Place) -> None:
    shutil.rmtree(place.folder / ".dq")
    watch(place, "2026-05-10T12:00:00Z")
    watch(place, NOW)
    check(place, some=1, rules=["columns"])

    told, said = state(place)

    assert told == "unchecked"
    assert "never checked" in said


def test_a_cycle_that_nobody_judged_in_time_is_not_known(place: Place) -> None:
    # Another registry's watcher may be alive: its heartbeat is all that the store has.
    fine = state(place, later(hours=22))[0]
    waiting = state(place, later(hours=22, minutes=45))[0]

    told, said = state(place, later(hours=23))

    assert (fine, waiting, told) == ("fine", "fine", "unknown")
    assert "daily last evaluated for 2026-05-12 06:00 UTC" in said


def test_a_longer_tick_waits_longer(place: Place) -> None:
    assert state(place, later(hours=23))[0] == "unknown"
    assert state(place, later(hours=23), "--tick", "1h")[0] == "fine"


def test_a_watcher_whose_clock_is_ahead_is_not_taken_for_one_that_watches(place: Place) -> None:
    with open_store(f"sqlite:///{place.folder}/.dq/store.db").write() as tx:
        heartbeat.record_tick(tx, datetime.now(UTC) + timedelta(hours=2))

    ran = place.dq("portal", "build", "site", "registry")

    assert ran.code == 0, ran.err
    page = (place.folder / "site/index.html").read_text()
    assert "Clocks disagree" in page
    assert "expected every" not in page


def test_a_past_page_says_when_the_watcher_had_last_been_heard_by_then(place: Place) -> None:
    state(place, later(hours=-1))

    page = (place.folder / "site/index.html").read_text()
    assert "Clocks disagree" not in page
    assert '<time datetime="2026-05-10T12:00:00Z">' in page


def test_a_delivery_that_was_excused_is_told_where_the_product_is_fine(place: Place) -> None:
    words = ["--due", "2026-05-13T06:00:00Z", "--by", "ana", "--reason", "a planned outage"]
    said = place.dq("excuse", "registry", *words, "--channel", "console")
    assert said.code == 0, said.err + said.out

    before = state(place)
    watch(place, "2026-05-13T08:00:00Z")
    after = state(place, "2026-05-13T08:00:00Z")

    assert before[0] == "fine"
    assert "excused" not in before[1]
    assert after[0] == "fine"
    assert "the newest delivery of daily was excused" in after[1]
