"""A promise that is no more ends its cycles and its incidents, in words of its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fakes.command import BEGIN, MISSED, Place, contract

LATER = ("2026-05-11T08:00:00Z", "2026-05-11T08:10:00Z")


class Registry(Place):
    """A registry with two contracts; `told` are the messages so far, oldest first."""

    def watch(self, when: str) -> int:
        return self.dq("watch", "registry", "--as-of", when, "--channel", "file:told.jsonl").code

    def told(self, product: str = "orders") -> list[dict[str, object]]:
        file = self.folder / "told.jsonl"
        lines = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
        return [one for one in lines if product in json.dumps(one)]

    @property
    def states(self) -> list[object]:
        return [one["state"] for one in self.told()]

    def status(self) -> str:
        return self.dq("status", "registry", "--as-of", LATER[1]).out


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    made = Registry(tmp_path)
    (tmp_path / "lake").mkdir()
    made.put("registry/dq-policy.yaml", "{}")
    made.put("registry/orders.odcs.yaml", contract("orders"))
    made.put("registry/sales.odcs.yaml", contract("sales"))
    assert made.watch(BEGIN) == 0
    assert made.watch(MISSED) == 1
    assert made.states == ["open"]
    return made


def orders(registry: Registry) -> Path:
    return registry.folder / "registry" / "orders.odcs.yaml"


def test_a_contract_that_was_removed_withdraws_what_it_promised(registry: Registry) -> None:
    orders(registry).unlink()

    registry.watch(LATER[0])
    waited = registry.states
    registry.watch(LATER[1])
    registry.watch("2026-05-11T08:11:00Z")

    assert (waited[-1], registry.states[-1]) == ("open", "withdrawn")
    assert "orders.odcs.yaml no longer exists" in json.dumps(registry.told()[-1])
    assert "orders/daily: 1 delivery. The contract was removed" in registry.status()
    assert [one["state"] for one in registry.told("sales")] == ["open"]


@pytest.mark.parametrize("path", ["registry/orders.odcs.yaml", "registry"], ids=["a file", "a folder"])
def test_the_last_contract_of_a_path_can_be_removed(tmp_path: Path, path: str) -> None:
    made = Registry(tmp_path)
    (tmp_path / "lake").mkdir()
    made.put("registry/dq-policy.yaml", "{}")
    made.put("registry/orders.odcs.yaml", contract("orders"))
    for when in (BEGIN, MISSED):
        made.dq("watch", path, "--as-of", when, "--channel", "file:told.jsonl")
    orders(made).unlink()

    codes = [made.dq("watch", path, "--as-of", when, "--channel", "file:told.jsonl").code for when in LATER]

    assert (codes, made.states[-1]) == ([0, 0], "withdrawn")


def test_a_registry_that_is_lost_withdraws_nothing(registry: Registry) -> None:
    (registry.folder / "registry").rename(registry.folder / "away")
    (registry.folder / "registry").mkdir()

    assert [registry.watch(when) for when in LATER] == [3, 3]
    assert registry.states == ["open"]


def test_a_file_that_is_gone_for_a_moment_withdraws_nothing(registry: Registry) -> None:
    text = orders(registry).read_text()
    orders(registry).unlink()
    registry.watch(LATER[0])
    orders(registry).write_text(text)
    registry.watch(LATER[1])
    orders(registry).unlink()
    registry.watch("2026-05-11T08:11:00Z")

    assert registry.states == ["open"]


def test_nothing_is_removed_while_a_file_cannot_be_read(registry: Registry) -> None:
    orders(registry).rename(orders(registry).with_name("moved.odcs.yaml"))
    moved = orders(registry).with_name("moved.odcs.yaml")
    moved.write_text(moved.read_text() + "\n\tbroken")

    for when in LATER:
        registry.watch(when)

    assert registry.states == ["open"]


def test_a_watcher_of_another_registry_withdraws_nothing(registry: Registry) -> None:
    registry.put("other/dq-policy.yaml", "{}")
    registry.put("other/orders.odcs.yaml", contract("others"))
    orders(registry).unlink()
    for when in LATER:
        registry.dq("watch", "other", "--as-of", when, "--channel", "file:told.jsonl")

    assert registry.states == ["open"]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("status: active", "status: retired", "The contract is now retired."),
        (
            "id: daily",
            "id: nightly",
            "no longer has the delivery SLO 'daily' of 'orders'. It has 'nightly'.",
        ),
        ("id: orders", "id: bookings", "now has the contract 'bookings'"),
    ],
    ids=["retired", "another SLO", "renamed"],
)
def test_what_a_contract_says_no_more_is_withdrawn(registry: Registry, old: str, new: str, said: str) -> None:
    file = orders(registry)
    file.write_text(file.read_text().replace(old, new, 1))

    for when in LATER:
        registry.watch(when)

    assert registry.states[-1] == "withdrawn"
    assert said in json.dumps(registry.told()[-1])
    assert said in registry.status()


def test_a_promise_that_cannot_be_understood_is_not_withdrawn(registry: Registry) -> None:
    file = orders(registry)
    file.write_text(file.read_text().replace('"0 6 * * *"', '"0 66 * * *"'))

    for when in LATER:
        registry.watch(when)

    assert registry.states == ["open"]


def test_a_contract_that_comes_back_owes_nothing_for_the_time_in_between(registry: Registry) -> None:
    file = orders(registry)
    active = file.read_text()
    file.write_text(active.replace("status: active", "status: retired"))
    registry.watch(LATER[0])
    file.write_text(active)

    registry.watch("2026-05-20T08:00:00Z")
    registry.watch("2026-05-21T08:00:00Z")

    standing = json.loads(
        registry.dq("status", "registry", "--as-of", "2026-05-21T09:00:00Z", "--format", "json").out
    )
    cycles = next(one["cycles"] for one in standing["deliveries"] if one["contract"] == "orders")
    assert [(one["due_at"][:10], one["status"]) for one in cycles] == [
        ("2026-05-11", "withdrawn"),
        ("2026-05-21", "missing"),
    ]


def test_an_outage_ends_as_withdrawn_when_what_was_out_is_no_longer_promised(tmp_path: Path) -> None:
    made = Registry(tmp_path)
    made.put("registry/dq-policy.yaml", "{}")
    made.put("registry/orders.odcs.yaml", contract("orders"))
    (tmp_path / "lake").symlink_to("lake")
    made.watch(BEGIN)
    assert made.watch(MISSED) == 3
    assert [one["state"] for one in made.told("platform")] == ["open"]
    file = orders(made)
    file.write_text(file.read_text().replace("status: active", "status: retired"))

    made.watch(LATER[0])

    assert [one["state"] for one in made.told("platform")][-1] == "withdrawn"
