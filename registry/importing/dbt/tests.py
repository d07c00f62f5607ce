"""TABLE: what a test of dbt is in a contract; what no row has is told.

A test that fails a build is a promise of the column. One that only warns, or is of some rows, is a quality
rule, which can say both.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from dq.registry.importing.dbt.relation import DbtTest
from dq.registry.importing.documents import listed, mapped, shown, text

_REF = re.compile(r"""(ref|source)\(\s*['"]([^'"]+)['"](?:\s*,\s*['"]([^'"]+)['"])?[^)]*\)""")
_STRICT = ("", "!= 0", "!=0", "> 0", ">0")


@dataclass(slots=True)
class TestedColumn:
    """What the tests of one column say of it: keys of ODCS, and whether it may be NULL."""

    required: bool = False
    said: dict[str, list[object] | object] = field(default_factory=dict)

    def add(self, key: str, value: object) -> None:
        """Adds one item to a list of the column."""
        self.said[key] = [*listed(self.said.get(key)), value]

    def accepted(self) -> list[object]:
        """The values that a test of the column accepts."""
        rules = [mapped(one) for one in listed(self.said.get("quality"))]
        listed_in = [mapped(one.get("arguments")).get("validValues") for one in rules]
        return [
            *(mapped(one).get("value") for one in listed(self.said.get("enum"))),
            *(value for values in listed_in for value in listed(values)),
        ]


Named = Mapping[tuple[str, str], str]
"""The object's name of a relation, by the group of its source ("" for a model) and its name."""


def promised(tests: Iterable[DbtTest], names: Named) -> tuple[dict[str, TestedColumn], list[str]]:
    """What the tests of a table say of its columns, those of the whole table under "", and what is lost."""
    columns: dict[str, TestedColumn] = {}
    lost = []
    for test in tests:
        if test.config.get("enabled") is False:
            continue
        why = _carried(test, columns, names)
        if why is not None:
            about = f"{test.column}: " if test.column else ""
            arguments = f" {shown(dict(test.arguments))}" if test.arguments else ""
            lost.append(f"{about}test {test.name}{arguments}{why and f', {why}'}")
    return columns, lost


def _carried(test: DbtTest, columns: dict[str, TestedColumn], names: Named) -> str | None:
    """None where the test is taken over, else why it is not; "" where nothing can be said of that."""
    put = _KNOWN.get(test.name)
    if put is None:
        return ""
    error_if = text(test.config.get("error_if"))
    if error_if not in _STRICT:
        return f"which fails if the count is {error_if}"
    where = text(test.config.get("where"))
    if "{{" in where or "{%" in where:
        return f"where {shown(where)}, which dbt fills in"
    known = columns.get(test.column)
    made = known or TestedColumn()
    why = put(test, made, names)
    if why is None:
        columns[test.column] = made
    return why


def _is_plain(test: DbtTest) -> bool:
    return not _scope(test) and text(test.config.get("severity")).lower() != "warn"


def _scope(test: DbtTest) -> dict[str, object]:
    where = text(test.config.get("where"))
    return {"property": "scope", "vendor": "dq", "value": {"rows": "table", "where": where}} if where else {}


def _rule(test: DbtTest, made: TestedColumn, **said: object) -> None:
    warns = text(test.config.get("severity")).lower() == "warn"
    scope = _scope(test)
    made.add("quality", {
        **said,
        "mustBe": 0,
        **({"severity": "warning"} if warns else {}),
        **({"customProperties": [scope]} if scope else {}),
    })  # fmt: skip


def _not_null(test: DbtTest, made: TestedColumn, _: Named) -> str | None:
    if not test.column:
        return "which names no column"
    if _is_plain(test):
        made.required = True
    else:
        _rule(test, made, metric="nullValues")
    return None


def _unique(test: DbtTest, made: TestedColumn, _: Named) -> str | None:
    if not test.column:
        return "which names no column"
    if _is_plain(test):
        made.said["unique"] = True
    else:
        _rule(test, made, metric="duplicateValues")
    return None


def _accepted(test: DbtTest, made: TestedColumn, _: Named) -> str | None:
    values = listed(test.arguments.get("values"))
    if not test.column or not values or any(isinstance(one, dict | list) for one in values):
        return "which lists no values"
    if test.arguments.get("quote") is not False:
        # dbt puts quotes around them: they are texts, whatever YAML read.
        values = ["true" if one is True else "false" if one is False else str(one) for one in values]
    if _is_plain(test):
        made.said["enum"] = [{"value": one} for one in dict.fromkeys(values)]
    else:
        _rule(test, made, metric="invalidValues", arguments={"validValues": values})
    return None


def _relationship(test: DbtTest, made: TestedColumn, names: Named) -> str | None:
    field, match = text(test.arguments.get("field")), _REF.search(text(test.arguments.get("to")))
    if match is None or not field or not test.column:
        return "which names no column of another table"
    if not _is_plain(test):
        return "which only warns, or is of some rows"
    kind, first, second = match.groups()
    to = names.get((first, second or "") if kind == "source" else ("", second or first))
    if to is None:
        return "a table that is not imported"
    made.add("relationships", {"to": f"{to}.{field}"})
    return None


def _combination(test: DbtTest, made: TestedColumn, _: Named) -> str | None:
    columns = listed(test.arguments.get("combination_of_columns"))
    if not columns or not all(isinstance(one, str) for one in columns):
        return "which names no columns"
    _rule(test, made, metric="duplicateValues", arguments={"properties": columns})
    return None


_KNOWN: dict[str, Callable[[DbtTest, TestedColumn, Named], str | None]] = {
    "not_null": _not_null,
    "unique": _unique,
    "accepted_values": _accepted,
    "relationships": _relationship,
    "dbt_utils.unique_combination_of_columns": _combination,
}
