"""The products of a mesh for the portal: what each promises, how it delivers, and what is odd about it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import yaml
from fakes.strangers import TEXTS
from fakes.strangers import contract as hostile

# The instant as of which everything is looked at; the last watch was then, too.
NOW = datetime(2026, 5, 31, 9, tzinfo=UTC)
LONG, SHORT = 90, 12
"""How many days of deliveries lie behind some products, and behind all others."""
GRACE = timedelta(minutes=30)

EARLY, IN_GRACE, LATE = timedelta(minutes=-40), timedelta(minutes=12), timedelta(hours=2)

Arrival = Callable[[int], timedelta | None]
"""How long after it was due a delivery came, by how many days ago that was; None for never."""


def _misses(*days: int, late: timedelta | None = None) -> Arrival:
    return lambda ago: late if ago in days else EARLY


FATES: Mapping[str, Arrival] = {
    "in time": lambda ago: EARLY - timedelta(minutes=ago * 7 % 60),
    "in grace": lambda ago: IN_GRACE if ago % 3 == 0 else EARLY,
    "late today": _misses(0, late=timedelta(hours=1)),
    "late at times": _misses(4, 9, late=LATE),
    "missing today": _misses(0),
    "missing for days": _misses(0, 1, 2),
    "missing from the start": lambda _: None,
    "came after all": _misses(1, late=timedelta(hours=26)),
    "budget nearly spent": _misses(3, late=LATE),
    "budget spent": _misses(2, 5, 6, 8, late=LATE),
    "taken away": lambda ago: EARLY,
    "excused": _misses(0, 1),
    "acknowledged": _misses(0),
    "given up": _misses(0, 30, 31),
    "unreadable": lambda _: None,
}
DOMAINS = ("sales", "logistics", "finance", "people", "Häfen & Zoll/№ 1", None)
CLASSES = ("public", "internal", "confidential", "restricted")
# Ids that make the same file's name, or the name of one of the site's own files, or leave the folder.
ODD_IDS = (
    "twin.a",
    "twin-a",
    "TWIN-A",
    "twin a",
    "index",
    "..",
    "../../out",
    "Ünïcödé",
    "a" * 180,
    "con",
    "constructor",
    "Straße",
)


@dataclass(frozen=True, slots=True)
class MeshProduct:
    """A contract's document, where its file lies, and what becomes of it.

    `born` is when its file appears: 0 before the first tick, 1 after the last one. `text` replaces the
    document where the file is no contract any more.
    """

    id: str
    file: str
    document: Mapping[str, object]
    fate: str = ""
    days: int = SHORT
    hour: int = 6
    born: int = 0
    text: str | None = None
    marks: frozenset[str] = field(default_factory=frozenset)

    def arrivals(self) -> Iterator[tuple[datetime, str]]:
        """Every delivery: when it came, and the day that it brought."""
        for ago in range(self.days, -1, -1):
            due = NOW.replace(hour=self.hour) - timedelta(days=ago)
            gap = FATES[self.fate](ago)
            if gap is not None and due + gap <= NOW:
                yield due + gap, f"{due - timedelta(days=1):%F}"


def document(number: int, id_: str, domain: str | None, **more: object) -> dict[str, object]:
    """A contract of one table with nested columns, classes, rules of quality and a daily promise."""
    objective = "90%" if number % 2 else "95%"
    return {
        "apiVersion": "v3.2.0",
        "kind": "DataContract",
        "id": id_,
        "name": f"{id_[:40].capitalize()} of the mesh",
        "version": "1.0.0",
        "status": "active",
        **({"domain": domain} if domain else {}),
        "dataProduct": f"product-{number // 2}",
        "description": {
            "purpose": f"Every {id_[:40]} that was closed, one row each.",
            "usage": "Read by day.",
            "limitations": "Nothing before 2020.",
        },
        "servers": [{"server": "lake", "type": "local", "path": f"lake/{number}", "format": "parquet"}],
        "team": {
            "name": f"team-{number % 9}",
            "members": [{"username": f"owner{number % 9}@example.com", "role": "owner"}],
        },
        "support": [
            {"channel": f"#help-{number % 9}", "tool": "slack", "scope": "notifications"},
            {"channel": "desk", "tool": "email", "url": f"mailto:desk{number % 9}@example.com"},
            {"channel": "wiki", "tool": "other", "url": f"https://wiki.example.com/p/{number}?a=1&b=2"},
        ],
        "schema": [_table(number)],
        "slaProperties": [promise(objective)],
        **more,
    }


def _table(number: int) -> dict[str, object]:
    return {
        "name": "closed",
        "physicalName": f"closed_{number}",
        "description": "One row per thing that was closed.",
        "properties": [
            {"name": "day", "logicalType": "date", "physicalType": "date", "partitioned": True,
             "partitionKeyPosition": 1},
            {"name": "id", "logicalType": "integer", "physicalType": "bigint", "required": True,
             "unique": True, "description": "Its number.", "classification": CLASSES[number % 4]},
            {"name": f"amount_{number}", "logicalType": "number", "physicalType": "decimal(18, 2)",
             "description": "What it cost, in euros.", "logicalTypeOptions": {"minimum": 0},
             "classification": CLASSES[(number + 1) % 4],
             "quality": [{"name": "few without", "metric": "nullValues", "mustBeLessThan": 3,
                          "unit": "percent"}]},
            {"name": "address", "logicalType": "object", "description": "Where it was.", "properties": [
                {"name": "city", "logicalType": "string", "classification": "restricted"},
                {"name": "lines", "logicalType": "array", "items": {"logicalType": "string"}}]},
        ],
        "quality": [
            {"name": "a day is whole", "metric": "rowCount", "mustBeBetween": [900, 1100]},
            {"type": "text", "description": "Looked at by a person each week."},
            {"name": "of another engine", "type": "custom", "engine": "soda", "implementation": "checks: []"},
        ],
    }  # fmt: skip


def promise(objective: str = "90%", schedule: str = "0 6 * * *", **more: object) -> dict[str, object]:
    """A daily delivery by six."""
    terms = {"grace": "30m", "partition": {"day": "{due - 1d:%F}"}, "objective": objective, "window": "30d"}
    return {
        "id": "daily",
        "property": "frequency",
        "value": 1,
        "unit": "d",
        "element": "closed",
        "description": "The day before is there by six.",
        "schedule": schedule,
        "customProperties": [{"property": "delivery", "vendor": "dq", "value": terms | more}],
    }


def products(count: int = 200) -> list[MeshProduct]:
    """As many products as are asked for: the special ones, and the rest with each fate in turn."""
    found = [*_special(), *_lives(), *_hostile(), *_odd()]
    fates = list(FATES)
    for number in range(len(found), count):
        id_, domain = f"orders-{number:03}", DOMAINS[number % len(DOMAINS)]
        more: dict[str, object] = {}
        if number % 3 == 0:
            more["customProperties"] = [{"property": "inputs", "value": ["hub", f"orders-{number - 1:03}"]}]
        days = LONG if number % 16 == 8 or fates[number % len(fates)] == "given up" else SHORT
        folder = "long" if days == LONG else f"d{number % len(DOMAINS)}"
        made = document(number, id_, domain, **more)
        marks = frozenset({"checked before"} if id_ == "orders-090" else ())
        found.append(
            MeshProduct(id_, f"{folder}/{id_}.odcs.yaml", made, fates[number % len(fates)], days, marks=marks)
        )
    return found


def _special() -> Iterator[MeshProduct]:
    """One of each state that is no fate of deliveries. Their numbers are below 20: places in the lake."""
    yield _one(0, "hub", "in time", marks={"hub"})
    bare = document(1, "no-promise", "sales", slaProperties=[])
    yield MeshProduct("no-promise", "d0/no-promise.odcs.yaml", bare, marks=frozenset({"no promise"}))
    yield _one(2, "never-run", "in time", born=1, marks={"never run"})
    yield _one(3, "broken-later", "in time", text="id: broken-later\nversion: [\n", marks={"broken"})
    nothing = "apiVersion: v3.2.0\nkind: DataContract\nname: 7\nschema: 5\n"
    yield _one(4, "broken-ever", "in time", text=nothing, born=1, marks={"broken"})
    yield _one(5, "removed-later", "missing today", text="", marks={"removed"})
    retired = yaml.safe_dump(document(6, "retired-later", DOMAINS[0], status="retired"), sort_keys=False)
    yield _one(6, "retired-later", "missing today", text=retired, marks={"withdrawn"})
    empty = {"apiVersion": "v3.2.0", "kind": "DataContract", "id": "least", "version": "1.0.0"}
    yield MeshProduct("least", "d0/least.odcs.yaml", empty, marks=frozenset({"no promise"}))
    weekly = document(7, "weekly", "sales", slaProperties=[promise(schedule="0 6 * * 1")])
    yield MeshProduct("weekly", "d0/weekly.odcs.yaml", weekly, "in time")
    here = document(8, "in-berlin", "sales", slaProperties=[promise(timezone="Europe/Berlin")])
    yield MeshProduct("in-berlin", "d0/in-berlin.odcs.yaml", here, "in grace")
    wrong = document(9, "wrong-schedule", "sales", slaProperties=[promise(schedule="61 25 * * *")])
    yield MeshProduct("wrong-schedule", "d0/wrong-schedule.odcs.yaml", wrong)


def _lives() -> Iterator[MeshProduct]:
    """Majors, and contracts at the beginning and the end of their lives."""
    ends = {"property": "endOfSupport", "value": "2026-06-20"}
    old = document(10, "ledger", "finance", status="deprecated", slaProperties=[promise(), ends])
    yield MeshProduct("ledger", "d2/ledger.odcs.yaml", old, "in time", marks=frozenset({"deprecated"}))
    new = document(11, "ledger", "finance", version="2.0.0")
    yield MeshProduct("ledger@2", "d2/ledger-2.odcs.yaml", new, "in grace", marks=frozenset({"major 2"}))
    planned = document(12, "ledger", "finance", version="3.0.0", status="draft")
    yield MeshProduct("ledger@3", "d2/ledger-3.odcs.yaml", planned, marks=frozenset({"announced"}))
    gone = document(13, "pensioned", "finance", status="retired")
    yield MeshProduct("pensioned", "d2/pensioned.odcs.yaml", gone, marks=frozenset({"retired"}))
    proposed = document(14, "proposed", "people", status="proposed")
    yield MeshProduct("proposed", "d3/proposed.odcs.yaml", proposed)


def _hostile() -> Iterator[MeshProduct]:
    fates = ("in time", "missing today", "came after all")
    for place, text in enumerate(TEXTS.values()):
        id_ = f"stranger-{place:02}"
        servers = [
            {"server": text, "type": "local", "path": f"lake/{id_}", "format": "csv", "description": text}
        ]
        made, file = hostile(id_, text, servers=servers), f"strangers/{id_}.odcs.yaml"
        yield MeshProduct(id_, file, made, fates[place % 3], marks=frozenset({"hostile"}))


def _odd() -> Iterator[MeshProduct]:
    for place, id_ in enumerate(ODD_IDS):
        made = document(15 + place, id_, "odd ids")
        yield MeshProduct(id_, f"odd/{place}.odcs.yaml", made, "in time", marks=frozenset({"odd"}))


def _one(
    number: int, id_: str, fate: str, born: int = 0, text: str | None = None, marks: set[str] | None = None
) -> MeshProduct:
    made = document(number, id_, DOMAINS[0])
    file = f"d0/{id_}.odcs.yaml"
    return MeshProduct(id_, file, made, fate, born=born, text=text, marks=frozenset(marks or ()))
