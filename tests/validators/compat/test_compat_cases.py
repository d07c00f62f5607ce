"""Every row of the compatibility cases through the public door: rule, effect, severity, verdicts, bump."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from functools import cache
from typing import Any

import pytest
import yaml
from fakes.cases import OURS, cases
from fragments.compat import TODAY, contract, document

from dq.contracts.model import Contract
from dq.validators.compat.classification import DEFAULT_ENGINES, Mode
from dq.validators.compat.classified_change import RULES, Comparison, Waiver
from dq.validators.compat.comparison import DiffTerms, compare, diff

FILE = cases("compat-cases.yaml")
MORE: dict[str, Any] = yaml.load((OURS / "compat-more.yaml").read_text("utf-8"), yaml.CSafeLoader)
FIRST: dict[str, Any] = yaml.load((OURS / "compat-cases.yaml").read_text("utf-8"), yaml.CSafeLoader)
KNOWN: list[dict[str, Any]] = FIRST["cases"] + MORE["cases"]

STEPS = {"none": "1.0.0", "patch": "1.0.1", "minor": "1.1.0", "major": "2.0.0"}
MODES = ("FORWARD", "BACKWARD", "FULL")
# These need a repository; tests/validators/compat/test_base_cases.py runs them in a real one.
IN_GIT = ("merge_base", "base", "present", "ref")

Row = Mapping[str, Any]


def in_git(row: Row) -> bool:
    return isinstance(row["before"], Mapping) and any(key in row["before"] for key in IN_GIT)


ROWS = [pytest.param(row, id=row["id"]) for row in FILE["cases"] + MORE["cases"] if not in_git(row)]
BY_ID: dict[str, Row] = {one.values[0]["id"]: one.values[0] for one in ROWS}  # type: ignore[index, misc]


def terms(row: Row, mode: str) -> DiffTerms:
    before, after = row["before"] or {}, row["after"] or {}
    given = {**before, **after}
    format_ = row.get("format", "any")
    engine = row.get("engine")
    accept = given.get("accept")
    listed = accept if isinstance(accept, list) else [accept] if accept else []
    return DiffTerms(
        today=date.fromisoformat(str(given.get("today", TODAY))),
        mode=Mode(mode),
        engines=(engine,) if isinstance(engine, str) else tuple(engine or DEFAULT_ENGINES),
        format=None if format_ == "any" else format_,
        notice_days=given.get("notice_days", 90),
        waivers=tuple(waiver(one) for one in listed),
    )


def waiver(entry: Row) -> Waiver:
    expires = entry.get("expires")
    return Waiver(
        rule=entry["rule"],
        contract=entry.get("contract", ""),
        path=entry.get("path", ""),
        reason=entry.get("reason", ""),
        by=entry.get("by", ""),
        expires=date.fromisoformat(str(expires)) if expires else None,
    )


def filled(row: Row) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """Both fragments, with what they only name: rules that were found, a change that was accepted."""
    before, after = row["before"], row["after"]
    named = [*((before or {}).get("findings") or []), *((after or {}).get("findings") or [])]
    accept = (before or {}).get("accept") or (after or {}).get("accept")
    if isinstance(accept, Mapping) and not {"columns", "property"} & before.keys():
        named.append(accept["rule"])
    for rule in named:
        like = next(one for one in KNOWN if one["rule"] == rule and one["area"] not in ("version", "policy"))
        before, after = {**like["before"], **before}, {**like["after"], **after}
    return before, after


def version_of(side: Mapping[str, Any] | None, usual: str) -> str:
    header = (side or {}).get("contract") or {}
    return str((side or {}).get("version", header.get("version", usual)))


@cache
def judged(id_: str, mode: str) -> Comparison:
    """What the row's two sides are to each other. Three tests look at the same answer."""
    row = BY_ID[id_]
    before, after = filled(row)
    asked = terms(row, mode)
    if before is not None and "yaml" in before:
        return compare([], [contract(document(after or {}))], asked, invalid=["orders.odcs.yaml"])
    if (before is not None and "files" in before) or (after is not None and "files" in after):
        return compare(files(before), files(after), asked)
    versions = list((before or {}).get("versions", [])) + list((after or {}).get("versions", []))
    if versions:
        return transitive(row, versions, after or {}, asked)
    old = None if before is None else made(before, after, version_of(before, "1.0.0"))
    new = None if after is None else made(after, before, version_of(after, STEPS[row["bump"]]))
    if row["area"] == "contract" or "path" in (before or {}):
        others = [] if after is None else referring(before or {}, after)
        return compare([one for one in (old,) if one], [*[one for one in (new,) if one], *others], asked)
    return diff(old, new, asked)


def made(side: Mapping[str, Any], other: Mapping[str, Any] | None, version: str) -> Contract:
    return contract(document(side, other or {}, version), side.get("path", "orders.odcs.yaml"))


def files(side: Mapping[str, Any] | None) -> list[Contract]:
    headers = (side or {}).get("files", [])
    return [
        contract(
            document({"contract": {key: value for key, value in header.items() if key != "path"}}),
            header.get("path", f"{header['id']}-{number}.odcs.yaml"),
        )
        for number, header in enumerate(headers)
    ]


def referring(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Contract]:
    """Another contract that names the old path, where the case says that there is one."""
    keys = ("referenced_by", "referencedBy", "references", "referenced")
    if not any(key in before or key in after for key in keys):
        return []
    other = document({"contract": {"id": "other"}})
    other["schema"][0]["relationships"] = [{"from": "orders.a", "to": f"{before['path']}#orders.a"}]
    return [contract(other, "other.odcs.yaml")]


def transitive(
    row: Row, versions: list[dict[str, Any]], after: Mapping[str, Any], asked: DiffTerms
) -> Comparison:
    """The newest version of the head's major is what it follows; `against` picks another one."""
    head_version = version_of(after, "")
    listed = {str(one["v"]): made(one, None, str(one["v"])) for one in versions}
    wanted = str(after.get("against", "")) or list(listed)[-1]
    last = listed[wanted]
    head = made(after, None, head_version or stepped(wanted))
    older = [one for version, one in reversed(listed.items()) if version != wanted]
    against = [] if "against" in after else older
    mode = asked.mode.value if "against" in after or asked.mode is None else f"{asked.mode.value}_TRANSITIVE"
    return diff(last, head, replace(asked, mode=Mode(mode)), against)


def stepped(version: str) -> str:
    major, minor, _ = version.split(".")
    return f"{major}.{int(minor) + 1}.0"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("row", ROWS)
def test_the_row_gets_its_rule_effect_severity_and_verdict(row: Row, mode: str) -> None:
    found = judged(row["id"], mode)

    told = [one for one in found.changes if one.rule != "version-bump-ok"]
    if row["rule"] == "no-change":
        assert told == []
        return
    said = {(one.rule, one.effect.value, one.level.value, one.verdict.value) for one in found.changes}
    assert (row["rule"], row["effect"], row["severity"], row["verdict"][mode]) in said


@pytest.mark.parametrize("row", ROWS)
def test_the_row_asks_for_its_bump_in_the_default_mode(row: Row) -> None:
    found = judged(row["id"], "FORWARD")

    bumps = {one.bump.value for one in found.changes if one.rule == row["rule"]}
    assert bumps == (set() if row["rule"] == "no-change" else {row["bump"]})


# In rows about versions the change that the version announces is judged beside it, whatever the row says.
WHOLE = [one for one in ROWS if one.values[0]["area"] not in ("version",)]  # type: ignore[index]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("row", WHOLE)
def test_nothing_else_in_the_row_is_worse_than_its_verdict(row: Row, mode: str) -> None:
    assert judged(row["id"], mode).verdict.value == row["verdict"][mode]


def test_every_rule_that_the_cases_name_is_in_the_table_and_no_other() -> None:
    assert set(FIRST["rule_ids"]) == set(RULES)
