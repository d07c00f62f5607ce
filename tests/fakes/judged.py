"""What a data set's own rules find: in it nothing, and of the faults planted into it as many as they can."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

from fakes.command import Place
from fakes.planted import Rows, planted
from fakes.shipped import Shipped

from dq.contracts.yaml.parse import read

_KINDS = {"integer": "number", "number": "number", "string": "text", "date": "date", "timestamp": "date"}
# How a fault was met -> its sign in the table.
FOUND, WARNED, UNREADABLE, MISSED = "found", "warned", "unreadable", "missed"
_SIGNS = {FOUND: "x", WARNED: "w", UNREADABLE: "!", MISSED: "-"}


@dataclass(frozen=True, slots=True)
class Judged:
    """The verdicts by fault, with the checks that found each; `clean`: the data keeps its own rules."""

    name: str
    rules: int
    clean: bool
    contract: str
    verdicts: dict[str, tuple[str, tuple[str, ...]]]
    told: str = ""

    @property
    def found(self) -> int:
        """How many faults were met, by an error, a warning or a refusal to call it fine."""
        return sum(verdict != MISSED for verdict, _ in self.verdicts.values())

    def line(self) -> str:
        """A row of the table."""
        signs = "  ".join(f"{fault}:{_SIGNS[verdict]}" for fault, (verdict, _) in self.verdicts.items())
        own = "keeps its rules" if self.clean else f"BREAKS ITS RULES {self.told}"
        return f"{self.name:<16}{self.rules:>3} rules, {own}; {self.found}/{len(self.verdicts)}  {signs}"


def judge(data: Shipped, folder: Path, faults: int = 10) -> Judged:
    """Imports, proposes, validates and checks; then plants each fault into the newest part of the data.

    A partition is checked as its delivery would be.
    """
    place = Place(folder)
    parts = data.read()
    names = list(next(iter(parts.values()))[0])
    lake = folder / "lake" / data.name
    for part, rows in parts.items():
        data.deliver(lake / part, rows, names)
    place.dq("import", data.form.partition(".")[0], str(lake), "-o", "c.odcs.yaml")
    ran = place.dq("propose", "c.odcs.yaml", "-o", "c.odcs.yaml", "--format", "json")
    assert ran.code == 0, ran
    (proposed,) = json.loads(ran.out)
    valid = place.dq("validate", "c.odcs.yaml")
    whole, told = _checked(place, ())
    newest = max(parts)
    scope = ("--partition", newest) if newest else ()
    part, told_of_part = _checked(place, scope)
    contract = (folder / "c.odcs.yaml").read_text("utf-8")
    kinds = {
        prop.column: _KINDS.get(prop.logical_type or "", "") for prop in read(contract).objects[0].properties
    }
    table = Rows(
        parts[newest],
        {name: kinds[name] for name in names},
        data.form.startswith("csv"),
        _null(contract, data),
    )
    verdicts = {}
    for fault, rows in planted(table, data.name, faults).items():
        shutil.rmtree(lake / newest)
        data.deliver(lake / newest, rows, names)
        verdicts[fault] = _checked(place, scope)
    clean = valid.code == 0 and (whole, part) == (MISSED, MISSED)
    return Judged(
        data.name, len(proposed["proposals"]), clean, contract, verdicts, f"{told} {told_of_part} {valid.out}"
    )


def _null(contract: str, data: Shipped) -> object:
    if not data.form.startswith("csv"):
        return None
    return "NA" if "nullText: NA" in contract else ""


def _checked(place: Place, scope: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    ran = place.dq("check", "c.odcs.yaml", *(scope or ("--all",)), "--channel", "console", "--format", "json")
    reports = json.loads(ran.out)
    results = [one for report in reports for one in report.get("results", ())]
    failed = tuple(
        f"{one.get('property') or ''} {one['check']}".strip() for one in results if one["status"] == "fail"
    )
    if ran.code == 1:
        return FOUND, failed
    if ran.code != 0:
        return UNREADABLE, failed
    return (WARNED, failed) if failed else (MISSED, ())
