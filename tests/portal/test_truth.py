"""What pages say is what `dq status` and `dq explain` say: read back from the browser, product by product."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from fakes.portal_mesh import AS_OF, SAMPLE, PortalMesh
from fakes.portal_pages import Seen
from fakes.portal_products import NOW

Json = dict[str, Any]

WORDS = {
    "on_time": "on time",
    "on_time_in_grace": "in grace",
    "late": "late",
    "missing": "missing",
    "never": "never delivered",
    "unknown": "unknown",
    "excused": "excused",
    "withdrawn": "withdrawn",
}
DRAWN = 90


@pytest.fixture(scope="module")
def status(mesh: PortalMesh) -> Json:
    told: Json = mesh.dq("status", "registry", "--as-of", AS_OF, "--format", "json").json
    return told


@pytest.fixture(scope="module")
def explained(mesh: PortalMesh) -> dict[tuple[str, str], list[Json]]:
    """The accounts of `dq explain` by the contract's file and the object."""
    found = defaultdict(list)
    for one in mesh.dq("explain", "registry", "--format", "json").json:
        found[one["at"].rsplit(":", 2)[0], one["object"]].append(one)
    return found


@pytest.fixture(scope="module")
def shown(site: Path, seen: list[Seen]) -> dict[str, tuple[Json, Json]]:
    """What the page of each product says, and its status.json, by the contract's key."""
    found = {}
    for one in seen:
        file = (site / one.path).with_name("status.json")
        if one.facts["product"] and file.exists():
            machine = json.loads(file.read_text())
            if "deliveries" in machine:
                found[machine["contract"]] = (one.facts["product"], machine)
    return found


def by_contract(rows: list[Json]) -> dict[str, list[Json]]:
    found = defaultdict(list)
    for one in rows:
        found[one["contract"]].append(one)
    return found


def test_every_product_is_compared(mesh: PortalMesh, shown: dict[str, Any]) -> None:
    unread = {"broken-later", "broken-ever", "stranger-07", "stranger-16", "removed-later"}

    assert set(shown) == {one.id for one in mesh.products} - unread


def test_a_chart_has_the_cycles_of_the_status(status: Json, shown: dict[str, Any]) -> None:
    told = by_contract(status["deliveries"])

    assert sum(len(one) for one in told.values()) > 150
    for contract, (page, _) in shown.items():
        read = [(one["name"], one["cells"], [due for due, _, _ in one["odd"]]) for one in page["promises"]]
        meant = [(one["slo"], list(cells(one)), list(not_in_time(one))) for one in told[contract]]
        assert read == meant, contract


def cells(promise: Json) -> Iterator[str]:
    """What stands in the chart for each of the newest cycles."""
    for one in promise["cycles"][-DRAWN:]:
        said = f"{when(promise['contract'], one['due_at'])}: {WORDS[one['status']]}"
        if one["delivered_at"]:
            gap = datetime.fromisoformat(one["delivered_at"]) - datetime.fromisoformat(one["due_at"])
            said += f", delivered {length(abs(gap))} {'before' if gap < timedelta(0) else 'after'} due time"
        yield said


def not_in_time(promise: Json) -> Iterator[str]:
    for one in reversed(promise["cycles"][-DRAWN:]):
        if one["status"] not in ("on_time", "on_time_in_grace"):
            yield when(promise["contract"], one["due_at"])


def when(contract: str, iso: str) -> str:
    """An instant as the contract's readers call it."""
    zone = "Europe/Berlin" if contract == "in-berlin" else "UTC"
    return f"{datetime.fromisoformat(iso).astimezone(ZoneInfo(zone)):%Y-%m-%d %H:%M %Z}"


def length(gap: timedelta) -> str:
    """A length as people say it, by two units at most."""
    minutes = int(gap.total_seconds() // 60)
    parts = [(minutes // 1440, "d"), (minutes // 60 % 24, "h"), (minutes % 60, "min")]
    said = [f"{count} {unit}" for count, unit in parts if count]
    return " ".join(said[:2]) or "0 min"


def test_budgets_are_those_of_the_status(status: Json, shown: dict[str, Any]) -> None:
    told = by_contract(status["deliveries"])
    wrong = []
    for contract, (page, _) in shown.items():
        for said, one in zip(page["promises"], told[contract], strict=True):
            reached = "-" if one["attainment"] is None else f"{int(one['attainment'] * 1000) / 10:.1f}%"
            # "30 of 1 used" is not a share: more misses than allowed are shown as their number.
            if one["attainment"] is None:
                spent = {"Error budget used": "-"}
            elif one["bad"] > one["allowed"] or not one["allowed"]:
                spent = {"Misses": str(one["bad"])}
            else:
                spent = {"Error budget used": f"{one['bad']} of {one['allowed']}"}
            figures = {"On time": reached, **spent}
            marks = ["budget exhausted"] if one["bad"] > one["allowed"] else []
            if not (figures.items() <= said["figures"].items() and one["budget"] in said["notes"]):
                wrong.append((contract, said["figures"], said["notes"], one["budget"]))
            if marks != [mark for mark in said["marks"] if "exhausted" in mark]:
                wrong.append((contract, said["marks"], one["budget"]))

    assert wrong == []


def test_the_next_delivery_is_due_when_the_schedule_says(mesh: PortalMesh, shown: dict[str, Any]) -> None:
    wrong = {}
    for one in mesh.products:
        page, _ = shown.get(one.id, ({"promises": []}, {}))
        following = {"weekly": NOW.replace(day=1, month=6, hour=6)}.get(
            one.id, NOW.replace(day=1, month=6, hour=6)
        )
        # Six in Berlin is four in UTC.
        following -= timedelta(hours=2 if one.id == "in-berlin" else 0)
        for said in page["promises"]:
            if f"Next due {when(one.id, following.isoformat())}." not in " ".join(said["said"]):
                wrong[one.id] = said["said"]

    assert wrong == {}


def test_clauses_are_sorted_as_explained_and_as_checked(
    mesh: PortalMesh, status: Json, explained: dict[tuple[str, str], list[Json]], shown: dict[str, Any]
) -> None:
    checks = by_contract(status["checks"])
    wrong: dict[str, object] = {}
    for one in mesh.products:
        if one.id not in shown:
            continue
        for page in shown[one.id][0]["objects"]:
            accounts = explained[f"registry/{one.file}", page["name"]]
            mine = [line for line in checks[one.id] if line["object"] == page["name"]]
            kind = kinds(accounts, mine, one.document.get("version"))
            expected = [
                (each, line["property"] or line["object"], line["description"])
                for each, line in zip(kind, accounts, strict=True)
            ]
            said = [
                (title.split(" ", 2)[2], about, clause)
                for title, rows in page["groups"].items()
                for about, clause, *_ in rows
            ]
            # What a stranger wrote is shown, and JSON has it as it is.
            alike = 1 if one.id.startswith("stranger") else 3
            if Counter(row[:alike] for row in said) != Counter(row[:alike] for row in expected):
                wrong[one.id] = (said, expected)
            if [len(rows) for rows in page["groups"].values()] != [
                int(each.split()[0]) for each in page["groups"]
            ]:
                wrong[one.id] = page["groups"]

    assert wrong == {}


KEPT = {
    "statistics": "passed, from column statistics",
    "scan": "passed, by scan",
    "cache": "passed, by scan of new files",
    "schema": "passed, from the schema",
    None: "passed, method not recorded",
}


def kinds(accounts: list[Json], checks: list[Json], version: object) -> Iterator[str]:
    """What a page calls the state of each clause, by the scope that was checked last, in this version."""
    newest = max((line["scope"] for line in checks), default="")
    answers = {
        line["clause"]: line for line in checks if (line["scope"], line["version"]) == (newest, version)
    }
    for one in accounts:
        if one["state"] != "enforced":
            yield "not enforced"
        elif one["reason"] == "dq watch":
            yield "monitored with the deliveries"
        else:
            answer = answers.get(one["clause"], {"status": "", "answered_by": None})
            names = {"pass": KEPT[answer["answered_by"]], "fail": "failed"}
            yield names.get(answer["status"], "not evaluated")


def test_open_incidents_are_those_of_the_status(status: Json, shown: dict[str, Any]) -> None:
    told = defaultdict(set)
    for one in status["incidents"]:
        told[one["key"].split("/")[0]].add(f"../../incidents/{one['id']}.html")

    assert sum(map(len, told.values())) > 100
    for contract, (page, _) in shown.items():
        if "/" not in contract:
            assert {href for _, href in page["open"]} == told[contract], contract


def test_machines_are_told_what_the_status_says(status: Json, shown: dict[str, Any]) -> None:
    deliveries, checks = by_contract(status["deliveries"]), by_contract(status["checks"])

    for contract, (_, machine) in shown.items():
        told = [{**one, "cycles": list(map(brief, one["cycles"][-DRAWN:]))} for one in deliveries[contract]]
        assert machine["deliveries"] == told, contract
        # Values of the data stay where the data is.
        lines = [
            {name: value for name, value in one.items() if name != "samples"} for one in checks[contract]
        ]
        assert machine["checks"] == lines, contract


def brief(cycle: Json) -> Json:
    """Of a cycle, what most ask; `dq status` has all of it."""
    return {name: cycle[name] for name in ("due_at", "status", "delivered_at", "source")}


def test_no_value_of_the_data_is_on_any_page(site: Path) -> None:
    # Rows that break a check are kept in the store, for those who may see them.
    holding = [one for one in site.glob("products/*/*") if SAMPLE.encode() in one.read_bytes()]

    assert holding == []


ANSWERS = {
    "healthy": {"Yes.", "With care:"},
    "data not checked": {"With care:"},
    "SLO breached": {"With care:"},
    "late": {"Not yet:", "With care:"},
    "broken": {"Not yet:", "With care:"},
    "unknown": {"Not known:"},
    "not monitored": {"Not known:"},
}


def test_whether_a_product_may_be_used_fits_its_state_and_its_newest_delivery(
    status: Json, shown: dict[str, Any]
) -> None:
    told = by_contract(status["deliveries"])
    given: Counter[str] = Counter()
    for contract, (page, _) in shown.items():
        word = next(
            word for word in (*ANSWERS["late"], "Yes.", "Not known:") if page["answer"].startswith(word)
        )
        given[word] += 1
        assert word in ANSWERS[page["state"]], contract
        due = [
            [cycle["status"] for cycle in one["cycles"] if cycle["status"] not in ("scheduled", "pending")]
            for one in told[contract]
        ]
        newest = {statuses[-1] for statuses in due if statuses}
        assert (word == "Not yet:") == bool(newest & {"missing", "never"} and word != "Not known:"), contract
        if word == "Yes.":
            assert newest <= {"on_time", "on_time_in_grace", "late"}, contract

    assert min(given[word] for word in ("Not yet:", "With care:", "Not known:")) > 3


def test_a_delivery_that_was_not_checked_is_used_with_care(shown: dict[str, Any]) -> None:
    # Its data was checked on May 28, and its newest delivery came on May 31.
    assert shown["hub"][0]["answer"] == (
        "With care: the newest delivery has not been checked yet. The delivery due 2026-05-31 06:00 UTC "
        "arrived at 05:20 UTC, 40 min early. All 16 checks of day=2026-05-28 passed."
    )


def test_a_product_is_fine_only_where_everything_is_known_and_kept(
    status: Json, shown: dict[str, Any]
) -> None:
    checks = by_contract(status["checks"])
    told = by_contract(status["deliveries"])
    fine = {contract for contract, (page, _) in shown.items() if page["state"] == "healthy"}

    assert fine
    for contract in fine:
        newest = max(line["scope"] for line in checks[contract])
        assert {line["status"] for line in checks[contract] if line["scope"] == newest} <= {"pass", "skipped"}
        assert all(
            one["cycles"][-1]["status"] in ("on_time", "on_time_in_grace", "late", "excused")
            for one in told[contract]
        )
        assert not [one for one in status["incidents"] if one["key"].split("/")[0] == contract]
