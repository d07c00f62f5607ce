"""A contract of which nothing is due is not read again, and nothing is missed by it."""

from __future__ import annotations

from pathlib import Path

import pytest
from fakes.command import BEGIN, MISSED, Place, contract

QUIET = "2026-05-10T12:05:00Z"


@pytest.fixture
def registry(tmp_path: Path) -> Place:
    made = Place(tmp_path)
    (tmp_path / "lake").mkdir()
    made.put("registry/dq-policy.yaml", "{}")
    made.put("registry/orders.odcs.yaml", contract("orders"))
    assert watch(made, BEGIN)[0] == 0
    return made


def watch(registry: Place, when: str, *more: str) -> tuple[int, str]:
    ran = registry.dq("watch", "registry", "--as-of", when, "--channel", "console", *more)
    return ran.code, ran.out + ran.err


def test_what_rests_is_counted_and_wakes_when_it_is_due(registry: Place) -> None:
    resting, due = watch(registry, QUIET), watch(registry, MISSED)
    still = watch(registry, "2026-05-11T07:20:00Z")

    assert "SLOs: 1, new cycles: 0" in resting[1]
    assert (due[0], "new cycles: 1" in due[1]) == (1, True)
    assert "still open: 1" in still[1]


def test_a_contract_that_was_changed_is_read(registry: Place) -> None:
    registry.put("registry/orders.odcs.yaml", contract("orders", status="retired"))

    assert "orders is retired" in watch(registry, QUIET)[1]


def test_a_contract_that_was_broken_is_told(registry: Place) -> None:
    registry.put("registry/orders.odcs.yaml", contract("orders").replace("version: 1.0.0", "version: [1"))

    assert watch(registry, QUIET)[0] == 3


def test_a_second_file_of_a_resting_contract_is_refused(registry: Place) -> None:
    registry.put("registry/a-copy.odcs.yaml", contract("orders"))

    code, said = watch(registry, QUIET)

    assert (code, "a-copy.odcs.yaml" in said, "keeps its deliveries" in said) == (3, True, True)


def test_other_settings_wake_it(registry: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    (registry.folder / "elsewhere").mkdir()
    monkeypatch.setenv("DQ_LAKE_ROOTS", str(registry.folder / "elsewhere"))

    assert watch(registry, QUIET)[0] == 3


def test_what_could_not_be_watched_does_not_rest(tmp_path: Path) -> None:
    made = Place(tmp_path)
    made.put("orders.odcs.yaml", contract("orders").replace("path: lake/orders", "path: ../lake"))

    codes = [made.dq("watch", "orders.odcs.yaml", "--as-of", when).code for when in (BEGIN, QUIET)]

    assert codes == [3, 3]


def test_a_time_before_it_was_laid_down_asks_for_nothing(registry: Place) -> None:
    watch(registry, "2026-05-12T12:00:00Z")
    (registry.folder / "lake" / "orders" / "day=2026-05-11").mkdir(parents=True)

    code, said = watch(registry, BEGIN, "--trust-clock")

    assert (code, "new cycles: 0" in said) == (0, True)
