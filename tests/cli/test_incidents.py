"""The commands of `dq incidents` as people use them after the real watcher."""

from __future__ import annotations

import json
import os
from datetime import datetime
from pathlib import Path

import pytest
from fakes.command import BEGIN, MISSED, Place, contract

LATER = "2026-05-11T12:00:00Z"


@pytest.fixture
def registry(tmp_path: Path) -> Place:
    """Two products that miss their first delivery."""
    made = Place(tmp_path)
    for name in ("orders", "sales"):
        made.put(f"registry/{name}.odcs.yaml", contract(name))
        (tmp_path / "lake" / name).mkdir(parents=True)
    watch(made, BEGIN)
    return made


def watch(registry: Place, when: str) -> int:
    return registry.dq("watch", "registry", "--as-of", when, "--channel", "file:told.jsonl").code


def told(registry: Place) -> list[dict[str, object]]:
    file = registry.folder / "told.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def incidents(registry: Place, *more: str, when: str = MISSED) -> list[dict[str, object]]:
    return registry.dq("incidents", *more, "--as-of", when, "--format", "json").json["incidents"]


def to_file(registry: Place, *words: str, when: str = MISSED):
    return registry.dq(*words, "--channel", "file:told.jsonl", "--as-of", when)


def test_open_incidents_are_listed_with_ids_that_other_commands_take(registry: Place) -> None:
    watch(registry, MISSED)

    listed = registry.dq("incidents", "--as-of", MISSED).out
    [orders, _] = incidents(registry)
    ran = to_file(registry, "ack", str(orders["id"])[:8], "--by", "ana")

    assert str(orders["id"])[:8] in listed
    assert (ran.code, ran.out) == (0, f"{str(orders['id'])[:8]} orders/orders/daily: acknowledged by ana.\n")
    assert told(registry)[-1]["note"] == "Acknowledged by ana."
    assert [one["state"] for one in incidents(registry)] == ["acked", "open"]


def test_t47_an_incident_is_found_by_contract_id_path_or_folder(tmp_path: Path) -> None:
    place = Place(tmp_path)
    for name, version in (("orders", "0.2.0"), ("sales", "2.0.0"), ("items", "1.0.0")):
        place.put(f"registry/{name}.odcs.yaml", contract(name, version))
        (tmp_path / "lake" / name).mkdir(parents=True)
    watch(place, BEGIN)
    watch(place, MISSED)

    def contracts(what: str) -> list[str]:
        ran = to_file(place, "incidents", "ack", what, "--by", "ana", "--format", "json")
        return [str(row["key"]) for row in ran.json] if ran.code == 0 else [ran.err]

    assert contracts("orders") == ["orders@0/orders/daily"]
    assert contracts("sales/sales") == ["sales@2/sales/daily"]
    assert contracts("registry/items.odcs.yaml") == ["items/items/daily"]
    assert sorted(contracts("registry")) == [
        "items/items/daily",
        "orders@0/orders/daily",
        "sales@2/sales/daily",
    ]
    assert "no open incident 'nothing'" in contracts("nothing")[0]


def test_t47_an_id_of_two_majors_lists_both(tmp_path: Path) -> None:
    place = Place(tmp_path)
    for name, version in (("old", "0.2.0"), ("new", "2.0.0")):
        place.put(f"registry/{name}.odcs.yaml", contract("orders", version))
    (tmp_path / "lake" / "orders").mkdir(parents=True)
    watch(place, BEGIN)
    watch(place, MISSED)

    ran = to_file(place, "incidents", "ack", "orders", "--by", "ana")

    assert (ran.code, ran.err.splitlines()[0]) == (
        2,
        "dq: 'orders' matches several contracts: orders@0, orders@2.",
    )


def test_a_contract_names_all_that_is_open_of_it(registry: Place) -> None:
    watch(registry, MISSED)

    assert to_file(registry, "ack", "sales", "--by", "ana").code == 0
    again = to_file(registry, "ack", "sales", "--by", "bea")

    assert (again.code, "already acknowledged by ana" in again.out) == (0, True)
    assert [one["acked_by"] for one in incidents(registry, "--contract", "sales")] == ["ana"]


def test_the_history_of_an_incident_says_who_and_why(registry: Place) -> None:
    watch(registry, MISSED)
    [orders, _] = incidents(registry)
    to_file(
        registry, "silence", str(orders["id"]), "--for", "2h", "--reason", "the lake moves", "--by", "bea"
    )
    to_file(registry, "ack", "orders", "--by", "ana")

    shown = registry.dq("incidents", str(orders["id"])[:6], "--as-of", MISSED)
    history = registry.dq("incidents", "orders", "--as-of", MISSED, "--format", "json").json["history"]

    assert "until 2026-05-11 09:12 UTC by bea: the lake moves" in shown.out
    assert [(one["kind"], one["detail"]) for one in history if one["kind"] in ("silenced", "acked")] == [
        ("silenced", "until 2026-05-11 09:12 UTC by bea: the lake moves"),
        ("acked", "ana"),
    ]


def test_a_silenced_product_opens_without_a_word_and_speaks_when_the_silence_is_over(registry: Place) -> None:
    to_file(registry, "silence", "orders", "--for", "2d", "--reason", "move", "--by", "bea", when=BEGIN)
    watch(registry, MISSED)
    hushed = {one["title"] for one in told(registry)}
    states = registry.dq("incidents", "--as-of", MISSED).out
    to_file(registry, "silence", "orders", "--end", "--by", "bea", when=LATER)

    assert hushed == {"sales is missing: day=2026-05-10"}
    assert "open, silenced" in states
    assert {one["title"] for one in told(registry)} - hushed == {"orders is missing: day=2026-05-10"}


@pytest.mark.parametrize(
    "words",
    [
        ("ack", "nothing"),
        ("ack", "ffffffff"),
        ("silence", "orders", "--for", "2h"),
        ("silence", "orders", "--reason", "x"),
        ("silence", "orders", "--for", "two hours", "--reason", "x"),
        ("silence", "orders", "--for", "0m", "--reason", "x"),
        ("silence", "orders", "--for", "1y", "--reason", "x"),
        ("silence", "orders", "--for", "100d", "--reason", "x"),
        ("silence", "orders", "--for", "2h", "--reason", "x", "--by", " "),
        ("silence", "a/b/c/d", "--for", "2h", "--reason", "x"),
        ("silence", "a//c", "--for", "2h", "--reason", "x"),
        ("silence", "orders", "--end"),
        ("silence", "--end"),
        ("incidents", "12345678"),
    ],
    ids=" ".join,
)
def test_a_mistake_is_explained_and_changes_nothing(registry: Place, words: tuple[str, ...]) -> None:
    ran = registry.dq(*words)

    assert (ran.code, "Traceback" in ran.err, ran.err.startswith("dq: ")) == (2, False, True)
    assert registry.dq("silence").out == "No active silences.\n"


def test_hostile_words_are_shown_and_do_nothing(registry: Place) -> None:
    watch(registry, MISSED)
    hostile = "\x1b[2J\n::error::<!channel> @here `x` | y"
    to_file(registry, "ack", "orders", "--by", hostile)
    to_file(registry, "silence", "sales", "--for", "2h", "--reason", hostile, "--by", hostile)

    for form in ("text", "json", "markdown"):
        out = registry.dq("incidents", "--as-of", MISSED, "--format", form).out
        out += registry.dq("incidents", "orders", "--as-of", MISSED, "--format", form).out
        out += registry.dq("status", "registry", "--as-of", MISSED).out
        assert "\x1b" not in out
        assert "\n::error" not in out


def test_a_page_of_incidents_is_markdown(registry: Place) -> None:
    watch(registry, MISSED)

    out = registry.dq("incidents", "--as-of", MISSED, "--format", "markdown").out

    assert out.startswith("## Incidents\n\n| id | state |")


STEPS = """support:
  - {channel: first, tool: console}
  - channel: second
    tool: console
    customProperties:
      - {property: route, vendor: dq, value: {escalateAfter: 30m}}
"""


def test_an_entry_that_waits_is_called_when_nobody_took_it(tmp_path: Path) -> None:
    place = Place(tmp_path)
    (tmp_path / "lake" / "orders").mkdir(parents=True)
    old = 'support:\n  - {channel: "#orders", tool: slack, scope: notifications}\n'
    place.put("registry/orders.odcs.yaml", contract("orders", **{old: STEPS}))
    said = [
        place.dq("watch", "registry", "--as-of", when).out.count("ERROR: orders is missing")
        for when in (BEGIN, MISSED, "2026-05-11T07:41:00Z", "2026-05-11T07:42:00Z", "2026-05-11T07:50:00Z")
    ]

    assert said == [0, 1, 0, 1, 0]


def test_a_wait_that_nobody_can_read_is_a_finding_and_no_wait(tmp_path: Path) -> None:
    place = Place(tmp_path)
    (tmp_path / "lake" / "orders").mkdir(parents=True)
    old = 'support:\n  - {channel: "#orders", tool: slack, scope: notifications}\n'
    text = contract("orders", **{old: STEPS.replace("30m", "half an hour")})
    place.put("registry/orders.odcs.yaml", text)
    gate = place.dq("validate", "registry")
    place.dq("watch", "registry", "--as-of", BEGIN)
    ran = place.dq("watch", "registry", "--as-of", MISSED)

    assert (gate.code, "alert-route-invalid" in gate.out) == (1, True)
    assert (ran.out.count("ERROR: orders is missing"), "alert-route-invalid" in ran.err) == (2, True)


INPUTS = "schema:\n  - name: sales\n    customProperties: [{property: inputs, value: [orders]}]\n"


def test_a_missing_input_is_told_and_what_is_made_from_it_waits(tmp_path: Path) -> None:
    place = Place(tmp_path)
    for name in ("orders", "sales"):
        (tmp_path / "lake" / name).mkdir(parents=True)
        old = {"schema:\n  - name: sales\n": INPUTS} if name == "sales" else {}
        place.put(f"registry/{name}.odcs.yaml", contract(name, **old))
    watch(place, BEGIN)
    watch(place, MISSED)
    first = told(place)
    orders, sales = incidents(place)
    # Orders come, and sales do not, neither in the time that is left to them.
    folder = tmp_path / "lake" / "orders" / "day=2026-05-10"
    folder.mkdir()
    (folder / "_SUCCESS").touch()
    at = datetime.fromisoformat("2026-05-11T07:20:00Z").timestamp()
    os.utime(folder / "_SUCCESS", (at, at))
    watch(place, "2026-05-11T07:25:00Z")
    soon = len([one for one in told(place) if one["title"].startswith("sales")])
    watch(place, "2026-05-11T07:41:00Z")

    assert {one["title"] for one in first} == {"orders is missing: day=2026-05-10"}
    assert dict(first[0]["facts"])["holds up"] == "1 product: sales/sales"
    assert (sales["root"], orders["inhibits"]) == (orders["id"], ["sales/sales"])
    assert soon == 0
    assert "sales is missing: day=2026-05-10" in {one["title"] for one in told(place)}
